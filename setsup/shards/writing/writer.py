"""Write a dataset as shards: an interrupted job resumes and produces identical output."""

import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from setsup.checks import check_arguments
from setsup.datasets.croissant.document import LARGEST, add_properties, how_made, to_text
from setsup.datasets.croissant.rai import read_rai
from setsup.datasets.croissant.vocabulary import FILE
from setsup.datasets.dataset import Dataset, Selection
from setsup.datasets.images import check_size, parallel
from setsup.datasets.own.huggingface.card import find_manifests
from setsup.errors import DataError
from setsup.files import content_digest, disk_errors, locked, need_space
from setsup.files.atomic import is_temporary
from setsup.files.disk import make_folder
from setsup.jobs import Ray, Unit, check_processes, run
from setsup.jobs.cluster import Cluster
from setsup.shards.backup import write_backup
from setsup.shards.croissant import catalogue_facts, describe_shards
from setsup.shards.index import GROUP, Spans, part, write_index
from setsup.shards.layout import BACKUP, CARD, CATALOGUE, INDEX, PLAN, WORK, Catalogue, Shard, parse_catalogue
from setsup.shards.stores.opening import open_store
from setsup.shards.stores.store import Store
from setsup.shards.writing.card import about, shards_card
from setsup.shards.writing.material import check_catalogue, inspect_rows, make_catalogue, stored_members
from setsup.shards.writing.parts import PARTS, Piece, WriteShard, part_name, read_part, scratch
from setsup.shards.writing.plan import Order, ShardPlan, cut, keys, order_rows, rows_a_shard
from setsup.shards.writing.resizing import Resized

if TYPE_CHECKING:
    from setsup.shards.dataset import ShardedDataset

__all__ = ["write_shards"]


_LARGEST = 1 << 30  # of a plan and a catalogue
_TOGETHER = 1024  # parts of the index at most
_ANEW = "fetch it again, or remove all shards and write them again"


