"""The questions that an exported page can answer, in parts, so that long work can say which it is at."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from setsup.errors import SetsupError
from setsup.pages.answers import Query
from setsup.pages.correspondence_page import CorrespondenceSource
from setsup.pages.dataset_page import PAGE_ROWS, DatasetSource
from setsup.pages.embedding_page import EmbeddingSource
from setsup.pages.images import CHUNK, image_modality
from setsup.pages.page import Page
from setsup.pages.results_page import ResultsSource
from setsup.pages.run_page import RunSource
from setsup.pages.sampler_page import SamplerSource, options_since, sampler_text
from setsup.samplers import Draw

__all__ = ["Part", "Question", "parts", "questions"]

_PAIRS = 15  # pairs of factors
_CHANCES = 1024  # drawn rows whose chance is told
_FULL = 48  # rows that are shown in full

Question = dict[str, str]


class Part(NamedTuple):
    """Questions that belong together, which a generator finds one by one, and what they are about."""

    about: str
    questions: Iterable[Question]


def questions(page: Page, rows: int, steps: int) -> Iterator[Question]:
    """The questions that an exported page can answer."""
    for part in parts(page, rows, steps):
        yield from part.questions


def parts(page: Page, rows: int, steps: int) -> Iterator[Part]:
    """The parts of an exported page: as many as its progress has steps."""
    yield Part("what there is", [{}])
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
            yield Part("results", [{"s": name, "q": "tables"}])


def _of_dataset(name: str, source: DatasetSource, rows: int) -> Iterator[Part]:
    about, called = source.about(), source.dataset.name

    def counts() -> Iterator[Question]:
        yield {"s": name, "q": "counts", "where": ""}
        for factor in about["factors"]:
            if factor["exported"]:
                for value in factor["literals"]:
                    yield {"s": name, "q": "counts", "where": f"{factor['term']} == {value}"}
        discrete = [described["name"] for described in about["factors"] if described["exported"]]
        pairs = [(x, y) for index, x in enumerate(discrete) for y in discrete[index + 1 :]]
        for x, y in pairs[:_PAIRS]:
            yield {"s": name, "q": "joint", "x": x, "y": y, "where": ""}

    def leaf(order: str, number: int) -> Iterator[Question]:
        yield {"s": name, "q": "rows", "order": order, "page": str(number), "where": ""}
        shown, _ = source.rows("", order, number)
        yield from _thumbs(name, about["thumbs"] is not None, shown)

    def full(row: int) -> Iterator[Question]:
        asked = {"s": name, "row": str(row)}
        yield {**asked, "q": "row"}
        for shown in json.loads(source.answer(Query({**asked, "q": "row"})).content)["modalities"]:
            if shown["image"]:
                yield {**asked, "q": "image", "modality": shown["name"]}

    yield Part(f"counts of {called}", counts())
    for order in ("table", "random"):
        for number in range(-(-min(rows, max(len(source.dataset), 1)) // PAGE_ROWS)):
            yield Part(f"rows of {called}", leaf(order, number))
    for row in range(min(_FULL, len(source.dataset))):
        yield Part(f"row {row} of {called} in full", full(row))


def _of_sampler(name: str, source: SamplerSource, dataset: Any, steps: int) -> Iterator[Part]:
    sampler = source.begin()
    if sampler is None:
        return
    asked = {"s": name, "sampler": sampler_text(source.plain(sampler))}
    first = sampler.first_step
    chances: set[tuple[int, str]] = set()
    thumbs = dataset.about()["thumbs"] is not None

    def drawn(step: int) -> Iterator[Question]:
        since = str(options_since(sampler, step))
        yield {**asked, "q": "draw", "step": str(step)}
        yield {**asked, "q": "reach", "step": since}
        rows = [(row, since) for row in np.unique(sampler[step].indices).tolist()]
        asking = [asked_row for asked_row in rows if asked_row not in chances][: _CHANCES - len(chances)]
        chances.update(asking)
        yield from ({**asked, "q": "row", "row": str(row), "step": since} for row, since in asking)
        for some in _shown(sampler[step]):
            yield from _thumbs(f"d{name[1:]}", thumbs, some)

    called = f"the sampler of {source.dataset.name}"
    yield Part(f"coverage of {called}", [{**asked, "q": "coverage"}])
    for step in range(first, first + steps if sampler.length is None else min(first + steps, sampler.length)):
        yield Part(f"step {step} of {called}", drawn(step))


def _of_pairs(name: str, source: CorrespondenceSource) -> Iterator[Part]:
    modality = image_modality(source.dataset)

    def pair(step: int) -> Iterator[Question]:
        rows = source.views(step)
        asked = {"s": name, "rows": ",".join(map(str, rows))}
        yield {"s": name, "q": "pair", "step": str(step)}
        yield {**asked, "q": "partners"}
        for run in source.learned:
            yield {**asked, "q": "learned", "run": run}
        if modality is not None:
            yield from ({"s": f"d{name[1:]}", "q": "image", "row": str(row), "modality": modality} for row in rows)

    for step in range(source.pairs or 0):
        yield Part(f"pair {step} of {source.dataset.name}", pair(step))


def _of_run(name: str, source: RunSource) -> Iterator[Part]:
    about = source.about()

    def batch(step: int) -> Iterator[Question]:
        asked = {"s": name, "step": str(step)}
        yield {**asked, "q": "batch"}
        with suppress(SetsupError):  # the answer to the question before says it
            rerun = source.batch(step)
            shown = source.images and image_modality(rerun.dataset) is not None
            if source.images:
                yield {**asked, "q": "sheet"}
            for rows in _shown(rerun.draw):
                yield from ({**question, **asked} for question in _thumbs(name, shown, rows))

    curves = [{"s": name, "q": "curve", "metric": metric} for metric in about["metrics"]]
    yield Part(f"curves of {about['folder']}", curves)
    for step in source.shown:
        yield Part(f"step {step} of {about['folder']}", batch(step))


def _shown(draw: Draw) -> list[Any]:
    """Rows whose images are shown together: those of each set, and each canonical row alone."""
    return [*draw.indices, *([] if draw.canonical is None else draw.canonical[:, None])]


def _of_embedding(name: str, source: EmbeddingSource) -> Iterator[Part]:
    about = source.about()
    colors = [{"s": name, "q": "colours", "factor": factor["name"]} for factor in about["factors"]]
    yield Part(f"points of {source.name}", [{"s": name, "q": "points"}, *colors])
    asked = ["rows", "near", *(["thumbs"] if about["thumbs"] is not None else [])]
    for start in range(0, len(source.order), source.chunk):
        questions = [{"s": name, "q": kind, "start": str(start)} for kind in asked]
        yield Part(f"neighbours in {source.name}", questions)


def _thumbs(name: str, images: bool, rows: Any) -> Iterator[Question]:
    if images:
        for start in range(0, len(rows), CHUNK):
            some = ",".join(map(str, np.asarray(rows)[start : start + CHUNK].tolist()))
            yield {"s": name, "q": "thumbs", "rows": some}
