"""Records of rendered views: the content of an example, and an index of its images, created once and mapped.

The index is in the cache folder, one Arrow file per release or archive, whose name identifies the version. Creating it
reads every byte of the release and verifies every checksum; using it reads none.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.record_files import RecordFiles
from setsup.datasets.formats.tfrecord.example import Feature, read_example
from setsup.datasets.formats.tfrecord.records import record_spans
from setsup.errors import DamagedFile, DataError
from setsup.files import cache_folder, written
from setsup.files.builds import build_once
from setsup.html import counted
from setsup.progress import progress

__all__ = ["SIDE", "ViewIndex", "read_views", "view_index"]

SIDE = 128
"""Height and width of every image."""

_VERSION = 1  # of the index on disk
_KEYS = ("img0", "mv0", "img1", "mv1")
_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_RIGID = 1e-3  # the published matrices were printed with six decimals
_LEAST = 200  # bytes of an example: two matrices and the beginnings of two images

_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class ViewIndex:
    """Positions and matrices of the images of all views; the views of a pair are adjacent.

    `counts` (files,) int64; `offsets` (views,) int64, bytes; `lengths` (views,) int32, bytes; `model_views` (views, 4,
    4) float32.
    """

    counts: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    model_views: npt.NDArray[np.float32]
    path: Path

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path, not the arrays."""
        return _reopened, (str(self.path),)


def view_index(files: RecordFiles) -> ViewIndex:
    """Index record files, or map their existing index."""
    path = cache_folder() / "views" / f"{files.identity()}.{_VERSION}.arrow"
    return build_once(path, _stored, partial(_store, files))


