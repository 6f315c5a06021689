"""What of a dataset goes into shards, and whether all of it can be stored, before anything is written."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from setsup.arrays import Rows
from setsup.datasets.concatenation import Concat
from setsup.datasets.dataset import Dataset, Selection, check_modalities
from setsup.errors import DataError, FactorError
from setsup.shards.decoding import check_members
from setsup.shards.index import Spans, part
from setsup.shards.layout import CAMERA, CRC32C, INDEX, VIEW, Catalogue, Member, Shard, parse_catalogue
from setsup.shards.views import encode_views, has_views
from setsup.shards.writing.encoding import stored
from setsup.shards.writing.plan import ShardPlan
from setsup.shards.writing.resizing import Resized

__all__ = ["check_catalogue", "inspect_rows", "make_catalogue", "stored_members"]


_LOOKED_AT, _LOOKED_AT_RAGGED = 3, 16


def stored_members(dataset: Dataset, modalities: Iterable[str] | None, format: str) -> dict[str, Member]:
    """How the modalities of a dataset are stored, with images in a format."""
    if not len(dataset):
        raise DataError(f"{dataset.name} has no rows to write; select at least one row")
    names = check_modalities(dataset, modalities)
    if not names:
        choices = (
            f"; choose from {', '.join(dataset.modalities)}" if dataset.modalities else f": {dataset.name} has none"
        )
        raise DataError(f"no modality to write is selected{choices}")
    members = {name: stored(name, dataset.modalities[name], format) for name in names}
    if has_views(dataset):
        members[CAMERA] = VIEW
    check_members(members, dataset.name)
    _check_factors(dataset, members)
    return members


def _check_factors(dataset: Dataset, names: Iterable[str]) -> None:
    """Refuse factors that the index could not hold."""
    none = np.empty(0, np.int64)
    try:
        part(dataset.factors.select(none), [], 0, {name: Spans(none, none, none) for name in names}, none)  # type: ignore[arg-type]
    except UnicodeEncodeError as error:
        raise FactorError(
            f"{error.object!r}, the name or a level of a factor of {dataset.name}, is not valid Unicode text; rename it"
        ) from None
    except (ValueError, OverflowError) as error:
        raise FactorError(
            f"the levels of a factor of {dataset.name} cannot be stored in one column ({error}); convert the levels "
            "to strings"
        ) from None


def check_catalogue(dataset: Dataset, plan: ShardPlan) -> None:
    """Refuse what could be written, but not opened again."""
    try:
        text = make_catalogue(dataset, plan, {}, (), Shard(INDEX, 0, 0, "0" * 64)).to_json().encode()
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.end]
        raise DataError(
            f"the name {dataset.name!r} or the unit of a factor contains {wrong!r}, which is not valid Unicode text; "
            "rename the dataset or the unit"
        ) from None
    parse_catalogue(text, f"the catalogue of {dataset.name!r}")


def make_catalogue(
    dataset: Dataset, plan: ShardPlan, about: Mapping[str, str], shards: tuple[Shard, ...], index: Shard
) -> Catalogue:
    """The catalogue of what a plan says, once the shards and the index are there."""
    agree: tuple[str, ...] = getattr(dataset, "pair_factors", ()) if plan.members.get(CAMERA) == VIEW else ()
    return Catalogue(
        name=plan.name,
        factors=dataset.factors.factors,
        members=plan.members,
        shards=shards,
        index=index,
        check=CRC32C,
        plan=plan.digest,
        setsup=plan.setsup,
        about=about,
        pair_factors=tuple(agree),
    )


def inspect_rows(dataset: Dataset, members: Mapping[str, Member]) -> tuple[str, float]:
    """Fetch a few rows before anything is written, so that a failure leaves nothing.

    Returns a digest of them, and of which rows of which datasets these are; and the bytes of a row's arrays.
    """
    digest = hashlib.sha256()
    arrays = [name for name, member in members.items() if member != VIEW]
    for rows in _chosen_rows(dataset):
        digest.update(np.ascontiguousarray(rows, "<i8").data)
    ragged = any(None in members[name].modality.shape for name in arrays)
    most = min(len(dataset), _LOOKED_AT_RAGGED if ragged else _LOOKED_AT)
    size = 0
    for row in np.unique(np.linspace(0, len(dataset) - 1, most).astype(np.int64)).tolist():
        for name, array in dataset.fetch(row, arrays).items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
            size += array.nbytes
        for text in encode_views(dataset, np.array([row])) if len(arrays) < len(members) else ():
            digest.update(text)
            size += len(text)
    return digest.hexdigest(), size / most


def _chosen_rows(dataset: Dataset) -> Iterator[Rows]:
    if isinstance(dataset, Selection):
        yield dataset.rows
        yield from _chosen_rows(dataset.source)
    elif isinstance(dataset, Resized):
        yield from _chosen_rows(dataset.source)
    elif isinstance(dataset, Concat):
        for part in dataset.datasets:
            yield from _chosen_rows(part)
