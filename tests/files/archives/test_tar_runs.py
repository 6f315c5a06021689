import io
import re
import tarfile
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import DataError
from setsup.files.archives import tar_runs
from setsup.files.archives.tar_runs import Runs
from setsup.files.archives.tars import Stretch, join_listings, walk

FORMS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


def one(name, content, form=tarfile.USTAR_FORMAT, **told):
    """A member as tarfile writes it, without the end of a tar."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in told.items():
        setattr(info, key, value)
    if form == tarfile.USTAR_FORMAT and max(len(info.name), len(info.linkname)) > 40:
        form = tarfile.GNU_FORMAT
    return info.tobuf(form) + content + bytes(-len(content) % 512)


def listed(content, at_once):
    """Files of a tar; one header at a time the walk looks at no window."""
    stretches = list(walk(lambda at, count: content[at : at + count], "a.tar", len(content), at_once))
    found = join_listings([stretch.listing("a.tar") for stretch in (Stretch(), *stretches)])
    numbers = [getattr(found, name).tolist() for name in ("offsets", "stored", "sizes", "methods", "checks")]
    return found.names.to_pylist(), *numbers


def outcome(content, at_once):
    try:
        return listed(content, at_once)
    except DataError:
        return DataError


texts = st.text("abé._-", min_size=1, max_size=8).map(lambda text: f"k{text}")
names = st.one_of(texts, texts.map(lambda text: f"{text}/" * 40 + text), texts.map(lambda text: text + 99 * "n"))
INNER = [one("in", b"x" * 600), one("in", b""), one("s", b"", tarfile.PAX_FORMAT, mtime=0.5), bytes(1024)]
contents = st.one_of(
    st.lists(st.integers(0, 3), max_size=4).map(lambda chosen: b"".join(INNER[one] for one in chosen)),
    st.integers(0, 9000).map(lambda size: b"0" * size),
)
files = st.builds(
    one,
    names,
    contents,
    st.sampled_from(FORMS),
    mtime=st.sampled_from([0, 17, 0.25]),
    type=st.sampled_from([tarfile.REGTYPE, tarfile.REGTYPE, tarfile.CONTTYPE]),
)
old = st.builds(one, texts, contents, type=st.just(tarfile.AREGTYPE))
others = st.builds(
    one,
    names,
    st.just(b""),
    st.sampled_from(FORMS),
    type=st.sampled_from([tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE]),
    linkname=names,
)
tars = st.lists(st.one_of(files, files, files, old, others), max_size=40).map(
    lambda parts: b"".join(parts) + bytes(1024)
)
windows = st.sampled_from([512, 1024, 2560, 10_240, 1 << 20])


@pytest.mark.long("fuzzing")
@given(tars, windows, st.integers(2, 60))
def test_runs_are_what_the_walk_and_tarfile_find(content, window, at_once):
    with mock.patch.multiple(tar_runs, _SMALL=window, _LARGE=window, _NEAR=1 << 20):
        found = listed(content, at_once)
    assert found == listed(content, 1)
    with tarfile.open(fileobj=io.BytesIO(content)) as file:
        there = [info for info in file if info.isreg()]
    assert found[0] == [info.name for info in there]
    assert found[1] == [info.offset_data for info in there]
    assert found[2] == [info.size for info in there]


@pytest.mark.long("fuzzing")
@given(tars, windows, st.data())
def test_whatever_the_bytes_the_walk_finds_the_same(content, window, data):
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        block = data.draw(st.integers(0, len(content) // 512 - 1))
        place = data.draw(st.sampled_from([*range(124, 137), 148, 156, 257, 0]))
        changed[512 * block + place] = data.draw(st.sampled_from(b"0123456789 \0x\x80\xffgLK-+_"))
    cut = data.draw(st.sampled_from([0, 0, 1, 512, 1024, 1100]))
    changed = bytes(changed[: len(changed) - cut])
    with mock.patch.multiple(tar_runs, _SMALL=window, _LARGE=window, _NEAR=1 << 20):
        assert outcome(changed, 8192) == outcome(changed, 1)


digits = st.one_of(
    st.integers(0, 8**12 - 1).map(lambda size: b"%012o" % size),
    st.integers(0, 8**7 + 9).map(lambda size: b"%011o\0" % size),
    st.integers(0, 8**7 + 9).map(lambda size: b"%011o " % size),
    st.text("01789 \0_+-o", min_size=12, max_size=12).map(str.encode),
    st.binary(min_size=12, max_size=12),
)


@given(st.lists(st.tuples(digits, st.sampled_from(b"0\x00x75Sg")), min_size=1, max_size=8))
def test_sizes_are_read_as_python_reads_them(fields):
    """Whatever is taken for a plain header has eleven octal digits, and a file's kind."""
    content = b"".join(bytes(124) + size + bytes(20) + bytes([kind]) + bytes(355) for size, kind in fields)
    for number, (size, kind) in enumerate(fields):
        run = Runs(lambda at, count: content[at : at + count], 1 << 40).at(512 * number)
        if run is not None:
            assert kind in b"0\0x"
            assert run.stored[0] == int(size[:11], 8) < 8**7
            assert size[11:] in (b" ", b"\0")
        elif kind in b"0\0":
            assert re.fullmatch(rb"0{4}[0-7]{7}[ \0]", size) is None


def test_records_that_tell_something_are_none():
    for records, plain in ((b"12 mtime=0.5\n", True), (b"10 path=ab\n", False), (b"9 size=22\n", False)):
        header = one("h", records, type=tarfile.XHDTYPE)
        content = header + one("b", b"content") + bytes(1024)
        run = Runs(lambda at, count, content=content: content[at : at + count], len(content)).at(0)
        assert (run is not None) == plain
        assert not plain or run.at == [0, 1024]


@pytest.mark.parametrize("size", [0, 100, 40_000])
def test_windows_are_looked_at_only_where_headers_are_near(size):
    content = b"".join(one(f"{row:05}", bytes(size)) for row in range(20_000 if size < 1000 else 200)) + bytes(1024)
    read = []

    def counted(at, count):
        read.append(count)
        return content[at : at + count]

    stretches = list(walk(counted, "a.tar", len(content)))
    names = [name for stretch in stretches for name in stretch.listing("a.tar").names.to_pylist()]
    assert names == [f"{row:05}" for row in range(len(names))]
    if size < 1000:
        assert len(names) == 20_000
        assert len(read) < 50
    else:
        assert len(names) == 200
        assert sum(read) < 1 << 20
        assert np.sum(np.array(read) > 512) == 1
