"""Small overlap tables, and the whole distribution of sets of views by enumeration, from its definition alone."""

from collections import Counter
from itertools import permutations

import numpy as np

from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers.overlap.table import OverlapTable

ROWS = 24


def factors(scenes=3):
    """Rows of scenes that take turns, with a weight that spans sixteen powers of two, and some that are 0."""
    row = np.arange(ROWS)
    weight = np.where(row % 11 == 10, 0.0, 2.0 ** ((row * 7) % 5 - 2))
    return FactorTable(
        [
            Factor("scene", Kind.NOMINAL, tuple(range(scenes))),
            Factor("half", Kind.NOMINAL, (0, 1)),
            Factor("weight", Kind.CONTINUOUS),
        ],
        {"scene": row % scenes, "half": row % 2, "weight": weight},
    )


def table_of(table, views, seed=0, measured=0.8, excluded=0.1, zero=0.0, unknown=0.1, source="scenes", by="scene"):
    """An overlap table of so many rows of each scene: shares are tenths, some pairs are unknown or were not tried."""
    rng = np.random.default_rng(seed)
    scene = table.codes(by)
    scenes = [np.flatnonzero(scene == number)[:count] for number, count in enumerate(views)]
    pairs, counts, bits, columns = [], [], [], []
    for rows in scenes:
        fate = rng.choice(3, (len(rows), len(rows)), p=(measured, excluded, 1 - measured - excluded))
        np.fill_diagonal(fate, 2)
        ends = np.argwhere(fate == 0)
        pairs.append(rows[ends])
        overlap = rng.integers(1, 11, len(ends)) / 10
        overlap[rng.random(len(ends)) < zero] = 0
        angle = np.where(overlap > 0, rng.integers(0, 90, len(ends)), np.nan)
        scale = np.where(overlap > 0, 2.0 ** rng.integers(-2, 3, len(ends)), np.nan)
        lost = rng.random(len(ends)) < unknown
        columns.append(np.where(lost, np.nan, (overlap, angle, scale)))
        possible, out = len(rows) * (len(rows) - 1), int((fate == 1).sum())
        if source == "tracks":  # all others are measured, too, and have no common point
            counts.append((possible, 0, possible, 0))
            bits.append(np.zeros(0, np.uint8))
        else:
            counts.append((possible, out, len(ends), possible - out - len(ends)))
            bits.append(np.packbits((fate == 1).reshape(-1)))
    pairs, columns = np.concatenate(pairs), np.concatenate(columns, axis=1)
    order = np.lexsort(pairs.T[::-1])
    pairs, columns = pairs[order], columns[:, order]
    return OverlapTable(
        first=pairs[:, 0],
        second=pairs[:, 1],
        **dict(zip(("overlap", "angle", "scale"), columns, strict=True)),
        unknown=np.zeros(len(pairs)),
        decided=np.full(len(pairs), 192),
        views=np.concatenate(scenes),
        sampled=np.full(sum(map(len, scenes)), 192),
        starts=np.cumsum([0, *map(len, scenes)]),
        counts=np.array(counts),
        excluded=np.concatenate(bits),
        excluded_starts=np.cumsum([0, *map(len, bits)]),
        about={
            "dataset": "views", "fingerprint": table.fingerprint, "rows": len(table), "source": source,
            "settings": {"scene": [by]},
        },
    )  # fmt: skip


def table_of_pairs(table, pairs, views):
    """An overlap table of one scene with exactly these ordered pairs at an overlap of 0.5; no others were tried."""
    first, second = np.array(sorted(pairs)).T
    count, possible = len(first), len(views) * (len(views) - 1)
    return OverlapTable(
        first=first, second=second, overlap=np.full(count, 0.5), angle=np.full(count, 10.0), scale=np.ones(count),
        unknown=np.zeros(count), decided=np.full(count, 192), views=np.array(views), sampled=np.full(len(views), 192),
        starts=[0, len(views)], counts=[[possible, 0, count, possible - count]], excluded=np.zeros(0),
        excluded_starts=[0, 0],
        about={"dataset": "views", "fingerprint": table.fingerprint, "rows": len(table), "source": "scenes",
               "settings": {}},
    )  # fmt: skip


