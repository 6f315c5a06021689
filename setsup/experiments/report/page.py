"""Filled reports as one HTML page without scripts or other files: it can be mailed, or put on any web server."""

from collections.abc import Iterator, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version

from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.experiments.report.cells import CITED, heads_of, table_rows
from setsup.experiments.report.filled import FilledReport

__all__ = ["NOTHING", "report_page"]

NOTHING = "No report has a measured value."
"""What a page without reports says."""

_STYLE = """\
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }
nav { columns: 20rem; }
section { border-top: 1px solid #8886; margin-top: 2rem; }
div.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .8rem .2rem 0; text-align: right; white-space: nowrap; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
th { border-bottom: 1px solid #8888; }
tr.ours td { font-weight: 600; }
tr.quoted td, tr.missing td, p.small { opacity: .75; }
dd { margin: 0 0 .5rem 1.5rem; }
"""


def report_page(filled: Sequence[FilledReport], title: str = "Measured results") -> str:
    """Write filled reports as one page.

    Parameters
    ----------
    filled : sequence of FilledReport
        A section each, in their order: the table with published, measured and cited values, and the verdicts on claims
        that were tested.
    title : str
        Of the page.

    Returns
    -------
    str
        HTML; encode it as UTF-8.

    Raises
    ------
    DataError
        When an argument is of another type.

    Examples
    --------
    >>> from setsup.experiments import find_report, report_on
    >>> page = report_page([report_on(find_report("abc/fig4a"))])
    >>> page.startswith("<!doctype html>"), '<section id="abc-fig4a">' in page
    (True, True)

    """
    check_arguments(report_page, locals(), DataError)
    contents = (f'<a href="#{_anchor(one)}">{escape(one.report.name)}</a><br>' for one in filled)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>",
            '<p class="small">Means ± standard deviations over seeds. Runs on a substitute dataset, in another '
            f"precision or with other settings have lines of their own. Made by {escape(_maker())}.</p>",
            f"<nav>\n{chr(10).join(contents)}\n</nav>" if len(filled) else f"<p>{NOTHING}</p>",
            *(line for one in filled for line in _section(one)),
            "</body>\n</html>\n",
        ]
    )


def _section(filled: FilledReport) -> Iterator[str]:
    report = filled.report
    yield f'<section id="{_anchor(filled)}">\n<h2>{escape(report.name)}</h2>\n<p>{escape(report.shows)}</p>'
    words = ", ".join(filter(None, (report.source, f"in {report.unit}" if report.unit else "")))
    yield f'<p class="small">{escape(words)}</p>'
    heads = "".join(f"<th>{escape(head)}</th>" for head in heads_of(filled))
    yield f'<div class="table"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>'
    sources = {*report.references, CITED}
    for label, what, *values in table_rows(filled):
        kind = "quoted" if what in sources or label == "ceiling" else "ours" if any(values[:-1]) else "missing"
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in (label, what, *values))
        yield f'<tr class="{kind}">{cells}</tr>'
    yield "</tbody></table></div>"
    tested = [verdict for verdict in filled.verdicts if verdict.holds is not None]
    if tested:
        yield "<dl>"
        for verdict in tested:
            says, *rest = map(escape, verdict.lines)
            yield f"<dt>{says}</dt>\n<dd>{'<br>'.join(rest)}</dd>"
        yield "</dl>"
    for compared in filled.compared:
        if compared.lines:
            yield f"<p>{'<br>'.join(map(escape, compared.lines))}</p>"
    for note in filled.notes:
        yield f'<p class="small">{escape(note)}</p>'
    yield "</section>"


def _anchor(filled: FilledReport) -> str:
    return escape(filled.report.name.replace("/", "-"))


def _maker() -> str:
    try:
        return f"setsup {version('setsup')}"
    except PackageNotFoundError:  # a checkout on the path of Python
        return "setsup"
