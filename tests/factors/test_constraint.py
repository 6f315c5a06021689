"""The grammar of constraints between two rows; what they mean for samplers is tested with these."""

import string

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setsup.errors import FactorError
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.constraint import Constraint, read_constraint
from setsup.factors.where import evaluate

TABLE = FactorTable(
    [
        Factor("id", Kind.NOMINAL, ("a", "b", "c")),
        Factor("camera", Kind.ORDINAL, (1, 2)),
        Factor("age (y)", Kind.ORDINAL, (10, 20, 30)),
        Factor("µ.x", Kind.NOMINAL, ("p", "q")),  # a micro sign, which Python reads as the Greek letter
        Factor("kind", Kind.NOMINAL, ("k", "l"), within="id"),
        Factor("yaw", Kind.CONTINUOUS, unit="deg"),
        Factor("ä", Kind.NOMINAL, ("1", "2")),
    ],
    {
        "id": [0, 0, 1, 2, -1, 1],
        "camera": [0, 1, -1, 1, 0, 1],
        "age (y)": [0, 1, 2, 2, 1, 0],
        "µ.x": [0, 1, 0, 1, 0, 1],
        "kind": [0, 0, 0, 1, 1, 1],
        "yaw": [1.0, np.nan, 3.0, 4.0, 5.0, 6.0],
        "ä": [0, 1, 0, 1, 0, 1],
    },
)


@pytest.mark.parametrize(
    ("text", "equal", "differ"),
    [
        ("id == anchor.id", ["id"], []),
        ("anchor.id == id", ["id"], []),
        ("id == anchor.id and camera != anchor.camera", ["id"], ["camera"]),
        ("not camera == anchor.camera and (id == anchor.id)", ["id"], ["camera"]),
        ("not (camera == anchor.camera or anchor.id == id)", [], ["camera", "id"]),
        ("not not id == anchor.id", ["id"], []),
        ("id == anchor . id == id", ["id"], []),
        ("id == anchor.id and id == anchor.id", ["id"], []),
        ("`age (y)` != anchor.`age (y)`", [], ["age (y)"]),
        ("(ä == anchor.ä and\n   anchor.`µ.x` != `µ.x`)", ["ä"], ["µ.x"]),
        ("id != anchor.id and camera != anchor.camera and ä != anchor.ä", [], ["id", "camera", "ä"]),
    ],
)
def test_what_is_compared(text, equal, differ):
    found = read_constraint(text, TABLE)
    assert (list(found.equal), list(found.differ)) == (equal, differ)
    assert found.rows is None
    assert found.anchors is None
    assert sorted(found.names) == sorted(equal + differ)


@pytest.mark.parametrize("plain", ["camera == 2", "yaw > 3", "id in ('a', 'b') or camera is None", "count(id) > 1"])
@pytest.mark.parametrize("negated", [False, True])
def test_terms_of_one_row_are_expressions(plain, negated):
    if negated:
        plain = f"not ({plain})"
    of_anchor = plain
    for name in ("camera", "yaw", "id"):
        of_anchor = of_anchor.replace(name, f"anchor.{name}")
    found = read_constraint(f"id == anchor.id and ({plain}) and ({of_anchor})", TABLE)
    assert found.equal == ("id",)
    assert np.array_equal(found.rows, evaluate(plain, TABLE))
    assert np.array_equal(found.anchors, evaluate(plain, TABLE))


def test_holds_row_by_row():
    found = read_constraint("id == anchor.id and camera != anchor.camera", TABLE)
    assert found.holds(TABLE, 0, np.arange(6)).tolist() == [False, True, False, False, False, False]
    assert found.holds(TABLE, [[0], [1]], [0, 1]).tolist() == [[False, True], [True, False]]
    # unknown satisfies neither
    for text in ("camera == anchor.camera", "camera != anchor.camera"):
        assert not read_constraint(text, TABLE).holds(TABLE, 2, np.arange(6)).any()
    # "l" of b and "l" of c are two kinds
    assert read_constraint("kind != anchor.kind", TABLE).holds(TABLE, 3, 5)
    assert Constraint("").holds(TABLE, 4, 4)


