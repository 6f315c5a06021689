import gzip
import io
import os
import shutil
import subprocess
import tarfile

import pytest

from setsup.errors import DataError
from setsup.files import open_members
from setsup.files.archives.streams import stream_tar
from tests.files.archives.release_files import LONG_AGO, entry, settle, tar_of
from tests.fuzzing import survives

LONG = "/".join(["folder with a long name"] * 12)
FILES = {
    "a/1.txt": b"one " * 500,
    "a/2.bin": bytes(range(256)) * 2,
    "empty": b"",
    f"{LONG}/é深.png": b"far down",
    "p" * 90 + "/" + "q" * 90: b"in the prefix of ustar",
}
FORMS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def read_all(path):
    found = open_members(path)
    return {found.names[place].as_py(): found.read(place) for place in range(len(found))}


def as_tarfile(path):
    with tarfile.open(path) as file:
        return {info.name: file.extractfile(info).read() for info in file if info.isreg()}


def blocks(*parts):
    """A tar of headers and contents as they are."""
    return b"".join(part + bytes(-len(part) % 512) for part in parts) + bytes(1024)


def header(name=b"x", size=b"00000000000\0", kind=b"0", magic=b"ustar\x0000", signed=False, **places):
    """A header byte by byte, with its checksum."""
    found = bytearray(512)
    found[: len(name)], found[124:136], found[156:157], found[257 : 257 + len(magic)] = name, size, kind, magic
    for place, content in places.items():
        start = int(place[2:])
        found[start : start + len(content)] = content
    found[148:156] = b" " * 8
    total = sum(byte - 256 if signed and byte > 127 else byte for byte in found)
    found[148:156] = b"%06o\0 " % total
    return bytes(found)


def written(path, content):
    path.write_bytes(content)
    return settle(path)


class TestGood:
    @pytest.mark.parametrize("form", FORMS)
    def test_as_tarfile_reads_it(self, tmp_path, form):
        files = {name: content for name, content in FILES.items() if form != "ustar" or len(name) < 200}
        path = tar_of(files, tmp_path / "x.tar", FORMS[form])
        assert read_all(path) == as_tarfile(path) == files

    def test_records_of_every_file(self, tmp_path):
        with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.PAX_FORMAT) as file:
            for name, content in FILES.items():
                info = entry(name, size=len(content))
                info.mtime = 1234.5678
                info.pax_headers = {"SCHILY.xattr.user.path=": "=a\nb", "comment": "path=wrong"}
                file.addfile(info, io.BytesIO(content))
        assert read_all(tmp_path / "x.tar") == FILES

    def test_records_of_all_files(self, tmp_path):
        with tarfile.open(
            tmp_path / "x.tar", "w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "of git"}
        ) as file:
            for name, content in FILES.items():
                file.addfile(entry(name, size=len(content)), io.BytesIO(content))
        assert read_all(tmp_path / "x.tar") == FILES

    @pytest.mark.skipif(not shutil.which("tar"), reason="needs tar")
    @pytest.mark.parametrize("form", ["v7", "oldgnu", "gnu", "ustar", "posix"])
    def test_as_tar_writes_it(self, tmp_path, form):
        top = tmp_path / "in"
        given = {name: content for name, content in FILES.items() if len(name) < (99 if form == "v7" else 200)}
        for name, content in given.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_bytes(content)
        (top / "soft").symlink_to("empty")
        os.link(top / "empty", top / "zhard")
        command = ["tar", f"--format={form}", "--sort=name", "-cf", tmp_path / "x.tar", "-C", top, "."]
        run = subprocess.run(command, capture_output=True, check=False)
        if run.returncode:
            pytest.skip(f"this tar does not write {form}")
        assert read_all(tmp_path / "x.tar") == given

    def test_links_folders_and_devices_are_left_out(self, tmp_path, caplog):
        with tarfile.open(tmp_path / "x.tar", "w") as file:
            file.addfile(entry("a", size=1), io.BytesIO(b"1"))
            for name, kind in (("s", tarfile.SYMTYPE), ("h", tarfile.LNKTYPE), ("d", tarfile.DIRTYPE)):
                file.addfile(entry(name, kind, link="a"))
            for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE):
                file.addfile(entry("dev", kind))
            file.addfile(entry("z", size=1), io.BytesIO(b"2"))
        assert read_all(tmp_path / "x.tar") == {"a": b"1", "z": b"2"}

    def test_of_one_name_the_last_counts(self, tmp_path):
        tar_of({"a": b"1", "b": b"2"}, tmp_path / "x.tar")
        with tarfile.open(tmp_path / "x.tar", "a") as file:
            file.addfile(entry("a", size=3), io.BytesIO(b"new"))
        assert read_all(tmp_path / "x.tar") == {"a": b"new", "b": b"2"}

    def test_binary_sizes_and_other_ways_to_write_numbers(self, tmp_path):
        sizes = (b"\x80" + bytes(10) + b"\x05", b"          5\0", b"5\0         \0", b"00000000005 ", b"000000000005")
        for number, size in enumerate(sizes):
            path = written(tmp_path / f"{number}.tar", blocks(header(size=size), b"12345", header(b"y")))
            assert read_all(path) == as_tarfile(path) == {"x": b"12345", "y": b""}

    def test_a_size_in_records(self, tmp_path):
        record = b"10 size=5\n"
        told = header(kind=b"x", size=b"%011o\0" % len(record))
        path = written(tmp_path / "x.tar", blocks(told, record, header(size=b"77777777777\0"), b"12345", header(b"y")))
        assert read_all(path) == as_tarfile(path) == {"x": b"12345", "y": b""}

    def test_checksums_of_signed_bytes(self, tmp_path):
        path = written(tmp_path / "x.tar", blocks(header("é".encode(), signed=True)))
        assert set(read_all(path)) == set(as_tarfile(path)) == {"é"}

    def test_times_of_gnu_are_no_prefix(self, tmp_path):
        path = written(tmp_path / "x.tar", blocks(header(magic=b"ustar  \0", at345=b"14371143257\0")))
        assert set(read_all(path)) == {"x"}

    def test_folders_of_the_oldest_format(self, tmp_path):
        path = written(
            tmp_path / "x.tar", blocks(header(b"a/", kind=b"\0", magic=b""), header(b"a/b", kind=b"\0", magic=b""))
        )
        assert set(read_all(path)) == set(as_tarfile(path)) == {"a/b"}

    def test_what_follows_the_end_of_a_name(self, tmp_path):
        path = written(tmp_path / "x.tar", blocks(header(b"abc\0garbage")))
        assert set(read_all(path)) == {"abc"}

    def test_bytes_that_are_no_utf8(self, tmp_path):
        path = written(tmp_path / "x.tar", blocks(header(b"caf\xe9/1"), header(b"caf\xc3\xa9/1")))
        found = open_members(path)
        assert found.names.to_pylist() == [r"caf\xe9/1", "café/1"]
        assert found.under(r"caf\xe9").names.to_pylist() == ["1"]

    def test_nothing_inside(self, tmp_path):
        assert read_all(written(tmp_path / "x.tar", bytes(10240))) == {}

    def test_large_members(self, tmp_path):
        content = os.urandom(3_000_001)
        assert read_all(tar_of({"x": content, "y": b"1"}, tmp_path / "x.tar")) == {"x": content, "y": b"1"}


