import io
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from setsup.datasets.formats.npz import NpzArray
from setsup.errors import DataError
from tests.fuzzing import survives


def _npy(array, header=None, version=(1, 0)):
    """Content of an ``.npy``, with another header where one is given."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    if header is None:
        return file.getvalue()
    head = header.encode("latin-1") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + array.tobytes()


def _zipped(path, files, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return path


def _whole(array):
    out = np.empty(array.shape, array.dtype)
    with array.rows() as fill:
        fill(0, len(array), out)
    return out


@pytest.mark.long("large or genuine files")
@given(
    array=hnp.arrays(
        st.sampled_from(["u1", "<i2", ">i8", "<f8", "?"]), hnp.array_shapes(max_dims=4, max_side=9), elements=st.just(1)
    ),
    packed=st.booleans(),
    data=st.data(),
)
def test_what_numpy_wrote(tmp_path_factory, array, packed, data):
    array = (array * np.arange(array.size).reshape(array.shape) % 100).astype(array.dtype)
    path = tmp_path_factory.mktemp("npz") / "some.npz"
    (np.savez_compressed if packed else np.savez)(path, some=array, other=np.arange(3))
    found = NpzArray(path, "some")
    assert (found.shape, found.dtype, found.packed, len(found)) == (array.shape, array.dtype, packed, len(array))
    expected = np.load(path)["some"]
    assert np.array_equal(_whole(found), expected)
    if not packed:
        assert np.array_equal(found.map(), expected)
        assert not found.map().flags.writeable
    start = data.draw(st.integers(0, len(array) - 1))
    stop = data.draw(st.integers(start, len(array)))
    with found.rows() as fill:
        for _ in range(2):  # the second time it goes back
            out = np.zeros((stop - start, *array.shape[1:]), array.dtype)
            fill(start, stop, out)
            assert np.array_equal(out, expected[start:stop])


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("packed", [False, True])
def test_blocks_of_an_array_of_many_pieces(tmp_path, packed):
    rows = np.random.default_rng(0).integers(0, 9, (700, 70, 70), dtype=np.uint8)
    (np.savez_compressed if packed else np.savez)(tmp_path / "x.npz", images=rows)
    found = NpzArray(tmp_path / "x.npz", "images")
    out = np.empty((100, 70, 70), np.uint8)
    with found.rows() as fill:
        for start in (0, 100, 400, 600, 300):
            fill(start, start + 100, out)
            assert np.array_equal(out, rows[start : start + 100])


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '|u1', 'fortran_order': False, 'shape': (6L, 2L), }",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (6, 2), }          ",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (6, 2)}",
    ],
    ids=["Python 2", "padded", "without a comma"],
)
def test_headers_of_other_writers(tmp_path, header):
    array = np.arange(12, dtype=np.uint8).reshape(6, 2)
    found = NpzArray(_zipped(tmp_path / "x.npz", {"a.npy": _npy(array, header)}), "a")
    assert np.array_equal(_whole(found), array)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(tmp_path, version):
    array = np.arange(12.0).reshape(6, 2)
    assert np.array_equal(
        _whole(NpzArray(_zipped(tmp_path / "x.npz", {"a.npy": _npy(array, version=version)}), "a")), array
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (_npy(np.arange(4)) + b"\0", "but the array has 161"),
        (_npy(np.arange(4))[:-1], "but the array has 159"),
        (b"GIF89a" * 9, r"not a \.npy file"),
        (b"", r"not a \.npy file"),
        (_npy(np.arange(4))[:40], "damaged header"),
        (b"\x93NUMPY\x09\x00" + bytes(90), r"not a \.npy file"),
        (_npy(np.asfortranarray(np.ones((2, 3)))), "Fortran order"),
        (_npy(np.zeros(2, "U3")), "expected an array of numbers"),
        (_npy(np.zeros(2, [("a", "u1")])), "expected an array of numbers"),
        (_npy(np.zeros(2, "M8[s]")), "expected an array of numbers"),
        (_npy(np.zeros(4, "u1"), "{'descr': '|O', 'fortran_order': False, 'shape': (4,), }"), "pickled Python objects"),
        (_npy(np.zeros(4, "u1"), "{'descr': '|u1', 'fortran_order': False, 'shape': (9**9,), }"), "damaged header"),
        (_npy(np.zeros(4, "u1"), "{'descr': '|u1', 'fortran_order': False, 'shape': (-4,), }"), "damaged header"),
        (_npy(np.zeros(4, "u1"), "{'descr': '|u1', 'fortran_order': False, 'shape': (2 2,), }"), "damaged header"),
        (
            _npy(np.zeros(1, "u1"), f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({'1,' * 99}), }}"),
            "damaged header",
        ),
        (_npy(np.zeros(4, "u1"), "{'descr': 'nonsense', 'fortran_order': False, 'shape': (4,), }"), "'nonsense'"),
        (
            _npy(np.zeros(4, "u1"), f"{{'descr': '|u1', 'fortran_order': False, 'shape': (1{'0' * 15},), }}"),
            "but the array has",
        ),
    ],
)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_what_is_no_array_of_numbers(tmp_path, content, words, method):
    path = _zipped(tmp_path / "x.npz", {"a.npy": content}, method)
    with pytest.raises(DataError, match=rf"x\.npz: a\.npy:? .*{words}"):
        NpzArray(path, "a")


_KINDS = [
    "01i4,f4",
    "=,",
    "a5",
    "i3",
    "f3",
    "u16",
    "f99",
    "",
    "?,",
    "(2,)i4",
    "2i4",
    "i",
    "V0",
    "<?4",
    "c8",
    "M8",
    "=O",
]


@pytest.mark.parametrize("kind", _KINDS)
def test_a_damaged_kind_of_number_is_refused(tmp_path, kind):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (4,), }}"
    path = _zipped(tmp_path / "x.npz", {"a.npy": _npy(np.zeros(4, "u1"), header)})
    with pytest.raises(DataError, match=r"x\.npz: a\.npy (has the dtype|contains pickled) "):
        NpzArray(path, "a")


@pytest.mark.long("fuzzing")
@settings(deadline=None, max_examples=300)
@given(st.text("<>|=?biufcaOSUVMm0123456789,()[] ", max_size=6))
def test_any_kind_of_number_is_read_or_refused(kind):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (0,), }}"
    file = _npy(np.zeros(0, "u1"), header)
    with tempfile.TemporaryDirectory() as folder:
        path = _zipped(Path(folder) / "x.npz", {"a.npy": file})
        try:
            found = NpzArray(path, "a")
        except DataError:
            return
    assert found.dtype == np.dtype(kind)
    assert found.dtype.kind in "biuf"


@pytest.mark.parametrize("kind", ["|b1", "?", "|u1", "<i2", ">u4", "=i8", "<f2", ">f8"])
def test_kinds_of_numbers(tmp_path, kind):
    array = np.arange(4).astype(kind)
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (4,), }}"
    found = NpzArray(_zipped(tmp_path / "x.npz", {"a.npy": _npy(array, header)}), "a")
    assert np.array_equal(_whole(found), array)


def test_objects_are_never_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return exec, ("raise SystemExit",)

    np.savez(tmp_path / "x.npz", metadata=np.array(Bomb(), dtype=object), imgs=np.arange(3))
    with pytest.raises(DataError, match="pickled Python objects, which setsup never reads"):
        NpzArray(tmp_path / "x.npz", "metadata")
    assert _whole(NpzArray(tmp_path / "x.npz", "imgs")).tolist() == [0, 1, 2]


def test_other_files(tmp_path):
    with pytest.raises(DataError, match=r"x\.npz has no array 'imgs' \(available: images, notes\.txt\)"):
        NpzArray(_zipped(tmp_path / "x.npz", {"images.npy": _npy(np.ones(1)), "notes.txt": b""}), "imgs")
    (tmp_path / "page.npz").write_text("<html>quota exceeded</html>")
    for name in ("page.npz", "missing.npz"):
        with pytest.raises(DataError, match=name):
            NpzArray(tmp_path / name, "imgs")
    with pytest.raises(DataError, match="is a folder"):
        NpzArray(tmp_path, "imgs")


def test_a_wrong_checksum_is_met_at_the_end(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.zeros((50, 100_000), np.uint8))
    content = bytearray(path.read_bytes())
    content[2_000_000] ^= 1
    path.write_bytes(content)
    found = NpzArray(path, "a")
    out = np.empty((25, 100_000), np.uint8)
    with found.rows() as fill:
        fill(0, 25, out)
        with pytest.raises(DataError, match="checksum"):
            fill(25, 50, out)


def test_a_file_that_was_replaced(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros((50, 100), np.uint8))
    found = NpzArray(tmp_path / "x.npz", "a")
    np.savez(tmp_path / "x.npz", a=np.zeros((60, 100), np.uint8))
    with pytest.raises(DataError, match="has changed"):
        found.map()
    with found.rows() as fill, pytest.raises(DataError, match="has changed"):
        fill(0, 1, np.empty((1, 100), np.uint8))


def test_what_is_packed_is_not_mapped(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(3))
    with pytest.raises(DataError, match="cannot be mapped"):
        NpzArray(tmp_path / "x.npz", "a").map()


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_copies(tmp_path, save):
    save(tmp_path / "x.npz", a=np.arange(600, dtype=np.uint16).reshape(30, 20))
    path = tmp_path / "damaged.npz"

    def read(content):
        path.write_bytes(content)
        found = NpzArray(path, "a")
        array = _whole(found)
        if not found.packed:
            assert found.map().shape == array.shape

    assert survives((tmp_path / "x.npz").read_bytes(), read, 150, head=1 << 20) > 75
