import numpy as np
import pytest

from setsup.errors import DataError
from setsup.reports import triplet_sheet

COLORS = np.uint8([(200, 10, 20), (10, 20, 200), (10, 180, 30)])


@pytest.mark.parametrize("triplets", [1, 5, 8, 9, 32, 64])
def test_each_role_has_its_column(triplets: int) -> None:
    images = np.broadcast_to(COLORS[None, :, None, None], (triplets, 3, 64, 64, 3))
    pixels = np.asarray(triplet_sheet(images, "title"))
    side = 128 if 3 * triplets <= 24 else 64
    places = [(pixels == color).all(-1) for color in COLORS]
    assert [int(place.sum()) for place in places] == [triplets * side * side] * 3
    firsts = [np.flatnonzero(place.any(0)).min() for place in places]
    assert firsts == sorted(firsts)
    assert pixels.shape[1] <= 1400


def test_no_more_than_the_limit_is_shown() -> None:
    images = np.broadcast_to(COLORS[None, :, None, None], (100, 3, 28, 28, 3))
    pixels = np.asarray(triplet_sheet(images, "title", limit=20))
    assert (pixels == COLORS[0]).all(-1).sum() == 20 * 56 * 56


def test_columns_hold_pictures_of_several_shapes() -> None:
    shapes = [(400, 300), (300, 400), (300, 300)]
    images = [[np.broadcast_to(color, (*shape, 3)) for color, shape in zip(COLORS, shapes, strict=True)]] * 20
    pixels = np.asarray(triplet_sheet(images, "title", tile=60))
    assert [int((pixels == color).all(-1).sum()) for color in COLORS] == [20 * 45 * 60, 20 * 60 * 45, 20 * 60 * 60]
    one, two = (triplet_sheet(images[:9], "title", scale=scale) for scale in (1, 2))
    assert two.size == (2 * one.width, 2 * one.height)


def test_what_is_no_triplet_is_refused() -> None:
    with pytest.raises(DataError, match=r"must have 3 images .*, not 4"):
        triplet_sheet(np.zeros((2, 4, 8, 8, 3), np.uint8))


def test_none_at_all_is_a_sheet() -> None:
    assert triplet_sheet(np.zeros((0, 3, 8, 8, 3), np.uint8)).height > 0
