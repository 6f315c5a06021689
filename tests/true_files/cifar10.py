"""A small CIFAR-10 in its two versions: pickles as Python 2 wrote them, and binary files."""

import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.true_files.toys import toy

HELD = "category"

EACH = 7
"""Images of a batch."""
BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def pictures(count: int, seed: int) -> npt.NDArray[np.uint8]:
    """Toys, (n, 32, 32, 3), neither symmetric nor grey."""
    return np.stack([_picture(seed + number) for number in range(count)])


@cache
def _picture(number: int) -> npt.NDArray[np.uint8]:
    ground = (120 + 13 * number % 100, 200 - 7 * number % 90, 230)
    return toy(number, 0.17 * number % 1, 50.0 * number, 20.0 + number % 30, size=(32, 32), ground=ground)


def labels(batch: int, count: int, levels: int) -> list[int]:
    """Labels of a batch, mixed."""
    return [(7 * (batch * count + number) + 3) % levels for number in range(count)]


def flat(images: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Rows as the files store them: red, green, blue, each row by row."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(len(images), -1)


def old_pickle(value: Any) -> bytes:
    """Protocol 2 as Python 2 writes it: strings are bytes, and an array's content is one."""
    memo = 0

    def put() -> bytes:
        nonlocal memo
        memo += 1
        return b"q" + bytes([memo]) if memo < 256 else b"r" + struct.pack("<I", memo)

    def text(content: bytes) -> bytes:
        head = b"U" + bytes([len(content)]) if len(content) < 256 else b"T" + struct.pack("<I", len(content))
        return head + content + put()

    def number(value: int) -> bytes:
        return b"K" + bytes([value]) if value < 256 else b"M" + struct.pack("<H", value)

    def write(value: Any) -> bytes:
        if isinstance(value, dict):
            return b"}" + put() + b"(" + b"".join(write(key) + write(each) for key, each in value.items()) + b"u"
        if isinstance(value, list):
            return b"]" + put() + b"(" + b"".join(map(write, value)) + b"e"
        if isinstance(value, np.ndarray):
            made = (
                b"cnumpy.core.multiarray\n_reconstruct\n" + put() + b"cnumpy\nndarray\n" + put() + b"K\x00\x85" + put()
            )
            made += text(b"b") + b"\x87" + put() + b"R" + put() + b"(K\x01"
            shape = b"".join(map(number, value.shape)) + bytes([0x84 + value.ndim]) + put()
            dtype = b"cnumpy\ndtype\n" + put() + text(b"u1") + b"K\x00K\x01\x87" + put() + b"R" + put()
            dtype += b"(K\x03" + text(b"|") + b"NNN" + 2 * b"J\xff\xff\xff\xff" + b"K\x00t" + put() + b"b"
            return made + shape + dtype + b"\x89" + text(value.tobytes()) + b"t" + put() + b"b"
        return number(value) if isinstance(value, int) else text(value.encode())

    return b"\x80\x02" + write(value) + b"."


def write(folder: Path, *, binary: bool = False) -> None:
    """Write ``cifar-10-batches-py`` or ``cifar-10-batches-bin``, as the archives hold them."""
    root = folder / ("cifar-10-batches-bin" if binary else "cifar-10-batches-py")
    root.mkdir(parents=True)
    for batch, name in enumerate(BATCHES):
        codes, rows = labels(batch, EACH, 10), flat(pictures(EACH, EACH * batch))
        if binary:
            (root / f"{name}.bin").write_bytes(np.column_stack([np.array(codes, np.uint8), rows]).tobytes())
            continue
        files = [f"{NAMES[code]}_s_{batch:03}{number:03}.png" for number, code in enumerate(codes)]
        told = {
            "batch_label": "testing batch 1 of 1" if batch == 5 else f"training batch {batch + 1} of 5",
            "labels": codes,
            "data": rows,
            "filenames": files,
        }
        (root / name).write_bytes(old_pickle(told))
    if binary:
        (root / "batches.meta.txt").write_text("".join(f"{name}\n" for name in NAMES) + "\n")
    else:
        meta = {"num_cases_per_batch": EACH, "label_names": list(NAMES), "num_vis": 3072}
        (root / "batches.meta").write_bytes(old_pickle(meta))
    (root / "readme.html").write_text("<meta>")
