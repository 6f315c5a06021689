"""Tars of others that are damaged or packed, members that cannot be, and places that cannot be written."""

import errno
import io
import shutil
import subprocess
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setsup.errors import DataError
from setsup.shards.external import spill_buffer
from setsup.shards.external.indexing import index_shards, write_external_index
from setsup.shards.layout import parse_catalogue
from setsup.shards.opening import open_shards
from tests.fuzzing import survives
from tests.shards.external_tars import documents, npy, pack, png, refused, streamed


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["0.png", "0.png"], "with the same extension"),
        (["0.png", "0.PNG"], "with the same extension"),
        (["0.png", "1.png", "0.json"], "tar --sort=name"),
        (["../0.png"], "outside its folder"),
        (["/0.png"], "outside its folder"),
        (["a/../../0.png"], "outside its folder"),
        (["readme"], "no samples"),
        ([], "no samples"),
        ([f"0.a{n}.png" for n in range(300)], "first dot"),
    ],
)
def test_bad_members(tmp_path, names, said):
    pack(tmp_path / "a.tar", [(name, b"{}") for name in names])
    refused(tmp_path, said, "a.tar" if names and names[0] != "readme" else "tars")


def test_webdataset_refuses_the_same(tmp_path):
    for names in (["0.png", "0.png"], ["0.png", "0.PNG"]):
        pack(tmp_path / "a.tar", [(name, b"") for name in names])
        with pytest.raises(ValueError, match="duplicate"):
            streamed(tmp_path / "a.tar")


def test_dots_in_keys(tmp_path):
    for number in range(80):
        pack(tmp_path / f"{number:02}.tar", [(f"photo.{number}.png", png(0))])
    refused(tmp_path, "first dot")


def test_a_sparse_member(tmp_path):
    (tmp_path / "0.npy").write_bytes(b"")
    with (tmp_path / "0.npy").open("r+b") as file:
        file.truncate(1 << 20)
    subprocess.run(["tar", "--sparse", "-cf", "a.tar", "0.npy"], cwd=tmp_path, check=True)
    refused(tmp_path, "0.npy", "--sparse")


@pytest.mark.parametrize("cut", [0, 100, 512, 700, 1535, 1537, 2047, 2048, 2100])
def test_a_tar_that_is_cut_off(tmp_path, cut):
    path = pack(tmp_path / "a.tar", [("0.png", png(0)), ("0.json", b"{}")])
    assert 512 < len(png(0)) <= 1024  # so that its last block ends at byte 1536
    path.write_bytes(path.read_bytes()[:cut])
    refused(tmp_path, "a.tar", "truncated or damaged")


def test_what_is_no_tar(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"<html>quota exceeded</html>" * 100)
    refused(tmp_path, "a.tar", "damaged")


def test_packed_tars(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(__file__, "0.txt")
    refused(tmp_path, "a.tar.gz", "gunzip")
    (tmp_path / "a.tar.gz").rename(tmp_path / "a.tar")
    refused(tmp_path, "a.tar", "gzip", "gunzip")


def test_a_packed_tar_among_others_is_named(tmp_path, written):
    (written / "more.tar.gz").write_bytes(b"\x1f\x8b")
    assert write_external_index(written).left_out.keys() == {"more.tar.gz"}


def test_places_that_cannot_be_written(tmp_path, written):
    (tmp_path / "file").write_text("")
    refused(written, "file", out=tmp_path / "file")
    pq.write_table(pa.table({"a": [1]}), written / "index.parquet")
    refused(written, "another table")


def test_the_index_of_other_tars_is_not_replaced(written, tmp_path):
    index_shards(written)
    refused(written / "data-001.tar", "other tars", "out=")
    refused(f"{written}/data-{{001..002}}.tar", "data-000.tar", "out=")
    pack(tmp_path / "other" / "a.tar", documents({"a": 1}))
    with pytest.raises(DataError, match="other tars"):
        index_shards(tmp_path / "other", written)
    assert open_shards(written).keys([29]) == ["sample0029"]
    shutil.move(written / "data-002.tar", tmp_path / "data-002.tar")  # what is taken away is no other set
    assert len(index_shards(written)) == 24


def test_levels_that_the_catalogue_cannot_hold_are_refused_before_anything_is_written(written, monkeypatch):
    monkeypatch.setattr("setsup.shards.external.indexing.LARGEST", 100)
    refused(written, "the levels of the factors take", "index a copy of the tars without")
    assert not list(written.glob("*.json")) + list(written.glob("*.parquet"))


def test_a_full_disk(written, monkeypatch):
    monkeypatch.setattr(spill_buffer, "IN_MEMORY", 1000)

    class Full(io.BytesIO):
        def write(self, content):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spill_buffer.tempfile, "SpooledTemporaryFile", lambda most: Full())
    refused(written, "the disk is full")


def test_a_set_that_is_being_written_is_left_alone(written):
    (written / ".setsup").mkdir()
    (written / ".setsup" / "plan.json").write_text("{}")
    refused(written, "setsup shard")


def test_a_tar_that_changed_is_noticed_when_it_is_read(tmp_path):
    path = pack(tmp_path / "a.tar", [(f"{row}.npy", npy(np.arange(3))) for row in range(3)])
    dataset = index_shards(tmp_path)
    content = bytearray(path.read_bytes())
    place = content.index(b"1.npy")
    content[place : place + 5] = b"7.npy"
    content[place + 148 : place + 156] = b"%06o\0 " % (int(content[place + 148 : place + 154], 8) + ord("7") - ord("1"))
    path.write_bytes(content)
    with pytest.raises(DataError, match="changed since it was indexed"):
        dataset.fetch([1])
    again = index_shards(tmp_path)
    assert again.keys([1]) == ["7"]
    assert again.catalogue.shards[0].digest != dataset.catalogue.shards[0].digest


@pytest.mark.long("fuzzing")
def test_mutated_tars(tmp_path):
    members = [
        (f"k/{row}.{name}", content)
        for row in range(3)
        for name, content in (("npy", npy(np.arange(4))), ("json", b'{"a": 1}'), ("cls", b"4"))
    ]
    healthy = pack(tmp_path / "healthy.tar", members, tarfile.PAX_FORMAT).read_bytes().rstrip(b"\0") + bytes(2048)
    folder = tmp_path / "set"
    folder.mkdir()

    def read(content):
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / "a.tar").write_bytes(content)
        found = write_external_index(folder)
        catalogue = parse_catalogue((folder / "shards.json").read_bytes(), "shards.json")
        assert catalogue == found.catalogue
        open_shards(folder)

    assert survives(healthy, read, 50, head=2048, times=400) > 12


@pytest.mark.long("fuzzing")
def test_mutated_json(tmp_path):
    folder = tmp_path / "set"

    def read(content):
        pack(folder / "a.tar", [("0.json", content), ("1.json", b'{"size": 1, "shape": "a"}')])
        (folder / "shards.json").unlink(missing_ok=True)
        write_external_index(folder)

    healthy = b'{"size": 12, "shape": "ball", "at": {"x": 0.5, "y": -1e3}, "seen": true, "of": [1, 2], "no": null}'
    assert survives(healthy, read, 50, times=4000) > 12
