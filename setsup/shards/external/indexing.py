"""Index WebDataset tars that others wrote, so that they are a dataset with factors and random access.

The headers of all tars are scanned once, and their json and class members read; images and arrays stay where they
are. What is found goes to ``index.parquet`` and ``shards.json``, beside the tars or elsewhere.
"""

import logging
import posixpath
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from setsup.checks import check_arguments
from setsup.errors import DataError, listed
from setsup.files import content_digest, locked, readable_size
from setsup.files.atomic import clear
from setsup.files.expand_user import expanded
from setsup.progress import progress
from setsup.shards.external import factors
from setsup.shards.external.refusals import has_better_index, need_no_inner_set, need_own, need_whole, need_writable
from setsup.shards.external.restoring import is_own, restore
from setsup.shards.external.spill_buffer import Spool
from setsup.shards.external.splits import SPLIT, split_notes, with_split
from setsup.shards.external.tar_set import TarSet, read_tar
from setsup.shards.index import write_index
from setsup.shards.layout import (
    BACKUP,
    CAMERA,
    CARD,
    CATALOGUE,
    HEADER,
    INDEX,
    VIEW,
    WORK,
    Catalogue,
    Shard,
)
from setsup.shards.locate import LARGEST, whole_catalogue
from setsup.shards.stores.addresses import split_address, tar_names
from setsup.shards.stores.opening import open_store
from setsup.shards.stores.store import Store, join_address
from setsup.shards.tar_scan import AT_ONCE, in_order
from setsup.shards.writing.parts import scratch

if TYPE_CHECKING:
    from setsup.shards.dataset import ShardedDataset

__all__ = ["Indexed", "index_shards", "write_external_index"]

_log = logging.getLogger("setsup")
_UNDESCRIBED = (
    f"setsup wrote these tars, but {CATALOGUE} and {BACKUP} are missing: source rows, checksums, kinds and unused "
    "levels of factors, units, color spaces, licence and citation are lost; to restore them, put back a copy of either "
    f"file, remove the new {CATALOGUE} and {INDEX}, and run the same command"
)

_WHOLE = f"nothing to do: {CATALOGUE}, {INDEX} and the tars are complete"
_WHOLE_BY_SIZE = f"nothing to do: {CATALOGUE} and {INDEX} are complete, and the tars have the right sizes"


