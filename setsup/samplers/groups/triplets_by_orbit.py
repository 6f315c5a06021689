"""Triplets by orbit: anchor and positive of one orbit, the negative of any other."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from setsup.arrays import Bools, Reals, Rows, Words
from setsup.errors import SamplerError
from setsup.factors.table import FactorTable
from setsup.random import randint_below
from setsup.samplers.arguments import check_names
from setsup.samplers.coverage import ReachedGroups
from setsup.samplers.groups.group_sampler import GroupSampler
from setsup.samplers.groups.members import REFUSALS, WeightedMembers, check_refusal
from setsup.samplers.groups.reach_chances import at_least_one, set_reach
from setsup.samplers.groups.statistics import group_entry
from setsup.samplers.groups.within import Keys
from setsup.samplers.report import Entry
from setsup.samplers.spelling import spell_name

__all__ = ["OrbitTriplets"]


class OrbitTriplets:
    """Anchor and positive of one orbit, the negative of any other."""

    def __init__(
        self,
        table: FactorTable,
        orbit: str | Sequence[str],
        choose: str,
        on_small_group: str,
        rows: Bools | None,
        weights: Reals | None,
    ) -> None:
        names = check_names(orbit, "orbit")
        check_refusal(on_small_group, "an orbit of one row has no positive")
        self._table = table
        self._orbits = GroupSampler(
            table, names, 2, rows, weights, choose=choose, on_small_group=on_small_group, policies=REFUSALS
        )
        groups = self._orbits.groups
        if len(groups) < 2:
            raise SamplerError(
                f"there is only one orbit of {self._orbits.describe()}, so no row can be a negative; choose other "
                f"factors for {spell_name('orbit')}, or draw from more rows"
            )
        self._ends = np.cumsum(groups.sizes)
        self.shared = groups.names

    def draw(self, bits: Words, keys: Keys) -> Rows:
        """Rows (steps, triplets, 3), from four words each."""
        members = self._orbits.members
        return (
            self._draw_by_weight(bits, keys, members)
            if isinstance(members, WeightedMembers)
            else self._draw_evenly(bits)
        )

    def _draw_by_weight(self, bits: Words, keys: Keys, members: WeightedMembers) -> Rows:
        chosen = self._orbits.chooser.pick(bits[..., 0])
        pairs, _ = self._orbits.draw(keys, chosen, 2)
        stranger = members.other_group(bits[..., 1], self._orbits.number(chosen))
        negative = members.pick(bits[..., 2], stranger)
        return np.concatenate([pairs, negative[..., None]], axis=-1)

    def _draw_evenly(self, bits: Words) -> Rows:
        groups = self._orbits.groups
        orbit = self._orbits.number(self._orbits.chooser.pick(bits[..., 0]))
        size = groups.sizes[orbit]
        anchor = randint_below(bits[..., 1], size)
        positive = randint_below(bits[..., 2], size - 1)
        positive += positive >= anchor
        # rows of all orbits stand in one line; the anchor's orbit is cut out of it
        other = randint_below(bits[..., 3], groups.rows - size)
        other += np.where(other >= self._ends[orbit] - size, size, 0)
        stranger = np.searchsorted(self._ends, other, side="right")
        negative = groups.take(stranger, other - (self._ends[stranger] - groups.sizes[stranger]))
        return np.stack([groups.take(orbit, anchor), groups.take(orbit, positive), negative], axis=-1)

    def reach(self, triplets: int) -> tuple[ReachedGroups, Callable[[Rows], Reals], list[str], bool]:
        """Groups, the chance of rows in a triplet, notes, and whether that is an approximation."""
        orbits, groups = self._orbits, self._orbits.groups
        weights = orbits.members.totals if isinstance(orbits.members, WeightedMembers) else groups.sizes
        chance = np.zeros(len(groups))
        chance[orbits.drawable] = orbits.chooser.probabilities()
        # a unit of weight of an orbit is the negative of the others' anchors
        each = chance / (weights.sum() - weights)
        negative = each.sum() - each
        pair = set_reach(self._table, orbits, (), 2, chance[orbits.drawable])

        def of_rows(rows: Rows) -> Reals:
            group, position = groups.find(self._table, rows)
            drawable = np.flatnonzero(position >= 0)
            chances = pair.chance(rows)
            weight = np.ones(len(drawable))
            if isinstance(orbits.members, WeightedMembers):
                weight = orbits.members.weight(group[drawable], position[drawable])
            chances[drawable] += weight * negative[group[drawable]]
            return chances

        of_step = at_least_one(chance + weights * negative, triplets)
        return ReachedGroups(orbits.describe(), (), groups, of_step), of_rows, self._notes(), False

    def _notes(self) -> list[str]:
        lonely = len(self._orbits.groups) - len(self._orbits.drawable)
        return [f"{lonely:,} orbits of one row are drawn as negatives only"] if lonely else []

    def entry(self) -> tuple[Entry, list[str]]:
        """Entry of a report, and notes."""
        groups, drawable = self._orbits.groups, self._orbits.drawable
        sizes = groups.sizes[drawable].astype(np.float64)
        entry = replace(
            group_entry(self._table, self._orbits, 2),
            unreachable=0,  # rows of orbits too small for an anchor are negatives
            log10_sets=math.log10((sizes * (sizes - 1) * (groups.rows - sizes)).sum()),
            shared_rows=math.nan,
            distinct={},  # anchor and positive are a pair, and the negative has what it has
            estimated=False,
        )
        return entry, self._notes()
