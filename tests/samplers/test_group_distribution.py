"""Which group: the documented laws, enumerated exactly, against draws."""

import itertools
import math
import sys
import tracemalloc
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from setsup.errors import SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.random import fold, stream_key
from setsup.samplers import SetSampler
from setsup.samplers.groups.group_distribution import Chooser, level_probabilities
from tests.traced import traced

RARE = 1e-5


def law(sizes, choose):
    """Probability of each key, for a mapping of the keys of drawable groups to their rows."""
    if choose == "groups":
        return {key: Fraction(1, len(sizes)) for key in sizes}
    if choose == "rows":
        return {key: Fraction(size) / sum(map(Fraction, sizes.values())) for key, size in sizes.items()}
    found = {}
    for key in sizes:
        chance = Fraction(1)
        for place in range(len(key)):
            chance /= len({other[place] for other in sizes if other[:place] == key[:place]})
        found[key] = chance
    return found


def sequential(sizes, choose, sets):
    """Probability of each sequence of different keys: every one by the law among those not yet taken."""
    if sets == 0:
        return {(): Fraction(1)}
    found = {}
    for key, chance in law(sizes, choose).items():
        rest = {other: size for other, size in sizes.items() if other != key}
        for tail, other in sequential(rest, choose, sets - 1).items():
            found[(key, *tail)] = chance * other
    return found


def table_of(sizes):
    """A table whose groups have these keys and numbers of rows, in scattered order."""
    rows = [key for key, size in sizes.items() for _ in range(size)]
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    columns = np.array(rows).T
    factors = [
        Factor(name, Kind.NOMINAL, tuple(range(int(c.max()) + 1))) for name, c in zip("abc", columns, strict=False)
    ]
    return FactorTable(factors, dict(zip("abc", columns, strict=False)))


def keys_drawn(sampler, steps):
    draw = sampler.block(0, steps)
    return np.stack([draw.inactive[name] for name in draw.inactive], axis=-1)


def p_value(seen, expected, draws):
    assert set(seen) <= set(expected)
    assert sum(expected.values()) == 1
    ordered = sorted(expected)
    wanted = np.array([float(draws * expected[key]) for key in ordered])
    assert wanted.min() > 4
    return stats.chisquare([seen[key] for key in ordered], wanted).pvalue


HOLES = {
    "one factor": {(0,): 2, (1,): 7, (3,): 4, (4,): 2},
    "two": {(0, 0): 2, (0, 2): 8, (1, 1): 3, (2, 0): 2, (2, 1): 2, (2, 2): 5},
    "three": {(0, 0, 1): 3, (0, 1, 0): 2, (0, 1, 1): 2, (1, 0, 0): 9, (1, 0, 1): 2},
    "full": {key: 2 for key in itertools.product(range(2), range(3))},
    "a lonely branch": {(0, 0): 2, (1, 0): 4, (1, 1): 3, (1, 2): 2, (1, 3): 2},
}


@pytest.mark.long("statistics")
@pytest.mark.parametrize("choose", ["levels", "groups", "rows"])
@pytest.mark.parametrize("holes", HOLES)
def test_one_group_follows_the_law(holes, choose):
    sizes = HOLES[holes]
    sampler = SetSampler(table_of(sizes), list("abc")[: len(next(iter(sizes)))], size=2, choose=choose)
    keys = keys_drawn(sampler, 6000)
    for place in range(2):
        seen = Counter(map(tuple, keys[:, place].tolist()))
        assert p_value(seen, law(sizes, choose), 6000) > RARE
    pairs = Counter((tuple(one), tuple(two)) for one, two in keys.tolist())
    both = {(o, t): p * q for (o, p), (t, q) in itertools.product(law(sizes, choose).items(), repeat=2)}
    if 6000 * min(both.values()) > 4:
        assert p_value(pairs, both, 6000) > RARE


