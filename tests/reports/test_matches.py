"""Images of matches: ends of lines lie on the pixels of the pairs, and occluded ones apart."""

import numpy as np
import pytest

from setsup.correspondence import PixelPairs
from setsup.errors import DataError
from setsup.reports import match_sheet, matches_drawn

SIDE = 40
TIMES, SPACE = 8, 8  # an image of 40 pixels is shown 8 times larger, 8 pixels beside the other


def pairs_of(*rows: tuple[float, float, float, float, int]) -> PixelPairs:
    table = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return PixelPairs(table[:, :2], table[:, 2:4], np.zeros((len(table), 3)), np.zeros(len(table), int), table[:, 4])


def changed(pairs: PixelPairs, occluded: bool = False) -> np.ndarray:
    view = np.full((SIDE, SIDE, 3), 90, np.uint8)
    drawn = np.asarray(matches_drawn(view, view, pairs, occluded=occluded)).astype(int)
    empty = np.asarray(matches_drawn(view, view, pairs_of())).astype(int)
    return np.abs(drawn - empty).sum(axis=2) > 60


def middle(x: float, y: float, second: bool = False) -> tuple[int, int]:
    """Pixel of the drawing at the centre of a pixel of a view."""
    return int((y + 0.5) * TIMES), int((x + 0.5) * TIMES + (SIDE * TIMES + SPACE) * second)


@pytest.mark.parametrize("occluded", [False, True])
def test_lines_end_at_the_two_pixels(occluded: bool) -> None:
    found = changed(pairs_of((3, 5, 30, 35, int(occluded))), occluded)
    rows, columns = np.nonzero(found)
    first, second = middle(3, 5), middle(30, 35, True)
    assert abs(rows.min() - first[0]) <= 5
    assert abs(rows.max() - second[0]) <= 5
    assert abs(columns.min() - first[1]) <= 5
    assert abs(columns.max() - second[1]) <= 5
    halfway = (first[0] + second[0]) // 2, (first[1] + second[1]) // 2
    assert found[halfway[0] - 2 : halfway[0] + 3, halfway[1] - 2 : halfway[1] + 3].any()


def test_neighbours_have_like_colors_and_opposite_sides_do_not() -> None:
    view = np.full((SIDE, SIDE, 3), 90, np.uint8)
    ends = [(35, 19), (35, 21), (4, 20)]
    drawn = np.asarray(matches_drawn(view, view, pairs_of(*((x, y, x, y, 0) for x, y in ends)))).astype(int)
    right, beside, left = (drawn[middle(x, y)] for x, y in ends)
    assert np.abs(right - beside).max() < 60
    assert np.abs(right - left).max() > 150


def test_a_sheet_parts_what_is_seen_from_what_is_occluded() -> None:
    view = np.full((SIDE, SIDE, 3), 90, np.uint8)
    seen, lost = pairs_of((20, 20, 20, 20, 0)), pairs_of((20, 20, 20, 20, 1))
    halves = []
    for pairs in (seen, lost):  # beside an occluded pair, for which there is a right half
        sheet = np.asarray(match_sheet([(view, view)] * 2, [pairs, lost], ["pair", "other"]))[90:]
        plain = (sheet == 90).all(axis=2)
        half = plain.shape[1] // 2
        halves.append((int(plain[:, :half].sum()), int(plain[:, half:].sum())))
    assert halves[0][0] < halves[1][0], "lines cover the grey of the left half"
    assert halves[1][1] < halves[0][1], "and of the right one, where the place is occluded"


def test_many_pairs_are_thinned_and_their_numbers_said() -> None:
    rng = np.random.default_rng(0)
    many = pairs_of(*((*rng.uniform(0, 39, 4), 0) for _ in range(500)))
    view = np.zeros((SIDE, SIDE, 4), np.uint8)
    few, all_of_them = (match_sheet([(view, view)], [many], ["pair"], shown=shown) for shown in (5, 500))
    white = [int((np.asarray(sheet) == 255).all(axis=2).sum()) for sheet in (few, all_of_them)]
    assert white[0] > white[1] + 100_000, "lines cover the paper of the transparent views"


