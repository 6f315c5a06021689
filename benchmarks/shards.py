"""Shards on a disk: random sets against peers and the bare decoder, writing, indexing tars of others, and many samples.

Random sets are of 256 pictures out of all shards, from the page cache; every side gives one array of all of them.
"""

import io
import json
import os
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from kornia_rs.io import decode_image_png_u8
from PIL import Image

import setsup
from benchmarks.fetch import COUNT as MAPPED
from benchmarks.fetch import SHAPE, SIZE, Frames, mapped
from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.million import first_batches, memory
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, rate
from benchmarks.shard_peers import MADE_HERE, keepers, sequential, write_webdataset
from setsup import FactorTable
from setsup.datasets import Dataset, Modality
from setsup.datasets import images as decoders
from setsup.files import cache_folder
from setsup.shards.dataset import ShardedDataset
from setsup.shards.external.indexing import index_shards
from setsup.shards.opening import open_shards
from setsup.shards.reading import MAPS, LocalReader
from setsup.shards.writing.writer import write_shards

__all__ = ["COUNT", "PER_SHARD", "Pictures", "pictures", "rows"]

TOPIC = "shards"
COUNT, PER_SHARD = sized(12_288, 2_048), 512
LEAST = {"webdataset": 5.0, "datasets": 5.0, "litdata": 3.0, "pylance": 2.0, "mosaicml-streaming": 2.0}
EXTERNAL, LABELLED = sized(100_000, 2_000), sized(20_000, 1_000)
FEW, WRITTEN = sized(8_192, 512), sized(4_096, 512)
"""Pictures that are encoded as PNG, where each takes a fifth of a millisecond; and those of a shard that is written."""

Images = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int64]


class Pictures(Frames):
    """Pictures in one array, with factors of their own."""

    def __init__(self, images: Images, factors: FactorTable) -> None:
        self.name = "look-alikes"
        self.factors = factors
        self.modalities = {"image": Modality(images.shape[1:], "uint8", color="srgb")}
        self.images = images


