"""Golden streams: a digest of the first thousand draws of each sampler.

A digest changes only with an entry in the release notes: whoever trained with a seed must be told that it now draws
other rows.
After such an entry, write the digests anew with

    python tests/samplers/test_golden.py --write
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from setsup.factors import Factor, FactorTable, Kind, concat
from setsup.samplers import (
    DomainSampler,
    EpisodeSampler,
    EpochSampler,
    FactorPairSampler,
    HierarchicalSampler,
    Mixture,
    NeighbourSampler,
    OrbitSampler,
    OverlapSampler,
    SequencePairSampler,
    SetSampler,
    Stepwise,
    TripletSampler,
    Zip,
)
from setsup.samplers.overlap.table import OverlapTable

GOLDEN = Path(__file__).with_name("golden.json")
DRAWS = 1000


def columns():
    """720 rows by whole-number arithmetic alone: ragged items within kinds, unknown values, an angle, weights."""
    row = np.arange(720)
    item = (row * row * 37 + row * 11) % 1009 % 24
    factors = [
        Factor("kind", Kind.NOMINAL, ("chair", "car", "plane", "lamp")),
        Factor("item", Kind.NOMINAL, tuple(range(24)), within="kind"),
        Factor("light", Kind.ORDINAL, (0.1, 0.5, 1.0)),
        Factor("yaw", Kind.CONTINUOUS, unit="deg", period=360.0),
        Factor("height", Kind.CONTINUOUS, unit="m"),
        Factor("weight", Kind.CONTINUOUS),
    ]
    return FactorTable(
        factors,
        {
            "kind": item % 4,
            "item": np.where(row % 17 == 3, -1, item),
            "light": row * 7 % 11 % 4 - 1,
            "yaw": np.where(row % 19 == 5, np.nan, row * 331 % 720 / 2),
            "height": row * 113 % 257 / 64,
            "weight": row % 5,
        },
    )


GRID = FactorTable(
    [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in zip("abcd", (4, 10, 3, 15), strict=True)]
)
COLUMNS = columns()
LARGE = FactorTable([Factor("d", Kind.NOMINAL, tuple(range(40))), Factor("row", Kind.ORDINAL, tuple(range(5000)))])
MANY = FactorTable([Factor("d", Kind.NOMINAL, tuple(range(5000))), Factor("row", Kind.ORDINAL, tuple(range(40)))])
BOTH = concat([GRID, COLUMNS])


def near(step):
    """Twelve neighbours of each row of the columns."""
    return (np.arange(720)[:, None] + step * np.arange(1, 13)) % 720


def overlaps():
    """Twenty views of each kind: most pairs measured, in tenths; the others excluded or not tried."""
    kind = COLUMNS.codes("kind")
    scenes = [np.flatnonzero(kind == number)[:20] for number in range(4)]
    place = np.arange(20)
    one, two = (ends.reshape(-1) for ends in np.meshgrid(place, place, indexing="ij"))
    fate = np.where(one == two, 3, (one * 7 + two * 13 + one * two) % 9)
    measured, excluded = fate > 3, fate == 0
    pairs = np.concatenate([np.stack([rows[one[measured]], rows[two[measured]]], axis=1) for rows in scenes])
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    count, possible = len(pairs) // 4, 380
    tenths = (pairs[:, 0] * 37 + pairs[:, 1] * 11) % 13 % 11
    bits = np.packbits(excluded)
    counts = [possible, int(excluded.sum()), count, possible - int(excluded.sum()) - count]
    return OverlapTable(
        first=pairs[:, 0], second=pairs[:, 1], overlap=tenths / 10, angle=pairs.sum(axis=1) % 89,
        scale=2.0 ** (pairs[:, 0] % 5 - 2), unknown=tenths * 0, decided=tenths * 0 + 192,
        views=np.concatenate(scenes), sampled=np.full(80, 192), starts=np.arange(5) * 20, counts=[counts] * 4,
        excluded=np.tile(bits, 4), excluded_starts=np.arange(5) * len(bits),
        about={"dataset": "views", "fingerprint": COLUMNS.fingerprint, "rows": 720, "source": "scenes",
               "settings": {"scene": ["kind"]}},
    )  # fmt: skip


def mixed(p, seed):
    base = SetSampler(BOTH, inactive=[["a"], []], size=16, where="part == 'a'", seed=seed)
    return Mixture(base, "part == 'b'", p=p, seed=seed)


CASES = {
    "SetSampler": lambda: SetSampler(GRID, inactive=["b"], size=32),
    "SetSampler seed": lambda: SetSampler(GRID, inactive=["b"], size=32, seed=2**64 - 1),
    "SetSampler stream": lambda: SetSampler(GRID, inactive=["b"], size=32, stream="other"),
    "SetSampler crowded": lambda: SetSampler(GRID, inactive=["a", "b", "c"], size=8),
    "SetSampler active": lambda: SetSampler(GRID, active=["d", "c"], size=32, sets=3),
    "SetSampler nothing held": lambda: SetSampler(LARGE, inactive=[], size=64, sets=1),
    "SetSampler large": lambda: SetSampler(LARGE, inactive=["d"], size=2000, sets=1),
    "SetSampler levels": lambda: SetSampler(COLUMNS, inactive=["item", "light"], size=8, on_small_group="drop"),
    "SetSampler groups": lambda: SetSampler(
        COLUMNS, inactive=["item", "light"], size=8, on_small_group="drop", choose="groups"
    ),
    "SetSampler rows": lambda: SetSampler(
        COLUMNS, inactive=["item", "light"], size=8, on_small_group="drop", choose="rows"
    ),
    "SetSampler equal": lambda: SetSampler(COLUMNS, inactive=["item"], size=6, values="equal", on_small_group="drop"),
    "SetSampler different levels": lambda: SetSampler(COLUMNS, inactive=["item"], size=5, sets=4, values="different"),
    "SetSampler different rows": lambda: SetSampler(
        COLUMNS, inactive=["item"], size=5, sets=4, values="different", choose="rows"
    ),
    "SetSampler drop": lambda: SetSampler(COLUMNS, inactive=["item"], size=30, on_small_group="drop"),
    "SetSampler short": lambda: SetSampler(COLUMNS, inactive=["item"], size=30, on_small_group="short"),
    "SetSampler replace": lambda: SetSampler(COLUMNS, inactive=["item"], size=30, on_small_group="replace"),
    "SetSampler lists": lambda: SetSampler(COLUMNS, inactive=[["light"], ["kind"], []], size=12, sets=3),
    "SetSampler random": lambda: SetSampler(GRID, inactive=["a", "b", "c"], num_fixed=2, unconstrained=1, size=12),
    "SetSampler tolerance": lambda: SetSampler(COLUMNS, inactive=["kind", "height"], tolerance={"height": 0.5}, size=8),
    "SetSampler cyclic tolerance": lambda: SetSampler(COLUMNS, inactive=["yaw"], tolerance={"yaw": 7.5}, size=12),
    "SetSampler short tolerance": lambda: SetSampler(
        COLUMNS, inactive=["item", "yaw"], tolerance={"yaw": 20.0}, size=6, on_small_group="short"
    ),
    "SetSampler weights": lambda: SetSampler(COLUMNS, inactive=["kind"], weights="weight", size=12),
    "SetSampler where": lambda: SetSampler(COLUMNS, inactive=["kind"], where="height < 2.0 and light >= 0.5", size=12),
    "DomainSampler": lambda: DomainSampler(COLUMNS, "kind", sets=3, size=16),
    "DomainSampler seed": lambda: DomainSampler(COLUMNS, "kind", sets=3, size=16, seed=5),
    "DomainSampler large": lambda: DomainSampler(LARGE, "d", sets=6, size=32),
    "DomainSampler many": lambda: DomainSampler(MANY, "d", sets=8, size=6),
    "DomainSampler drop": lambda: DomainSampler(COLUMNS, "item", sets=3, size=30, on_small_group="drop"),
    "DomainSampler short": lambda: DomainSampler(COLUMNS, "item", sets=5, size=30, on_small_group="short"),
    "DomainSampler replace": lambda: DomainSampler(COLUMNS, "item", sets=5, size=30, on_small_group="replace"),
    "DomainSampler independent": lambda: DomainSampler(COLUMNS, "item", sets=5, size=16, domains="independent"),
    "DomainSampler all": lambda: DomainSampler(GRID, ["a", "c"], sets=99, size=20, domains="all"),
    "OrbitSampler": lambda: OrbitSampler(COLUMNS, "item", sets=4, canonical="first"),
    "OrbitSampler seed": lambda: OrbitSampler(COLUMNS, "item", sets=4, canonical="argmin:yaw", seed=5),
    "OrbitSampler size": lambda: OrbitSampler(COLUMNS, "item", 4, 12, canonical={"light": 0.5}),
    "OrbitSampler short": lambda: OrbitSampler(COLUMNS, "item", 4, 30, on_small_group="short", choose="levels"),
    "OrbitSampler independent": lambda: OrbitSampler(GRID, ["a", "b"], 4, 12, values="independent", choose="rows"),
    "TripletSampler": lambda: TripletSampler(COLUMNS, "item", triplets=16),
    "TripletSampler seed": lambda: TripletSampler(COLUMNS, "item", triplets=16, choose="groups", seed=5),
    "TripletSampler grid": lambda: TripletSampler(GRID, ["b", "c"], triplets=16, choose="levels"),
    "EpisodeSampler": lambda: EpisodeSampler(COLUMNS, "item", 5, 3, 6),
    "EpisodeSampler seed": lambda: EpisodeSampler(GRID, "b", 4, seed=5),
    "EpisodeSampler many": lambda: EpisodeSampler(MANY, "d", 20, 1, 5),
    "EpisodeSampler within": lambda: EpisodeSampler(COLUMNS, "item", 5, 1, 3, within="kind", on_small_group="drop"),
    "EpisodeSampler across": lambda: EpisodeSampler(COLUMNS, "item", 5, 2, 5, across="light", on_small_group="drop"),
    "SequencePairSampler": lambda: SequencePairSampler(COLUMNS, "kind", "height", 0.25, 16),
    "SequencePairSampler grid": lambda: SequencePairSampler(GRID, ["a", "b"], "d", 3, 16, seed=5),
    "NeighbourSampler": lambda: NeighbourSampler(COLUMNS, near(1), negative="kind != anchor.kind"),
    "NeighbourSampler refreshed": lambda: NeighbourSampler(
        COLUMNS,
        {0: near(1), 300: near(7)},
        positive="kind == anchor.kind",
        negative="item != anchor.item",
        ranks={"negative": (3, 9)},
        seed=5,
    ),
    "OverlapSampler": lambda: OverlapSampler(COLUMNS, overlaps(), overlap=(0.3, 0.8)),
    "OverlapSampler seed": lambda: OverlapSampler(
        COLUMNS, overlaps(), overlap=(0.1, 0.8), angle=(10, 80), scale=(0.5, 2), direction="both", seed=5
    ),
    "OverlapSampler chain": lambda: OverlapSampler(
        COLUMNS, overlaps(), overlap=(0.5, 0.7), size=6, choose="overlap", bins=3, negatives=2
    ),
    "OverlapSampler star": lambda: OverlapSampler(
        COLUMNS, overlaps(), overlap=(0.2, 1), size=5, form="star", choose="scenes", where="height < 2.0"
    ),
    "OverlapSampler clique": lambda: OverlapSampler(
        COLUMNS, overlaps(), overlap=(0.4, 1), size=5, form="clique", direction="either", choose="angle"
    ),
    "OverlapSampler weights": lambda: OverlapSampler(
        COLUMNS, overlaps(), overlap=(0.2, 0.9), size=4, weights="weight", choose="scenes"
    ),
    "TripletSampler constraints": lambda: TripletSampler(
        COLUMNS, positive="item == anchor.item", negative="kind == anchor.kind and item != anchor.item", choose="groups"
    ),
    "TripletSampler three differ": lambda: TripletSampler(
        GRID, positive="a == anchor.a and b != anchor.b", negative="b != anchor.b and c != anchor.c and d != anchor.d"
    ),
    "OrbitSampler members": lambda: OrbitSampler(COLUMNS, "kind", 2, 5, members="light != anchor.light"),
    "OrbitSampler members replace": lambda: OrbitSampler(
        COLUMNS,
        "item",
        3,
        30,
        members="light > 0.2 and light != anchor.light",
        values="independent",
        on_small_group="replace",
    ),
    "FactorPairSampler": lambda: FactorPairSampler(GRID, 16),
    "FactorPairSampler seed": lambda: FactorPairSampler(GRID, 16, k=(1, 2), radius={"b": 2}, seed=5),
    "FactorPairSampler columns": lambda: FactorPairSampler(COLUMNS, 16),
    "FactorPairSampler radius": lambda: FactorPairSampler(COLUMNS, 16, k=2, among=["item", "light"], radius=1),
    "FactorPairSampler drawn again": lambda: FactorPairSampler(COLUMNS, 16, share=["kind"], must_differ=False),
    "FactorPairSampler rank": lambda: FactorPairSampler(COLUMNS, 16, rank=["light"]),
    "EpochSampler": lambda: EpochSampler(COLUMNS, size=64),
    "EpochSampler seed": lambda: EpochSampler(COLUMNS, size=64, partial="pad", seed=5),
    "EpochSampler large": lambda: EpochSampler(LARGE, size=128, where="d != 3"),
    "EpochSampler ordered": lambda: EpochSampler(GRID, size=7, epochs=5, shuffle=False),
    "SetSampler short weights": lambda: SetSampler(
        COLUMNS, inactive=["item"], size=30, weights="weight", on_small_group="short"
    ),
    "SetSampler per set": lambda: SetSampler(
        COLUMNS, inactive=[["kind"], []], size=[4, 12], weights=[None, "weight"], where=["light >= 0.5", None]
    ),
    "SetSampler equal sizes": lambda: SetSampler(COLUMNS, ["kind"], size=[5, 15], values="equal"),
    "SetSampler schedules": lambda: SetSampler(
        GRID, inactive=["a", "b", "c"], num_fixed={0: 3, 300: 1}, size={0: 2, 500: 8}
    ),
    "DomainSampler weights": lambda: DomainSampler(COLUMNS, "kind", sets=3, size=16, weights="weight"),
    "DomainSampler schedule": lambda: DomainSampler(COLUMNS, "kind", sets=3, size={0: 8, 300: 16, 700: 5}),
    "OrbitSampler weights": lambda: OrbitSampler(
        COLUMNS, "item", 4, {0: 6, 500: 10}, weights="weight", on_small_group="short"
    ),
    "TripletSampler weights": lambda: TripletSampler(COLUMNS, "item", triplets=16, weights="weight"),
    "TripletSampler weighted constraints": lambda: TripletSampler(
        COLUMNS,
        positive="item == anchor.item and light != anchor.light",
        negative="kind == anchor.kind and item != anchor.item and light != anchor.light",
        weights="weight",
    ),
    "OrbitSampler weighted members": lambda: OrbitSampler(
        COLUMNS, "kind", 2, 5, members="light != anchor.light", weights="weight"
    ),
    "NeighbourSampler weights": lambda: NeighbourSampler(
        COLUMNS, near(1), "kind == anchor.kind", "kind != anchor.kind", ranks={"negative": (1, 5)}, weights="weight"
    ),
    "FactorPairSampler weights": lambda: FactorPairSampler(COLUMNS, 16, weights="weight"),
    "FactorPairSampler weighted rank": lambda: FactorPairSampler(COLUMNS, 16, rank=["light"], weights="weight"),
    "EpochSampler weights": lambda: EpochSampler(COLUMNS, size=64, partial="pad", weights="weight"),
    "Mixture weights": lambda: Mixture(
        SetSampler(BOTH, inactive=[], size=16, where="part == 'a'"), "part == 'b'", p={0: 0, 200: 0.5}, weights="weight"
    ),
    "Zip": lambda: Zip(mixed(0.3, 0), DomainSampler(BOTH, "kind", sets=3, size=7), mixed(0.3, 0)),
    "EpochSampler repeats": lambda: EpochSampler(COLUMNS, size=64, repeats=4, partial="pad"),
    "HierarchicalSampler": lambda: HierarchicalSampler(COLUMNS, ["kind", "item"], [2, 3], 8),
    "HierarchicalSampler drop": lambda: HierarchicalSampler(
        COLUMNS, ["light", "kind", "item"], [2, 2, 2], 6, on_small_group="drop"
    ),
    "Mixture": lambda: mixed(0.3, 0),
    "Mixture stepwise": lambda: mixed(Stepwise(0.5, every=100, levels=6), 5),
}


def digest(sampler):
    """Digest of the first thousand draws: every array, by name, as little-endian 64-bit integers.

    Anchors' values, which are float32, enter by their bits.
    """
    draw = sampler.block(0, DRAWS)
    mask = np.ones(draw.indices.shape, bool) if draw.mask is None else draw.mask
    arrays = {"indices": draw.indices, "mask": mask}
    arrays |= {f"inactive {name}": draw.inactive[name] for name in sorted(draw.inactive)}
    if draw.canonical is not None:
        arrays["canonical"] = draw.canonical
    arrays |= {f"label {name}": draw.pair_labels[name] for name in sorted(draw.pair_labels)}
    found = hashlib.blake2b(digest_size=16)
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        whole = plain.view(np.int32) if plain.dtype == np.float32 else plain
        found.update(f"{name} {plain.shape}".encode())
        found.update(whole.astype("<i8").tobytes())
    return found.hexdigest()


@pytest.mark.parametrize("name", CASES)
def test_the_first_thousand_draws_are_what_they_were(name):
    assert digest(CASES[name]()) == json.loads(GOLDEN.read_text())[name], (
        f"{name} draws other rows than before: a golden stream changes only with an entry in the release notes; "
        "then write it anew with python tests/samplers/test_golden.py --write"
    )


def test_every_golden_stream_is_compared():
    golden = json.loads(GOLDEN.read_text())
    assert list(golden) == list(CASES)
    assert len(set(golden.values())) == len(golden)


@pytest.mark.parametrize(
    "name", ["SetSampler large", "DomainSampler large", "DomainSampler many", "EpochSampler large"]
)
def test_permutations_of_more_than_4096_elements_are_compared_with_all_their_rounds(monkeypatch, name):
    monkeypatch.setattr("setsup.random._ROUNDS", 6)
    assert digest(CASES[name]()) != json.loads(GOLDEN.read_text())[name]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/samplers/test_golden.py --write")
    GOLDEN.write_text(json.dumps({name: digest(make()) for name, make in CASES.items()}, indent=2) + "\n")
