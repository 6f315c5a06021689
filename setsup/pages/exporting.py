"""A page without a server: the answers to finitely many questions, as scripts next to the document or in it."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from setsup.checks import check_integer, check_path
from setsup.errors import DataError, SetsupError
from setsup.files.atomic import written, written_folder
from setsup.files.disk import need_writable
from setsup.pages.answers import Answer, Query, Source, digest, key_of
from setsup.pages.correspondence_page import CorrespondenceSource
from setsup.pages.dataset_page import PAGE_ROWS, DatasetSource
from setsup.pages.embedding_page import EmbeddingSource
from setsup.pages.images import image_modality
from setsup.pages.licences import withheld
from setsup.pages.page import Page
from setsup.pages.places import Places
from setsup.pages.results_page import ResultsSource
from setsup.pages.run_page import RunSource, read_metrics, spikes
from setsup.pages.sampler_page import SamplerSource, changes_by_step, sampler_text
from setsup.pages.shell import FILES, POLICY, document, script_text, single_document, static
from setsup.samplers import Draw

__all__ = ["export", "questions"]

_TILE = 64  # pixels of a thumbnail, as the page asks for it
_CHUNK = 64  # thumbnails of one question
_FILTERS = 64  # levels of a factor by which the page can be filtered
_PAIRS = 15  # pairs of factors
_CHANCES = 1024  # drawn rows whose chance is told
_FULL = 48  # rows that are shown in full
_VIEWS = 8  # pairs of views with the partner of every pixel
_TRACED = 49_152  # pixels of a view that have one

Question = dict[str, str]


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
        When it cannot be written, or images cannot be read.

    """
    out = check_path(out, "where the page is written", DataError)
    rows, steps = check_integer(rows, "rows", DataError, 1), check_integer(steps, "steps", DataError, 1)
    alone = out.suffix.lower() in (".html", ".htm")
    _need_free(out, alone)
    page = _to_pass_on(page, rows, steps)
    found: dict[str, str] = {}
    keys: dict[str, str] = {}
    for question in questions(page, rows, steps):
        key = key_of(question)
        name = digest(key)
        if keys.setdefault(name, key) != key:
            raise DataError(f"two questions of the page have the digest {name}: export fewer rows or steps")
        if name not in found:
            try:
                found[name] = script_text(_content(page.get(key)))
            except SetsupError as error:
                # images are what a user came for
                if question.get("q") in ("thumbs", "image", "row") and not question["s"].startswith("s"):
                    raise
                found[name] = script_text({"error": str(error)})
    if alone:
        with written(out) as part:
            part.write_bytes(single_document(page.title, [_put(found)]))
        return out
    with written_folder(out) as folder:
        for place, name in ((folder / "static", one) for one in FILES):
            place.mkdir(exist_ok=True)
            (place / name).write_bytes(static(name))
        (folder / "data").mkdir()
        for name, text in found.items():
            (folder / "data" / f"{name}.js").write_text(_put({name: text}), encoding="utf-8")
        index = f"setsup.index({script_text(sorted(found))});"
        (folder / "data" / "index.js").write_text(index, encoding="utf-8")
        policy = POLICY.format(scripts="'self'", styles="'self'", images="'self' data:", connect="'none'")
        page_text = document(page.title, "files", "static/", policy, ["data/index.js"])
        (folder / "index.html").write_bytes(page_text)
    return out / "index.html"


def _need_free(out: Path, alone: bool) -> None:
    """Refuse a place where something is already, or that cannot be written, before long work for it."""
    if alone and out.exists():
        raise DataError(f"{out} is there already; give another name, or remove it first")
    if not alone and out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file; give a new folder, or a file that ends in .html")
    if not alone and out.exists() and any(out.iterdir()):
        raise DataError(f"{out} is not empty; give a new folder, or a file that ends in .html")
    need_writable(out if alone else out / "index.html")


def _to_pass_on(page: Page, rows: int, steps: int) -> Page:
    """The page without images that may not be passed on, and without places of this machine."""
    sources: dict[str, Source] = {}
    places = Places()
    for name, source in page.sources.items():
        if isinstance(source, DatasetSource):
            licence = withheld(source.opening.source, source.dataset)
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
            if withheld(source.opening.source, source.dataset) is not None:
                continue
            opening, some = source.opening.passed_on(places), min(steps, _VIEWS)
            source = replace(source, opening=opening, pairs=some, shown=_TRACED)
        elif isinstance(source, RunSource):
            images, shown = source.images and _may_be_shown(source), _some_steps(source, steps)
            source = replace(source, images=images, shown=shown, place=places.path(source.place))
        elif isinstance(source, EmbeddingSource):
            free = source.dataset is None or withheld("", source.dataset) is None
            place = places.path(source.place) if source.place else ""
            most = min(source.most, rows)
            source = replace(source, place=place, images=source.images and free, most=most, chunk=_CHUNK)
        elif isinstance(source, ResultsSource):
            source = replace(source, places=places)
        sources[name] = source
    options = tuple(places.path(one) if isinstance(one, Path) else one for one in page.options)
    return replace(page, sources=sources, options=options, note=places.note)


def _may_be_shown(source: RunSource) -> bool:
    """Whether images of what a run was trained on may be passed on."""
    data = source.run.preset.data
    if data is None:
        return False
    name = data.substitute if source.run.substitute and data.substitute is not None else data.name
    return withheld(str(name), source.batch(1).dataset) is None


def _some_steps(source: RunSource, count: int) -> tuple[int, ...]:
    """Steps of a run that an exported page has the batches of: evenly spaced ones, and the peak of each metric."""
    steps, metrics = read_metrics(source.run)
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


