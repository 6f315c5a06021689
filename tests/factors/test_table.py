import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setsup
from setsup.errors import FactorError, RowError
from setsup.factors import Factor, FactorTable, Kind, split
from setsup.samplers import from_dict

HUE = Factor("hue", Kind.NOMINAL, ("red", "blue"))
SIZE = Factor("size", Kind.ORDINAL, (1, 2, 3))
ANGLE = Factor("angle", Kind.CONTINUOUS, unit="deg", period=360.0)


def columns():
    return FactorTable([HUE, SIZE, ANGLE], {"hue": [0, -1, 1], "size": [2, 0, -1], "angle": [0.5, np.nan, 90.0]})


def test_a_grid_is_the_product_of_its_levels_with_the_last_factor_fastest():
    grid = FactorTable([HUE, SIZE])
    rows = [dict(zip(("hue", "size"), levels, strict=True)) for levels in itertools.product(HUE.levels, SIZE.levels)]
    assert [grid.row(row) for row in range(len(grid))] == rows


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_a_grid_and_the_same_rows_as_columns_agree(sizes):
    factors = [Factor(f"f{place}", Kind.ORDINAL, tuple(range(size))) for place, size in enumerate(sizes)]
    grid = FactorTable(factors)
    codes = np.indices(sizes).reshape(len(sizes), -1)
    table = FactorTable(factors, {factor.name: column for factor, column in zip(factors, codes, strict=True)})
    assert len(grid) == len(table) == np.prod(sizes)
    for factor in factors:
        np.testing.assert_array_equal(grid.column(factor.name), table.column(factor.name))
        np.testing.assert_array_equal(grid.codes(factor.name, [[0], [len(grid) - 1]]), [[0], [len(factor) - 1]])
    assert grid.fingerprint == table.fingerprint
    np.testing.assert_array_equal(grid.joint_counts(grid.names), table.joint_counts(table.names))


def test_unknown_values_come_as_minus_one_nan_and_none():
    table = columns()
    np.testing.assert_array_equal(table.codes("hue"), [0, -1, 1])
    np.testing.assert_array_equal(table.codes("hue", 1), -1)
    assert table.column("hue").tolist() == [0, 255, 1]
    assert table.values("size").tolist() == [3, 1, None]
    assert table.row(1) == {"hue": None, "size": 1, "angle": None}
    assert table.row(2) == {"hue": "blue", "size": None, "angle": 90.0}


def test_rows_of_any_shape():
    assert columns().codes("hue", [[0, 2], [1, 0]]).tolist() == [[0, 1], [-1, 0]]
    assert columns().codes("angle", np.zeros((2, 0), dtype=int)).shape == (2, 0)


def test_codes_of_all_factors_at_once_are_those_of_each():
    for table in (columns(), FactorTable(columns().factors[:1])):
        for rows in (0, [1, 0], [[0], [1]]):
            found = table.all_codes(rows)
            assert tuple(found) == table.names
            for name, codes in found.items():
                np.testing.assert_array_equal(codes, table.codes(name, rows))
    with pytest.raises(RowError):
        columns().all_codes([0, 3])


@pytest.mark.parametrize("rows", [3, -1, [0, 3], 0.5, [True]])
def test_rows_out_of_range_or_of_another_type_are_refused(rows):
    with pytest.raises(RowError):
        columns().codes("hue", rows)


@pytest.mark.parametrize(
    ("levels", "dtype"), [(1, "uint8"), (255, "uint8"), (256, "uint16"), (65535, "uint16"), (65536, "uint32")]
)
def test_codes_are_narrow_and_leave_room_for_unknown(levels, dtype):
    table = FactorTable([Factor("x", Kind.ORDINAL, tuple(range(levels)))], {"x": [levels - 1, -1]})
    assert table.column("x").dtype == dtype
    assert table.codes("x").tolist() == [levels - 1, -1]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([0, 2], "row 1 of factor 'hue' has the code 2"),  # a code equal to the number of levels
        ([0, -2], "row 1 of factor 'hue' has the code -2"),
        (np.array([0, 7], np.uint8), "has the code 7"),
        ([0.0, 1.0], "integer codes"),
        ([[0, 1]], "must be 1-D"),
    ],
)
def test_wrong_columns_are_refused(values, sentence):
    with pytest.raises(FactorError, match=sentence):
        FactorTable([HUE], {"hue": values})


