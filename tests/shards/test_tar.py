import hashlib
import io
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import DataError
from setsup.shards.writing.tar import Tar, checks, headers

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=24)


def standard(name: str, size: int) -> bytes:
    """Header that the standard library makes."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o444, 0
    return info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")


@given(st.lists(st.tuples(NAMES, st.integers(0, 2**33 - 1)), max_size=20))
def test_headers_are_those_of_the_standard_library(members):
    found = headers([name for name, _ in members], [size for _, size in members])
    assert found.shape == (len(members), 512)
    assert [bytes(header) for header in found] == [standard(*member) for member in members]


def test_a_name_of_100_bytes_fits_and_one_of_101_does_not():
    assert bytes(headers(["ü" * 50], [1])[0]) == standard("ü" * 50, 1)
    with pytest.raises(DataError, match="has 101 bytes, more than the 100"):
        headers(["a.png", "ü" * 50 + "a"], [1, 1])


def test_a_member_of_8_gib_is_refused_by_name():
    with pytest.raises(DataError, match=r"b\.npy would have 8,589,934,592 bytes, more than the 8 GiB"):
        headers(["a.npy", "b.npy"], [5, 1 << 33])


@given(st.lists(st.lists(st.binary(max_size=1500), max_size=4), max_size=4))
def test_a_tar_is_read_by_the_standard_library(blocks):
    file, offsets, names, contents = io.BytesIO(), [], [], []
    tar = Tar(file)
    for number, block in enumerate(blocks):
        fresh = [f"{number:03}.{place}" for place in range(len(block))]
        offsets += tar.add(fresh, block).tolist()
        names, contents = names + fresh, contents + block
    tar.end()
    whole = file.getvalue()
    assert tar.size == len(whole) == sum(512 + -(-len(content) // 512) * 512 for content in contents) + 1024
    assert tar.digest == hashlib.sha256(whole).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(whole)) as read:
        members = read.getmembers()
        assert [one.name for one in members] == names
        assert [one.offset_data for one in members] == offsets
        assert [read.extractfile(one).read() for one in members] == contents
        assert {(one.mode, one.uid, one.gid, one.mtime, one.uname, one.gname) for one in members} <= {
            (0o444, 0, 0, 0, "", "")
        }


def test_checks_are_crc_32c():
    # the vectors of RFC 3720, B.4
    vectors = {bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43, bytes(range(32)): 0x46DD794E}
    assert checks(list(vectors)).tolist() == list(vectors.values())
    assert checks([]).dtype == np.uint32
