"""Batches over several levels of groups, against the enumeration of all of them."""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from setsup.errors import FactorError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import HierarchicalSampler, from_dict


def table_of(counts, unknown=0):
    """``counts[a][b]…`` rows with each combination of values, well mixed; rows with an unknown first value follow."""
    counts = np.asarray(counts)
    names = "abc"[: counts.ndim]
    order = np.random.default_rng(0).permutation(int(counts.sum()))
    factors = [
        Factor(name, Kind.NOMINAL, tuple(f"{name}{n}" for n in range(size)))
        for name, size in zip(names, counts.shape, strict=True)
    ]
    codes = {}
    for name, grid in zip(names, np.indices(counts.shape), strict=True):
        values = np.repeat(grid.ravel(), counts.ravel())[order]
        codes[name] = np.concatenate([values, np.full(unknown, -1 if name == "a" else 0)])
    rows = len(order) + unknown
    return FactorTable([*factors, Factor("half", Kind.ORDINAL, (0, 1))], codes | {"half": np.arange(rows) % 2})


def tree_of(table, names, kept=lambda row: True):
    """Rows by their values, as nested mappings whose leaves are lists of rows."""
    tree = {}
    codes = [table.codes(name).tolist() for name in names]
    for row, path in enumerate(zip(*codes, strict=True)):
        if min(path) >= 0 and kept(row):
            node = tree
            for value in path[:-1]:
                node = node.setdefault(value, {})
            node.setdefault(path[-1], []).append(row)
    return tree


def pruned(node, counts, size):
    """The tree without what cannot be drawn; None where nothing can be."""
    if isinstance(node, list):
        return node if len(node) >= size else None
    left = {value: found for value, child in node.items() if (found := pruned(child, counts[1:], size)) is not None}
    return left if len(left) >= counts[0] else None


def draws_of(node, counts, size):
    """All draws of a pruned node, as tuples of rows in order, with their chances."""
    if isinstance(node, list):
        ways = math.perm(len(node), size)
        return {rows: 1 / ways for rows in itertools.permutations(node, size)}
    found = defaultdict(float)
    below = {value: draws_of(child, counts[1:], size) for value, child in node.items()}
    for values in itertools.permutations(node, counts[0]):
        for parts in itertools.product(*(below[value].items() for value in values)):
            chance = math.prod(chance for _, chance in parts) / math.perm(len(node), counts[0])
            found[sum((rows for rows, _ in parts), ())] += chance
    return found


def leaves_of(node, path=()):
    if isinstance(node, list):
        return {path: node}
    return {key: rows for value, child in node.items() for key, rows in leaves_of(child, (*path, value)).items()}


CASES = {
    "2 × 1 × 1": ([[2, 1], [1, 3], [2, 2]], [2, 1], 1),
    "1 × 2 × 1": ([[2, 3, 1], [1, 0, 2], [0, 4, 0]], [1, 2], 1),
    "1 × 2 × 2": ([[3, 2, 2], [2, 2, 1]], [1, 2], 2),
    "2 × 2 × 1": ([[1, 2, 0], [1, 1, 1], [2, 0, 0]], [2, 2], 1),
    "1 × 1 × 2": ([[4, 2], [1, 3]], [1, 1], 2),
    "three levels": ([[[1, 2], [1, 0]], [[2, 1], [1, 1]], [[1, 1], [0, 0]]], [1, 2, 1], 1),
}


@pytest.mark.long("statistics")
@pytest.mark.parametrize(("counts", "sets", "size"), CASES.values(), ids=CASES)
def test_draws_come_as_often_as_documented(counts, sets, size):
    table = table_of(counts, unknown=3)
    names = "abc"[: np.ndim(counts)]
    sampler = HierarchicalSampler(table, list(names), sets, size, on_small_group="drop")
    draw = sampler.block(0, 40_000)
    assert draw.indices.shape == (40_000, math.prod(sets), size)
    chances = draws_of(pruned(tree_of(table, names), sets, size), sets, size)
    assert math.isclose(sum(chances.values()), 1)
    seen = Counter(map(tuple, draw.indices.reshape(40_000, -1).tolist()))
    assert set(seen) <= set(chances)
    expected = np.array(list(chances.values())) * 40_000
    assert expected.min() > 5
    assert chisquare([seen[rows] for rows in chances], expected).pvalue > 1e-4