def test_factors_and_columns_must_fit():
    with pytest.raises(FactorError, match="must be unique"):
        FactorTable([HUE, HUE])
    with pytest.raises(FactorError, match="must have the names of the factors"):
        FactorTable([HUE], {"hew": [0]})
    with pytest.raises(FactorError, match="same length"):
        FactorTable([HUE, SIZE], {"hue": [0], "size": [0, 1]})
    with pytest.raises(FactorError, match="continuous factor 'angle'"):
        FactorTable([ANGLE])
    with pytest.raises(FactorError, match="did you mean 'hue'"):
        FactorTable([HUE])["heu"]


def test_nesting_must_lead_somewhere():
    with pytest.raises(FactorError, match="unknown factor 'category'"):
        FactorTable([Factor("instance", Kind.NOMINAL, ("a",), within="category")])
    with pytest.raises(FactorError, match="is circular"):
        FactorTable([Factor("a", Kind.NOMINAL, ("x",), within="b"), Factor("b", Kind.NOMINAL, ("x",), within="a")])


def test_counts_leave_unknown_values_out():
    table = FactorTable([HUE, SIZE], {"hue": [0, 0, 1, -1], "size": [2, 2, 0, 1]})
    assert table.counts("hue").tolist() == [2, 1]
    assert table.joint_counts(["size", "hue"]).tolist() == [[0, 1], [0, 0], [2, 0]]


def test_too_many_combinations_are_not_counted():
    many = tuple(range(50_000))
    table = FactorTable([Factor("a", Kind.ORDINAL, many), Factor("b", Kind.ORDINAL, many)])
    with pytest.raises(FactorError, match=r"a, b have 2,500,000,000 combinations.*group_by"):
        table.joint_counts(["a", "b"])


def test_select_keeps_order_and_repeats():
    table = FactorTable([HUE, SIZE]).select([5, 0, 5])
    assert table.values("size").tolist() == [3, 1, 3]
    assert columns().select([2, 1]).row(0)["hue"] == "blue"
    assert len(columns().select([])) == 0


def test_a_mask_is_no_list_of_rows():
    table = FactorTable([HUE, SIZE])
    with pytest.raises(RowError, match=r"integers, not bool; .* pass table\.rows"):
        table.select(table.mask("size == 3"))
    with pytest.raises(RowError, match="integers, not float64"):
        table.select([1.5])


def test_factors_come_and_go():
    table = FactorTable([HUE, SIZE]).with_factor(ANGLE, np.arange(6.0)).without(["hue"])
    assert table.names == ("size", "angle")
    assert table.row(4) == {"size": 2, "angle": 4.0}
    with pytest.raises(FactorError, match="at least one"):
        table.without(table.names)


def test_columns_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        columns().column("hue")[0] = 1


def test_the_fingerprint_tells_tables_apart():
    changed = FactorTable([HUE, SIZE, ANGLE], {"hue": [0, 0, 1], "size": [2, 0, -1], "angle": [0.5, np.nan, 90.0]})
    renamed = FactorTable([Factor("hue", Kind.NOMINAL, ("red", "pink")), SIZE])
    prints = [
        table.fingerprint for table in (columns(), changed, FactorTable([HUE, SIZE]), renamed, FactorTable([SIZE, HUE]))
    ]
    assert len(set(prints)) == 5
    assert columns().fingerprint == columns().fingerprint


def test_a_pickled_table_is_the_same():
    for table in (columns(), FactorTable([HUE, SIZE])):
        other = pickle.loads(pickle.dumps(table))
        assert other.fingerprint == table.fingerprint
        assert other.row(1) == table.row(1)