def pictures(count: int = COUNT) -> Pictures:
    """Shapes3D look-alikes of random rows of the grid."""
    shapes = setsup.load("shapes3d-procedural")
    chosen = np.sort(np.random.default_rng(0).choice(len(shapes), count, replace=False))
    parts = [shapes.fetch(part)["image"] for part in np.array_split(chosen, max(1, count // 512))]
    return Pictures(np.concatenate(parts), shapes.select(chosen).factors)


def rows(full: bool) -> Iterator[Row]:
    drawn = pictures()
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        folder = Path(name)
        plain, packed = (write_shards(drawn, folder / end, format=end, per_shard=PER_SHARD) for end in ("npy", "png"))
        yield from _first_pass(folder / "npy", drawn.images)
        yield _unchecked(plain, drawn.images)
        yield from _random(plain, drawn.images, folder)
        yield from _decoding(packed, drawn.images, folder / "png")
    yield from _writing(drawn)
    yield from _indexing()
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name, on_every_core():
        yield from first_batches(Path(name))
        yield from memory(Path(name))


# -- random sets -------------------------------------------------------------------------------------------------------


def _random(plain: Dataset, images: Images, folder: Path) -> Iterator[Row]:
    """Images a second against each peer; what is required is required of its fastest way, bytes among them or not."""
    for start in range(0, COUNT, SIZE):  # all is checked once, and in the page cache
        plain.fetch(np.arange(start, start + SIZE))
    what = f"random sets of {SIZE}, raw npy, {COUNT // PER_SHARD} shards"
    out = np.empty((SIZE, *SHAPE), np.uint8)
    sides = {"ours": Side(_sets(lambda rows: plain.fetch(rows)["image"], images), SIZE)}
    ways: dict[str, list[str]] = {}
    for number, keeper in enumerate(keepers()):
        label = f"{keeper.peer}: {keeper.how}"
        fetch = keeper.open(_made(folder / "peers" / str(number)), images)
        sides[label] = Side(_sets(fetch, images), SIZE)
        ways.setdefault(keeper.peer, []).append(label)
    if (wds := peer("webdataset")) is not None:
        tars = sorted((folder / "npy").glob("*.tar"))
        for way in sequential(wds, tars, "npy", SIZE, SHAPE):
            label = f"webdataset, in order: {way.how}"
            sides[label] = Side(_in_order(way.batches, images), SIZE)
            ways.setdefault("webdataset", []).append(label)
    sides["limit"] = Side(_sets(lambda rows: np.take(images, rows, axis=0, out=out, mode="clip"), images), SIZE)
    found = alternate(sides, blocks=11)
    ours = rate(found["ours"], "images")
    for name, labels in ways.items():
        arrays = [label for label in labels if not label.endswith(MADE_HERE)]
        fastest = {min(some, key=lambda label: float(np.median(found[label]))) for some in (arrays, labels)}
        for label in labels:
            times = ratio(found[label], found["ours"])
            bound = at_least(LEAST[name]) if label in fastest else None
            yield Row(TOPIC, what, ours, label, rate(found[label], "images"), times, "×", bound)
    share = ratio(100 * found["limit"], found["ours"])
    yield Row(TOPIC, what, ours, "np.take(out=, mode='clip') in memory", rate(found["limit"], "images"), share, "%")


def _first_pass(folder: Path, images: Images) -> Iterator[Row]:
    """The first reading of a process, in which all members are checked, against what follows."""
    found: dict[str, Dataset] = {}
    order = np.random.default_rng(5).permutation(COUNT).reshape(-1, SIZE)

    def read(dataset: Dataset) -> None:
        for rows in order:
            dataset.fetch(rows)

    def opened() -> None:
        found["first"] = open_shards(folder)

    opened()
    read(found["first"])
    found["later"] = found["first"]
    sides = {
        "first": Side(lambda: read(found["first"]), COUNT, before=opened),
        "later": Side(lambda: read(found["later"]), COUNT, before=lambda: None),
    }
    times = alternate(sides, blocks=5)
    share = ratio(100 * times["later"], times["first"])
    said = rate(times["first"], "images"), "the same, all checked before", rate(times["later"], "images")
    yield Row(TOPIC, f"random sets of {SIZE}, raw npy, each picture for the first time", *said, share, "%")


def _unchecked(plain: ShardedDataset, images: Images) -> Row:
    """What it costs to look at the tars' sizes before each read, against a reader that does not."""
    bare = open_shards(plain.url)
    mapped = lru_cache(maxsize=MAPS)(partial(_content, bare._reader))

    def read(shards: Rows, starts: Rows, sizes: Rows) -> list[memoryview]:
        stretches = zip(shards.tolist(), starts.tolist(), (starts + sizes).tolist(), strict=True)
        return [mapped(number)[start:stop] for number, start, stop in stretches]

    bare._reader.read = read  # type: ignore[method-assign]
    for start in range(0, COUNT, SIZE):
        for dataset in (plain, bare):
            dataset.fetch(np.arange(start, start + SIZE))
    sides = {
        name: Side(_sets(lambda rows, dataset=dataset: dataset.fetch(rows)["image"], images), SIZE)
        for name, dataset in (("ours", plain), ("bare", bare))
    }
    found = alternate(sides, blocks=21)
    share = ratio(100 * found["bare"], found["ours"])
    what = f"random sets of {SIZE}, raw npy, {COUNT // PER_SHARD} shards"
    said = rate(found["ours"], "images"), "the same, sizes of tars not looked at", rate(found["bare"], "images")
    return Row(TOPIC, what, *said, share, "%", at_least(97))


def _content(reader: LocalReader, number: int) -> memoryview:
    return reader._map(number).content


def _decoding(packed: Dataset, images: Images, folder: Path) -> Iterator[Row]:
    """Share of the limit, in per cent: the decoder that setsup uses, in a loop on contents in memory."""
    for start in range(0, COUNT, SIZE):
        packed.fetch(np.arange(start, start + SIZE))
    contents = _contents(folder, ".png")
    out = np.empty((SIZE, *SHAPE), np.uint8)
    slots = {"image": np.empty_like(out)}

    def ours(rows: Rows) -> Images:
        packed.fetch_into(rows, slots)  # as the loader does
        return slots["image"]

    def thrown_away(rows: Rows) -> None:
        for row in rows.tolist():
            decode_image_png_u8(contents[row], SHAPE[:2], "rgb")

    def kept(rows: Rows) -> Images:
        for slot, row in enumerate(rows.tolist()):
            out[slot] = decode_image_png_u8(contents[row], SHAPE[:2], "rgb")
        return out

    bare, same = "kornia-rs on bytes in memory, pictures thrown away", "kornia-rs on bytes in memory, into one array"
    sides = {
        "ours": Side(_sets(ours, images), SIZE),
        bare: Side(_sets(thrown_away), SIZE),
        same: Side(_sets(kept, images), SIZE),
    }
    if (wds := peer("webdataset")) is not None:
        for way in sequential(wds, sorted(folder.glob("*.tar")), "png", SIZE, SHAPE):
            sides[f"webdataset, in order: {way.how}"] = Side(_in_order(way.batches), SIZE)
    before, decoders.threads = decoders.threads, 1
    try:
        found = alternate(sides, blocks=11, seconds=0.1)
    finally:
        decoders.threads = before
    what = f"random sets of {SIZE}, png, {COUNT // PER_SHARD} shards"
    for name in list(sides)[1:]:
        share = name in (bare, same)
        figure = ratio((100 if share else 1) * found[name], found["ours"])
        said = rate(found["ours"], "images"), name, rate(found[name], "images")
        yield Row(TOPIC, what, *said, figure, "%" if share else "×", at_least(90) if name == bare else None)


def _sets(fetch: Callable[[Rows], Any], images: Images | None = None) -> Callable[[], Any]:
    """Fetch random sets in turn, the same ones for every side; what the first one gives is checked."""
    sets = np.random.default_rng(1).integers(0, COUNT, (512, SIZE))
    if images is not None and not np.array_equal(np.asarray(fetch(sets[0])), images[sets[0]]):
        raise RuntimeError("a side gives other pictures than those that were written")
    turns = cycle(sets)
    return lambda: fetch(next(turns))


def _in_order(batches: Iterator[Images], images: Images | None = None) -> Callable[[], Any]:
    if images is not None and not np.array_equal(next(batches), images[:SIZE]):
        raise RuntimeError("the stream gives other pictures than those that were written")
    return lambda: next(batches)


def _contents(folder: Path, end: str) -> list[bytes]:
    """Contents of members of one kind, in the order of the tars."""
    found = []
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as file:
            found += [file.extractfile(info).read() for info in file if info.name.endswith(end)]  # type: ignore[union-attr]
    return found


# -- writing -----------------------------------------------------------------------------------------------------------


def _writing(drawn: Pictures) -> Iterator[Row]:
    """CPU time of writing on one core; two processes against one, by the clock."""
    values = [drawn.factors.values(name).tolist() for name in drawn.factors.names]
    labels = [dict(zip(drawn.factors.names, row, strict=True)) for row in zip(*values, strict=True)]
    wds = peer("webdataset")
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        folder = Path(name) / "set"
        for format, count in (("npy", COUNT), ("png", FEW)):
            some = drawn.select(np.arange(count))

            def ours(some: Dataset = some, format: str = format) -> None:
                write_shards(some, folder, format=format, per_shard=WRITTEN)

            def theirs(count: int = count, format: str = format) -> None:
                write_webdataset(wds, folder, drawn.images[:count], labels[:count], format, WRITTEN)

            def bare(count: int = count) -> None:
                for image in drawn.images[:count]:
                    _by_pillow(image)

            sides = {"ours": Side(ours, count, before=lambda: _made(folder))}
            if wds is not None:
                sides["webdataset's ShardWriter"] = Side(theirs, count, before=lambda: _made(folder))
            if format == "png":
                sides[_BARE] = Side(bare, count, before=lambda: None)
            found = alternate(sides, blocks=5)
            for other in list(sides)[1:]:
                share = other == _BARE
                figure = ratio((100 if share else 1) * found[other], found["ours"])
                said = rate(found["ours"], "images"), other, rate(found[other], "images")
                bound = at_least(90) if share else at_least(2) if format == "npy" else None
                yield Row(TOPIC, f"{count:,} images written, {format}", *said, figure, "%" if share else "×", bound)
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name, on_every_core():
        yield from _two_processes(drawn.images, Path(name))


_BARE = "Pillow's encoder at the same setting, results thrown away"


def _by_pillow(image: Images) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG", compress_level=1, compress_type=zlib.Z_RLE)
    return stream.getvalue()


def _two_processes(images: Images, folder: Path) -> Iterator[Row]:
    """A data set in a file, as those are for which more than one process is worth it."""
    on_disk, _ = mapped(folder / "3dshapes.h5", np.resize(images, (MAPPED, *SHAPE)))
    target = folder / "set"
    for format, count, bound in (("npy", MAPPED, None), ("png", MAPPED, at_least(1.5))):
        some = on_disk.select(np.arange(count))

        def side(processes: int, some: Dataset = some, format: str = format) -> Side:
            run = lambda: write_shards(some, target, format=format, per_shard=WRITTEN // 4, processes=processes)  # noqa: E731
            return Side(run, len(some), before=lambda: _made(target))

        found = alternate({"two": side(2), "one": side(1)}, blocks=3, clock=time.perf_counter, warm=False)
        said = rate(found["two"], "images"), "1 process", rate(found["one"], "images")
        what = f"{count:,} images written, {format}, 2 processes, by the clock"
        yield Row(TOPIC, what, *said, ratio(found["one"], found["two"]), "×", bound)


# -- tars of others ----------------------------------------------------------------------------------------------------


def _indexing() -> Iterator[Row]:
    """CPU time of indexing a tar of others, against a pass of tarfile over the same."""
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        for labelled, samples in ((False, EXTERNAL), (True, LABELLED)):
            folder = _made(Path(name) / f"external-{labelled}")
            path = folder / "000000.tar"
            members = _external(path, samples, labelled)
            how = "with json read" if labelled else "headers only"
            what = f"an external tar of {samples:,} samples indexed, {how}"
            out = Path(name) / "index"

            def index(folder: Path = folder, out: Path = out) -> None:
                index_shards(folder, out)

            def forget(out: Path = out) -> None:
                shutil.rmtree(out, ignore_errors=True)
                for kept in cache_folder().iterdir():
                    shutil.rmtree(kept) if kept.is_dir() else kept.unlink()

            def scan(path: Path = path, labelled: bool = labelled) -> None:
                with tarfile.open(path) as file:
                    for info in file:
                        if labelled and info.name.endswith(".json"):
                            json.load(file.extractfile(info))  # type: ignore[arg-type]

            found = alternate({"ours": Side(index, members, before=forget), "other": Side(scan, members)}, blocks=7)
            said = rate(found["ours"], "members"), "tarfile, next() to the end", rate(found["other"], "members")
            bound = None if labelled else at_least(10)
            yield Row(TOPIC, what, *said, ratio(found["other"], found["ours"]), "×", bound)


def _external(path: Path, samples: int, labelled: bool) -> int:
    """Write a tar as others do; gives the number of its members."""
    random = np.random.default_rng(3)
    picture = io.BytesIO()
    Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(picture, "PNG")
    count = 0
    with path.open("wb") as file:
        for number in range(samples):
            members = {"png": picture.getvalue()}
            if labelled:
                members["json"] = json.dumps({"subject": number % 97, "view": number % 5}).encode()
            for end, content in members.items():
                info = tarfile.TarInfo(f"{number:06d}.{end}")
                info.size = len(content)
                file.write(info.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512))
                count += 1
        file.write(bytes(1024))
    return count


# -- folders and cores -------------------------------------------------------------------------------------------------


def _made(folder: Path) -> Path:
    """Make a folder anew, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@contextmanager
def on_every_core() -> Iterator[None]:
    """Let this process and those it starts use every core, where the topic keeps to one."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
