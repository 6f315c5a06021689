import struct

import numpy as np
import pytest

from setsup.datasets.formats.tfrecord.example import read_example
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files.shapenet_renderings import example, field, varint

NAMES = ("picture", "matrix", "numbers", "many")
FEATURES = {
    "picture": b"\x89PNG and more",
    "skipped": b"x" * 500,
    "matrix": np.arange(16, dtype=np.float32) / 3,
    "numbers": [0, 1, -1, 127, 128, 2**63 - 1, -(2**63)],
}


def _entry(name, feature):
    return field(1, field(1, name) + field(2, feature))


def test_values_of_every_kind():
    content = b"before" + example(FEATURES) + b"after"
    found = read_example(content, NAMES, "e", 6, len(content) - 5)
    assert found.keys() == {"picture", "matrix", "numbers"}
    assert [feature.kind for feature in found.values()] == ["bytes", "float", "int64"]
    ((start, length),) = found["picture"].values.tolist()
    assert content[start : start + length] == FEATURES["picture"]
    assert found["matrix"].values.dtype == np.float32
    assert np.array_equal(found["matrix"].values, FEATURES["matrix"])
    assert found["numbers"].values.tolist() == FEATURES["numbers"]
    assert read_example(memoryview(content), ["matrix"], "e", 6, len(content) - 5).keys() == {"matrix"}


def test_what_other_writers_may_do():
    floats = b"".join(varint(1 << 3 | 5) + struct.pack("<f", value) for value in (1.5, -2))
    numbers = varint(1 << 3) + varint(5) + field(1, varint(6) + varint(300))
    content = field(
        1,
        # names and values in either order, unpacked numbers, several bytes, fields that are not known, empty lists
        field(1, field(2, field(2, floats)) + field(1, b"loose"))
        + _entry(b"mixed", field(3, numbers))
        + _entry(b"many", field(1, field(1, b"one") + field(1, b"") + field(1, b"three")))
        + _entry(b"none", b"")
        + _entry(b"nil", field(2, b""))
        + field(1, field(1, b"valueless"))
        + varint(9 << 3) + varint(2**64 - 1)
        + varint(10 << 3 | 1) + bytes(8)
        + varint(11 << 3 | 5) + bytes(4)
        + field(12, b"later"),
    )  # fmt: skip
    found = read_example(content, ["loose", "mixed", "many", "none", "nil", "valueless", "absent"], "e")
    assert found["loose"].values.tolist() == [1.5, -2]
    assert found["mixed"].values.tolist() == [5, 6, 300]
    assert [content[s : s + n] for s, n in found["many"].values.tolist()] == [b"one", b"", b"three"]
    assert (found["none"].kind, len(found["none"].values)) == ("nothing", 0)
    assert (found["nil"].kind, found["nil"].values.dtype, len(found["nil"].values)) == ("float", np.float32, 0)
    assert found["valueless"].kind == "nothing"
    assert "absent" not in found
    assert read_example(b"", NAMES, "e") == {}
    # two messages one after the other are one message
    halves = example({"picture": b"one"}) + example({"many": b"two"})
    assert read_example(halves, NAMES, "e").keys() == {"picture", "many"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (example(FEATURES)[:-1], "only .* follow"),
        (example(FEATURES) + b"\x80", "a varint is incomplete"),
        (b"\x0a\xff\xff\xff\xff\x7f", "only .* follow"),
        (b"\x0a" + b"\xff" * 10, "more than 64 bits"),
        (b"\x0a" + b"\x80" * 9 + b"\x7f", "more than 64 bits"),
        (b"\x0b", "wire type 3"),
        (b"\x00\x00", "number 0"),
        (varint(1 << 35 | 2) + b"\x00", "number 4294967296"),
        (b"\x08\x01", "field 1 has the unexpected wire type 0"),
        (field(1, _entry(b"many", b"\x08\x01")), "field 1 has the unexpected wire type 0"),
        (field(1, _entry(b"many", field(2, field(1, bytes(6))))), "bytes of floats are not a multiple of 4"),
        (field(1, _entry(b"many", field(2, b"\x09" + bytes(8)))), "field 1 has the unexpected wire type 1"),
        (field(1, _entry(b"many", field(3, field(1, b"\x80")))), "a varint is incomplete"),
        (field(1, _entry(b"many", field(1, b"") + field(1, b""))), "two lists"),
        (field(1, _entry(b"many", b"") + _entry(b"many", b"")), "'many' appears twice"),
        (field(1, field(1, field(1, b"many") + field(1, b"other"))), "two names"),
    ],
)
def test_what_is_refused(content, why):
    refused = rf"^0001\.tfrecord, record 3 could not be parsed as a tf\.train\.Example.*{why}.*fetch it again$"
    with pytest.raises(DataError, match=refused):
        read_example(content, NAMES, "0001.tfrecord, record 3")


@pytest.mark.long("fuzzing")
def test_damaged_examples_are_refused_or_read():
    def read(content):
        for feature in read_example(content, NAMES, "e").values():
            if feature.kind == "bytes":
                start, length = feature.values.T
                assert ((start >= 0) & (length >= 0) & (start + length <= len(content))).all()

    many = field(
        1, _entry(b"many", field(1, field(1, b"") * 3000)) + _entry(b"numbers", field(3, field(1, b"\1" * 3000)))
    )
    assert survives(example(FEATURES), read, 750, slack=1 << 16) > 50
    assert survives(many, read, 100, slack=1 << 16) > 10
