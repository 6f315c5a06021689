import logging
import multiprocessing
import os
import pickle
import signal
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setsup.datasets.benchmarks.shapes3d as shapes3d
import setsup.datasets.formats.h5.chunks as h5_chunks
from setsup.datasets import Dataset
from setsup.datasets.benchmarks.shapes3d import Shapes3D
from setsup.datasets.formats.h5.chunks import ChunkReader, join_chunks
from setsup.errors import DataError, RowError, SetsupError
from setsup.factors import FactorTable
from setsup.files.prepare import prepare_array
from setsup.scenes import shapes3d as scene
from tests.kept import kept
from tests.true_files.mpi3d_toy import write_stored

FORK = multiprocessing.get_context("fork")
ROWS = 4100
PUBLISHED: dict[str, Any] = {"chunks": (2048, 4, 4, 1), "compression": "gzip", "compression_opts": 4}


def labels(rows: np.ndarray) -> np.ndarray:
    """Published labels of the rows of the full product, computed from their description."""
    floor, wall, thing, scale, shape, turn = np.unravel_index(rows, (10, 10, 10, 8, 4, 15))
    sizes, turns = np.linspace(0.75, 1.25, 8), np.linspace(-30, 30, 15)
    return np.stack([floor / 10, wall / 10, thing / 10, sizes[scale], shape, turns[turn]], axis=1)


