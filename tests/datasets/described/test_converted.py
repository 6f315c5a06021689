"""Benchmarks that had adapters: their tables, rows and pixels are what those made, in a folder, a zip and a tar.

The digests were written by the adapters of 89ee21b1 over the releases of ``tests/true_files``.
"""

import hashlib
import importlib
import shutil
from pathlib import Path

import numpy as np
import pytest

import setsup

MADE = {
    "camelyon17": (60, "c983951de1ddbd09d6a8dc042d5d89ef", "1c6583e633d7ac6f", "95842a07729870ea"),
    "waterbirds": (24, "a2257955374b56c0c86b597f82fc0ab8", "490cfbd0001510ef", "ac4474014d51a1e1"),
    "cub200": (24, "b34a3991d525152576c38560bfeb9b35", "cbc18b31d5122168", "b74a9bb2a478f8bf"),
    "veri776": (19, "9a93e0ab0815b327c11ebe99d12e1c1c", "296312334af6263f", "901c053cbd4a7df6"),
    "in-shop": (40, "00f882c79a93a49c921f27dcef47e2e4", "19cd5b50cd12acb5", "aa38d9f47d350cf4"),
    "online-products": (48, "2c6fa92c21db46afb06aa86d04db5217", "293a15c3407b5bb1", "6072cf6af6265bff"),
    "fmow": (72, "f6f32b38683e583c74d2dfae5b1f3d9a", "5a60815361829a55", "64dfd7958085bbaa"),
    "iwildcam": (24, "40d8bf91151fe4ea19c71925ee9085c6", "ae9b9eb41d99c2cd", "1af528e75228dc2a"),
}
"""Rows, fingerprint of the table, and the beginnings of the digests of all pixels and of the paths."""


def first(found: bytes) -> str:
    return hashlib.sha256(found).hexdigest()[:16]


@pytest.mark.parametrize("form", ["folder", "zip", "tar"])
@pytest.mark.parametrize("name", MADE)
def test_it_is_what_the_adapter_made(name: str, form: str, tmp_path: Path) -> None:
    written = tmp_path / "written"
    written.mkdir()
    importlib.import_module(f"tests.true_files.{name.replace('-', '_')}").write(written)
    root = written
    if form != "folder":
        for archive in list(written.glob("*.zip")):
            shutil.unpack_archive(archive, written)
            archive.unlink()
        root = Path(shutil.make_archive(str(tmp_path / "packed"), form, written))
    found = setsup.load(name, root)
    rows = range(len(found))
    pixels = b"".join(np.ascontiguousarray(found.fetch(row)["image"]).tobytes() for row in rows)
    made = (len(found), found.factors.fingerprint, first(pixels), first(repr(found.paths(rows)).encode()))
    assert made == MADE[name]
