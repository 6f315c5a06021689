"""A page without a server: the answers to finitely many questions, as scripts next to the document or in it."""

import base64
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from mimetypes import MimeTypes
from pathlib import Path
from typing import Any

import numpy as np

from setsup.checks import check_integer, check_path
from setsup.datasets.dataset import Dataset
from setsup.errors import DataError, SetsupError
from setsup.files.atomic import clear, written, written_folder
from setsup.files.disk import need_writable
from setsup.pages.answers import Answer, DamagedRows, Source, digest, error_content, key_of
from setsup.pages.correspondence_page import CorrespondenceSource
from setsup.pages.dataset_page import PAGE_ROWS, DatasetSource
from setsup.pages.embedding_page import EmbeddingSource
from setsup.pages.images import CHUNK
from setsup.pages.licences import withheld
from setsup.pages.page import Page
from setsup.pages.places import Places
from setsup.pages.questions import Question, parts
from setsup.pages.results_page import ResultsSource
from setsup.pages.run_page import RunSource, spikes
from setsup.pages.sampler_page import SamplerSource
from setsup.pages.shell import FILES, POLICY, document, script_text, single_document, static
from setsup.progress import progress

__all__ = ["export"]

_VIEWS = 8  # pairs of views with the partner of every pixel
_TRACED = 49_152  # pixels of a view that have one
_KNOWN = MimeTypes()  # endings that files have everywhere, none of this machine's
_LOG = logging.getLogger(__name__)


def export(page: Page, out: Path | str, *, rows: int = 4096, steps: int = 64) -> Path:
    """Write a page that opens with a double click, and asks nothing of any server.

    Parameters
    ----------
    page : Page
        What is shown.
    out : Path or str
        A folder, which must be new or empty, or a file whose name ends in ``.html``.
    rows : int
        Rows of each dataset that have thumbnails, in table order and in random order.
    steps : int
        Steps of each sampler that can be looked at.

    Returns
    -------
    Path
        The document.

    Raises
    ------
    DataError
        When it cannot be written, or most images cannot be read. Where some cannot, the page says which and why, and so
        does a warning of the logger ``setsup``.

    Examples
    --------
    >>> import tempfile
    >>> import setsup
    >>> from setsup.pages import page_of
    >>> few = setsup.from_arrays({"number": [1, 2, 3, 4]}, factors={"kind": ["a", "a", "b", "b"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export(page_of({"few": few}), f"{folder}/page.html", steps=2).name
    'page.html'

    """
    out = check_path(out, "where the page is written", DataError)
    rows, steps = check_integer(rows, "rows", DataError, 1), check_integer(steps, "steps", DataError, 1)
    alone = out.suffix.lower() in (".html", ".htm")
    _need_free(out, alone)
    clear(out)  # what a killed process left
    places = Places()
    page = _to_pass_on(page, rows, steps, places)
    answers = _answers(page, rows, steps, places)
    if alone:
        with written(out) as part:
            part.write_bytes(single_document(page.title, [_put(answers)]))
        return out
    with written_folder(out) as folder:
        for static_folder, name in ((folder / "static", file) for file in FILES):
            static_folder.mkdir(exist_ok=True)
            (static_folder / name).write_bytes(static(name))
        (folder / "data").mkdir()
        for name, text in answers.items():
            (folder / "data" / f"{name}.js").write_text(_put({name: text}), encoding="utf-8")
        index = f"setsup.index({script_text(sorted(answers))});"
        (folder / "data" / "index.js").write_text(index, encoding="utf-8")
        policy = POLICY.format(scripts="'self'", styles="'self'", images="'self' data:", connect="'none'")
        page_text = document(page.title, "files", "static/", policy, ["data/index.js"])
        (folder / "index.html").write_bytes(page_text)
    return out / "index.html"


def _answers(page: Page, rows: int, steps: int, places: Places) -> dict[str, str]:
    """Answers as scripts have them, by the digests of their questions."""
    answers: dict[str, str] = {}
    keys: dict[str, str] = {}
    damage = _Damage()
    listed = list(parts(page, rows, steps))
    at = ""
    with progress(len(listed), "exporting", "parts", lambda: at) as advance:
        for part in listed:
            at = part.about
            waiting = list(part.questions)[::-1]
            while waiting:
                advance(0)
                question = waiting.pop()
                key = key_of(question)
                name = digest(key)
                if keys.setdefault(name, key) != key:
                    raise DataError(f"two requests of the page have the digest {name}; export fewer rows or steps")
                if name in answers:
                    continue
                try:
                    answers[name] = script_text(_content(page.get(key)))
                    damage.read(question)
                except SetsupError as error:
                    answers[name] = script_text(error_content(error, places.sentence(str(error))))
                    waiting += damage.note(question, error, page)
            advance(1)
    damage.say(page)
    return answers


