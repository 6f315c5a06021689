import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import FactorError
from setsup.factors import Factor, FactorTable, Kind, concat

SHAPE = Factor("shape", Kind.NOMINAL, ("cube", "ball"))


def plain(table):
    """Rows as dictionaries, None where unknown."""
    columns = [[None if v is None or v != v else v for v in table.values(name).tolist()] for name in table.names]
    return [dict(zip(table.names, row, strict=True)) for row in zip(*columns, strict=True)]


# -- concat ------------------------------------------------------------------------------------------------------------


def test_factors_and_levels_are_united_in_order_of_appearance():
    one = FactorTable([SHAPE, Factor("size", Kind.ORDINAL, (3, 1))], {"shape": [1, -1], "size": [0, 1]})
    two = FactorTable(
        [Factor("size", Kind.ORDINAL, (2, 3)), Factor("x", Kind.CONTINUOUS)], {"size": [0, 1], "x": [0.5, np.nan]}
    )
    three = FactorTable([Factor("shape", Kind.NOMINAL, ("cone", "ball"))])
    both = concat([one, two, three], parts=["real", "toy", "grid"])
    assert both.names == ("shape", "size", "x", "part")
    assert both["shape"].levels == ("cube", "ball", "cone")
    assert both["size"].levels == (1, 2, 3)  # numbers with an order are sorted
    assert both["part"] == Factor("part", Kind.NOMINAL, ("real", "toy", "grid"), role="part")
    assert plain(both) == [
        {"shape": "ball", "size": 3, "x": None, "part": "real"},
        {"shape": None, "size": 1, "x": None, "part": "real"},
        {"shape": None, "size": 2, "x": 0.5, "part": "toy"},
        {"shape": None, "size": 3, "x": None, "part": "toy"},
        {"shape": "cone", "size": None, "x": None, "part": "grid"},
        {"shape": "ball", "size": None, "x": None, "part": "grid"},
    ]


def test_levels_that_outgrow_the_codes_of_each_table():
    one = FactorTable([Factor("id", Kind.ORDINAL, tuple(range(200)))], {"id": [199, -1]})
    two = FactorTable([Factor("id", Kind.ORDINAL, tuple(range(200, 400)))], {"id": [-1, 199]})
    assert concat([one, two]).values("id").tolist() == [199, None, None, 399]


def test_parts_are_letters():
    table = FactorTable([SHAPE])
    assert concat([table, table])["part"].levels == ("a", "b")
    assert concat([table] * 28)["part"].levels[-3:] == ("z", "aa", "ab")
    assert concat([table]).counts("part").tolist() == [2]


@pytest.mark.long("large or genuine files")
@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=5), min_size=1, max_size=4))
def test_rows_stand_one_table_after_another(columns):
    columns = [[*column, "z"] for column in columns]
    both = concat([FactorTable.from_values({"x": column}) for column in columns])
    assert both.values("x").tolist() == [value for column in columns for value in column]
    assert both.counts("part").tolist() == [len(column) for column in columns]


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (Factor("shape", Kind.ORDINAL, ("cube",)), "the kind 'nominal' in one table and 'ordinal' in another"),
        (Factor("shape", Kind.NOMINAL, ("cube",), unit="m"), "the unit '' in one table and 'm'"),
        (Factor("shape", Kind.NOMINAL, ("cube",), period=1.0), "the period 'None' .* '1.0'"),
        (Factor("shape", Kind.NOMINAL, ("cube",), role="key"), "the role"),
        (Factor("shape", Kind.NOMINAL, (1, 2)), "levels must be all strings, all numbers or all booleans"),
        (Factor("part", Kind.NOMINAL, ("x",)), "table 1 already has a factor 'part'"),
    ],
)
def test_tables_that_disagree_are_refused(other, sentence):
    with pytest.raises(FactorError, match=sentence):
        concat([FactorTable([SHAPE]), FactorTable([other])])


def test_texts_in_an_order_must_be_in_the_same_everywhere():
    low = FactorTable([Factor("x", Kind.ORDINAL, ("low", "high"))])
    assert concat([low, FactorTable([Factor("x", Kind.ORDINAL, ("high", "top"))])])["x"].levels == (
        "low",
        "high",
        "top",
    )
    with pytest.raises(FactorError, match=r"'low' before 'high' in one table, but after|'high' before 'low'"):
        concat([low, FactorTable([Factor("x", Kind.ORDINAL, ("high", "low"))])])


