import gzip
import io
import os
import tarfile
import tracemalloc
import zipfile
from types import SimpleNamespace

import pytest

from setsup.errors import DataError
from setsup.files import unpack
from tests.files.archives.release_files import entry, folder_of, gz_of, tar_of, zip_of
from tests.fuzzing import survives
from tests.traced import traced

FILES = {
    "list.txt": b"a\n",
    "cars/1/mesh #é.mat": os.urandom(3000),
    "cars/empty": b"",
    "large": bytes(2_500_000) + os.urandom(100_000),
    "Case": b"1",
    "case": b"2",
    "/".join(["long"] * 60): b"deep",
}
KINDS = {"zip": zip_of, "tar": tar_of, "gz": gz_of}
TOTAL = sum(map(len, FILES.values()))


@pytest.fixture(params=KINDS)
def packed(request):
    """Writes an archive of one kind."""
    return KINDS[request.param]


def content(folder):
    files = [path for path in folder.rglob("*") if not path.is_dir()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def left(folder):
    """What was left in a folder that may not even have been made."""
    return os.listdir(folder) if folder.exists() else []


def raw_tar(path, *members, packed=False):
    """A tar of headers with content, good or bad."""
    with tarfile.open(path, "w:gz" if packed else "w") as file:
        for info, data in members:
            file.addfile(info, io.BytesIO(data))
    return path


class TestGood:
    def test_every_file(self, tmp_path, packed):
        unpack(packed(FILES, tmp_path / "x"), tmp_path / "out" / "here")
        assert content(tmp_path / "out" / "here") == FILES
        assert os.listdir(tmp_path / "out") == ["here"]

    def test_into_an_empty_folder(self, tmp_path, packed):
        (tmp_path / "out").mkdir()
        unpack(str(packed(FILES, tmp_path / "x")), str(tmp_path / "out"))
        assert content(tmp_path / "out") == FILES

    def test_an_empty_archive(self, tmp_path, packed):
        unpack(packed({}, tmp_path / "x"), tmp_path / "out")
        assert content(tmp_path / "out") == {}

    def test_just_the_limit(self, tmp_path, packed):
        unpack(packed(FILES, tmp_path / "x"), tmp_path / "out", limit=TOTAL)
        assert content(tmp_path / "out") == FILES

    @pytest.mark.long("large or genuine files")
    def test_large_files_are_not_held_in_memory(self, tmp_path, packed):
        path = packed({"a": bytes(60_000_000)}, tmp_path / "x")
        with traced():
            unpack(path, tmp_path / "out")
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        assert (tmp_path / "out" / "a").stat().st_size == 60_000_000

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_of_one_name_the_last_counts(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
            file.writestr("a", b"a long one")
            file.writestr("a", b"last")
        for packing in (True, False):
            raw_tar(
                tmp_path / f"x{packing}",
                (entry("a", size=10), b"a long one"),
                (entry("a", size=4), b"last"),
                packed=packing,
            )
        for name in ("x.zip", "xTrue", "xFalse"):
            unpack(tmp_path / name, tmp_path / f"out {name}")
            assert content(tmp_path / f"out {name}") == {"a": b"last"}

    def test_bytes_that_are_no_utf8_come_back(self, tmp_path):
        name = os.fsdecode(b"caf\xe9")
        for packing in (True, False):
            with tarfile.open(tmp_path / "x", "w:gz" if packing else "w", errors="surrogateescape") as file:
                file.addfile(entry(name, size=1), io.BytesIO(b"1"))
            unpack(tmp_path / "x", tmp_path / f"out{packing}")
            assert os.listdir(os.fsencode(tmp_path / f"out{packing}")) == [b"caf\xe9"]

    def test_several_streams_of_gzip(self, tmp_path):
        data = tar_of(FILES, tmp_path / "x").read_bytes()
        (tmp_path / "y").write_bytes(
            b"".join(gzip.compress(data[k : k + 100_000]) for k in range(0, len(data), 100_000))
        )
        unpack(tmp_path / "y", tmp_path / "out")
        assert content(tmp_path / "out") == FILES


class TestHostile:
    @pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "a\\..\\x", "C:/x", ".."])
    def test_paths_that_lead_out(self, tmp_path, packed, name):
        with pytest.raises(DataError, match=r"contains a file named .*, which could be written outside its folder"):
            unpack(packed({"good": b"1", name: b"2"}, tmp_path / "x"), tmp_path / "in" / "out")
        assert left(tmp_path / "in") == []

    @pytest.mark.parametrize("packing", [True, False])
    def test_a_link_and_then_a_file_through_it(self, tmp_path, packing):
        (tmp_path / "target").mkdir()
        links = [
            (entry("out", tarfile.SYMTYPE, link=str(tmp_path / "target")), b""),
            (entry("up", tarfile.SYMTYPE, link=".."), b""),
            (entry("hard", tarfile.LNKTYPE, link="/etc/passwd"), b""),
            (entry("device", tarfile.CHRTYPE), b""),
            (entry("out/evil", size=4), b"evil"),
            (entry("up/evil", size=4), b"evil"),
        ]
        unpack(raw_tar(tmp_path / "x", *links, packed=packing), tmp_path / "folder")
        assert content(tmp_path / "folder") == {"out/evil": b"evil", "up/evil": b"evil"}
        assert not any(path.is_symlink() for path in (tmp_path / "folder").rglob("*"))
        assert os.listdir(tmp_path / "target") == []

    def test_links_in_a_zip(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
            link = zipfile.ZipInfo("out")
            link.create_system, link.external_attr = 3, 0o120777 << 16
            file.writestr(link, "/tmp")
            file.writestr("out/evil", b"evil")
        unpack(tmp_path / "x.zip", tmp_path / "folder")
        assert content(tmp_path / "folder") == {"out/evil": b"evil"}

    def test_more_than_the_limit(self, tmp_path, packed):
        path = packed(FILES, tmp_path / "x")
        with pytest.raises(DataError, match=rf"x contains more than the expected {TOTAL - 1:,} bytes; fetch it again"):
            unpack(path, tmp_path / "in" / "out", limit=TOTAL - 1)
        assert left(tmp_path / "in") == []

    def test_more_than_a_zip_says_of_a_file(self, tmp_path):
        data = bytearray(zip_of({"a": bytes(1_000_000)}, tmp_path / "x").read_bytes())
        place = data.index(b"PK\x01\x02") + 24
        data[place : place + 4] = (100_000).to_bytes(4, "little")
        (tmp_path / "x").write_bytes(data)
        with pytest.raises(DataError, match="it has more than 100,000 bytes"):
            unpack(tmp_path / "x", tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_files_that_lie_over_each_other(self, tmp_path):
        # one content of 200 kB, and a hundred entries of the directory that point at it
        path = zip_of({f"{k:03d}": os.urandom(200_000) if k == 0 else b"" for k in range(100)}, tmp_path / "x", 0)
        data = bytearray(path.read_bytes())
        first = data.index(b"PK\x01\x02")
        head = data[first + 16 : first + 28], data[first + 42 : first + 46]
        place = first
        for _ in range(100):
            data[place + 16 : place + 28], data[place + 42 : place + 46] = head
            place += 46 + 3
        path.write_bytes(data)
        with pytest.raises(DataError, match="files that overlap"):
            unpack(path, tmp_path / "out")

    def test_no_room_on_the_disk(self, tmp_path, packed, monkeypatch):
        path = packed(FILES, tmp_path / "x")
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
        with pytest.raises(DataError, match=r"unpacking x requires .* but only 10 bytes are available"):
            unpack(path, tmp_path / "out")

    def test_a_disk_that_fills_up(self, tmp_path, packed, monkeypatch):
        path = packed(FILES, tmp_path / "x")
        real = os.open

        def full(file, flags, *rest, **more):
            if flags & os.O_CREAT and b"list.txt" in os.fsencode(file):
                raise OSError(28, "No space left on device", file)
            return real(file, flags, *rest, **more)

        monkeypatch.setattr("os.open", full)
        with pytest.raises(DataError, match="the disk is full"):
            unpack(path, tmp_path / "in" / "out")
        assert os.listdir(tmp_path / "in") == []

    def test_nothing_that_is_there_is_replaced(self, tmp_path, packed):
        path = packed(FILES, tmp_path / "x")
        folder_of({"mine": b"1"}, tmp_path / "out")
        for folder in (tmp_path / "out", tmp_path / "out" / "mine"):
            with pytest.raises(DataError, match="is not empty; remove it, or unpack into another folder"):
                unpack(path, folder)
        assert content(tmp_path / "out") == {"mine": b"1"}

    def test_a_file_where_a_folder_should_be(self, tmp_path, packed):
        with pytest.raises(DataError, match="cannot write"):
            unpack(packed({"a": b"1", "a/b": b"2"}, tmp_path / "x"), tmp_path / "in" / "out")
        assert os.listdir(tmp_path / "in") == []

    def test_what_is_no_archive(self, tmp_path):
        (tmp_path / "x").write_bytes(b"<html>")
        for path, said in ((tmp_path / "x", "is not"), (tmp_path, "is a folder"), (tmp_path / "no", "does not exist")):
            with pytest.raises(DataError, match=said):
                unpack(path, tmp_path / "out")
        (tmp_path / "x").write_bytes(gzip.compress(b"no tar" * 1000))
        with pytest.raises(DataError, match=r"wrong checksum|truncated"):
            unpack(tmp_path / "x", tmp_path / "out")

    def test_cut_off(self, tmp_path, packed):
        whole = packed(FILES, tmp_path / "x").read_bytes()
        for size in (len(whole) // 2, len(whole) - 9000 if packed is tar_of else len(whole) - 5):
            (tmp_path / "x").write_bytes(whole[:size])
            if packed is tar_of and size > len(whole) // 2:
                (tmp_path / "x").write_bytes(whole[: whole.rindex(b"deep")])
            with pytest.raises(DataError, match="truncated"):
                unpack(tmp_path / "x", tmp_path / "in" / "out")
            assert left(tmp_path / "in") == []

    def test_damaged_content(self, tmp_path):
        for name, packed in (("zip", zip_of), ("gz", gz_of)):
            data = bytearray(packed({"a": os.urandom(5000)}, tmp_path / name).read_bytes())
            data[2500] ^= 1
            (tmp_path / name).write_bytes(data)
            with pytest.raises(DataError, match="damaged"):
                unpack(tmp_path / name, tmp_path / "out")
            assert not (tmp_path / "out").exists()

    def test_a_sparse_file_in_a_packed_tar(self, tmp_path):
        info = entry("a", b"S", size=0)
        with pytest.raises(DataError, match="is stored as a sparse file"):
            unpack(raw_tar(tmp_path / "x", (info, b""), packed=True), tmp_path / "out")

    @pytest.mark.long("fuzzing")
    @pytest.mark.parametrize("kind", KINDS)
    def test_damage_of_any_kind(self, tmp_path, kind):
        files = {"a/b": b"1" * 300, "c" * 120: b"2", "d": os.urandom(400)}
        healthy = KINDS[kind](files, tmp_path / "healthy").read_bytes()
        done = iter(range(1000))

        def read(damaged):
            (tmp_path / "x").write_bytes(damaged)
            unpack(tmp_path / "x", tmp_path / "in" / f"{next(done)}", limit=10_000)

        survives(healthy, read, rounds=60, head=len(healthy))
        assert all(not name.startswith(".") for name in os.listdir(tmp_path / "in"))