def write_shards(
    dataset: Dataset,
    url: str | Path,
    *,
    order: str = "keep",
    per_shard: int | None = None,
    format: Literal["png", "webp", "jpeg", "npy"] = "png",
    modalities: Iterable[str] | None = None,
    size: Sequence[int] | None = None,
    seed: int = 0,
    processes: int = 1,
    on: Ray | None = None,
    storage_options: Mapping[str, Any] | None = None,
    on_start: Callable[[ShardPlan, int], object] | None = None,
    rai: str | Path | None = None,
) -> "ShardedDataset":
    """Write a dataset as WebDataset tars with a factor index; existing shards are kept.

    Equal arguments give equal bytes in all files, for any destination, number of processes and interruptions; a kill
    loses only the shards in progress. Another process that writes the same to the same folder waits; in a store, which
    has no locks, both write the same files. Of finished shards, tars that are missing or whose size differs from the
    catalogue are written again. Contents are not compared; ``verify`` of the dataset does that: remove the files that
    it names, and write again.

    Shards hold modalities and factors; those of renderings also cameras and the names of instances
    (:mod:`setsup.shards.views`), unless their images are resized. Other properties of rows are not stored.

    Parameters
    ----------
    dataset : Dataset
        Any; choose rows with ``dataset.where`` or ``dataset.select``.
    url : str or Path
        A folder, or an address that fsspec supports (``s3://…``, ``gs://…``); must be new, empty, or an unfinished run
        of the same call. :mod:`setsup.shards.layout` describes the files.
    order : str
        ``"keep"``; ``"shuffle"``; or ``"by:"`` and comma-separated names of factors, which stores rows that share their
        values next to each other, so that a set is read in one piece.
    per_shard : int, optional
        Maximum number of rows per shard; by default 256 MiB of arrays, but at most 100,000 rows. Groups of ``by:`` that
        fit into a shard are not split.
    format : str
        Format of images: ``"png"``, ``"webp"`` (lossless, smaller and slower), ``"jpeg"`` (quality 95, without chroma
        subsampling) or ``"npy"``. Other arrays are npy; grey images in WebP and images with alpha in JPEG, which these
        formats do not support, are PNG.
    modalities : iterable of str, optional
        Modalities to store; all by default.
    size : (height, width), optional
        Resize all images, antialiased, until they just cover this size, and crop the centre. Other arrays, such as
        depth, stay as they are.
    seed : int
        Seed of the shuffle.
    processes : int
        Number of processes.
    on : Ray, optional
        A cluster that writes instead of processes of this machine.
    storage_options : mapping, optional
        Options of fsspec.
    on_start : callable of (plan, rows), optional
        Called once before writing starts, with the plan and the number of its finished rows.
    rai : str or Path, optional
        YAML file of what only a person knows, for ``croissant.json``: limits, biases, uses, social impact; see
        :func:`setsup.datasets.croissant.rai.read_rai`. For finished shards, only ``croissant.json`` is written again.

    Returns
    -------
    ShardedDataset
        Its rows are in the requested order; ``source_rows`` gives their numbers in the dataset, or in the source of a
        selection.

    Raises
    ------
    DataError
        If the address has other content, the disk is full or the store fails (the same call resumes later), a row
        cannot be fetched or stored, the cluster cannot be used, or the rows of a missing tar have changed.
    FactorError
        If there is no factor to order by, or a factor has a reserved name or values that the index cannot store.

    References
    ----------
    .. [1] A. Aizman, G. Maltby, T. Breuel, "High performance I/O for large scale deep learning", IEEE Big Data 2019.

    Examples
    --------
    >>> import setsup, tempfile
    >>> cubes = setsup.load("shapes3d-procedural").where("shape == 'cube' and scale == 1.25 and orientation == 0")
    >>> folder = Path(tempfile.mkdtemp()) / "cubes"
    >>> shards = write_shards(cubes, folder, order="by:wall_hue", per_shard=300)
    >>> len(shards), sorted(path.name for path in folder.glob("data-*.tar"))[:2]
    (1000, ['data-00000.tar', 'data-00001.tar'])

    """
    check_arguments(write_shards, locals(), DataError)
    check_processes(processes, on)
    known = read_rai(rai)
    sized = dataset if size is None else Resized(dataset, check_size(size))
    members = stored_members(sized, modalities, format)
    placed = order_rows(dataset.factors, order, seed)
    content, row_bytes = inspect_rows(sized, members)
    plan = ShardPlan(
        name=dataset.name,
        factors=dataset.factors.fingerprint,
        content=content,
        members=members,
        order=placed.text,
        seed=placed.seed,
        cuts=cut(len(dataset), rows_a_shard(row_bytes) if per_shard is None else per_shard, placed.starts),
        setsup=version("setsup"),
    )
    check_catalogue(dataset, plan)
    store = open_store(url, storage_options)
    work = _Work(dataset, placed, plan, store, known)
    if work.finished() is None:  # refuse another job's files at once, rather than wait for its lock
        work.check()
    with locked(store.folder) if store.folder is not None else nullcontext():
        work.do(WriteShard(sized, store, plan, row_bytes), processes, on, on_start)
        catalogue = work.finished()
        if known and catalogue is not None:
            work.add_known(catalogue)
    from setsup.shards.opening import open_shards

    return open_shards(url, storage_options=storage_options)


# -- the work ----------------------------------------------------------------------------------------------------------