@dataclass(frozen=True, slots=True)
class Indexed:
    """Result of indexing tars.

    Attributes
    ----------
    url : str
        Folder or address of the tars.
    index : str or None
        Folder or address of the catalogue and the index; None if they are next to the tars.
    catalogue : Catalogue
        Content of the tars.
    left_out : mapping of str to str
        Reasons why fields of the json members are not factors, or members not modalities.
    not_fetched : tuple of str
        Extensions of members that are neither images, arrays nor factors.
    restored : tuple of str
        Files of a set written by setsup that were restored from its tars; nothing else is done then.
    notes : tuple of str
        What such a set has lost, or that there was nothing to do.

    """

    url: str
    index: str | None
    catalogue: Catalogue
    left_out: Mapping[str, str]
    not_fetched: tuple[str, ...]
    restored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def index_shards(
    url: str | Path,
    out: str | Path | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> "ShardedDataset":
    """Index WebDataset tars once, and open them.

    Members are grouped into samples as by the webdataset library. Images and ``.npy`` arrays become modalities; the
    fields of ``KEY.json``, the text of ``KEY.cls`` and the folders in keys become factors, or the name of the tar if
    there are none of these. Tars in ``train/`` and ``val/``, or of names such as ``train-000000.tar``, give the factor
    ``split``. Lists, fields of mixed types, and strings of more than 4,096 values of which more than half
    are distinct, such as captions, are left out; the log names them. Texts, videos and pickles are never opened.

    Indexing again scans all tars again and replaces the files; factors stay as ``shards.json`` describes them as long
    as it lists all values, so corrected kinds and orders of levels are kept. For a set written by
    :func:`~setsup.shards.writing.writer.write_shards`, whose index has more information, a damaged or missing catalogue
    or index is restored and a complete one is kept; the log says which files were restored, and what is lost.

    Parameters
    ----------
    url : str or Path
        Folder or address of the tars, including its subfolders; a single tar; or a pattern such as
        ``https://…/data-{000000..000099}.tar``. Tars that are compressed as a whole cannot be indexed.
    out : str or Path, optional
        Folder or address for ``shards.json`` and ``index.parquet``, if the folder of the tars is read-only; pass it to
        ``open_shards(url, index=out)``. By default they are written next to the tars.
    storage_options : mapping, optional
        Options of fsspec, such as ``{"endpoint_url": …}``.
    name : str, optional
        Name of the dataset; by default the name of the folder.

    Returns
    -------
    ShardedDataset

    Raises
    ------
    DataError
        If there are no tars or no samples; a tar is damaged or compressed, or members of a sample are not adjacent; a
        json member is damaged; or the index cannot be written.

    Examples
    --------
    >>> import io, json, tarfile, tempfile
    >>> import numpy as np
    >>> folder = Path(tempfile.mkdtemp())
    >>> with tarfile.open(folder / "some.tar", "w") as tar:
    ...     for row, color in enumerate(["red", "blue", "red"]):
    ...         array = io.BytesIO()
    ...         np.save(array, np.full((2, 2), row))
    ...         for ending, content in (("npy", array.getvalue()), ("json", json.dumps({"color": color}).encode())):
    ...             member = tarfile.TarInfo(f"{row}.{ending}")
    ...             member.size = len(content)
    ...             tar.addfile(member, io.BytesIO(content))
    >>> indexed = index_shards(folder)
    >>> indexed.factors["color"].levels, indexed.fetch([2, 0])["image"][:, 0, 0].tolist()
    (('blue', 'red'), [2, 0])

    """
    check_arguments(index_shards, locals(), DataError)
    from setsup.shards.opening import open_shards

    indexed = write_external_index(url, out, storage_options=storage_options, name=name)
    if indexed.restored:
        _log.warning("restored: %s", ", ".join(indexed.restored))
    for note in indexed.notes:
        _log.warning("%s", note)
    for what, why in indexed.left_out.items():
        _log.warning("%s is left out: %s", what, why)
    if indexed.not_fetched:
        _log.warning("members that are not supported: %s", ", ".join(indexed.not_fetched))
    return open_shards(indexed.url, index=indexed.index, storage_options=storage_options)


def write_external_index(
    url: str | Path,
    out: str | Path | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Indexed:
    """Do what :func:`index_shards` does, without opening the tars afterwards; says what was found."""
    base, wanted = split_address(url)
    store = open_store(base, storage_options)
    about = store if out is None else open_store(out, storage_options)
    tars, packed = tar_names(store, wanted)
    need_writable(about, out)
    if out is None and wanted is None:
        with _alone(about):
            restored = restore(about)
        if restored is not None:
            return Indexed(base, None, restored.catalogue, {}, (), restored.files, restored.notes)
    need_no_inner_set(store, tars)
    older = whole_catalogue(about)
    if older is not None and out is None and has_better_index(about, older):
        need_whole(about, older, tars)
        return Indexed(base, None, older, {}, (), notes=(_WHOLE if about.folder is not None else _WHOLE_BY_SIZE,))
    ours = out is None and older is None and bool(tars) and is_own(store, tars)
    if older is not None and (out is not None or wanted is not None):
        need_own(about, older, tars, wanted is not None)
    if older is None and about is not store:
        older = whole_catalogue(store)
    views = older is not None and older.members.get(CAMERA) == VIEW
    with Spool() as spool:
        tar_set = TarSet(store, spool, views)
        with progress(len(tars), f"indexing {base}", "tars") as advance:
            read = partial(read_tar, store, views=views)
            for number, tar in enumerate(in_order(read, tars, 1 if store.folder else AT_ONCE)):
                tar_set.add(number, tar)
                advance(1)
        if not sum(tar_set.rows):
            raise DataError(
                f"no samples found in {store.url}: the tars must contain files with a key and an extension, such as "
                "000017.png"
            )
        members = tar_set.members(older)
        described = {factor.name: factor for factor in older.factors} if older else {}
        own = tar_set.table(described, members)
        table = with_split(own, tars, tar_set.rows, described)
        catalogue = _written(
            about,
            partial(tar_set.parts, table, members),
            partial(
                Catalogue,
                name=name or (older.name if older else "") or _name(str(url) if wanted and len(wanted) == 1 else base),
                factors=table.factors,
                members={name: member for name, (member, _) in members.items()},
                shards=tuple(tar_set.shards),
                check=HEADER,
                plan="",
                setsup=version("setsup"),
                about=dict(older.about) if older else {},
                pair_factors=tuple(factor for factor in older.pair_factors if factor in table) if older else (),
            ),
            sum(tar_set.rows),
        )
    for archive in packed:
        tar_set.columns.left_out[archive] = "it is compressed as a whole"
    where = None if out is None else str(out)
    notes = (
        *((_UNDESCRIBED,) if ours else ()),
        *_mixed_folders(base, tars, table.names),
        *split_notes(tars, SPLIT in own),
    )
    return Indexed(base, where, catalogue, tar_set.columns.left_out, tar_set.not_fetched, notes=notes)


# -- catalogue and index -----------------------------------------------------------------------------------------------


def _mixed_folders(base: str, tars: Sequence[str], known: Sequence[str]) -> Iterator[str]:
    """Say that tars of several folders, such as train and val, are one set without a factor that tells them apart."""
    folders = sorted({posixpath.dirname(tar) for tar in tars})
    if len(folders) > 1 and factors.SHARD not in known and SPLIT not in known:
        first = join_address(base, folders[0]) if folders[0] else base
        yield (
            f"the tars of {listed(folder or '.' for folder in folders)} are indexed as one set, without a factor for "
            "the folder of each row; if the folders are splits, index each one separately, for example with `setsup "
            f"index {first}`"
        )


def _name(base: str) -> str:
    path = PurePosixPath(urlsplit(base).path if "://" in base else str(expanded(base).absolute()))
    return path.name.removesuffix(".tar") or urlsplit(base).netloc or "shards"


def _written(about: Store, parts: Callable[[], Iterator[Any]], made: Callable[..., Catalogue], rows: int) -> Catalogue:
    """Write the index and then at once the catalogue, which says what index is meant."""
    with _alone(about):
        with scratch(about) as folder:
            fresh = folder / INDEX
            write_index(fresh, parts())
            catalogue = made(index=Shard(INDEX, rows, fresh.stat().st_size, content_digest(fresh)))
            content = catalogue.to_json().encode()
            if len(content) > LARGEST:
                most = max(catalogue.factors, key=len)
                raise DataError(
                    f"the levels of the factors take {readable_size(len(content))} in {CATALOGUE}, more than the "
                    f"limit of {readable_size(LARGEST)}; index a copy of the tars without the factor {most.name!r}, "
                    f"which has {len(most):,} levels"
                )
            about.put(INDEX, fresh)
        about.put_bytes(CATALOGUE, content)
    return catalogue


@contextmanager
def _alone(about: Store) -> Iterator[None]:
    """Let others that index to the same folder wait, and take away what was left there by a kill."""
    if about.folder is None:
        yield
        return
    with locked(about.folder / INDEX):
        try:
            for name in (INDEX, CATALOGUE, CARD, BACKUP):
                clear(about.folder / name)
            yield
        finally:
            shutil.rmtree(about.folder / WORK, ignore_errors=True)
