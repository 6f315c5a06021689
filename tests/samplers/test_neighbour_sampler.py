"""Hard positives and negatives against the enumeration of a neighbour table, and the steps for which tables hold."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup import from_arrays
from setsup.errors import DataError, FactorError, SamplerError
from setsup.evaluation import nearest
from setsup.factors import Factor, FactorTable, Kind
from setsup.loading import loader, set_batches
from setsup.samplers import EpochSampler, NeighbourSampler, Zip, from_dict
from tests.samplers.agreement import assert_agrees

SAME = "id == anchor.id and camera != anchor.camera"
OTHER = "kind == anchor.kind and id != anchor.id"


def table_of(rows=60, seed=0):
    """Identities of three kinds from four cameras, of which some are unknown."""
    random = np.random.default_rng(seed)
    identity = random.integers(0, 9, rows)
    camera = random.integers(-1, 4, rows)
    return FactorTable(
        [
            Factor("id", Kind.NOMINAL, tuple(range(9))),
            Factor("camera", Kind.NOMINAL, tuple(range(4))),
            Factor("kind", Kind.NOMINAL, ("a", "b", "c")),
            Factor("half", Kind.ORDINAL, (0, 1)),
            Factor("weight", Kind.CONTINUOUS),
        ],
        {
            "id": identity,
            "camera": camera,
            "kind": identity % 3,
            "half": np.arange(rows) % 2,
            "weight": 4.0 ** (np.arange(rows) % 40 - 20),
        },
    )


def neighbours_of(table, k=12, seed=1):
    points = np.random.default_rng(seed).normal(size=(len(table), 3)) + table.codes("id")[:, None] * 0.3
    return nearest(points, points, k, own=np.arange(len(table)))[0]


def goes(table, anchor, row, role):
    """The constraints above, written out for one anchor and one row."""
    one, other = table.row(anchor), table.row(row)
    if anchor == row:
        return False
    if role == "positive":
        cameras = one["camera"], other["camera"]
        return one["id"] == other["id"] and None not in cameras and cameras[0] != cameras[1]
    return role == "any" or (one["kind"] == other["kind"] and one["id"] != other["id"])


def valid_of(table, neighbours, role, first=1, last=None, kept=lambda row: True):
    """Of each row: its valid rows, by their ranks in the neighbour table; all rows where there is no table."""
    found = {}
    for anchor in filter(kept, range(len(table))):
        rows = range(len(table)) if neighbours is None else neighbours[anchor][first - 1 : last].tolist()
        found[anchor] = [row for row in rows if row >= 0 and kept(row) and goes(table, anchor, row, role)]
    return found


def chances_of(*valid, weights=None):
    """Probability of each pair or triplet, from the valid rows of each position."""
    anchors = [anchor for anchor in valid[0] if all(one[anchor] for one in valid)]
    weights = np.ones(max(valid[0], default=0) + 1) if weights is None else weights
    chances = Counter()
    for anchor in anchors:
        rows = {(anchor,): weights[anchor] / weights[anchors].sum()}
        for one in valid:
            total = weights[one[anchor]].sum()
            longer = Counter()
            for some, chance in rows.items():
                for row in one[anchor]:
                    longer[*some, row] += chance * weights[row] / total
            rows = longer
        chances.update(rows)
    return chances


@pytest.mark.parametrize(
    ("roles", "ranks", "spans"),
    [
        ({"positive": SAME}, None, {"positive": (1, None)}),
        ({"negative": OTHER}, (2, 7), {"negative": (2, 7)}),
        ({"positive": SAME, "negative": OTHER}, (1, 9), {"positive": (1, 9), "negative": (1, 9)}),
        (
            {"positive": SAME, "negative": OTHER},
            {"positive": (3, 12), "negative": (1, 4)},
            {"positive": (3, 12), "negative": (1, 4)},
        ),
        ({"positive": SAME, "negative": OTHER}, {"negative": (1, 3)}, {"positive": None, "negative": (1, 3)}),
        ({}, (1, 5), {"any": (1, 5)}),
    ],
)
@pytest.mark.parametrize("where", [None, "half == 0 or id > 3"])
def test_rows_come_as_often_as_documented(roles, ranks, spans, where):
    table = table_of()
    neighbours = neighbours_of(table)
    kept = {None: lambda row: True}.get(where, lambda row: row % 2 == 0 or table.row(row)["id"] > 3)
    sampler = NeighbourSampler(table, neighbours, **roles, sets=16, ranks=ranks, where=where)
    valid = [
        valid_of(table, None, role, kept=kept) if span is None else valid_of(table, neighbours, role, *span, kept=kept)
        for role, span in spans.items()
    ]
    chances = chances_of(*valid)
    steps = int(12 / min(chances.values()) / 16)
    draw = sampler.block(0, steps)
    assert draw.indices.shape == (steps, 16, 1 + len(spans))
    assert draw.mask is None
    assert_agrees(draw.indices, chances)
    entry = sampler.report().entries[0]
    anchors = {row for row, *_ in chances}
    assert entry.anchors == len(anchors)
    assert 10**entry.log10_sets == pytest.approx(len(chances))
    assert entry.unreachable == len(table) - len({row for some in chances for row in some})
    assert entry.excluded == sum(not kept(row) for row in range(len(table)))
    for one, partners in zip(valid, entry.partners.values(), strict=True):
        counts = [len(one[row]) for row in anchors]
        assert (partners.least, partners.most) == (min(counts), max(counts))
        assert partners.mean == pytest.approx(np.mean(counts))


@pytest.mark.parametrize(
    ("roles", "ranks"), [({"negative": OTHER}, (2, 7)), ({"positive": SAME, "negative": OTHER}, {"negative": (1, 6)})]
)
def test_rows_come_by_weight(roles, ranks):
    table = table_of(30)
    neighbours, weights = neighbours_of(table), np.random.default_rng(6).integers(0, 4, 30) * 1e6
    options = {**roles, "sets": 16, "ranks": ranks}
    sampler = NeighbourSampler(table, neighbours, weights=weights, **options)
    valid = [
        valid_of(table, neighbours, role, *ranks, kept=weights.__getitem__)
        if isinstance(ranks, tuple)
        else valid_of(
            table, neighbours if role in ranks else None, role, *ranks.get(role, ()), kept=weights.__getitem__
        )
        for role in roles
    ]
    chances = chances_of(*valid, weights=weights)
    assert_agrees(sampler.block(0, int(8 / min(chances.values()) / 16)).indices, chances)
    entry = sampler.report().entries[0]
    assert entry == NeighbourSampler(table, neighbours, where=weights > 0, **options).report().entries[0]
    assert 10**entry.log10_sets == pytest.approx(len(chances))
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), table)
    assert np.array_equal(again[4].indices, sampler[4].indices)


def test_pairs_say_what_they_share():
    table = table_of()
    draw = NeighbourSampler(table, neighbours_of(table), positive=SAME)[5]
    assert (table.codes("id", draw.indices) == draw.inactive["id"][:, None]).all()
    assert not NeighbourSampler(table, neighbours_of(table), SAME, OTHER)[5].inactive


def test_sets_of_a_step_and_of_neighbouring_steps_are_unrelated():
    table = table_of(12, seed=4)
    neighbours = neighbours_of(table, 2)
    drawn = NeighbourSampler(table, neighbours, sets=2).block(0, 60_000).indices
    chances = chances_of(valid_of(table, neighbours, "any"))
    for one, other in ((drawn[:, 0], drawn[:, 1]), (drawn[:-1, 1], drawn[1:, 0])):
        assert_agrees(
            np.concatenate([one, other], axis=1),
            Counter({(*a, *b): chances[a] * chances[b] for a in chances for b in chances}),
        )


@pytest.mark.long("fuzzing")
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_any_tables(data):
    rows, k = data.draw(st.integers(1, 25)), data.draw(st.integers(1, 6))
    table = table_of(rows, data.draw(st.integers(0, 99)))
    entries = st.lists(st.lists(st.integers(-1, rows - 1), min_size=k, max_size=k), min_size=rows, max_size=rows)
    lines = data.draw(entries)
    neighbours = np.array([[-1 if row in line[:rank] else row for rank, row in enumerate(line)] for line in lines])
    first = data.draw(st.integers(1, k))
    last = data.draw(st.integers(first, k))
    near = data.draw(st.sampled_from([("positive", "negative"), ("negative",), ("positive",)]))
    ranks = {role: (first, last) for role in near}
    chances = chances_of(
        *[
            valid_of(table, neighbours, role, first, last) if role in near else valid_of(table, None, role)
            for role in ("positive", "negative")
        ]
    )
    weights = data.draw(st.sampled_from([None, "weight"]))
    if not chances:
        with pytest.raises(SamplerError, match="no row has a valid positive and negative"):
            NeighbourSampler(table, neighbours, SAME, OTHER, ranks=ranks, weights=weights)
        return
    options = {"ranks": ranks, "weights": weights, "seed": 3}
    drawn = NeighbourSampler(table, neighbours, SAME, OTHER, 64, **options).block(0, 8).indices
    assert set(map(tuple, drawn.reshape(-1, 3).tolist())) <= set(chances)


def test_each_table_holds_from_its_step_on():
    table = table_of()
    first, second, third = (neighbours_of(table, seed=seed) for seed in (1, 2, 3))
    sampler = NeighbourSampler(table, {10: second, 0: first, 20: third}, SAME, seed=7)
    block = sampler.block(0, 30).indices
    for start, one in ((0, first), (10, second), (20, third)):
        alone = NeighbourSampler(table, {start: one}, SAME, seed=7)
        assert np.array_equal(block[start : start + 10], alone.block(start, start + 10).indices)
        assert np.array_equal(block[start + 3], sampler[start + 3].indices)
    # what comes later, or came before, changes nothing
    assert np.array_equal(NeighbourSampler(table, first, SAME, seed=7).block(0, 10).indices, block[:10])
    assert np.array_equal(sampler.shard(1, 2)[6].indices, block[13])


def test_another_table_is_another_draw():
    table = table_of()
    one = neighbours_of(table)
    other = one.copy()
    other[0, [0, 1]] = other[0, [1, 0]]  # the same rows in another order
    anchors = [NeighbourSampler(table, found, sets=64)[0].indices[:, 0] for found in (one, other, one.astype(np.int16))]
    assert (anchors[0] != anchors[1]).mean() > 0.9
    assert np.array_equal(anchors[0], anchors[2])  # the same numbers, whatever they are stored as


def test_missing_refresh_is_an_error():
    table = table_of()
    first, second = neighbours_of(table), neighbours_of(table, seed=2)
    sampler = NeighbourSampler(table, {100: first, 300: second}, SAME, every=100)
    assert len(sampler.block(100, 200).indices) == 100
    assert len(sampler.block(300, 400).indices) == 100
    for step, sentence in (
        (99, "step 99 has no neighbour table: the first table starts at step 100; .*as the neighbour table of step 99"),
        (
            200,
            "step 200 has no neighbour table: the table of step 100 .*every=100 .*as the neighbour table of step 200",
        ),
        (400, "step 400 has no neighbour table: the table of step 300 .*as the neighbour table of step 400"),
    ):
        with pytest.raises(SamplerError, match=sentence):
            sampler[step]
    with pytest.raises(SamplerError, match="step 200 has no"):
        sampler.block(150, 320)
    assert "steps 100 to 199, entry 1" in str(sampler.report())
    assert "steps 300 to 399, entry 2" in str(sampler.report())


def test_what_goes_through_the_steps_stops_where_a_table_is_missing():
    """Draws are made ahead, in blocks and by the loader, but the error comes with the step that cannot be drawn."""
    table = table_of()
    sampler = NeighbourSampler(table, {5: neighbours_of(table)}, SAME, sets=4, every=100)
    images = from_arrays(
        {"image": np.zeros((60, 8, 8, 3), np.uint8)}, {name: table.values(name) for name in table.names}
    )
    own = NeighbourSampler(images.factors, {5: neighbours_of(table)}, SAME, sets=4, every=100)
    for drawn in (
        (draw.indices for draw in sampler.iterate(70)),
        (draw.indices for draw in sampler.shard(0, 1, 70)),
        (np.reshape(rows, (4, 2)) for rows in set_batches(sampler, start=70)),
        (batch["indices"].numpy() for batch in loader(images, own, start=70)),
    ):
        found = [next(drawn) for _ in range(35)]
        assert np.array_equal(found, sampler.block(70, 105).indices)
        with pytest.raises(SamplerError, match="step 105 has no neighbour table"):
            next(drawn)


def test_samplers_of_a_sampler_that_begins_later():
    table = table_of()
    later = NeighbourSampler(table, {5: neighbours_of(table)}, sets=4)
    both = Zip(EpochSampler(table, 2), later)
    assert both.first_step == 5
    assert both[5].indices.shape == (5, 2)
    assert np.array_equal(from_dict(json.loads(json.dumps(both.to_dict())), table)[9].indices, both[9].indices)
    with pytest.raises(SamplerError, match="step 4 has no neighbour table"):
        both[4]


def test_changing_the_given_array_changes_no_draw():
    table = table_of()
    neighbours = neighbours_of(table)
    sampler = NeighbourSampler(table, neighbours, SAME)
    before, plain = sampler[3].indices, sampler.to_dict()
    neighbours[:] = 0
    assert np.array_equal(sampler[3].indices, before)
    assert sampler.to_dict() == plain


def test_files_are_known_by_path_and_digest(tmp_path):
    table = table_of()
    neighbours = neighbours_of(table)
    path = tmp_path / "neighbours.npy"
    np.save(path, neighbours.astype(np.int32))
    sampler = NeighbourSampler(table, {0: path, 50: neighbours}, SAME, OTHER, ranks={"negative": (1, 8)}, every=50)
    plain = json.loads(json.dumps(sampler.to_dict()))
    assert plain["arguments"]["neighbours"]["0"]["path"] == str(path)
    again = from_dict(plain, table)
    assert np.array_equal(again.block(40, 60).indices, sampler.block(40, 60).indices)
    assert again.to_dict() == sampler.to_dict()
    assert np.array_equal(
        NeighbourSampler(table, neighbours, SAME)[2].indices, NeighbourSampler(table, str(path), SAME)[2].indices
    )
    neighbours[0, 0] = 59 if neighbours[0, 0] != 59 else 58
    np.save(path, neighbours)
    with pytest.raises(SamplerError, match=r"neighbours.npy had the digest \w{32} and now has \w{32}"):
        from_dict(plain, table)
    path.write_bytes(b"not numbers")
    with pytest.raises(SamplerError, match=r"neighbours.npy is not an .npy file of integers"):
        from_dict(plain, table)
    path.unlink()
    with pytest.raises(DataError, match=r"neighbours.npy"):
        from_dict(plain, table)


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"neighbours": np.zeros((59, 3), int)}, SamplerError, "has 59 rows, but the dataset has 60"),
        ({"neighbours": np.zeros((60, 3))}, SamplerError, "must be an integer array"),
        ({"neighbours": np.zeros((60, 0), int)}, SamplerError, "must be an integer array"),
        ({"neighbours": np.full((60, 2), 7)}, SamplerError, "lists row 7 twice among the neighbours of row 0"),
        (
            {"neighbours": np.full((60, 2), 60)},
            SamplerError,
            "contains 60 for row 0, rank 1; expected row numbers below 60",
        ),
        ({"neighbours": np.full((60, 2), -2)}, SamplerError, "contains -2 for row 0"),
        ({"neighbours": np.full((60, 2), -1)}, SamplerError, "no row has a valid positive"),
        ({"neighbours": np.arange(60)[:, None]}, SamplerError, "no row has a valid positive"),
        ({"neighbours": {}}, SamplerError, "must map at least one step"),
        ({"neighbours": {"one": [[0]] * 60}}, SamplerError, "integers from 0 .*'one'"),
        ({"neighbours": {-1: [[0]] * 60}}, SamplerError, "integers from 0 .*-1"),
        ({"neighbours": {0: {"path": "a.npy"}}}, SamplerError, "a path with its digest"),
        ({"neighbours": None}, SamplerError, "must be an integer array"),
        ({"positive": "idd == anchor.id"}, FactorError, "did you mean 'id'"),
        ({"ranks": (0, 3)}, SamplerError, "the first rank must be an integer of at least 1"),
        ({"ranks": (4, 3)}, SamplerError, "the last rank must be an integer of at least 4"),
        ({"ranks": (1, 13)}, SamplerError, "exceed the 12 neighbours in the table of step 0"),
        ({"ranks": 3}, SamplerError, "the first and the last rank"),
        (
            {"ranks": {"negative": (1, 3)}},
            SamplerError,
            r"ranks must be \(first, last\), or a mapping with the keys positive",
        ),
        ({"ranks": {}}, SamplerError, r"ranks must be \(first, last\), or a mapping with the keys positive"),
        ({"every": 0}, SamplerError, "every must be an integer of at least 1"),
        ({"sets": 0}, SamplerError, "sets must be an integer from 1"),
        ({"where": "half > 1"}, SamplerError, "no row has a valid positive .*60 left out by where"),
        ({"weights": [1.0] * 59}, SamplerError, r"weights must have shape \(60,\), one number per row"),
        ({"weights": [-1.0] * 60}, SamplerError, "non-negative"),
        ({"weights": [0.0] * 60}, SamplerError, "not all 0"),
        (
            {"weights": [1.0] + [0.0] * 59},
            SamplerError,
            "no row has a valid positive .*59 left out by where=, weights=",
        ),
        ({"seed": -1}, SamplerError, "seed"),
    ],
)
def test_wrong_arguments(arguments, error, sentence):
    table = table_of()
    with pytest.raises(error, match=sentence):
        NeighbourSampler(table, **{"neighbours": neighbours_of(table), "positive": SAME, **arguments})


def test_a_unit_of_the_weights_changes_no_draw():
    table, neighbours = (
        table_of(12, 3),
        np.array([[(row + step) % 12 for step in (1, 2, 3, 4, 5)] for row in range(12)]),
    )
    weights = np.arange(12) + 1.0
    drawn = [
        NeighbourSampler(table, neighbours, weights=weights * unit, sets=50)[3].indices
        for unit in (1.0, 2.0**1000, 2.0**-1060)
    ]
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] == drawn[2]).all()
