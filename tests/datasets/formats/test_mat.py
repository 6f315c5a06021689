import io
import struct
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from setsup.datasets.formats.matlab.mat import read_mat
from setsup.errors import DataError
from tests.fuzzing import survives

LIMIT = 1 << 26
TYPES = {9: "f8", 4: "u2", 2: "u1"}
GENUINE = (
    *("cars196/devkit/cars_meta.mat", "cars196/devkit/cars_test_annos.mat", "cars196/devkit/cars_train_annos.mat"),
    *("nyu_depth_v2/splits.mat", "nyu_depth_v2/classMapping40.mat", "nyu_depth_v2/class13Mapping.mat"),
)
OBJECTS = np.zeros((1, 3), [("cls", object), ("viewpoint", object)])
for _place in range(3):
    OBJECTS[0, _place]["cls"] = f"car {_place}"
    OBJECTS[0, _place]["viewpoint"] = {"azimuth": 12.5 * _place, "anchors": np.arange(6.0).reshape(2, 3)}
CELL = np.empty((2, 2), object)
CELL[:] = [["one", np.zeros((0, 0))], [np.eye(2), "three"]]
CONTENT = {
    "im": np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5),
    "real": np.linspace(0, 1, 7),
    "many": (np.arange(3000, dtype=np.int16) - 20).reshape(30, 100),
    "imaginary": np.array([[1 + 2j, 3 - 1j]]),
    "yes": np.array([[True, False]]),
    "text": "Köln ok",
    "lines": np.array(["abc", "xyz"]),
    "none": np.zeros((0, 3)),
    "word": "",
    "cell": CELL,
    "objects": OBJECTS,
    "record": {"filename": "a b#c.jpg", "size": {"width": 500, "height": 333}},
    "big": np.array([[1 << 40, -1]]),
}


def _saved(content, packed=False):
    file = io.BytesIO()
    scipy.io.savemat(file, content, do_compression=packed)
    return file.getvalue()


def _same(mine, theirs):
    assert mine.dtype == theirs.dtype
    assert mine.shape == theirs.shape
    if theirs.dtype.names:
        return all(_same(mine[name], theirs[name]) for name in theirs.dtype.names)
    if theirs.dtype == object:
        return all(_same(a, b) for a, b in zip(mine.ravel(), theirs.ravel(), strict=True))
    return np.array_equal(mine, theirs)


def _number(values, name=b"a", kind=6, code=9, order="<"):
    """A matrix of doubles as it stands in a file, written by hand."""
    data = np.asarray(values, np.dtype(TYPES[code]).newbyteorder(order))
    parts = [(6, struct.pack(order + "II", kind, 0)), (5, struct.pack(f"{order}{data.ndim}i", *data.shape)), (1, name)]
    parts.append((code, data.tobytes("F")))
    return b"".join(struct.pack(order + "II", tag, len(part)) + part + bytes(-len(part) % 8) for tag, part in parts)


def _file(*matrices, order="<", packed=False):
    head = b"MATLAB 5.0 MAT-file, by hand".ljust(124) + struct.pack(order + "H", 0x0100)
    head += b"IM" if order == "<" else b"MI"
    for matrix in matrices:
        element = struct.pack(order + "II", 14, len(matrix)) + matrix
        if packed:
            content = zlib.compress(element)
            element = struct.pack(order + "II", 15, len(content)) + content
        head += element
    return head


@pytest.mark.parametrize("packed", [False, True])
def test_what_scipy_writes_is_read_as_scipy_reads_it(tmp_path, packed):
    content = _saved(CONTENT, packed)
    expected = scipy.io.loadmat(io.BytesIO(content))
    path = tmp_path / "some file.mat"
    path.write_bytes(content)
    for source in (content, path):
        found = read_mat(source, "f.mat", None, LIMIT)
        assert list(found) == list(CONTENT)
        assert all(_same(found[name], expected[name]) for name in CONTENT)
    some = read_mat(content, "f.mat", ["objects", "im"], LIMIT)
    assert list(some) == ["objects", "im"]
    assert np.array_equal(some["im"], CONTENT["im"])
    assert some["objects"][0, 2]["viewpoint"][0, 0]["azimuth"].item() == 25.0
    with pytest.raises(DataError, match=r"f\.mat has no variable mask, nothere \(available: im, real, many"):
        read_mat(content, "f.mat", ["mask", "im", "nothere"], LIMIT)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("name", GENUINE)
def test_genuine_files(genuine, name):
    path = genuine / name
    expected = {key: value for key, value in scipy.io.loadmat(path).items() if not key.startswith("__")}
    found = read_mat(path, name, None, LIMIT)
    assert list(found) == list(expected)
    assert all(_same(found[key], expected[key]) for key in expected)
    # arrays of small arrays cost numpy a hundred bytes each, whatever the file
    whole = path.read_bytes()
    rounds = 100 if len(whole) < 20_000 else 12
    refused = survives(whole, lambda data: read_mat(data, "f", None, 1 << 24), rounds, slack=12 << 20)
    assert refused > rounds / 2