def pictures(rows: np.ndarray) -> np.ndarray:
    """Images of few colours whose every pixel tells its row, place and channel."""
    rows = rows[:, None, None, None]
    y, x, c = np.ogrid[:64, :64, :3]
    return ((rows // 3 + (y // 5) * 37 + (x // 3) * 11 + c * 101 + (x * y + rows) % 2) % 251).astype(np.uint8)


def write(path: Path, rows: int = 40, **layout: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=pictures(np.arange(rows)), **layout)
        file["labels"] = labels(np.arange(rows))
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write(tmp_path / "3dshapes.h5")


@kept
def write_published(folder: Path) -> None:
    write(folder / "3dshapes.h5", ROWS, **PUBLISHED)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layout of the published file, with fewer rows: three rows of 768 chunks, the last one cut off."""
    folder = tmp_path_factory.mktemp("published")
    write_published(folder)
    return folder / "3dshapes.h5"


@pytest.fixture
def linked(published: Path, tmp_path: Path) -> Path:
    """The published layout in a folder of its own."""
    os.link(published, tmp_path / "3dshapes.h5")
    return tmp_path / "3dshapes.h5"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All 480,000 rows in the published layout; the images were never written and cost no disk."""
    path = tmp_path_factory.mktemp("whole") / "3dshapes.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "images", (480_000, 64, 64, 3), "uint8", chunks=(15_000, 4, 4, 1), compression="gzip", compression_opts=4
        )
        file["labels"] = labels(np.arange(480_000))
    return path


# -- the table ---------------------------------------------------------------------------------------------------------


def test_the_whole_file_is_the_grid_of_the_scene(whole: Path) -> None:
    dataset = shapes3d.open(whole.parent)
    assert isinstance(dataset, Dataset)
    assert dataset.factors.is_grid
    assert len(dataset) == 480_000
    assert dataset.factors.fingerprint == FactorTable(scene.factors()).fingerprint
    for row in (0, 1, 123_456, 479_999):
        expected = labels(np.array([row]))[0]
        found = dataset.factors.row(row)
        found["shape"] = ["cube", "cylinder", "sphere", "capsule"].index(str(found["shape"]))
        np.testing.assert_allclose(list(found.values()), expected, atol=1e-4)
    assert dataset.fetch([[5, 479_999]])["image"].shape == (1, 2, 64, 64, 3)
    assert [path.name for path in whole.parent.iterdir()] == ["3dshapes.h5"]


def test_pictures_that_were_never_written_are_black(whole: Path) -> None:
    assert not Shapes3D(whole).fetch([0, 14_999, 15_000, 479_999, 0])["image"].any()


@pytest.mark.parametrize("dtype", ["<f8", "<f4", ">f8"])
def test_other_rows_make_columns(tmp_path: Path, dtype: str) -> None:
    rows = np.random.default_rng(0).integers(0, 480_000, 500)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("images", (500, 64, 64, 3), "uint8")
        file.create_dataset("labels", data=labels(rows).astype(dtype), compression="gzip", shuffle=True)
    table = Shapes3D(tmp_path / "x.h5").factors
    assert not table.is_grid
    assert table.fingerprint == FactorTable(scene.factors()).select(rows).fingerprint


def test_all_rows_in_another_order_make_columns(tmp_path: Path) -> None:
    rows = np.arange(480_000)[::-1]
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("images", (480_000, 64, 64, 3), "uint8", chunks=(15_000, 4, 4, 1))
        file["labels"] = labels(rows)
    table = Shapes3D(tmp_path / "x.h5").factors
    assert not table.is_grid
    assert table.codes("orientation", [0, 1]).tolist() == [14, 13]


@pytest.mark.parametrize(
    ("column", "value"), [(0, 1.0), (1, 0.05), (2, np.nan), (3, 0.7), (4, 4.0), (4, -1.0), (5, 31.0), (5, np.inf)]
)
def test_a_label_that_is_no_level_is_named(small: Path, column: int, value: float) -> None:
    with h5py.File(small, "r+") as file:
        file["labels"][33, column] = value
    name = scene.factors()[column].name
    with pytest.raises(
        DataError, match=rf"3dshapes\.h5: the {name} of row 33 \(column {column} of 'labels'\) is {value:g},"
    ):
        Shapes3D(small)


# -- files that are not what they should be ----------------------------------------------------------------------------


def test_a_missing_file_gives_the_command(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"3dshapes\.h5 not found.*setsup fetch shapes3d --root"):
        shapes3d.open(tmp_path)
    with pytest.raises(DataError, match=r"3dshapes\.h5 does not exist"):
        Shapes3D(tmp_path / "3dshapes.h5")


@pytest.mark.parametrize(
    "content", [b"", b"x", b"<html>quota</html>" * 500, b"\x89HDF\r\n\x1a\n", b"\x89HDF\r\n\x1a\n" * 999]
)
def test_what_is_not_hdf5(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "3dshapes.h5"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"3dshapes\.h5 could not be read as HDF5.*fetch it again"):
        shapes3d.open(tmp_path)


@pytest.mark.parametrize("kept", [0.999, 0.9, 0.5, 0.1, 0.01])
def test_a_truncated_file(small: Path, kept: float) -> None:
    os.truncate(small, int(small.stat().st_size * kept))
    with pytest.raises(DataError, match=r"3dshapes\.h5 could not be read as HDF5.*fetch it again"):
        Shapes3D(small)


def replaced(name: str, **arguments: Any) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file[name]
        file.create_dataset(name, **arguments)

    return change


def external_link(file: h5py.File) -> None:
    del file["images"]
    file["images"] = h5py.ExternalLink("/etc/passwd", "/images")


def soft_link(file: h5py.File) -> None:
    file.move("images", "pictures")
    file["images"] = h5py.SoftLink("/images")


def virtual(file: h5py.File) -> None:
    del file["images"]
    layout = h5py.VirtualLayout((40, 64, 64, 3), "uint8")
    layout[:] = h5py.VirtualSource("/etc/passwd", "images", (40, 64, 64, 3))
    file.create_virtual_dataset("images", layout)


def group(file: h5py.File) -> None:
    del file["images"]
    file.create_group("images")


def nothing(name: str) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file[name]

    return change


PICTURES, LARGE = (40, 64, 64, 3), (40_000, 64, 64, 3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (nothing("images"), "has no dataset 'images' .available: labels"),
        (nothing("labels"), "has no dataset 'labels'"),
        (group, "'images' is a link or a group"),
        (external_link, "'images' is a link or a group"),
        (soft_link, "'images' is a link or a group"),
        (virtual, "stores its data in other files"),
        (replaced("images", shape=PICTURES, dtype="u1", external="/etc/passwd"), "stores its data in other files"),
        (replaced("images", shape=PICTURES, dtype="u2"), "'images' has dtype uint16"),
        (replaced("images", shape=PICTURES, dtype="i1"), "'images' has dtype int8"),
        (replaced("images", shape=PICTURES, dtype="?"), "'images' has dtype bool"),
        (replaced("images", shape=PICTURES, dtype=h5py.string_dtype()), "'images' has dtype object"),
        (replaced("images", shape=(40, 64, 64, 4), dtype="u1"), r"64, 4\); expected uint8 of shape \(N, 64, 64, 3\)"),
        (replaced("images", shape=(40, 12288), dtype="u1"), "expected uint8 of shape .N, 64, 64, 3."),
        (replaced("images", shape=(), dtype="u1"), "expected uint8 of shape .N, 64, 64, 3."),
        (replaced("images", data=h5py.Empty("u1")), "expected uint8 of shape .N, 64, 64, 3."),
        (replaced("images", shape=(41, 64, 64, 3), dtype="u1"), "has 41 images but 40 labels"),
        (replaced("images", shape=PICTURES, dtype="u1", scaleoffset=0), "HDF5 filter 6.*h5repack"),
        (replaced("images", shape=PICTURES, dtype="u1", maxshape=LARGE, chunks=LARGE), "h5repack -l /images:CHUNK="),
        (replaced("labels", shape=(40, 6), dtype="i8"), "'labels' has dtype int64"),
        (replaced("labels", shape=(40, 5), dtype="f8"), r"shape \(40, 5\); expected .* of shape \(N, 6\)"),
        (replaced("labels", shape=(40,), dtype="f8"), "expected floating-point numbers of shape .N, 6."),
        (replaced("labels", shape=(40, 6), dtype="f8"), "'labels' specifies 40 rows, but contains only 0 bytes"),
    ],
)  # fmt: skip
def test_another_content(small: Path, change: Callable[[h5py.File], None], words: str) -> None:
    with h5py.File(small, "r+") as file:
        change(file)
    with pytest.raises(DataError, match=rf"3dshapes\.h5.*{words}"):
        Shapes3D(small)