def measures_of(overlaps):
    """What was measured of each ordered pair: (overlap, angle, scale)."""
    columns = (overlaps.overlap, overlaps.angle, overlaps.scale)
    ends = zip(overlaps.first.tolist(), overlaps.second.tolist(), strict=True)
    return dict(zip(ends, zip(*(column.tolist() for column in columns), strict=True), strict=True))


def pairs_of(overlaps, bands, direction, kept=lambda row: True):
    """Ordered pairs in the bands with the measures that count: those of the directions that lie in the bands."""
    near = 1e-6  # shares are tenths, which float32 has not exactly
    lies = {
        pair: found
        for pair, found in measures_of(overlaps).items()
        if all(map(kept, pair))
        and all(low - near <= value <= high + near for value, (low, high) in zip(found, bands, strict=True))
    }
    if direction == "forward":
        return {pair: [found] for pair, found in lies.items()}
    if direction == "both":
        return {(a, b): [found] for (a, b), found in lies.items() if (b, a) in lies}
    both = {pair for a, b in lies for pair in ((a, b), (b, a))}
    return {(a, b): [lies[pair] for pair in ((a, b), (b, a)) if pair in lies] for a, b in both}


def may_follow(pairs, members, form):
    """Views that may come next, ascending."""
    if form == "clique":
        found = [b for b in range(ROWS) if all((a, b) in pairs for a in members)]
    else:
        found = [b for b in range(ROWS) if (members[0 if form == "star" else -1], b) in pairs]
    return [b for b in found if b not in members]


def first_set(pairs, members, form, size):
    """The set that a search through the rows in their order finds first; None where there is none."""
    if len(members) == size:
        return members
    found = (first_set(pairs, (*members, b), form, size) for b in may_follow(pairs, members, form))
    return next((whole for whole in found if whole), None)


def first_pair_chances(pairs, size, form, groups_of, weight):
    """Chance of each first pair: a uniform group of those that begin a set, then by weight in it."""
    begins = [pair for pair in pairs if first_set(pairs, pair, form, size)]
    groups = {}
    for a, b in begins:
        groups.setdefault(groups_of((a, b)), []).append((a, b))
    chances = {}
    for some in groups.values():
        total = sum(weight(a) * weight(b) for a, b in some)
        chances |= {(a, b): weight(a) * weight(b) / total / len(groups) for a, b in some}
    return chances


def distribution_of_sets(pairs, size, form, groups_of, weight=lambda row: 1.0, attempts=64):
    """Chance of each set, the last resort of `attempts` attempts included, and of that resort."""
    tried, failed = Counter(), Counter()

    def extend(members, chance):
        if len(members) == size:
            tried[members] += chance
            return
        views = may_follow(pairs, members, form)
        if not views:
            failed[members[:2]] += chance
        for b in views:
            extend((*members, b), chance * weight(b) / sum(map(weight, views)))

    for pair, chance in first_pair_chances(pairs, size, form, groups_of, weight).items():
        extend(pair, chance)
    fails = sum(failed.values())
    distribution = Counter({members: chance / (1 - fails) * (1 - fails**attempts) for members, chance in tried.items()})
    for pair, chance in failed.items():
        distribution[first_set(pairs, pair, form, size)] += chance / fails * fails**attempts
    return distribution, fails**attempts


def certainly_apart(overlaps, scene, a, b):
    """Whether two rows of the table certainly do not overlap, one pair at a time."""
    if scene[a] != scene[b]:
        return True
    found = measures_of(overlaps)
    return all(
        found[pair][0] == 0 if pair in found else bool(overlaps.is_excluded(*pair)) for pair in permutations((a, b))
    )