def test_either_byte_order_and_wide_text():
    values = np.arange(6.0).reshape(2, 3)
    text = np.array([ord(letter) for letter in "Grün Ж"])[np.newaxis]
    for order in "<>":
        content = _file(_number(values, order=order), _number(text, b"t", 4, 4, order=order), order=order)
        found = read_mat(content, "f", None, LIMIT)
        assert np.array_equal(found["a"], values)
        assert found["t"].tolist() == ["Grün Ж"]


def test_the_last_element_may_lack_its_filling():
    content = _file(_number(np.array([[1, 2, 3]]), code=2, kind=9))
    assert read_mat(content, "f", None, LIMIT)["a"].tolist() == [[1, 2, 3]]
    cut = bytearray(content[:-5])
    cut[132:136] = (len(cut) - 136).to_bytes(4, "little")
    assert read_mat(bytes(cut), "f", None, LIMIT)["a"].tolist() == [[1, 2, 3]]


def test_variables_that_nobody_asked_for_cost_nothing_and_may_be_of_any_kind():
    function = b"".join(
        struct.pack("<II", tag, len(part)) + part + bytes(-len(part) % 8)
        for tag, part in [(6, struct.pack("<II", 16, 0)), (5, struct.pack("<2i", 1, 1)), (1, b"run")]
    )
    opaque = b"".join(
        struct.pack("<II", tag, len(part)) + part + bytes(-len(part) % 8)
        for tag, part in [(6, struct.pack("<II", 17, 0)), (1, b"table"), (1, b"MCOS"), (1, b"string")]
    )
    huge = _number(np.zeros((1000, 1000)), b"huge")
    nameless = _number(np.zeros((1, 64)), b"")
    for packed in (False, True):
        content = _file(function, huge, opaque, _number([[5.0]]), nameless, packed=packed)
        limit = (1 << 14) if packed else (1 << 24)
        assert read_mat(content, "f", ["a"], limit)["a"].tolist() == [[5.0]]
        with pytest.raises(DataError, match="'run' contains a function, which setsup cannot read"):
            read_mat(content, "f", ["run"], limit)
        with pytest.raises(DataError, match="'table' contains an object of a MATLAB class"):
            read_mat(content, "f", ["table"], limit)
    with pytest.raises(DataError, match=r"'huge' specifies 8,000,0.. bytes, more than the limit"):
        read_mat(content, "f", ["huge"], 1 << 14)
    with pytest.raises(DataError, match="more than the limit of 100"):
        read_mat(content, "f", ["huge"], 100)


def _patched(content, at, *words):
    return content[:at] + struct.pack(f"<{len(words)}I", *words) + content[at + 4 * len(words) :]


