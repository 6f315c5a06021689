"""Several samplers side by side: a step has the sets of all of them.

Semi-supervised methods draw labelled and unlabelled rows in every step, at a ratio of their own; FixMatch [1]_ takes
seven unlabelled images for each labelled one.

References
----------
.. [1] K. Sohn et al., "FixMatch: simplifying semi-supervised learning with consistency and confidence", NeurIPS 2020
   (arXiv 2001.07685), section 2.2 and algorithm 1.

"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np

from setsup.arrays import Array, Bools, Steps
from setsup.errors import SamplerError, abbreviate
from setsup.factors.table import FactorTable
from setsup.samplers.arguments import check_draw_memory, check_nesting
from setsup.samplers.coverage import Reach
from setsup.samplers.description import from_dict
from setsup.samplers.draw import Draw
from setsup.samplers.iteration import length_of
from setsup.samplers.report import Report
from setsup.samplers.sampler import Sampler

__all__ = ["Zip"]

_BY_FACTOR = tuple(field.name for field in fields(Draw) if field.default_factory is not MISSING)
"""What a draw says of each set by factor."""

_ROLES = tuple(field.name for field in fields(Draw) if field.name not in ("indices", "mask", *_BY_FACTOR))
"""What a draw may have for each set."""


class Zip(Sampler):
    """Draws the sets of several samplers in each step, one sampler after the other.

    The draws of different samplers are independent: sampler i draws what it would draw alone on the stream
    ``"NAME#i"``, where ``"NAME"`` is its own stream. So the two parts of ``Zip(a, a)`` differ.

    All sets have the width of the widest; the others are padded with their first row and masked. A factor that some of
    the samplers do not fix is -1 (NaN, if continuous) in their sets. The zip ends with the first sampler that ends.

    Parameters
    ----------
    *samplers : Sampler
        Samplers of one table; for several datasets, make them on the table of :func:`setsup.concat`.

    Attributes
    ----------
    samplers : tuple of Sampler
        The samplers, each on its own stream.
    sets : tuple of slice
        The sets of a step that each sampler draws.

    Raises
    ------
    SamplerError
        If the samplers have different tables, only some give canonical rows, or two without ``stream=`` are equal.

    Examples
    --------
    >>> import setsup
    >>> table = setsup.load("shapes3d-procedural").factors
    >>> labelled = setsup.SetSampler(table, [], sets=1, size=16, where="orientation == 0")
    >>> unlabelled = setsup.SetSampler(table, [], sets=7, size=16, where="orientation != 0")
    >>> both = setsup.Zip(labelled, unlabelled)
    >>> both[0].indices.shape, both.sets
    ((8, 16), (slice(0, 1, None), slice(1, 8, None)))

    """

    def __init__(self, *samplers: Sampler) -> None:
        if not samplers or not all(isinstance(sampler, Sampler) for sampler in samplers):
            values = ", ".join(map(abbreviate, samplers)) or "nothing"
            raise SamplerError(f"Zip requires one or more samplers, not {values}")
        self.table: FactorTable = samplers[0].table
        for number, sampler in enumerate(samplers):
            if sampler.table is not self.table and not self.table.has_fingerprint(sampler.table.fingerprint):
                raise SamplerError(
                    f"samplers 0 and {number} of the zip have different tables; concatenate the datasets with "
                    "setsup.concat(a, b), and restrict each sampler, for example with where=\"part == 'a'\""
                )
        self.arguments = {"samplers": [sampler.to_dict() for sampler in samplers]}
        check_nesting({"sampler": "Zip", **self.arguments})
        self.samplers = tuple(_on_own_stream(sampler, number) for number, sampler in enumerate(samplers))
        _check_apart(samplers, self.samplers)
        lengths = [sampler.length for sampler in samplers if sampler.length is not None]
        self.length = min(lengths) if lengths else None
        self.first_step = max(sampler.first_step for sampler in samplers)
        first = [sampler.draws(np.array([self.first_step])) for sampler in self.samplers]
        ends = np.cumsum([draw.indices.shape[1] for draw in first]).tolist()
        self.sets = tuple(slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False))
        self._width = max(draw.indices.shape[2] for draw in first)
        check_draw_memory(ends[-1] * self._width, "a draw", "size or sets of the samplers")
        self.unconstrained_sets = frozenset(
            own.start + number
            for sampler, own in zip(self.samplers, self.sets, strict=True)
            for number in sampler.unconstrained_sets
        )
        for role in _ROLES:
            has = [getattr(draw, role) is not None for draw in first]
            if any(has) and not all(has):
                raise SamplerError(
                    f"sampler {has.index(True)} of the zip returns {role} rows, but sampler {has.index(False)} does "
                    f"not; combine only samplers that return {role} rows, or only samplers that do not"
                )

    @classmethod
    def _from_arguments(cls, arguments: Mapping[str, Any], table: FactorTable) -> Sampler:
        descriptions = arguments["samplers"] if arguments.keys() == {"samplers"} else [{}]
        return cls(*(from_dict(description, table) for description in descriptions))

    def __repr__(self) -> str:
        """Show the samplers, with the streams that they draw on here."""
        return f"Zip({', '.join(map(repr, self.samplers))})"

    def __len__(self) -> int:
        """Return the number of draws; EndlessError, a TypeError, if no sampler ends."""
        return length_of(self)

    def rows_where(self) -> Bools:
        """Return the rows that ``where`` of any sampler keeps."""
        return np.asarray(np.any([sampler.rows_where() for sampler in self.samplers], axis=0))

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block."""
        return _join_draws([sampler.draws(steps) for sampler in self.samplers], self._width, self.table)

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        reaches = [sampler.reach(step) for sampler in self.samplers]
        groups, blocks, notes = [], [], []
        for reach, own in zip(reaches, self.sets, strict=True):
            notes += [f"sets from {own.start} on: {line}" for line in reach.notes]
            groups += [replace(part, sets=tuple(_number_sets(part.sets, own))) for part in reach.groups]
            for alternatives in reach.blocks or ():
                blocks.append(
                    [
                        [replace(part, sets=tuple(_number_sets(part.sets, own))) for part in parts]
                        for parts in alternatives
                    ]
                )
        known = None if any(reach.blocks is None for reach in reaches) else blocks
        estimated = any(reach.estimated for reach in reaches)
        return Reach(f"Zip of {len(reaches)} samplers", self.table, groups, known, notes, estimated)

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        reports = [sampler.report() for sampler in self.samplers]
        notes, entries = [], []
        for report, own in zip(reports, self.sets, strict=True):
            which = f"set {own.start}" if own.stop - own.start == 1 else f"sets {own.start} to {own.stop - 1}"
            notes += [f"{which}: {line}" for line in (report.title, *report.notes)]
            entries += [replace(entry, sets=_number_sets(entry.sets, own)) for entry in report.entries]
        return Report(
            f"Zip of {len(reports)} sampler{'s' * (len(reports) > 1)}, {self.sets[-1].stop} sets of "
            f"{self._width} rows at most",
            entries,
            notes,
            [pairs for report in reports for pairs in report.pairs],
        )


