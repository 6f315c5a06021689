"""Batches balanced over domains, counted by hand: rounds, visits, small domains, and steps far away."""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from setsup.errors import RowError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import DomainSampler


def table_of(sizes, unknown=0):
    """Rows of domain d come ``sizes[d]`` times, well mixed; the last domain level of all is nobody's."""
    codes = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(unknown, -1)])
    codes = np.random.default_rng(0).permutation(codes)
    domain = Factor("domain", Kind.NOMINAL, tuple(f"d{number}" for number in range(len(sizes) + 1)))
    half = Factor("half", Kind.ORDINAL, (0, 1))
    return FactorTable([domain, half], {"domain": codes, "half": np.arange(len(codes)) % 2})


def visits_of(table, draw):
    """Rows of each domain's visits in order of steps; every set is checked to be of the domain it says it holds."""
    codes = table.codes("domain", draw.indices)
    assert (codes == draw.inactive["domain"][..., None]).all()
    found = defaultdict(list)
    for step in range(len(codes)):
        for place in range(codes.shape[1]):
            found[int(codes[step, place, 0])].append(draw.indices[step, place].tolist())
    return found


def even(counts, cells):
    """Whether the given cells, and no others, come equally often."""
    assert set(counts) <= set(cells)
    observed = [counts[cell] for cell in cells]
    return len(cells) == 1 or chisquare(observed).pvalue > 1e-4


# -- rounds ------------------------------------------------------------------------------------------------------------

SHAPES = [(5, 2), (7, 4), (6, 3), (6, 4), (9, 6), (7, 7), (4, 1), (1, 1), (12, 8), (12, 5)]