@pytest.mark.parametrize("parts", [["x"], ["x", "x"], ["x", 1]])
def test_parts_need_names_of_their_own(parts):
    with pytest.raises(FactorError, match=r"different names|must be a list of strings"):
        concat([FactorTable([SHAPE])] * 2, parts)


def test_nothing_is_not_concatenated():
    with pytest.raises(FactorError, match="at least one table"):
        concat([])


# -- join --------------------------------------------------------------------------------------------------------------


def test_rows_are_matched_by_value():
    photos = FactorTable.from_values({"subject": ["ann", "bob", None, "eve", "ann"], "light": [1, 2, 3, 1, 2]})
    people = FactorTable.from_values(
        {"subject": ["zoe", "bob", "ann"], "age": [9, 41, None], "height": [1.5, 1.75, 1.25]}
    )
    joined = photos.join(people, "subject")
    assert joined.names == ("subject", "light", "age", "height")
    assert joined.values("age").tolist() == [None, 41, None, None, None]
    assert [row["height"] for row in plain(joined)] == [1.25, 1.75, None, None, 1.25]
    assert joined.factors[:2] == photos.factors


def test_a_grid_is_joined():
    joined = FactorTable([SHAPE, Factor("size", Kind.ORDINAL, (1, 2))]).join(
        FactorTable.from_values({"shape": ["ball", "cube"], "mass": [5, 6]}), on="shape"
    )
    assert joined.values("mass").tolist() == [6, 6, 5, 5]


@pytest.mark.parametrize(
    ("other", "on", "sentence"),
    [
        ({"s": ["a", "a"], "x": [1, 2]}, "s", "2 rows with s = 'a'"),
        ({"s": ["a", None], "x": [1, 2]}, "s", "row 1 of the table to join has no known value of 's'"),
        ({"s": [1, 2], "x": [1, 2]}, "s", "strings in one table and numbers"),
        ({"s": [0.5, 2], "x": [1, 2]}, "s", "is continuous"),
        ({"s": ["a", "b"], "y": [1, 2]}, "s", "both tables have the factors 'y'"),
        ({"t": ["a", "b"]}, "s", "unknown factor 's'"),
    ],
)
def test_what_cannot_be_matched_is_refused(other, on, sentence):
    with pytest.raises(FactorError, match=sentence):
        FactorTable.from_values({"s": ["a", "b"], "y": [1, 2]}).join(FactorTable.from_values(other), on)


# -- bins --------------------------------------------------------------------------------------------------------------


def continuous(values, **more):
    return FactorTable([Factor("x", Kind.CONTINUOUS, **more)], {"x": np.array(values, dtype=np.float32)})


def test_bins_start_at_multiples_of_the_width():
    table = continuous([0.05, 0.31, np.nan, -0.15, 0.3], unit="m").binned("x", 0.1)
    assert table["x_bin"] == Factor("x_bin", Kind.ORDINAL, (-0.2, -0.1, 0.0, 0.1, 0.2, 0.3), unit="m")
    assert table.values("x_bin").tolist() == [0.0, 0.3, None, -0.2, 0.3]


def test_whole_edges_are_whole_numbers():
    assert continuous([0, 45]).binned("x", 30).factors[1].levels == (0, 30)
    assert [type(level) for level in continuous([0, 45]).binned("x", 30.0)["x_bin"].levels] == [int, int]


@given(st.integers(-500, 500), st.sampled_from([0.1, 0.2, 0.3, 0.05, 1.1, 2.5, 1 / 3]))
def test_an_edge_belongs_to_the_bin_that_it_starts(place, width):
    """Though it is rounded to float32."""
    edge = float(str(round(place * width, 10)))
    level = continuous([edge]).binned("x", width).values("x_bin")[0]
    assert level == pytest.approx(edge, abs=1e-9)


@pytest.mark.long("large or genuine files")
@given(st.lists(st.floats(-1000, 1000, width=32), min_size=1, max_size=20), st.sampled_from([0.25, 0.5, 1.0, 8.0]))
def test_every_number_is_in_its_bin(values, width):
    """Widths that are powers of two leave no rounding."""
    table = continuous(values).binned("x", width)
    for value, lower in zip(values, table.values("x_bin"), strict=True):
        assert lower <= value < lower + width
    levels = table["x_bin"].levels
    assert np.diff(levels).tolist() == [width] * (len(levels) - 1)
    assert levels[0] <= min(values)
    assert levels[-1] <= max(values)