def test_a_length_that_the_file_cannot_hold_is_refused_before_any_allocation(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("images", (10**12, 64, 64, 3), "u1", chunks=(1000, 4, 4, 1))
        file.create_dataset("labels", (10**12, 6), "f8", chunks=(1000, 6))[:1000] = labels(np.arange(1000))
    with pytest.raises(DataError, match=r"x\.h5: 'labels' specifies 1,000,000,000,000 rows, but contains"):
        Shapes3D(tmp_path / "x.h5")


def test_a_file_without_rows(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("images", (0, 64, 64, 3), "u1")
        file.create_dataset("labels", (0, 6), "f8")
    with pytest.raises(DataError, match=r"x\.h5 has no rows"):
        Shapes3D(tmp_path / "x.h5")


def stored(raw: bytes, mask: int = 0) -> Callable[[h5py.File], None]:
    return lambda file: file["images"].id.write_direct_chunk((16, 8, 12, 1), raw, mask)


CHUNK = 16 * 16


@pytest.mark.parametrize(
    "change",
    [
        stored(b"no deflate"),
        stored(b"x"),
        stored(zlib.compress(bytes(CHUNK))[:-1]),
        stored(zlib.compress(bytes(CHUNK - 1))),
        stored(zlib.compress(bytes(CHUNK + 1))),
        stored(zlib.compress(bytes(10_000_000))),
        stored(zlib.compress(bytes(200_000_000), 1)),
        stored(bytes(CHUNK - 1), mask=1),
        stored(bytes(CHUNK + 1), mask=1),
    ],
    ids=["noise", "one byte", "cut off", "too short", "too long", "bomb", "larger bomb", "plain short", "plain long"],
)
def test_a_damaged_chunk_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[h5py.File], None]
) -> None:
    monkeypatch.setattr(h5_chunks, "_LEAST_CHUNK", 1)
    path = write(tmp_path / "3dshapes.h5", **LAYOUTS["published"])
    with h5py.File(path, "r+") as file:
        change(file)
    dataset = Shapes3D(path)
    np.testing.assert_array_equal(dataset.fetch([7])["image"], pictures(np.array([7])))
    where = r"3dshapes\.h5 is damaged: the chunk of 'images' at \(16, 8, 12, 1\) cannot be read"
    with pytest.raises(DataError, match=where):
        dataset.fetch([7, 17])
    with pytest.raises(DataError, match=where):
        dataset.prepare()
    assert [found.name for found in tmp_path.iterdir()] == ["3dshapes.h5"]


def test_a_chunk_that_was_left_unpacked_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(h5_chunks, "_LEAST_CHUNK", 1)
    path = write(tmp_path / "3dshapes.h5", **LAYOUTS["published"])
    expected = pictures(np.arange(16, 28))
    expected[:, 8:12, 12:16, 1] = 77
    with h5py.File(path, "r+") as file:
        stored(b"\x4d" * CHUNK, mask=1)(file)
        np.testing.assert_array_equal(file["images"][16:28], expected)
    np.testing.assert_array_equal(Shapes3D(path).fetch(np.arange(16, 28))["image"], expected)


# -- pictures ----------------------------------------------------------------------------------------------------------


