import gzip
import pickle
import struct
import threading
import tracemalloc
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.datasets.formats.idx import IdxFile
from setsup.errors import DataError, SetsupError
from tests.traced import traced

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}

# from Python 3.12 on: libraries that were imported hold threads, which a forked process does not have
FORKS = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def idx_bytes(array):
    """The format as its description gives it, written here a second time, element by element."""
    array = np.asarray(array)
    code = array.dtype.str[1:]
    header = bytes([0, 0, CODES[code], array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    letter = {"u1": "B", "i1": "b", "i2": "h", "i4": "i", "f4": "f", "f8": "d"}[code]
    return header + b"".join(struct.pack(">" + letter, element) for element in array.reshape(-1).tolist())


@pytest.mark.parametrize("dtype", list(CODES))
@pytest.mark.parametrize("name", ["a.idx", "a.gz"])
def test_all_dtypes_and_numbers_of_axes(tmp_path, dtype, name):
    for shape in [(5,), (2, 3), (2, 3, 4), (1, 1, 2, 3)]:
        array = (np.arange(np.prod(shape)) * 7 - (0 if dtype == "u1" else 20)).reshape(shape).astype(dtype)
        content = idx_bytes(array)
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        file = IdxFile(tmp_path / name)
        assert file.shape == shape
        assert len(file) == shape[0]
        assert np.array_equal(file.array(), array)
        with pytest.raises(ValueError, match="read-only"):
            file.array()[...] = 0


def test_gzip_in_several_streams(tmp_path):
    content = idx_bytes(np.arange(100, dtype="u1"))
    (tmp_path / "a.gz").write_bytes(gzip.compress(content[:30]) + gzip.compress(content[30:]))
    assert IdxFile(tmp_path / "a.gz").array().tolist() == list(range(100))


IMAGES = idx_bytes(np.arange(24, dtype="u1").reshape(2, 3, 4))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "ends after 0 bytes"),
        (b"\0\0\x08", "ends after 3 bytes"),
        (IMAGES[:10], "ends inside the IDX header"),
        (IMAGES[:-1], "but the file has 39 bytes"),
        (IMAGES + b"\0", "but the file has 41 bytes"),
        (b"\1" + IMAGES[1:], "is not an IDX file"),
        (IMAGES[:2] + b"\x0a" + IMAGES[3:], "is not an IDX file"),
        (IMAGES[:3] + b"\0" + IMAGES[4:], "is not an IDX file"),
        (IMAGES[:3] + b"\xff" + IMAGES[4:], "is not an IDX file"),
        (IMAGES[:4] + b"\xff" * 12 + IMAGES[16:], "but the file has 40 bytes"),
        (IMAGES[:4] + b"\0" * 4 + IMAGES[8:16], "contains no data"),
        (b"<!DOCTYPE html><html></html>", "is not an IDX file"),
    ],
)
def test_damaged_content(tmp_path, content, sentence):
    plain = tmp_path / "plain-ubyte"
    plain.write_bytes(content)
    with pytest.raises(DataError, match=sentence) as caught:
        IdxFile(plain)
    assert str(plain) in str(caught.value)
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=r"packed\.gz"):
        IdxFile(packed).array()


def test_names_and_content_must_agree(tmp_path):
    (tmp_path / "a.gz").write_bytes(IMAGES)
    with pytest.raises(DataError, match=r"a\.gz is not a gzip file.*remove \.gz"):
        IdxFile(tmp_path / "a.gz")
    (tmp_path / "b.gz").write_bytes(b"<html>quota exceeded</html>")
    with pytest.raises(DataError, match=r"b\.gz is not a gzip file.*fetch it again"):
        IdxFile(tmp_path / "b.gz")
    (tmp_path / "a").write_bytes(gzip.compress(IMAGES))
    with pytest.raises(DataError, match=r"is a gzip file, although.*unpack it"):
        IdxFile(tmp_path / "a")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.gz cannot be read: No such file"):
        IdxFile(tmp_path / "nothing.gz")
    with pytest.raises(DataError, match="is not a file"):
        IdxFile(tmp_path)


@pytest.mark.parametrize("cut", [1, 4, 8, 12, 100, 500])
def test_truncated_gzip(tmp_path, cut):
    noise = np.random.default_rng(0).integers(0, 256, (10, 10, 10)).astype("u1")
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx_bytes(noise))[:-cut])
    with pytest.raises(DataError, match=r"a\.gz is truncated or damaged"):
        IdxFile(tmp_path / "a.gz").array()


