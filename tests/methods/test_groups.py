"""Which images of a batch are of one orbit: the same ones as for the sampler and the evaluation."""

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from setsup.errors import SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.methods.groups import GroupCodes
from setsup.samplers import OrbitSampler
from setsup_papers.orbits.orbit_rows import number


def nested(seed: int, rows: int = 60) -> FactorTable:
    """Tracks that have the same names in all videos, under some lights; a few codes are unknown."""
    random = np.random.default_rng(seed)
    factors = [
        Factor("video", Kind.NOMINAL, ("a", "b", "c")),
        Factor("light", Kind.NOMINAL, ("dim", "bright")),
        Factor("track", Kind.NOMINAL, ("0", "1"), within="video"),
    ]
    columns = {factor.name: random.integers(0, len(factor.levels or ()), rows) for factor in factors}
    columns["track"][random.random(rows) < 0.1] = -1
    return FactorTable(factors, columns)


def combinations(table: FactorTable, names: tuple[str, ...]) -> list[tuple[int, ...] | None]:
    """The combination of each row, None where a code is unknown."""
    rows = zip(*(table.codes(name).tolist() for name in names), strict=True)
    return [None if min(codes) < 0 else codes for codes in rows]


def as_batch(table: FactorTable, rows: np.ndarray) -> dict:
    return {
        "factors": {name: torch.as_tensor(table.codes(name)[rows]) for name in table.names},
        "mask": torch.ones(rows.shape, dtype=torch.bool),
    }


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("orbit", "whole"),
    [
        (("track",), ("video", "track")),
        (("light", "track"), ("video", "light", "track")),
        (("track", "video"), ("video", "track")),
        (("light",), ("light",)),
    ],
)
def test_a_nested_factor_counts_within_its_parents(seed: int, orbit: tuple[str, ...], whole: tuple[str, ...]) -> None:
    table = nested(seed)
    wanted = combinations(table, whole)
    found = GroupCodes(table, orbit)
    codes = found.codes(as_batch(table, np.arange(len(table))[:, None])).flatten().tolist()
    for numbers in (codes, number(table, orbit).tolist()):
        assert [one == -1 for one in numbers] == [one is None for one in wanted]
        pairs = set(zip(numbers, wanted, strict=True)) - {(-1, None)}
        assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    assert len(found) == len(set(wanted) - {None})


def test_the_groups_of_a_loss_are_those_of_the_sampler() -> None:
    table = nested(4)
    draw = OrbitSampler(table, ["track"], 5, 4, on_small_group="replace", seed=0)[0]
    found = GroupCodes(table, ["track"])
    codes = found.codes(as_batch(table, draw.indices))
    assert (codes == codes[:, :1]).all()
    assert len(codes[:, 0].unique()) == 5
    classes = found.classes(as_batch(table, draw.indices))
    assert int(classes.max()) < len(found)
    assert len(classes[:, 0].unique()) == 5


def test_wrong_orbits_are_named() -> None:
    table = FactorTable([Factor("turn", Kind.CONTINUOUS)], {"turn": np.zeros(3)})
    for orbit, words in ((["turn"], "'turn'"), ([], "none")):
        with pytest.raises(SetsupError, match=f"must be combinations of one or more factors with levels.*not {words}"):
            GroupCodes(table, orbit)
