import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import FactorError
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.io.infer import from_blocks

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "kind", "levels", "codes"),
    [
        (["cube", "ball", None, ""], "nominal", ("ball", "cube"), [1, 0, -1, -1]),
        ([True, None, False], "nominal", (False, True), [1, -1, 0]),
        ([True, True], "nominal", (False, True), [1, 1]),
        ([7, -2, None, 7], "ordinal", (-2, 7), [1, 0, -1, 1]),
        ([1.0, NAN, 3.0], "ordinal", (1, 3), [0, -1, 1]),  # whole numbers as pandas has them where some are missing
        ([1.0, 3.0], "continuous", None, [1.0, 3.0]),
        ([1, 2.5], "continuous", None, [1.0, 2.5]),
        ([0.5, None], "continuous", None, [0.5, NAN]),
        ([None, NAN], "continuous", None, [NAN, NAN]),
        (np.array([3, 1], np.uint16), "ordinal", (1, 3), [1, 0]),
        (np.array([0.1], np.float32), "continuous", None, [0.1]),
        (np.array(["b", "a"]), "nominal", ("a", "b"), [1, 0]),
        (np.array(["b", None, NAN], dtype=object), "nominal", ("b",), [0, -1, -1]),
        ([datetime.date(2026, 1, 31), datetime.date(2025, 1, 1)], "nominal", ("2025-01-01", "2026-01-31"), [1, 0]),
        ([decimal.Decimal("1.5")], "continuous", None, [1.5]),
        (np.array([2**63], np.uint64), "ordinal", (2**63,), [0]),
    ],
)
def test_kinds_and_levels_follow_from_values(values, kind, levels, codes):
    table = FactorTable.from_values({"x": values})
    assert table["x"] == Factor("x", Kind(kind), levels)
    assert [type(level) for level in levels or ()] == [type(level) for level in table["x"].levels or ()]
    np.testing.assert_array_equal(table.codes("x"), np.asarray(codes, dtype=table.codes("x").dtype))


@pytest.mark.parametrize(("last", "passes"), [("3.5", 2), ("007", 3)])
def test_blocks_are_read_once_more_where_numbers_turn_out_to_be_names(last, passes):
    made = []

    def blocks():
        made.append([pa.RecordBatch.from_pydict({"x": [value]}) for value in ("1.5", "2.5", last)])
        return made[-1]

    table = from_blocks(blocks, ["x"], written=True)
    assert len(made) == passes
    assert table.values("x").tolist() == ([1.5, 2.5, 3.5] if passes == 2 else ["1.5", "2.5", "007"])


def test_names_give_roles():
    table = FactorTable.from_values({name: ["a", "b"] for name in ("id", "path", "split", "part", "shape")})
    assert [factor.role for factor in table.factors] == ["key", "key", "split", "part", "variation"]


@given(
    st.lists(st.none() | st.text("abc", max_size=2), min_size=1, max_size=30)
    | st.lists(st.none() | st.booleans(), min_size=1, max_size=30)
    | st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30)
    | st.lists(st.none() | st.floats(width=32, allow_infinity=False), min_size=1, max_size=30)
)
def test_values_come_back(values):
    table = FactorTable.from_values({"x": values})
    found = [None if value is None or value != value else value for value in table.values("x").tolist()]
    assert found == [None if value is None or value != value or value == "" else value for value in values]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1, 2, "x", 4], r"mixes numbers and strings: row 0 has 1, row 2 has 'x' \(rows are counted from 0\)"),
        ([None, True, 2], "mixes booleans and numbers: row 1 has True, row 2 has 2"),
        (["a", object()], "mixes strings and objects of type object"),
        ([1, "x" * 3000], r"row 1 has 'x{79}… \(rows are counted"),
        ([b"a"], "has the type binary"),
        ([[1], [2]], "has the type list"),
        ([{"a": 1}], "has the type struct"),
        ([2**70], "cannot be read as a factor"),
        ([1.0, float("inf")], r"row 1 \(counting from 0\) of column 'x' has inf"),
        ([0.5, 1e300], "has 1e\\+300; expected finite numbers"),
        ("abc", "must be a sequence"),
        (np.zeros((2, 2)), "must be 1-D"),
        ([], "cannot be inferred without rows"),
        ([object()], "cannot be read as a factor"),
    ],
)
def test_what_is_no_factor_is_refused(values, sentence):
    with pytest.raises(FactorError, match=sentence) as caught:
        FactorTable.from_values({"x": values})
    assert "'x'" in str(caught.value) or not len(values)


def test_columns_must_fit_together():
    with pytest.raises(FactorError, match="same length"):
        FactorTable.from_values({"x": [1, 2], "y": [1]})
    with pytest.raises(FactorError, match="none of the columns"):
        FactorTable.from_values({})


