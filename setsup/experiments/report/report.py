"""A report: what a paper found in one of its figures or tables, and which runs are compared with it.

It is a plain value, which :func:`~setsup.experiments.report.fill.fill` fills with results of runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = [
    "Chart",
    "Claim",
    "Column",
    "Criterion",
    "HeatMap",
    "Means",
    "Reference",
    "Report",
    "Resplits",
    "Row",
    "Spread",
    "reference_words",
]


class Spread(NamedTuple):
    """A value over seeds: its mean, its sample standard deviation (None for one seed), and the number of seeds."""

    mean: float
    sd: float | None
    n: int

    def words(self, digits: int) -> str:
        """``0.87 ± 0.02``; without a spread for one seed."""
        mean = round(self.mean, digits) + 0.0  # no minus before a zero
        return f"{mean:.{digits}f}" + ("" if self.sd is None else f" ± {self.sd:.{digits}f}")


Reference = float | tuple[float, float | None] | str
"""A number to compare with, a mean and its spread, or words."""

Means = Mapping[str, Mapping[str, Spread]]
"""Values by the labels of rows, then by the keys of columns."""

Criterion = Callable[[Means], tuple[bool | None, str]]
"""From values to whether a claim holds (None if they are not enough to tell), and the numbers in words."""


def reference_words(value: Reference, digits: int) -> str:
    """Write a reference as values are written."""
    if isinstance(value, str):
        return value
    mean, spread = value if isinstance(value, tuple) else (float(value), None)
    return Spread(mean, spread, 1).words(digits)


@dataclass(frozen=True, slots=True)
class Row:
    """One setting of a report.

    Attributes
    ----------
    preset : str
        What is trained, as for :func:`~setsup.experiments.find_preset`.
    label : str
        Its name in the report.
    part : str
        Prefix of the names of this row's values and curves, if one evaluation measures several things, such as a
        trained and an untrained network.
    scale : float
        Unit of the horizontal axis of this row's curves.

    """

    preset: str
    label: str
    part: str = ""
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Column:
    """One value of a report.

    Attributes
    ----------
    key : str
        Its name in the evaluation.
    label : str
        Its name in the report; the key by default.
    ceiling : float, optional
        Upper bound of the value.
    at : float, optional
        The value is that of the curve ``key`` at this position of its axis, interpolated logarithmically.
    unit : str
        If different from the report's: such values have a chart of their own.

    """

    key: str
    label: str = ""
    ceiling: float | None = None
    at: float | None = None
    unit: str = ""

    @property
    def name(self) -> str:
        """Its heading."""
        return self.label or self.key


@dataclass(frozen=True, slots=True)
class Resplits:
    """Rows are compared over re-splits that they share, one value a re-split.

    Attributes
    ----------
    key : str
        Of the curve of an evaluation with the numbers of re-splits and the values.
    reference : str
        Label of the row that the others are tested against by paired t-tests; without it there are no tests.

    """

    key: str
    reference: str = ""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A curve of each run against one of its values: a map for each row, with a line for each value.

    Attributes
    ----------
    curve : str
        Its name in the evaluation.
    key : str
        Of the column with the value, such as a number of orbits.
    label : str
        Of the cells.

    """

    curve: str
    key: str
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves of one name of all rows, in one chart.

    Attributes
    ----------
    curve : str
        Its name in the evaluation, without the part of the row.
    label : str
        Of the chart and its vertical axis.
    x_label : str
        Of the horizontal axis.
    log_x : bool
        Whether that axis is logarithmic; values that are not above 0 are omitted then.

    """

    curve: str
    label: str
    x_label: str = ""
    log_x: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement of the paper, and the criterion for it.

    Attributes
    ----------
    says : str
        The statement, with its place in the paper, or that it is not from there.
    tested : str
        The criterion in words: papers seldom name a number, so it is ours.
    rows : tuple of str
        Labels of the rows that it concerns; all by default.
    criterion : callable
        From values by row and column to whether it holds and the numbers in words. It gets these rows only, as far as
        they were run, and returns None if they are not enough.

    """

    says: str
    tested: str
    rows: tuple[str, ...] = ()
    criterion: Criterion


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The published results of a paper, and the runs that they are compared with.

    Attributes
    ----------
    name : str
        ``"<paper>/<figure or table>"``.
    shows : str
        What the paper shows there, in one line.
    source : str
        Where.
    evaluations : tuple of str
        Whose values it shows. With several, keys are ``"<evaluation>: <name>"``.
    rows : tuple of Row
        Settings that are compared.
    columns : tuple of Column
        Values; all that are found by default.
    unit : str
        Of the values.
    digits : int
        Number of decimals.
    references : mapping of str to mapping of (row, column) to float, (float, float) or str
        Numbers to compare with, a mean and its spread where that is published, or words if there are none, by their
        source: ``"the paper"`` and others. Rows by their labels, columns by their keys.
    cited : mapping of str to mapping of str to float, (float, float) or str
        Numbers that the paper took from others, by the name of the method and the keys of columns: they are printed as
        cited, and nothing is run for them.
    claims : tuple of Claim
        Claims of the paper about the values.
    resplits : Resplits, optional
        Curves over re-splits: boxes in place of curves, and paired tests.
    heat : HeatMap, optional
        Map of a curve over runs that differ in their data.
    charts : tuple of Chart
        Curves that are compared between rows; by default each row has a chart of all its curves.
    x_label, y_label : str
        Of the axes of curves; the vertical one has the unit by default.
    log_x : bool
        Whether the horizontal one is logarithmic.

    """

    name: str
    shows: str
    source: str
    evaluations: tuple[str, ...]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...] = ()
    unit: str = ""
    digits: int = 2
    references: Mapping[str, Mapping[tuple[str, str], Reference]] = field(default_factory=dict)
    cited: Mapping[str, Mapping[str, Reference]] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    resplits: Resplits | None = None
    heat: HeatMap | None = None
    charts: tuple[Chart, ...] = ()
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
