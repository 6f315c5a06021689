import io

import numpy as np
import pytest
from PIL import Image

from setsup.errors import DataError
from setsup.reports import contact_sheet

RED, BLUE, GREEN = (200, 10, 20), (10, 20, 200), (10, 180, 30)
EMPTY = (0xE9, 0xEC, 0xEF)


def solid(color: tuple[int, int, int], sets: int, size: int, height: int = 64, width: int = 64) -> np.ndarray:
    return np.broadcast_to(np.uint8(color), (sets, size, height, width, 3))


def count(sheet: Image.Image, color: tuple[int, int, int]) -> int:
    return int((np.asarray(sheet) == np.uint8(color)).all(-1).sum())


def png(sheet: Image.Image) -> bytes:
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()


def test_every_picture_is_shown_once_and_whole() -> None:
    images = np.concatenate([solid(RED, 1, 32), solid(BLUE, 1, 32)])
    sheet = contact_sheet(images, ["left", "right"], "title")
    assert count(sheet, RED) == count(sheet, BLUE) == 32 * 64 * 64
    pixels = np.asarray(sheet)
    red = np.flatnonzero((pixels == np.uint8(RED)).all(-1).any(0))
    blue = np.flatnonzero((pixels == np.uint8(BLUE)).all(-1).any(0))
    assert red.max() < blue.min(), "sets stand side by side, in order"


