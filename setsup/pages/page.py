"""A page: sources by short names, fixed at its start, and the one function that answers its questions."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from setsup.datasets.dataset import Dataset
from setsup.errors import DataError
from setsup.pages.answers import Answer, Query, Source, json_answer
from setsup.pages.correspondence_page import correspondences_of
from setsup.pages.dataset_page import DatasetSource
from setsup.pages.embedding_page import EmbeddingSource
from setsup.pages.sampler_page import SamplerSource
from setsup.samplers import Sampler

if TYPE_CHECKING:
    from setsup.experiments import Run

__all__ = ["Page", "page_of"]


@dataclass(frozen=True)
class Page:
    """What is shown.

    Attributes
    ----------
    title : str
        Of the page.
    sources : mapping of str to Source
        By names such as ``d0``, that questions use.
    command : str
        The command that shows this page live.

    """

    title: str
    sources: Mapping[str, Source] = field(default_factory=dict)
    command: str = "setsup explore"

    def get(self, key: str) -> Answer:
        """Answer a question by its key.

        Raises
        ------
        SetsupError
            When there is no such question, or what it asks for.

        """
        query = Query.parse(key)
        name = query.text("s", 16, "")
        if name == "":
            return json_answer(self.about())
        if name not in self.sources:
            raise DataError(f"this page has no source {name!r}")
        return self.sources[name].answer(query)

    def about(self) -> dict[str, Any]:
        """What the page begins with: its sources, as they are now."""
        return {
            "title": self.title,
            "command": self.command,
            "sources": {name: dict(source.about()) for name, source in self.sources.items()},
        }


def page_of(
    datasets: Mapping[str, Dataset],
    samplers: Mapping[str, Sampler] | None = None,
    runs: Sequence["Run"] = (),
    embeddings: Sequence[EmbeddingSource] = (),
    *,
    title: str = "",
    command: str = "",
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
    title, command : str, optional
        Heading, and the command that shows the page live.

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
        raise DataError("a page shows at least one dataset, run or folder of embeddings")
    sources: dict[str, Source] = {}
    for number, (name, dataset) in enumerate(datasets.items()):
        sources[f"d{number}"] = DatasetSource(dataset, name)
        sources[f"s{number}"] = SamplerSource(dataset, name, (samplers or {}).get(name))
        pairs = correspondences_of(dataset, name, {f"r{at}": run for at, run in enumerate(runs)})
        if pairs is not None:
            sources[f"c{number}"] = pairs
    if runs:
        from setsup.pages.results_page import ResultsSource
        from setsup.pages.run_page import RunSource, embeddings_of

        sources |= {f"r{number}": RunSource(run) for number, run in enumerate(runs)}
        sources["t0"] = ResultsSource(runs)
        embeddings = [*embeddings, *(one for run in runs for one in embeddings_of(run, list(datasets.values())))]
    sources |= {f"e{number}": one for number, one in enumerate(embeddings)}
    names = [dataset.name for dataset in datasets.values()] + list(dict.fromkeys(run.preset.name for run in runs))
    names += [] if names else [one.name for one in embeddings]
    given = [*datasets, *(str(run.folder) for run in runs), *(one.source for one in embeddings if one.source)]
    given = list(dict.fromkeys(given))
    return Page(title or ", ".join(names), sources, command or shlex.join(["setsup", "explore", *given]))
