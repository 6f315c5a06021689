"""Patterns of paths: what they match, what their fields take, and how wrong ones are refused."""

import re
import string

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setsup.datasets.own.path_factors import read_fields
from setsup.datasets.own.path_pattern import PathPattern, suggest_pattern
from setsup.errors import DataError, SetsupError


def fields(pattern: str, path: str) -> list[object] | None:
    """What the fields of a pattern take of a path; None where it does not match."""
    names = pa.array([path], pa.large_string())
    parsed = PathPattern.of(pattern)
    if not re.fullmatch(parsed.expression, path):
        with pytest.raises(DataError, match="none of the 1 images of x matches the pattern"):
            read_fields(parsed, names, "x")
        return None
    _, columns = read_fields(parsed, names, "x")
    return [column[0].as_py() for column in columns.values()]


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        # the rest of the path, and any number of folders
        ("{class}/...", "cats/1.jpg", ["cats"]),
        ("{class}/...", "cats/a/b/1.jpg", ["cats"]),
        ("{class}/**", "cats/a/1.jpg", ["cats"]),
        ("{class}/…", "cats/a/1.jpg", ["cats"]),
        ("{class}/...", "1.jpg", None),
        ("{domain}/{class}/...", "sketch/cat/1.jpg", ["sketch", "cat"]),
        ("./{class}/...", "cats/1.jpg", ["cats"]),
        (".../{class}/{}", "a/b/cats/1.jpg", ["cats"]),
        (".../{class}/{}", "cats/1.jpg", ["cats"]),
        (".../{class}/...", "a/b/1.jpg", ["a"]),
        ("train/.../{id}", "train/1.jpg", ["1"]),
        ("train/.../{id}", "training/1.jpg", None),
        # one name
        ("{class}/*", "cats/1.jpg", ["cats"]),
        ("{class}/*", "cats/a/1.jpg", None),
        ("{class}/*.png", "cats/1.jpg", None),
        ("cats_*/{id}", "cats_/1.jpg", ["1"]),
        ("{class}/{}_{view:d}", "cats/x_y_3.jpg", ["cats", 3]),
        # texts: as short as they can be, from the left
        ("{a}_{b}", "x_y_z.jpg", ["x", "y_z"]),
        ("{a}_{n:d}", "x_y_3.jpg", ["x_y", 3]),
        ("{a}_*", "x_y_z.jpg", ["x"]),
        # integers
        ("{n:d}", "007.jpg", [7]),
        ("{n:d}", "-07.jpg", [-7]),
        ("{n:d}", "+5.jpg", [5]),
        ("{n:d}", "0000000000000000000000000000012.jpg", [12]),
        ("{n:d}", "9223372036854775807.jpg", [2**63 - 1]),
        ("{n:d}", "1.5.jpg", None),
        ("{n:d}", "٣.jpg", None),
        ("img-{n:d}", "img-3.jpg", [3]),
        ("{a}{n:d}", "frame0012.jpg", ["frame", 12]),
        ("{a}{n:d}", "2010.jpg", None),
        ("{n:d}{side}", "12L.jpg", [12, "L"]),
        ("{n:d}{side}", "123.jpg", None),
        ("{y:d}-{m:d}-{d:d}", "2024-01-31.jpg", [2024, 1, 31]),
        # numbers
        ("{x:f}", "0.5.jpg", [0.5]),
        ("{x:f}", "-3.jpg", [-3.0]),
        ("{x:f}", "1e-3.jpg", [0.001]),
        ("{x:f}", ".25.jpg", [0.25]),
        ("{x:f}", "nan.jpg", None),
        ("{x:f}_{y:f}", "1.5_+2.jpg", [1.5, 2.0]),
        # endings
        ("{id}", "1.jpg", ["1"]),
        ("{id}", "a.b.JPG", ["a.b"]),
        ("{id}.*", "1.webp", ["1"]),
        ("{id}.jpg", "1.JPG", ["1"]),
        ("{id}.JPG", "1.jpg", ["1"]),
        ("{id}.jpg", "1.jpeg", None),
        ("{id}.{part}", "a.b.JPG", ["a", "b"]),
        ("{id}.{take:d}", "a.3.jpg", ["a", 3]),
        ("front", "front.jpg", "no field"),
        ("{a}/front", "x/front.png", ["x"]),
        ("{a}/Front", "x/front.png", None),
        # what is special elsewhere is itself here
        ("{{{a}}}", "{x}.jpg", ["x"]),
        ("({a})+[$]", "(x)+[$].jpg", ["x"]),
        ("{a}.v2", "x.v2.jpg", ["x"]),
        ("{a}.v2", "xqv2.jpg", None),
        ("{a} {b:d}", "IMG 1.jpg", ["IMG", 1]),
        ("{a}\u00e9", "x\u00e9.jpg", ["x"]),
        ("{größe:d}", "3.jpg", [3]),
    ],
)
def test_what_fields_take(pattern: str, path: str, found: list[object] | str | None) -> None:
    if found == "no field":
        with pytest.raises(DataError, match="has no named field"):
            PathPattern.of(pattern)
    else:
        assert fields(pattern, path) == found


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", r"a pattern must be a path with fields, such as '\{class\}/...', not ''"),
        ("  ", "a pattern must be a path with fields"),
        ("cats/...", "has no named field, so it defines no factor"),
        ("{}/...", "has no named field"),
        ("{class/...", r"a \{ has no matching closing brace; write \{\{ for a literal brace"),
        ("{class}}/...", r"a \} has no matching opening brace; write \}\} for"),
        ("{{class}/...", r"a \} has no matching opening brace"),
        ("{a{b}}", r"a \{ has no matching closing brace"),
        ("{a}/{a}", r"has two fields 'a'; rename the second, or leave it unnamed: \{\}"),
        ("{wall-hue}/...", r"'wall-hue' is not a valid name of a factor; .*: \{wall_hue\}"),
        ("{1}/...", "'1' is not a valid name of a factor; use letters"),
        ("{a b:d}", r": \{a_b:d\}"),
        ("{a!r}", "'a!r' is not a valid name"),
        ("{n:02d}", r"\{n:02d\} has the unknown type '02d'; expected :d \(an integer, with or without leading zeros\)"),
        ("{n:int}", "unknown type 'int'"),
        ("{n:}", "unknown type ''"),
        ("{a}{b}", r"is ambiguous, because no text separates \{a\} from \{b\}"),
        ("{a:d}{b:f}", r"is ambiguous, because no text separates \{a:d\} from \{b:f\}"),
        ("{a}*", r"is ambiguous, because no text separates \{a\} from \*"),
        ("/{a}", "begins with /; remove it, since the pattern is compared with paths relative to the folder"),
        ("{a}/", "ends with /; write ... after it"),
        ("{a}//{b}", "contains //"),
        ("../{a}", r"contains a folder \. or \.\."),
        ("{a}\\{b}", "contains a backslash; write / between folders"),
        ("{a}\n", "contains a line break"),
        ("x...{a}", "matches whole folders; write it between slashes"),
        ("{a}**", "matches whole folders; write it between slashes"),
    ],
)
def test_wrong_patterns_are_one_sentence(pattern: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        PathPattern.of(pattern)
    assert "\n" not in str(caught.value)


_TEXT = st.text(string.ascii_letters + "éß ()[]{}$^+,;=@#~", min_size=1, max_size=6)
_VALUES = {"": _TEXT, "d": st.integers(-(2**63), 2**63 - 1), "f": st.floats(-1e30, 1e30)}


@st.composite
def _paths(draw: st.DrawFn) -> tuple[str, str, list[object]]:
    """A pattern, a path that was made from it, and the values in it; no text contains what separates fields."""
    pattern, path, values = "", "", []
    for number in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["", "d", "f"]))
        value = draw(_VALUES[kind])
        known = [
            "/",
            "_",
            "__",
            "_x_",
            "/*_",
            *["/.../"] * ("..." not in pattern),
        ]  # two of the last are not told apart
        separator = draw(st.sampled_from(known)) if number else ""
        pattern += separator + f"{{f{number}{':' if kind else ''}{kind}}}"
        path += {"/*_": "/%_", "/.../": draw(st.sampled_from(["/", "/%/", "/%/%/"]))}.get(separator, separator)
        path += repr(value) if kind == "f" else str(value)
        values.append(value)
    ending = draw(st.sampled_from(["", ".*", ".png"]))
    return pattern + ending, path + draw(st.sampled_from([".png", ".PNG"])), values


