"""Benchmarks that had adapters: their tables, rows and pixels are what those made, in a folder, a zip and a tar.

The digests were written by the adapters of 89ee21b1 over the releases of ``tests/true_files``; those of folders of
domains and categories by the adapters of 4cf1aac9. The table of VeRi-776 contains colors and types since.
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
    "veri776": (19, "8410484fa4180a1702f47ebcb383eaab", "296312334af6263f", "901c053cbd4a7df6"),
    "in-shop": (40, "00f882c79a93a49c921f27dcef47e2e4", "19cd5b50cd12acb5", "aa38d9f47d350cf4"),
    "online-products": (48, "2c6fa92c21db46afb06aa86d04db5217", "293a15c3407b5bb1", "6072cf6af6265bff"),
    "fmow": (72, "f6f32b38683e583c74d2dfae5b1f3d9a", "5a60815361829a55", "64dfd7958085bbaa"),
    "iwildcam": (24, "40d8bf91151fe4ea19c71925ee9085c6", "ae9b9eb41d99c2cd", "1af528e75228dc2a"),
    "vlcs": (80, "dc67a6a19eeec16a37d8636fd3d9015b", "7d342cbbfbfbfcae", "5312a367d9b5e460"),
    "office-home": (64, "3b98de7e9e9f1ca5444f46e32c3390f1", "097a50dbd3266e4e", "a61f251137ce5fbd"),
    "pacs": (72, "60f77d28b3691563dd6468620f3ac90d", "6994e7f332dc2bfe", "b4174cd3b883c690"),
    "domainnet": (72, "677e479e3cb276a93816aaebd526f2e4", "4ef95a8147627535", "a76d21df627d042e"),
    "nicopp": (90, "08aa7c0a0c3f43c9e766cba35884baa9", "a29e88ecdec14e5d", "97809cd5685f61df"),
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