@pytest.mark.long("statistics")
@pytest.mark.parametrize("sets", [2, 3])
@pytest.mark.parametrize("choose", ["levels", "groups", "rows"])
@pytest.mark.parametrize("holes", HOLES)
def test_different_groups_follow_the_sequential_law(holes, choose, sets):
    sizes = HOLES[holes]
    names = list("abc")[: len(next(iter(sizes)))]
    sampler = SetSampler(table_of(sizes), names, size=2, sets=sets, choose=choose, values="different")
    expected = sequential(sizes, choose, sets)
    draws = 8000 if sets == 2 else 30_000
    seen = Counter(tuple(map(tuple, step)) for step in keys_drawn(sampler, draws).tolist())
    assert all(len(set(step)) == sets for step in seen)
    rare = {key for key, chance in expected.items() if draws * chance <= 4}
    if rare:  # pooled
        seen["rest"], expected["rest"] = sum(seen.pop(k, 0) for k in rare), sum(expected.pop(k) for k in rare)
    ordered = list(expected)
    assert set(seen) <= set(ordered)
    wanted = np.array([float(draws * expected[key]) for key in ordered])
    assert stats.chisquare([seen[key] for key in ordered], wanted).pvalue > RARE


@pytest.mark.parametrize("choose", ["levels", "groups", "rows"])
def test_all_groups_taken_in_some_order(choose):
    sizes = HOLES["two"]
    sampler = SetSampler(table_of(sizes), ["a", "b"], size=2, sets=6, choose=choose, values="different")
    for step in keys_drawn(sampler, 300).tolist():
        assert sorted(map(tuple, step)) == sorted(sizes)


@pytest.mark.long("statistics")
@given(
    keys=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)), min_size=1),
    choose=st.sampled_from(["levels", "groups", "rows"]),
    data=st.data(),
)
def test_any_tree_of_keys(keys, choose, data):
    ordered = sorted(keys)
    sizes = dict(
        zip(ordered, data.draw(st.lists(st.integers(1, 9), min_size=len(keys), max_size=len(keys))), strict=False)
    )
    chooser = Chooser(np.array(ordered), np.array([sizes[key] for key in ordered]), choose)
    expected = law(sizes, choose)
    np.testing.assert_allclose(chooser.probabilities(), [float(expected[key]) for key in ordered])
    if choose == "levels":
        np.testing.assert_allclose(level_probabilities(np.array(ordered)), [float(expected[key]) for key in ordered])
    sets = data.draw(st.integers(1, len(keys)))
    bits = fold(stream_key(1, "tree"), np.arange(20 * sets * chooser.words)).reshape(20, sets, -1)
    picked = chooser.different().pick(bits)
    assert picked.shape == (20, sets)
    assert all(len(set(step)) == sets for step in picked.tolist())
    assert picked.min() >= 0
    assert picked.max() < len(keys)
    assert (chooser.different().pick(bits[:, :, :])[:1] == chooser.different().pick(bits[:1])).all()


@given(sizes=st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=8), sets=st.integers(1, 8))
def test_weights_of_any_size_never_pick_a_group_twice(sizes, sets):
    sets = min(sets, len(sizes))
    chooser = Chooser(np.arange(len(sizes))[:, None], np.array(sizes), "rows")
    extremes = np.array([0, 2**64 - 1, 2**63], dtype=np.uint64)
    words = np.concatenate([np.repeat(extremes[:, None], sets, 1), fold(3, np.arange(50 * sets)).reshape(50, sets)])
    picked = chooser.different().pick(words[:, :, None])
    assert all(len(set(step)) == sets for step in picked.tolist())
    assert chooser.pick(extremes).max() < len(sizes)
    assert math.isclose(chooser.probabilities().sum(), 1)


def one_after_the_other(keys, sizes, choose, words):
    """Groups of one step by the definition: each set walks down the tree of the groups that are left."""
    left, found = dict(zip(keys, range(len(keys)), strict=True)), []
    fractions = [[Fraction(int(word) >> 11, 2**53) for word in own] for own in words.tolist()]
    for own in fractions:
        if choose == "rows":
            masses = list(itertools.accumulate(sizes[left[key]] for key in left))
            chosen = next(key for key, mass in zip(left, masses, strict=True) if own[0] * masses[-1] < mass)
        elif choose == "groups":
            chosen = list(left)[math.floor(own[0] * len(left))]
        else:
            chosen = ()
            for fraction in own:
                levels = sorted({key[len(chosen)] for key in left if key[: len(chosen)] == chosen})
                chosen += (levels[math.floor(fraction * len(levels))],)
        found.append(left.pop(chosen))
    return found


