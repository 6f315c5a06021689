"""Sets of shards made by hand, as their documentation describes them: tarfile, pyarrow and json, nothing of setsup."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    _TABLE.append(_byte)


def crc32c(content: bytes) -> int:
    """CRC-32C by its definition (RFC 3720, appendix B.4)."""
    found = 0xFFFFFFFF
    for byte in content:
        found = found >> 8 ^ _TABLE[(found ^ byte) & 0xFF]
    return found ^ 0xFFFFFFFF


def npy(array: Any, version: tuple[int, int] | None = None) -> bytes:
    """Content of a .npy."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), version)
    return file.getvalue()


def picture(array: Any, kind: str = "PNG", **options: Any) -> bytes:
    """Content of a picture, by Pillow."""
    from PIL import Image

    file = io.BytesIO()
    pixels = np.asarray(array)
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(file, kind, **options)
    return file.getvalue()


def write_tar(path: Path, members: Sequence[tuple[str, bytes]], **fields: Any) -> None:
    """Write a tar as ustar with tarfile."""
    with tarfile.open(path, "w", format=fields.pop("format", tarfile.USTAR_FORMAT)) as tar:
        for name, content in members:
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(content), 0o444
            for field, value in fields.items():
                setattr(about, field, value)
            tar.addfile(about, io.BytesIO(content))


def places(path: Path) -> dict[str, tuple[int, int, int]]:
    """Of each member of a tar: where its content begins, its bytes, and the checksum field of its header."""
    found = {}
    with tarfile.open(path) as tar:
        for member in tar:
            found[member.name] = (member.offset_data, member.size, member.chksum)
    return found


def write_set(
    folder: Path,
    samples: Sequence[Mapping[str, bytes]],
    members: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, Sequence[Any]],
    factors: Sequence[Mapping[str, Any]],
    *,
    per_shard: int = 3,
    check: str = "crc32c",
    keys: Sequence[str] | None = None,
    index: Path | None = None,
    source_rows: Sequence[int] | None = None,
) -> Path:
    """Write shards, their index and their catalogue.

    Parameters
    ----------
    folder : Path
        Where to.
    samples : sequence of mapping of str to bytes
        For each sample the contents of its members by extension.
    members : mapping of str to mapping
        By the names of modalities what ``shards.json`` tells of them.
    columns, factors : mapping of str to sequence, sequence of mapping
        Values of the factors, and what ``shards.json`` tells of them.
    """
    beside = folder if index is None else index
    folder.mkdir(parents=True, exist_ok=True)
    beside.mkdir(parents=True, exist_ok=True)
    keys = [f"{row:06d}" for row in range(len(samples))] if keys is None else keys
    table: dict[str, list[Any]] = {"__key__": list(keys), "__shard__": []}
    if source_rows is not None:
        table["__source_row__"] = list(source_rows)
    for name in members:
        table |= {f"{name}.{field}": [] for field in ("offset", "size", "check")}
    shards = []
    for number, start in enumerate(range(0, len(samples), per_shard)):
        path = folder / f"data-{number:05d}.tar"
        rows = range(start, min(start + per_shard, len(samples)))
        write_tar(path, [(f"{keys[row]}.{end}", content) for row in rows for end, content in samples[row].items()])
        found = places(path)
        for row in rows:
            table["__shard__"].append(number)
            for name, about in members.items():
                offset, size, header = found.get(f"{keys[row]}.{about['extension']}", (-1, 0, 0))
                content = samples[row].get(about["extension"], b"")
                checksum = header if check == "header" else crc32c(content) if offset >= 0 else 0
                for field, value in (("offset", offset), ("size", size), ("check", checksum)):
                    table[f"{name}.{field}"].append(value)
        content = path.read_bytes()
        shards.append([path.name, len(rows), len(content), hashlib.sha256(content).hexdigest()])
    write_index(beside / "index.parquet", table, columns)
    content = (beside / "index.parquet").read_bytes()
    about = {
        "setsup": "1.0.0",
        "format": 1,
        "name": "handmade",
        "plan": "",
        "check": check,
        "about": {"licence": "CC0-1.0"},
        "factors": list(factors),
        "members": dict(members),
        "index": ["index.parquet", len(samples), len(content), hashlib.sha256(content).hexdigest()],
        "shards": shards,
    }
    (beside / "shards.json").write_text(json.dumps(about))
    return folder


def write_index(path: Path, table: Mapping[str, Sequence[Any]], columns: Mapping[str, Sequence[Any]]) -> None:
    """Write the index with the types that are documented."""
    kinds = {"offset": pa.int64(), "size": pa.int64(), "check": pa.uint32()}
    own = {"__key__": pa.large_string(), "__shard__": pa.uint32(), "__source_row__": pa.int64()}
    arrays = {name: pa.array(list(values)).dictionary_encode() for name, values in columns.items()}
    for name, values in table.items():
        arrays[name] = pa.array(values, own.get(name) or kinds[name.rpartition(".")[2]])
    pq.write_table(pa.table(arrays), path)


def renewed(folder: Path) -> None:
    """Bring what the catalogue tells of the index up to date, as somebody would who forges both."""
    about = json.loads((folder / "shards.json").read_text())
    content = (folder / "index.parquet").read_bytes()
    about["index"][2:] = [len(content), hashlib.sha256(content).hexdigest()]
    (folder / "shards.json").write_text(json.dumps(about))


def small_set(folder: Path, form: str = "npy", rows: int = 7, **options: Any) -> tuple[Path, np.ndarray, np.ndarray]:
    """Write a set of pictures and depths; its folder, the pictures and the depths."""
    dice = np.random.default_rng(5)
    images = dice.integers(0, 256, (rows, 6, 5, 3), np.uint8)
    depths = dice.random((rows, 6, 5), np.float32)
    kinds = {"npy": npy, "png": picture, "webp": lambda array: picture(array, "WEBP", lossless=True)}
    samples = [
        {
            form: kinds[form](image),
            "depth.npy": npy(depth),
            "json": json.dumps({"shape": "ab"[row % 2], "turn": row % 3}).encode(),
        }
        for row, (image, depth) in enumerate(zip(images, depths, strict=True))
    ]
    members = {
        "image": {"extension": form, "shape": [6, 5, 3], "dtype": "uint8", "unit": "", "color": "srgb"},
        "depth": {"extension": "depth.npy", "shape": [6, 5], "dtype": "float32", "unit": "m", "color": ""},
    }
    columns = {"shape": ["ab"[row % 2] for row in range(rows)], "turn": [row % 3 for row in range(rows)]}
    factors = [
        {"name": "shape", "kind": "nominal", "levels": ["a", "b"]},
        {"name": "turn", "kind": "ordinal", "levels": [0, 1, 2]},
    ]
    write_set(folder, samples, members, columns, factors, source_rows=range(100, 100 + rows), **options)
    return folder, images, depths