class TestBad:
    @pytest.mark.parametrize("form", ["gnu", "pax"])
    @pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "a\\b", "C:/x", "a/.."])
    def test_names_that_lead_out_are_refused(self, tmp_path, name, form):
        path = tar_of({"good": b"1", name: b"2"}, tmp_path / "x.tar", FORMS[form])
        with pytest.raises(DataError, match=r"contains a file named .* could be written outside its folder"):
            open_members(path)

    def test_nul_in_a_record(self, tmp_path):
        record = b"12 path=a\0b\n"
        path = written(tmp_path / "x.tar", blocks(header(kind=b"x", size=b"%011o\0" % len(record)), record, header()))
        with pytest.raises(DataError, match=r"file named 'a\\\\x00b'"):
            open_members(path)

    @pytest.mark.skipif(not shutil.which("tar"), reason="needs tar")
    @pytest.mark.parametrize("form", [["gnu"], ["posix", "0.0"], ["posix", "0.1"], ["posix", "1.0"]])
    def test_files_with_holes_are_refused_when_they_are_read(self, tmp_path, form):
        with (tmp_path / "holes").open("wb") as file:
            for place in range(0, 40 << 20, 1 << 20):
                file.seek(place)
                file.write(b"x" * 4096)
            file.truncate(50 << 20)
        (tmp_path / "zlast").write_bytes(b"1")
        options = [f"--format={form[0]}", *(f"--sparse-version={version}" for version in form[1:]), "-S"]
        command = ["tar", *options, "-cf", "x.tar", "holes", "zlast"]
        if subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode:
            pytest.skip("this tar does not write files with holes")
        assert (tmp_path / "x.tar").stat().st_size < 1 << 20
        found = open_members(tmp_path / "x.tar")
        assert found.names.to_pylist() == ["holes", "zlast"]
        assert found.sizes.tolist() == [50 << 20, 1]
        assert found.read(1) == b"1"
        with pytest.raises(DataError, match=r"holes is stored as a sparse file, .*; unpack"):
            found.read(0)

    def test_cut_off(self, tmp_path):
        whole = tar_of(FILES, tmp_path / "x.tar").read_bytes()
        (tmp_path / "x.tar").write_bytes(whole[:700])
        with pytest.raises(
            DataError, match=r"x\.tar is truncated or damaged: header at byte 0: the member's content of 2,000"
        ):
            open_members(tmp_path / "x.tar")
        for size in (512 + 2048, 512 + 2048 + 100):
            (tmp_path / "x.tar").write_bytes(whole[:size])
            with pytest.raises(DataError, match="byte 2,560: the archive ends without the blocks of zeros"):
                open_members(tmp_path / "x.tar")

    def test_a_damaged_header_is_named(self, tmp_path):
        data = bytearray(tar_of(FILES, tmp_path / "x.tar").read_bytes())
        data[512 + 2048 + 3] ^= 1
        path = written(tmp_path / "x.tar", bytes(data))
        with pytest.raises(DataError, match=r"x\.tar is damaged: the header at byte 2,560 has a wrong checksum"):
            open_members(path)
        # and not what follows from it
        data = bytearray(tar_of(FILES, tmp_path / "x.tar").read_bytes())
        data[512 + 2048 + 130] = ord("7")
        path = written(tmp_path / "y.tar", bytes(data))
        with pytest.raises(DataError, match="header at byte 2,560 has a wrong checksum"):
            open_members(path)

    @pytest.mark.parametrize(
        "record",
        [b"5 path=a\n", b"99 path=a\n", b"path=a\n", b"x path=a\n", b"0 path=a\n", b"9 path=abc", b"11 size=-5\n"],
    )
    def test_records_that_are_none(self, tmp_path, record):
        path = written(tmp_path / "x.tar", blocks(header(kind=b"x", size=b"%011o\0" % len(record)), record, header()))
        with pytest.raises(DataError, match="is truncated or damaged: header at byte"):
            open_members(path)

    @pytest.mark.parametrize("size", [b"-0000000001\0", b"\xff" * 12, b"\x80" + b"\xff" * 11, b"0000000000x\0", b"9\0"])
    def test_sizes_that_are_none(self, tmp_path, size):
        path = written(tmp_path / "x.tar", blocks(header(size=size), header(b"y")))
        with pytest.raises(DataError, match="is truncated or damaged: header at byte 0"):
            open_members(path)

    def test_a_huge_name_is_not_read(self, tmp_path):
        path = written(tmp_path / "x.tar", blocks(header(kind=b"L", size=b"70000000000\0"), b"name", header()))
        with pytest.raises(DataError, match="a name or extended header of 7,516,192,768 bytes"):
            open_members(path)

    def test_a_swapped_archive_is_noticed(self, tmp_path):
        path = tar_of({"a": b"1" * 50, "b": b"2" * 50}, tmp_path / "x.tar")
        found = open_members(path)
        found.read(0)
        with path.open("r+b") as file:
            file.write(tar_of({"b": b"2" * 50, "a": b"1" * 50}, tmp_path / "y.tar").read_bytes())
        with pytest.raises(
            DataError,
            match=r"x\.tar: a is not at the position where it was listed, because the archive has changed; open",
        ):
            found.read(0)

    def test_an_archive_that_was_cut_off_since(self, tmp_path):
        found = open_members(tar_of({"a": b"1" * 5000}, tmp_path / "x.tar"))
        found.read(0)
        os.truncate(tmp_path / "x.tar", 2000)
        with pytest.raises(DataError, match=r"x\.tar: a is damaged: the archive ends within it"):
            found.read(0)

    @pytest.mark.long("fuzzing")
    @pytest.mark.parametrize("form", FORMS)
    def test_damage_of_any_kind(self, tmp_path, form):
        files = {name: content[:600] for name, content in FILES.items() if form != "ustar" or len(name) < 200}
        with tarfile.open(tmp_path / "healthy.tar", "w", format=FORMS[form]) as file:
            for name, content in files.items():
                info = entry(name, size=len(content))
                info.mtime = 12.5
                file.addfile(info, io.BytesIO(content))
        healthy = (tmp_path / "healthy.tar").read_bytes()
        path = tmp_path / "x.tar"

        def read(content):
            path.write_bytes(content)
            os.utime(path, (LONG_AGO, LONG_AGO))
            return read_all(path)

        assert survives(healthy, read, rounds=100, head=len(healthy)) > 15


@pytest.mark.parametrize("end", [1, 156, 157, 300, 511])
def test_a_gzipped_tar_that_ends_within_a_header_is_refused(tmp_path, end) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("first", "second"):
            tar.addfile(tarfile.TarInfo(name))
    (tmp_path / "two.tgz").write_bytes(gzip.compress(packed.getvalue()[: 512 + end]))
    with pytest.raises(DataError, match=r"two\.tgz is truncated or damaged: header at byte 512"):
        list(stream_tar(tmp_path / "two.tgz", lambda name: 10))
