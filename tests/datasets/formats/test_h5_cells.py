from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from setsup.datasets.formats.h5.cells import read_cells
from setsup.datasets.formats.h5.images import h5_open
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files.nyu import write_cells

TEXTS = ["kitchen_0004", "", "Büro #3 · 台所", "kitchen_0004", "𝄞", "a" * 256]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "cells.mat", "w", userblock_size=512) as file:
        write_cells(file, "scenes", TEXTS)
        file["numbers"] = np.arange(3)
    return tmp_path / "cells.mat"


def read(path: Path, name: str = "scenes") -> list[str]:
    with h5_open(path) as file:
        return read_cells(path, file, name)


def test_texts_in_matlabs_order(path: Path) -> None:
    assert read(path) == TEXTS
    with h5py.File(path, "r+") as file:
        refs = file["scenes"][0]
        file["grid"] = refs.reshape(2, 3)  # 3 × 2 in MATLAB, whose columns come first
        file["none"] = refs[:0].reshape(1, 0)
    assert read(path, "grid") == TEXTS
    assert read(path, "none") == []


def change(path: Path, what: str, value: Any) -> None:
    """Put something else in the place of a cell's text, or of the cells."""
    with h5py.File(path, "r+") as file:
        if what == "cells":
            del file["scenes"]
            file["scenes"] = value
        elif what == "cell":
            file["other"] = value
            refs = file["scenes"][()]
            refs[0, 2] = file["other"].ref
            file["scenes"][...] = refs


@pytest.mark.parametrize(
    ("what", "value", "sentence"),
    [
        ("cells", np.arange(4), r"'scenes' has dtype int64 and shape \(4,\); expected a cell array of strings"),
        ("cells", "text", "expected a cell array of strings"),
        ("cells", h5py.SoftLink("/numbers"), "'scenes' is a link or a group"),
        ("cells", h5py.ExternalLink("/etc/passwd", "/x"), "'scenes' is a link or a group"),
        (
            "cell",
            np.arange(4),
            r"cell 2 of 'scenes' has dtype int64 and shape \(4,\); expected a string of at most 256 characters",
        ),
        ("cell", np.zeros(257, np.uint16), r"cell 2 of 'scenes' has dtype uint16 and shape \(257,\)"),
        ("cell", np.zeros(2, np.uint64), r"cell 2 of 'scenes' has dtype uint64 and shape \(2,\)"),
        ("cell", np.array([[0xD800], [65]], np.uint16), "cell 2 of 'scenes' is not valid UTF-16 text"),
    ],
)
def test_what_is_no_cell_array_of_texts(path: Path, what: str, value: Any, sentence: str) -> None:
    change(path, what, value)
    with pytest.raises(DataError, match=sentence):
        read(path)


def test_references_to_nothing(path: Path) -> None:
    with pytest.raises(DataError, match="has no dataset 'names'"):
        read(path, "names")
    with h5py.File(path, "r+") as file:
        refs = file["scenes"][()]
        refs[0, 3] = h5py.Reference()
        file["null"] = refs
        refs[0, 3] = file["#refs#"].ref
        file["group"] = refs
        beyond = file.create_dataset("beyond", data=file["scenes"][()])
        place = beyond.id.get_offset() + 3 * 8  # cell 3
    with path.open("r+b") as content:
        content.seek(place)
        content.write((1 << 30).to_bytes(8, "little"))
    for name in ("null", "group", "beyond"):
        with pytest.raises(DataError, match=rf"cell 3 of '{name}' refers to an object that is not in the file"):
            read(path, name)
    with h5py.File(path, "r+") as file:
        file.create_dataset("many", (1, 10_000_000), h5py.ref_dtype, chunks=(1, 1000))
    with pytest.raises(DataError, match="'many' specifies 10,000,000 cells, more than"):
        read(path, "many")


def test_a_text_that_lies_in_another_file(path: Path) -> None:
    (path.parent / "secret").write_bytes(b"s\0e\0c\0")
    with h5py.File(path, "r+") as file:
        outside = file.create_dataset("outside", (3, 1), np.uint16, external=[(str(path.parent / "secret"), 0, 6)])
        refs = file["scenes"][()]
        refs[0, 0] = outside.ref
        file["scenes"][...] = refs
    with pytest.raises(DataError, match="cell 0 of 'scenes' stores its data in other files"):
        read(path)


def test_many_references_to_one_text_do_not_fill_the_memory(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["echo"] = np.repeat(file["scenes"][0, 5:], 1000)[np.newaxis]
    with pytest.raises(DataError, match="the strings of 'echo' are longer than the file"):
        read(path, "echo")


@pytest.mark.long("fuzzing")
def test_damaged_files(path: Path) -> None:
    def reread(content: bytes) -> None:
        path.write_bytes(content)
        read(path)

    assert survives(path.read_bytes(), reread, 150, head=6000) > 15
