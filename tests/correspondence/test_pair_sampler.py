"""Pairs of views: rows that agree in the scene, each scene and each ordered pair equally often."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import setsup
from setsup.correspondence import PixelPairSampler
from setsup.errors import SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import from_dict


class Views:
    """What a sampler reads of a dataset."""

    name = "views"

    def __init__(self, rooms: list[int], pair_factors: tuple[str, ...] = ("room",)) -> None:
        levels = tuple(range(max(rooms) + 1))
        azimuth = np.linspace(0, 350, len(rooms)).astype(np.float32)
        self.factors = FactorTable(
            [Factor("room", Kind.ORDINAL, levels), Factor("azimuth", Kind.CONTINUOUS, None, unit="deg", period=360.0)],
            {"room": rooms, "azimuth": azimuth},
        )
        self.pair_factors = pair_factors


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=20), st.integers(0, 2**64 - 1), st.integers(0, 2**40))
def test_views_of_a_pair_differ_and_share_their_scene(rooms: list[int], seed: int, step: int) -> None:
    counts = np.bincount(rooms)
    if counts.max() < 2:
        return
    draw = PixelPairSampler(Views(rooms), pairs=5, seed=seed)[step]
    assert draw.indices.shape == (5, 2)
    found = np.array(rooms)[draw.indices]
    assert (found[:, 0] == found[:, 1]).all()
    assert (draw.indices[:, 0] != draw.indices[:, 1]).all()


def test_scenes_and_ordered_pairs_come_equally_often() -> None:
    rooms = [0, 0, 0, 1, 1, 2]  # room 2 has a single view and is left out
    block = PixelPairSampler(Views(rooms), pairs=4).block(0, 3000).indices.reshape(-1, 2)
    names, counts = np.unique(block, axis=0, return_counts=True)
    wanted = {(a, b): 1 / 12 for a in range(3) for b in range(3) if a != b} | {(3, 4): 1 / 4, (4, 3): 1 / 4}
    assert {tuple(pair) for pair in names.tolist()} == set(wanted)
    expected = [wanted[tuple(pair)] * len(block) for pair in names.tolist()]
    assert chisquare(counts, expected).pvalue > 1e-4


def test_a_tolerance_keeps_the_views_near_each_other() -> None:
    views = Views([0] * 36)
    block = PixelPairSampler(views, ["room", "azimuth"], tolerance={"azimuth": 30.0}, pairs=8).block(0, 50).indices
    azimuth = views.factors.values("azimuth", block)
    apart = np.abs((azimuth[..., 0] - azimuth[..., 1] + 180) % 360 - 180)
    assert apart.max() <= 30
    assert set(np.rint(apart).ravel().tolist()) == {10.0, 20.0, 30.0}


def test_it_is_a_set_sampler_that_can_be_written_down() -> None:
    views = Views([0, 0, 1, 1])
    pairs = PixelPairSampler(views, pairs=3, seed=5)
    again = from_dict(pairs.to_dict(), views.factors)
    np.testing.assert_array_equal(again[7].indices, pairs[7].indices)
    assert "pairs of views" in str(pairs.report())
    np.testing.assert_array_equal(PixelPairSampler(views, "room", pairs=3, seed=5)[7].indices, pairs[7].indices)
    other = setsup.SetSampler(views.factors, ["room"], size=2, sets=3, choose="groups", seed=5)
    assert (other.block(0, 20).indices != pairs.block(0, 20).indices).any(), "it has a stream of its own"


def test_what_no_pair_can_be_drawn_from_is_said() -> None:
    with pytest.raises(SamplerError, match="scene= is required for views; pass the factors in which"):
        PixelPairSampler(Views([0, 0], ()))
    with pytest.raises(SamplerError, match="small"):
        PixelPairSampler(Views([0, 0]), on_small_group="short")
    with pytest.raises(SamplerError):
        PixelPairSampler(Views([0, 1, 2]), on_small_group="error")