@pytest.mark.parametrize("shade", [0, 30, 128, 225, 255])
def test_lines_stand_out_from_dark_and_light_views(shade: int) -> None:
    view = np.full((SIDE, SIDE, 3), shade, np.uint8)
    turns = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ends = 19.5 + 15 * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    for x, y in ends:
        drawn = np.asarray(matches_drawn(view, view, pairs_of((x, y, x, y, 0)))).astype(int)
        row, column = middle(x, y)
        across = drawn[row - 4 : row + 5, column + 60]
        assert np.abs(across - shade).max() > 70, "its colour or its outline"


def test_lines_are_smooth_and_many_are_finer() -> None:
    view = np.full((SIDE, SIDE, 3), 255, np.uint8)
    slanted = np.asarray(matches_drawn(view, view, pairs_of((4, 4, 36, 12, 0))))
    assert len(np.unique(slanted.reshape(-1, 3), axis=0)) > 25, "edges have all shades between"
    rows = pairs_of(*((4, 4 + 0.03 * number, 36, 4 + 0.03 * number, 0) for number in range(1000)))
    one = changed(pairs_of((4, 20, 36, 20, 0)))[:, 250]
    assert 2 <= one.sum() <= 5
    many = np.asarray(matches_drawn(view, view, rows))[40:300, 250].astype(int)
    assert many.max(axis=-1).mean() > 100, "the view is still seen through them"


@pytest.mark.parametrize(
    ("shape", "tile"), [((64, 64), None), ((192, 256), None), ((480, 640), None), ((480, 640), 200)]
)
def test_views_of_any_size_are_shown_at_one_size(shape: tuple[int, int], tile: int | None) -> None:
    view = np.full((*shape, 3), (1, 2, 3), np.uint8)
    drawn = matches_drawn(view, view, pairs_of(), tile=tile)
    side = tile or 320
    assert drawn.size == (2 * round(shape[1] / max(shape) * side) + 8, round(shape[0] / max(shape) * side))
    sheets = [
        match_sheet([(view, view)], [pairs_of((1, 2, 3, 4, 0))], ["a"], tile=tile, scale=scale) for scale in (1, 2)
    ]
    assert sheets[1].size == (2 * sheets[0].width, 2 * sheets[0].height)


def test_what_does_not_go_together_is_refused() -> None:
    view = np.zeros((8, 8, 3), np.uint8)
    with pytest.raises(DataError, match="pixel pairs and a caption for each"):
        match_sheet([(view, view)], [], [])


def test_views_of_two_heights_are_drawn_at_one() -> None:
    """The second view is enlarged twice; a line still ends at its pixel."""
    first, second = np.full((40, 60, 3), 250, np.uint8), np.full((20, 30, 3), 250, np.uint8)
    second[4, 6] = 0
    line = pairs_of((10, 30, 6, 4, 0))
    plain = np.asarray(matches_drawn(first, second, pairs_of(), tile=60, scale=4)).astype(int)
    assert plain.shape == (160, 2 * 240 + 32, 3)
    dark = np.argwhere((plain < 60).all(axis=-1)).mean(axis=0)
    drawn = np.asarray(matches_drawn(first, second, line, tile=60, scale=4)).astype(int)
    changed_at = np.argwhere(np.abs(drawn - plain).max(axis=-1) > 20)
    end = changed_at[changed_at[:, 1] > changed_at[:, 1].max() - 8].mean(axis=0)
    assert np.abs(end - dark).max() < 8


def test_unknown_ones_are_on_the_right_where_none_is_occluded():
    """As with tracks; where some are occluded, only these are."""
    view = np.full((40, 60, 3), 200, np.uint8)
    at = np.array([[10.0, 10.0], [30.0, 20.0], [50.0, 30.0]])

    def right(*statuses):
        pairs = PixelPairs(at, at, np.zeros((3, 3)), np.full(3, -1), statuses)
        sheet = np.asarray(match_sheet([(view, view)], [pairs], ["a"], tile=200)).astype(int)
        half = sheet[-200:-40, sheet.shape[1] // 2 :]
        return int((np.ptp(half, axis=2) > 60).sum())  # colored pixels

    visible, occluded, outside, unknown = 0, 1, 2, 4
    assert right(visible, unknown, unknown) > 200
    assert right(visible, unknown, occluded) == right(visible, outside, occluded) > 100


def test_rows_have_no_empty_half():
    view = np.full((SIDE, SIDE, 3), 90, np.uint8)
    seen, hidden = (match_sheet([(view, view)], [pairs_of((3, 5, 30, 35, status))], ["one pair"]) for status in (0, 1))
    assert seen.width < 0.6 * hidden.width