def test_flipped_bits_in_gzip_are_noticed_by_the_checksum(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (10, 10, 10)).astype("u1")
    content = bytearray(gzip.compress(idx_bytes(noise)))
    content[len(content) // 2] ^= 1
    (tmp_path / "a.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.gz"):
        IdxFile(tmp_path / "a.gz").array()


@pytest.mark.long("large or genuine files")
def test_bombs_are_not_unpacked(tmp_path):
    bomb = gzip.compress(IMAGES + bytes(100_000_000))
    (tmp_path / "a.gz").write_bytes(bomb)
    # the size that a gzip file states can lie too
    (tmp_path / "b.gz").write_bytes(bomb[:-4] + len(IMAGES).to_bytes(4, "little"))
    header = bytes([0, 0, 8, 3]) + b"\xff" * 12
    (tmp_path / "c.gz").write_bytes(gzip.compress(header + bytes(1000)))
    with traced():
        for name, sentence in [
            ("a", "the file contains more"),
            ("b", "the file contains more"),
            ("c", "cannot contain that much data"),
        ]:
            with pytest.raises(DataError, match=rf"{name}\.gz.*{sentence}"):
                IdxFile(tmp_path / f"{name}.gz").array()
        peak = tracemalloc.get_traced_memory()[1]
    assert peak < 10_000_000


def test_plain_files_are_mapped_not_read(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(bytes([0, 0, 8, 2]) + (1 << 20).to_bytes(4, "big") + (1 << 10).to_bytes(4, "big"))
        file.truncate(12 + (1 << 30))
    with traced():
        assert IdxFile(path).array()[-1].sum() == 0
        peak = tracemalloc.get_traced_memory()[1]
    assert peak < 1_000_000


def test_a_file_that_shrank_since_it_was_opened(tmp_path):
    (tmp_path / "a").write_bytes(IMAGES)
    file = IdxFile(tmp_path / "a")
    (tmp_path / "a").write_bytes(IMAGES[:-1])
    with pytest.raises(DataError, match="cannot be mapped"):
        file.array()


def _total(file):
    return int(file.array().astype(int).sum())


@pytest.mark.long("worker processes")
@FORKS
@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_pickle_threads_fork_and_spawn(tmp_path, name):
    array = np.full((100, 1000), 3, "u1")
    content = idx_bytes(array)
    (tmp_path / name).write_bytes(gzip.compress(content) if name == "a.gz" else content)
    file = IdxFile(tmp_path / name)
    found = []
    threads = [threading.Thread(target=lambda: found.append(file.array())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(other is found[0] for other in found), "read once, however many threads ask"
    assert len(pickle.dumps(file)) < 2000
    for method in ("fork", "spawn"):
        with get_context(method).Pool(1) as pool:
            assert pool.apply(_total, (file,)) == 300_000


@FORKS
def test_a_lock_held_at_the_fork_does_not_block_the_child(tmp_path):
    (tmp_path / "a").write_bytes(IMAGES)
    file = IdxFile(tmp_path / "a")
    inside, leave = threading.Event(), threading.Event()
    mapped = file._mapped

    def slow():
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            leave.wait(20)
        return mapped()

    file._mapped = slow
    thread = threading.Thread(target=file.array)
    thread.start()
    inside.wait(20)
    child = get_context("fork").Process(target=_total, args=(file,))
    child.start()
    child.join(20)
    leave.set()
    thread.join()
    assert child.exitcode == 0


@st.composite
def mutated(draw, content):
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        what = draw(st.sampled_from(["flip", "cut", "insert", "zero"]))
        if what == "cut":
            del content[at:]
        elif what == "insert":
            content[at:at] = draw(st.binary(min_size=1, max_size=9))
        elif content:
            content[at] = 0 if what == "zero" else content[at] ^ (1 << draw(st.integers(0, 7)))
    return bytes(content)


def _read(path):
    """Array of a file, or None where setsup refuses it with its name; another error fails the test."""
    try:
        return IdxFile(path).array()
    except SetsupError as error:
        if str(path) not in str(error):
            raise
        return None


@pytest.mark.long("fuzzing")
@settings(max_examples=300)
@given(content=mutated(IMAGES))
def test_mutated_plain_files(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "mutated-idx"
    path.write_bytes(content)
    array = _read(path)
    if array is not None:
        # what opens is what the bytes say
        assert idx_bytes(array.astype(array.dtype.newbyteorder("="))) == content


@pytest.mark.long("fuzzing")
@settings(max_examples=300)
@given(content=mutated(gzip.compress(IMAGES, mtime=0)))
def test_mutated_gzip_files(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "mutated-idx.gz"
    path.write_bytes(content)
    array = _read(path)
    if array is not None:
        # the checksum allows changes of the gzip header only
        assert np.array_equal(array, np.arange(24, dtype="u1").reshape(2, 3, 4))


@pytest.mark.long("fuzzing")
@settings(max_examples=200)
@given(content=mutated(IMAGES))
def test_mutated_content_packed_anew(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "repacked-idx.gz"
    path.write_bytes(gzip.compress(content))
    array = _read(path)
    if array is not None:
        assert idx_bytes(array.astype(array.dtype.newbyteorder("="))) == content