@pytest.mark.parametrize(("count", "sets"), SHAPES)
def test_a_round_has_every_domain_equally_often_and_no_batch_has_one_twice(count, sets):
    sampler = DomainSampler(table_of([3] * count), "domain", sets=sets, size=2)
    shared = math.gcd(count, sets)
    steps = count // shared
    for lap in range(6):
        codes = sampler.block(lap * steps, (lap + 1) * steps).inactive["domain"]
        assert codes.shape == (steps, sets)
        assert all(len(set(batch)) == sets for batch in codes.tolist())
        assert Counter(codes.ravel().tolist()) == dict.fromkeys(range(count), sets // shared)


@pytest.mark.parametrize(("count", "sets"), SHAPES)
def test_a_round_walks_one_permutation_in_strides(count, sets):
    sampler = DomainSampler(table_of([3] * count), "domain", sets=sets, size=2)
    shared = math.gcd(count, sets)
    codes = sampler.block(0, 8 * count // shared).inactive["domain"].reshape(8, sets // shared, count)
    orders = codes[:, 0].tolist()
    assert (codes == codes[:, :1]).all()
    assert all(sorted(order) == list(range(count)) for order in orders)
    assert count < 5 or len({tuple(order) for order in orders}) > 1


def test_orders_of_rounds_are_uniform_and_unrelated():
    sampler = DomainSampler(table_of([2, 2, 2]), "domain", sets=1, size=1)
    orders = [tuple(order) for order in sampler.block(0, 3 * 6000).inactive["domain"].reshape(-1, 3).tolist()]
    every = list(itertools.permutations(range(3)))
    assert even(Counter(orders), every)
    assert even(Counter(itertools.pairwise(orders)), list(itertools.product(every, every)))


# -- visits ------------------------------------------------------------------------------------------------------------


def assert_passes(visits, members, size):
    """Every n/gcd(n, K) visits walk one permutation of the n members K/gcd(n, K) times; the next walk another."""
    n = len(members)
    turns, repeats = n // math.gcd(n, size), size // math.gcd(n, size)
    orders = []
    for start in range(0, len(visits) - turns + 1, turns):
        walked = np.array(visits[start : start + turns]).reshape(repeats, n)
        assert (walked == walked[0]).all()
        assert sorted(walked[0].tolist()) == members
        orders.append(tuple(walked[0].tolist()))
    assert all(len(set(visit)) == len(visit) for visit in visits)
    return orders


@settings(max_examples=60)
@given(data=st.data())
def test_visits_take_consecutive_rows_of_permutations_that_are_renewed(data):
    size = data.draw(st.integers(1, 6))
    sizes = data.draw(st.lists(st.integers(size, 13), min_size=1, max_size=6))
    sets = data.draw(st.integers(1, len(sizes)))
    table = table_of(sizes, unknown=data.draw(st.integers(0, 3)))
    sampler = DomainSampler(table, "domain", sets=sets, size=size, seed=data.draw(st.integers(0, 2**64 - 1)))
    visits = visits_of(table, sampler.block(0, 60))
    for domain, taken in visits.items():
        assert_passes(taken, table.rows(f"domain == 'd{domain}'").tolist(), size)


def test_permutations_are_renewed_and_differ_between_domains():
    table = table_of([10, 10])
    visits = visits_of(table, DomainSampler(table, "domain", sets=2, size=4).block(0, 50))
    places = []
    for domain in (0, 1):
        members = table.rows(f"domain == 'd{domain}'").tolist()
        orders = assert_passes(visits[domain], members, 4)  # 10/gcd(10, 4) = 5 visits a permutation
        assert len(orders) == len(set(orders)) == 10
        places += [tuple(members.index(row) for row in order) for order in orders]
    assert len(set(places)) == 20


def test_orders_of_rows_are_uniform():
    table = table_of([3, 4])
    visits = visits_of(table, DomainSampler(table, "domain", sets=2, size=3).block(0, 6000))
    assert even(Counter(map(tuple, visits[0])), list(itertools.permutations(table.rows("domain == 'd0'").tolist())))


def test_visits_number_on_through_the_rounds():
    table = table_of([8, 8, 8])  # a visit a round and domain, four visits a pass: passes outlast rounds
    visits = visits_of(table, DomainSampler(table, "domain", sets=3, size=2).block(0, 12))
    for domain in range(3):
        assert_passes(visits[domain], table.rows(f"domain == 'd{domain}'").tolist(), 2)


def test_any_step_far_away_keeps_the_arithmetic():
    sizes, sets, size = [7, 8, 9, 12, 10], 2, 4
    table = table_of(sizes)
    sampler = DomainSampler(table, "domain", sets=sets, size=size)
    # a round is 5 steps with 2 visits; 2520 is a multiple of every n/gcd(n, K), so passes start at this round
    start = (2**62 // 5 // 2520) * 2520 * 5
    near, far = sampler.block(0, 180), sampler.block(start, start + 180)
    for draw in (near, far):
        codes = draw.inactive["domain"]
        assert all(len(set(batch)) == sets for batch in codes.tolist())
        assert (np.bincount(codes[:5].ravel()) == 2).all()
        for domain, taken in visits_of(table, draw).items():
            assert_passes(taken, table.rows(f"domain == 'd{domain}'").tolist(), size)
    assert not np.array_equal(near.indices, far.indices)
    assert np.array_equal(sampler[start + 77].indices, far.indices[77])
    last = sampler[2**63 - 1]
    assert (table.codes("domain", last.indices) == last.inactive["domain"][:, None]).all()
    with pytest.raises(RowError, match=r"2\*\*63"):
        sampler[2**63]


def test_visits_whose_positions_exceed_64_bits_overlap_as_they_should():
    """Visits take consecutive positions, round and round: of 10¹⁵ rows, a late one meets the first."""
    levels = [Factor(name, Kind.ORDINAL, tuple(range(1000))) for name in "abcde"]
    grid, rows, size = FactorTable([Factor("domain", Kind.NOMINAL, ("x", "y")), *levels]), 10**15, 10_007
    sampler = DomainSampler(grid, "domain", sets=2, size=size)
    visit = -(-9_500 * rows // size)
    first, late = (sampler[step].indices.reshape(2, size) for step in (0, visit))
    assert visit * size > 2**63
    for one in first:
        shared = max(len(np.intersect1d(one, other)) for other in late)
        assert shared == size - (visit * size - 9_500 * rows)


def test_large_domains_are_passed_over_too():
    table = table_of([5000, 4097, 30])
    draw = DomainSampler(table, "domain", sets=3, size=30).block(0, 500)  # 5000 / gcd(5000, 30) = 500 visits
    visits = visits_of(table, draw)
    assert Counter(itertools.chain.from_iterable(visits[0])) == dict.fromkeys(table.rows("domain == 'd0'").tolist(), 3)
    for domain in range(3):
        assert_passes(visits[domain], table.rows(f"domain == 'd{domain}'").tolist(), 30)
    first = np.array(visits[1][:136]).ravel()  # 136 · 30 = 4,080 of 4,097 rows
    assert len(set(first.tolist())) == 4080
    assert abs(np.corrcoef(np.arange(4080), first)[0, 1]) < 0.1


def test_thousands_of_domains():
    table = table_of([2] * 4999 + [3])
    sampler = DomainSampler(table, "domain", sets=8, size=2)
    codes = sampler.block(0, 2 * 625).inactive["domain"].reshape(2, 5000)
    assert (np.sort(codes, axis=1) == np.arange(5000)).all()
    assert (codes[0] != codes[1]).mean() > 0.9
    assert abs(np.corrcoef(np.arange(5000), codes[0])[0, 1]) < 0.1
    whole = DomainSampler(table, "domain", sets=5000, size=2)[0]
    assert sorted(whole.inactive["domain"].tolist()) == list(range(5000))


# -- which domains -----------------------------------------------------------------------------------------------------


def test_more_domains_than_there_are():
    table = table_of([4, 5, 6])
    with pytest.raises(SamplerError, match=r"sets=4 .* 3 drawable .*domains='all'"):
        DomainSampler(table, "domain", sets=4, size=2)
    with pytest.raises(SamplerError, match="3 drawable"):
        DomainSampler(table, "domain", sets=4, size=2, domains="independent")
    draw = DomainSampler(table, "domain", sets=4, size=2, domains="all").block(0, 60)
    assert draw.indices.shape == (60, 3, 2)
    assert (np.sort(draw.inactive["domain"], axis=1) == [0, 1, 2]).all()
    for domain, taken in visits_of(table, draw).items():
        assert len(taken) == 60
        assert_passes(taken, table.rows(f"domain == 'd{domain}'").tolist(), 2)
    two = DomainSampler(table, "domain", sets=2, size=2, domains="all")[0]
    assert len(set(two.inactive["domain"].tolist())) == 2


def test_independent_domains_are_a_fresh_uniform_choice_each_step():
    table = table_of([3, 4, 5, 9])
    sampler = DomainSampler(table, "domain", sets=2, size=2, domains="independent")
    draw = sampler.block(0, 6000)
    chosen = [tuple(pair) for pair in draw.inactive["domain"].tolist()]
    pairs = list(itertools.permutations(range(4), 2))
    assert even(Counter(chosen), pairs)
    assert even(Counter(itertools.pairwise(chosen)), list(itertools.product(pairs, pairs)))
    for domain, taken in visits_of(table, draw).items():
        members = table.rows(f"domain == 'd{domain}'").tolist()
        assert even(Counter(map(tuple, taken)), list(itertools.permutations(members, 2)))


def test_rows_without_a_domain_and_rows_left_out_never_come():
    table = table_of([6, 7, 8], unknown=9)
    sampler = DomainSampler(table, "domain", sets=2, size=2, where="half == 1")
    visits = visits_of(table, sampler.block(0, 300))
    for domain in range(3):
        members = [row for row, code in enumerate(table.codes("domain")) if code == domain and row % 2 == 1]
        assert_passes(visits[domain], members, 2)
        assert set(itertools.chain.from_iterable(visits[domain])) == set(members)


def test_domains_of_two_factors():
    grid = FactorTable(
        [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in zip("abc", (2, 3, 4), strict=True)]
    )
    draw = DomainSampler(grid, ["a", "c"], sets=8, size=3)[3]
    assert sorted(zip(draw.inactive["a"].tolist(), draw.inactive["c"].tolist(), strict=True)) == [
        (a, c) for a in range(2) for c in range(4)
    ]
    for name in "ac":
        assert (grid.codes(name, draw.indices) == draw.inactive[name][:, None]).all()
    assert (np.sort(grid.codes("b", draw.indices), axis=1) == [0, 1, 2]).all()
    columns = FactorTable(grid.factors, {name: grid.codes(name) for name in grid.names})
    same = DomainSampler(columns, ["a", "c"], sets=8, size=3)[3]
    assert np.array_equal(same.indices, draw.indices)


# -- small domains -----------------------------------------------------------------------------------------------------


def test_small_domains_are_refused_by_name():
    table = table_of([9, 3, 1, 2, 4, 5, 2, 9])
    with pytest.raises(SamplerError, match=r"6 of 8 .*fewer than the 8 rows.*'?drop'?") as refusal:
        DomainSampler(table, "domain", sets=2, size=8)
    sentence = str(refusal.value)
    order = [sentence.index(f"domain = {name}: {size}") for name, size in (("d2", 1), ("d3", 2), ("d1", 3), ("d4", 4))]
    assert order == sorted(order)
    assert "d5" not in sentence
    assert "d6: 2" in sentence


def test_small_domains_can_be_left_out():
    table = table_of([9, 3, 8, 2, 10])
    sampler = DomainSampler(table, "domain", sets=2, size=8, on_small_group="drop")
    draw = sampler.block(0, 200)
    assert draw.mask is None
    visits = visits_of(table, draw)
    assert set(visits) == {0, 2, 4}
    assert (np.bincount(draw.inactive["domain"][:3].ravel(), minlength=5) == [2, 0, 2, 0, 2]).all()
    for domain, taken in visits.items():
        assert_passes(taken, table.rows(f"domain == 'd{domain}'").tolist(), 8)
    with pytest.raises(SamplerError, match="3 drawable"):
        DomainSampler(table, "domain", sets=4, size=8, on_small_group="drop")
    with pytest.raises(SamplerError, match="fewer than the 20 rows"):
        DomainSampler(table, "domain", sets=1, size=20, on_small_group="drop")


@pytest.mark.parametrize("domains", ["balanced", "all", "independent"])
def test_short_domains_give_all_their_rows_once_and_pad(domains):
    table = table_of([3, 8, 1, 5])
    draw = DomainSampler(table, "domain", sets=3, size=5, on_small_group="short", domains=domains).block(0, 6000)
    assert draw.mask is not None
    orders = defaultdict(Counter)
    for rows, mask, domain in zip(
        draw.indices.reshape(-1, 5), draw.mask.reshape(-1, 5), draw.inactive["domain"].ravel(), strict=True
    ):
        orders[int(domain)][tuple(rows.tolist()), tuple(mask.tolist())] += 1
    for domain, few in ((0, 3), (2, 1)):
        members = table.rows(f"domain == 'd{domain}'").tolist()
        mask = tuple(slot < few for slot in range(5))
        cells = [((*order, *(order[:1] * (5 - few))), mask) for order in itertools.permutations(members)]
        assert set(orders[domain]) == set(cells)
        assert even(orders[domain], cells)
    for domain in (1, 3):
        assert all(mask == (True,) * 5 and len(set(rows)) == 5 for rows, mask in orders[domain])
    if domains != "independent":
        for domain in (1, 3):
            taken = visits_of(table, draw)[domain]
            assert_passes(taken, table.rows(f"domain == 'd{domain}'").tolist(), 5)


@pytest.mark.parametrize("domains", ["balanced", "independent"])
def test_short_domains_are_drawn_with_repeats_if_asked(domains):
    table = table_of([2, 8])
    draw = DomainSampler(table, "domain", sets=2, size=3, on_small_group="replace", domains=domains).block(0, 8000)
    assert draw.mask is None
    visits = visits_of(table, draw)
    members = table.rows("domain == 'd0'").tolist()
    taken = [tuple(visit) for visit in visits[0]]
    cells = list(itertools.product(members, repeat=3))
    assert even(Counter(taken), cells)
    assert even(Counter(itertools.pairwise(taken)), list(itertools.product(cells, cells)))
    assert all(len(set(visit)) == 3 for visit in visits[1])
    if domains == "balanced":
        assert_passes(visits[1], table.rows("domain == 'd1'").tolist(), 3)


def test_mask_is_none_where_every_slot_counts():
    table = table_of([3, 8, 8, 8])
    sampler = DomainSampler(table, "domain", sets=1, size=5, on_small_group="short")
    for step in range(16):
        draw = sampler[step]
        assert (draw.mask is None) == (draw.inactive["domain"][0] != 0)


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"domains": "balance"}, "did you mean 'balanced'"),
        ({"on_small_group": "dorp"}, "did you mean 'drop'"),
        ({"sets": 0}, "sets must be an integer from 1"),
        ({"size": 0}, "size must be an integer from 1"),
        ({"size": 2.0}, "size must be an integer from 1"),
        ({"sets": True}, "sets must be an integer from 1"),
        ({"domain": []}, "at least one factor"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
    ],
)
def test_wrong_arguments(arguments, sentence):
    with pytest.raises(SamplerError, match=sentence):
        DomainSampler(table_of([4, 4, 4, 4]), **{"domain": "domain", "sets": 2, "size": 2, **arguments})


def test_the_report_names_the_round():
    report = DomainSampler(table_of([4, 9, 4, 4, 5, 4]), "domain", sets=4, size=4).report()
    assert "4 of 6 domains" in str(report)
    assert "3 steps" in str(report)
    assert (report.entries[0].smallest, report.entries[0].largest) == (4, 9)