def test_no_later_change_of_what_was_given_reaches_a_table():
    hues, angles = np.array([0, 1, 0], np.uint8), np.array([1.0, 2.0, 3.0], np.float32)
    seen = angles.view()
    seen.flags.writeable = False  # a view that cannot be written to, of an array that can
    table = FactorTable([HUE, ANGLE], {"hue": hues, "angle": seen})
    before = table.fingerprint
    hues[:], angles[:] = 1, 9.0
    np.testing.assert_array_equal(table.codes("hue"), [0, 1, 0])
    np.testing.assert_array_equal(table.codes("angle"), [1.0, 2.0, 3.0])
    assert FactorTable(table.factors, {name: table.column(name) for name in table.names}).fingerprint == before


def test_tables_share_the_columns_that_nobody_writes_to():
    table = columns()
    more = table.without(["hue"]).with_factor(HUE, [0, 1, 0])
    assert all(np.shares_memory(more.column(name), table.column(name)) for name in ("size", "angle"))
    frozen = np.arange(3, dtype=np.float32)
    frozen.flags.writeable = False
    assert np.shares_memory(FactorTable([ANGLE], {"angle": frozen}).column("angle"), frozen)


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, 1e300, 3.5e38])
def test_numbers_beyond_float32_are_refused_with_their_row(wrong):
    with pytest.raises(FactorError, match=r"row 2 \(counting from 0\) of column 'angle' has .*finite numbers"):
        FactorTable([ANGLE], {"angle": np.array([0.0, np.nan, wrong])})


def _signed(nan, zero):
    return FactorTable([ANGLE], {"angle": np.array([nan, zero, 1.0], np.float32)})


def test_the_signs_of_nan_and_zero_do_not_tell_tables_apart():
    plain = _signed(np.nan, 0.0)
    signed = _signed(np.copysign(np.float32(np.nan), np.float32(-1)), -0.0)
    assert signed.column("angle").tobytes() != plain.column("angle").tobytes()
    assert signed.fingerprint == plain.fingerprint
    levels = [FactorTable([Factor("x", Kind.ORDINAL, (-1.0, zero, 1.0))]) for zero in (0.0, -0.0)]
    assert levels[0].fingerprint == levels[1].fingerprint


def test_fingerprints_of_before_the_signs_were_left_out_of_them():
    """Digests that were computed when the signs still counted."""
    grid = FactorTable(
        [
            Factor("hue", Kind.CYCLIC, (0.0, 0.25, 0.5, 0.75), unit="turn", period=1.0),
            Factor("size", Kind.ORDINAL, (1, 2, 3)),
        ]
    )
    assert grid.fingerprint == "57858f8b9f93b58ac69d04ff1d24101a"
    poses = FactorTable(
        [
            Factor("shape", Kind.NOMINAL, ("cube", "b\u00e4ll")),
            Factor("pose", Kind.CONTINUOUS, unit="deg", period=360.0),
        ],
        {"shape": [0, 1, -1, 0], "pose": [0.0, 1.5, np.nan, -2.25]},
    )
    assert poses.fingerprint == "0b21d77fa410af56b6c3872532f74043"
    row = np.arange(600)
    nested = FactorTable(
        [
            Factor("class", Kind.NOMINAL, ("a", "b")),
            Factor("inst", Kind.NOMINAL, tuple(range(300)), within="class", role="key"),
            Factor("y", Kind.CONTINUOUS),
        ],
        {"class": row % 2, "inst": row % 300, "y": np.where(row % 7 == 0, np.nan, row / 3)},
    )
    assert nested.fingerprint == "905deacc965498a2a04a0af4ec6d66ff"


def test_a_fingerprint_with_signs_is_still_the_table_s(tmp_path):
    signed = _signed(np.copysign(np.float32(np.nan), np.float32(-1)), -0.0)
    older = "072dd5c17676412bb2062d920114c7b4"
    assert signed.has_fingerprint(older)
    assert signed.has_fingerprint(signed.fingerprint)
    assert not signed.has_fingerprint(_signed(0.0, 0.0).fingerprint)
    assert not columns().has_fingerprint(older)
    sampler = setsup.SetSampler(signed, [[]], sets=1, size=2)
    again = from_dict({**sampler.to_dict(), "fingerprint": older}, signed)
    np.testing.assert_array_equal(again[5].indices, sampler[5].indices)


