"""The same pictures as other tools keep them in files, each at the settings that its documentation gives.

Where a tool has several ways to keep pictures of one size, all of them are here, also those that hand out bytes, which
become an array here. Every fetch gives one array of all the pictures.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.peers import peer

__all__ = ["MADE_HERE", "Keeper", "Sequential", "keepers", "sequential", "write_webdataset"]

Images = npt.NDArray[np.uint8]
Fetch = Callable[[npt.NDArray[np.int64]], Images]

MADE_HERE = ", arrays made here"
"""How the names of ways end that give bytes or tables, of which this module makes the array."""

_NPY_HEADER = 128  # bytes that numpy writes ahead of such an array


class Keeper(NamedTuple):
    """One way of a peer to keep pictures.

    Attributes
    ----------
    peer : str
        Name of its distribution.
    how : str
        The way, in words.
    open : callable
        Writes pictures, (n, height, width, 3) uint8, below a folder; gives what fetches some of them.

    """

    peer: str
    how: str
    open: Callable[[Path, Images], Fetch]


def keepers() -> Iterator[Keeper]:
    """All ways of those peers that are installed and fetch at random."""
    for name, ways in _WAYS.items():
        if (module := peer(name)) is not None:
            for how, way in ways.items():
                yield Keeper(name, how, partial(way, module))


# -- Hugging Face datasets: Arrow files, mapped into memory ------------------------------------------------------------


def _array3d(hf: ModuleType, folder: Path, images: Images) -> Fetch:
    """The feature that its documentation has for arrays, in the format for numpy."""
    hf.disable_progress_bars()
    features = hf.Features({"image": hf.Array3D(images.shape[1:], "uint8")})
    given: dict[str, Any] = {"features": features, "cache_dir": str(folder / "cache"), "fingerprint": "0"}
    found = _on_disk(hf, hf.Dataset.from_generator(lambda: ({"image": one} for one in images), **given), folder)
    found = found.with_format("numpy")
    return lambda rows: found[rows]["image"]


def _fixed_list(hf: ModuleType, folder: Path, images: Images) -> Fetch:
    """Lists of one length, in the format for numpy."""
    found = _lists(hf, folder, images).with_format("numpy")
    shape = images.shape[1:]
    return lambda rows: found[rows]["image"].reshape(-1, *shape)


def _fixed_list_arrow(hf: ModuleType, folder: Path, images: Images) -> Fetch:
    """Lists of one length as an Arrow table, whose memory is the array's."""
    found = _lists(hf, folder, images).with_format("arrow")
    shape = images.shape[1:]
    return lambda rows: found[rows]["image"].combine_chunks().flatten().to_numpy().reshape(-1, *shape)


def _hf_bytes(hf: ModuleType, folder: Path, images: Images) -> Fetch:
    """Bytes."""
    features = hf.Features({"image": hf.Value("binary")})
    found = _on_disk(hf, hf.Dataset.from_dict({"image": [one.tobytes() for one in images]}, features), folder)
    return lambda rows: _stacked(found[rows]["image"], images.shape[1:])


def _lists(hf: ModuleType, folder: Path, images: Images) -> Any:
    import pyarrow as pa

    flat = pa.FixedSizeListArray.from_arrays(pa.array(images.reshape(-1)), images[0].size)
    return _on_disk(hf, hf.Dataset(pa.table({"image": flat})), folder)


def _on_disk(hf: ModuleType, dataset: Any, folder: Path) -> Any:
    hf.disable_progress_bars()
    dataset.save_to_disk(str(folder / "saved"))
    return hf.load_from_disk(str(folder / "saved"))


# -- litData: chunks of 64 MB, as its documentation has it, mapped into memory -----------------------------------------


def _lit_array(ld: ModuleType, folder: Path, images: Images) -> Fetch:
    found = _lit(ld, folder, images)
    return lambda rows: np.stack([found[row] for row in rows.tolist()])


def _lit_flat(ld: ModuleType, folder: Path, images: Images) -> Fetch:
    """Arrays of one dimension, which it keeps without a header."""
    found = _lit(ld, folder, images.reshape(len(images), -1))
    shape = images.shape[1:]
    return lambda rows: np.stack([found[row] for row in rows.tolist()]).reshape(-1, *shape)


def _lit_bytes(ld: ModuleType, folder: Path, images: Images) -> Fetch:
    found = _lit(ld, folder, (one.tobytes() for one in images))
    return lambda rows: _stacked([found[row] for row in rows.tolist()], images.shape[1:])


def _lit(ld: ModuleType, folder: Path, items: Any) -> Any:
    from litdata.streaming.writer import BinaryWriter  # what `optimize` writes with in its worker processes

    writer = BinaryWriter(str(folder), chunk_bytes=64 << 20)
    for number, item in enumerate(items):
        writer[number] = item
    writer.done()
    writer.merge()
    # by itself it decodes some 250 items ahead of every look-up, of which sets at random use one
    return ld.StreamingDataset(str(folder), cache_dir=str(folder / "cache"), batch_decode=1)


# -- Lance: one file, by `take` ----------------------------------------------------------------------------------------


def _lance_list(lance: ModuleType, folder: Path, images: Images) -> Fetch:
    import pyarrow as pa

    found = _lance(lance, folder, pa.FixedSizeListArray.from_arrays(pa.array(images.reshape(-1)), images[0].size))
    shape = images.shape[1:]
    return lambda rows: _column(found, rows).flatten().to_numpy().reshape(-1, *shape)


