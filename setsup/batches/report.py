"""The report of a batch sampler, in the words of its call."""

import math
from dataclasses import dataclass, fields

from setsup.batches.passes import Passes, describe_pass
from setsup.batches.ways import Way
from setsup.html import counted
from setsup.samplers.epochs import EpochSampler
from setsup.samplers.report import Entry, Report
from setsup.samplers.report_words import list_counts, span, write_number
from setsup.samplers.sampler import Sampler

__all__ = ["LabelEntry", "describe_batches"]

_SETS = {"pairs": "pairs", "triplets": "triplets"}


@dataclass(frozen=True)
class LabelEntry(Entry):
    """What batches are drawn from: :class:`setsup.samplers.Entry`, whose groups are classes, in the caller's words.

    Attributes
    ----------
    option : str
        The argument that says how batches are drawn.
    noun : str
        What groups are called, in the plural: ``classes`` or ``domains``; empty where rows need no class.
    each : int
        Rows that a batch has of a class.

    """

    option: str = ""
    noun: str = ""
    each: int = 0

    def lines(self) -> list[str]:
        """Lines of the report."""
        lost = {
            f"of {self.noun} with too few rows" if self.noun else "at the end of a pass": self.unreachable,
            "with an unknown label": self.unknown,
            "of weight 0 or of unknown weight": self.excluded,
        }
        never = f"  rows never drawn: {list_counts(lost)}"
        if not self.noun:
            return [f"rows that can be drawn: {self.largest:,}", never]
        drawable = "all" if self.drawable == self.groups else f"{self.drawable:,}"
        rows = f"{span(self.smallest, self.largest)} rows{' each' if self.groups > 1 else ''}"
        can = "have anchors" if self.option == "triplets" else "can be drawn"
        lines = [f"{self.noun} of {self.inactive}: {self.groups:,}, of {rows}; {drawable} {can}", never]
        if not math.isnan(self.log10_sets):
            lines.append(f"  distinct {self._sets()}: {write_number(self.log10_sets)}")
        if self.option == "pairs" and not math.isnan(self.shared_rows):
            lines[-1] += f"; two pairs of a batch share {self.shared_rows:.3g} rows on average"
        return lines

    def _sets(self) -> str:
        one = "domain" if self.noun == "domains" else "class"
        return _SETS.get(self.option, f"choices of {counted(self.each, 'row')} of one {one}")


def describe_batches(sampler: Sampler, way: Way, passes: Passes, processes: int, weights: str | None) -> Report:
    """The report of a batch sampler.

    Parameters
    ----------
    sampler : Sampler
        The sampler that draws.
    way : Way
        The way of drawing.
    passes : Passes
        Its passes.
    processes : int
        Processes that draw.
    weights : str, optional
        What weights are, in words.

    """
    (found,) = sampler.report().entries
    figures = {one.name: getattr(found, one.name) for one in fields(Entry)}
    noun = "" if way.option == "batch_size" else "domains" if way.option == "domains" else "classes"
    entry = LabelEntry(**{**figures, "distinct": {}}, option=way.option, noun=noun, each=way.each if noun else 0)
    shown = {"episodes": way.numbers} if way.option == "episodes" else way.arguments
    arguments = ", ".join(f"{name}={value}" for name, value in shown.items())
    notes = [f"rows are drawn by weight: {weights}"] if weights else []
    if isinstance(sampler, EpochSampler):
        notes += _notes_of_rows(sampler, entry.largest, way.numbers[0], passes, bool(weights))
    elif way.option in ("classes", "domains"):
        lap = entry.drawable // math.gcd(entry.drawable, way.numbers[0])
        notes.append(f"each {way.noun} is drawn equally often in every {f'{lap:,} batches' if lap > 1 else 'batch'}")
    notes += describe_pass(passes, processes)
    return Report(f"BatchSampler: {arguments}, drawn by {type(sampler).__name__}", [entry], notes)


def _notes_of_rows(sampler: EpochSampler, rows: int, size: int, passes: Passes, weighted: bool) -> list[str]:
    """How a pass, or the epochs in passes of another length, cover the rows."""
    if weighted:
        return ["each batch is drawn independently, so a pass may have a row several times, or not at all"]
    one = passes.steps is None
    epoch = "each pass" if one else f"every {counted(sampler.steps_per_epoch, 'batch', 'batches')}"
    left = rows - sampler.steps_per_epoch * size
    if left < 0:
        last = f"the last batch of {'a pass' if one else 'these'} has {counted(size + left, 'row')}"
        return [f"{epoch} {'has' if one else 'have'} every row once; {last}"]
    if left > 0:
        which = "different ones each time" if sampler.arguments["shuffle"] else "the last ones"
        return [f"{epoch} leave{'s' * one} out {counted(left, 'row')}, {which}"]
    return [f"{epoch} {'has' if one else 'have'} every row once"]