def _put(found: Mapping[str, str]) -> str:
    return "\n".join(f'setsup.put("{name}",{text});' for name, text in found.items())


def questions(page: Page, rows: int, steps: int) -> Iterator[Question]:
    """The questions that an exported page can answer."""
    yield {}
    for name, source in page.sources.items():
        if isinstance(source, DatasetSource):
            yield from _of_dataset(name, source, rows)
        elif isinstance(source, SamplerSource):
            yield from _of_sampler(name, source, page.sources[f"d{name[1:]}"], steps)
        elif isinstance(source, CorrespondenceSource):
            yield from _of_pairs(name, source)
        elif isinstance(source, RunSource):
            yield from _of_run(name, source)
        elif isinstance(source, EmbeddingSource):
            yield from _of_embedding(name, source)
        elif isinstance(source, ResultsSource):
            yield {"s": name, "q": "tables"}


def _of_dataset(name: str, source: DatasetSource, rows: int) -> Iterator[Question]:
    about = source.about()
    yield {"s": name, "q": "counts", "where": ""}
    for factor in about["factors"]:
        if factor["literals"] is not None and factor["size"] <= _FILTERS:
            for value in factor["literals"]:
                yield {"s": name, "q": "counts", "where": f"{quoted(factor['name'])} == {value}"}
    discrete = [one["name"] for one in about["factors"] if one["literals"] is not None and one["size"] <= _FILTERS]
    pairs = [(x, y) for place, x in enumerate(discrete) for y in discrete[place + 1 :]]
    for x, y in pairs[:_PAIRS]:
        yield {"s": name, "q": "joint", "x": x, "y": y, "where": ""}
    for order in ("table", "random"):
        for number in range(-(-min(rows, max(len(source.dataset), 1)) // PAGE_ROWS)):
            yield {"s": name, "q": "rows", "order": order, "page": str(number), "where": ""}
            shown, _ = source.rows("", order, number)
            yield from _thumbs(name, about["thumbs"], shown)
    for row in range(min(_FULL, len(source.dataset))):
        asked = {"s": name, "row": str(row)}
        yield {**asked, "q": "row"}
        for shown in json.loads(source.answer(Query({**asked, "q": "row"})).content)["modalities"]:
            if shown["image"]:
                yield {**asked, "q": "image", "modality": shown["name"]}


def _of_sampler(name: str, source: SamplerSource, dataset: Any, steps: int) -> Iterator[Question]:
    sampler = source.begin()
    if sampler is None:
        return
    asked = {"s": name, "sampler": sampler_text(source.plain(sampler))}
    yield {**asked, "q": "coverage"}
    changes = changes_by_step(asked["sampler"])
    chances: set[int] = set()
    first = sampler.first_step
    for step in range(first, first + steps if sampler.length is None else min(first + steps, sampler.length)):
        at = {"step": str(step)} if changes and step else {}
        if step == first or changes:
            yield {**asked, **at, "q": "reach"}
        yield {**asked, "q": "draw", "step": str(step)}
        drawn = np.unique(sampler[step].indices).tolist()
        asking = [row for row in drawn if changes or row not in chances][: _CHANCES - len(chances)]
        chances |= set(asking)
        yield from ({**asked, **at, "q": "row", "row": str(row)} for row in asking)
        for rows in _shown(sampler[step]):
            yield from _thumbs(f"d{name[1:]}", dataset.about()["thumbs"], rows)


def _of_pairs(name: str, source: CorrespondenceSource) -> Iterator[Question]:
    modality = image_modality(source.dataset)
    for step in range(source.pairs or 0):
        rows = source.views(step)
        asked = {"s": name, "rows": ",".join(map(str, rows))}
        yield {"s": name, "q": "pair", "step": str(step)}
        yield {**asked, "q": "partners"}
        for run in source.learned:
            yield {**asked, "q": "learned", "run": run}
        if modality is not None:
            yield from ({"s": f"d{name[1:]}", "q": "image", "row": str(row), "modality": modality} for row in rows)


def _of_run(name: str, source: RunSource) -> Iterator[Question]:
    for metric in source.about()["metrics"]:
        yield {"s": name, "q": "curve", "metric": metric}
    for step in source.shown:
        asked = {"s": name, "step": str(step)}
        yield {**asked, "q": "batch"}
        found = source.batch(step)
        modality = image_modality(found.dataset) if source.images else None
        if source.images:
            yield {**asked, "q": "sheet"}
        for rows in _shown(found.draw):
            yield from ({**one, **asked} for one in _thumbs(name, modality, rows))


def _shown(draw: Draw) -> list[Any]:
    """Rows whose images are shown together: those of each set, and each canonical row alone."""
    return [*draw.indices, *([] if draw.canonical is None else draw.canonical[:, None])]


def _of_embedding(name: str, source: EmbeddingSource) -> Iterator[Question]:
    about = source.about()
    yield {"s": name, "q": "points"}
    for factor in about["factors"]:
        yield {"s": name, "q": "colours", "factor": factor["name"]}
    asked = ["rows", "near", *(["thumbs"] if about["thumbs"] is not None else [])]
    for start in range(0, len(source.order), source.chunk):
        yield from ({"s": name, "q": one, "start": str(start)} for one in asked)


def _thumbs(name: str, modality: str | None, rows: Any) -> Iterator[Question]:
    if modality is not None:
        for start in range(0, len(rows), _CHUNK):
            some = ",".join(map(str, np.asarray(rows)[start : start + _CHUNK].tolist()))
            yield {"s": name, "q": "thumbs", "rows": some, "modality": modality, "tile": str(_TILE)}


def quoted(name: str) -> str:
    """A factor's name as an expression has it: in backticks, whatever it is."""
    return f"`{name.replace('`', '``')}`"
