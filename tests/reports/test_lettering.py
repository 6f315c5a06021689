import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.reports.lettering import fitted, plain, text_width, wrapped

STYLES = ((15, "#000000"), (13, "#666666"))


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("wall_hue = 0.3 turn", "wall_hue = 0.3 turn"),
        ("Anna Łęcka", "Anna Lecka"),
        ("2 × 32 ± 5°, …", "2 x 32 ± 5°, …"),
        ("−25 – 30", "-25 - 30"),
        ("tab\tand\x00zero", "tab and zero"),
        ("犬", "?"),
    ],
)
def test_spelling_with_the_letters_of_the_font(text: str, spelled: str) -> None:
    assert plain(text) == spelled


@given(st.text(max_size=200), st.integers(80, 600))
def test_no_line_is_wider_than_it_may_be(text: str, width: int) -> None:
    lines = wrapped(text, width, STYLES)
    assert all(text_width(line, size) <= width for line, (size, _) in lines)


def test_words_stay_whole_and_in_order() -> None:
    text = "varies: floor_hue 10 of 10, object_hue 9 of 10, scale 7 of 8, shape 4 of 4"
    lines = wrapped(text, 250, STYLES)
    assert len(lines) > 1
    assert " ".join(line for line, _ in lines) == text


def test_a_no_break_space_holds_words_together() -> None:
    lines = [line for line, _ in wrapped("scale 7\u00a0of\u00a08, orientation\u00a011\u00a0of\u00a015", 170, STYLES)]
    assert lines == ["scale 7 of 8,", "orientation 11 of 15"]


def test_paragraphs_have_their_styles() -> None:
    assert wrapped("held\nvaries\nmore", 300, STYLES) == [
        ("held", STYLES[0]),
        ("varies", STYLES[1]),
        ("more", STYLES[1]),
    ]


def test_too_much_text_ends_in_an_ellipsis() -> None:
    lines = wrapped("word " * 200, 200, STYLES, most=2)
    assert len(lines) == 2
    assert lines[-1][0].endswith("…")
    assert fitted("a very long word indeed", 60, STYLES)[0][0].endswith("…")


def test_a_single_long_word_is_cut() -> None:
    assert len(wrapped("x" * 500, 200, STYLES)) == 1


def test_an_empty_text_has_no_lines() -> None:
    assert wrapped("", 200, STYLES) == []
