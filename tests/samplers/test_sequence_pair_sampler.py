"""Pairs near in time against the enumeration of all of them."""

import itertools
import json
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from setsup.errors import FactorError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import SequencePairSampler, from_dict
from tests.samplers.agreement import assert_agrees

FRAMES = tuple(range(12))


def table_of(videos, mixed=True):
    """A row for each frame number of each video, None for an unknown one; mixed, unless they are to stay in order."""
    rows = [(video, frame) for video, frames in enumerate(videos) for frame in frames]
    if mixed:
        rows = [rows[n] for n in np.random.default_rng(0).permutation(len(rows))]
    frames = [-1 if frame is None else frame for _, frame in rows]
    return FactorTable(
        [
            Factor("frame", Kind.ORDINAL, FRAMES),
            Factor("video", Kind.NOMINAL, tuple(f"v{n}" for n in range(len(videos)))),
            Factor("seconds", Kind.CONTINUOUS, unit="s"),
            Factor("half", Kind.ORDINAL, (0, 1)),
        ],
        {
            "frame": frames,
            "video": [video for video, _ in rows],
            "seconds": [math.nan if frame < 0 else frame * 0.1 for frame in frames],
            "half": np.arange(len(rows)) % 2,
        },
    )


def neighbours_of(table, window, kept=lambda row: True):
    """Of each row that has any: the rows at each later time of its video within the window."""
    video, frame = table.codes("video").tolist(), table.codes("frame").tolist()
    rows = [row for row in range(len(table)) if frame[row] >= 0 and kept(row)]
    found = {}
    for row in rows:
        times = defaultdict(list)
        for other in rows:
            if video[other] == video[row] and 0 < frame[other] - frame[row] <= window:
                times[frame[other]].append(other)
        if times:
            found[row] = times
    return found


def chances_of(neighbours):
    return {
        (row, other): 1 / len(neighbours) / len(times) / len(rows)
        for row, times in neighbours.items()
        for rows in times.values()
        for other in rows
    }


VIDEOS = {
    "all frames": [range(6), range(4)],
    "missing frames": [[0, 1, 4, 5, 9], [2, 7], [3]],
    "several at a time": [[0, 0, 1, 3, 3, 3, 4], [5, 5, 6]],
    "unknown times": [[0, None, 2, 3], [None, 1, 2]],
}


@pytest.mark.parametrize("window", [1, 2, 4, 2.5])
@pytest.mark.parametrize("videos", VIDEOS.values(), ids=VIDEOS)
def test_pairs_come_as_often_as_documented(videos, window):
    table = table_of(videos)
    draw = SequencePairSampler(table, "video", "frame", window, 8).block(0, 2500)
    assert draw.indices.shape == (2500, 8, 2)
    assert draw.mask is None
    assert_agrees(draw.indices, chances_of(neighbours_of(table, window)))
    assert (table.codes("video", draw.indices) == draw.inactive["video"][..., None]).all()