def _lance_fixed(lance: ModuleType, folder: Path, images: Images) -> Fetch:
    """Bytes of one length."""
    import pyarrow as pa

    kind = pa.binary(images[0].size)
    found = _lance(lance, folder, pa.FixedSizeBinaryArray.from_buffers(kind, len(images), [None, pa.py_buffer(images)]))
    shape = images.shape[1:]

    def fetch(rows: npt.NDArray[np.int64]) -> Images:
        taken = _column(found, rows)
        pictures = np.frombuffer(taken.buffers()[1], np.uint8).reshape(-1, *shape)
        return pictures[taken.offset : taken.offset + len(taken)]

    return fetch


def _lance_bytes(lance: ModuleType, folder: Path, images: Images) -> Fetch:
    import pyarrow as pa

    found = _lance(lance, folder, pa.array([one.tobytes() for one in images], pa.large_binary()))
    shape = images.shape[1:]

    def fetch(rows: npt.NDArray[np.int64]) -> Images:
        taken = _column(found, rows)
        ends = np.frombuffer(taken.buffers()[1], np.int64)
        values = np.frombuffer(taken.buffers()[2], np.uint8)
        return values[ends[taken.offset] : ends[taken.offset + len(taken)]].reshape(-1, *shape)

    return fetch


def _lance(lance: ModuleType, folder: Path, column: Any) -> Any:
    import pyarrow as pa

    lance.write_dataset(pa.table({"image": column}), str(folder / "lance"), data_storage_version="2.1")
    return lance.dataset(str(folder / "lance"))


def _column(dataset: Any, rows: npt.NDArray[np.int64]) -> Any:
    taken = dataset.take(rows, columns=["image"]).column("image").combine_chunks()
    return taken.chunk(0) if hasattr(taken, "chunk") else taken


# -- MosaicML streaming: its data set of local shards ------------------------------------------------------------------


def _mds_array(base: ModuleType, folder: Path, images: Images) -> Fetch:
    found = _mds(base, folder, images, f"ndarray:uint8:{','.join(map(str, images.shape[1:]))}")
    return lambda rows: np.stack([found.get_item(row)["image"] for row in rows.tolist()])


def _mds_bytes(base: ModuleType, folder: Path, images: Images) -> Fetch:
    found = _mds(base, folder, (one.tobytes() for one in images), "bytes")
    return lambda rows: _stacked([found.get_item(row)["image"] for row in rows.tolist()], images.shape[1:])


def _mds(base: ModuleType, folder: Path, items: Any, encoding: str) -> Any:
    with base.MDSWriter(out=str(folder), columns={"image": encoding}) as writer:
        for item in items:
            writer.write({"image": item})
    return base.LocalDataset(str(folder))


_WAYS: dict[str, dict[str, Callable[[ModuleType, Path, Images], Fetch]]] = {
    "datasets": {
        "Array3D, numpy": _array3d,
        "lists of one length, numpy": _fixed_list,
        f"Arrow tables{MADE_HERE}": _fixed_list_arrow,
        f"bytes{MADE_HERE}": _hf_bytes,
    },
    "litdata": {"arrays": _lit_array, "flat arrays": _lit_flat, f"bytes{MADE_HERE}": _lit_bytes},
    "pylance": {
        "lists of one length": _lance_list,
        f"bytes of one length{MADE_HERE}": _lance_fixed,
        f"bytes{MADE_HERE}": _lance_bytes,
    },
    "mosaicml-streaming": {"arrays of one shape": _mds_array, f"bytes{MADE_HERE}": _mds_bytes},
}


def _stacked(contents: Sequence[bytes], shape: tuple[int, ...]) -> Images:
    return np.stack([np.frombuffer(content, np.uint8).reshape(shape) for content in contents])


# -- webdataset: one sample after the other ----------------------------------------------------------------------------


class Sequential(NamedTuple):
    """An endless stream of batches of pictures in the order of the files, and how it is made."""

    how: str
    batches: Iterator[Images]


def sequential(wds: ModuleType, tars: Sequence[Path], format: str, size: int, shape: tuple[int, ...]) -> Iterator[Any]:
    """Ways of the webdataset library to give batches from tars, members of other kinds left out where it can."""
    paths = [str(path) for path in tars]

    def stream(**options: Any) -> Any:
        return wds.WebDataset(paths, shardshuffle=False, **options)

    def array(content: bytes) -> Images:
        return np.frombuffer(content, np.uint8, offset=_NPY_HEADER).reshape(shape)

    def wanted(name: str) -> bool:
        return name.endswith(f".{format}")

    decoded = "rgb8" if format == "png" else None
    found = {
        "decode": stream().decode(*filter(None, [decoded])),
        f"decode, only .{format}": stream(select_files=wanted).decode(*filter(None, [decoded])),
    }
    if format == "npy":
        found[f"only .npy{MADE_HERE}"] = stream(select_files=wanted).map_dict(npy=array)
    for how, pipeline in found.items():
        batches = iter(pipeline.to_tuple(format).batched(size).repeat())
        yield Sequential(how, (batch for (batch,) in batches if len(batch) == size))


def write_webdataset(
    wds: ModuleType, folder: Path, images: Images, labels: Sequence[Mapping[str, Any]], format: str, per_shard: int
) -> None:
    """Write pictures and labels with the library's own writer."""
    with wds.ShardWriter(f"{folder}/%05d.tar", maxcount=per_shard, verbose=0) as writer:
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            writer.write({"__key__": f"{number:06d}", format: image, "json": label})
