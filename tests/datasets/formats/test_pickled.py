"""Arrays in pickles: equal to what unpickling gives; whatever else is there is refused and never run."""

import contextlib
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.datasets.formats.pickled import PickledArray, read_pickle
from setsup.errors import DataError
from tests.true_files.cifar10 import old_pickle

PATH = Path("some.pickle")
ARRAYS = [
    (np.arange(6) % 5).astype(dtype).reshape(shape)
    for dtype in ("b1", "u1", "<i2", ">i4", "i8", "f4", ">f8")
    for shape in ((6,), (2, 3), (1, 2, 3))
] + [np.zeros((0, 4), np.float32), np.array(3.5)]


def _restored(value, content):
    if isinstance(value, PickledArray):
        assert value.order == "C"
        count = int(np.prod(value.shape))
        plain = np.frombuffer(content, value.dtype, count, value.start).reshape(value.shape)
        assert np.array_equal(value.view(content), plain)
        return plain
    if isinstance(value, dict):
        return {key: _restored(each, content) for key, each in value.items()}
    return type(value)(_restored(each, content) for each in value) if isinstance(value, list | tuple) else value


def _same(one, other):
    if isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in other)
    if isinstance(other, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_what_unpickling_gives(protocol):
    value = {
        "arrays": ARRAYS,
        "twice": [ARRAYS[0], ARRAYS[0]],
        "plain": [None, True, False, 0, -1, 300, 70_000, -(2**40), 2**70, 1.5, "ü", (), (1,), (1, 2, 3, 4), {"a": []}],
        "many": [(number, str(number)) for number in range(2000)],
    }
    content = pickle.dumps(value, protocol)
    assert _same(_restored(read_pickle(content, PATH), content), value)


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_fortran_order_where_it_is_asked_for(protocol):
    values = [np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)), np.arange(6).reshape(2, 3), np.arange(4).T]
    content = pickle.dumps(values, protocol)
    found = read_pickle(content, PATH, fortran=True)
    assert [array.order for array in found[:2]] == ["F", "C"]
    assert all(np.array_equal(array.view(content), value) for array, value in zip(found, values, strict=True))
    with pytest.raises(DataError, match="Fortran order"):
        read_pickle(content, PATH)


@pytest.mark.parametrize("shape", [(2, 3), (200, 3)])
def test_strings_of_python_2(shape):
    """An array's content is a short or a long string there, and keys and types are strings of bytes."""
    array = (np.arange(np.prod(shape)) % 251).astype(np.uint8).reshape(shape)
    content = old_pickle({"a": array, "names": ["x.png", "y.png"], "n": [1, 300]})
    told = pickle.loads(content, encoding="latin1")  # written here
    found = _restored(read_pickle(content, PATH), content)
    assert found.keys() == told.keys()
    assert _same(found["a"], told["a"])
    assert (found["names"], found["n"]) == (told["names"], told["n"])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([np.array([{}], object)], "would|type 'O8'"),
        (np.asfortranarray(np.zeros((2, 3))), "Fortran order"),
        (np.array(["a"]), "type 'U1'"),
        (np.float32(1), "contains a call of"),
        (Path("x"), "contains a call of|the unsupported instruction"),
        ({1: 2}, "damaged"),
        (b"bytes" * 100, None),
    ],
)
def test_other_objects(value, words):
    content = pickle.dumps(value, 4)
    if words is None:
        read_pickle(content, PATH)
        return
    with pytest.raises(DataError, match=words):
        read_pickle(content, PATH)
    with pytest.raises(DataError):
        read_pickle(pickle.dumps(value, 5), PATH)


def test_protocol_2_of_python_3():
    value = {"points": np.arange(6.0)}
    with pytest.raises(DataError, match=r"bytes that Python 3 wrote with protocol 2; write the file again with pro"):
        read_pickle(pickle.dumps(value, 2), PATH)
    assert read_pickle(pickle.dumps({"a": [1, "b", 2.5]}, 2), PATH) == {"a": [1, "b", 2.5]}


def _try(content):
    with contextlib.suppress(DataError):
        read_pickle(content, PATH)


WHOLE = pickle.dumps({"a": [np.arange(5), "x"], "b": (1, 2.5)}, 4)


@pytest.mark.parametrize(
    "content",
    [b"", b".", b"(" * 40, b"]h\x00e.", b"K\x01t.", b"cnumpy\nndarray\n(cnumpy\ndtype\nR.", WHOLE[:-1], WHOLE[1:]],
)
def test_what_is_no_pickle(content):
    with pytest.raises(DataError, match=r"is not a pickle|the unsupported instruction|contains a call of"):
        read_pickle(content, PATH)


@pytest.mark.long("fuzzing")
@given(st.binary(max_size=60))
def test_any_bytes(content):
    _try(content)


@pytest.mark.long("fuzzing")
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), st.integers(0, len(WHOLE)))
def test_damaged_bytes(at, value, end):
    _try((WHOLE[:at] + bytes([value]) + WHOLE[at + 1 :])[:end])