LAYOUTS: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "published": {"chunks": (16, 4, 4, 1), "compression": "gzip"},
    "plain chunks": {"chunks": (16, 8, 16, 3)},
    "shuffled": {"chunks": (7, 16, 64, 1), "compression": "gzip", "shuffle": True},
    "one row": {"chunks": (1, 64, 64, 3), "compression": "gzip"},
    "lzf": {"chunks": (3, 64, 64, 3), "compression": "lzf"},
    "checksums": {"chunks": (16, 4, 4, 1), "compression": "gzip", "fletcher32": True},
    "odd": {"chunks": (9, 5, 7, 2), "compression": "gzip"},
    "all rows": {"chunks": (40, 2, 4, 1), "compression": "gzip"},
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("least", [1, 1 << 30])
def test_any_layout_is_read_and_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, least: int
) -> None:
    monkeypatch.setattr(h5_chunks, "_LEAST_CHUNK", least)
    monkeypatch.setattr("setsup.datasets.formats.h5.images._BLOCK", 20 * 12288)
    path = write(tmp_path / "3dshapes.h5", **LAYOUTS[name])
    rows = np.array([[3, 39, 0], [3, 16, 17]])
    dataset = Shapes3D(path)
    expected = pictures(rows.reshape(-1)).reshape(2, 3, 64, 64, 3)
    np.testing.assert_array_equal(dataset.fetch(rows)["image"], expected)
    made = dataset.prepare()
    assert len(made) == (name != "contiguous")
    for path_made in made:
        np.testing.assert_array_equal(np.load(path_made), pictures(np.arange(40)))
    np.testing.assert_array_equal(Shapes3D(path).fetch(rows)["image"], expected)


@pytest.mark.long("large or genuine files")
def test_the_published_layout_is_read_and_converted(linked: Path) -> None:
    rows = np.random.default_rng(0).integers(0, ROWS, (2, 32))
    expected = pictures(rows.reshape(-1)).reshape(2, 32, 64, 64, 3)
    dataset = Shapes3D(linked)
    with h5py.File(linked) as file:
        assert ChunkReader.handles(file["images"])
    np.testing.assert_array_equal(dataset.fetch(rows)["image"], expected)
    (path,) = shapes3d.prepare(linked.parent)
    assert path == linked.with_name("3dshapes.images.npy")
    np.testing.assert_array_equal(np.load(path), pictures(np.arange(ROWS)))
    np.testing.assert_array_equal(Shapes3D(linked).fetch(rows)["image"], expected)
    assert sorted(found.name for found in linked.parent.iterdir()) == [
        *("3dshapes.h5", "3dshapes.images.npy", "3dshapes.images.npy.json")
    ]


@given(data=st.data())
@settings(max_examples=50)
def test_chunks_are_joined(data: st.DataObject) -> None:
    across, layers, count, tall, wide, deep = (data.draw(st.integers(1, most)) for most in (9, 3, 40, 5, 9, 4))
    chunks = np.random.default_rng(0).integers(0, 256, (across, layers, count, tall, wide, deep), dtype=np.uint8)
    out = np.empty((count, tall, across * wide, layers * deep), np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h5_chunks, "_TILE", data.draw(st.integers(1, 20_000)))
        join_chunks(chunks, out)
    for i in range(across):
        for j in range(layers):
            box = out[:, :, i * wide : (i + 1) * wide, j * deep : (j + 1) * deep]
            np.testing.assert_array_equal(box, chunks[i, j])


def test_holes_between_chunks_have_the_fill_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(h5_chunks, "_LEAST_CHUNK", 1)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        images = file.create_dataset("images", PICTURES, "u1", chunks=(16, 4, 4, 1), compression="gzip", fillvalue=9)
        images[17, 6, 10, 2] = 200
        file["labels"] = labels(np.arange(40))
        expected = images[:]
    assert set(np.unique(expected)) == {9, 200}
    np.testing.assert_array_equal(Shapes3D(tmp_path / "x.h5").fetch(np.arange(40))["image"], expected)


def test_a_block_before_the_hdf5_part_shifts_nothing(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=1024) as file:
        file["images"], file["labels"] = pictures(np.arange(9)), labels(np.arange(9))
    np.testing.assert_array_equal(Shapes3D(tmp_path / "x.h5").fetch([8])["image"], pictures(np.array([8])))


