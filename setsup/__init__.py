"""Benchmarks as factor tables, and samplers that draw sets, domains, orbits and triplets from them.

Every name here is imported when it is first used, so that ``import setsup`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup.batches.batch_sampler import batch_sampler
    from setsup.datasets.concatenation import concat
    from setsup.datasets.own.arrays.memory import from_arrays
    from setsup.datasets.own.frame import from_pandas
    from setsup.datasets.own.huggingface.dataset import from_huggingface
    from setsup.datasets.own.huggingface.writer import to_huggingface
    from setsup.datasets.own.table import open_table
    from setsup.datasets.own.torch.wrapping import from_torch
    from setsup.datasets.registry import load, names
    from setsup.errors import SetsupError
    from setsup.factors.factor import Factor, Kind
    from setsup.factors.table import FactorTable
    from setsup.loading.loader import loader
    from setsup.opening import open as open
    from setsup.rendered.dataset import RenderedDataset
    from setsup.reports.display.dataset_sheet import show
    from setsup.samplers import (
        DomainSampler,
        Draw,
        EpisodeSampler,
        EpochSampler,
        FactorPairSampler,
        HierarchicalSampler,
        Mixture,
        NeighbourSampler,
        OrbitSampler,
        OverlapSampler,
        SequencePairSampler,
        SetSampler,
        TripletSampler,
        Zip,
    )
    from setsup.shards.external.indexing import index_shards
    from setsup.shards.opening import open_shards
    from setsup.shards.writing.writer import write_shards

    __version__: str

__all__ = [
    "DomainSampler",
    "Draw",
    "EpisodeSampler",
    "EpochSampler",
    "Factor",
    "FactorPairSampler",
    "FactorTable",
    "HierarchicalSampler",
    "Kind",
    "Mixture",
    "NeighbourSampler",
    "OrbitSampler",
    "OverlapSampler",
    "RenderedDataset",
    "SequencePairSampler",
    "SetSampler",
    "SetsupError",
    "TripletSampler",
    "Zip",
    "__version__",
    "batch_sampler",
    "concat",
    "from_arrays",
    "from_huggingface",
    "from_pandas",
    "from_torch",
    "index_shards",
    "load",
    "loader",
    "names",
    "open_shards",
    "open_table",
    "show",
    "to_huggingface",
    "write_shards",
]

if not TYPE_CHECKING:
    _PARTS = (
        *(
            "batches",
            "correspondence",
            "datasets",
            "evaluation",
            "experiments",
            "factors",
            "files",
            "loading",
            "methods",
            "random",
        ),
        *("rendered", "reports", "samplers", "scenes", "shards"),
    )
    _get = lazy_names(
        __name__,
        {
            "batches.batch_sampler": ("batch_sampler",),
            "datasets.concatenation": ("concat",),
            "datasets.own.arrays.memory": ("from_arrays",),
            "datasets.own.frame": ("from_pandas",),
            "datasets.own.huggingface.dataset": ("from_huggingface",),
            "datasets.own.huggingface.writer": ("to_huggingface",),
            "datasets.own.table": ("open_table",),
            "datasets.own.torch.wrapping": ("from_torch",),
            "datasets.registry": ("load", "names"),
            "errors": ("SetsupError",),
            "factors.factor": ("Factor", "Kind"),
            "factors.table": ("FactorTable",),
            "loading.loader": ("loader",),
            "opening": ("open",),  # not in __all__: a star import would hide Python's own
            "rendered.dataset": ("RenderedDataset",),
            "reports.display.dataset_sheet": ("show",),
            "samplers": (
                "DomainSampler",
                "Draw",
                "EpisodeSampler",
                "EpochSampler",
                "FactorPairSampler",
                "HierarchicalSampler",
                "Mixture",
                "NeighbourSampler",
                "OrbitSampler",
                "OverlapSampler",
                "SequencePairSampler",
                "SetSampler",
                "TripletSampler",
                "Zip",
            ),
            "shards.external.indexing": ("index_shards",),
            "shards.opening": ("open_shards",),
            "shards.writing.writer": ("write_shards",),
        },
    )

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            globals()[name] = version("setsup")
            return globals()[name]
        return import_module(f"setsup.{name}") if name in _PARTS else _get(name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, "open"})
