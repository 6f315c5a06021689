"""The table of a filled report as words: published, measured and cited values, a list of cells for each line."""

from collections.abc import Mapping

from setsup.experiments.report.filled import FilledReport, Line
from setsup.experiments.report.report import Reference, reference_words

__all__ = ["CITED", "row_kinds", "table_heads", "table_rows"]

CITED = "cited in the paper"
"""In the column of what was run, of numbers that the paper took from others."""


def table_heads(filled: FilledReport) -> list[str]:
    """Headings: of labels, of what was run, of values, and of seeds."""
    return ["", "run", *(column.name for column in filled.columns), "seeds"]


def table_rows(filled: FilledReport) -> list[list[str]]:
    """Label of the row where it is new, what was run, values, seeds."""
    rows = []
    for row in filled.report.rows:
        label = row.label
        for who, references in filled.report.references.items():
            here = {key: value for (of, key), value in references.items() if of == row.label}
            if any(column.key in here for column in filled.columns):
                rows.append([label, who, *_reference_cells(filled, here), ""])
                label = ""
        for line in filled.lines:
            if line.row is row:
                rows.append([label, *_measured(filled, line)])
                label = ""
    rows += [
        [label, CITED, *_reference_cells(filled, references), ""] for label, references in filled.report.cited.items()
    ]
    if any(column.ceiling is not None for column in filled.columns):
        ceilings = ["" if column.ceiling is None else f"{column.ceiling:.2f}" for column in filled.columns]
        rows.append(["ceiling", "", *ceilings, ""])
    return rows


def row_kinds(filled: FilledReport) -> list[str]:
    """What each of the table's rows is: ``quoted`` from a paper, ``ours``, or ``missing``."""
    sources = {*filled.report.references, CITED}
    return [
        "quoted" if source in sources or label == "ceiling" else "ours" if any(values[:-1]) else "missing"
        for label, source, *values in table_rows(filled)
    ]


def _reference_cells(filled: FilledReport, references: Mapping[str, Reference]) -> list[str]:
    values = (references.get(column.key, "") for column in filled.columns)
    return [reference_words(value, filled.report.digits) for value in values]


def _measured(filled: FilledReport, line: Line) -> list[str]:
    digits = filled.report.digits
    values = [line.values[column.key].words(digits) if column.key in line.values else "" for column in filled.columns]
    note = ", ".join(line.differs) or ("ours" if line.run else "not run")
    if line.run and not line.seeds:
        note += ", not measured"
    return [note, *values, f"{len(line.seeds)} of {filled.seeds[line.row.preset]}"]