@given(st.lists(st.floats(-1000, 1000, width=32), min_size=1, max_size=20))
def test_a_period_wraps_numbers(values):
    table = continuous(values, period=360.0).binned("x", 45)
    assert table["x_bin"] == Factor("x_bin", Kind.CYCLIC, tuple(range(0, 360, 45)), period=360.0)
    for value, lower in zip(values, table.values("x_bin"), strict=True):
        assert lower == min(value % 360 // 45 * 45, 315) or value % 360 > 359.99998  # float32 next to a whole turn


def test_bins_that_fill_a_period_in_decimals():
    assert continuous([0.35], period=1.0).binned("x", 0.1)["x_bin"].levels == tuple(
        round(k * 0.1, 1) for k in range(10)
    )
    assert len(continuous([0.35], period=1.0).binned("x", 1 / 3)["x_bin"]) == 3


def test_numeric_levels_are_binned():
    table = FactorTable(
        [Factor("age", Kind.ORDINAL, (3, 17, 25, 29)), Factor("d", Kind.CYCLIC, (0.0, 0.3, 0.6), period=0.9)]
    )
    assert table.binned("age", 10).values("age_bin")[::3].tolist() == [0, 10, 20, 20]
    assert table.binned("d", 0.3).values("d_bin")[:3].tolist() == [0.0, 0.3, 0.6]


@pytest.mark.parametrize(
    ("table", "width", "sentence"),
    [
        (
            continuous([1], period=360.0),
            50,
            "do not divide the period 360.0 .* evenly; choose a divisor of the period, such as 51.42",
        ),
        (continuous([1], period=360.0), 1000, "do not divide the period"),
        (continuous([1]), 0, "must be a finite number above 0, not 0"),
        (continuous([1]), -1, "must be a finite number above 0"),
        (continuous([1]), "wide", "must be a finite number above 0, not 'wide'"),
        (continuous([1]), np.nan, "must be a finite number above 0"),
        (continuous([0, 1]), 1e-9, "too many .*; choose a larger width"),
        (continuous([1], period=1.0), 1e-300, "do not divide"),
        (continuous([1]), 5e-324, "too many"),
        (continuous([np.nan]), 1, "no known value"),
        (
            FactorTable([Factor("x", Kind.NOMINAL, (1, 2))]),
            1,
            "cannot be binned, because its values are not ordered numbers",
        ),
        (
            FactorTable([Factor("x", Kind.ORDINAL, ("a", "b"))]),
            1,
            "cannot be binned, because its values are not ordered numbers",
        ),
        (FactorTable([Factor("y", Kind.ORDINAL, (1, 2))]), 1, "unknown factor 'x'"),
        (continuous([1]).with_factor(Factor("x_bin", Kind.NOMINAL, ("a",)), [0]), 1, "already has a factor 'x_bin'"),
    ],
)
def test_what_cannot_be_binned_is_refused(table, width, sentence):
    with pytest.raises(FactorError, match=sentence):
        table.binned("x", width)


def test_truth_values_and_numbers_never_match():
    truths = FactorTable.from_values({"key": [True, False]})
    numbers = FactorTable([Factor("key", Kind.NOMINAL, (0, 1))]).with_factor(Factor("x", Kind.ORDINAL, (5,)), [0, 0])
    with pytest.raises(FactorError, match="has booleans in one table and numbers in the other"):
        truths.join(numbers, "key")
    with pytest.raises(FactorError, match="levels must be all strings, all numbers or all booleans"):
        concat([truths, numbers])


@pytest.mark.parametrize("wrong", [None, 3, "key", [1]])
def test_only_a_table_is_joined(wrong):
    with pytest.raises(FactorError, match="must be a FactorTable"):
        FactorTable.from_values({"key": [True, False]}).join(wrong, "key")


def test_nothing_is_nested_in_a_continuous_factor():
    inner = Factor("z", Kind.NOMINAL, ("a",), within="y")
    with pytest.raises(FactorError, match="cannot be nested within 'y', which is continuous"):
        FactorTable([Factor("y", Kind.CONTINUOUS), inner], {"y": [1.0, 2.0], "z": [0, 0]})
