import gzip
import pickle
import struct
from functools import partial

import numpy as np
import pytest

from setsup.datasets.formats.binary_matrix import BinaryMatrix
from setsup.errors import DataError
from tests.fuzzing import survives

CODES = {"<f4": 0x1E3D4C51, "<f8": 0x1E3D4C53, "<i4": 0x1E3D4C54, "u1": 0x1E3D4C55, "<i2": 0x1E3D4C56}

_gzipped = partial(gzip.compress, mtime=0)  # every worker that collects the tests must find the same


def _content(values, magic=None, order="<"):
    lengths = [*values.shape, 1, 1][: max(3, values.ndim)]
    magic = CODES[values.dtype.str.replace("|", "")] if magic is None else magic
    return struct.pack(f"{order}{2 + len(lengths)}i", magic, values.ndim, *lengths) + values.tobytes()


def _file(tmp_path, content, name="a.mat"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("dtype", list(CODES))
@pytest.mark.parametrize("shape", [(7,), (5, 3), (2, 3, 4), (4, 2, 3, 5), (2, 1, 2, 1, 3)])
def test_all_types_and_axes(tmp_path, dtype, shape):
    values = (np.arange(np.prod(shape)) % 120).astype(dtype).reshape(shape)
    for name, content in (("a.mat", _content(values)), ("b.mat.gz", gzip.compress(_content(values)))):
        file = BinaryMatrix(_file(tmp_path, content, name))
        assert file.shape == shape
        assert file.ready is not file.packed
        found = file.array()
        assert found.dtype == np.dtype(dtype)
        assert np.array_equal(found, values)
        assert not found.flags.writeable
        assert file.array() is found
        assert np.array_equal(pickle.loads(pickle.dumps(file)).array(), values)


def test_gzip_is_told_by_content_and_may_be_several_streams(tmp_path):
    values = np.arange(100, dtype=np.uint8).reshape(10, 10)
    content = _content(values)
    assert np.array_equal(BinaryMatrix(_file(tmp_path, gzip.compress(content), "a.mat")).array(), values)
    assert np.array_equal(BinaryMatrix(_file(tmp_path, content, "a.mat.gz")).array(), values)
    parts = gzip.compress(content[:40]) + gzip.compress(content[40:])
    assert np.array_equal(BinaryMatrix(_file(tmp_path, parts)).array(), values)


@pytest.mark.parametrize("packed", [False, True])
def test_rows_block_by_block(tmp_path, packed):
    values = np.random.default_rng(0).integers(0, 255, (23, 2, 6), dtype=np.uint8)
    content = _content(values)
    file = BinaryMatrix(_file(tmp_path, gzip.compress(content) if packed else content))
    with file.rows() as fill:
        for start, stop in ((0, 5), (9, 12), (12, 23), (2, 4)):
            out = np.zeros((stop - start, 2, 6), np.uint8)
            fill(start, stop, out)
            assert np.array_equal(out, values[start:stop])


VALUES = np.arange(600, dtype=np.uint8).reshape(30, 20)
GOOD = _content(VALUES)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "ends after 0 bytes, inside the header; fetch it again"),
        (GOOD[:15], r"ends inside the header, before the lengths of all axes \(2\)"),
        (GOOD[:-1], r"620 bytes in total\), but the file has 619 bytes"),
        (GOOD + b"\0", r"620 bytes in total\), but the file has 621 bytes"),
        (_content(VALUES, order=">"), "is in big-endian byte order; expected little-endian"),
        (_content(VALUES, 0x1E3D4C52), "is a packed binary matrix"),
        (b"<html>" + GOOD, "is not a binary matrix: it begins with b'<htm'"),
        (b"MATLAB 5.0 MAT-file".ljust(200), "is not a binary matrix: it begins with b'MATL'"),
        (struct.pack("<5i", CODES["u1"], 1, -3, 1, 1), r"the header specifies the shape \(-3,\), which has no"),
        (struct.pack("<5i", CODES["u1"], 3, 1 << 30, 1 << 30, 1 << 30), "but the file has 20 bytes"),
        (struct.pack("<5i", CODES["u1"], 99, 1, 1, 1), "the number of axes in the header is 99"),
        (_gzipped(GOOD)[:-9], "truncated or damaged|file ends"),
        (_gzipped(GOOD[:-1]), "but the file ends after 619"),
        (_gzipped(GOOD + b"\0"), "but the file contains more"),
        (_gzipped(struct.pack("<5i", CODES["u1"], 3, 1 << 20, 1 << 20, 9)), "a gzip file of .. bytes cannot contain"),
        (_gzipped(struct.pack("<5i", CODES["u1"], 3, 200, 100, 1)), "but the file ends after 20"),
        (b"\x1f\x8b" + bytes(30), "damaged"),
    ],
)
def test_damage_is_told_in_one_sentence(tmp_path, content, sentence):
    path = _file(tmp_path, content, "some dat.mat")
    with pytest.raises(DataError, match=sentence) as caught:
        BinaryMatrix(path).array()
    assert str(caught.value).startswith(str(path))


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(DataError, match=r"none\.mat does not exist"):
        BinaryMatrix(tmp_path / "none.mat")
    with pytest.raises(DataError, match=str(tmp_path)):
        BinaryMatrix(tmp_path)


@pytest.mark.parametrize("packed", [False, True])
def test_fuzzing(tmp_path, packed):
    values = np.random.default_rng(0).integers(0, 9, (300, 2, 8), dtype=np.uint8)
    content = gzip.compress(_content(values)) if packed else _content(values)
    path = tmp_path / "a.mat"

    def read(data):
        path.write_bytes(data)
        file = BinaryMatrix(path)
        file.array().sum()
        with file.rows() as fill:
            fill(0, len(file), np.empty(file.shape, file.dtype))

    assert survives(content, read, 150, head=64) > 75
