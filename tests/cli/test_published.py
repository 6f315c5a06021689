"""The command on a file in the published layout of Shapes3D."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.cli.refusals import refused

Run = Callable[..., Any]


def write(path: Path, rows: int, written: bool) -> None:
    floor, wall, thing, scale, shape, turn = np.unravel_index(np.arange(rows), (10, 10, 10, 8, 4, 15))
    sizes, turns = np.linspace(0.75, 1.25, 8), np.linspace(-30, 30, 15)
    with h5py.File(path, "w") as file:
        images = file.create_dataset("images", (rows, 64, 64, 3), "uint8", chunks=(150, 16, 16, 3), compression="gzip")
        file["labels"] = np.stack([floor / 10, wall / 10, thing / 10, sizes[scale], shape, turns[turn]], axis=1)
        if written:
            images[:] = (np.arange(rows) % 256).astype(np.uint8)[:, None, None, None]


def test_the_published_set_and_the_procedural_one_give_the_same_draws(setsup: Run, tmp_path: Path) -> None:
    write(tmp_path / "3dshapes.h5", 480_000, written=False)  # what is not written costs no disk, and reads as black
    for words in (["--inactive", "wall_hue", "--size", "4"], ["--domain", "shape", "--size", "5", "--steps", "2"]):
        assert setsup("sample", "shapes3d", "--root", tmp_path, *words, "--out", "published", "--force").code == 0
        assert setsup("sample", *words, "--out", "procedural", "--force").code == 0
        published, procedural = (tmp_path / name / "draws.npz" for name in ("published", "procedural"))
        assert published.read_bytes() == procedural.read_bytes()


def test_preparing_prints_the_array(setsup: Run, tmp_path: Path) -> None:
    write(tmp_path / "3dshapes.h5", 310, written=True)
    found = setsup("prepare", "shapes3d", "--root", tmp_path)
    assert (found.code, found.err) == (0, "")
    array = Path(found.out.splitlines()[-1])
    assert array.parent == tmp_path
    pictures = np.load(array, mmap_mode="r")
    assert pictures.shape == (310, 64, 64, 3)
    assert (pictures[:, 5, 7, 2] == np.arange(310) % 256).all()
    assert setsup("prepare", "shapes3d", "--root", tmp_path, "--json").json["arrays"] == [str(array)]


def test_a_slow_container_says_so_once_on_standard_error(setsup: Run, tmp_path: Path) -> None:
    write(tmp_path / "3dshapes.h5", 310, written=True)
    found = setsup("sample", "shapes3d", "--root", tmp_path, "--inactive", "shape", "--size", 4)
    assert found.code == 0
    assert found.err.count("setsup prepare shapes3d") == 1


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n", b"<!doctype html><html></html>"])
def test_a_damaged_file_is_one_sentence(setsup: Run, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "3dshapes.h5").write_bytes(content)
    refused(setsup("sample", "shapes3d", "--root", tmp_path, "--inactive", "shape"), "3dshapes.h5")
    assert not (tmp_path / "setsup-samples").exists()