def test_renaming_keeps_rows_nesting_splits_and_the_grid():
    outer = Factor("my class", Kind.NOMINAL, ("a", "b"))
    inner = Factor("instance", Kind.NOMINAL, (1, 2, 3), within="my class", unit="x")
    grid = FactorTable([outer, inner])
    renamed = grid.rename({"my class": "category"})
    assert renamed.is_grid
    assert renamed.factors == (replace(outer, name="category"), replace(inner, within="category"))
    assert renamed.rename({"category": "my class"}).fingerprint == grid.fingerprint
    assert renamed.group_by(["instance"]).names == ("category", "instance")
    table = split(grid.select(range(6)), {"train": 0.5, "test": 0.5}, seed=0)
    swapped = table.rename({"my class": "instance", "instance": "my class", "split": "part of 2"})
    assert [factor.role for factor in swapped.factors] == ["variation", "variation", "split"]
    assert swapped["my class"].within == "instance"
    for old, new in (("my class", "instance"), ("instance", "my class"), ("split", "part of 2")):
        np.testing.assert_array_equal(swapped.codes(new), table.codes(old))
        assert np.shares_memory(swapped.column(new), table.column(old))


def test_memory_of_others_is_copied_though_numpy_may_not_write_to_it():
    import pyarrow as pa

    bytes_of_others = bytearray(16)
    numbers = np.zeros(4, np.float32)
    views = {
        "a memory view": np.frombuffer(memoryview(bytes_of_others).toreadonly(), np.float32),
        "an array of Arrow's": pa.array(numbers).to_numpy(),
    }
    tables = {name: FactorTable([Factor("x", Kind.CONTINUOUS)], {"x": view}) for name, view in views.items()}
    bytes_of_others[:] = np.ones(4, np.float32).tobytes()
    numbers[:] = 1
    assert all((view == 1).all() for view in views.values())
    assert {name: table.column("x").tolist() for name, table in tables.items()} == dict.fromkeys(views, [0.0] * 4)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({"hue": "size"}, "two factors would have the name 'size'"),
        ({"hu": "x"}, "unknown factor 'hu'; did you mean 'hue'"),
        ({"hue": ""}, "must be a non-empty string"),
        ({"hue": None}, "must be a (non-empty )?string"),
        ({"hue": ["x"]}, "must be a (non-empty )?string"),
        (["hue"], "rename expects a mapping such as"),
        (None, "rename expects a mapping such as"),
    ],
)
def test_a_renaming_that_makes_no_sense_is_refused(names, sentence):
    for table in (columns(), FactorTable([HUE, SIZE])):
        with pytest.raises(FactorError, match=sentence):
            table.rename(names)


@pytest.mark.parametrize(
    "levels", [(5, 2**63 + 1, 2**63 + 2), (2**63 + 1, 2**63 + 2), (-1, 2**63), (1, 2**64 + 1), (2**60 + 1, 2.5)]
)
def test_levels_that_floats_would_round_are_given_back_exactly(levels):
    table = FactorTable([Factor("x", Kind.ORDINAL, levels)])
    assert table.values("x").tolist() == list(levels)
    assert [type(value) for value in table.values("x").tolist()] == [type(level) for level in levels]


def test_unsigned_numbers_come_back_from_arrow():
    table = FactorTable.from_values({"x": np.array([2**63 + 1, 2**64 - 1, 5], np.uint64)})
    assert table["x"].levels == (5, 2**63 + 1, 2**64 - 1)
    assert FactorTable.from_arrow(table.to_arrow()).fingerprint == table.fingerprint
    with pytest.raises(FactorError, match="Arrow has no type for the levels of factor 'x'"):
        FactorTable([Factor("x", Kind.ORDINAL, (1, 2**64))]).to_arrow()
