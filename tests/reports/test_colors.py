"""Colours can be told apart: differences by scikit-image's CIEDE2000, where about 2 is just seen and 10 is plain."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("skimage")
from skimage import color

from setsup.factors.factor import Factor, Kind
from setsup.reports.colors import DISTINCT, OTHERS, UNKNOWN, Names, color_points, cyclic_colors, rgb, sequential_colors


def lab(colors) -> np.ndarray:
    return color.rgb2lab(np.asarray(colors)[None])[0]


def differences(colors) -> np.ndarray:
    """Between all pairs, the least of each."""
    here = lab(colors)
    found = color.deltaE_ciede2000(here[:, None], here[None])
    return np.where(np.eye(len(here), dtype=bool), np.inf, found).min(axis=1)


def test_hex_is_read_as_css_reads_it() -> None:
    np.testing.assert_allclose(rgb("#ff8000"), [1, 128 / 255, 0])


def test_names_have_colors_that_differ_from_each_other_and_from_paper() -> None:
    assert len(set(DISTINCT)) == 20
    names = [rgb(color) for color in (*DISTINCT, OTHERS, UNKNOWN, "#ffffff")]
    assert differences(names[:21]).min() > 15
    assert differences(names).min() > 9
    assert lab(names[:21])[:, 0].max() < 82


def test_a_cycle_closes_and_its_steps_are_alike() -> None:
    np.testing.assert_allclose(cyclic_colors([0.0, 0.3]), cyclic_colors([1.0, -0.7]), atol=1e-12)
    wheel = lab(cyclic_colors(np.arange(12) / 12))
    steps = color.deltaE_ciede2000(wheel, np.roll(wheel, 1, axis=0))
    assert steps.min() > 10
    assert steps.max() < 2 * steps.min()
    assert wheel[:, 0].max() < 85
    found = cyclic_colors(np.linspace(0, 1, 1000))
    assert found.min() >= 0
    assert found.max() <= 1


@pytest.mark.parametrize("count", [1, 2, 15, 256])
def test_an_order_runs_from_dark_to_light_and_stays_off_paper(count: int) -> None:
    found = lab(sequential_colors(count))
    assert (np.diff(found[:, 0]) >= 0).all()
    assert found[:, 0].max() < 90
    if count == 15:
        assert differences(sequential_colors(count)).min() > 3


def test_of_many_levels_none_may_be_known() -> None:
    factor = Factor("who", Kind.NOMINAL, tuple(f"person {number}" for number in range(30)))
    colored = color_points(np.full(4, -1), factor)
    assert not colored.known.any()
    assert isinstance(colored.key, Names)
    assert (colored.key.levels, colored.key.rest) == ([], [("unknown", UNKNOWN)])