@pytest.mark.long("statistics")
def test_of_many_groups_and_rows():
    # groups and rows are drawn and redrawn here, where few of them are permuted
    table = table_of(np.full((40, 30), 25))
    draw = HierarchicalSampler(table, ["a", "b"], [5, 4], 3).block(0, 3000)
    assert draw.indices.shape == (3000, 20, 3)
    outer, inner = (draw.inactive[name].reshape(3000, 5, 4) for name in "ab")
    assert (outer == outer[..., :1]).all()
    assert all(len(set(step)) == 5 for step in outer[..., 0].tolist())
    assert all(len(set(group)) == 4 for group in inner.reshape(-1, 4).tolist())
    assert all(len(set(step)) == 60 for step in draw.indices.reshape(3000, -1).tolist())
    for name in "ab":
        assert (table.codes(name, draw.indices) == draw.inactive[name][..., None]).all()
    assert chisquare(np.bincount(outer[..., 0].ravel())).pvalue > 1e-4
    assert chisquare(np.bincount(inner.ravel())).pvalue > 1e-4


@pytest.mark.long("statistics")
def test_rows_by_weight():
    table = table_of([[2, 3], [3, 2]])
    weights = np.arange(10) % 4
    chances = {}
    for (a, _), rows in leaves_of(tree_of(table, "ab", lambda row: weights[row] > 0)).items():
        groups = len(tree_of(table, "ab", lambda row: weights[row] > 0)[a])
        chances |= {row: weights[row] / sum(weights[rows]) / 2 / groups for row in rows}
    drawn = HierarchicalSampler(table, ["a", "b"], [1, 1], 1, weights=weights).block(0, 20_000).indices.ravel()
    seen = np.bincount(drawn, minlength=10)
    assert seen[weights == 0].sum() == 0
    assert chisquare([seen[row] for row in chances], np.array(list(chances.values())) * 20_000).pvalue > 1e-4


def test_neighbouring_steps_are_unrelated():
    table = table_of([[1, 2], [1, 1]])
    drawn = HierarchicalSampler(table, ["a", "b"], [1, 1], 1).block(0, 20_000).indices.ravel()
    chances = draws_of(tree_of(table, "ab"), [1, 1], 1)
    seen = Counter(itertools.pairwise(drawn.tolist()))
    pairs = list(itertools.product(chances, chances))
    expected = np.array([chances[one] * chances[two] for one, two in pairs]) * seen.total()
    assert chisquare([seen[one + two] for one, two in pairs], expected).pvalue > 1e-4


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_of_any_table(data):
    shape = data.draw(st.sampled_from([(1, 4), (3, 3), (4, 2), (2, 2, 3), (3, 2, 2)]))
    counts = np.array(data.draw(st.lists(st.integers(0, 4), min_size=math.prod(shape), max_size=math.prod(shape))))
    if not counts.sum():
        return
    counts = counts.reshape(shape)
    names = "abc"[: len(shape)]
    sets = [data.draw(st.integers(1, 2)) for _ in names]
    size = data.draw(st.integers(1, 3))
    where = data.draw(st.sampled_from([None, "half == 0"]))
    table = table_of(counts, unknown=data.draw(st.integers(0, 3)))
    tree = tree_of(table, names, lambda row: where is None or row % 2 == 0)
    left = pruned(tree, sets, size)

    def make(on_small_group):
        return HierarchicalSampler(table, list(names), sets, size, where=where, on_small_group=on_small_group, seed=3)

    if left is None:
        for on_small_group in ("error", "drop"):
            with pytest.raises(SamplerError):
                make(on_small_group)
        return
    if left != tree:
        with pytest.raises(SamplerError, match="on_small_group='drop'"):
            make("error")
    sampler = make("drop")
    draw = sampler.block(0, 30)
    leaves = leaves_of(left)
    for step in range(30):
        paths = list(zip(*(draw.inactive[name][step].tolist() for name in names), strict=True))
        assert len(set(paths)) == math.prod(sets)
        for path, rows in zip(paths, draw.indices[step].tolist(), strict=True):
            assert len(set(rows)) == size
            assert set(rows) <= set(leaves[path])
        for depth in range(len(sets)):
            # each block of sets has one outer path, and as many inner ones as are asked for
            heads = [path[: depth + 1] for path in paths[:: math.prod(sets[depth + 1 :])]]
            assert len(set(heads)) == math.prod(sets[: depth + 1])
            assert all(a[:depth] == b[:depth] for a, b in itertools.pairwise(heads[: sets[depth]]))
    entry = sampler.report().entries[0]
    assert (entry.groups, entry.drawable) == (len(leaves_of(tree)), len(leaves))
    assert entry.unreachable == sum(map(len, leaves_of(tree).values())) - sum(map(len, leaves.values()))
    assert 10**entry.log10_sets == pytest.approx(sum(math.comb(len(rows), size) for rows in leaves.values()))


