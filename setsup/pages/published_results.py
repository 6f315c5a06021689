"""Filled reports as one HTML page without scripts or other files: it can be mailed, or put on any web server."""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from PIL import Image

from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.experiments.report.filled import FilledReport
from setsup.pages.places import Places
from setsup.pages.results_page import as_tables, passed_on
from setsup.pages.shell import plain_document

__all__ = ["NOTHING", "report_page"]

NOTHING = "No report has a measured value."
"""What a page without reports says."""


def report_page(filled: Sequence[FilledReport], title: str = "Measured results") -> str:
    """Write filled reports as one page.

    Parameters
    ----------
    filled : sequence of FilledReport
        A section each, in their order: the table with published, measured and cited values, the verdicts on claims,
        plots of what was measured, where matplotlib is installed, and claims that are not tested, with the commands
        for what is missing. Paths in them are written as in :func:`setsup.pages.export`.
    title : str
        Of the page.

    Returns
    -------
    str
        HTML; encode it as UTF-8. It loads nothing, and runs no script.

    Raises
    ------
    DataError
        When an argument is of another type, or an image of a run cannot be read.

    Examples
    --------
    >>> from setsup.experiments import find_report, report_on
    >>> page = report_page([report_on(find_report("abc/fig4a"))])
    >>> page.startswith("<!doctype html>"), '<section id="abc-fig4a">' in page
    (True, True)

    """
    check_arguments(report_page, locals(), DataError)
    places = Places()
    sections = [line for report in filled for line in _section(report, places, alone=len(filled) == 1)]
    about = f"Made by {_maker()}. {places.note}"
    contents = (f'<li><a href="#{_anchor(report)}">{escape(report.report.name)}</a></li>' for report in filled)
    lines = [
        f"<header><h1>{escape(title)}</h1>",
        '<p class="note prose">Means ± standard deviations over seeds. Runs on a substitute dataset, in another '
        f"precision or with other settings have lines of their own. {escape(about)}</p>",
        f"<nav><ul>{''.join(contents)}</ul></nav>" if len(filled) > 1 else "",
        "</header>\n<main>",
        *sections,
        "" if len(filled) else f"<p>{NOTHING}</p>",
        "</main>",
    ]
    return plain_document(title, "\n".join(lines)).decode()


def _section(filled: FilledReport, places: Places, *, alone: bool) -> Iterator[str]:
    folders = [Path(folder) for line in filled.lines for folder in line.folders]
    table = passed_on(as_tables(filled), folders, places)
    yield f'<section id="{_anchor(filled)}">\n<h2>{escape(table["name"])}: {escape(table["shows"])}</h2>'
    yield f'<p class="note">{escape(table["about"])}</p>'
    heads = "".join(f'<th scope="col">{escape(head)}</th>' if head else "<td></td>" for head in table["heads"])
    label = escape(f"Results of {table['name']}")
    yield f'<div class="scroll tall" tabindex="0" role="region" aria-label="{label}">'
    yield f'<table class="cells">\n<thead><tr>{heads}</tr></thead>\n<tbody>'
    for row in table["rows"]:
        cells = zip(table["heads"], row["cells"], strict=True)
        texts = "".join(f"<td{_headed(head)}>{escape(cell)}</td>" for head, cell in cells)
        yield f'<tr class="{row["kind"]}">{texts}</tr>'
    yield "</tbody></table></div>"
    yield from _verdicts([verdict for verdict in table["verdicts"] if verdict["holds"] is not None])
    for note in table["notes"]:
        yield f'<p class="note">{escape(note)}</p>'
    yield from _plots(filled)
    untested = [verdict for verdict in table["verdicts"] if verdict["holds"] is None]
    if untested or table["commands"]:
        yield f"<details{' open' if alone else ''}><summary>What is missing</summary>"
        yield from _verdicts(untested)
        if table["commands"]:
            yield f"<p>Commands that run and measure it:</p><pre>{escape(chr(10).join(table['commands']))}</pre>"
        yield "</details>"
    yield "</section>"


def _headed(head: str) -> str:
    """Attribute of a cell by which a narrow page, which has no line of headings, says what it is."""
    return f' data-head="{escape(head)}"' if head else ""


def _verdicts(verdicts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not verdicts:
        return
    yield '<ul class="verdicts">'
    for verdict in verdicts:
        says, *rest = map(escape, verdict["lines"])
        more = "".join(f'<p class="note">{line}</p>' for line in rest)
        kind = {True: "holds", False: "fails", None: "untested"}[verdict["holds"]]
        yield f'<li class="{kind}"><p><strong>{says}</strong></p>{more}</li>'
    yield "</ul>"


def _plots(filled: FilledReport) -> Iterator[str]:
    if not filled.measured or find_spec("matplotlib") is None:
        return
    from setsup.experiments.report.picture import report_charts

    yield '<div class="plots">'
    for number, chart in enumerate(report_charts(filled), 1):
        title = f"Plot {number} of {filled.report.name}; its numbers are those of the table"
        yield f'<img src="{_address(chart)}" width="{chart.width // 2}" alt="{escape(title)}">'
    yield "</div>"


def _address(image: Image.Image) -> str:
    content = io.BytesIO()
    image.save(content, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"


def _anchor(filled: FilledReport) -> str:
    return escape(filled.report.name.replace("/", "-"))


def _maker() -> str:
    try:
        return f"setsup {version('setsup')}"
    except PackageNotFoundError:  # a checkout on the path of Python
        return "setsup"
