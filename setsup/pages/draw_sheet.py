"""Draws as a page shows them: sets with what they fix, what varies, and what each position stands for."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from setsup.arrays import Rows
from setsup.factors.factor import Level
from setsup.factors.table import FactorTable
from setsup.reports.describe import SetWords, compared_names, describe, number_words, value_words
from setsup.samplers import (
    Draw,
    EpisodeSampler,
    FactorPairSampler,
    Mixture,
    NeighbourSampler,
    OrbitSampler,
    OverlapSampler,
    Sampler,
    SequencePairSampler,
    TripletSampler,
    Zip,
)
from setsup.samplers.row_arguments import weight_names, weight_words

__all__ = ["describe_draw"]

_CAPTIONED = 2  # factors whose values stand below the members of an orbit


def describe_draw(table: FactorTable, draw: Draw, sampler: Sampler | None = None) -> dict[str, Any]:
    """Sets of a draw: rows, what each fixes, and over how many values the other factors vary.

    With its sampler, also what each position is (``roles``) and what it shares with the first one (``compared``), by
    which factors the members of an orbit differ (``members``), the sampler of each set of a :class:`Zip` (``of``), and
    which rows are of the pool of a :class:`Mixture` (``pool``).
    """
    # what rows are drawn by weight of varies by that, and is left out
    without = [] if sampler is None else weight_names(sampler.arguments)
    sets = [_laid_down(table, draw, number, about) for number, about in enumerate(describe(table, draw, None, without))]
    if sampler is not None:
        _lay_out(table, draw, sampler, sets, compared_names(table, without))
    return {"sets": sets, "weights": "" if sampler is None else weight_words(sampler.arguments.get("weights"))}


def _laid_down(table: FactorTable, draw: Draw, number: int, about: SetWords) -> dict[str, Any]:
    """A set as plain data, of what :func:`describe` says."""
    laid_down: dict[str, Any] = {
        "rows": draw.indices[number],
        "fixed": {name: value_words(table[name], value) for name, value in about.fixed.items()},
        "varying": {name: variation.distinct for name, variation in about.varies.items()} if about.members else {},
    }
    if about.members < len(laid_down["rows"]) and draw.mask is not None:
        laid_down["mask"] = draw.mask[number]
    if draw.canonical is not None:
        laid_down["canonical"] = int(draw.canonical[number])
    if draw.pair_labels:
        laid_down["labels"] = {name: bool(labels[number]) for name, labels in draw.pair_labels.items()}
    return laid_down


def _lay_out(
    table: FactorTable, draw: Draw, sampler: Sampler, sets: Sequence[dict[str, Any]], names: Sequence[str]
) -> None:
    """Add to sets what their sampler says of their positions."""
    if isinstance(sampler, Zip):
        for number, (inner, position) in enumerate(zip(sampler.samplers, sampler.sets, strict=True)):
            for inner_set in sets[position]:
                inner_set["of"] = f"{type(inner).__name__}, number {number} of the zip"
            _lay_out(table, draw, inner, sets[position], names)
        return
    if isinstance(sampler, Mixture):
        _lay_out(table, draw, sampler.base, sets, names)
        for number in sampler.arguments["sets"]:
            if number < len(sets):
                sets[number]["pool"] = np.isin(sets[number]["rows"], sampler.pool)
        return
    roles = _roles(sampler)
    for set_of_draw in sets:
        if roles:
            set_of_draw["roles"] = roles
            set_of_draw["compared"] = _compared(table, set_of_draw["rows"][: len(roles)], names)
        elif isinstance(sampler, OrbitSampler):
            set_of_draw["members"] = _members(table, set_of_draw["rows"], set_of_draw["varying"])


def _roles(sampler: Sampler) -> list[str]:
    """What the positions of a set are; nothing where all are alike."""
    if isinstance(sampler, TripletSampler):
        return ["anchor", "positive", "negative"]
    if isinstance(sampler, NeighbourSampler):
        drawn = [role for role in ("positive", "negative") if sampler.arguments[role] is not None]
        return ["anchor", *(drawn or ["neighbour"])]
    if isinstance(sampler, OverlapSampler):
        return ["first", "second"] if sampler.size + sampler.negatives == 2 else []
    if isinstance(sampler, FactorPairSampler | SequencePairSampler):
        return ["first", "second"]
    if isinstance(sampler, EpisodeSampler):
        return ["support"] * sampler.shots + ["query"] * sampler.queries
    return []


def _compared(table: FactorTable, rows: Rows, names: Sequence[str]) -> list[dict[str, Any]]:
    """What each row but the first shares with it, and the two values of each factor in which it differs."""
    entries: list[dict[str, Any]] = [{"shared": [], "differs": {}} for _ in rows[1:]]
    for name in names:
        first, *others = _values(table, name, rows)
        for entry, other in zip(entries, others, strict=True):
            if first is not None and first == other:
                entry["shared"].append(name)
            else:
                entry["differs"][name] = [value_words(table[name], value) for value in (first, other)]
    return entries


def _members(table: FactorTable, rows: Rows, varying: dict[str, int]) -> dict[str, list[str]]:
    """Values of the factors by which the members of an orbit differ, at each position; of some where there are many."""
    names = [name for name, values in varying.items() if values > 1][:_CAPTIONED]
    return {name: [number_words(value) for value in _values(table, name, rows)] for name in names}


def _values(table: FactorTable, name: str, rows: Rows) -> list[Level | None]:
    """Values of a factor; None where they are unknown."""
    return [None if value != value else value for value in table.values(name, rows).tolist()]
