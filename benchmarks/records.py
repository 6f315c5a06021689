"""TFRecord files with every checksum compared: the framing against the checksum alone, an index, and sets of views."""

import io
import itertools
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import google_crc32c
import numpy as np
from PIL import Image

from benchmarks.measure import Side, Spread, alternate, ratio, sized
from benchmarks.rows import Row, at_least, duration, rate
from setsup.datasets import images
from setsup.datasets.benchmarks import shapenet_renderings
from setsup.datasets.benchmarks.shapenet_renderings.records import read_views
from setsup.datasets.formats.tfrecord.records import masked_crc32c, record_spans

__all__ = ["rows"]

TOPIC = "records"
LEAST = 100  # MB/s
OBJECTS, PAIRS, SIZE = sized(8, 2), sized(200, 20), 32
_MB = 1e6


def rows(full: bool) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    yield _against_checksum("records of 16 kB", [rng.bytes(16_000)] * 2000)
    yield _against_checksum("records of 1 kB", [rng.bytes(1000)] * 8000)
    files = {f"{number:04d}": _file(rng) for number in range(OBJECTS)}
    content = files["0000"]
    yield _speed("pairs of views: framing, checksums, examples, matrices", lambda: read_views(content, "f"), content)
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        yield from _views(Path(name), files)


def _against_checksum(what: str, records: list[bytes]) -> Row:
    content = b"".join(map(_framed, records))
    return _speed(f"framing and checksums, {what}", lambda: record_spans(content, "f"), content)


def _speed(what: str, run: Callable[[], object], content: bytes) -> Row:
    """Megabytes a second, beside what computing one checksum of the same bytes gives."""
    found = alternate({"ours": Side(run), "crc32c": Side(lambda: google_crc32c.value(content))})
    size = len(content) / _MB
    limit = Spread.of(size / found["crc32c"]).median
    said = duration(found["ours"]), "crc32c of the same bytes at once", f"{limit:,.0f} MB/s"
    return Row(TOPIC, f"{what}, {size:.0f} MB", *said, Spread.of(size / found["ours"]), "MB/s", at_least(LEAST))


def _views(folder: Path, files: dict[str, bytes]) -> Iterator[Row]:
    """Sets of views from a folder, a zip and a prepared zip, against decoding pictures that are in memory."""
    lists = {"dev.txt": "", "test.txt": "0000\n"}
    places = {name: folder / name for name in ("folder", "stored", "deflated")}
    for name, place in places.items():
        place.mkdir()
        if name == "folder":
            _unpacked(place / "cars", files, lists)
        else:
            method = zipfile.ZIP_DEFLATED if name == "deflated" else zipfile.ZIP_STORED
            with zipfile.ZipFile(place / "cars.zip", "w", method) as archive:
                for record, content in files.items():
                    archive.writestr(f"{record}.tfrecord", content)
                for listed, text in lists.items():
                    archive.writestr(listed, text)
    unpacked = shapenet_renderings.open(places["folder"])
    pictures = _pictures(files)
    threads, images.threads = images.threads, 1  # as in a loader's worker process, and as the other side
    yield _sets("folder", unpacked.fetch, pictures, 80)
    stored = shapenet_renderings.open(places["stored"])
    yield _sets("stored zip", stored.fetch, pictures)
    shapenet_renderings.prepare(places["deflated"])
    yield _sets("deflated zip, prepared", shapenet_renderings.open(places["deflated"]).fetch, pictures, 80)
    images.threads = threads


def _sets(what: str, fetch: Callable[..., object], pictures: list[bytes], least: float | None = None) -> Row:
    count = len(pictures)
    sets = [itertools.cycle(np.random.default_rng(seed).integers(0, count, (64, SIZE))) for seed in (1, 2)]

    def bare() -> None:
        for row in next(sets[1]).tolist():
            images.decode(pictures[row], "picture", 4)

    sides = {"ours": Side(lambda: fetch(next(sets[0]), ["image"]), SIZE), "limit": Side(bare, SIZE)}
    found = alternate(sides)
    share = ratio(100 * found["limit"], found["ours"])
    said = rate(found["ours"], "images"), "decoding bytes in memory", rate(found["limit"], "images")
    bound = None if least is None else at_least(least)
    return Row(TOPIC, f"set of {SIZE} views over all objects, {what}", *said, share, "%", bound)


def _unpacked(folder: Path, files: dict[str, bytes], lists: dict[str, str]) -> None:
    folder.mkdir()
    for record, content in files.items():
        (folder / f"{record}.tfrecord").write_bytes(content)
    for listed, text in lists.items():
        (folder / listed).write_text(text, encoding="utf-8")


def _pictures(files: dict[str, bytes]) -> list[bytes]:
    found = []
    for content in files.values():
        offsets, lengths, _ = read_views(content, "f")
        found += [content[a : a + n] for a, n in zip(offsets.tolist(), lengths.tolist(), strict=True)]
    return found


def _file(rng: np.random.Generator) -> bytes:
    """Pairs of views of a blurred blob, whose PNGs have about the size of small renderings."""
    return b"".join(_framed(_pair(rng)) for _ in range(PAIRS))


def _pair(rng: np.random.Generator) -> bytes:
    features = {}
    for view in range(2):
        features[f"img{view}"] = _field(1, _field(1, _png(rng)))
        features[f"mv{view}"] = _field(2, _field(1, np.eye(4, dtype="<f4").tobytes()))
        features[f"mvi{view}"] = features[f"mv{view}"]
    return _field(1, b"".join(_field(1, _field(1, key.encode()) + _field(2, value)) for key, value in features.items()))


def _png(rng: np.random.Generator) -> bytes:
    picture = np.zeros((128, 128, 4), np.uint8)
    top, left = rng.integers(16, 48, 2)
    picture[top : top + 64, left : left + 64] = rng.integers(100, 108, (64, 64, 4))
    picture[top : top + 64, left : left + 64, 3] = 255
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return file.getvalue()


def _framed(data: bytes) -> bytes:
    length = len(data).to_bytes(8, "little")
    return length + masked_crc32c(length).to_bytes(4, "little") + data + masked_crc32c(data).to_bytes(4, "little")


def _field(number: int, content: bytes) -> bytes:
    length, size = b"", len(content)
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content
