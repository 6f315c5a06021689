import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import FactorError, SamplerError, SetsupError
from setsup.factors import Factor, FactorTable, Kind, check_disjoint, split

PARTS = {"train": 0.7, "val": 0.2, "test": 0.1}
GRID = FactorTable([Factor("subject", Kind.NOMINAL, tuple(range(20))), Factor("light", Kind.ORDINAL, (1, 2, 3, 4, 5))])


def as_columns(table):
    return FactorTable(table.factors, {name: table.codes(name) for name in table.names})


def people(sizes, classes=1):
    """Table of subjects with given numbers of rows; each subject is of one class."""
    subject = np.repeat(np.arange(len(sizes)), sizes)
    factors = [
        Factor("subject", Kind.NOMINAL, tuple(f"s{place}" for place in range(len(sizes)))),
        Factor("class", Kind.NOMINAL, tuple(f"c{place}" for place in range(classes))),
    ]
    return FactorTable(factors, {"subject": subject, "class": subject % classes})


def test_counts_are_exact_where_shares_are_whole():
    table = split(GRID, PARTS, seed=3)
    assert table.counts("split").tolist() == [70, 20, 10]
    assert table["split"] == Factor("split", Kind.NOMINAL, ("train", "val", "test"), role="split")
    assert table.names == ("subject", "light", "split")