@given(_paths())
@example(("{f0}.png", "{}.PNG", ["{}"]))
def test_fields_give_back_what_names_were_built_from(made: tuple[str, str, list[object]]) -> None:
    pattern, path, values = made
    assert fields(pattern, path) == values


def _parsed(text: str) -> tuple[PathPattern | None, str]:
    try:
        return PathPattern.of(text), ""
    except SetsupError as error:
        return None, str(error)


@given(st.text("{}:dfabc1*./…_- \\\n\0é", max_size=14))
def test_any_text_is_a_pattern_or_one_sentence(text: str) -> None:
    pattern, said = _parsed(text)
    assert (pattern is None) == bool(said)
    assert said.isprintable()
    if pattern is None:
        return
    for expression in filter(None, (pattern.expression, pattern.longest)):
        found = pc.extract_regex(pa.array(["a/b_1.png"], pa.large_string()), expression)  # RE2 takes it
        assert [field.name for field in found.type] == [f"f{number}" for number in range(len(pattern.types))]
        assert re.compile(expression).groups == len(pattern.types)


@given(st.lists(st.text("ab1_-. é{}[", min_size=1, max_size=8), min_size=1, max_size=4))
def test_a_suggested_pattern_matches_its_example(parts: list[str]) -> None:
    path = "/".join(part.replace(".", "x") for part in parts) + ".png"
    if re.search(r"[^_\-/]\.png$", path):  # at least one field is there
        assert fields(suggest_pattern(path), path) is not None


def test_long_patterns() -> None:
    longest = "_".join(f"{{{chr(letter)}:f}}" for letter in range(0x4E00, 0x4E00 + 166))
    values = [float(number) for number in range(166)]
    assert len(longest) <= 1000
    assert fields(longest, "_".join(map(str, values)) + ".png") == values
    with pytest.raises(DataError, match=r"a pattern must have at most 1,000 characters, but '\{f.{,80}… has 1,6\d\d"):
        PathPattern.of("_".join(f"{{f{number}:f}}" for number in range(200)))


@pytest.mark.parametrize(
    ("pattern", "unsure"),
    [
        ("{class}/...", False),
        ("{class}/{id}", False),
        ("{a}_{n:d}", False),
        ("{a}_*", False),
        (".../{a}/...", False),
        ("{a}_{b}", True),
        ("*_{a}", True),
        ("{a}_{b}/x", True),
        (".../{a}/.../{b}", True),
    ],
)
def test_which_patterns_could_be_read_in_two_ways(pattern: str, unsure: bool) -> None:
    assert (PathPattern.of(pattern).longest is not None) is unsure
