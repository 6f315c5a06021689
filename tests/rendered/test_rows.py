"""Writing rows of a folder that other machines write to as well."""

import fcntl
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.rendered.create import settle_layout
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.layout import PROGRESS, read_layout
from setsup.rendered.rows import RowFiles
from setsup.rendered.writing import _finish
from tests.rendered_scenes import Crayon, Dots, expected

ROWS = 3 * 2 * 24


def begun(folder: Path) -> RenderedDataset:
    """A folder without a row."""
    dataset = RenderedDataset(Dots(), renderer=Crayon())
    settle_layout(folder, dataset, tuple(dataset.modalities))
    return dataset


def keep(files: RowFiles, dataset: RenderedDataset, rows: list[int]) -> None:
    names = tuple(dataset.modalities)
    dataset.render(
        rows,
        lambda row, scene, camera, frame: files.keep(
            row, dataset.outputs(row, scene, camera, frame, names), camera, scene
        ),
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long("renderings")
@settings(max_examples=6)  # each piece waits for the disk
@given(st.permutations(range(0, ROWS, 12)), st.lists(st.integers(1, 11), max_size=3))
def test_machines_write_what_one_would(tmp_path_factory: pytest.TempPathFactory, order: Any, cuts: list[int]) -> None:
    """Blocks of rows in any order, by machines that take turns."""
    folder = tmp_path_factory.mktemp("rows")
    dataset = begun(folder / "shared")
    machines = [RowFiles(folder / "shared", read_layout(folder / "shared"), shared=True) for _ in range(2)]
    for turn, starts in enumerate(np.split(np.array(order), sorted(cuts))):
        files, part = machines[turn % 2], (starts[:, None] + np.arange(12)).ravel()
        keep(files, dataset, part.tolist())
        files.flush()
        assert files.done(part, files.layout.full).all()
        assert set(np.flatnonzero(list((folder / "shared" / PROGRESS).read_bytes()))) >= set(part.tolist())
    for files in machines:
        files.close()
    _finish(folder / "shared", machines[0].layout, lambda *_: None)  # not described
    for name in dataset.modalities:
        array = np.load(folder / "shared" / f"{name}.npy")
        for row in range(ROWS):
            np.testing.assert_array_equal(array[row], expected(row)[name])


def test_no_byte_of_another_row_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In few pieces, for each waits until the disk has it; and so that an NFS client sends no more than they are."""
    dataset = begun(tmp_path / "out")
    files = RowFiles(tmp_path / "out", read_layout(tmp_path / "out"), shared=True)
    wrote: list[tuple[str, int, int]] = []
    original = os.pwrite

    def pwrite(file: int, content: Any, offset: int) -> int:
        assert fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DSYNC
        wrote.append((Path(os.readlink(f"/proc/self/fd/{file}")).stem, offset, len(content)))
        return original(file, content, offset)

    if not Path("/proc/self/fd").exists():
        pytest.skip("/proc tells names of open files on Linux only")
    monkeypatch.setattr(os, "pwrite", pwrite)
    keep(files, dataset, [7, 5, 6, 40])
    files.flush()
    files.flush()
    files.close()
    sizes = {name: (4096, array.row_bytes) for name, array in files.layout.arrays.items()}
    sizes["rendered"] = (0, 1)  # the progress
    wanted = [
        (name, at + first * size, rows * size)
        for name, (at, size) in sizes.items()
        for first, rows in ((5, 3), (40, 1))
    ]
    assert sorted(wrote) == sorted(wanted)