def _number_sets(sets: Sequence[int], own: slice) -> list[int]:
    """Numbers in the zip of sets of a sampler, given its own ones in it; none are all."""
    return [own.start + number for number in sets or range(own.stop - own.start)]


def _on_own_stream(sampler: Sampler, position: int) -> Sampler:
    """The sampler with the position folded into its streams; one without streams as it is."""
    arguments = _with_position(sampler.arguments, position)
    return sampler if arguments is sampler.arguments else type(sampler)._from_arguments(arguments, sampler.table)


def _with_position(data: Any, position: int) -> Any:
    """Arguments in which every stream, those of samplers within included, has a position; the same where none has."""
    if isinstance(data, Mapping):
        changed = {
            key: f"{value}#{position}" if key == "stream" else _with_position(value, position)
            for key, value in data.items()
        }
        return changed if any(changed[key] is not data[key] for key in changed) else data
    if isinstance(data, list) and any(isinstance(item, Mapping) for item in data):
        items = [_with_position(item, position) for item in data]
        return items if any(new is not old for new, old in zip(items, data, strict=True)) else data
    return data


def _check_apart(samplers: Sequence[Sampler], on_own_streams: Sequence[Sampler]) -> None:
    """Refuse samplers that no stream tells apart, if they would draw the same."""
    alone: dict[str, int] = {}
    for number, (sampler, on_own_stream) in enumerate(zip(samplers, on_own_streams, strict=True)):
        if on_own_stream is sampler:
            first = alone.setdefault(repr(sampler.to_dict()), number)
            if first != number:
                raise SamplerError(
                    f"samplers {first} and {number} of the zip draw the same rows; pass different seeds, or add an "
                    f"argument stream= to {type(sampler).__name__}"
                )


def _join_draws(draws: Sequence[Draw], width: int, table: FactorTable) -> Draw:
    """One draw with the sets of all draws of some steps, padded to a width."""
    masks = [_mask(draw, width) for draw in draws]
    mask = None
    if any(part is not None for part in masks):
        shapes = [(*draw.indices.shape[:2], width) for draw in draws]
        whole = (
            np.ones(shape, dtype=bool) if part is None else part for part, shape in zip(masks, shapes, strict=True)
        )
        mask = np.concatenate(list(whole), axis=1)
    joined: dict[str, Any] = {"indices": np.concatenate([_widen(draw.indices, width) for draw in draws], axis=1)}
    joined["mask"] = mask
    for role in _ROLES:
        rows = [getattr(draw, role) for draw in draws]
        joined[role] = None if rows[0] is None else np.concatenate(rows, axis=1)
    for name in _BY_FACTOR:
        joined[name] = _join_codes([getattr(draw, name) for draw in draws], draws, table)
    return Draw(**joined)


def _join_codes(
    codes_of_draws: Sequence[Mapping[str, Array]], draws: Sequence[Draw], table: FactorTable
) -> dict[str, Array]:
    """What draws say of their sets by factor; where one says nothing: -1, NaN or False."""
    joined = {}
    for name in table.names:
        like = next((codes[name] for codes in codes_of_draws if name in codes), None)
        if like is not None:
            nothing = {"f": np.nan, "b": False}.get(like.dtype.kind, -1)
            joined[name] = np.concatenate(
                [
                    codes[name] if name in codes else np.full(draw.indices.shape[:2], nothing, dtype=like.dtype)
                    for codes, draw in zip(codes_of_draws, draws, strict=True)
                ],
                axis=1,
            )
    return joined


def _widen(rows: Array, width: int) -> Array:
    """Rows (steps, sets, size) followed by the first of each set."""
    more = width - rows.shape[2]
    return np.concatenate([rows, np.repeat(rows[:, :, :1], more, axis=2)], axis=2) if more else rows


def _mask(draw: Draw, width: int) -> Array | None:
    """Mask (steps, sets, width) of a draw that is padded to a width; None where nothing is."""
    steps, sets, size = draw.indices.shape
    if draw.mask is None and size == width:
        return None
    mask = np.zeros((steps, sets, width), dtype=bool)
    mask[:, :, :size] = True if draw.mask is None else draw.mask
    return mask
