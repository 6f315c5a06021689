"""One line of the result table, and the table itself."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import rich.box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.measure import Seconds, Side, Spread, alternate, ratio

__all__ = ["Bound", "Row", "at_least", "at_most", "compare", "show"]


@dataclass(frozen=True, slots=True)
class Bound:
    """What is required of a figure: ``sign`` is ≥ or ≤."""

    sign: str
    value: float

    def holds(self, figure: float) -> bool:
        """Whether a figure is as required."""
        return figure >= self.value if self.sign == "≥" else figure <= self.value


def at_least(value: float) -> Bound:
    return Bound("≥", value)


def at_most(value: float) -> Bound:
    return Bound("≤", value)


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure.

    ``ours`` and ``other`` are the two sides in words (time a set, images a second); ``figure`` is what is judged, in
    ``unit``; ``bound`` is None where a figure is only reported.
    """

    topic: str
    what: str
    ours: str
    against: str
    other: str
    figure: Spread
    unit: str = "×"
    bound: Bound | None = None

    @property
    def verdict(self) -> str:
        """Pass, MISS, or reported where nothing is required."""
        if self.bound is None:
            return "reported"
        return "pass" if self.bound.holds(self.figure.median) else "MISS"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        bound = None if self.bound is None else f"{self.bound.sign} {self.bound.value:g}"
        return {**asdict(self), "bound": bound, "verdict": self.verdict}


def compare(
    topic: str, what: str, against: str, ours: Side, other: Side, bound: Bound | None = None, **how: Any
) -> Row:
    """Row that says how many times as long the other side takes."""
    found = alternate({"ours": ours, "other": other}, **how)
    times = ratio(found["other"], found["ours"])
    return Row(topic, what, duration(found["ours"]), against, duration(found["other"]), times, "×", bound)


def duration(seconds: Seconds) -> str:
    """Median in the unit that suits it."""
    median = Spread.of(seconds).median
    for unit, length in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if median >= length:
            return f"{median / length:.3g} {unit}"
    return f"{median / 1e-9:.3g} ns"


def rate(seconds: Seconds, unit: str) -> str:
    """Median units per second, in thousands or millions."""
    value = 1 / Spread.of(seconds).median
    return f"{number(value * 1e-6)}M {unit}/s" if value >= 1e6 else f"{number(value * 1e-3)}k {unit}/s"


def number(value: float) -> str:
    """Three significant digits, never in powers of ten."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the rows as one table."""
    table = Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "what", "setsup", "against", "", "figure", "quartiles", "required", ""):
        table.add_column(heading, justify="right" if heading in {"setsup", "figure", "required"} else "left")
    topic = ""
    for row in rows:
        figure = row.figure
        table.add_row(
            "" if row.topic == topic else row.topic,
            escape(row.what),
            row.ours,
            row.against,
            row.other,
            f"{number(figure.median)} {row.unit}",
            f"{number(figure.low)} – {number(figure.high)}",
            "" if row.bound is None else f"{row.bound.sign} {number(row.bound.value)} {row.unit}",
            {"pass": "[green]pass[/]", "MISS": "[red]MISS[/]"}.get(row.verdict, "[dim]reported[/]"),
        )
        topic = row.topic
    console.print(table)
