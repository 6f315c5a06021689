"""Charts, read back from their pixels: places, heights, colours, and what is not drawn."""

import io
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("matplotlib")
from setsup.errors import DataError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.reports import bar_panels, bars, curves, image_scatter, scatter, scatter_panels
from setsup.reports.colors import DISTINCT, OTHERS, UNKNOWN, color_points, rgb

SHAPE = Factor("shape", Kind.NOMINAL, ("cube", "ball", "cone"))
SCALE = Factor("scale", Kind.ORDINAL, tuple(range(8)))
HUE = Factor("hue", Kind.CYCLIC, tuple(i / 10 for i in range(10)), unit="turn", period=1.0)
ANGLE = Factor("angle", Kind.CONTINUOUS, unit="deg", period=360.0)
DEPTH = Factor("depth", Kind.CONTINUOUS, unit="m")
SQUARE = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0]])
LABELS = {"x_label": "component 1", "y_label": "component 2"}

EVERY = {
    "nominal": lambda: scatter(SQUARE, [0, 1, 2, -1], SHAPE, title="title", **LABELS),
    "ordinal": lambda: scatter(SQUARE, [0, 1, 7, -1], SCALE, title="title"),
    "cyclic": lambda: scatter(SQUARE, [0, 1, 9, -1], HUE),
    "period": lambda: scatter(SQUARE, [0, 90, -90, np.nan], ANGLE),
    "continuous": lambda: scatter(SQUARE, [0.5, 1, 2, np.nan], DEPTH),
    "panels": lambda: scatter_panels(SQUARE, (SHAPE, SCALE), {"shape": [0, 1, 2, 0], "scale": [0, 1, 7, 3]}, **LABELS),
    "images": lambda: image_scatter(SQUARE, np.full((4, 28, 28, 1), 99, np.uint8), title="title", **LABELS),
    "bars": lambda: bars({"a": {"x": (1, 0.2), "y": (2, None)}, "b": {"x": (-1, 0.2)}}, unit="nats", ceilings={"x": 3}),
    "curves": lambda: curves({"a": ([1, 10], [2, 3])}, log_x=True, bands={"a": ([1, 2], [3, 4])}, references={"r": 1}),
}


