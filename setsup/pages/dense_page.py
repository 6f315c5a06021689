"""Results of dense features as one HTML page without scripts or other files."""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from PIL import Image

from setsup.experiments.evaluations.dense_results import DenseResults, tables
from setsup.experiments.evaluations.measured import BenchmarkResults
from setsup.pages.shell import plain_document

__all__ = ["benchmark_page", "dense_page"]

Tables = Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]]


def dense_page(results: DenseResults, sheets: Mapping[str, Image.Image], lines: Sequence[str] = ()) -> str:
    """Write results as one page: tables, and a sheet for each encoder.

    Parameters
    ----------
    results : DenseResults
        What was measured.
    sheets : mapping of str to image
        By encoder.
    lines : sequence of str
        What is said of the pairs of views.

    Returns
    -------
    str
        HTML; encode it as UTF-8. It loads nothing, and runs no script.

    """
    return _page(results.about["dataset"], tables(results), sheets, results.weights, lines)


def benchmark_page(results: BenchmarkResults, sheets: Mapping[str, Image.Image], lines: Sequence[str] = ()) -> str:
    """Build the page of a benchmark with its own protocol, as :func:`dense_page` does."""
    return _page(results.about["dataset"], results.tables(), sheets, results.weights, lines)


def _page(
    dataset: str, found: Tables, sheets: Mapping[str, Image.Image], weights: Mapping[str, str], lines: Sequence[str]
) -> str:
    title = f"Dense features on {dataset}"
    body = [f"<header><h1>{escape(title)}</h1>", *(f'<p class="note prose">{escape(line)}</p>' for line in lines)]
    body += ["</header>\n<main>", *_tables(found), *_sheets(sheets, weights), "</main>"]
    return plain_document(title, "\n".join(body)).decode()


def _tables(found: Tables) -> Iterator[str]:
    for title, heads, rows in found:
        yield f"<section>\n<h2>{escape(title[:1].upper() + title[1:])}</h2>"
        yield f'<div class="scroll tall" tabindex="0" role="region" aria-label="{escape(title)}">'
        cells = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
        yield f"<table>\n<thead><tr>{cells}</tr></thead>\n<tbody>"
        for row in rows:
            texts = "".join(f"<td>{escape(cell).replace(' ', '&nbsp;')}</td>" for cell in row[1:])
            yield f'<tr><th scope="row">{escape(row[0])}</th>{texts}</tr>'
        yield "</tbody></table></div></section>"


def _sheets(sheets: Mapping[str, Image.Image], weights: Mapping[str, str]) -> Iterator[str]:
    for encoder, sheet in sheets.items():
        content = io.BytesIO()
        sheet.save(content, "PNG", optimize=True)
        address = f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
        known = weights.get(encoder, "")
        yield f"<section>\n<h2>{escape(encoder)}</h2>"
        yield f'<p class="note">{escape(f"weights: {known}")}</p>' if known else ""
        text = f"Features of {encoder} as colours, and its matches, right ones green and wrong ones red"
        yield f'<div class="plots"><img src="{address}" width="{sheet.width}" alt="{escape(text)}"></div></section>'
