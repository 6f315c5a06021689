"""Samplers of a dataset as a page asks for them: a draw of any step, what is reached, and when a row is drawn."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin

import numpy as np

from setsup.datasets.dataset import Dataset
from setsup.errors import SamplerError, SetsupError
from setsup.factors.table import FactorTable
from setsup.pages.answers import Answer, Query, json_answer
from setsup.pages.commands import command_line, python_code
from setsup.pages.draw_sheet import describe_draw
from setsup.pages.neighbour_names import name_tables, with_names, with_tables
from setsup.pages.opened import Opening
from setsup.pages.recent import Recent
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
    Reach,
    Sampler,
    SequencePairSampler,
    SetSampler,
    TripletSampler,
    Zip,
    from_dict,
)
from setsup.samplers.schedules import since
from setsup.samplers.spelling import OPTION_NAMES
from setsup.samplers.steps import LAST

__all__ = ["SamplerSource", "first_sampler", "options_since", "sampler_text"]

_SEARCHED = 100_000  # steps among which a row is sought
_ROWS = 4096  # of a draw that is shown
_KEPT = 8
_COUNTED = 1 << 20  # rows drawn for coverage
_COUNTABLE = 1 << 28  # rows of a table among which they are counted
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
    NeighbourSampler,
    OverlapSampler,
    Mixture,
    Zip,
)


@dataclass
class SamplerSource:
    """Samplers of one dataset: each is named in the question, as :meth:`Sampler.to_dict` writes it.

    Attributes
    ----------
    dataset : Dataset
        What they draw from.
    opening : Opening
        What opens it.
    first : Sampler, optional
        What the page begins with; by default one that fixes the first factor.
    """

    dataset: Dataset
    opening: Opening = field(default_factory=Opening)
    first: Sampler | None = None
    _made: Recent[str, Sampler] = field(default_factory=lambda: Recent(_KEPT), repr=False)
    _reaches: Recent[tuple[str, int], Reach] = field(default_factory=lambda: Recent(_KEPT), repr=False)

    def __post_init__(self) -> None:
        """Know the tables of the first sampler by names, which questions use: they read no file."""
        self.tables: dict[str, Any] = {} if self.first is None else name_tables(self.first.to_dict())

    def about(self) -> Mapping[str, Any]:
        """The samplers that there are, with their options, and the one that the page begins with."""
        sampler = self.begin()
        return {
            "kind": "sampler",
            "kinds": {kind.__name__: _options(kind) for kind in KINDS},
            "first": None if sampler is None else self.described(sampler),
            "begin": str(sampler.first_step if sampler is not None else 0),
            "tables": list(self.tables),
            "given": self.first is not None,
            "last": str(LAST - 1),
        }

    def begin(self) -> Sampler | None:
        """The sampler that the page begins with, None where there is none."""
        return self.first or first_sampler(self.dataset.factors)

    def plain(self, sampler: Sampler) -> dict[str, Any]:
        """A sampler as a question names it: what `to_dict` gives, with names for tables that have some."""
        plain: dict[str, Any] = with_names(sampler.to_dict(), self.tables)
        return plain

    def described(self, sampler: Sampler) -> dict[str, Any]:
        """A sampler as text, and each argument as JSON in a string: JavaScript rounds integers of 64 bits."""
        described = self.plain(sampler)
        arguments = {name: _json(value) for name, value in described["arguments"].items()}
        return {**described, "arguments": arguments, "text": sampler_text(described)}

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
        return self._made.get(query.text("sampler", 8000), lambda: self._make(query))

    def _make(self, query: Query) -> Sampler:
        given = _of_table(query.data("sampler"), self.dataset.factors.fingerprint)
        sampler = from_dict(with_tables(given, self.tables), self.dataset.factors)
        rows = sampler[sampler.first_step].indices.size
        if rows > _ROWS:
            raise SamplerError(
                f"a draw of {rows:,} rows is too large to show; lower size or sets until a draw has at most {_ROWS:,} "
                "rows"
            )
        return sampler

    def _draw(self, query: Query) -> Answer:
        sampler = self.sampler(query)
        last = (LAST if sampler.length is None else sampler.length) - 1
        step = query.integer("step", 0, last)
        rank, world = _share(query)
        share = sampler.shard(rank, world)
        if step * world + rank > last:
            raise SamplerError(f"draw {step} of rank {rank} of {world} is beyond the last step, {last}")
        described, number = describe_draw(self.dataset.factors, share[step], sampler), step * world + rank
        return json_answer(
            {
                **described,
                "step": str(number),
                "since": str(options_since(sampler, number)),
                "last": str((last - rank) // world),
                "described": self.described(sampler),
                "python": python_code(self.opening, sampler, number, self.plain(sampler), self.dataset.modalities),
                "command": command_line(self.opening, sampler, number),
            }
        )

    def _reach(self, query: Query) -> Answer:
        sampler = self.sampler(query)
        reach = self._compute_reach(sampler, query)
        reached = reach.to_dict()
        for group, described in zip(reach.groups, reached["groups"], strict=True):
            described["first"] = [
                {
                    "group": group.groups.describe(reach.table, number),
                    "rows": int(group.groups.sizes[number]),
                    "chance": chance,
                }
                for number, chance in _likely(group.chance, group.drawable)
            ]
        return json_answer({**reached, "report": str(sampler.report())})

    def _compute_reach(self, sampler: Sampler, query: Query) -> Reach:
        """What a sampler reaches with the options of a step."""
        step = options_since(sampler, query.integer("step", sampler.first_step, LAST - 1, sampler.first_step))
        return self._reaches.get((query.text("sampler", 8000), step), lambda: sampler.reach(step))

    def _row(self, query: Query) -> Answer:
        reach = self._compute_reach(self.sampler(query), query)
        row_reach = reach.row(query.integer("row", 0, len(self.dataset.factors) - 1))
        return json_answer(
            {
                "row": row_reach.row,
                "chance": row_reach.chance,
                "wait": row_reach.wait,
                "estimated": reach.estimated,
                "reasons": [{"reason": reason.text, "option": reason.option} for reason in row_reach.reasons],
                "notes": reach.notes,
            }
        )

    def _when(self, query: Query) -> Answer:
        """Steps of a rank that draw a row, from one on: the next, mostly near; farther on in larger blocks."""
        sampler, (rank, world) = self.sampler(query), _share(query)
        share, end = sampler.shard(rank, world), -(-((sampler.length or LAST) - rank) // world)
        first = -(-max(sampler.first_step - rank, 0) // world)
        start = max(query.integer("step", 0, max(end, 0)), first)  # the end: it is not drawn any more
        stop = min(start + _SEARCHED, end)
        row = query.integer("row", 0, len(self.dataset.factors) - 1)
        steps: list[int] = []
        block = 64
        while start < stop and not steps:
            steps = share.when(row, start, min(start + block, stop)).tolist()
            start, block = start + block, min(2 * block, 1 << 14)
        return json_answer({"steps": [str(step) for step in steps[:16]], "until": str(stop), "ends": stop >= end})

    def _coverage(self, query: Query) -> Answer:
        """Distinct rows after 1, 2, 4, … steps, and at the end of a finite sampler, counted in the draws themselves."""
        sampler, table = self.sampler(query), self.dataset.factors
        if len(table) > _COUNTABLE:
            raise SamplerError(
                f"the table has {len(table):,} rows, but rows are counted for at most {_COUNTABLE:,}; select fewer rows"
            )
        first = sampler.first_step
        left = (LAST if sampler.length is None else sampler.length) - first
        most = min(max(_COUNTED // sampler[first].indices.size, 1), left)
        stops = sorted({*(2**power for power in range(most.bit_length())), *([left] if left == most else [])})
        seen, counts = np.zeros(len(table), dtype=bool), []
        for done, stop in pairwise([0, *stops]):
            draw = sampler.block(first + done, first + stop)
            seen[draw.indices[draw.mask] if draw.mask is not None else draw.indices] = True
            counts.append(int(np.count_nonzero(seen)))
        return json_answer({"steps": stops, "rows": counts, "of": len(table)})


def options_since(sampler: Sampler, step: int) -> int:
    """First step that is drawn with the options of a step: from it on to that one, what is reached is the same."""
    return max(since(sampler.arguments, step), sampler.first_step)


def _share(query: Query) -> tuple[int, int]:
    """The rank of a question, and of how many."""
    return query.integer("rank", 0, 4095, 0), query.integer("world", 1, 4096, 1)


def sampler_text(sampler: Sampler | Mapping[str, Any]) -> str:
    """A sampler as a question names it."""
    return _json(sampler.to_dict() if isinstance(sampler, Sampler) else sampler)


def _of_table(given: Any, fingerprint: str) -> Any:
    """Data of a sampler with the fingerprint of the table wherever there is none, in samplers within it, too."""
    if isinstance(given, list):
        return [_of_table(part, fingerprint) for part in given]
    if not isinstance(given, dict):
        return given
    completed = {name: _of_table(part, fingerprint) for name, part in given.items()}
    if "arguments" in completed and not isinstance(completed["arguments"], dict):
        raise SamplerError("arguments of a sampler must be a mapping of names to values, such as to_dict returns")
    return {"fingerprint": fingerprint, **completed} if "sampler" in completed else completed


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _likely(chance: Any, drawable: Any) -> list[tuple[int, float]]:
    """The first drawable groups with their chances, the most likely ones of many."""
    numbers = np.flatnonzero(drawable)
    if len(numbers) > _GROUPS:
        order = np.argsort(-np.nan_to_num(chance[numbers]), kind="stable")[:_GROUPS]
        numbers = np.sort(numbers[order])
    return [(int(number), float(chance[number])) for number in numbers]


def _options(kind: type[Sampler]) -> list[dict[str, Any]]:
    """Options of a sampler, with their defaults as JSON has them."""
    options = []
    for name, parameter in inspect.signature(kind).parameters.items():
        if name != "table":
            needed = parameter.default is inspect.Parameter.empty
            choices = _choices(parameter.annotation)
            options.append(
                {
                    "name": OPTION_NAMES.get(name, name),
                    "needed": needed,
                    "default": "" if needed else _json(parameter.default),
                    "choices": choices,
                }
            )
    return options


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
                return SetSampler(table, [factor.name], size=min(_SIZE, least), sets=2, on_small_group="drop")
        except SetsupError:
            continue
    return None
