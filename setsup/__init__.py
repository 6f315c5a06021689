"""Benchmarks as factor tables, and samplers that draw sets, domains, orbits and triplets from them.

Every name here is imported when it is first used, so that ``import setsup`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setsup.datasets.own.huggingface.dataset import from_huggingface
    from setsup.datasets.own.huggingface.writer import to_huggingface
    from setsup.datasets.own.table import open_table
    from setsup.datasets.registry import load, names
    from setsup.datasets.selections import concat
    from setsup.errors import SetsupError
    from setsup.factors.factor import Factor, Kind
    from setsup.factors.table import FactorTable
    from setsup.loading.loader import loader
    from setsup.opening import open as open
    from setsup.rendered.dataset import RenderedDataset
    from setsup.samplers import (
        DomainSampler,
        Draw,
        EpochSampler,
        Mixture,
        OrbitSampler,
        SetSampler,
        TripletSampler,
    )
    from setsup.shards.dataset import open_shards
    from setsup.shards.foreign.indexing import index_shards
    from setsup.shards.writing.writer import write_shards

    __version__: str

__all__ = [
    "DomainSampler",
    "Draw",
    "EpochSampler",
    "Factor",
    "FactorTable",
    "Kind",
    "Mixture",
    "OrbitSampler",
    "RenderedDataset",
    "SetSampler",
    "SetsupError",
    "TripletSampler",
    "__version__",
    "concat",
    "from_huggingface",
    "index_shards",
    "load",
    "loader",
    "names",
    "open_shards",
    "open_table",
    "to_huggingface",
    "write_shards",
]

if not TYPE_CHECKING:
    _PARTS = (
        *("correspondence", "datasets", "factors", "files", "loading", "random", "rendered", "reports", "samplers"),
        *("scenes", "shards"),
    )
    _HOMES = {
        "concat": "setsup.datasets.selections",
        "from_huggingface": "setsup.datasets.own.huggingface.dataset",
        "to_huggingface": "setsup.datasets.own.huggingface.writer",
        "RenderedDataset": "setsup.rendered.dataset",
        "load": "setsup.datasets.registry",
        "names": "setsup.datasets.registry",
        "open": "setsup.opening",  # not in __all__: a star import would hide Python's own
        "loader": "setsup.loading.loader",
        "open_table": "setsup.datasets.own.table",
        "SetsupError": "setsup.errors",
        "Factor": "setsup.factors.factor",
        "Kind": "setsup.factors.factor",
        "FactorTable": "setsup.factors.table",
        "open_shards": "setsup.shards.dataset",
        "index_shards": "setsup.shards.foreign.indexing",
        "write_shards": "setsup.shards.writing.writer",
    }

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            found = version("setsup")
        elif name in _PARTS:
            found = import_module(f"setsup.{name}")
        elif name in _HOMES or name in __all__:
            found = getattr(import_module(_HOMES.get(name, "setsup.samplers")), name)
        else:
            raise AttributeError(f"module 'setsup' has no attribute {name!r}")
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_HOMES})