@pytest.mark.long("statistics")
@pytest.mark.parametrize("choose", ["levels", "groups", "rows"])
@pytest.mark.parametrize("shape", [(300,), (12, 25), (4, 9, 8), (60, 1, 5)])
def test_many_different_groups_are_those_of_the_definition(shape, choose):
    rng = np.random.default_rng(len(shape))
    keys = [key for key in itertools.product(*map(range, shape)) if len(shape) == 1 or rng.random() < 0.8]
    sizes = rng.integers(1, 50, len(keys)).tolist()
    chooser = Chooser(np.array(keys), np.array(sizes), choose)
    for sets in (70, len(keys)):
        bits = fold(stream_key(2, "many"), np.arange(2 * sets * chooser.words)).reshape(2, sets, -1)
        picked = chooser.different().pick(bits).tolist()
        assert picked == [one_after_the_other(keys, sizes, choose, words) for words in bits]


def calls_made(different, bits):
    """Calls of functions, numpy's among them, that it takes to draw different groups."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        different.pick(bits)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.long("statistics")
@pytest.mark.parametrize(("choose", "shape"), [("groups", (2000,)), ("levels", (20, 10, 10)), ("rows", (2000,))])
def test_the_work_for_different_sets_grows_with_their_number(choose, shape):
    keys = np.array(list(itertools.product(*map(range, shape))))
    chooser = Chooser(keys, np.arange(1, 2001), choose)
    bits = fold(0, np.arange(400 * chooser.words)).reshape(1, 400, -1)
    different = chooser.different()
    # with the square of the sets it would be 64 times as many calls
    assert calls_made(different, bits) < 2 * 8 * calls_made(different, bits[:, :50])
    steps = np.repeat(bits, 8, axis=0)
    with traced():
        different.pick(steps)
        peak = tracemalloc.get_traced_memory()[1]
    assert peak < 8 * 400**2 / 2  # nothing has an element for each pair of sets


def test_all_choices_agree_on_a_full_grid():
    grid = FactorTable([Factor(name, Kind.NOMINAL, tuple(range(n))) for name, n in zip("abc", (2, 3, 5), strict=False)])
    one, *others = (SetSampler(grid, ["a", "b"], size=2, choose=c).block(0, 200) for c in ("levels", "groups", "rows"))
    for other in others:
        assert (one.indices == other.indices).all()


def test_levels_that_have_no_drawable_group_left_do_not_count():
    sizes = {(0, 0): 1, (0, 1): 1, (1, 0): 3, (1, 1): 1, (2, 0): 3, (2, 1): 3}
    sampler = SetSampler(table_of(sizes), ["a", "b"], size=2, on_small_group="drop")
    seen = Counter(map(tuple, keys_drawn(sampler, 6000)[:, 0].tolist()))
    drawable = {key: size for key, size in sizes.items() if size >= 2}
    assert law(drawable, "levels") == {(1, 0): Fraction(1, 2), (2, 0): Fraction(1, 4), (2, 1): Fraction(1, 4)}
    assert p_value(seen, law(drawable, "levels"), 6000) > RARE


def test_factors_are_taken_in_table_order_however_they_are_named():
    sizes = HOLES["two"]
    one, other = (SetSampler(table_of(sizes), names, size=2).block(0, 100) for names in (["a", "b"], ["b", "a"]))
    assert (one.indices == other.indices).all()


def test_where_changes_the_law_with_the_rows():
    sizes = HOLES["two"]
    sampler = SetSampler(table_of(sizes), ["a"], size=2, choose="rows", where="b != 0")
    seen = Counter(keys_drawn(sampler, 6000)[:, 0, 0].tolist())
    assert p_value(seen, {0: Fraction(8, 18), 1: Fraction(3, 18), 2: Fraction(7, 18)}, 6000) > RARE


def test_an_unknown_choice_has_near_matches():
    with pytest.raises(SamplerError, match=r"choose must be one of levels, groups, rows, not 'group'; did you mean"):
        Chooser(np.zeros((1, 1), dtype=np.int64), np.ones(1), "group")