def test_the_report_expects_as_many_values_as_are_drawn():
    table = table_of([[6, 9, 7], [8, 0, 6], [9, 9, 5]])
    sampler = HierarchicalSampler(table, ["a", "b"], [2, 2], 3)
    half = table.codes("half", sampler.block(0, 20_000).indices)
    report = sampler.report()
    assert report.entries[0].distinct["half"] == pytest.approx(np.mean((half != half[..., :1]).any(-1)) + 1, abs=0.01)
    assert str(report).endswith("note: a: 2 of 3\nnote: b: 2 of 2 to 3 in each")


def test_on_a_grid_and_on_columns_and_again_from_plain_data():
    factors = [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in zip("abc", (4, 5, 6), strict=True)]
    grid = FactorTable(factors)
    columns = FactorTable(factors, {name: grid.codes(name) for name in grid.names})
    # the order of the levels is that of the argument, not of the table
    one, other = (HierarchicalSampler(table, ["c", ["a"]], [3, 2], 4, seed=9) for table in (grid, columns))
    assert np.array_equal(one.block(0, 50).indices, other.block(0, 50).indices)
    outer = one[7].inactive["c"].reshape(3, 2)
    assert (outer[:, 0] == outer[:, 1]).all()
    assert len(set(outer[:, 0].tolist())) == 3
    assert np.array_equal(from_dict(one.to_dict(), grid).block(5, 9).indices, one.block(5, 9).indices)


def test_groups_with_too_few_groups_are_named():
    table = table_of([[5, 5, 5], [5, 0, 0], [5, 5, 0]])
    with pytest.raises(
        SamplerError,
        match=r"1 of 6 groups of a, b belong to outer groups .*first: a = a1, b = b0.*on_small_group='drop'",
    ):
        HierarchicalSampler(table, ["a", "b"], [2, 2], 5)
    assert set(HierarchicalSampler(table, ["a", "b"], [2, 2], 5, on_small_group="drop")[0].inactive["a"].tolist()) == {
        0,
        2,
    }
    with pytest.raises(SamplerError, match="a step draws 3 groups of a, but only 2 can be drawn with size=5"):
        HierarchicalSampler(table, ["a", "b"], [3, 2], 5, on_small_group="drop")
    with pytest.raises(SamplerError, match="a step draws 4 groups of b within one of a, but only 3 can be drawn"):
        HierarchicalSampler(table, ["a", "b"], [1, 4], 5, on_small_group="drop")


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"factors": "a"}, SamplerError, "factors must list the factors of at least two levels"),
        ({"factors": ["a"]}, SamplerError, "for one level use a DomainSampler"),
        ({"factors": ["a", "d"]}, FactorError, "'d'"),
        ({"factors": ["a", []]}, SamplerError, "at least one factor"),
        ({"factors": ["a", 3]}, SamplerError, "each of factors must be a list"),
        ({"sets": 2}, SamplerError, "sets must be a list of 2 integers"),
        ({"sets": [2]}, SamplerError, "sets must be a list of 2 integers"),
        ({"sets": [2, 0]}, SamplerError, "each of sets must be an integer from 1"),
        ({"sets": [2**20, 2**20]}, SamplerError, "sets per step"),
        ({"size": 0}, SamplerError, "size must be an integer from 1"),
        ({"size": 7}, SamplerError, "fewer than the 7 rows"),
        ({"on_small_group": "short"}, SamplerError, "on_small_group must be 'error' or 'drop'"),
        ({"where": "half > 1"}, SamplerError, "where= and weights= leave none of the"),
        ({"seed": -1}, SamplerError, "seed"),
    ],
)
def test_wrong_arguments(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        HierarchicalSampler(
            table_of(np.full((3, 4), 6)), **{"factors": ["a", "b"], "sets": [2, 2], "size": 2, **arguments}
        )
