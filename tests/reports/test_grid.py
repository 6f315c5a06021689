"""Grids of images: every image whole and in its place, labels beside them."""

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.reports import image_grid

EMPTY, FRAME = (0xE9, 0xEC, 0xEF), (0xC2, 0x41, 0x0C)


def colors(rows: int, columns: int) -> np.ndarray:
    """A colour (rows, columns, 3) of its own for each place, none of them grey as letters are."""
    r, c = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    return np.stack([200 + r, 5 * c, np.full_like(r, 90)], axis=-1).astype(np.uint8)


def solid(wanted: np.ndarray, side: int = 28) -> np.ndarray:
    return np.broadcast_to(wanted[..., None, None, :], (*wanted.shape[:-1], side, side, 3))


def box(pixels: np.ndarray, color: np.ndarray) -> tuple[int, int, int]:
    """Top, left and area of a colour."""
    found = (pixels == color).all(-1)
    return int(np.flatnonzero(found.any(1))[0]), int(np.flatnonzero(found.any(0))[0]), int(found.sum())


@pytest.mark.parametrize(("rows", "columns", "side"), [(10, 10, 56), (1, 1, 112), (3, 5, 112), (2, 30, 56)])
def test_pictures_stand_in_rows_and_columns(rows: int, columns: int, side: int) -> None:
    wanted = colors(rows, columns)
    names = [f"row {row}" for row in range(rows)], [str(column) for column in range(columns)]
    pixels = np.asarray(image_grid(solid(wanted), *names, "title\nand more"))
    boxes = np.array([[box(pixels, color) for color in row] for row in wanted])
    assert (boxes[..., 2] == side * side).all()
    assert (boxes[:, :, 0] == boxes[:, :1, 0]).all()
    assert (boxes[:, :, 1] == boxes[:1, :, 1]).all()
    assert (np.diff(boxes[:, 0, 0]) >= side).all()
    assert (np.diff(boxes[0, :, 1]) >= side).all()


def test_labels_take_room_only_where_they_are() -> None:
    images = solid(colors(3, 4))
    plain, named = image_grid(images), image_grid(images, ["first", "second", "third"], ["a", "b", "c", "d"])
    assert named.width > plain.width
    assert named.height > plain.height
    assert image_grid(images, title="more").height > plain.height
    # a long one is broken, and does not push the images away
    assert image_grid(images, ["a name of many words " * 9] * 3).width < plain.width + 220


def test_queries_stand_framed_in_front() -> None:
    wanted = colors(3, 4)
    query = np.uint8([[10, 200, row] for row in range(3)])
    pixels = np.asarray(image_grid(solid(wanted), queries=solid(query)))
    for row in range(3):
        top, left, area = box(pixels, query[row])
        first = box(pixels, wanted[row, 0])
        assert area == first[2]
        assert top == first[0]
        assert left < first[1]
    assert (pixels == np.uint8(FRAME)).all(-1).sum() > 3 * 4 * 112


def test_none_leaves_a_place_grey() -> None:
    images = [[image for image in row] for row in solid(colors(2, 2))]
    images[1][0] = None
    pixels = np.asarray(image_grid(images))
    assert (pixels == np.uint8(EMPTY)).all(-1).sum() == 112 * 112


def test_columns_and_rows_are_as_large_as_their_pictures() -> None:
    shapes = [[(400, 300), (300, 400), (300, 400)], [(400, 300), (100, 400), (200, 400)]]
    wanted = colors(2, 3)
    images = [
        [np.broadcast_to(wanted[row, column], (*shape, 3)) for column, shape in enumerate(line)]
        for row, line in enumerate(shapes)
    ]
    pixels = np.asarray(image_grid(images, tile=80))
    found = [[(pixels == color).all(-1) for color in line] for line in wanted]
    widths = [[int(one.any(0).sum()) for one in line] for line in found]
    heights = [[int(one.any(1).sum()) for one in line] for line in found]
    assert widths == [[60, 80, 80]] * 2
    assert heights == [[80, 60, 60], [80, 20, 40]]
    ends = [[np.flatnonzero(one.any(0))[[0, -1]] for one in line] for line in found]
    assert [int(ends[0][place + 1][0] - ends[0][place][1]) for place in (0, 1)] == [4, 4], "three pixels between them"
    assert pixels.shape[1] == 60 + 80 + 80 + 2 * 3 + 2 * (24 + 14)
    assert pixels.shape[0] == 80 + 80 + 3 + 2 * (24 + 14)


def test_a_grid_at_twice_the_resolution() -> None:
    names = ["first", "second", "third"], list("abcd"), "title"
    one, two = (
        image_grid(solid(colors(3, 4)), *names, queries=solid(colors(3, 1))[:, 0], scale=scale) for scale in (1, 2)
    )
    assert two.size == (2 * one.width, 2 * one.height)
    difference = np.abs(np.asarray(two.reduce(2)).astype(int) - np.asarray(one))
    assert difference.mean() < 1
    with pytest.raises(DataError, match="scale, the factor of a sheet's resolution, must be an integer from 1 to 8"):
        image_grid(solid(colors(3, 4)), scale=0)


def test_numbers_that_disagree_are_refused() -> None:
    images = solid(colors(2, 3))
    with pytest.raises(DataError, match="a grid of 2 rows and 3 columns requires 2 row labels, not 1"):
        image_grid(images, ["a"])
    with pytest.raises(DataError, match="requires 3 column labels, not 2"):
        image_grid(images, [], ["a", "b"])
    with pytest.raises(DataError, match="requires 2 queries, not 3"):
        image_grid(images, queries=images[0])
    with pytest.raises(DataError, match=r"the same length, 1 or more, not \[2, 3\]"):
        image_grid([images[0], images[1, :2]])
    with pytest.raises(DataError, match="not none"):
        image_grid([])
    for wrong in (images[..., 0], images.astype(float), images[:, :, :0], np.moveaxis(images, -1, 2)):
        with pytest.raises(
            DataError, match=r"image 0 of the grid must be a uint8 array of shape \(height, width, 1, 3 or 4\)"
        ):
            image_grid(wrong)
