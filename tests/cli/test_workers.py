import pytest

from setsup.errors import SetsupError
from setsup.jobs import Ray
from setsup_cli.parsing.workers import cluster


def test_what_options_ask_for() -> None:
    assert cluster(None, None, 0.0) is None
    assert cluster("ray", None, 0.0) == Ray()
    assert cluster("ray", "10.0.0.1:6379", 0.25) == Ray("10.0.0.1:6379", gpus=0.25)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((None, "auto", 0.0), "--ray-address and --ray-gpus require --on ray"),
        ((None, None, 0.5), "--ray-address and --ray-gpus require --on ray"),
        (("spark", None, 0.0), "--on must be ray, not 'spark'"),
        (("ray", None, -1.0), "gpus must be a finite, non-negative number, not -1.0"),
    ],
)
def test_options_that_do_not_go_together(options: tuple[str | None, str | None, float], said: str) -> None:
    with pytest.raises(SetsupError, match=said):
        cluster(*options)
