"""A page: sources by short names, fixed at its start, and the one function that answers its questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from setsup.datasets.dataset import Dataset
from setsup.errors import DataError
from setsup.pages.answers import Answer, Query, Source, json_answer
from setsup.pages.commands import explore_command
from setsup.pages.correspondence_page import open_correspondences
from setsup.pages.dataset_page import DatasetSource
from setsup.pages.embedding_page import EmbeddingSource
from setsup.pages.images import CHUNK, COLUMNS, TILE
from setsup.pages.opened import Opening
from setsup.pages.sampler_page import SamplerSource
from setsup.samplers import Sampler

if TYPE_CHECKING:
    from setsup.experiments import Run

__all__ = ["Page", "page_of"]


@runtime_checkable
class _Placed(Protocol):
    """A source in a place of its own: a run, or embeddings."""

    place: str


@runtime_checkable
class _OfRun(_Placed, Protocol):
    """The source of a run, whose module is loaded for pages that have one."""

    run: "Run"


@dataclass(frozen=True)
class Page:
    """The content of the sheet.

    Attributes
    ----------
    called : str
        Its title; empty for the names of what it shows.
    sources : mapping of str to Source
        By names such as ``d0``, that questions use.
    options : tuple of str or Path
        Options of the command that shows it live; a Path is a place on this disk.
    note : str
        What words of its commands stand for.

    Examples
    --------
    >>> import setsup
    >>> from setsup.pages import page_of
    >>> page = page_of({"shapes3d-procedural": setsup.load("shapes3d-procedural")})
    >>> page.title, list(page.sources), page.command
    ('shapes3d-procedural', ['d0', 's0'], 'setsup explore shapes3d-procedural')

    """

    called: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)
    options: tuple[str | Path, ...] = ()
    note: str = ""

    @cached_property
    def title(self) -> str:
        """Its title: of datasets that are called the same, with what opens them."""
        if self.called:
            return self.called
        datasets = [source for source in self.sources.values() if isinstance(source, DatasetSource)]
        called = [source.dataset.name for source in datasets]
        names = [
            f"{name} ({source.opening.source})" if called.count(name) > 1 and source.opening.source else name
            for name, source in zip(called, datasets, strict=True)
        ]
        names += dict.fromkeys(source.run.preset.name for source in self.sources.values() if isinstance(source, _OfRun))
        return ", ".join(
            names or [source.name for source in self.sources.values() if isinstance(source, EmbeddingSource)]
        )

    @cached_property
    def command(self) -> str:
        """The command that shows it live; empty where there is none."""
        openings = [source.opening for source in self.sources.values() if isinstance(source, DatasetSource)]
        places = [source.place for source in self.sources.values() if isinstance(source, _Placed) and source.place]
        return explore_command(openings, places, [str(option) for option in self.options])

    def get(self, key: str) -> Answer:
        """Answer a question by its key.

        Raises
        ------
        SetsupError
            When the request is unknown, or what it asks for does not exist.

        """
        query = Query.parse(key)
        name = query.text("s", 16, "")
        if name == "":
            return json_answer(self.about())
        if name not in self.sources:
            raise DataError(f"the page has no source named {name!r}")
        return self.sources[name].answer(query)

    def about(self) -> dict[str, Any]:
        """Return the current sources of the page."""
        return {
            "title": self.title,
            "command": self.command,
            "note": self.note,
            "tiles": {"columns": COLUMNS, "chunk": CHUNK, "side": TILE},
            "sources": {name: dict(source.about()) for name, source in self.sources.items()},
        }


def page_of(
    datasets: Mapping[str, Dataset],
    samplers: Mapping[str, Sampler] | None = None,
    runs: Sequence["Run"] = (),
    embeddings: Sequence[EmbeddingSource] = (),
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    title: str = "",
) -> Page:
    """A page of datasets, each with its samplers, and of runs.

    Parameters
    ----------
    datasets : mapping of str to Dataset
        By what opens them, as :func:`setsup.open` takes it.
    samplers : mapping of str to Sampler, optional
        The sampler that the page begins with, by the same names; by default one that fixes the first factor.
    runs : sequence of Run
        Runs of `setsup train`.
    embeddings : sequence of EmbeddingSource
        Embeddings of :func:`open_embeddings`; those in the folders of the runs are shown, too.
    options : mapping of str to mapping, optional
        What :func:`setsup.open` was given besides, by the same names, so that commands and Python on the page open the
        datasets as they are: ``{"photos.csv": {"size": (64, 64)}}``.
    title : str, optional
        Heading.

    Raises
    ------
    DataError
        When there is nothing to show.

    Examples
    --------
    >>> import setsup
    >>> from setsup.pages import page_of
    >>> page = page_of({"shapes3d-procedural": setsup.load("shapes3d-procedural")})
    >>> len(page.get("q=counts&s=d0").content) > 100
    True

    """
    if not (datasets or runs or embeddings):
        raise DataError("a page requires at least one dataset, run or folder of embeddings")
    sources: dict[str, Source] = {}
    for number, (name, dataset) in enumerate(datasets.items()):
        opening = Opening(name, (options or {}).get(name, {}))
        sources[f"d{number}"] = DatasetSource(dataset, opening)
        sources[f"s{number}"] = SamplerSource(dataset, opening, (samplers or {}).get(name))
        pairs = open_correspondences(dataset, opening, {f"r{at}": run for at, run in enumerate(runs)})
        if pairs is not None:
            sources[f"c{number}"] = pairs
    if runs:
        from setsup.pages.results_page import ResultsSource
        from setsup.pages.run_page import RunSource, open_run_embeddings

        sources |= {f"r{number}": RunSource(run) for number, run in enumerate(runs)}
        sources["t0"] = ResultsSource(runs)
        embeddings = [
            *embeddings,
            *(source for run in runs for source in open_run_embeddings(run, list(datasets.values()))),
        ]
    sources |= {f"e{number}": source for number, source in enumerate(embeddings)}
    return Page(title, sources)
