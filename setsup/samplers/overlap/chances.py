"""Chances of views, scenes and failed attempts when views are drawn by overlap: enumerated, or estimated by draws."""

from typing import NamedTuple

import numpy as np

from setsup.arrays import Reals, Rows, Words
from setsup.random import fold, stream_key
from setsup.samplers.groups.within import Keys
from setsup.samplers.overlap.first_pairs import FirstPairs
from setsup.samplers.overlap.forms import ATTEMPTS, Form, draw_sets, enumerate_sets, try_sets
from setsup.samplers.overlap.graph import OverlapGraph
from setsup.samplers.overlap.negatives import Negatives
from setsup.samplers.overlap.search import find_sets

__all__ = ["Chances", "find_chances"]

ENUMERATED = 1 << 18  # sets of a distribution that is enumerated
TRIALS = 1 << 15  # sets of an estimate
_NOTHING = 1e-15  # chance of a fallback that does not show in any figure


class Chances(NamedTuple):
    """Chances of one set.

    Attributes
    ----------
    views : (views,) float64
        That it has each view, negatives included; NaN where an estimate does not tell.
    scenes : (scenes,) float64
        That it is of each scene.
    failure : float
        That an attempt fails.
    estimated : bool
        Whether these are estimates from draws.

    """

    views: Reals
    scenes: Reals
    failure: float
    estimated: bool

    @property
    def fallback(self) -> float:
        """Chance that all attempts fail."""
        return self.failure**ATTEMPTS


def find_chances(graph: OverlapGraph, first: FirstPairs, form: Form, size: int, negatives: Negatives | None) -> Chances:
    """Chances of views and scenes, enumerated where there are few sets, or a formula gives them."""
    if form == "star" and graph.weights is None and negatives is None:
        return _stars(graph, first, size)
    whole = enumerate_sets(graph, first, form, size, ENUMERATED)
    if whole is None or (negatives is not None and len(whole.chance) > ENUMERATED):
        return _estimate(graph, first, form, size, negatives)
    members, success, failure = whole.members, float(whole.chance.sum()), float(whole.failed.sum())
    fallback = (failure / (success + failure)) ** ATTEMPTS
    chance = whole.chance / success * (1 - fallback)
    if fallback > _NOTHING:
        failing = np.flatnonzero(whole.failed)
        kept = find_sets(graph, graph.views(first.pairs[failing]), form == "clique", size)
        members = np.concatenate([members, kept])
        chance = np.append(chance, whole.failed[failing] / failure * fallback)
    views = np.zeros(len(graph.rows))
    np.add.at(views, members, chance[:, None])
    if negatives is not None:
        views += negatives.chances(members, chance)
    scenes = _of_scenes(graph, members[:, 0], chance)
    return Chances(views, scenes, failure / (success + failure), estimated=False)


def _stars(graph: OverlapGraph, first: FirstPairs, size: int) -> Chances:
    """Stars never fail: the other views are a uniform subset of the partners of the first that holds the second."""
    ends, chance = graph.views(first.pairs), first.chance
    views = np.zeros(len(graph.rows))
    np.add.at(views, ends[:, 0], chance)
    scenes = _of_scenes(graph, ends[:, 0], chance)
    centres = views.copy()
    np.add.at(views, ends[:, 1], chance)
    if size > 2:
        others = np.maximum(graph.degree(ends[:, 0]) - 1, 1)
        np.add.at(views, ends[:, 1], (centres[ends[:, 0]] - chance) * (size - 2) / others)
    return Chances(views, scenes, 0.0, estimated=False)


def _estimate(graph: OverlapGraph, first: FirstPairs, form: Form, size: int, negatives: Negatives | None) -> Chances:
    """Shares of sets that are drawn for this; views that none of them has, but some set may have, are NaN."""
    sets, key = np.arange(TRIALS), stream_key(0, "chances of views by overlap")

    def words(some: Rows, attempt: int) -> Words:
        return fold(fold(fold(key, attempt), some)[:, None], np.arange(size))

    failure = 1 - float(try_sets(graph, first, form, words(sets, 0))[1].mean())
    members = draw_sets(graph, first, form, size, TRIALS, words)
    views = np.bincount(members.reshape(-1), minlength=len(graph.rows)) / TRIALS
    maybe = np.diff(graph.starts) > 0
    maybe[graph.views(np.arange(len(graph.pairs)))[:, 1]] = True
    if negatives is not None:
        drawn, there = negatives.draw(Keys(fold(key, sets), np.zeros(1, np.uint64)), members)
        views += np.bincount(drawn[there], minlength=len(graph.rows)) / TRIALS
        maybe |= negatives.possible
    views[(views == 0) & maybe] = np.nan
    return Chances(views, _of_scenes(graph, members[:, 0], np.full(TRIALS, 1 / TRIALS)), failure, estimated=True)


def _of_scenes(graph: OverlapGraph, views: Rows, chance: Reals) -> Reals:
    return np.bincount(graph.scene_of(views), chance, minlength=len(graph.scenes) - 1).astype(np.float64)
