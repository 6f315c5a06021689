from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from setsup.reports import text_layout
from setsup.reports.text_layout import draw_text, fit_text, font, legible, plain, text_width, typeset, wrap_text

STYLES = ((15, "#000000"), (13, "#666666"))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without any of the common fonts."""
    monkeypatch.setattr(text_layout, "_FONTS", ())
    text_layout._system_font.cache_clear()
    yield
    text_layout._system_font.cache_clear()


@pytest.fixture
def dejavu() -> None:
    try:
        ImageFont.truetype("DejaVuSans.ttf")
    except OSError:
        pytest.skip("DejaVu Sans is not installed here")


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("wall_hue = 0.3 turn", "wall_hue = 0.3 turn"),
        ("Anna Łęcka", "Anna Lecka"),
        ("2 × 32 ± 5°, …", "2 x 32 ± 5°, …"),
        ("cube → ball", "cube → ball"),
        ("−25 – 30", "−25 - 30"),
        ("tab\tand\x00zero", "tab and zero"),
        ("犬", "?"),
    ],
)
@pytest.mark.usefixtures("alone")
def test_spelling_with_the_letters_of_the_font(text: str, spelled: str) -> None:
    assert plain(text) == spelled


@pytest.mark.usefixtures("dejavu")
def test_letters_that_a_font_of_the_system_has_are_written() -> None:
    assert plain("Łęcka, Мария, José − \uffff") == "Łęcka, Мария, José −  "
    assert legible("Łęcka, Мария × José")
    assert not legible("犬\U0010ffff")
    sheets = []
    for name in ("Мария", "Мерия"):
        sheets.append(Image.new("L", (100, 30)))
        draw_text(ImageDraw.Draw(sheets[-1]), 4, 4, name, (15, "white"))
        left, _, right, _ = sheets[-1].getbbox() or (0, 0, 0, 0)
        assert abs(right - left - text_width(name, 15)) <= 3
    assert sheets[0].tobytes() != sheets[1].tobytes()


@pytest.mark.usefixtures("alone")
def test_what_is_spelled_otherwise_is_not_legible() -> None:
    assert legible("wall_hue = 0.3 turn, 2 × 32\u00a0±\u00a05°")
    assert not any(legible(name) for name in ("José", "Łucja", "犬", "a\u202eb"))


def test_letters_of_pillows_own_font_look_as_pillow_draws_them() -> None:
    text, pictures = "step 0, set 1 · held: wall_hue = 0.3 turn, jgy … 5°", []
    for _ in range(2):
        pictures.append(Image.new("L", (600, 40)))
    draw_text(ImageDraw.Draw(pictures[0]), 7, 9, text, (15, "white"))
    ImageDraw.Draw(pictures[1]).text((7, 9), text, fill="white", font=font(15))
    assert pictures[0].tobytes() == pictures[1].tobytes()


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("orientation = -30 deg, hue = -0.3", "orientation = −30°, hue = −0.3"),
        ("angle -25.7 to 3e-05\u00a0deg", "angle −25.7 to 3e−05°"),
        ("[-2, -.5] (-1) >-3 ±-4", "[−2, −.5] (−1) >−3 ±−4"),
        ("angle (deg), angle (degrees)", "angle (°), angle (°)"),
        # hyphens of names, dates, ranges and options are none
        (
            "a-3, 2020-01-02, 3-5, shapes3d-9, --seed 3, -n 5, -inf",
            "a-3, 2020-01-02, 3-5, shapes3d-9, --seed 3, -n 5, -inf",
        ),
        ("5 degas, 4 degraded, deg", "5 degas, 4 degraded, deg"),
    ],
)
def test_numbers_are_typeset(text: str, printed: str) -> None:
    assert typeset(text) == printed
    assert wrap_text(text, 2000, STYLES) == [(plain(printed).replace("\u00a0", " "), STYLES[0])]


@pytest.mark.parametrize("size", [13, 15, 22, 26, 44])
@pytest.mark.usefixtures("alone")
def test_a_minus_sign_is_the_bar_of_the_plus_sign(size: int) -> None:
    drawn = []
    for text in ("+", "−", "-"):
        drawn.append(Image.new("L", (60, 60)))
        draw_text(ImageDraw.Draw(drawn[-1]), 9, 4, text, (size, "white"))
    plus, minus, hyphen = (np.asarray(sheet) for sheet in drawn)
    boxes = [sheet.getbbox() or (0, 0, 0, 0) for sheet in drawn]
    assert boxes[1][::2] == boxes[0][::2], "as wide as the plus"
    assert boxes[1][3] - boxes[1][1] <= size // 7 + 2
    assert boxes[1][2] - boxes[1][0] > boxes[2][2] - boxes[2][0]
    assert (minus <= plus).all(), "and lies within it"
    assert minus.max() > 150
    assert hyphen.any()
    assert text_width("−1", size) == text_width("+1", size)


@pytest.mark.parametrize("size", [13, 15, 22, 26, 44])
@pytest.mark.usefixtures("alone")
def test_an_arrow_is_that_bar_with_a_head_at_its_end(size: int) -> None:
    drawn = []
    for text in ("−", "→"):
        drawn.append(Image.new("L", (99, 60)))
        draw_text(ImageDraw.Draw(drawn[-1]), 9, 4, text, (size, "white"))
    (_, top, _, bottom), (left, above, right, below) = (sheet.getbbox() or (0, 0, 0, 0) for sheet in drawn)
    middle = (above + below) / 2
    assert abs(middle - (top + bottom) / 2) <= 1
    assert right - left <= text_width("→", size)
    arrow = np.asarray(drawn[1])[above:below, left:right].astype(float)
    heights = (arrow > 60).sum(axis=0)
    assert heights[: len(heights) // 3].max() <= bottom - top + 1, "a bar at first"
    assert heights.max() > 2 * (bottom - top), "and a head"
    assert heights.argmax() > len(heights) / 2
    weights = arrow.sum(axis=1)
    assert weights @ np.arange(len(weights)) / weights.sum() == pytest.approx((len(weights) - 1) / 2, abs=0.4)


@given(st.text(max_size=200), st.integers(80, 600))
def test_no_line_is_wider_than_it_may_be(text: str, width: int) -> None:
    lines = wrap_text(text, width, STYLES)
    assert all(text_width(line, size) <= width for line, (size, _) in lines)


def test_words_stay_whole_and_in_order() -> None:
    text = "varies: floor_hue 10 of 10, object_hue 9 of 10, scale 7 of 8, shape 4 of 4"
    lines = wrap_text(text, 250, STYLES)
    assert len(lines) > 1
    assert " ".join(line for line, _ in lines) == text


def test_a_no_break_space_holds_words_together() -> None:
    lines = [line for line, _ in wrap_text("scale 7\u00a0of\u00a08, orientation\u00a011\u00a0of\u00a015", 170, STYLES)]
    assert lines == ["scale 7 of 8,", "orientation 11 of 15"]


def test_words_held_together_are_parted_where_a_line_has_no_room_for_them() -> None:
    lines = [line for line, _ in wrap_text("equal: subject\u00a0=\u00a0Daniel\u00a0of\u00a0Hohenstein", 150, STYLES)]
    assert lines[0] == "equal: subject = Daniel"
    assert " ".join(lines) == "equal: subject = Daniel of Hohenstein"


def test_no_line_ends_with_what_parts_two_things() -> None:
    assert [line for line, _ in wrap_text("pair 3 · subject\u00a0Anna\u00a0→\u00a0Ben", 130, STYLES)] == [
        "pair 3",
        "subject Anna → Ben",
    ]


def test_paragraphs_have_their_styles() -> None:
    assert wrap_text("held\nvaries\nmore", 300, STYLES) == [
        ("held", STYLES[0]),
        ("varies", STYLES[1]),
        ("more", STYLES[1]),
    ]


def test_too_much_text_ends_in_an_ellipsis() -> None:
    lines = wrap_text("word " * 200, 200, STYLES, most=2)
    assert len(lines) == 2
    assert lines[-1][0].endswith("…")
    assert fit_text("a very long word indeed", 60, STYLES)[0][0].endswith("…")


def test_a_single_long_word_is_cut() -> None:
    assert len(wrap_text("x" * 500, 200, STYLES)) == 1


def test_an_empty_text_has_no_lines() -> None:
    assert wrap_text("", 200, STYLES) == []
