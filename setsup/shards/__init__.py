"""WebDataset tars with a factor index: written, indexed where others wrote them, opened at random anywhere.

What a set of shards is stands in :mod:`~setsup.shards.layout` and :mod:`~setsup.shards.index`; how one is opened in
:mod:`~setsup.shards.dataset`. :mod:`~setsup.shards.writing` makes one, :mod:`~setsup.shards.foreign` indexes tars of
others, and :mod:`~setsup.shards.stores` is where they lie.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setsup.shards.dataset import ShardedDataset
    from setsup.shards.foreign.indexing import index_shards
    from setsup.shards.opening import open_shards
    from setsup.shards.writing.writer import write_shards

__all__ = ["ShardedDataset", "index_shards", "open_shards", "write_shards"]

if not TYPE_CHECKING:
    _HOMES = {
        "ShardedDataset": "setsup.shards.dataset",
        "open_shards": "setsup.shards.opening",
        "index_shards": "setsup.shards.foreign.indexing",
        "write_shards": "setsup.shards.writing.writer",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'setsup.shards' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
