"""WebDataset tars with a factor index: written, indexed where others wrote them, opened at random anywhere.

What a set of shards is stands in :mod:`~setsup.shards.layout` and :mod:`~setsup.shards.index`; how one is opened in
:mod:`~setsup.shards.dataset`. :mod:`~setsup.shards.writing` makes one, :mod:`~setsup.shards.external` indexes tars of
others, and :mod:`~setsup.shards.stores` is where they lie.
"""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup.shards.dataset import ShardedDataset
    from setsup.shards.external.indexing import index_shards
    from setsup.shards.opening import open_shards
    from setsup.shards.writing.writer import write_shards

__all__ = ["ShardedDataset", "index_shards", "open_shards", "write_shards"]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "dataset": ("ShardedDataset",),
            "external.indexing": ("index_shards",),
            "opening": ("open_shards",),
            "writing.writer": ("write_shards",),
        },
    )