class _Work:
    """The steps before, during and after the writing of shards."""

    def __init__(self, dataset: Dataset, order: Order, plan: ShardPlan, store: Store, known: Mapping[str, Any]) -> None:
        self._dataset, self._order, self._plan, self._store = dataset, order, plan, store
        self._known = known

    def do(
        self, write: WriteShard, processes: int, on: Ray | None, on_start: Callable[[ShardPlan, int], object] | None
    ) -> None:
        catalogue = self.finished()
        lost = [] if catalogue is None else self._lost(catalogue)
        if catalogue is not None and not lost:
            self._tidy()
            if on_start is not None:
                on_start(self._plan, self._plan.rows)
            return
        # connected before anything is written, so that a failure leaves nothing
        with nullcontext() if on is None else Cluster(on) as cluster:
            if catalogue is None:
                self._write(write, self._begin(), processes, cluster, on_start)
                self._finish()
                return
            try:
                pieces = [self._piece(number, catalogue.shards[number]) for number in lost]
                self._write(write, pieces, processes, cluster, on_start)
            finally:
                self._tidy()

    def _write(
        self,
        write: WriteShard,
        pieces: list[Piece],
        processes: int,
        cluster: Cluster | None,
        on_start: Callable[[ShardPlan, int], object] | None,
    ) -> None:
        plan, folder = self._plan, self._store.folder
        units = [Unit(plan.shard_name(piece.number), piece, piece.stop - piece.start) for piece in pieces]
        missing = sum(unit.size for unit in units)
        self._need_space(missing)
        if on_start is not None:
            on_start(plan, plan.rows - missing)
        if folder is not None:
            make_folder(folder / WORK)
        shared = folder if cluster is not None else None
        run(write, units, processes=processes, on=cluster, folder=shared, what=f"writing {plan.name}", counted="rows")

    def finished(self) -> Catalogue | None:
        """The catalogue of finished shards; raises if they are of another plan."""
        plan, store = self._plan, self._store
        if store.size(CATALOGUE) is None:
            return None
        catalogue = parse_catalogue(store.read(CATALOGUE, _LARGEST), f"{store.url}/{CATALOGUE}")
        if catalogue.plan != plan.digest:
            raise DataError(
                f"{store.url} contains other shards: {catalogue.rows:,} rows of {catalogue.name} in "
                f"{_number(catalogue)}, written by setsup {catalogue.setsup}; choose another place, or remove them"
            )
        return catalogue

    def _lost(self, catalogue: Catalogue) -> list[int]:
        """Numbers of the tars that are missing or have changed in size."""
        plan, store = self._plan, self._store
        names = [plan.shard_name(number) for number in range(plan.shards)]
        if [shard.name for shard in catalogue.shards] != names:
            raise DataError(f"{store.url}/{CATALOGUE} is damaged: it lists different tars; {_ANEW}")
        size = store.size(INDEX)
        if size != catalogue.index.size:
            state = "is missing" if size is None else f"has {size:,} bytes, not {catalogue.index.size:,}"
            raise DataError(f"{store.url}/{INDEX} {state}; restore it from the tars with `setsup index {store.url}`")
        sizes = parallel(store.size, names)
        return [number for number, shard in enumerate(catalogue.shards) if sizes[number] != shard.size]

    def check(self) -> bool:
        """Whether this work was started; raises if other work was."""
        plan, store = self._plan, self._store
        if store.size(PLAN) is None:
            return False
        content = store.read(PLAN, _LARGEST)
        if content == plan.to_json().encode():
            return True
        raise DataError(
            f"{store.url} was started with {plan.against(content, f'{store.url}/{PLAN}') or 'a different plan'}; use "
            "the same settings, choose another place, or remove its contents"
        )

    def _begin(self) -> list[Piece]:
        """Claim the address for this work; returns the shards to write."""
        plan, store = self._plan, self._store
        if store.folder is not None:
            if not self.check():
                self._need_space(plan.rows)
            make_folder(store.folder)
        if self.check():
            if store.folder is not None:
                _remove_left(store.folder)
            done = self._done()
            return [self._piece(number) for number in range(plan.shards) if number not in done]
        others = store.names()
        if others and not self.check():
            raise DataError(
                f"{store.url} contains other files ({', '.join(others[:3])}{', …' if len(others) > 3 else ''}); choose "
                "a new place for the shards"
            )
        if not store.put_bytes(PLAN, plan.to_json().encode(), fresh=True):
            self.check()
        return [self._piece(number) for number in range(plan.shards)]

    def _done(self) -> set[int]:
        plan, store = self._plan, self._store

        def whole(number: int) -> bool:
            if store.size(part_name(number)) is None:
                return False
            size = store.size(plan.shard_name(number))
            if size is not None and read_part(store, plan, number)[0].size == size:
                return True
            store.remove([part_name(number)])  # otherwise the shard would count as finished
            return False

        return {number for number, good in enumerate(parallel(whole, list(range(plan.shards)))) if good}

    def _piece(self, number: int, expected: Shard | None = None) -> Piece:
        start, stop = self._plan.cuts[number : number + 2]
        rows = self._order.sorted
        return Piece(number, start, stop, None if rows is None else rows[start:stop], expected)

    def _need_space(self, rows: int) -> None:
        """Check the free space of a disk for uncompressed members."""
        if self._store.folder is None:
            return
        plain = [member.modality for member in self._plan.members.values() if member.format == "npy"]
        sizes = [
            math.prod(size or 0 for size in modality.shape) * np.dtype(modality.dtype).itemsize for modality in plain
        ]
        need_space(self._store.folder, rows * sum(sizes), f"writing shards of {self._plan.name}")

    # -- the end -------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        plan, store, dataset = self._plan, self._store, self._dataset
        shards: list[Shard] = []
        manifests = find_manifests(dataset)
        card = shards_card(dataset, plan, manifests)
        try:
            with scratch(store) as folder:
                write_index(folder / INDEX, self._parts(shards))
                index = Shard(INDEX, plan.rows, (folder / INDEX).stat().st_size, content_digest(folder / INDEX))
                catalogue = make_catalogue(dataset, plan, about(manifests, plan.order, plan.seed), tuple(shards), index)
                write_backup(folder / BACKUP, folder / INDEX, catalogue, card)
                store.put(BACKUP, folder / BACKUP)
                store.put(INDEX, folder / INDEX)
        except DataError:
            if self.finished() is None:  # another job may have finished in a store
                raise
            self._clear()
            return
        store.put_bytes(CARD, card.encode())
        self.describe(catalogue)
        store.put_bytes(CATALOGUE, catalogue.to_json().encode())
        self._clear()

    def describe(self, catalogue: Catalogue) -> None:
        """Write what Croissant says of the shards, and what a person knows."""
        told = catalogue_facts(catalogue, find_manifests(self._dataset))
        described = describe_shards(catalogue, told.adding({**how_made(self._dataset), **self._known}))
        self._store.put_bytes(FILE, to_text(described).encode())

    def add_known(self, catalogue: Catalogue) -> None:
        """Add what a person knows to what Croissant says of finished shards."""
        there = self._store.size(FILE) is not None
        described = add_properties(self._store.read(FILE, LARGEST), self._known) if there else None
        if described is None:
            self.describe(catalogue)
        else:
            self._store.put_bytes(FILE, to_text(described).encode())

    def _parts(self, shards: list[Shard]) -> Iterator[Any]:
        """Parts of the index, of several shards each, since each part has all levels of all factors."""
        plan, dataset = self._plan, self._dataset
        cuts, first = np.asarray(plan.cuts, np.int64), 0
        while first < plan.shards:
            enough = int(np.searchsorted(cuts, cuts[first] + GROUP))
            after = min(enough, first + _TOGETHER, plan.shards)
            numbers = np.arange(first, after)
            parts = parallel(self._finished_part, numbers.tolist())
            shards += [shard for shard, _ in parts]
            spans = {name: Spans.join(each[name] for _, each in parts) for name in plan.members}
            start, stop = plan.cuts[first], plan.cuts[after]
            rows = self._order.at(start, stop)
            source = dataset.rows[rows] if isinstance(dataset, Selection) else rows
            tars = np.repeat(numbers, np.diff(cuts[first : after + 1]))
            yield part(dataset.factors.select(rows), keys(plan.rows, start, stop), tars, spans, source)
            first = after

    def _finished_part(self, number: int) -> tuple[Shard, dict[str, Spans]]:
        shard, spans = read_part(self._store, self._plan, number)
        if self._store.size(shard.name) != shard.size:
            raise DataError(
                f"{self._store.url}/{shard.name} was changed while other shards were written; remove it and start again"
            )
        return shard, spans

    def _tidy(self) -> None:
        """Remove leftovers of finished shards."""
        if self._store.folder is not None or self._store.size(PLAN) is not None:  # the last to go
            self._clear()

    def _clear(self) -> None:
        """Remove the files of unfinished work."""
        plan, store = self._plan, self._store
        if store.folder is None:
            store.remove([part_name(number) for number in range(plan.shards)])
            store.remove([PLAN])  # last: it tells that something may be left
            return
        with disk_errors(store.folder / WORK):
            if (store.folder / WORK).exists():
                shutil.rmtree(store.folder / WORK)
            _remove_left(store.folder)


def _remove_left(folder: Path) -> None:
    """Remove temporary files of killed processes."""
    plan = folder / PLAN
    for parent in (folder, folder / WORK, folder / PARTS):
        for path in parent.iterdir() if parent.is_dir() else ():
            # unfinished shards are next to the plan, under any name
            if is_temporary(path.name) or (parent == plan.parent and path != plan and path.is_file()):
                path.unlink(missing_ok=True)


def _number(catalogue: Catalogue) -> str:
    number, order = len(catalogue.shards), catalogue.about.get("order")
    return f"{number:,} shard{'s' * (number != 1)}" + (f" in the order {order!r}" if order else "")