@given(st.integers(12, 400), st.integers(0, 2**64 - 1), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_counts_differ_from_the_shares_by_less_than_a_row(rows, seed, weights):
    shares = {f"p{place}": weight / sum(weights) for place, weight in enumerate(weights)}
    table = FactorTable([Factor("x", Kind.ORDINAL, tuple(range(rows)))])
    try:
        counts = split(table, shares, seed).counts("split")
    except FactorError as error:
        counts = str(error)
    if isinstance(counts, str):
        assert "no row falls into the part" in counts
    else:
        assert counts.sum() == rows
        assert (abs(counts - rows * np.array(list(shares.values()))) < 1 + 1e-9).all()


@given(st.lists(st.integers(1, 30), min_size=8, max_size=40), st.integers(0, 100))
def test_groups_stay_together_and_counts_differ_by_less_than_a_group(sizes, seed):
    table = people(sizes)
    try:
        table = split(table, {"a": 0.5, "b": 0.5}, seed, disjoint="subject")
    except FactorError as error:
        table = str(error)
    if isinstance(table, str):
        assert "no row falls into the part" in table
        return
    joint = table.joint_counts(["subject", "split"])
    assert ((joint > 0).sum(axis=1) == 1).all()
    check_disjoint(table, "split", "subject")
    assert abs(table.counts("split")[0] - sum(sizes) / 2) <= max(sizes)


@pytest.mark.long("large or genuine files")
@given(st.lists(st.integers(3, 60), min_size=1, max_size=6), st.integers(0, 100))
def test_every_stratum_has_its_shares_within_a_row(sizes, seed):
    table = split(people(sizes), {"a": 0.6, "b": 0.4}, seed, stratify=["subject"])
    joint = table.joint_counts(["subject", "split"])
    assert (joint.sum(axis=1) == sizes).all()
    assert (abs(joint - np.outer(sizes, [0.6, 0.4])) < 1 + 1e-9).all()


@given(st.lists(st.integers(3, 60), min_size=1, max_size=8), st.integers(0, 100), st.sampled_from([0.1, 0.35, 0.5]))
def test_the_whole_table_may_have_its_shares_within_half_a_row(sizes, seed, share):
    table = people(sizes)
    try:
        found = split(table, {"a": 1 - share, "b": share}, seed, stratify="subject", rounding="table")
    except FactorError:
        return  # a part without a row
    assert abs(found.counts("split")[1] - share * sum(sizes)) <= 0.5 + 1e-9
    joint = found.joint_counts(["subject", "split"])
    assert (joint.sum(axis=1) == sizes).all()
    assert (abs(joint - np.outer(sizes, [1 - share, share])) < 1 + 1e-9).all()


@pytest.mark.long("large or genuine files")
def test_shares_of_the_whole_table_are_those_of_scikit_learn():
    from sklearn.model_selection import train_test_split

    cars = FactorTable(
        [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in (("pose", 96), ("object", 183))]
    )
    theirs = train_test_split(np.arange(len(cars)), stratify=cars.codes("object"), test_size=0.1, random_state=2)
    found = split(cars, {"train": 0.9, "test": 0.1}, 0, stratify="object", rounding="table", repeats=12)
    more = np.zeros(183, int)
    for name in (f"split_{repeat}" for repeat in range(12)):
        assert found.counts(name).tolist() == [len(rows) for rows in theirs] == [15_811, 1_757]
        tests = found.joint_counts(["object", name])[:, 1]
        assert np.unique(tests, return_counts=True)[1].tolist() == [73, 110]  # of 9 and of 10
        more += tests == 10
    # which objects have one more is drawn anew each time, with probability 110 / 183: within 5.5 deviations
    assert abs(more - 12 * 110 / 183).max() < 5.5 * np.sqrt(12 * 110 / 183 * 73 / 183)
    assert split(cars, {"train": 0.9, "test": 0.1}, 0, stratify="object").counts("split").tolist() == [15_738, 1_830]


def test_groups_are_stratified():
    table = split(people([4] * 40, classes=2), {"a": 0.75, "b": 0.25}, 0, stratify="class", disjoint="subject")
    assert table.joint_counts(["class", "split"]).tolist() == [[60, 20], [60, 20]]
    check_disjoint(table, "split", ["subject"])


def test_a_group_in_two_strata_is_refused():
    with pytest.raises(FactorError, match=r"rows of subject = 0 have different values of light"):
        split(GRID, PARTS, 0, stratify="light", disjoint="subject")


def test_it_depends_on_the_seed_and_on_rows_only():
    first = split(GRID, PARTS, 7).column("split")
    np.testing.assert_array_equal(first, split(GRID, PARTS, 7).column("split"))
    np.testing.assert_array_equal(first, split(GRID, PARTS, 7, name="other").column("other"))
    assert (first != split(GRID, PARTS, 8).column("split")).any()


@pytest.mark.parametrize(
    "options", [{}, {"stratify": "light"}, {"disjoint": "subject"}, {"disjoint": ["light", "subject"]}]
)
def test_a_grid_and_its_columns_are_divided_alike(options):
    grid, columns = split(GRID, PARTS, 5, **options), split(as_columns(GRID), PARTS, 5, **options)
    np.testing.assert_array_equal(grid.column("split"), columns.column("split"))


def test_the_order_of_rows_does_not_move_groups():
    table = as_columns(GRID)
    order = np.random.default_rng(0).permutation(len(table))
    one = split(table, PARTS, 5, disjoint="subject").column("split")
    np.testing.assert_array_equal(split(table.select(order), PARTS, 5, disjoint="subject").column("split"), one[order])


def test_repeats_are_independent_splits():
    table = split(GRID, {"a": 0.5, "b": 0.5}, 1, repeats=20)
    assert table.names[2:] == tuple(f"split_{repeat}" for repeat in range(20))
    codes = np.stack([table.codes(name) for name in table.names[2:]])
    assert (codes.sum(axis=1) == 50).all()
    assert len({row.tobytes() for row in codes}) == 20
    # each row is in the second part in about half of the repeats: 10 ± 4.5 · √5
    assert abs(codes.sum(axis=0) - 10).max() < 10
    np.testing.assert_array_equal(table.codes("split_0"), split(GRID, {"a": 0.5, "b": 0.5}, 1).codes("split"))


def test_every_row_is_as_likely_in_every_part():
    """Over many seeds, a row is in a part as often as its share says (5 standard deviations)."""
    table = FactorTable([Factor("x", Kind.ORDINAL, tuple(range(10)))])
    seeds = 400
    hits = sum((split(table, {"a": 0.3, "b": 0.7}, seed).codes("split") == 0).astype(int) for seed in range(seeds))
    assert (abs(hits - 0.3 * seeds) < 5 * np.sqrt(seeds * 0.3 * 0.7)).all()


def test_large_strata_are_divided_too():
    table = FactorTable([Factor("x", Kind.ORDINAL, tuple(range(200))), Factor("y", Kind.ORDINAL, tuple(range(100)))])
    assert split(table, PARTS, 0).counts("split").tolist() == [14000, 4000, 2000]


def test_rows_with_unknown_values_are_in_no_part():
    table = people([10] * 10)
    codes = table.codes("subject").copy()
    codes[::7] = -1
    table = FactorTable(table.factors, {"subject": codes, "class": table.codes("class")})
    for options in ({"disjoint": "subject"}, {"stratify": "subject"}):
        divided = split(table, {"a": 0.5, "b": 0.5}, 0, **options)
        np.testing.assert_array_equal(divided.codes("split") < 0, codes < 0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"fractions": {}}, "positive numbers that sum to 1"),
        ({"fractions": {"a": 0.5, "b": 0.4}}, "must sum to 1, but those in .* sum to 0.9"),
        ({"fractions": {"a": 1.5, "b": -0.5}}, "positive numbers"),
        ({"fractions": {"a": 1.0, "b": 0.0}}, "positive numbers"),
        ({"fractions": {"a": float("nan"), "b": 0.5}}, "positive numbers"),
        ({"fractions": {"a": "0.5", "b": 0.5}}, "positive numbers"),
        ({"fractions": {"a": 0.999, "b": 0.001}}, "no row falls into the part 'b' of 'split'"),
        ({"repeats": 0}, "repeats must be an integer from 1 to 10,000, not 0"),
        ({"repeats": 1.5}, "from 1 to 10,000, not 1.5"),
        ({"fractions": [0.5, 0.5]}, "must map the names of parts to their shares"),
        ({"name": "light"}, "already has a factor 'light'"),
        ({"rounding": "tabel"}, "rounding must be one of strata, table, not 'tabel'; did you mean 'table'"),
        ({"stratify": "lihgt"}, "unknown factor 'lihgt'; did you mean 'light'"),
        ({"disjoint": ["subjects"]}, "unknown factor 'subjects'"),
    ],
)
def test_what_cannot_be_divided_is_refused(arguments, sentence):
    with pytest.raises(FactorError, match=sentence):
        split(GRID, **{"fractions": PARTS, "seed": 0, **arguments})


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, "0"])
def test_seeds_are_checked(seed):
    with pytest.raises(SamplerError, match="seed"):
        split(GRID, PARTS, seed)


