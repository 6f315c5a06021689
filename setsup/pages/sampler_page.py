"""Samplers of a dataset as a page asks for them: a draw of any step, what is reached, and when a row is drawn."""

import inspect
import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal, get_args, get_origin

import numpy as np

from setsup.datasets.dataset import Dataset
from setsup.errors import SamplerError, SetsupError
from setsup.factors.factor import Factor
from setsup.factors.table import FactorTable
from setsup.pages.answers import Answer, Query, json_answer
from setsup.pages.commands import command_line, python_code
from setsup.samplers import (
    DomainSampler,
    Draw,
    EpisodeSampler,
    EpochSampler,
    FactorPairSampler,
    HierarchicalSampler,
    OrbitSampler,
    Reach,
    Sampler,
    SequencePairSampler,
    SetSampler,
    TripletSampler,
    from_dict,
)

__all__ = ["SEARCHED", "SamplerSource", "changes_by_step", "describe_draw", "first_sampler", "sampler_text"]

SEARCHED = 100_000
"""Steps among which a row is sought."""

_LAST = 2**63 - 1
_ROWS = 4096  # of a draw that is shown
_KEPT = 8
_COUNTED = 1 << 20  # rows drawn for coverage
_GROUPS = 200
_SIZE = 8  # of the sets that the page begins with

KINDS = (
    SetSampler,
    DomainSampler,
    OrbitSampler,
    TripletSampler,
    EpisodeSampler,
    SequencePairSampler,
    HierarchicalSampler,
    FactorPairSampler,
    EpochSampler,
)