def test_pairs_of_a_step_and_of_neighbouring_steps_are_unrelated():
    table = table_of([[0, 1, 2], [3, 4]])
    drawn = SequencePairSampler(table, "video", "frame", 2, 2).block(0, 10_000).indices
    chances = chances_of(neighbours_of(table, 2))
    cells = list(itertools.product(chances, chances))
    for one, other in ((drawn[:, 0], drawn[:, 1]), (drawn[:-1, 1], drawn[1:, 0])):
        pairs = Counter(zip(map(tuple, one.tolist()), map(tuple, other.tolist()), strict=True))
        expected = np.array([chances[a] * chances[b] for a, b in cells]) * len(one)
        assert chisquare([pairs[cell] for cell in cells], expected).pvalue > 1e-4


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_pairs_of_any_sequences(data):
    frame = st.one_of(st.none(), st.integers(0, 11))
    videos = data.draw(st.lists(st.lists(frame, max_size=7), min_size=1, max_size=4).filter(any))
    window = data.draw(st.sampled_from([1, 2, 3, 6, 11, 0.5, 1.5]))
    where = data.draw(st.sampled_from([None, "half == 0"]))
    table = table_of(videos)
    neighbours = neighbours_of(table, window, lambda row: where is None or row % 2 == 0)
    if not neighbours:
        with pytest.raises(SamplerError, match="no row has a later row"):
            SequencePairSampler(table, "video", "frame", window, where=where)
        return
    sampler = SequencePairSampler(table, "video", "frame", window, 16, where=where, seed=data.draw(st.integers(0, 99)))
    chances = chances_of(neighbours)
    drawn = sampler.block(0, 20).indices
    assert set(map(tuple, drawn.reshape(-1, 2).tolist())) <= set(chances)
    # continuous times, whose float32 differ from tenths, give the same pairs
    tenths = SequencePairSampler(
        table, "video", "seconds", window * 0.1, 16, where=where, seed=sampler.arguments["seed"]
    )
    assert np.array_equal(tenths.block(0, 20).indices, drawn)
    entry = sampler.report().entries[0]
    rows = {row for row in range(len(table)) if table.codes("frame")[row] >= 0 and (where is None or row % 2 == 0)}
    assert 10**entry.log10_sets == pytest.approx(len(chances))
    assert entry.unreachable == len(rows - set(itertools.chain.from_iterable(chances)))
    assert entry.unreachable + len(set(itertools.chain.from_iterable(chances))) == len(rows)
    assert entry.unknown + entry.excluded == len(table) - len(rows)
    assert entry.excluded == (0 if where is None else len(table) // 2)
    assert entry.drawable == len({int(table.codes("video")[row]) for row in neighbours})
    times = [len(times) for times in neighbours.values()]
    span = f"{min(times)} to {max(times)}" if min(times) < max(times) else f"{min(times)}"
    assert f"{len(neighbours)} rows have later ones" in str(sampler.report())
    assert f"at {span} times" in str(sampler.report())


def test_times_of_a_grid_and_of_columns_and_again_from_plain_data():
    factors = [
        Factor("yaw", Kind.ORDINAL, (-30.0, -10.0, 10.0, 30.0), unit="deg"),
        Factor("kind", Kind.NOMINAL, ("a", "b")),
        Factor("item", Kind.NOMINAL, (0, 1, 2)),
    ]
    grid = FactorTable(factors)
    columns = FactorTable(factors, {name: grid.codes(name) for name in grid.names})
    one, other = (SequencePairSampler(table, ["item", "kind"], "yaw", 20) for table in (grid, columns))
    assert np.array_equal(one.block(0, 50).indices, other.block(0, 50).indices)
    yaw = grid.values("yaw", one.block(0, 50).indices).astype(float)
    assert (yaw[..., 1] - yaw[..., 0] == 20).all()
    assert set(one[0].inactive) == {"kind", "item"}
    again = from_dict(one.to_dict(), grid)
    assert np.array_equal(one.block(3, 30).indices, again.block(3, 30).indices)
    assert "within 20 deg of yaw" in str(one.report())


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"sequence": []}, SamplerError, "sequence must be a list of at least one factor"),
        ({"sequence": "vidoe"}, FactorError, "did you mean 'video'"),
        ({"sequence": "seconds"}, FactorError, "continuous"),
        ({"time": "fram"}, FactorError, "did you mean 'frame'"),
        ({"time": ["frame"]}, SamplerError, "time"),
        ({"time": "video"}, SamplerError, "'video' is a factor whose levels are strings"),
        ({"time": "angle"}, SamplerError, "'angle' is cyclic"),
        ({"window": 0}, SamplerError, "window must be above 0"),
        ({"window": -1}, SamplerError, "window"),
        ({"window": "1"}, SamplerError, "window"),
        ({"window": 0.5}, SamplerError, "within window=0.5: the smallest gap is 1"),
        ({"where": "frame == 2"}, SamplerError, "no sequence has rows at two times"),
        ({"where": "half > 1"}, SamplerError, "no sequence has rows at two times"),
        ({"pairs": 0}, SamplerError, "pairs must be an integer from 1"),
        ({"seed": -1}, SamplerError, "seed"),
    ],
)
def test_wrong_arguments(arguments, error, sentence):
    table = table_of([range(5), range(7)])
    angle = Factor("angle", Kind.CYCLIC, (0, 90, 180, 270), unit="deg", period=360)
    columns = {name: table.codes(name) for name in table.names} | {"angle": np.arange(12) % 4}
    with pytest.raises(error, match=sentence):
        SequencePairSampler(
            FactorTable([*table.factors, angle], columns), **{"sequence": "video", "time": "frame", **arguments}
        )


@pytest.mark.parametrize("name", ["several at a time", "unknown times"])
def test_pairs_by_weight(name):
    table = table_of(VIDEOS[name])
    weights = np.random.default_rng(5).choice([0.0, 1.0, 2.5, 4.0], len(table), p=[0.1, 0.4, 0.3, 0.2])
    neighbours = neighbours_of(table, 3, lambda row: weights[row] > 0)
    chances = Counter()
    for row, times in neighbours.items():
        first = weights[row] / sum(weights[one] for one in neighbours)
        for rows in times.values():
            for other in rows:
                chances[row, other] += first / len(times) * weights[other] / sum(weights[one] for one in rows)
    sampler = SequencePairSampler(table, "video", "frame", 3, 8, weights=weights * 7)
    assert_agrees(sampler.block(0, 4000).indices, chances)
    assert np.array_equal(sampler[3].indices, sampler.block(0, 5).indices[3])
    again = from_dict(json.loads(json.dumps(sampler.to_dict())), table)
    assert np.array_equal(again[3].indices, sampler[3].indices)
    entry = sampler.report().entries[0]
    assert entry.excluded + entry.unknown == len(table) - ((weights > 0) & (table.codes("frame") >= 0)).sum()


def test_weights_must_be_those_of_the_rows():
    with pytest.raises(SamplerError, match="weights must have shape"):
        SequencePairSampler(table_of([range(3)]), "video", "frame", weights=[1.0])