GOOD = _file(_number(np.arange(4.0).reshape(2, 2)))  # flags at 136, dimensions at 152, name at 168, numbers at 176


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is not a MAT v5 file"),
        (b"<html>nothing here</html>" * 10, "is not a MAT v5 file"),
        (b"\x89HDF\r\n\x1a\n" + bytes(600), r"is a MAT v7\.3 file \(HDF5\); expected a MAT v5 file.*-v7"),
        (b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n", r"is a MAT v7\.3 file"),
        (struct.pack("<5i", 0, 2, 2, 0, 2) + b"a\0" + bytes(32), "is a MAT v4 file, or not a MAT file"),
        (GOOD[:124] + b"\0\2IM" + GOOD[128:], "has the MAT version 0x0200"),
        (GOOD[:-9], "specifies 88 bytes, but only 79 follow; fetch it again"),
        (GOOD[:131], "ends inside the header of an element"),
        (_patched(GOOD, 128, 9), "an element of type 9"),
        (_patched(GOOD, 160, 1 << 30, 1 << 30), "'numbers' has 32 bytes; expected 1,152,921,504,606,846,976 numbers"),
        (_patched(GOOD, 160, 0xFFFFFFFF, 2), r"its dimensions are \(-1, 2\)"),
        (_patched(GOOD, 156, 1 << 20), "'dimensions' specifies 1,048,576 bytes, but only"),
        (_patched(GOOD, 144, 99), "has the unknown class 99"),
        (_patched(GOOD, 144, 1), "one of its parts has type 9; expected type 14"),
        (_patched(_patched(GOOD, 144, 1), 160, 2, 3), "specifies 6 parts, more than its 40 bytes can contain"),
        (_patched(GOOD, 136, 5), "its flags have 8 bytes of type 5"),
        (_patched(GOOD, 184, 11), "'numbers' is of type 11"),
        (_file(_number([[1.0]]), _number([[2.0]])), "has two variables named 'a'"),
        (_patched(_file(_number(np.zeros((0, 0)), kind=4, code=2)), 160, 0, 1 << 30), "its dimensions are"),
        (
            _patched(_file(_number(np.zeros((0, 0)), kind=4, code=2)), 160, 1 << 12, 1 << 12),
            "specifies 16,777,216 char",
        ),
    ],
)
def test_damage_is_told_in_one_sentence(content, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        read_mat(content, "the file.mat", None, LIMIT)
    assert str(caught.value).startswith("the file.mat")
    assert "\n" not in str(caught.value)


def test_damage_in_what_is_packed():
    packed = _file(_number(np.arange(400.0).reshape(20, 20)), packed=True)
    content = _patched(packed[:-20], 132, len(packed) - 20 - 136)
    with pytest.raises(DataError, match="is truncated: a compressed variable ends before its last byte"):
        read_mat(content, "f", None, LIMIT)
    with pytest.raises(DataError, match="cannot be inflated"):
        read_mat(packed[:200] + bytes(8) + packed[208:], "f", None, LIMIT)
    bomb = zlib.compress(struct.pack("<II", 14, 1 << 20) + _number(np.zeros((1, 100_000))))
    with pytest.raises(DataError, match=r"specifies 1,048,576 bytes, but contains 800,0..|more than its compressed"):
        read_mat(_file() + struct.pack("<II", 15, len(bomb)) + bomb, "f", None, LIMIT)
    element = zlib.compress(struct.pack("<II", 14, 64) + _number(np.zeros((1, 100_000))))
    with pytest.raises(DataError, match="specifies 64 bytes, but contains more"):
        read_mat(_file() + struct.pack("<II", 15, len(element)) + element, "f", None, LIMIT)


def test_what_packed_variables_take_together_is_bounded():
    content = _file(_number(np.zeros((1, 400))), _number(np.zeros((1, 400)), b"b"), packed=True)
    assert list(read_mat(content, "f", None, LIMIT)) == ["a", "b"]
    with pytest.raises(DataError, match=r"f: the variable 'b' specifies 3,2.. bytes, more than the limit"):
        read_mat(content, "f", None, 5000)
    assert list(read_mat(content, "f", ["b"], 5000)) == ["b"]


def test_nesting_is_bounded():
    inner = _number([[1.0]], b"")
    for _ in range(60):
        parts = [(6, struct.pack("<II", 1, 0)), (5, struct.pack("<2i", 1, 1)), (1, b"a"), (14, inner)]
        inner = b"".join(struct.pack("<II", tag, len(part)) + part + bytes(-len(part) % 8) for tag, part in parts)
    with pytest.raises(DataError, match="arrays are nested more than 32 levels deep"):
        read_mat(_file(inner), "f", None, LIMIT)


@pytest.mark.parametrize("name", ["plain", "inside"])
def test_sparse_matrices_are_refused(name):
    """Nothing published has them, and they are no numpy arrays: whoever asks for arrays would stumble over them."""
    thin = scipy.sparse.csc_array(np.diag([1.0, 0, 3, 0, 5]))
    content = _saved({"plain": thin, "inside": {"faces": thin}, "other": np.eye(2)})
    with pytest.raises(DataError, match=f"f: the variable '{name}' contains a sparse matrix, which setsup cannot read"):
        read_mat(content, "f", [name], LIMIT)
    assert list(read_mat(content, "f", ["other"], LIMIT)) == ["other"]


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("names", [["im", "real", "text", "yes"], ["objects", "record", "cell"], None])
def test_fuzzing(packed, names):
    content = _saved(CONTENT if names is None else {name: CONTENT[name] for name in names}, packed)
    refused = survives(content, lambda data: read_mat(data, "f", names, 1 << 24), 150, head=len(content))
    assert refused > 50


@pytest.mark.long("fuzzing")
def test_fuzzing_of_what_was_packed():
    """Damage below the compression, where the checksum of zlib does not catch it."""
    content = _saved({name: CONTENT[name] for name in ("objects", "cell", "lines", "imaginary")})

    def read(data):
        matrices = [data[128 + 8 :]]
        return read_mat(_file(*matrices, packed=True), "f", None, 1 << 24)

    one = _saved({"objects": OBJECTS})
    assert survives(one, read, 150, head=len(one), slack=3 << 20) > 50
    assert survives(content, lambda data: read_mat(data, "f", None, 1 << 24), 300, seed=5, head=len(content)) > 150


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="does not exist; expected a MAT file"):
        read_mat(tmp_path / "none.mat", "none.mat", None, LIMIT)
