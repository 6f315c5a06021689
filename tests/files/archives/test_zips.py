import os
import shutil
import struct
import subprocess
import zipfile
import zlib

import pytest

from setsup.errors import DataError
from setsup.files import open_members
from tests.files.archives.release_files import LONG_AGO, settle, zip_of
from tests.fuzzing import survives

FILES = {"a/1.txt": b"one " * 500, "a/2.bin": bytes(range(256)) * 8, "b": b"", "c" * 100: b"x"}


def read_all(path):
    found = open_members(path)
    return {found.names[place].as_py(): found.read(place) for place in range(len(found))}


def patched(path, mark, offset, content, which=0):
    """Write over bytes behind a mark."""
    data = bytearray(path.read_bytes())
    place = -1
    for _ in range(which + 1):
        place = data.index(mark, place + 1)
    data[place + offset : place + offset + len(content)] = content
    path.write_bytes(bytes(data))
    return settle(path, LONG_AGO + which + offset)


LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


class TestGood:
    @pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    def test_as_zipfile_reads_it(self, tmp_path, method):
        path = zip_of(FILES, tmp_path / "x.zip", method)
        with zipfile.ZipFile(path) as file:
            assert read_all(path) == {name: file.read(name) for name in file.namelist()} == FILES

    def test_large_members_are_read_in_two_steps(self, tmp_path):
        content = os.urandom(3_000_001)
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            assert read_all(zip_of({"x": content}, tmp_path / f"{method}.zip", method)) == {"x": content}

    def test_folders_and_links_are_left_out(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
            file.mkdir("folder")
            file.writestr("folder/a", b"1")
            link = zipfile.ZipInfo("folder/link")
            link.create_system, link.external_attr = 3, 0o120777 << 16
            file.writestr(link, "/etc/passwd")
        assert read_all(tmp_path / "x.zip") == {"folder/a": b"1"}

    def test_names_in_utf8_and_in_code_page_437(self, tmp_path):
        names = ["schön.txt", "深.txt", "naïve/☃.png"]
        path = zip_of(dict.fromkeys(names, b"1"), tmp_path / "x.zip")
        assert set(read_all(path)) == set(names)
        with zipfile.ZipFile(tmp_path / "old.zip", "w") as file:
            file.writestr("sch?n.txt", b"1")
            file.writestr("plain.txt", b"1")
        data = (tmp_path / "old.zip").read_bytes().replace(b"sch?n", b"sch\x94n")
        (tmp_path / "old.zip").write_bytes(data)
        with zipfile.ZipFile(tmp_path / "old.zip") as file:
            assert set(read_all(tmp_path / "old.zip")) == set(file.namelist()) == {"schön.txt", "plain.txt"}

    def test_a_name_in_an_extra_field(self, tmp_path):
        info = zipfile.ZipInfo("sch?n.txt")
        raw = b"sch\x94n.txt"
        told = b"\x01" + struct.pack("<I", zlib.crc32(raw)) + "schœn.txt".encode()
        info.extra = struct.pack("<2H", 0x7075, len(told)) + told
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
            file.writestr(info, b"1")
        (tmp_path / "x.zip").write_bytes((tmp_path / "x.zip").read_bytes().replace(b"sch?n", b"sch\x94n"))
        assert read_all(tmp_path / "x.zip") == {"schœn.txt": b"1"}

    def test_bytes_that_are_no_utf8(self, tmp_path):
        path = zip_of({"schön.txt": b"1"}, tmp_path / "x.zip")
        path.write_bytes(path.read_bytes().replace("ö".encode(), b"\xff\xfe"))
        assert read_all(path) == {r"sch\xff\xfen.txt": b"1"}

    def test_names_are_made_plain(self, tmp_path):
        assert read_all(zip_of({"./a//b/./c": b"1", "./d": b"2"}, tmp_path / "x.zip")) == {"a/b/c": b"1", "d": b"2"}

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_of_one_name_the_last_counts(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
            for content in (b"1", b"22", b"333"):
                file.writestr("a", content)
                file.writestr("b", content)
        assert read_all(tmp_path / "x.zip") == {"a": b"333", "b": b"333"}

    def test_something_before_it_and_a_comment_behind(self, tmp_path):
        path = zip_of(FILES, tmp_path / "x.zip")
        with zipfile.ZipFile(path, "a") as file:
            file.comment = b"a comment with PK\x05 in it" * 50
        path.write_bytes(b"#!/bin/sh\nexit\n" * 100 + path.read_bytes())
        settle(path)
        assert read_all(path) == FILES

    def test_zip64(self, tmp_path, monkeypatch):
        path = tmp_path / "x.zip"
        with zipfile.ZipFile(path, "w") as file:
            for name, content in FILES.items():
                with file.open(zipfile.ZipInfo(name), "w", force_zip64=True) as out:
                    out.write(content)
        assert read_all(path) == FILES
        # offsets, sizes and counts beyond what the short fields hold
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
        monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)
        zip_of(FILES, path)
        assert b"PK\x06\x06" in path.read_bytes()
        settle(path, LONG_AGO + 1)
        assert read_all(path) == FILES
        path.write_bytes(b"before" + path.read_bytes())
        assert read_all(path) == FILES

    @pytest.mark.long("large or genuine files")
    def test_more_than_65535_files(self, tmp_path):
        names = [f"{number:06d}" for number in range(66_000)]
        path = zip_of(dict.fromkeys(names, b""), tmp_path / "x.zip", zipfile.ZIP_STORED)
        assert open_members(path).names.to_pylist() == names

    @pytest.mark.skipif(not shutil.which("zip"), reason="needs Info-ZIP")
    def test_as_info_zip_writes_it(self, tmp_path):
        (tmp_path / "in" / "sub").mkdir(parents=True)
        (tmp_path / "in" / "sub" / "schön.txt").write_bytes(b"1" * 999)
        (tmp_path / "in" / "b").write_bytes(os.urandom(999))
        (tmp_path / "in" / "link").symlink_to("b")
        given = {name: (tmp_path / "in" / name).read_bytes() for name in ("sub/schön.txt", "b")}
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        for options in ("-ry", "-ry0"):
            subprocess.run(["zip", "-q", options, "../x.zip", "."], cwd=tmp_path / "in", check=True, env=env)
            assert read_all(tmp_path / "x.zip") == given
            os.remove(tmp_path / "x.zip")
        # to a pipe, where sizes stand behind the content
        (tmp_path / "in" / "link").unlink()
        command = ["zip", "-q", "-r", "-", "."]
        with subprocess.Popen(command, cwd=tmp_path / "in", env=env, stdout=subprocess.PIPE) as piped:
            (tmp_path / "y.zip").write_bytes(piped.communicate()[0])
        assert read_all(tmp_path / "y.zip") == given


class TestBad:
    @pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "a\\b", "C:/x", "a/..", ".", "C:\\x"])
    def test_names_that_lead_out_are_refused(self, tmp_path, name):
        path = zip_of({"good": b"", "placeholder": b""}, tmp_path / "x.zip", zipfile.ZIP_STORED)
        info = zipfile.ZipInfo("x")
        info.filename = name
        with zipfile.ZipFile(path, "a") as file:
            file.writestr(info, b"1")
        with pytest.raises(DataError, match=r"contains a file named .* could be written outside its folder") as caught:
            open_members(path)
        assert repr(name) in str(caught.value) or ascii(name)[1:-1] in str(caught.value)

    def test_nul_in_a_name(self, tmp_path):
        path = zip_of({"aXb": b""}, tmp_path / "x.zip")
        path.write_bytes(path.read_bytes().replace(b"aXb", b"a\0b"))
        with pytest.raises(DataError, match=r"file named 'a\\\\x00b'"):
            open_members(path)

    def test_what_needs_a_password_is_refused_when_it_is_read(self, tmp_path):
        path = patched(zip_of(FILES, tmp_path / "x.zip"), CENTRAL, 8, b"\x01\x00")
        found = open_members(path)
        assert found.read(found.place("b")) == b""
        with pytest.raises(DataError, match=r"x\.zip: a/1\.txt requires a password; unpack the archive"):
            found.read(found.place("a/1.txt"))

    @pytest.mark.parametrize(("method", "said"), [(zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "lzma")])
    def test_other_methods_are_refused_when_they_are_read(self, tmp_path, method, said):
        found = open_members(zip_of(FILES, tmp_path / "x.zip", method))
        assert set(found.names.to_pylist()) == set(FILES)
        with pytest.raises(
            DataError,
            match=rf"a/1\.txt is compressed with {said}, which is not supported; unpack the archive",
        ):
            found.read(0)

    def test_cut_off(self, tmp_path):
        whole = zip_of(FILES, tmp_path / "x.zip").read_bytes()
        for size in (10, len(whole) // 2, len(whole) - 1, len(whole) - 22):
            (tmp_path / "x.zip").write_bytes(whole[:size])
            with pytest.raises(DataError, match=r"x\.zip is truncated: .*; fetch it again"):
                open_members(tmp_path / "x.zip")

    def test_damaged_content(self, tmp_path):
        for method, said in ((zipfile.ZIP_STORED, "checksum"), (zipfile.ZIP_DEFLATED, "damaged")):
            path = patched(zip_of({"a": b"abc" * 99}, tmp_path / f"{method}.zip", method), LOCAL, 33, b"\x17\x42")
            with pytest.raises(DataError, match=rf"{method}\.zip: a is damaged: .*{said}|is damaged: "):
                open_members(path).read(0)

    @pytest.mark.parametrize("size", [b"\x01\0\0\0", b"\xff\x7f\0\0"])
    def test_a_wrong_size_is_noticed(self, tmp_path, size):
        path = zip_of({"a": b"abc" * 9999}, tmp_path / "x.zip")
        patched(path, CENTRAL, 24, size)
        with pytest.raises(DataError, match="does not decompress to"):
            open_members(path).read(0)

    def test_an_impossible_size_is_refused_before_anything_is_taken(self, tmp_path):
        path = patched(zip_of({"a": b"abc" * 9}, tmp_path / "x.zip"), CENTRAL, 24, b"\xff\xff\xff\x7f")
        with pytest.raises(
            DataError, match=r"an impossible size or position of a: .* for a file of 2,147,483,647 bytes"
        ):
            open_members(path)

    def test_content_outside_of_the_archive(self, tmp_path):
        path = patched(zip_of({"a": b"abc" * 9}, tmp_path / "x.zip"), CENTRAL, 42, b"\xff\xff\xff\x00")
        with pytest.raises(DataError, match="an impossible size or position of a"):
            open_members(path)

    def test_parts_of_an_archive(self, tmp_path):
        path = patched(zip_of(FILES, tmp_path / "x.zip"), END, 4, b"\x02\0\x02\0")
        with pytest.raises(DataError, match="split zip; join the parts first"):
            open_members(path)

    def test_a_wrong_count_and_a_wrong_place(self, tmp_path):
        path = patched(zip_of(FILES, tmp_path / "x.zip"), END, 10, b"\x09\0")
        with pytest.raises(DataError, match="has 4 entries, but its end record declares 9"):
            open_members(path)
        path = patched(zip_of(FILES, tmp_path / "y.zip"), END, 12, b"\xff\xff\x0f\0")
        with pytest.raises(DataError, match="is not at the offset that its end record declares"):
            open_members(path)

    def test_a_swapped_archive_is_noticed(self, tmp_path):
        path = zip_of({"a": b"1" * 50, "b": b"2" * 50}, tmp_path / "x.zip", zipfile.ZIP_STORED)
        found, late = open_members(path), open_members(path)
        found.read(0)
        with path.open("r+b") as file:  # in place, so that the open one sees it
            file.write(zip_of({"b": b"2" * 50, "a": b"1" * 50}, tmp_path / "y.zip", zipfile.ZIP_STORED).read_bytes())
        with pytest.raises(
            DataError,
            match=r"x\.zip: a is not at the position where it was listed, because the archive has changed; open",
        ):
            found.read(0)
        os.utime(path)
        with pytest.raises(DataError, match="has changed since it was listed; open it again"):
            late.read(0)

    def test_an_archive_that_is_gone(self, tmp_path):
        found = open_members(zip_of(FILES, tmp_path / "x.zip"))
        os.remove(tmp_path / "x.zip")
        with pytest.raises(DataError, match=r"x\.zip does not exist"):
            found.read(0)

    @pytest.mark.long("fuzzing")
    @pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    def test_damage_of_any_kind(self, tmp_path, method):
        small = {name: content[:200] for name, content in FILES.items()}
        healthy = zip_of(small, tmp_path / "healthy.zip", method).read_bytes()
        path = tmp_path / "x.zip"

        def read(content):
            path.write_bytes(content)
            return read_all(path)

        # the directory is at the end, so all of the file is its head
        assert survives(healthy, read, rounds=125, head=len(healthy)) > 50
