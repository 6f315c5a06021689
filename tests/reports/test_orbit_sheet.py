import numpy as np
import pytest

from setsup.errors import DataError
from setsup.reports import orbit_sheet

COLORS = np.uint8([(200, 10, 20), (10, 20, 200), (10, 180, 30), (90, 90, 10)])
FRAME = np.uint8((0xC2, 0x41, 0x0C))


def blocks(orbits: int, columns: int = 4, side: int = 32) -> list:
    """Two rows an orbit: the first of one colour a column, the second of the last colour with nothing in front."""
    images = [np.broadcast_to(color, (side, side, 3)) for color in COLORS[:columns]]
    return [[images, [None, *[images[-1]] * (columns - 1)]]] * orbits


def test_each_column_stands_beneath_its_head_in_all_orbits() -> None:
    pixels = np.asarray(orbit_sheet(blocks(3), ["a\nb"] * 3, [["", "rectified"]] * 3, "title", tile=32))
    places = [(pixels == color).all(-1) for color in COLORS]
    assert [int(place.sum()) for place in places] == [3 * 32 * 32] * 3 + [3 * 4 * 32 * 32]
    firsts = [np.flatnonzero(place.any(0)).min() for place in places[:3]]
    assert firsts[2] - firsts[1] == 35
    assert firsts[1] - firsts[0] > 35  # canonical images stand apart
    assert all(np.flatnonzero(place.any(0)).size == 32 for place in places[:3])


def test_canonical_images_are_framed_unless_there_are_none() -> None:
    for canonical in (True, False):
        pixels = np.asarray(orbit_sheet(blocks(2), ["", ""], [["", ""]] * 2, canonical=canonical, tile=32))
        framed = (pixels == FRAME).all(-1)
        assert framed.any() == canonical
        if canonical:
            first = np.argwhere((pixels == COLORS[0]).all(-1)).min(axis=0)
            assert (np.argwhere(framed).min(axis=0) == first - 3).all()


def test_orbits_of_other_shapes_share_columns() -> None:
    wide = [[[np.broadcast_to(color, (30, 60, 3)) for color in COLORS]]]
    found = orbit_sheet([*wide, [blocks(1)[0][0]]], ["", ""], [[""], [""]], tile=60)
    places = [np.flatnonzero((np.asarray(found) == color).all(-1).any(0)) for color in COLORS]
    assert [len(place) for place in places] == [60] * 4
    two = orbit_sheet(blocks(2), ["a", "b"], [["", "long words"]] * 2, scale=2)
    one = orbit_sheet(blocks(2), ["a", "b"], [["", "long words"]] * 2)
    assert two.size == (2 * one.width, 2 * one.height)


def test_what_does_not_fit_is_refused() -> None:
    good = blocks(2)
    for images, captions, labels, sentence in (
        ([], [], [], "the same length, 1 or more, not none"),
        ([good[0], [good[0][0][:3]]], ["", ""], [["", ""], [""]], r"not \[3, 4\]; pad with None"),
        (good, [""], [["", ""]] * 2, "2 orbits requires 2 captions, not 1"),
        (good, ["", ""], [["", ""]], "2 orbits requires 2 row labels, not 1"),
        (good, ["", ""], [["", ""], [""]], "orbit 1 of the sheet must have one label for each of the 2 rows, not 1"),
        ([[[np.zeros((3, 8, 8))]]], [""], [[""]], "an image of orbit 0 must be"),
    ):
        with pytest.raises(DataError, match=sentence):
            orbit_sheet(images, captions, labels)
