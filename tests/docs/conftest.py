"""What tests of the site share."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HOOKS = Path(__file__).resolve().parents[2] / "docs" / "hooks"


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import what the build of the site imports, and forget it again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(HOOKS))
    yield
    for name in set(sys.modules) - before:
        if str(HOOKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