def test_a_given_factor_decides():
    hue = Factor("hue", Kind.CYCLIC, (0.0, 0.1, 0.2), "turn", 1.0)
    table = FactorTable.from_values({"hue": [0.2, None, 0], "age": [3, 4, 5]}, [hue, Factor("age", Kind.CONTINUOUS)])
    assert table["hue"] == hue
    assert table.codes("hue").tolist() == [2, -1, 0]
    assert table.codes("age").tolist() == [3.0, 4.0, 5.0]
    assert FactorTable.from_values({"hue": np.array([0.1, 0.2], np.float32)}, [hue]).codes("hue").tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "levels", "sentence"),
    [
        (
            ["cube", "cubr"],
            ("cube", "ball"),
            r"row 1 \(counting from 0\) of column 'x' has 'cubr', .* did you mean 'cube'",
        ),
        ([1, 4], (1, 2, 3), "row 1 .* has 4, which is not a level"),
        ([1], ("1", "2"), "row 0 .* has 1, which is not a level"),
        (["1"], (1, 2), "row 0 .* has '1', which is not a level"),
        (["a", "b"], None, "row 0 .* has 'a', which is not a number"),
    ],
)
def test_a_value_that_is_no_level_is_refused(values, levels, sentence):
    with pytest.raises(FactorError, match=sentence):
        FactorTable.from_values({"x": values}, [Factor("x", Kind.NOMINAL if levels else Kind.CONTINUOUS, levels)])


def test_an_empty_text_may_be_a_level():
    table = FactorTable.from_values({"x": ["", "a", None]}, [Factor("x", Kind.NOMINAL, ("a", ""))])
    assert table.codes("x").tolist() == [1, 0, -1]


def test_a_given_kind_leaves_the_levels_open():
    table = FactorTable.from_values(
        {"x": [0.5, 0.25, None, 0.5], "y": [1, 2, 3, 4]}, kinds={"x": "cyclic", "y": Kind.CONTINUOUS}
    )
    assert table["x"] == Factor("x", Kind.CYCLIC, (0.25, 0.5))
    assert table.codes("x").tolist() == [1, 0, -1, 1]
    assert table["y"].continuous


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"kinds": {"x": "nomnal"}}, "unknown kind 'nomnal'; did you mean 'nominal'"),
        ({"kinds": {"z": "nominal"}}, "'z' has no column"),
        ({"factors": [Factor("xx", Kind.NOMINAL, ("a",))]}, "'xx' has no column .* did you mean 'x'"),
        (
            {"kinds": {"x": "nominal"}, "factors": [Factor("x", Kind.NOMINAL, ("a",))]},
            "are already specified by factors",
        ),
        ({"kinds": {"x": "continuous"}}, "cannot be continuous: row 0 .* has 'a'"),
        ({"kinds": {"y": "ordinal"}}, "no known value"),
    ],
)
def test_wrong_kinds_and_factors_are_refused(arguments, sentence):
    with pytest.raises(FactorError, match=sentence):
        FactorTable.from_values({"x": ["a"], "y": [None]}, **arguments)


def test_an_empty_table_needs_its_factors():
    assert len(FactorTable.from_values({"x": []}, [Factor("x", Kind.NOMINAL, ("a",))])) == 0


def test_the_order_of_texts_is_given_or_said_to_be_that_of_the_alphabet(caplog):
    lights = ["high", "low", "mid"]
    table = FactorTable.from_values({"light": lights}, kinds={"light": "ordinal"})
    assert table["light"].levels == ("high", "low", "mid")
    (warning,) = caplog.messages
    assert "in alphabetical order, high,low,mid; pass their own order" in warning
    caplog.clear()
    table = FactorTable.from_values(
        {"light": lights, "n": [1, 2, 3]}, kinds={"light": "ordinal:low,mid,high", "n": "cyclic:3,1,2"}
    )
    assert table["light"] == Factor("light", Kind.ORDINAL, ("low", "mid", "high"))
    assert table.rows("light >= 'mid'").tolist() == [0, 2]
    assert table["n"].levels == (3, 1, 2)
    assert FactorTable.from_values({"light": lights})["light"].kind is Kind.NOMINAL
    assert not caplog.messages
    with pytest.raises(FactorError, match="has 'high', which is not a level"):
        FactorTable.from_values({"light": lights}, kinds={"light": "ordinal:low,mid"})


def test_arrays_as_levels_and_tensors_as_columns():
    torch = pytest.importorskip("torch")
    for levels in (np.array([1, 2, 3]), torch.tensor([1, 2, 3]), [np.int64(1), np.int32(2), 3]):
        factor = Factor("x", Kind.ORDINAL, levels)
        assert factor == Factor("x", Kind.ORDINAL, (1, 2, 3))
        assert {type(level) for level in factor.levels} == {int}
    assert Factor("x", Kind.NOMINAL, np.array(["b", "a"])).levels == ("b", "a")
    tensor = torch.tensor([3, 1, 3], requires_grad=False)
    assert FactorTable.from_values({"x": tensor})["x"] == Factor("x", Kind.ORDINAL, (1, 3))
    table = FactorTable.from_values({"x": torch.tensor([0.5, 1.5], requires_grad=True)})
    assert table.values("x").tolist() == [0.5, 1.5]
    table = FactorTable([Factor("x", Kind.ORDINAL, (1, 2, 3))], {"x": tensor - 1})
    assert table.values("x").tolist() == [3, 1, 3]
    with pytest.raises(FactorError, match="all strings, all numbers or all booleans"):
        Factor("x", Kind.ORDINAL, (True, 2))