def read_views(
    content: bytes, label: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Find the images and read the matrices of all views in a record file, and check the whole file.

    Returns `offsets` (views,) int64, bytes; returns `lengths` (views,) int32, bytes; returns `model_views` (views, 4,
    4) float32.
    """
    records = record_spans(content, label)
    if not len(records):
        raise DamagedFile(f"{label} contains no records")
    short = records[:, 1] < _LEAST
    if short.any():
        number = int(np.argmax(short))
        raise DamagedFile(
            f"{label}, record {number} has {records[number, 1]} bytes; expected at least {_LEAST:,}, the size of two "
            "views"
        )
    spans = np.empty((len(records), 2, 2), np.int64)
    matrices = np.empty((len(records), 2, 16), np.float32)
    for number, (start, length) in enumerate(records.tolist()):
        where = f"{label}, record {number}"
        features = read_example(content, _KEYS, where, start, start + length)
        for view in range(2):
            spans[number, view] = _image(content, features, f"img{view}", where)
            matrices[number, view] = _matrix(features, f"mv{view}", where)
    model_views = matrices.reshape(-1, 4, 4)
    _check_rigid(model_views, label)
    offsets, lengths = spans.reshape(-1, 2).T
    return offsets, lengths.astype(np.int32), model_views


def _feature(features: Mapping[str, Feature], key: str, kind: str, count: int, where: str) -> npt.NDArray[Any]:
    if key not in features:
        raise DamagedFile(f"{where} lacks the feature {key!r}; expected a pair of rendered views")
    feature = features[key]
    if feature.kind != kind or len(feature.values) != count:
        raise DamagedFile(
            f"{where}: {key!r} has {counted(len(feature.values), 'value')} of type {feature.kind}; expected {count} of "
            f"type {kind}"
        )
    return feature.values


def _image(content: bytes, features: Mapping[str, Feature], key: str, where: str) -> npt.NDArray[Any]:
    """Offset and length of a PNG whose header has been looked at."""
    span: npt.NDArray[np.int64] = _feature(features, key, "bytes", 1, where)[0]
    start, length = span.tolist()
    head = content[start : start + min(length, 24)]
    if len(head) < 24 or not head.startswith(_PNG):
        raise DamagedFile(f"{where}: {key!r} is not a PNG (it begins with {head[:8]!r})")
    if length >= 1 << 31:
        raise DamagedFile(f"{where}: {key!r} has {length:,} bytes; expected fewer than {1 << 31:,}")
    width, height = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if (width, height) != (SIDE, SIDE):
        raise DamagedFile(f"{where}: {key!r} has {width} × {height} pixels; expected {SIDE} × {SIDE}")
    return span


def _matrix(features: Mapping[str, Feature], key: str, where: str) -> npt.NDArray[Any]:
    return _feature(features, key, "float", 16, where)


def _check_rigid(matrices: npt.NDArray[np.float32], label: str) -> None:
    """Refuse what is not a rotation and shift; NaN and infinity too."""
    with np.errstate(invalid="ignore", over="ignore"):
        rotations = matrices[:, :3, :3].astype(np.float64)
        error = np.abs(rotations @ rotations.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        turned = np.einsum("ij,ij->i", np.cross(rotations[:, 0], rotations[:, 1]), rotations[:, 2])
        last = np.abs(matrices[:, 3] - np.array([0, 0, 0, 1], np.float32)).max(axis=1)
        rigid = (error <= _RIGID) & (turned > 0) & (last <= _RIGID) & np.isfinite(matrices).all(axis=(1, 2))
    if not rigid.all():
        number, view = divmod(int(np.argmin(rigid)), 2)
        raise DamagedFile(
            f"{label}, record {number}: 'mv{view}' is not a rotation and translation (4 × 4, with last row 0 0 0 1)"
        )


# -- the index on disk -------------------------------------------------------------------------------------------------


def _store(files: RecordFiles, path: Path) -> None:
    import pyarrow as pa

    _log.info("indexing the views of %s into %s", files.source, path)
    views = []
    with progress(int(files.sizes.sum()), f"indexing {files.source.name}", "B") as advance:
        for file in range(len(files)):
            views.append(read_views(files.content(file), files.label(file)))
            advance(int(files.sizes[file]))
    offsets, lengths, matrices = (np.concatenate(arrays) for arrays in zip(*views, strict=True))
    about = {"version": _VERSION, "counts": [len(each[0]) for each in views]}
    arrays = [pa.array(offsets), pa.array(lengths), pa.FixedSizeListArray.from_arrays(pa.array(matrices.ravel()), 16)]
    schema = pa.schema(
        [pa.field(name, array.type) for name, array in zip(("offset", "length", "model_view"), arrays, strict=True)],
        metadata={"views": json.dumps(about)},
    )
    with written(path) as part, pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _stored(path: Path) -> ViewIndex | None:
    """Index as it was stored; None where there is none, or no whole one."""
    import pyarrow as pa

    if not path.exists():
        return None
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        about = json.loads(reader.schema.metadata[b"views"])
        batch = reader.get_batch(0)
        batch.validate()
        counts = np.array(about["counts"], np.int64)
        offsets, lengths = (batch.column(name).to_numpy(zero_copy_only=True) for name in ("offset", "length"))
        matrices = batch.column("model_view").values.to_numpy(zero_copy_only=True).reshape(-1, 4, 4)
        whole = about["version"] == _VERSION and len(offsets) == len(matrices) == counts.sum() and counts.min() > 0
        whole = whole and (offsets.dtype, lengths.dtype, matrices.dtype) == (np.int64, np.int32, np.float32)
    except Exception as error:  # whatever is wrong with a cached file, it is made again
        _log.warning("the index %s is damaged (%s); recreating it", path, " ".join(str(error).split()))
        return None
    if not whole:
        _log.warning("the index %s is outdated; recreating it", path)
        return None
    return ViewIndex(counts, offsets, lengths, matrices, path)


def _reopened(path: str) -> ViewIndex:
    records = _stored(Path(path))
    if records is None:
        raise DataError(f"the index {path} no longer exists; open the dataset again in the process that created it")
    return records
