"""What tests of the renderers share."""

import pytest

from setsup.errors import DataError
from setsup_renderers.gl import GLRenderer


@pytest.fixture(scope="session")
def gl() -> str:
    """On what the gl renderer draws; tests that need it are skipped, with the reason, where it cannot."""
    try:
        return GLRenderer.check()
    except DataError as error:
        pytest.skip(str(error))
