import io
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from setsup.errors import DataError
from setsup.reports import contact_sheet
from setsup.reports.justified import justified

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


def test_pictures_of_one_shape_and_several_sizes_fill_equal_cells() -> None:
    images = [[np.full((side, side, 3), 9, np.uint8) for side in (50, 100, 200, 300)]]
    assert count(contact_sheet(images, ["a"]), (9, 9, 9)) == 4 * 224 * 224


# -- images of several shapes ------------------------------------------------------------------------------------------


def box(pixels: np.ndarray, color: np.ndarray) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a colour; every pixel within must have it."""
    found = (pixels == color).all(-1)
    rows, columns = np.flatnonzero(found.any(1)), np.flatnonzero(found.any(0))
    left, top, right, bottom = int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
    assert found[top:bottom, left:right].all(), "an image is a whole rectangle, seen once"
    assert found.sum() == (right - left) * (bottom - top)
    return left, top, right, bottom


def colored(shapes: list[tuple[int, int]]) -> list[np.ndarray]:
    """Images (height, width) in colours of their own, none of which text or paper has."""
    colors = [(200, 10 + number % 100, 30 + number // 100) for number in range(len(shapes))]
    return [np.broadcast_to(np.uint8(color), (*shape, 3)).copy() for shape, color in zip(shapes, colors, strict=True)]


SHAPES = st.tuples(st.integers(40, 500), st.floats(0.45, 2.8)).map(lambda one: (one[0], round(one[0] * one[1])))


@pytest.mark.long("renderings")
@settings(max_examples=40, deadline=None)
@given(st.lists(SHAPES, min_size=2, max_size=40), st.sampled_from([None, 48, 150]))
def test_rows_of_many_shapes_have_no_gaps(shapes: list[tuple[int, int]], tile: int | None) -> None:
    images = colored(shapes)
    pixels = np.asarray(contact_sheet([images], ["a"], tile=tile))
    boxes = [box(pixels, image[0, 0]) for image in images]
    ratios = [width / height for height, width in shapes]
    if max(ratios) / min(ratios) < 1.1:  # as good as one shape: cells
        return
    rows: dict[int, list[tuple[int, int, int, int]]] = {}
    for number, found in enumerate(boxes):
        rows.setdefault(found[1], []).append(found)
        assert found == max(boxes[: number + 1], key=lambda one: (one[1], one[0])), "order is kept"
    tops = list(rows)
    for top, row in rows.items():
        assert len({bottom for _, _, _, bottom in row}) == 1, "a row has one height"
        assert row[0][0] == boxes[0][0]
        assert all(after[0] - before[2] == 3 for before, after in itertools.pairwise(row))
        below = tops.index(top) + 1
        assert below == len(tops) or tops[below] - row[0][3] == 3
    full = max(row[-1][2] for row in rows.values())
    short = [top for top, row in rows.items() if row[-1][2] < full]
    assert all(top == tops[-1] or len(rows[top]) <= 2 for top in short), "only few images leave a row short"


@given(st.lists(st.floats(0.4, 3.0), min_size=1, max_size=64), st.integers(220, 1300), st.integers(24, 224))
def test_places_in_justified_rows(aspects: list[float], width: int, height: int) -> None:
    boxes = justified(aspects, width, height, 3)
    assert len(boxes) == len(aspects)
    for aspect, found in zip(aspects, boxes, strict=True):
        assert found.left >= 0
        assert found.left + found.width <= width
        # edges are rounded to pixels: what is cropped for it is about one
        off = min(abs(found.width - aspect * found.height), abs(found.height - found.width / aspect))
        assert off <= 1.5
        assert found.height <= 1.6 * height + 1
    for one, two in itertools.pairwise(boxes):
        beside = two.top == one.top and two.height == one.height and two.left == one.left + one.width + 3
        below = two.left == 0 and two.top == one.top + one.height + 3
        assert beside or below
    assert boxes == justified(aspects, width, height, 3)


def test_usual_photos_fill_every_row_but_the_last() -> None:
    rng = np.random.default_rng(4)
    aspects = rng.choice([4 / 3, 3 / 4, 3 / 2, 2 / 3, 16 / 9, 1], 60).tolist()
    boxes = justified(aspects, 600, 92, 3)
    ends: dict[int, int] = {}
    for found in boxes:
        ends[found.top] = found.left + found.width
    assert set(list(ends.values())[:-1]) == {600}
    heights = {found.height for found in boxes}
    assert 65 < min(heights) <= max(heights) < 125


def test_an_image_in_a_row_is_cropped_by_a_pixel_but_not_distorted() -> None:
    circle = np.hypot(*(np.indices((301, 451)) - np.array([150, 225])[:, None, None])) < 120
    photo = np.where(circle[..., None], np.uint8((200, 0, 0)), np.uint8((0, 0, 200)))
    upright = np.full((400, 300, 3), 60, np.uint8)
    pixels = np.asarray(contact_sheet([[photo, upright, photo]], ["a"])).astype(int)
    found = (pixels[..., 0] > 100) & (pixels[..., 2] < 100) & (pixels[..., 1] < 40)
    first = found[:, : pixels.shape[1] // 2]
    across, down = int(first.any(0).sum()), int(first.any(1).sum())
    assert abs(across - down) <= 1


@pytest.mark.parametrize(("shape", "ratio"), [((100, 1500), 3.0), ((1500, 100), 0.4)])
def test_extreme_shapes_are_cropped_and_marked(shape: tuple[int, int], ratio: float) -> None:
    extreme, *others = colored([shape, *[(300, 400)] * 6])
    extreme[shape[0] // 2, shape[1] // 2] = 0
    pixels = np.asarray(contact_sheet([[extreme, *others]], ["a"]))
    found = (pixels == extreme[0, 0]).all(-1)
    width, height = int(found.any(0).sum()), int(found.any(1).sum())
    assert width / height == pytest.approx(ratio, rel=0.06)
    frame = (pixels == np.uint8((0xC2, 0x41, 0x0C))).all(-1)
    assert frame.sum() == pytest.approx(2 * min(width, height) * 2 / 2, rel=0.2), "dashes at two sides"
    alone = np.asarray(contact_sheet([[extreme] * 3], ["a"]))
    assert not (alone == np.uint8((0xC2, 0x41, 0x0C))).all(-1).any(), "images of one shape are shown whole"


def test_blocks_of_several_shapes_begin_at_one_height() -> None:
    images = colored([(300, 400), (400, 300)] * 9)
    pixels = np.asarray(contact_sheet([images[:12], images[12:]], ["a\nlonger\nand longer", "b"]))
    first, second = box(pixels, images[0][0, 0]), box(pixels, images[12][0, 0])
    assert first[1] == second[1]
    mask = np.arange(12)[None] < np.array([[12], [3]])
    padded = np.asarray(contact_sheet([images[:12], images[6:]], ["a", "b"], mask=mask))
    assert (padded == np.uint8(EMPTY)).all(-1).any()
    framed = contact_sheet([images[:12], images[12:]], ["a", "b"], canonical=[images[16], images[17]])
    assert (np.asarray(framed) == np.uint8((0xC2, 0x41, 0x0C))).all(-1).any()


# -- thumbnails of a given size, and resolution ------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(64, 64), (28, 28), (480, 640), (300, 100)])
@pytest.mark.parametrize("tile", [20, 64, 200])
def test_a_tile_is_the_longer_side_of_a_thumbnail(shape: tuple[int, int], tile: int) -> None:
    pixels = np.asarray(contact_sheet([colored([shape] * 3)], ["a"], tile=tile))
    left, top, right, bottom = box(pixels, np.uint8((200, 10, 30)))
    assert max(right - left, bottom - top) == tile
    assert min(right - left, bottom - top) == round(tile * min(shape) / max(shape))


def test_a_sheet_widens_where_a_tile_needs_it() -> None:
    assert contact_sheet([colored([(64, 64)] * 2)], ["a"], tile=900, width=400).width == 900 + 2 * (24 + 14)


@pytest.mark.parametrize(("name", "wrong"), [("tile", 7), ("tile", 5000), ("scale", 0), ("scale", 9)])
def test_measures_out_of_bounds_are_refused(name: str, wrong: int) -> None:
    with pytest.raises(DataError, match=f"{name}, the .* must be an integer from"):
        contact_sheet(solid(RED, 1, 2), ["a"], **{name: wrong})


def smooth(height: int, width: int, phase: float) -> np.ndarray:
    y, x = np.mgrid[:height, :width] / max(height, width)
    waves = [np.sin(5 * x + phase), np.cos(4 * y - phase), np.sin(3 * (x + y))]
    return np.uint8(127 + 120 * np.stack(waves, axis=-1))


@pytest.mark.parametrize("shapes", [[(64, 64)] * 8, [(480, 640)] * 8, [(480, 640), (640, 480), (200, 300)] * 3])
def test_scale_2_is_the_same_sheet_with_twice_the_pixels(shapes: list[tuple[int, int]]) -> None:
    images = [[smooth(*shape, number) for number, shape in enumerate(shapes)]] * 2
    mask = np.arange(len(shapes))[None] < np.array([[len(shapes)], [len(shapes) - 1]])
    one, two = (
        contact_sheet(images, ["x = -3", "b"], "title\nsoft", mask=mask, canonical=[images[0][0]] * 2, scale=scale)
        for scale in (1, 2)
    )
    assert two.size == (2 * one.width, 2 * one.height)
    halved = np.asarray(two.reduce(2)).astype(float)
    difference = np.abs(halved - np.asarray(one)).max(axis=-1)
    assert difference.mean() < 3
    assert (difference > 60).mean() < 0.02  # edges of letters


def test_scale_2_shows_what_scale_1_cannot() -> None:
    stripes = np.where(np.arange(448)[None, :, None] % 2 < 1, np.uint8(255), np.uint8(0))
    images = np.broadcast_to(stripes, (1, 3, 448, 448, 1))
    one, two = (np.asarray(contact_sheet(images, ["a"], scale=scale))[:, :, 0].astype(float) for scale in (1, 2))
    assert one[200, 60:160].std() < 10, "224 pixels average the stripes to grey"
    assert two[400, 120:320].std() > 100


# -- what all sheets have in common ------------------------------------------------------------------------------------


def test_equal_arguments_give_equal_bytes() -> None:
    images = np.random.default_rng(3).integers(0, 256, (2, 4, 16, 16, 3), dtype=np.uint8)
    assert png(contact_sheet(images, ["a", "b"], "t")) == png(contact_sheet(images.copy(), ["a", "b"], "t"))
    assert png(contact_sheet(images, ["a", "b"], "t")) != png(contact_sheet(images, ["a", "c"], "t"))


def test_captions_change_nothing_but_text() -> None:
    sheet = contact_sheet(solid(RED, 1, 4), ["[bold]{x}%s\\ \u202e犬"], "")
    assert count(sheet, RED) == 4 * 128 * 128


def test_numbers_that_disagree_are_refused() -> None:
    images = solid(RED, 2, 4)
    with pytest.raises(DataError, match="a contact sheet of 2 sets requires 2 entries in captions, not 1"):
        contact_sheet(images, ["a"])
    with pytest.raises(DataError, match="2 entries in canonical, not 1"):
        contact_sheet(images, ["a", "b"], canonical=images[0, :1])
    with pytest.raises(DataError, match=r"mask of a contact sheet must have the shape \(sets, size\), not \(2, 3\)"):
        contact_sheet(images, ["a", "b"], mask=np.ones((2, 3), bool))


def test_an_empty_sheet_is_a_sheet() -> None:
    assert contact_sheet(np.zeros((0, 4, 8, 8, 3), np.uint8), [], "nothing").width > 0
    assert contact_sheet(np.zeros((1, 0, 8, 8, 3), np.uint8), ["empty"]).width > 0