def png(image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def where(image, color: str) -> np.ndarray:
    """Rows and columns (k, 2) of the pixels of a colour."""
    return np.argwhere((np.asarray(image) == np.round(rgb(color) * 255).astype(np.uint8)).all(-1))


def blended(color: str) -> str:
    """A colour at 0.85 on white, as points are drawn."""
    return "#" + bytes(np.round((rgb(color) * 0.85 + 0.15) * 255).astype(np.uint8)).hex()


def near(image, color: str, most: float = 4.0) -> np.ndarray:
    """Rows and columns of the pixels that are almost of a colour."""
    return np.argwhere((np.abs(np.asarray(image).astype(float) - rgb(color) * 255) < most).all(-1))


# -- what all have in common -------------------------------------------------------------------------------------------


@pytest.mark.long("charts")
@pytest.mark.parametrize("name", EVERY)
def test_equal_arguments_give_equal_pictures_whatever_the_users_style(name: str) -> None:
    import matplotlib
    import matplotlib.style

    before = dict(matplotlib.rcParams)
    plain = EVERY[name]()
    assert plain.mode == "RGB"
    assert dict(matplotlib.rcParams) == before
    with matplotlib.style.context(["dark_background", "ggplot", {"font.size": 30, "lines.linewidth": 9}]):
        assert png(EVERY[name]()) == png(plain)


@pytest.mark.long("charts")
def test_pyplot_is_never_imported_and_matplotlib_only_to_draw() -> None:
    script = (
        "import sys; from setsup.reports import scatter, scatter_panels, image_scatter, bars, curves;"
        "import numpy as np; from setsup.factors import Factor, Kind;"
        "assert 'matplotlib' not in sys.modules;"
        "scatter([[0, 0], [1, 1]], [0.5, 1]); image_scatter([[0, 0]], np.zeros((1, 9, 9, 1), np.uint8));"
        "bars({'a': {'x': (1, 0.1)}}); curves({'a': ([1, 2], [1, 2])}, log_x=True);"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", EVERY)
def test_a_chart_without_matplotlib_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SetsupError, match=r"charts need matplotlib, which is not installed: pip install '\.\[train\]'"):
        EVERY[name]()


@pytest.mark.long("charts")
@pytest.mark.parametrize("name", ["$x^{2}$", "$unclosed", "_hidden", "", "犬", "a\nb", "x" * 500, "\u202e%s\\"])
def test_any_text_is_a_title_a_label_and_a_name(name: str) -> None:
    assert scatter(SQUARE, [name, "b", "c", "d"], title=name, x_label=name).mode == "RGB"
    assert curves({name: ([1, 2], [3, 4]), "other": ([1, 2], [3, 5])}, title=name, y_label=name).mode == "RGB"
    assert bars({name: {name + "x": (1, 2)}, "other": {"x": (1, 2)}}, title=name, unit=name).mode == "RGB"


# -- points ------------------------------------------------------------------------------------------------------------


def test_points_have_the_colors_of_their_levels_at_their_places() -> None:
    image = scatter(SQUARE, [0, 1, 2, -1], SHAPE)
    plane = image.crop((0, 0, int(image.width * 0.88), image.height))
    places = [near(plane, color).mean(axis=0) for color in (*map(blended, DISTINCT[:3]), UNKNOWN)]
    # rows run down: the last two points are above the first two
    assert places[0][0] > places[2][0] + 100
    assert places[1][1] > places[0][1] + 100
    # both axes have one scale
    across, up = places[1][1] - places[0][1], places[0][0] - places[2][0]
    assert across == pytest.approx(up, abs=2)


@pytest.mark.long("charts")
def test_only_levels_that_are_there_are_explained() -> None:
    image = scatter(SQUARE, [0, 0, 2, 2], SHAPE)
    shown = [len(where(image, color)) for color in DISTINCT]
    assert shown[0] > 20
    assert shown[2] > 20
    assert not any(shown[1:2] + shown[3:])
    assert not len(near(image, UNKNOWN, 1))


@pytest.mark.long("charts")
def test_of_many_levels_the_most_frequent_have_colors() -> None:
    many = Factor("who", Kind.NOMINAL, tuple(f"n{i}" for i in range(50)))
    codes = np.concatenate([np.repeat(np.arange(30, 48), 6), np.arange(50)])
    turns = np.arange(len(codes)) * 0.1
    image = scatter(np.stack([turns * np.cos(turns), turns * np.sin(turns)], axis=1), codes, many)
    # 19 colours, of 18 frequent levels and the first of the others, and grey for 31 others
    assert [bool(len(where(image, color))) for color in DISTINCT] == [True] * 19 + [False]
    assert len(where(image, OTHERS)) > 20


def test_an_order_gets_lighter_along_it() -> None:
    points = np.stack([np.arange(8.0), np.arange(8.0)], axis=1)
    image = scatter(points, np.arange(8), SCALE)
    light = np.asarray(image.convert("L"))[
        : int(image.height * 0.93), int(image.width * 0.08) : int(image.width * 0.84)
    ]
    # from left to right, one dot after the other, the lightness of its middle
    columns = np.flatnonzero((light < 225).any(0))
    dots = np.split(columns, np.flatnonzero(np.diff(columns) > 1) + 1)
    greys = [int(np.median(light[:, dot[len(dot) // 2]][light[:, dot[len(dot) // 2]] < 225])) for dot in dots]
    assert len(greys) == 8
    assert greys == sorted(greys)


@pytest.mark.long("charts")
def test_a_period_closes() -> None:
    ends = [scatter(SQUARE, [0, angle, 90, 200], ANGLE) for angle in (10, 370, -350)]
    assert png(ends[0]) == png(ends[1]) == png(ends[2])
    assert png(ends[0]) != png(scatter(SQUARE, [0, 20, 90, 200], ANGLE))


def test_order_of_rows_hides_no_level() -> None:
    # two levels at the same 200 places, each as often on top as the other
    places = np.repeat(np.stack([np.arange(20.0), np.arange(20.0) % 7], axis=1), 10, axis=0)
    image = scatter(np.concatenate([places, places]), np.repeat([0, 1], 200), SHAPE)
    first, second = (len(near(image, blended(color), 20)) for color in DISTINCT[:2])
    assert 0.3 < first / (first + second) < 0.7


@pytest.mark.long("charts")
def test_values_without_a_factor_are_names_or_numbers() -> None:
    named = scatter(SQUARE, ["b", "a", "b", "c"])
    assert png(named) == png(scatter(SQUARE, np.array(["b", "a", "b", "c"])))
    assert len(where(named, DISTINCT[2]))
    assert len(where(scatter(SQUARE, [True, False, True, True]), DISTINCT[1]))
    assert not len(where(scatter(SQUARE, [1.0, 2.0, 3.0, 4.0]), DISTINCT[1]))


@pytest.mark.long("charts")
@settings(max_examples=8)
@given(st.integers(1, 40), st.floats(1e-6, 1e9), st.integers(0, 99))
def test_any_points_make_a_chart(rows: int, scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rows, 2)) * scale * (rng.random(2) < 0.7)
    assert scatter(points, rng.integers(-1, 8, rows), SCALE).size == (1148, 896)
    images = np.zeros((rows, 8, 8, 1), np.uint8)
    assert image_scatter(points, images).size == (1204, 1008)


@pytest.mark.long("charts")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 13])
def test_each_factor_has_its_panel(count: int) -> None:
    factors = [Factor(f"f{i}", Kind.NOMINAL, ("a", "b")) for i in range(count)]
    image = scatter_panels(SQUARE, factors, {factor.name: [0, 1, 0, -1] for factor in factors})
    pixels = np.asarray(image).astype(float)
    grey = (np.abs(pixels - rgb(UNKNOWN) * 255) < 4).all(-1)
    # one grey dot in the plane and one in the legend of each
    assert clusters(grey) == 2 * count


def clusters(found: np.ndarray) -> int:
    """Connected parts with a few pixels: no edge of a letter that happens to have the colour."""
    from scipy.ndimage import label

    parts, most = label(found)
    return sum((parts == part).sum() > 12 for part in range(1, most + 1))


@pytest.mark.parametrize(("unit", "title"), [("turn", "wall hue (turn)"), ("", "wall hue")])
def test_a_key_is_named_in_words(unit: str, title: str) -> None:
    factor = Factor("wall_hue", Kind.CYCLIC, (0.0, 0.5), unit=unit, period=1.0)
    assert color_points(np.array([0, 1]), factor).name == title


def test_panels_read_a_table() -> None:
    grid = FactorTable([SHAPE, SCALE])
    rows = np.arange(len(grid))
    points = np.stack([rows % 8, rows // 8], axis=1)
    image = scatter_panels(points, grid.factors, grid.all_codes(rows))
    assert [len(near(image, blended(color))) > 20 for color in DISTINCT[:4]] == [True, True, True, False]


# -- images ----------------------------------------------------------------------------------------------------------


def solid(count: int, side: int) -> np.ndarray:
    """An image of a colour of its own for each point."""
    color = np.stack([np.arange(count) // 16 * 2 + 1, np.arange(count) % 16 * 10, np.full(count, 180)], axis=1)
    return np.broadcast_to(color[:, None, None].astype(np.uint8), (count, side, side, 3))


@pytest.mark.long("charts")
@settings(max_examples=6)
@given(st.integers(2, 300), st.integers(0, 99), st.sampled_from([14, 28, 64]))
def test_pictures_are_whole_and_stand_at_their_points(count: int, seed: int, side: int) -> None:
    points = np.random.default_rng(seed).normal(size=(count, 2)) * [1, 50]
    images = solid(count, side)
    pixels = np.asarray(image_scatter(points, images)).astype(int)
    size = {14: 56, 28: 56, 64: 64}[side] if count <= 100 else {14: 28, 28: 28, 64: 56}[side]
    y, x = np.nonzero((pixels[..., 2] == 180) & (pixels[..., 0] % 2 == 1) & (pixels[..., 1] % 10 == 0))
    row = pixels[y, x, 0] // 2 * 16 + pixels[y, x, 1] // 10
    areas = np.bincount(row, minlength=count)
    assert set(areas.tolist()) <= {0, size * size}, "whole or not at all"
    shown = np.flatnonzero(areas).tolist()
    assert shown[0] == 0
    middles = np.stack([np.bincount(row, along)[shown] / areas[shown] for along in (x, y)], axis=1)
    chosen = points[shown]
    if len(shown) > 2:
        for axis, sign in ((0, 1), (1, -1)):
            slope, start = np.polyfit(chosen[:, axis], middles[:, axis], 1)
            assert sign * slope > 0
            assert np.abs(slope * chosen[:, axis] + start - middles[:, axis]).max() < 1.5
    # those that are left out would have covered one before them
    slopes = [np.polyfit(chosen[:, axis], middles[:, axis], 1) for axis in (0, 1)] if len(shown) > 2 else []
    for row in set(range(count)) - set(shown) if slopes else ():
        place = [slope * points[row, axis] + start for axis, (slope, start) in enumerate(slopes)]
        before = middles[[number for number, other in enumerate(shown) if other < row]]
        assert (np.abs(before - place).max(axis=1) < size + 3).any()


def test_pictures_may_differ_in_size() -> None:
    image = image_scatter(SQUARE, [np.full((8 * (i + 1), 16, 3), (9, 9, 200 + i), np.uint8) for i in range(4)])
    areas = [int((np.asarray(image) == np.uint8((9, 9, 200 + i))).all(-1).sum()) for i in range(4)]
    assert areas == [64 * 32, 64 * 64, 32 * 48, 32 * 64]


# -- bars --------------------------------------------------------------------------------------------------------------


def rises(image, color: str) -> list[tuple[int, int]]:
    """Top and bottom of each bar of a colour, from left to right, without what a legend shows of it."""
    pixels = (np.asarray(image) == np.round(rgb(color) * 255).astype(np.uint8)).all(-1)
    columns = np.flatnonzero(pixels.any(0))
    groups = np.split(columns, np.flatnonzero(np.diff(columns) > 1) + 1)
    found = []
    for group in groups:
        rows = np.flatnonzero(pixels[:, group[1]])
        if len(rows):
            found.append((int(rows[0]), int(rows[-1])))
    return found


def test_bars_are_as_high_as_their_means() -> None:
    image = bars({"a": {"x": (1.0, None), "y": (2.0, None), "z": (4.0, 0.5)}})
    heights = np.array([bottom - top + 1 for top, bottom in rises(image, DISTINCT[0])])
    np.testing.assert_allclose(heights / heights[2], [0.25, 0.5, 1.0], atol=0.01)


def test_bars_stand_in_the_order_of_labels_and_series() -> None:
    image = bars({"a": {"x": (1.0, 0.1), "z": (3.0, 0.1)}, "b": {"z": (2.0, 0.2), "w": (1.0, 0.2)}})
    left = [np.unique(where(image, color)[:, 1]) for color in DISTINCT[:2]]
    starts = [columns[np.flatnonzero(np.diff(columns, prepend=-9) > 1)] for columns in left]
    # x: a; z: a then b; w: b; and the legend, one below the other
    assert starts[0][0] < starts[0][1] < starts[1][0] < starts[1][1]
    assert starts[0][2] == starts[1][2]


def test_a_bar_below_0_hangs_and_error_bars_reach_their_ends() -> None:
    image = bars({"a": {"x": (2.0, None), "y": (-1.0, None)}})
    (top, middle), (below, bottom) = rises(image, DISTINCT[0])
    assert middle <= below + 2
    assert (bottom - below) / (middle - top) == pytest.approx(0.5, abs=0.02)
    # an error bar of 1 goes from 1 to 3
    image = bars({"a": {"x": (2.0, 1.0), "y": (-1.0, None)}})
    columns = where(image, DISTINCT[0])[:, 1]
    first = columns[columns < columns.mean()]
    unit = (rises(image, DISTINCT[0])[0][1] - rises(image, DISTINCT[0])[0][0]) / 2
    foot = rises(image, DISTINCT[0])[0][1]
    beside = np.asarray(image)[:, (first.min() + first.max()) // 2 - 1 : (first.min() + first.max()) // 2 + 3].max(
        axis=2
    )
    dark = np.flatnonzero(beside.min(axis=1)[: foot - 9] < 90)
    assert foot - dark.min() == pytest.approx(3 * unit, abs=3)
    assert foot - dark.max() == pytest.approx(unit, abs=3)
    assert len(dark) == pytest.approx(2 * unit, abs=5)


@pytest.mark.long("charts")
def test_ceilings_are_lines_across_their_groups() -> None:
    ceilings = {"x": 4.0, "y": 3.0}
    image = bars(
        {"a": {"x": (2.0, None), "y": (2.0, None)}, "b": {"x": (1.0, None), "y": (2.0, None)}}, ceilings=ceilings
    )
    (top, bottom), *_ = rises(image, DISTINCT[0])
    unit = (bottom - top + 1) / 2
    dark = np.asarray(image.convert("L")) < 80
    lines = [row for row in range(int(bottom)) if dark[row, : int(image.width * 0.8)].sum() > 60]
    highest, lowest = min(lines), max(lines)
    assert bottom - highest == pytest.approx(4 * unit, abs=3)
    assert bottom - lowest == pytest.approx(3 * unit, abs=3)


INK = "#1f2933"


def test_references_are_marks_at_their_heights_beside_the_error_bars() -> None:
    groups = {"a": {"x": (2.0, None), "y": (1.0, None)}, "b": {"x": (1.0, None), "y": (2.0, None)}}
    image = bars(groups, references={"the paper": {"a": {"x": (1.0, None)}}})
    (top, bottom), *_ = rises(image, DISTINCT[0])
    unit = (bottom - top + 1) / 2
    plain = np.asarray(bars(groups, references={"the paper": {"a": {"y": (1.0, None)}}})).astype(int)
    ink = (np.asarray(image) == np.round(rgb(INK) * 255)).all(-1) & (plain != np.round(rgb(INK) * 255)).any(-1)
    rows, columns = np.nonzero(ink[:, : int(image.width * 0.7)])
    assert bottom - rows.mean() == pytest.approx(unit, abs=1.5)
    blue = where(image, DISTINCT[0])[:, 1]
    first = blue[blue < columns.mean() + 60]
    assert first.min() < columns.min()
    assert columns.mean() > (first.min() + columns.max()) / 2
    spread = bars(groups, references={"the paper": {"a": {"x": (1.0, 0.5)}}})
    assert len(near(spread, INK, 40)) > len(near(image, INK, 40)) + unit / 2


def test_a_reference_that_all_series_share_is_a_line() -> None:
    groups = {"a": {"x": (2.0, None)}, "b": {"x": (1.0, None)}}
    shared = bars(groups, references={"chance": {"a": {"x": (0.5, None)}, "b": {"x": (0.5, None)}}})
    single = bars(groups, references={"chance": {"a": {"x": (0.5, None)}, "b": {"x": (0.6, None)}}})
    rows = [np.bincount(near(image, INK, 60)[:, 0], minlength=image.height).max() for image in (shared, single)]
    assert rows[0] > 3 * rows[1]


@pytest.mark.parametrize(
    ("references", "message"),
    [
        ({"paper": {"c": {"x": (1.0, None)}}}, "references of 'paper': unknown series 'c'"),
        ({"paper": {"a": {"z": (1.0, None)}}}, "references of 'paper': unknown label 'z'"),
        ({"paper": {"a": {"x": (np.nan, None)}}}, "bar 'x' of 'paper, a' must have a finite mean"),
    ],
)
def test_references_that_belong_to_nothing_are_refused(references, message: str) -> None:
    with pytest.raises(DataError, match=message):
        bars({"a": {"x": (1.0, None)}}, references=references)


LONG = "a name of many words that nobody would read but somebody has written"
WIDE = {
    "bars": lambda: bars(
        {f"{LONG} {i}": {f"{LONG} {k}": (1e-4 * k, 1e-4) for k in range(6)} for i in range(4)},
        unit="nats",
        references={LONG: {f"{LONG} 0": {f"{LONG} 1": (7e-4, 2e-4)}}},
        title=LONG * 3,
    ),
    "curves": lambda: curves({LONG: ([1, 1e6], [-1e6, 1e6])}, x_label=LONG, y_label=LONG[:30], title=LONG * 2),
    "panels": lambda: bar_panels({LONG: {LONG: {f"{LONG} {k}": 1.0 for k in range(6)}}}, title=LONG * 2),
}


@pytest.mark.parametrize("name", WIDE)
def test_no_label_is_clipped(name: str) -> None:
    pixels = np.asarray(WIDE[name]())
    for edge in (pixels[:4], pixels[-4:], pixels[:, :4], pixels[:, -4:]):
        assert (edge == 255).all(), "letters stay within the image"


def test_charts_and_sheets_have_one_font() -> None:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    from setsup.reports.charts import families, letters
    from setsup.reports.text_layout import font

    assert families()[0] == font(12).getname()[0]
    assert get_font(findfont(FontProperties(family=families()[0]))).family_name == families()[0]
    assert letters("angle (deg) from -30 to 1e-05") == "angle (°) from −30 to 1e−05"


# -- curves ------------------------------------------------------------------------------------------------------------


def marks(image, count: int) -> np.ndarray:
    """Middles (count, 2) as x and y upwards of the marks of so many curves of one point each."""
    plane = np.asarray(image)[:, : int(image.width * 0.93)]
    found = []
    for color in DISTINCT[:count]:
        places = np.argwhere((plane == np.round(rgb(color) * 255).astype(np.uint8)).all(-1))
        found.append([places[:, 1].mean(), -places[:, 0].mean()])
    return np.array(found)


def test_long_numbers_at_a_logarithmic_axis_do_not_run_together() -> None:
    scales = np.geomspace(1e-3, 1e2, 11)  # 0.001, 0.00316228, 0.01, …
    ink = np.asarray(curves({"a": (scales, scales)}, log_x=True).convert("L")) < 200
    rows = np.flatnonzero(ink.any(axis=1))
    numbers = ink[rows[-1] - 8 : rows[-1] + 1]  # nothing stands below them
    gaps = np.diff(np.flatnonzero(numbers.any(axis=0)))
    assert (gaps > 20).sum() == 5  # one number a decade, far from the next


@pytest.mark.parametrize("log_x", [False, True])
def test_points_of_curves_are_at_their_places(log_x: bool) -> None:
    x, y = np.array([4.0, 16.0, 64.0, 256.0]), np.array([1.0, 3.0, 2.0, 5.0])
    image = curves({f"{i}": ([x[i]], [y[i]]) for i in range(4)}, log_x=log_x)
    middles = marks(image, 4)
    for wanted, got in ((np.log(x) if log_x else x, middles[:, 0]), (y, middles[:, 1])):
        slope, start = np.polyfit(wanted, got, 1)
        assert slope > 0
        np.testing.assert_allclose(slope * wanted + start, got, atol=1.0)


@pytest.mark.long("charts")
def test_references_cross_the_plane_in_the_color_of_their_curve() -> None:
    series = {"a": ([1, 2], [1.0, 1.0]), "b": ([1, 2], [0.0, 0.0])}
    plain = curves(series)
    with_line = curves(series, references={"a": 2.0})
    assert len(where(with_line, DISTINCT[0])) > len(where(plain, DISTINCT[0])) + 200
    # one of its own is grey, and has its name in the legend
    assert curves({"a": series["a"]}, references={"most": 2.0}).tobytes() != curves({"a": series["a"]}).tobytes()


def test_a_band_is_pale_and_behind_its_curve() -> None:
    x = np.arange(30.0)
    image = curves({"a": (x, x)}, bands={"a": (x - 5, x + 5)})
    plain = curves({"a": (x, x)})
    pale = rgb(DISTINCT[0]) * 0.18 + 0.82
    assert (np.abs(np.asarray(image) / 255 - pale) < 0.02).all(-1).mean() > 0.1
    assert (np.abs(np.asarray(plain) / 255 - pale) < 0.02).all(-1).mean() < 0.001
    assert len(where(image, DISTINCT[0])) > 200


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [[], [[1, 2, 3]], [1, 2], [["a", "b"]], np.zeros((2, 2), complex)])
def test_what_is_no_plane_is_refused(points) -> None:
    with pytest.raises(
        DataError, match=r"points must be a non-empty numeric array of shape \(n, 2\), one row per point"
    ):
        scatter(points, [0])
    with pytest.raises(DataError, match="points must be"):
        image_scatter(points, [])
    with pytest.raises(DataError, match="points must be"):
        scatter_panels(points, [SHAPE], {"shape": [0]})


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_points_that_are_nowhere_are_refused(bad: float) -> None:
    with pytest.raises(DataError, match="points: row 1 of 2 is not finite; omit such rows"):
        scatter([[0, 0], [bad, 1]], [0, 1])


@pytest.mark.parametrize(
    ("values", "factor", "message"),
    [
        ([0, 1], SHAPE, r"values of 'shape' must be a numeric array of shape \(4,\), one value for each"),
        ([0, 1, 2, 3], SHAPE, "must be codes from 0 to 2, or -1 where unknown"),
        ([0, 1, 2, -2], SHAPE, "must be codes from 0 to 2"),
        ([0.0, 1.0, 2.0, 0.0], SHAPE, "must be codes from 0 to 2"),
        (["cube"] * 4, SHAPE, "must be codes of its levels, not strings; convert them with Factor.code"),
        ([0, 1, np.inf, 2], DEPTH, "values of 'depth': row 2 is infinite; use NaN"),
        ([None] * 4, None, "values must be a numeric array"),
    ],
)
def test_values_that_are_none_of_the_factor_are_refused(values, factor, message) -> None:
    with pytest.raises(DataError, match=message):
        scatter(SQUARE, values, factor)


def test_panels_without_values_are_refused() -> None:
    with pytest.raises(DataError, match="panels require values of scale and hue"):
        scatter_panels(SQUARE, [SHAPE, SCALE, HUE], {"shape": [0] * 4})
    with pytest.raises(DataError, match="at least one factor"):
        scatter_panels(SQUARE, [], {})


def test_images_that_are_none_are_refused() -> None:
    with pytest.raises(DataError, match="4 points require the same number of images, not 3"):
        image_scatter(SQUARE, np.zeros((3, 8, 8, 1), np.uint8))
    with pytest.raises(
        DataError, match=r"image 0 must be a uint8 array of shape \(height, width, 1, 3 or 4\), not float64 of"
    ):
        image_scatter(SQUARE, np.zeros((4, 8, 8, 1)))
    with pytest.raises(DataError, match=r"channels first"):
        image_scatter(SQUARE, np.zeros((4, 3, 8, 8), np.uint8))


@pytest.mark.parametrize("bar", [(np.nan, None), (1.0, -0.1), (1.0, np.inf), ("1", None), (None, None)])
def test_bars_that_are_none_are_refused(bar) -> None:
    with pytest.raises(DataError, match="bar 'x' of 'a' must have a finite mean and a spread of None or 0 or more"):
        bars({"a": {"x": bar}})


def test_bars_without_any_and_ceilings_of_none_are_refused() -> None:
    with pytest.raises(DataError, match="at least one bar"):
        bars({"a": {}})
    with pytest.raises(DataError, match=r"the ceiling 1\.0 of 'wall_heu' must be finite.*did you mean 'wall_hue'"):
        bars({"a": {"wall_hue": (1, None)}}, ceilings={"wall_heu": 1.0})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"series": {}}, "at least one curve"),
        ({"series": {"a": ([1, 2], [1])}}, "x and y of curve 'a' must have the same length, not 2 and 1"),
        ({"series": {"a": ([], [])}}, r"curve 'a' must be a non-empty numeric array of shape \(n,\)"),
        ({"series": {"a": ([1, 2], [1, np.nan])}}, "curve 'a' is not finite at point 1; omit such points"),
        ({"series": {"a": ([0, 1], [1, 2])}, "log_x": True}, "x=0, which a logarithmic axis cannot show"),
        (
            {"series": {"a": ([0, 1], [1, 2])}, "bands": {"b": ([0, 1], [1, 2])}},
            "band 'b' requires a curve of the same name",
        ),
        (
            {"series": {"a": ([0, 1], [1, 2])}, "bands": {"a": ([0], [1])}},
            "band of 'a' must have one low and one high value for each of the 2 points of its curve, not 1 and 1",
        ),
        ({"series": {"a": ([0, 1], [1, 2])}, "references": {"r": np.inf}}, "reference 'r' must be a finite number"),
    ],
)
def test_curves_that_are_none_are_refused(arguments, message) -> None:
    with pytest.raises(DataError, match=message):
        curves(**arguments)
