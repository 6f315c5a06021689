"""Row masks, row numbers and weights of every sampler, against enumeration."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from setsup.errors import SamplerError
from setsup.factors import Factor, FactorTable, Kind, concat
from setsup.samplers import (
    DomainSampler,
    EpochSampler,
    Mixture,
    OrbitSampler,
    SetSampler,
    TripletSampler,
    Zip,
    from_dict,
)

RARE = 1e-5


def table_of(codes, **numbers):
    factors = [Factor("a", Kind.NOMINAL, tuple(range(max(codes) + 1)))]
    columns = {"a": np.array(codes)}
    for name, column in numbers.items():
        factors.append(Factor(name, Kind.CONTINUOUS))
        columns[name] = np.array(column, dtype=np.float32)
    return FactorTable(factors, columns)


TABLE = table_of([0] * 5 + [1] * 4 + [2] * 6)
SAMPLERS = {
    "sets": lambda **options: SetSampler(TABLE, ["a"], size=2, sets=2, **options),
    "domains": lambda **options: DomainSampler(TABLE, "a", sets=2, size=2, **options),
    "independent domains": lambda **options: DomainSampler(
        TABLE, "a", sets=2, size=2, domains="independent", **options
    ),
    "orbits": lambda **options: OrbitSampler(TABLE, "a", sets=2, size=2, canonical="first", **options),
    "whole orbits": lambda **options: OrbitSampler(TABLE, "a", sets=2, **options),
    "triplets": lambda **options: TripletSampler(TABLE, "a", triplets=4, **options),
    "passes": lambda **options: EpochSampler(TABLE, size=4, **options),
}
each = pytest.mark.parametrize("name", SAMPLERS)


def drawn(sampler, steps=200):
    draw = sampler.block(0, steps)
    rows = draw.indices if draw.mask is None else draw.indices[draw.mask]
    found = set(rows.ravel().tolist())
    return found if draw.canonical is None else found | set(draw.canonical.ravel().tolist())


def ordered_chances(weights, size):
    """Probability of each ordered choice when rows are taken one by one, by weight among those left."""
    found = {}
    for order in itertools.permutations([row for row, weight in enumerate(weights) if weight > 0], size):
        chance, left = 1.0, float(sum(weights))
        for row in order:
            chance *= weights[row] / left
            left -= weights[row]
        found[order] = chance
    return found


def fits(seen, chances):
    """Whether counts follow probabilities, rare ones pooled."""
    total = sum(seen.values())
    assert set(seen) <= set(chances)
    common = [key for key in chances if total * chances[key] > 5]
    observed, expected = [seen[key] for key in common], [total * chances[key] for key in common]
    rest = total - sum(expected)
    if rest > 5:
        observed.append(total - sum(observed))
        expected.append(rest)
    return chisquare(observed, np.array(expected) * (sum(observed) / sum(expected))).pvalue > RARE


# -- which rows --------------------------------------------------------------------------------------------------------

KEPT = np.array([row not in (1, 4, 8, 9, 11) for row in range(15)])


@each
@pytest.mark.parametrize("form", [lambda rows: rows, list, np.flatnonzero, lambda rows: np.flatnonzero(rows).tolist()])
def test_rows_are_given_by_an_expression_by_booleans_or_by_numbers(name, form):
    by_factor = table_of(TABLE.column("a").tolist(), keep=KEPT)
    kind = {**SAMPLERS[name](where=KEPT).to_dict(), "fingerprint": by_factor.fingerprint}
    expression = from_dict({**kind, "arguments": {**kind["arguments"], "where": "keep == 1"}}, by_factor)
    listed = SAMPLERS[name](where=form(KEPT))
    assert np.array_equal(listed.block(0, 50).indices, expression.block(0, 50).indices)
    assert drawn(listed) == set(np.flatnonzero(KEPT).tolist())
    again = from_dict(json.loads(json.dumps(listed.to_dict())), TABLE)
    assert np.array_equal(again.block(0, 50).indices, listed.block(0, 50).indices)
    assert listed.report().entries[0].excluded == (~KEPT).sum()


@each
@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ([True] * 14, r"where must have shape \(15,\), one boolean per row, not \(14,\)"),
        (np.ones((15, 1), bool), r"where must have shape \(15,\), one boolean per row, not \(15, 1\)"),
        ([0, 1, 15], r"row 15 of where is out of range: the table has 15 rows"),
        ([0, -1], r"row -1 of where is out of range"),
        ([3, 1, 3], r"where lists row 3 twice; list each row once, and pass weights= to draw it more often"),
        ([0.0, 1.0], r"where must be an expression, one boolean per row, or row numbers, not"),
        (3, r"where must be an expression, one boolean per row, or row numbers, not 3"),
        ({"a": 1}, r"where must be an expression, one boolean per row, or row numbers"),
        ([False] * 15, r"leaves? none of the 15 rows"),
        ([], r"leaves? none of the 15 rows"),
    ],
)
def test_wrong_rows_are_one_clear_sentence(name, where, sentence):
    with pytest.raises(SamplerError, match=sentence):
        SAMPLERS[name](where=where)


def test_a_changed_mask_does_not_reach_the_sampler():
    mask = KEPT.copy()
    sampler = SetSampler(TABLE, ["a"], size=2, where=mask)
    mask[:] = False
    assert from_dict(sampler.to_dict(), TABLE).block(0, 9).indices.tolist() == sampler.block(0, 9).indices.tolist()


def test_the_pool_of_a_mixture_may_be_listed():
    base = SetSampler(TABLE, [], size=3, sets=2, where=np.arange(5))
    mixed = Mixture(base, [5, 7, 9, 11], p=1.0)
    assert set(mixed.block(0, 99).indices[:, 1].ravel().tolist()) == {5, 7, 9, 11}
    assert "pool of 4 rows" in str(mixed.report())
    again = from_dict(json.loads(json.dumps(mixed.to_dict())), TABLE)
    assert np.array_equal(again.block(0, 9).indices, mixed.block(0, 9).indices)
    with pytest.raises(SamplerError, match=r"the pool \(2 rows are listed\) and the base sampler share 1 rows"):
        Mixture(base, [4, 7], p=1.0)
    with pytest.raises(SamplerError, match="pool must be an expression"):
        Mixture(base, None, p=1.0)


def test_a_column_of_pandas_is_an_array():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"keep": KEPT, "weight": np.arange(15)})
    sampler = SetSampler(TABLE, ["a"], size=2, where=frame["keep"], weights=frame["weight"])
    other = SetSampler(TABLE, ["a"], size=2, where=KEPT, weights=np.arange(15))
    assert sampler.to_dict() == other.to_dict()
    assert np.array_equal(sampler.block(0, 9).indices, other.block(0, 9).indices)


# -- weights -----------------------------------------------------------------------------------------------------------

WEIGHTS = np.array([4, 1, 0, 2, 3, 1, 1, 5, 2, 1, 2, 3, 4, 0, 0], dtype=float)


@each
def test_rows_without_weight_are_never_drawn(name):
    sampler = SAMPLERS[name](weights=WEIGHTS)
    assert drawn(sampler) == set(np.flatnonzero(WEIGHTS).tolist())
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), TABLE)
    assert np.array_equal(again.block(0, 50).indices, sampler.block(0, 50).indices)
    assert sampler.report().entries[0].excluded == 3


@each
def test_weights_may_be_a_factor(name):
    table = table_of(TABLE.column("a").tolist(), weight=WEIGHTS)
    by_array = SAMPLERS[name](weights=WEIGHTS)
    data = by_array.to_dict()
    data = {**data, "fingerprint": table.fingerprint, "arguments": {**data["arguments"], "weights": "weight"}}
    by_factor = from_dict(data, table)
    assert np.array_equal(by_factor.block(0, 50).indices, by_array.block(0, 50).indices)
    assert "rows are drawn by weight: weight" in by_factor.report().notes
    assert "rows are drawn by weight: a number for each row" in by_array.report().notes
    assert not any("weight" in note for note in SAMPLERS[name]().report().notes)


def test_reports_name_the_weights_of_each_set_and_of_samplers_within():
    table = table_of(TABLE.column("a").tolist(), weight=WEIGHTS, other=WEIGHTS)
    sets = SetSampler(table, active=["a"], size=2, sets=2, weights=["weight", None], on_small_group="drop")
    assert sets.report().notes == [
        "rows are drawn by weight: weight (set 0), none (set 1)",
        "other not fixed: a continuous factor needs a tolerance",  # but not weight, which is no matter of the set
    ]
    base = SetSampler(table, [], size=2, weights="weight", where="a > 0")
    mixed = Mixture(base, [0, 1, 4], sets=[0], p=0.5, weights="other")
    assert mixed.report().notes == [
        "rows are drawn by weight: weight",
        "rows of set 0 come from a pool of 3 rows, drawn by weight (other), with probability 0.5",
    ]
    both = Zip(SetSampler(table, ["a"], size=2, weights="weight"), EpochSampler(table, size=4, weights="other"))
    assert [note for note in both.report().notes if "drawn by weight:" in note] == [
        "sets 0 to 1: rows are drawn by weight: weight",
        "set 2: rows are drawn by weight: other",
    ]


@pytest.mark.parametrize("domains", ["balanced", "independent"])
def test_rows_of_domains_follow_successive_sampling(domains):
    sampler = DomainSampler(TABLE, "a", sets=2, size=3, domains=domains, weights=WEIGHTS)
    draw = sampler.block(0, 4500)
    assert np.abs(np.bincount(draw.inactive["a"].ravel()) - 3000).max() <= (0 if domains == "balanced" else 250)
    for domain, begin, end in ((0, 0, 5), (1, 5, 9), (2, 9, 15)):
        rows = draw.indices[draw.inactive["a"] == domain] - begin
        assert fits(Counter(map(tuple, rows.tolist())), ordered_chances(WEIGHTS[begin:end], 3))


def test_visits_of_a_weighted_domain_are_independent():
    draw = DomainSampler(table_of([0] * 4), "a", sets=1, size=1, weights=[1, 2, 3, 4]).block(0, 8001).indices.ravel()
    chances = {(i, j): (i + 1) * (j + 1) / 100 for i, j in itertools.product(range(4), repeat=2)}
    assert fits(Counter(zip(draw[:-1:2].tolist(), draw[1::2].tolist(), strict=True)), chances)


def test_short_and_replaced_domains_keep_their_weights():
    table, weights = table_of([0, 0, 1, 1, 1, 1]), [1, 3, 1, 2, 3, 4]
    short = DomainSampler(table, "a", sets=2, size=3, on_small_group="short", weights=weights).block(0, 4000)
    rows = short.indices[short.inactive["a"] == 0]
    assert (short.mask[short.inactive["a"] == 0] == [True, True, False]).all()
    assert (rows[:, 2] == rows[:, 0]).all()
    assert fits(Counter(map(tuple, rows[:, :2].tolist())), {(0, 1): 0.25, (1, 0): 0.75})
    replaced = DomainSampler(table, "a", sets=2, size=3, on_small_group="replace", weights=weights).block(0, 4000)
    rows = replaced.indices[replaced.inactive["a"] == 0]
    chances = {key: 0.25 ** key.count(0) * 0.75 ** key.count(1) for key in itertools.product((0, 1), repeat=3)}
    assert fits(Counter(map(tuple, rows.tolist())), chances)


def test_members_of_orbits_follow_successive_sampling():
    draw = OrbitSampler(TABLE, "a", sets=3, size=2, weights=WEIGHTS).block(0, 3000)
    for orbit, begin, end in ((0, 0, 5), (1, 5, 9), (2, 9, 15)):
        rows = draw.indices[draw.inactive["a"] == orbit] - begin
        assert fits(Counter(map(tuple, rows.tolist())), ordered_chances(WEIGHTS[begin:end], 2))


def test_whole_orbits_have_all_rows_of_weight():
    draw = OrbitSampler(TABLE, "a", sets=3, weights=WEIGHTS, canonical="first").block(0, 20)
    for orbit, rows in ((0, [0, 1, 3, 4]), (1, [5, 6, 7, 8]), (2, [9, 10, 11, 12])):
        assert (draw.indices[draw.inactive["a"] == orbit] == rows).all()
    with pytest.raises(SamplerError, match="no row with canonical"):
        OrbitSampler(table_of([0, 0, 1], x=[1, 2, 1]), "a", sets=2, weights=[0, 1, 1], canonical="x == 1")


def triplet_chances(codes, weights, choose):
    """Probability of every triplet, from its definition."""
    rows, codes = [row for row, weight in enumerate(weights) if weight > 0], np.array(codes)
    able = [a for a in set(codes.tolist()) if sum(codes[row] == a for row in rows) > 1]
    total = {a: sum(weights[row] for row in rows if codes[row] == a) for a in set(codes.tolist())}
    found = {}
    for orbit in able:
        chance = total[orbit] / sum(total[a] for a in able) if choose == "rows" else 1 / len(able)
        inside = [row for row in rows if codes[row] == orbit]
        outside = [row for row in rows if codes[row] != orbit]
        for anchor, positive in itertools.permutations(inside, 2):
            pair = weights[anchor] / total[orbit] * weights[positive] / (total[orbit] - weights[anchor])
            for negative in outside:
                found[anchor, positive, negative] = (
                    chance * pair * weights[negative] / sum(weights[row] for row in outside)
                )
    assert sum(found.values()) == pytest.approx(1)
    return found


@pytest.mark.parametrize("choose", ["rows", "groups"])
@pytest.mark.parametrize("heavy", [1, 500])
def test_triplets_by_weight_follow_their_distribution(choose, heavy):
    codes, weights = [0, 0, 0, 1, 1, 2, 3, 3], [1, 2, 1, 3, heavy, 2, 0, 1]
    sampler = TripletSampler(table_of(codes), "a", triplets=4, choose=choose, on_small_group="drop", weights=weights)
    seen = Counter(map(tuple, sampler.block(0, 5000).indices.reshape(-1, 3).tolist()))
    assert fits(seen, triplet_chances(codes, weights, choose))
    assert len(triplet_chances(codes, weights, choose)) == round(10 ** sampler.report().entries[0].log10_sets)


def test_negatives_of_a_heavy_orbit_keep_their_chances():
    """What is left without the heavy orbit would be lost in a difference of sums."""
    codes, weights = [0, 0, 1, 1, 2, 2], [1, 2, 1e18, 1e18, 3, 4]
    rows = TripletSampler(table_of(codes), "a", triplets=1, choose="groups", weights=weights).block(0, 9000).indices
    negatives = rows[np.isin(rows[:, 0, 0], (2, 3)), 0, 2]
    assert fits(Counter(negatives.tolist()), {0: 0.1, 1: 0.2, 4: 0.3, 5: 0.4})


def test_weighted_batches_follow_successive_sampling():
    weights = np.array([1.0, 2, 0, 3, 4])
    sampler = EpochSampler(table_of([0] * 5), size=2, epochs=2, weights=weights)
    assert (sampler.steps_per_epoch, len(sampler)) == (2, 4)
    endless = EpochSampler(table_of([0] * 5), size=2, weights=weights).block(0, 6000).indices[:, 0]
    assert fits(Counter(map(tuple, endless.tolist())), ordered_chances(weights, 2))
    assert (
        "each batch is a draw of its own, so that an epoch may have a row several times, or not at all"
        in sampler.report().notes
    )


def test_the_last_weighted_batch_of_an_epoch_is_padded():
    sampler = EpochSampler(table_of([0] * 7), size=3, partial="pad", weights=[1, 1, 1, 1, 1, 0, 2])
    assert sampler.block(0, 4).mask is None
    padded = EpochSampler(table_of([0] * 7), size=4, partial="pad", weights=[1, 1, 1, 1, 1, 0, 2]).block(0, 4)
    assert padded.mask[:, 0].tolist() == [[True] * 4, [True, True, False, False]] * 2
    few = EpochSampler(table_of([0] * 3), size=5, partial="pad", weights=[1, 0, 2]).block(0, 3000)
    assert (few.mask[:, 0] == [True, True, False, False, False]).all()
    assert (np.sort(few.indices[:, 0, :2], axis=1) == [0, 2]).all()
    assert (few.indices[:, 0, 2:] == few.indices[:, 0, :1]).all()
    with pytest.raises(SamplerError, match="rows in table order cannot be drawn by weight; pass shuffle=True"):
        EpochSampler(table_of([0] * 3), size=1, weights=[1, 0, 2], shuffle=False)
    with pytest.raises(SamplerError, match=r"where= .* and weights= leave none of the 3 rows"):
        EpochSampler(table_of([0] * 3), size=1, weights=[1, 0, 2], where=[1])


def test_rows_of_a_weighted_pool_follow_successive_sampling():
    table = concat([table_of([0] * 4), table_of([0] * 4)])
    base = SetSampler(table, [], size=3, sets=2, where="part == 'a'")
    weights = np.array([9, 9, 9, 9, 1, 2, 3, 4.0])
    rows = Mixture(base, "part == 'b'", p=1.0, weights=weights).block(0, 6000).indices[:, 1] - 4
    assert fits(Counter(map(tuple, rows.tolist())), ordered_chances(weights[4:], 3))
    with pytest.raises(SamplerError, match=r"the pool .* has 2 rows, but a set requires 3"):
        Mixture(base, "part == 'b'", p=1.0, weights=[0, 0, 0, 0, 1, 0, 0, 1])


def test_short_sets_are_in_the_order_of_successive_sampling():
    weights = [1.0, 2, 5, 0]
    draw = SetSampler(table_of([0] * 4), [], size=6, sets=1, on_small_group="short", weights=weights).block(0, 6000)
    assert draw.mask[:, 0].tolist() == [[True] * 3 + [False] * 3] * 6000
    assert fits(Counter(map(tuple, draw.indices[:, 0, :3].tolist())), ordered_chances(weights, 3))
    tiny = SetSampler(table_of([0] * 2), [], size=3, sets=1, on_small_group="short", weights=[1.0, 5e-324]).block(0, 50)
    assert (tiny.indices[:, 0, :2] == [0, 1]).all()


@given(
    codes=st.lists(st.integers(0, 3), min_size=2, max_size=14),
    name=st.sampled_from(["domains", "orbits", "triplets", "passes"]),
    data=st.data(),
)
def test_any_weights_of_any_sampler(codes, name, data):
    weights = data.draw(st.lists(st.sampled_from([0, 1e-9, 1, 3, 1e9]), min_size=len(codes), max_size=len(codes)))
    kept = data.draw(st.lists(st.booleans(), min_size=len(codes), max_size=len(codes)))
    table = table_of(codes)
    make = {
        "domains": lambda **given: DomainSampler(
            table, "a", sets=9, size=2, domains="all", on_small_group="drop", **given
        ),
        "orbits": lambda **given: OrbitSampler(table, "a", 2, 2, values="independent", on_small_group="drop", **given),
        "triplets": lambda **given: TripletSampler(table, "a", triplets=3, on_small_group="drop", **given),
        "passes": lambda **given: EpochSampler(table, size=2, **given),
    }[name]
    allowed = {row for row, weight in enumerate(weights) if weight > 0 and kept[row]}
    counts = Counter(codes[row] for row in allowed)
    enough = len(allowed) > 1 if name == "passes" else max(counts.values(), default=0) > 1
    if not enough or (name == "triplets" and len(counts) < 2):
        with pytest.raises(SamplerError):
            make(weights=weights, where=kept)
        return
    draw = make(weights=weights, where=kept).block(0, 30)
    assert set(draw.indices.ravel().tolist()) <= allowed
    pairs = draw.indices[..., :2]
    assert (pairs[..., 0] != pairs[..., 1]).all()
    if name == "triplets":
        anchor, positive, negative = np.moveaxis(np.array(codes)[draw.indices], -1, 0)
        assert (anchor == positive).all()
        assert (anchor != negative).all()
    if draw.inactive:
        assert (np.array(codes)[draw.indices] == draw.inactive["a"][..., None]).all()


def test_a_zip_takes_samplers_with_weights_and_masks():
    joined = Zip(SetSampler(TABLE, [], size=2, where=[0, 1, 2]), EpochSampler(TABLE, size=3, weights=WEIGHTS))
    again = from_dict(json.loads(json.dumps(joined.to_dict())), TABLE)
    assert np.array_equal(again.block(0, 20).indices, joined.block(0, 20).indices)
    assert joined.rows_where().all()
    assert drawn(Zip(joined.samplers[0])) == {0, 1, 2}