@dataclass
class SamplerSource:
    """Samplers of one dataset: each is named in the question, as :meth:`Sampler.to_dict` writes it."""

    dataset: Dataset
    source: str = ""
    first: Sampler | None = None
    _made: OrderedDict[str, Sampler] = field(default_factory=OrderedDict, repr=False)
    _reaches: OrderedDict[tuple[str, int], Reach] = field(default_factory=OrderedDict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def about(self) -> Mapping[str, Any]:
        """The samplers that there are, with their options, and the one that the page begins with."""
        sampler = self.first or first_sampler(self.dataset.factors)
        return {
            "kind": "sampler",
            "kinds": {kind.__name__: _options(kind) for kind in KINDS},
            "first": None if sampler is None else described(sampler),
            "given": self.first is not None,
            "searched": SEARCHED,
        }

    def answer(self, query: Query) -> Answer:
        """Answer a question about a sampler."""
        answers = {
            "draw": self._draw,
            "reach": self._reach,
            "row": self._row,
            "when": self._when,
            "coverage": self._coverage,
        }
        return answers[query.choice("q", tuple(answers))](query)

    def sampler(self, query: Query) -> Sampler:
        """The sampler of a question; SamplerError for that of another table."""
        text = query.text("sampler", 8000)
        with self._lock:
            if text in self._made:
                self._made.move_to_end(text)
                return self._made[text]
        given = query.data("sampler")
        if isinstance(given, dict) and "fingerprint" not in given:
            given = {**given, "fingerprint": self.dataset.factors.fingerprint}
        found = from_dict(given, self.dataset.factors)
        rows = found[0].indices.size
        if rows > _ROWS:
            raise SamplerError(f"a draw of {rows:,} rows is too large to show: lower size or sets to {_ROWS:,} in all")
        with self._lock:
            self._made[text] = found
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return found

    def _draw(self, query: Query) -> Answer:
        sampler = self.sampler(query)
        last = _LAST if sampler.length is None else sampler.length - 1
        step = query.integer("step", 0, last)
        rank, world = query.integer("rank", 0, 4095, 0), query.integer("world", 1, 4096, 1)
        share = sampler.shard(rank, world)
        if step * world + rank > last:
            raise SamplerError(f"draw {step} of rank {rank} of {world} is beyond the last step, {last}")
        found = describe_draw(self.dataset.factors, share[step])
        return json_answer(
            {
                **found,
                "step": str(step * world + rank),
                "last": str(last),
                "length": None if sampler.length is None else str(sampler.length),
                "described": described(sampler),
                "python": python_code(self.source, sampler, step * world + rank),
                "command": command_line(self.source, sampler, step * world + rank),
            }
        )

    def _reach(self, query: Query) -> Answer:
        sampler = self.sampler(query)
        reach = self._reach_of(sampler, query)
        found = reach.to_dict()
        for one, told in zip(reach.groups, found["groups"], strict=True):
            told["first"] = [
                {
                    "group": one.groups.describe(reach.table, number),
                    "rows": int(one.groups.sizes[number]),
                    "chance": chance,
                }
                for number, chance in _likely(one.chance, one.drawable)
            ]
        return json_answer({**found, "report": str(sampler.report())})

    def _reach_of(self, sampler: Sampler, query: Query) -> Reach:
        """What a sampler reaches; an option that changes with the step has its value there, others are the same."""
        step = query.integer("step", 0, _LAST, sampler.first_step)
        key = query.text("sampler", 8000), step
        found = self._reaches.get(key)
        if found is None:
            found = sampler.reach(step)
            with self._lock:
                self._reaches[key] = found
                while len(self._reaches) > _KEPT:
                    self._reaches.popitem(last=False)
        return found

    def _row(self, query: Query) -> Answer:
        reach = self._reach_of(self.sampler(query), query)
        found = reach.row(query.integer("row", 0, len(self.dataset.factors) - 1))
        return json_answer(
            {
                "row": found.row,
                "chance": found.chance,
                "wait": found.wait,
                "estimated": reach.estimated,
                "reasons": [{"reason": one.text, "option": one.option} for one in found.reasons],
                "notes": reach.notes,
            }
        )

    def _when(self, query: Query) -> Answer:
        sampler = self.sampler(query)
        end = _LAST if sampler.length is None else sampler.length
        start = query.integer("step", 0, end - 1)
        stop = min(start + SEARCHED, end)
        row = query.integer("row", 0, len(self.dataset.factors) - 1)
        found: list[int] = []
        block = 64
        while start < stop and not found:  # the next one, mostly near; farther on in larger blocks
            found = sampler.when(row, start, min(start + block, stop)).tolist()
            start, block = start + block, min(2 * block, 1 << 14)
        return json_answer({"steps": [str(step) for step in found[:16]], "until": str(stop)})

    def _coverage(self, query: Query) -> Answer:
        """Distinct rows after 1, 2, 4, … steps, counted in the draws themselves."""
        sampler, table = self.sampler(query), self.dataset.factors
        most = max(_COUNTED // sampler[0].indices.size, 1)
        if sampler.length is not None:
            most = min(most, sampler.length)
        steps, counts, seen = [], [], np.zeros(len(table), dtype=bool) if len(table) <= 1 << 28 else None
        if seen is None:
            raise SamplerError(f"rows are counted in tables of up to {1 << 28:,} rows")
        done = 0
        for stop in [2**power for power in range(most.bit_length()) if 2**power <= most]:
            draw = sampler.block(done, stop)
            seen[draw.indices[draw.mask] if draw.mask is not None else draw.indices] = True
            done = stop
            steps.append(stop)
            counts.append(int(np.count_nonzero(seen)))
        return json_answer({"steps": steps, "rows": counts, "of": len(table)})


def changes_by_step(text: str) -> bool:
    """Whether a sampler, as a question names it, has an option that changes with the step; the page asks likewise."""
    return re.search(r'"(size|random|p)":\{', text) is not None


def sampler_text(sampler: Sampler) -> str:
    """A sampler as a question names it."""
    return _json(sampler.to_dict())


def described(sampler: Sampler) -> dict[str, Any]:
    """A sampler whose arguments are JSON each in a string, since JavaScript rounds integers of 64 bits."""
    found = sampler.to_dict()
    return {**found, "arguments": {name: _json(value) for name, value in found["arguments"].items()}}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _likely(chance: Any, drawable: Any) -> list[tuple[int, float]]:
    """The first drawable groups with their chances, the most likely ones of many."""
    numbers = np.flatnonzero(drawable)
    if len(numbers) > _GROUPS:
        order = np.argsort(-np.nan_to_num(chance[numbers]), kind="stable")[:_GROUPS]
        numbers = np.sort(numbers[order])
    return [(int(number), float(chance[number])) for number in numbers]


def describe_draw(table: FactorTable, draw: Draw) -> dict[str, Any]:
    """Sets of a draw: rows, what each fixes, and over how many values the other factors vary."""
    sets = []
    for place, rows in enumerate(draw.indices):
        mask = np.ones(len(rows), dtype=bool) if draw.mask is None else draw.mask[place]
        counted = rows[mask]
        fixed, varying = {}, {}
        for factor in table.factors:
            code = draw.inactive[factor.name][place] if factor.name in draw.inactive else None
            if code is not None and (code == code and code != -1):
                fixed[factor.name] = _value(factor, code)
            elif factor.role == "variation" and len(counted):
                codes = table.codes(factor.name, counted)
                known = codes[~np.isnan(codes)] if factor.continuous else codes[codes >= 0]
                varying[factor.name] = len(np.unique(known))
        one: dict[str, Any] = {"rows": rows, "fixed": fixed, "varying": varying}
        if not mask.all():
            one["mask"] = mask
        if draw.canonical is not None:
            one["canonical"] = int(draw.canonical[place])
        if draw.pair_labels:
            one["labels"] = {name: bool(labels[place]) for name, labels in draw.pair_labels.items()}
        sets.append(one)
    return {"sets": sets}


def _value(factor: Factor, code: Any) -> str:
    text = f"{float(code):.6g}" if factor.levels is None else str(factor.levels[int(code)])
    return f"{text} {factor.unit}" if factor.unit else text


def _options(kind: type[Sampler]) -> list[dict[str, Any]]:
    """Options of a sampler, with their defaults as JSON has them."""
    found = []
    for name, one in inspect.signature(kind).parameters.items():
        if name != "table":
            needed = one.default is inspect.Parameter.empty
            choices = _choices(one.annotation)
            found.append(
                {"name": name, "needed": needed, "default": "" if needed else _json(one.default), "choices": choices}
            )
    return found


def _choices(annotation: Any) -> list[str]:
    """Words that an option takes; none for other options."""
    return list(get_args(annotation)) if get_origin(annotation) is Literal else []


def first_sampler(table: FactorTable) -> Sampler | None:
    """Sets that fix the first factor of which groups have two rows or more; None where there is none."""
    for factor in table.factors:
        if factor.continuous or factor.role != "variation" or len(factor) < 2:
            continue
        try:
            sizes = table.group_by([factor.name]).sizes
            least = int(sizes[sizes > 1].min(initial=_SIZE))
            if (sizes > 1).any():
                return SetSampler(table, [factor.name], size=min(_SIZE, least), sets=2, small="drop")
        except SetsupError:
            continue
    return None
