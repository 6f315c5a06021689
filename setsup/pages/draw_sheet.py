"""Draws as a page shows them: sets with what they fix, what varies, and what each position stands for."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from setsup.arrays import Bools, Rows
from setsup.factors.factor import Factor
from setsup.factors.table import FactorTable
from setsup.samplers import (
    Draw,
    EpisodeSampler,
    FactorPairSampler,
    Mixture,
    NeighbourSampler,
    OrbitSampler,
    Sampler,
    SequencePairSampler,
    TripletSampler,
    Zip,
)
from setsup.samplers.arguments import weight_names, weight_words

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
    factors = [one for one in table.factors if one.role == "variation" and one.name not in without]
    sets = [_described(table, draw, place, factors) for place in range(len(draw.indices))]
    if sampler is not None:
        _lay_out(table, draw, sampler, sets, factors)
    return {"sets": sets, "weights": "" if sampler is None else weight_words(sampler.arguments.get("weights"))}


def _described(table: FactorTable, draw: Draw, place: int, factors: Sequence[Factor]) -> dict[str, Any]:
    rows = draw.indices[place]
    mask = np.ones(len(rows), dtype=bool) if draw.mask is None else draw.mask[place]
    counted = rows[mask]
    fixed, varying = {}, {}
    for factor in table.factors:
        code = draw.inactive[factor.name][place] if factor.name in draw.inactive else None
        if code is not None and (code == code and code != -1):
            fixed[factor.name] = _value(factor, code)
        elif factor in factors and len(counted):
            codes = table.codes(factor.name, counted)
            varying[factor.name] = len(np.unique(codes[_known(factor, codes)]))
    one: dict[str, Any] = {"rows": rows, "fixed": fixed, "varying": varying}
    if not mask.all():
        one["mask"] = mask
    if draw.canonical is not None:
        one["canonical"] = int(draw.canonical[place])
    if draw.pair_labels:
        one["labels"] = {name: bool(labels[place]) for name, labels in draw.pair_labels.items()}
    return one


def _lay_out(
    table: FactorTable, draw: Draw, sampler: Sampler, sets: Sequence[dict[str, Any]], factors: Sequence[Factor]
) -> None:
    """Add to sets what their sampler says of their positions."""
    if isinstance(sampler, Zip):
        for number, (inner, place) in enumerate(zip(sampler.samplers, sampler.sets, strict=True)):
            for one in sets[place]:
                one["of"] = f"{type(inner).__name__}, number {number} of the zip"
            _lay_out(table, draw, inner, sets[place], factors)
        return
    if isinstance(sampler, Mixture):
        _lay_out(table, draw, sampler.base, sets, factors)
        for number in sampler.arguments["sets"]:
            if number < len(sets):
                sets[number]["pool"] = np.isin(sets[number]["rows"], sampler.pool)
        return
    roles = _roles(sampler)
    for one in sets:
        if roles:
            one["roles"] = roles
            one["compared"] = _compared(table, one["rows"][: len(roles)], factors)
        elif isinstance(sampler, OrbitSampler):
            one["members"] = _members(table, one["rows"], one["varying"])


def _roles(sampler: Sampler) -> list[str]:
    """What the positions of a set are; nothing where all are alike."""
    if isinstance(sampler, TripletSampler):
        return ["anchor", "positive", "negative"]
    if isinstance(sampler, NeighbourSampler):
        drawn = [role for role in ("positive", "negative") if sampler.arguments[role] is not None]
        return ["anchor", *(drawn or ["neighbour"])]
    if isinstance(sampler, FactorPairSampler | SequencePairSampler):
        return ["first", "second"]
    if isinstance(sampler, EpisodeSampler):
        return ["support"] * sampler.shots + ["query"] * sampler.queries
    return []


def _compared(table: FactorTable, rows: Rows, factors: Sequence[Factor]) -> list[dict[str, Any]]:
    """What each row but the first shares with it, and the two values of each factor in which it differs."""
    found: list[dict[str, Any]] = [{"shared": [], "differs": {}} for _ in rows[1:]]
    for factor in factors:
        codes = table.codes(factor.name, rows)
        known = _known(factor, codes)
        for number, one in enumerate(found, 1):
            if known[0] and known[number] and codes[0] == codes[number]:
                one["shared"].append(factor.name)
            else:
                one["differs"][factor.name] = [
                    _value(factor, codes[at]) if known[at] else "unknown" for at in (0, number)
                ]
    return found


def _members(table: FactorTable, rows: Rows, varying: dict[str, int]) -> dict[str, list[str]]:
    """Values of the factors by which the members of an orbit differ, at each position; of some where there are many."""
    found = {}
    for name in [name for name, values in varying.items() if values > 1][:_CAPTIONED]:
        factor, codes = table[name], table.codes(name, rows)
        known = _known(factor, codes)
        found[name] = [_word(factor, code) if yes else "unknown" for code, yes in zip(codes, known, strict=True)]
    return found


def _known(factor: Factor, codes: Any) -> Bools:
    return np.asarray(~np.isnan(codes) if factor.continuous else codes >= 0)


def _value(factor: Factor, code: Any) -> str:
    return f"{_word(factor, code)} {factor.unit}" if factor.unit else _word(factor, code)


def _word(factor: Factor, code: Any) -> str:
    return f"{float(code):.6g}" if factor.levels is None else str(factor.levels[int(code)])