@dataclass
class _Damage:
    """Rows whose images cannot be read, and those whose can, by the names of sources.

    A page is exported without some images, which it says, but not without most of them: then something else is wrong.
    """

    rows: dict[str, dict[int, str]] = field(default_factory=dict)
    readable: dict[str, set[str]] = field(default_factory=dict)

    def read(self, question: Question) -> None:
        """Note a question that has an answer."""
        if question.get("q") == "thumbs" and "rows" in question:
            self.readable.setdefault(question["s"], set()).update(question["rows"].split(","))

    def note(self, question: Question, error: SetsupError, page: Page) -> list[Question]:
        """Note one that has none; questions for the images that can be read."""
        if not isinstance(error, DamagedRows):
            return []
        source = question["s"]
        damaged, readable = self.rows.setdefault(source, {}), self.readable.setdefault(source, set())
        damaged |= error.rows
        rest = [row for row in question.get("rows", "").split(",") if row and int(row) not in error.rows]
        if len(damaged) > len(readable) + len(rest):
            raise DataError(f"most images cannot be read: {error}")
        return [{**question, "rows": ",".join(rest)}] if rest else []

    def say(self, page: Page) -> None:
        """Log what the page lacks."""
        for source, rows in self.rows.items():
            some = page.sources[source]
            name = some.dataset.name if isinstance(some, DatasetSource) else source
            _LOG.warning("%s: %s", name, DamagedRows(rows))


def _need_free(out: Path, alone: bool) -> None:
    """Refuse a place where something is already, or that cannot be written, before long work for it."""
    if not alone and not out.is_dir() and any(_KNOWN.guess_type(out.name)):
        raise DataError(
            f"a page cannot be written as {out.suffix}: {out}; pass a file that ends in .html, or a new folder without "
            "a suffix"
        )
    if alone and out.exists():
        raise DataError(f"{out} already exists; choose another name, or remove it first")
    if not alone and out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file; pass a new folder, or a file that ends in .html")
    if not alone and out.exists() and any(out.iterdir()):
        raise DataError(f"{out} is not empty; pass a new folder, or a file that ends in .html")
    need_writable(out if alone else out / "index.html")


def _to_pass_on(page: Page, rows: int, steps: int, places: Places) -> Page:
    """The page without images that may not be passed on, and without places of this machine."""
    sources: dict[str, Source] = {}
    left_out: dict[str, str] = {}

    def licence_of(opened: str, dataset: Dataset) -> str | None:
        """The licence for which images are left out."""
        licence = withheld(opened, dataset)
        return None if licence is None else left_out.setdefault(dataset.name, licence)

    for name, source in page.sources.items():
        if isinstance(source, DatasetSource):
            licence = licence_of(source.opening.source, source.dataset)
            source = replace(
                source,
                opening=source.opening.passed_on(places),
                images=source.images and licence is None,
                withheld=licence or "",
                shown=min(-(-rows // PAGE_ROWS) * PAGE_ROWS, len(source.dataset)),
            )
        elif isinstance(source, SamplerSource):
            source = replace(source, opening=source.opening.passed_on(places))
        elif isinstance(source, CorrespondenceSource):
            if licence_of(source.opening.source, source.dataset) is not None:
                continue
            opening, some = source.opening.passed_on(places), min(steps, _VIEWS)
            source = replace(source, opening=opening, pairs=some, shown=_TRACED)
        elif isinstance(source, RunSource):
            data, shown = _open_data(source) if source.images else None, _some_steps(source, steps)
            images = data is not None and licence_of(*data) is None
            source = replace(source, images=images, shown=shown, place=places.path(source.place))
        elif isinstance(source, EmbeddingSource):
            free = source.dataset is None or licence_of("", source.dataset) is None
            shown_place = places.path(source.place) if source.place else ""
            most = min(source.most, rows)
            source = replace(source, place=shown_place, images=source.images and free, most=most, chunk=CHUNK)
        elif isinstance(source, ResultsSource):
            source = replace(source, places=places)
        sources[name] = source
    for name, licence in left_out.items():
        _LOG.warning("images of %s are not included: the licence (%s) does not permit redistribution", name, licence)
    options = tuple(places.path(option) if isinstance(option, Path) else option for option in page.options)
    return replace(page, sources=sources, options=options, note=places.note)


def _open_data(source: RunSource) -> tuple[str, Dataset] | None:
    """What a run was trained on, and what opens it; None where it is not here."""
    data = source.run.preset.data
    if data is None:
        return None
    name = data.substitute if source.run.substitute and data.substitute is not None else data.name
    with suppress(SetsupError):  # each of its steps says that its data is not here
        return str(name), source.batch(1).dataset
    return None


def _some_steps(source: RunSource, count: int) -> tuple[int, ...]:
    """Steps of a run that an exported page has the batches of: evenly spaced ones, and the peak of each metric."""
    steps, metrics = source.metrics()
    if not len(steps):
        return (1,)
    even = steps[np.unique(np.linspace(0, len(steps) - 1, count).astype(np.int64))].tolist()
    peaks: set[int] = set()
    for values in metrics.values():
        known = np.isfinite(values)
        if known.any():
            peaks |= {int(steps[np.nanargmax(np.where(known, values, np.nan))]), *spikes(steps[known], values[known])}
    return tuple(sorted({*even, *peaks}))


def _content(answer: Answer) -> Any:
    """JSON as it is, an image as the address that holds it."""
    if answer.media == "application/json":
        return json.loads(answer.content)
    return f"data:{answer.media};base64,{base64.b64encode(answer.content).decode()}"


def _put(answers: Mapping[str, str]) -> str:
    return "\n".join(f'setsup.put("{name}",{text});' for name, text in answers.items())