def test_rows_and_modalities_are_checked(small: Path) -> None:
    dataset = Shapes3D(small)
    assert dataset.fetch(np.empty((0, 3), np.int64))["image"].shape == (0, 3, 64, 64, 3)
    assert dataset.fetch(5)["image"].shape == (64, 64, 3)
    for row in (40, -1):
        with pytest.raises(RowError, match=f"row {row} is out of range"):
            dataset.fetch([0, row])
    with pytest.raises(DataError, match="did you mean 'image'"):
        dataset.fetch([0], ["images"])


@pytest.mark.long("large or genuine files")
def test_pictures_are_the_callers_own(linked: Path) -> None:
    dataset = Shapes3D(linked)
    dataset.prepare()
    found = dataset.fetch([3])["image"]
    found[:] = 0
    np.testing.assert_array_equal(dataset.fetch([3])["image"], pictures(np.array([3])))


# -- slow or prepared --------------------------------------------------------------------------------------------------


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, "setsup"):
        yield caplog


@pytest.mark.long("large or genuine files")
def test_slow_reading_is_said_once_with_the_command(linked: Path, log: pytest.LogCaptureFixture) -> None:
    dataset = shapes3d.open(linked.parent)
    assert not log.records
    dataset.fetch([0])
    dataset.fetch([1])
    assert len(log.records) == 1
    assert f"run `setsup prepare shapes3d --root {linked.parent}` once to convert it" in log.text
    log.clear()
    Shapes3D(linked).fetch([0])
    assert "run `setsup prepare shapes3d` once to convert it" in log.text


