"""Weights: successive sampling, enumerated exactly, against draws."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from setsup.errors import FactorError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import SetSampler

RARE = 1e-5


def table_of(codes, **extra):
    factors = [Factor("a", Kind.NOMINAL, tuple(range(max(codes) + 1)))]
    columns = {"a": np.array(codes)}
    for name, column in extra.items():
        factors.append(Factor(name, Kind.CONTINUOUS))
        columns[name] = np.array(column, dtype=np.float32)
    return FactorTable(factors, columns)


def successive(weights, size):
    """Probability of each set when rows are taken one by one, by weight among those left."""
    law = dict.fromkeys(itertools.combinations([i for i, w in enumerate(weights) if w > 0], size), 0.0)
    for chosen in law:
        for order in itertools.permutations(chosen):
            chance, left = 1.0, math.fsum(weights)
            for row in order:
                chance *= weights[row] / left
                left -= weights[row]
            law[chosen] += chance
    return law


def p_value(seen, law):
    """Chi-square with the rare outcomes pooled."""
    draws = sum(seen.values())
    assert set(seen) <= set(law)
    common = [key for key in law if draws * law[key] > 5]
    observed = [seen[key] for key in common]
    expected = [draws * law[key] for key in common]
    rest = draws - sum(expected)
    if len(common) < len(law):
        observed.append(draws - sum(observed))
        expected.append(rest)
        if rest < 5:
            assert observed[-1] < 30
            observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
    if len(observed) < 2:
        return 1.0
    return stats.chisquare(observed, np.array(expected) * (sum(observed) / sum(expected))).pvalue


WEIGHTS = {
    "even": [1.0] * 6,
    "mild": [1, 2, 3, 4, 5, 6],
    "steep": [1, 3, 9, 27, 81, 243],
    "one heavy": [1, 2, 1000, 3, 1, 1],
    "with zeros": [0, 1, 0, 2, 5, 1],
    "tiny": [1e-30, 2e-30, 3e-30, 1e-30, 1e-30, 5e-30],
}


@pytest.mark.long("statistics")
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("which", WEIGHTS)
def test_sets_follow_successive_sampling(which, size):
    weights = WEIGHTS[which]
    draws = 3000 if which in ("steep", "one heavy") else 8000
    sampler = SetSampler(table_of([0] * 6), ["a"], size=size, sets=1, weights=weights, seed=size)
    rows = np.sort(sampler.block(0, draws).indices[:, 0], axis=1)
    assert (np.diff(rows, axis=1) > 0).all()
    assert p_value(Counter(map(tuple, rows.tolist())), successive(weights, size)) > RARE


def test_the_order_of_slots_is_successive_too():
    weights = np.array([1.0, 2, 3, 4, 5, 6, 7, 8])
    rows = SetSampler(table_of([0] * 8), ["a"], size=2, sets=1, weights=weights).block(0, 20_000).indices[:, 0]
    law = {(i, j): weights[i] * weights[j] / 36 / (36 - weights[i]) for i, j in itertools.permutations(range(8), 2)}
    assert p_value(Counter(map(tuple, rows.tolist())), law) > RARE


@pytest.mark.long("statistics")
@pytest.mark.parametrize(
    ("weights", "size"), [([2.69, 1.26, 0.02], 3), ([10, 1, 0.1, 0.05], 3), ([10, 5, 0.1, 0.1, 0.05], 4)]
)
def test_slots_are_in_the_order_of_successive_sampling_where_light_rows_must_be_drawn(weights, size):
    rows = SetSampler(table_of([0] * len(weights)), ["a"], size=size, sets=1, weights=weights).block(0, 20_000)
    law = {}
    for order in itertools.permutations(range(len(weights)), size):
        left = np.cumsum([math.fsum(weights), *(-weights[row] for row in order[:-1])])
        law[order] = math.prod(weights[row] / rest for row, rest in zip(order, left, strict=True))
    assert p_value(Counter(map(tuple, rows.indices[:, 0].tolist())), law) > RARE


def test_groups_of_very_different_weight_keep_their_own_chances():
    codes, weights = [0] * 3 + [1] * 3 + [2] * 3, np.array([1e12, 2e12, 3e12, 1e-12, 2e-12, 3e-12, 1.0, 2.0, 3.0])
    draw = SetSampler(table_of(codes), ["a"], size=2, sets=1, weights=weights).block(0, 9000)
    for group in range(3):
        rows = draw.indices[draw.inactive["a"][:, 0] == group, 0] - 3 * group
        assert p_value(Counter(map(tuple, np.sort(rows, axis=1).tolist())), successive([1, 2, 3], 2)) > RARE


@pytest.mark.parametrize("weights", [[1.0, 1e-20], [1e-20, 1.0], [1e300, 1e-300], [5e-324, 1.0]])
def test_a_row_of_hardly_any_weight_is_drawn_where_no_other_is_left(weights):
    draw = SetSampler(table_of([0, 0]), ["a"], size=2, sets=3, weights=weights).block(0, 20)
    assert (np.sort(draw.indices, axis=-1) == [0, 1]).all()


@pytest.mark.long("statistics")
@given(weights=st.lists(st.floats(0, 1e9), min_size=1, max_size=12), data=st.data())
def test_any_weights_draw_rows_of_weight_without_repeats(weights, data):
    codes = data.draw(st.lists(st.integers(0, 2), min_size=len(weights), max_size=len(weights)))
    size = data.draw(st.integers(1, 4))
    on_small_group = data.draw(st.sampled_from(["drop", "short", "replace"]))
    counts = Counter(code for code, weight in zip(codes, weights, strict=False) if weight > 0)
    if not counts or (on_small_group == "drop" and max(counts.values()) < size):
        with pytest.raises(SamplerError):
            SetSampler(table_of(codes), ["a"], size=size, weights=weights, on_small_group=on_small_group)
        return
    draw = SetSampler(table_of(codes), ["a"], size=size, weights=weights, on_small_group=on_small_group).block(0, 20)
    mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    assert (np.array(weights)[draw.indices] > 0).all()
    assert (np.array(codes)[draw.indices] == draw.inactive["a"][..., None]).all()
    for rows, counted, code in zip(
        draw.indices.reshape(-1, size).tolist(),
        mask.reshape(-1, size),
        draw.inactive["a"].ravel().tolist(),
        strict=False,
    ):
        few = counts[code] < size
        drawn = [row for row, counts_ in zip(rows, counted, strict=False) if counts_]
        assert len(drawn) == (counts[code] if few and on_small_group == "short" else size)
        assert len(set(drawn)) == len(drawn) or (few and on_small_group == "replace")


def test_rows_chooses_groups_by_their_weight():
    codes, weights = [0, 0, 1, 1, 1, 2, 2], [1, 2, 1, 1, 2, 10, 0]
    table = table_of(codes)
    drawn = SetSampler(table, ["a"], size=1, choose="rows", weights=weights).block(0, 8000).indices
    seen = np.bincount(drawn.ravel(), minlength=7)
    assert seen[6] == 0
    assert stats.chisquare(seen[:6], 16_000 * np.array(weights[:6]) / 17).pvalue > RARE
    groups = SetSampler(table, ["a"], size=1, choose="groups", weights=weights).block(0, 8000).inactive["a"]
    assert stats.chisquare(np.bincount(groups.ravel())).pvalue > RARE


def test_a_group_counts_its_rows_of_positive_weight():
    table, weights = table_of([0, 0, 0, 1, 1]), [1, 0, 0, 1, 1]
    with pytest.raises(SamplerError, match=r"1 of 2 groups .* fewer than the 2 rows .*smallest: a = 0: 1; a = 1: 2"):
        SetSampler(table, ["a"], size=2, weights=weights)
    assert (
        SetSampler(table, ["a"], size=2, weights=weights, on_small_group="drop").block(0, 9).inactive["a"] == 1
    ).all()


def test_rows_count_that_have_weight_and_fulfil_where():
    table = table_of([0, 0, 0, 1, 1, 1], x=[1, 1, 0, 1, 1, 1])
    options = {"size": 2, "weights": [1, 0, 1, 0, 1, 1], "where": "x == 1"}
    with pytest.raises(SamplerError, match=r"smallest: a = 0: 1; a = 1: 2"):
        SetSampler(table, ["a"], **options)
    sampler = SetSampler(table, ["a"], on_small_group="drop", **options)
    assert (np.sort(sampler.block(0, 9).indices, axis=-1) == [4, 5]).all()
    assert sampler.report().entries[0].excluded == 3


def test_replacement_is_by_weight():
    table, weights = table_of([0, 0, 1, 1, 1]), [1, 3, 1, 1, 1]
    draw = SetSampler(table, ["a"], size=3, sets=1, weights=weights, on_small_group="replace").block(0, 8000)
    rows = draw.indices[draw.inactive["a"][:, 0] == 0, 0]
    law = {key: math.prod((0.25, 0.75)[i] for i in key) for key in itertools.product((0, 1), repeat=3)}
    assert p_value(Counter(map(tuple, rows.tolist())), law) > RARE


def test_equal_values_draw_both_sets_in_succession():
    weights = [1, 2, 3, 4, 5]
    draw = SetSampler(table_of([0] * 5), ["a"], size=1, sets=2, weights=weights, values="equal").block(0, 9000)
    law = {(i, j): weights[i] * weights[j] / 15 / (15 - weights[i]) for i, j in itertools.permutations(range(5), 2)}
    assert p_value(Counter(map(tuple, draw.indices[..., 0].tolist())), law) > RARE


def test_free_sets_are_weighted_too():
    rows = SetSampler(table_of([0, 0, 1, 1]), [[], ["a"]], size=1, weights=[1, 2, 3, 4]).block(0, 6000).indices
    assert stats.chisquare(np.bincount(rows[:, 0, 0]), np.array([0.1, 0.2, 0.3, 0.4]) * 6000).pvalue > RARE


def test_weights_may_be_a_factor():
    weights = [1.0, 2.0, np.nan, 4.0]
    by_name = SetSampler(table_of([0] * 4, share=weights), ["a"], size=2, weights="share")
    by_array = SetSampler(table_of([0] * 4, share=weights), ["a"], size=2, weights=[1.0, 2.0, 0.0, 4.0])
    assert (by_name.block(0, 50).indices == by_array.block(0, 50).indices).all()
    assert by_name.report().entries[0].excluded == 1
    levels = FactorTable([Factor("w", Kind.ORDINAL, (1, 5, 0))], {"w": np.array([0, 1, 2, -1])})
    assert (np.sort(SetSampler(levels, [], size=2, weights="w")[0].indices, axis=1) == [0, 1]).all()


def test_even_weights_are_no_weights_in_law_and_where_applies():
    draw = SetSampler(table_of([0, 0, 0, 1, 1, 1]), [], size=1, weights=np.arange(6), where="a == 1").block(0, 6000)
    seen = np.bincount(draw.indices.ravel(), minlength=6)
    assert stats.chisquare(seen[3:], 12_000 * np.array([3, 4, 5]) / 12).pvalue > RARE
    assert seen[:3].sum() == 0


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1.0, 2.0], r"weights must have shape \(4,\), one number per row, not \(2,\)"),
        (np.ones((4, 1)), r"weights must have shape \(4,\), one number per row, not \(4, 1\)"),
        (3.0, "weights must have shape"),
        (np.array(["1", "2", "3", "4"]), "weights must be one number per row, not"),
        (np.array([1j, 1, 1, 1]), "weights must be one number per row, not"),
        ([1, 2, 3, -1], "weights must be finite and non-negative"),
        ([1, 2, 3, np.inf], "weights must be finite"),
        ([1, 2, 3, -np.inf], "weights must be finite"),
        ([0, 0, 0, 0], "not all 0"),
        ([np.nan] * 4, "not all 0"),
        (["x"] * 4, "weights has 4 items for sets=2; pass one per set, or one for all"),
        (object(), "weights, one number per row, must be an array"),
        ([1, [2], 3, 4], "weights, one number per row, must be an array"),
        ("word", "is a factor whose levels are strings"),
    ],
)
def test_wrong_weights_are_one_clear_sentence(weights, sentence):
    word = Factor("word", Kind.NOMINAL, ("x", "y"))
    table = FactorTable([Factor("a", Kind.NOMINAL, (0, 1)), word], {"a": np.zeros(4, int), "word": np.zeros(4, int)})
    with pytest.raises(SamplerError, match=sentence):
        SetSampler(table, ["a"], size=2, weights=weights)


def test_an_unknown_factor_of_weights_has_near_matches():
    with pytest.raises(FactorError, match=r"unknown factor 'shard'; did you mean 'share'\?"):
        SetSampler(table_of([0, 0], share=[1, 2]), ["a"], size=1, weights="shard")


def test_weights_and_a_tolerance_do_not_go_together():
    with pytest.raises(SamplerError, match="weights and the tolerance of 'x' cannot be combined; bin 'x' instead"):
        SetSampler(table_of([0, 0], x=[1, 2]), ["x"], size=1, weights=[1, 1], tolerance={"x": 1.0})