def test_thirds_may_be_given_as_floats():
    assert split(GRID, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}, 0).counts("split").tolist() in (
        [33, 34, 33],
        [33, 33, 34],
        [34, 33, 33],
    )


def test_what_straddles_parts_is_named():
    table = split(GRID, {"a": 0.5, "b": 0.5}, 0)
    with pytest.raises(SetsupError) as caught:
        check_disjoint(table, "split", "subject")
    message = str(caught.value)
    joint = (table.joint_counts(["subject", "split"]) > 0).all(axis=1)
    named = [f"subject = {subject} (a, b)" for subject in np.flatnonzero(joint)]
    assert all(name in message for name in named[:5])
    assert named[5] not in message
    assert f"and {joint.sum() - 5} more" in message


def test_unknown_parts_straddle_nothing():
    factors = [Factor("subject", Kind.NOMINAL, ("a", "b")), Factor("split", Kind.NOMINAL, ("x", "y"), role="split")]
    check_disjoint(FactorTable(factors, {"subject": [0, 0, 1, -1, -1], "split": [0, -1, 1, 0, 1]}), "split", "subject")
    with pytest.raises(FactorError, match=r"several parts contain subject = a \(x, y\)"):
        check_disjoint(FactorTable(factors, {"subject": [0, 0], "split": [0, 1]}), "split", "subject")