def test_members_are_in_order_from_left_to_right_and_down() -> None:
    greys = np.arange(32, dtype=np.uint8) * 4 + 1
    images = np.broadcast_to(greys[None, :, None, None, None], (1, 32, 64, 64, 1))
    pixels = np.asarray(contact_sheet(images, [""]))[:, :, 0].astype(int)
    corners = []
    for grey in greys.tolist():
        rows, columns = np.nonzero(pixels == grey)
        # text is antialiased grey: the thumbnail is where a whole row has the colour
        most = np.bincount(rows).argmax()
        corners.append((most // 67, columns[rows == most].min()))
    assert corners == sorted(corners)


def columns(sets: int, size: int) -> int:
    """Images in the first row of the first set."""
    images = np.concatenate([solid(RED, 1, size), solid(BLUE, max(sets - 1, 1), size)])[:sets]
    red = (np.asarray(contact_sheet(images, [""] * sets)) == np.uint8(RED)).all(-1)
    row = red[np.flatnonzero(red.any(1))[0]]
    return int((np.diff(row.astype(int)) == 1).sum())


@pytest.mark.parametrize(
    ("sets", "size", "expected"),
    [(2, 32, 8), (2, 64, 8), (8, 5, 5), (4, 8, 4), (2, 13, 5), (2, 15, 5), (2, 7, 4), (8, 13, 5), (4, 17, 6)],
)
def test_pictures_of_a_set_form_a_block_that_is_neither_a_row_nor_a_column(sets: int, size: int, expected: int) -> None:
    assert columns(sets, size) == expected


def test_small_grey_pictures_are_enlarged_by_whole_factors() -> None:
    sheet = contact_sheet(np.full((2, 64, 28, 28, 1), 77, np.uint8), ["a", "b"])
    assert count(sheet, (77, 77, 77)) >= 2 * 64 * 56 * 56


def test_padded_slots_are_greyed_out() -> None:
    mask = np.arange(16)[None] < np.array([[16], [5]])
    sheet = contact_sheet(solid(GREEN, 2, 16), ["a", "b"], mask=mask)
    assert count(sheet, GREEN) == 21 * 64 * 64
    assert count(sheet, EMPTY) == 11 * 64 * 64


def test_rows_of_nothing_but_padding_are_left_out() -> None:
    mask = np.arange(64)[None] < np.array([[9], [1]])
    sheet = contact_sheet(solid(GREEN, 2, 64), ["a", "b"], mask=mask)
    full = contact_sheet(solid(GREEN, 2, 64), ["a", "b"])
    assert count(sheet, GREEN) == 10 * 64 * 64
    assert sheet.width == full.width
    # sets of 64 have eight a row: nine members need two rows
    assert count(sheet, EMPTY) == 22 * 64 * 64
    assert full.height - sheet.height == 6 * 67


def test_the_canonical_picture_stands_framed_in_front() -> None:
    sheet = contact_sheet(solid(GREEN, 2, 16), ["a", "b"], canonical=solid(RED, 1, 2)[0])
    pixels = np.asarray(sheet)
    assert count(sheet, RED) == 2 * 64 * 64
    frame = (pixels == np.uint8((0xC2, 0x41, 0x0C))).all(-1)
    assert frame.sum() == 2 * (2 * 2 * 70 + 2 * 2 * 66)
    first_red = np.flatnonzero((pixels == np.uint8(RED)).all(-1).any(0)).min()
    assert first_red < np.flatnonzero((pixels == np.uint8(GREEN)).all(-1).any(0)).min()


def test_no_more_than_the_limit_is_shown_and_the_rest_is_counted() -> None:
    images = solid(RED, 1, 100, 28, 28)
    limited = contact_sheet(images, ["a"], limit=40)
    assert count(limited, RED) == 40 * 56 * 56
    # the same note, whether all images were given or only the first of them
    assert png(limited) == png(contact_sheet(images[:, :40], ["a"], sizes=[100], limit=40))
    assert png(limited) != png(contact_sheet(images[:, :40], ["a"], limit=40))


@pytest.mark.parametrize(
    ("sets", "size", "height", "width"),
    [
        (1, 1, 64, 64),
        (2, 32, 64, 64),
        (8, 32, 64, 64),
        (2, 32, 400, 600),
        (32, 2, 64, 64),
        (3, 500, 28, 28),
        (1, 7, 9, 300),
    ],
)
def test_width_stays_within_bounds(sets: int, size: int, height: int, width: int) -> None:
    caption = "set 0 · held: floor_hue = 0.1 turn, wall_hue = 0.3 turn\nvaries: orientation"
    sheet = contact_sheet(solid(RED, sets, size, height, width), [caption] * sets, "title\nsubtitle")
    assert 200 <= sheet.width <= 1400
    assert sheet.mode == "RGB"


def test_pictures_of_different_sizes_share_a_sheet() -> None:
    images = [
        [np.full((64, 32, 3), 9, np.uint8), np.full((32, 64, 3), 9, np.uint8)],
        [np.full((50, 50, 3), 9, np.uint8)],
    ]
    assert count(contact_sheet(images, ["a", "b"]), (9, 9, 9)) == 2 * (128 * 64) + 100 * 100


def test_equal_arguments_give_equal_bytes() -> None:
    images = np.random.default_rng(3).integers(0, 256, (2, 4, 16, 16, 3), dtype=np.uint8)
    assert png(contact_sheet(images, ["a", "b"], "t")) == png(contact_sheet(images.copy(), ["a", "b"], "t"))
    assert png(contact_sheet(images, ["a", "b"], "t")) != png(contact_sheet(images, ["a", "c"], "t"))


def test_captions_change_nothing_but_text() -> None:
    sheet = contact_sheet(solid(RED, 1, 4), ["[bold]{x}%s\\ \u202e犬"], "")
    assert count(sheet, RED) == 4 * 128 * 128


def test_numbers_that_disagree_are_refused() -> None:
    images = solid(RED, 2, 4)
    with pytest.raises(DataError, match="a contact sheet of 2 sets needs as many captions, not 1"):
        contact_sheet(images, ["a"])
    with pytest.raises(DataError, match="as many canonical, not 1"):
        contact_sheet(images, ["a", "b"], canonical=images[0, :1])
    with pytest.raises(DataError, match=r"mask of a contact sheet must be \(sets, size\), not \(2, 3\)"):
        contact_sheet(images, ["a", "b"], mask=np.ones((2, 3), bool))


def test_an_empty_sheet_is_a_sheet() -> None:
    assert contact_sheet(np.zeros((0, 4, 8, 8, 3), np.uint8), [], "nothing").width > 0
    assert contact_sheet(np.zeros((1, 0, 8, 8, 3), np.uint8), ["empty"]).width > 0
