import numpy as np
import pytest

from setsup.errors import DataError
from setsup.reports.thumbnails import cell_size, thumbnail


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((28, 28, 1), (56, 56)),
        ((32, 32, 3), (64, 64)),
        ((64, 64, 3), (64, 64)),
        ((96, 96, 3), (96, 96)),
        ((400, 600, 3), (112, 75)),
        ((600, 400, 3), (75, 112)),
        ((1, 1, 1), (64, 64)),
        ((1, 5000, 1), (112, 1)),
    ],
)
def test_size_of_a_cell(shape: tuple[int, ...], size: tuple[int, int]) -> None:
    assert cell_size([shape], 64) == size
    assert thumbnail(np.zeros(shape, np.uint8), 64).size == size


def test_the_cell_holds_the_largest_of_several() -> None:
    assert cell_size([(400, 600, 3), (600, 400, 3)], 64) == (112, 112)


def test_small_pictures_are_repeated_pixel_by_pixel() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (28, 28, 3), dtype=np.uint8)
    found = np.asarray(thumbnail(pixels, 64))
    assert np.array_equal(found, pixels.repeat(2, axis=0).repeat(2, axis=1))


def test_large_pictures_are_averaged() -> None:
    # a fine chequerboard becomes an even grey; picking single pixels would keep black and white
    board = (np.indices((448, 448)).sum(0) % 2 * 255).astype(np.uint8)[..., None]
    found = np.asarray(thumbnail(board, 64)).astype(int)
    assert found.shape == (112, 112, 3)
    assert abs(found - 127.5).max() < 8


def test_transparent_parts_are_white() -> None:
    pixels = np.zeros((64, 64, 4), np.uint8)
    pixels[:32, :, 3] = 255
    found = np.asarray(thumbnail(pixels, 64))
    assert (found[:32] == 0).all()
    assert (found[32:] == 255).all()


def test_two_channels_are_red_and_green() -> None:
    pixels = np.arange(32, dtype=np.uint8).reshape(4, 4, 2)
    found = np.asarray(thumbnail(pixels, 4))
    assert np.array_equal(found[..., :2], pixels)
    assert not found[..., 2].any()


@pytest.mark.parametrize(
    "pixels",
    [np.zeros((4, 4)), np.zeros((4, 4, 5), np.uint8), np.zeros((4, 4, 3), np.float32), np.zeros((0, 4, 3), np.uint8)],
)
def test_what_is_no_picture_is_refused(pixels: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"contact sheet must be uint8 arrays of shape \(height, width, 1 to 4\), not"):
        thumbnail(pixels, 64)
