"""What is checked before tars that others wrote are indexed: that nothing better is overwritten, and nothing lost."""

import os
import posixpath
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from setsup.errors import DataError, advice
from setsup.files import existing_folder
from setsup.files.disk import need_regular
from setsup.progress import progress
from setsup.shards.index import SHARD
from setsup.shards.layout import CATALOGUE, CRC32C, INDEX, PLAN, WORK, Catalogue
from setsup.shards.locate import is_whole
from setsup.shards.stores.store import Store, join_address

__all__ = ["has_better_index", "need_no_inner_set", "need_own", "need_whole", "need_writable"]


def need_writable(about: Store, out: object) -> None:
    """Refuse a place that cannot be written, before all tars are scanned."""
    remedy = "" if out is not None else f"; choose another place for the index with {advice('out=', '--out')}"
    if about.size(PLAN) is not None:
        raise DataError(f"{about.url} is being written by `setsup shard`; run the same command again to resume")
    if about.folder is None:
        try:
            about.put_bytes(f"{WORK}/index", b"")
            about.remove([f"{WORK}/index"])
        except DataError as error:
            raise DataError(f"{error}{remedy}") from error
        return
    folder = existing_folder(about.folder)
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise DataError(
            f"cannot write to {about.folder}: {'permission denied' if folder.is_dir() else 'it is a file'}{remedy}"
        )
    if about.size(CATALOGUE) is None and _is_other_table(about.folder / INDEX):
        raise DataError(f"{about.folder / INDEX} is another table, which would be overwritten; rename it{remedy}")


def _is_other_table(path: Path) -> bool:
    """Whether a file is Parquet, and no index of shards."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    need_regular(path)
    try:
        return SHARD not in pq.read_schema(path).names
    except (pa.ArrowException, OSError):
        return False


def need_no_inner_set(store: Store, tars: list[str]) -> None:
    """Refuse a folder above a set: a second catalogue would leave out what the first one tells."""
    folders = {str(parent) for tar in tars for parent in PurePosixPath(tar).parents}
    for inner in sorted(folders - {"."}):
        if store.size(posixpath.join(inner, CATALOGUE)) is not None:
            folder = join_address(store.url, inner)
            raise DataError(f"{folder}, a folder in {store.url}, has its own index; run `setsup index {folder}`")


def has_better_index(about: Store, older: Catalogue) -> bool:
    """Whether an index is there that knows more of its tars than one of tars of others would."""
    return older.check == CRC32C and is_whole(about, replace(older.index, name=INDEX), CRC32C)


def need_whole(about: Store, older: Catalogue, tars: Sequence[str]) -> None:
    """Refuse to call a set whole in which a tar is damaged, missing, or not of it."""
    others = sorted(set(tars) - {shard.name for shard in older.shards})
    if others:
        raise DataError(
            f"{about.url} contains shards written by `setsup shard` and another tar, {others[0]}, and indexing them "
            f"together would lose the checksums and source rows of the shards; move {others[0]} to another folder, or "
            f"choose another place for the index with {advice('out=', '--out')}"
        )
    with progress(sum(shard.size for shard in older.shards), f"checking {older.name}", "B") as advance:
        for shard in older.shards:
            # a store would send all of them
            size = about.size(shard.name)
            if size != shard.size or (about.folder is not None and not is_whole(about, shard, CRC32C, advance)):
                what, first = "is not the tar that `setsup shard` wrote", "remove it and "
                if size is None:
                    what, first = "is missing", ""
                raise DataError(
                    f"{join_address(about.url, shard.name)} {what}: fetch it again, or {first}run the same `setsup "
                    "shard` again; to index the tars as they are, choose another place for the index with "
                    f"{advice('out=', '--out')}"
                )


def need_own(about: Store, older: Catalogue, tars: Sequence[str], chosen: bool) -> None:
    """Refuse to put the index of some tars in the place of that of others."""
    there = {shard.name for shard in older.shards}
    if there.isdisjoint(tars) or (chosen and not there.issubset(tars)):
        others = ", ".join(sorted(there - set(tars))[:3])
        raise DataError(
            f"{about.url} contains an index of {older.name} with other tars ({others}), which would be overwritten; "
            f"choose another place with {advice('out=', '--out')}"
        )