def test_nothing_is_said_of_what_is_fast(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    Shapes3D(write(tmp_path / "contiguous.h5")).fetch([0])
    chunked = write(tmp_path / "3dshapes.h5", **LAYOUTS["published"])
    Shapes3D(chunked).prepare()
    Shapes3D(chunked).fetch([0])
    assert not log.records


def test_a_prepared_array_of_another_file_is_not_used(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "3dshapes.h5", **LAYOUTS["published"])
    (prepared,) = Shapes3D(path).prepare()
    with h5py.File(path, "r+") as file:
        file["images"][7] = 5
    dataset = Shapes3D(path)
    assert (dataset.fetch([7])["image"] == 5).all()
    assert f"{prepared} was created from another version of the file" in log.text
    log.clear()
    assert dataset.prepare() == [prepared]
    assert "converting it again" in log.text
    assert (Shapes3D(path).fetch([7])["image"] == 5).all()


def test_a_wrong_conversion_is_noticed(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup.datasets.formats.h5.chunks.join_chunks", lambda chunks, out: out.fill(0))
    with pytest.raises(DataError, match=r"3dshapes\.h5 differ after the conversion"):
        Shapes3D(linked).prepare()
    assert [path.name for path in linked.parent.iterdir()] == ["3dshapes.h5"]


def test_a_file_that_was_replaced_is_named(small: Path) -> None:
    dataset = Shapes3D(small)
    small.unlink()
    write(small, 50)
    with pytest.raises(DataError, match=r"3dshapes\.h5 has been replaced since it was opened"):
        dataset.fetch([0])


def prepare_and_die(path: Path, at: int) -> None:
    """Run in a child process: convert in blocks of 100 rows and die before one of them."""
    dataset = Shapes3D(path)
    images = dataset._open_container()
    with images.rows() as read:

        def fill(start: int, stop: int, out: np.ndarray) -> None:
            if start == at * images.block_rows:
                os.kill(os.getpid(), signal.SIGKILL)
            read(start, stop, out)

        prepare_array(dataset._prepared, images.block_rows, fill)


@pytest.mark.long("kills and interruptions")
def test_a_killed_conversion_goes_on(tmp_path: Path, linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Shapes3D(linked)
    (made,) = dataset.prepare()
    whole = made.read_bytes()
    made.unlink()
    monkeypatch.setattr("setsup.datasets.formats.h5.images._BLOCK", 2048 * 12288)
    child = FORK.Process(target=prepare_and_die, args=(linked, 2))  # forked, for the smaller blocks
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert linked.with_name("3dshapes.images.npy.journal").exists()
    assert dataset.prepare()[0].read_bytes() == whole
    assert len(list(tmp_path.iterdir())) == 3


# -- processes and threads ---------------------------------------------------------------------------------------------


@pytest.mark.long("worker processes")
def test_threads_fetch_at_once(linked: Path) -> None:
    dataset = Shapes3D(linked)
    expected = pictures(np.arange(0, 4000, 500))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda k: dataset.fetch([k * 500])["image"][0] == expected[k], range(8)):
            assert found.all()


# -- hostile files -----------------------------------------------------------------------------------------------------


@pytest.mark.long("fuzzing")
def test_damaged_bytes_end_in_one_sentence_or_the_right_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(h5_chunks, "_LEAST_CHUNK", 1)
    path = tmp_path / "3dshapes.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=pictures(np.arange(40)) * 0, chunks=(40, 32, 32, 3), compression="gzip")
        file.create_dataset("labels", data=labels(np.arange(40)), compression="gzip")
    sound = path.read_bytes()
    random = np.random.default_rng(0)
    right = Shapes3D(path).factors.fingerprint
    refusals = []
    for _ in range(250):
        damaged = bytearray(sound)
        for place in random.integers(0, len(sound), random.integers(1, 4)):
            damaged[place] = random.choice([0, 0xFF, damaged[place] ^ 1 << random.integers(0, 8)])
        path.write_bytes(damaged)
        try:
            dataset = Shapes3D(path)
            found = dataset.fetch([0, 39])["image"]
        except SetsupError as error:
            refusals.append(str(error))
        else:
            assert dataset.factors.fingerprint == right
            assert found.shape == (2, 64, 64, 3)
    assert len(refusals) > 30
    assert all(str(path) in refusal for refusal in refusals)


# -- the npz of disentanglement_lib ------------------------------------------------------------------------------------

NPZ = "look-at-object-room_floor-hueXwall-hueXobj-hueXobj-sizeXobj-shapeXview-azi.npz"
AXES = (2, 1, 2, 8, 4, 3)
"""Lengths of the npz's axes here; the first levels of each factor."""


def npz(folder: Path, write: Callable[..., None] = np.savez_compressed, **changed: Any) -> tuple[Path, np.ndarray]:
    """Write an npz of a part of the grid; gives it, and the rows of the grid."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = np.ravel_multi_index(np.indices(AXES).reshape(6, -1), (10, 10, 10, 8, 4, 15))
    arrays = {"images": pictures(rows).reshape(*AXES, 64, 64, 3), "labels": labels(rows).reshape(*AXES, 6)}
    write(folder / NPZ, **{**arrays, **changed})
    return folder / NPZ, rows


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_the_npz_of_disentanglement_lib(tmp_path: Path, write: Callable[..., None]) -> None:
    _, rows = npz(tmp_path / "3dshapes", write)
    dataset = shapes3d.open(tmp_path)
    grid = FactorTable(scene.factors())
    for name in grid.names:
        assert np.array_equal(dataset.factors.codes(name), grid.codes(name, rows)), name
    if write is np.savez:
        assert dataset.prepare() == []
    else:
        with pytest.raises(DataError, match=f"run `setsup prepare shapes3d --root {tmp_path}` once"):
            dataset.fetch([0])
        assert dataset.prepare() == shapes3d.prepare(tmp_path)
    chosen = [len(rows) - 1, 0, 17, 17]
    assert np.array_equal(dataset.fetch(chosen)["image"], pictures(rows[chosen]))
    assert np.array_equal(pickle.loads(pickle.dumps(dataset)).fetch(5)["image"], pictures(rows[[5]])[0])


def test_an_npz_of_the_published_lengths_is_a_grid(tmp_path: Path) -> None:
    # as disentanglement_lib, by the axes alone; the pictures are holes of the file and cost no disk
    write_stored(tmp_path / NPZ, (10, 10, 10, 8, 4, 15), {471_234: pictures(np.array([471_234]))[0]}, axes=True)
    dataset = shapes3d.open(tmp_path)
    assert dataset.factors.fingerprint == FactorTable(scene.factors()).fingerprint
    assert np.array_equal(dataset.fetch(471_234)["image"], pictures(np.array([471_234]))[0])


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"images": np.zeros((4, 64, 64, 3), np.uint8)},
            "'images' has dtype uint8 .*; expected uint8 .* six factor axes",
        ),
        ({"images": np.zeros((*AXES, 64, 64, 3), np.float32)}, "'images' has dtype float32"),
        ({"labels": np.zeros((*AXES, 5))}, "'labels' has dtype float64 and 384 rows"),
        ({"labels": np.zeros(AXES, object)}, "pickled Python objects"),
        ({"labels": np.full((*AXES, 6), 0.5)}, "the scale of row 0 .* is not one of its levels"),
    ],
)
def test_an_npz_that_is_another(tmp_path: Path, changed: dict[str, Any], sentence: str) -> None:
    npz(tmp_path, **changed)
    with pytest.raises(DataError, match=sentence) as found:
        shapes3d.open(tmp_path)
    assert "\n" not in str(found.value)