@pytest.mark.parametrize(
    ("text", "sentence", "caret"),
    [
        ("id == anchor.id or ä == anchor.ä", "can be combined only with 'and'", "id == anchor.id or ä == anchor.ä"),
        ("not (id == anchor.id and ä == anchor.ä)", "only with 'and'", "id == anchor.id and ä == anchor.ä"),
        ("not id != anchor.id != 'a'", "constraints do not support", "id != anchor.id != 'a'"),
        ("id == anchor.camera", "write anchor.id", "anchor.camera"),
        ("camera < anchor.camera", "only == and != can compare a factor with the anchor's", "camera < anchor.camera"),
        ("yaw == anchor.yaw", "'yaw' is continuous", "yaw"),
        ("id == anchor.idd", "did you mean 'id'", "anchor.idd"),
        ("anchor.idd == 'a'", "did you mean 'id'", "anchor.idd"),
        ("idd == anchor.id", "did you mean 'id'", "idd"),
        ("id == anchor", "expected a factor after 'anchor', as in anchor.id", "anchor"),
        ("id == anchor.id and anchor.id != id", "no row can satisfy both", "anchor.id != id"),
        ("id in (anchor.id,)", "expected a comparison of a factor", "id in (anchor.id,)"),
        ("camera % 2 == anchor.camera", "expected a comparison of a factor", "camera % 2 == anchor.camera"),
        ("id == other.id", "an attribute is not allowed", "other.id"),
        ("anchor.id.name == 'a'", "an attribute is not allowed", "anchor.id.name"),
        ("anchor.id", "alone is not a condition", "anchor.id"),
        ("anchor.camera > 'a'", "'camera' has numbers as levels", "'a'"),
        (
            "id != anchor.id and camera != anchor.camera and ä != anchor.ä and `µ.x` != anchor.`µ.x`",
            "at most 3 factors",
            "`µ.x` != anchor.`µ.x`",
        ),
    ],
)
def test_an_error_points_at_the_term(text, sentence, caret):
    with pytest.raises(FactorError, match=sentence) as refusal:
        read_constraint(text, TABLE)
    line, carets = str(refusal.value).splitlines()[-2:]
    start, count = carets.index("^"), carets.count("^")
    assert line[start : start + count] == caret


def test_no_text():
    for wrong in (None, 3, b"id == anchor.id", ["id"]):
        with pytest.raises(FactorError, match="positive must be a string"):
            read_constraint(wrong, TABLE, "positive")
    with pytest.raises(FactorError, match="invalid expression"):
        read_constraint("id = anchor.id", TABLE)
    with pytest.raises(FactorError, match="anchor is allowed only in constraints"):
        evaluate("id == anchor.id", TABLE)


def test_a_factor_called_anchor():
    table = FactorTable.from_values({"anchor": ["a", "b", "a"], "id": ["a", "b", "c"]})
    found = read_constraint("anchor == 'a' and anchor.anchor == anchor and id != anchor.id", table)
    assert (found.equal, found.differ, found.rows.tolist()) == (("anchor",), ("id",), [True, False, True])
    assert evaluate("anchor == id", table).tolist() == [True, True, False]


WORDS = (
    "anchor . anchor.id id camera `age\u00a0(y)` == != < and or not ( ) in , 'a' 1 yaw anchor.`µ.x` µ [ is None".split(
        " "
    )
)


@pytest.mark.long("fuzzing")
@given(st.text(string.printable, max_size=30) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
@example("not " * 20_000 + "id == anchor.id")
@example("id == anchor.id and " * 5000 + "id == anchor.id")
@example("(" * 300 + "id == anchor.id")
@example("anchor." * 3000 + "id == id")
@example("anchor.\\\nid == id")
@example("anchor\n.`id` == id")
def test_random_text_is_a_constraint_or_a_factor_error(text):
    try:
        found = str(read_constraint(text, TABLE))
    except FactorError as error:
        found = str(error)
    assert found
