import os
import re

import pytest

from setsup.errors import DataError
from setsup.files import find_members, open_members
from setsup.files.archives.release_root import readable
from tests.files.archives.release_files import FILES, KINDS, SORTED, folder_of, gz_of, settle, tar_of, zip_of


class TestFind:
    HOLDS = (r"list\.txt", r"cars/\d+/mesh\.mat")

    def test_in_a_folder_an_archive_in_it_or_an_archive(self, tmp_path):
        folder_of(FILES, tmp_path / "data")
        zip_of(FILES, tmp_path / "cars.zip")
        (tmp_path / "with").mkdir()
        tar_of(FILES, tmp_path / "with" / "cars.tar")
        for root in (tmp_path / "data", str(tmp_path / "cars.zip"), tmp_path / "with"):
            found = find_members("cars3d", root, self.HOLDS, ["cars.zip", "cars.tar"])
            assert found.names.to_pylist() == SORTED

    def test_in_the_folder_of_its_name_and_in_the_default_places(self, tmp_path, monkeypatch):
        folder_of({"x/y": b""}, tmp_path)
        folder_of(FILES, tmp_path / "cars3d")
        assert find_members("cars3d", tmp_path, self.HOLDS).source == tmp_path / "cars3d"
        monkeypatch.setenv("SETSUP_DATA", str(tmp_path))
        assert find_members("cars3d", None, self.HOLDS).source == tmp_path / "cars3d"

    def test_wrapping_folders_are_stripped(self, tmp_path):
        wrapped = {f"a/b c/{name}": content for name, content in FILES.items()}
        for kind in KINDS:
            KINDS[kind](wrapped, tmp_path / kind)
            found = find_members("cars3d", tmp_path / kind, self.HOLDS)
            assert (found.prefix, found.names.to_pylist()) == ("a/b c/", SORTED)

    def test_the_shallowest_folder_with_all_is_the_top(self, tmp_path):
        names = [
            "x/images/1.png",
            "x/list.txt",
            "images/list.txt",
            "b/c/images/1.png",
            "b/c/list.txt",
            "a/q/images/2.png",
        ]
        zip_of(dict.fromkeys(names, b""), tmp_path / "x.zip")
        assert find_members("y", tmp_path / "x.zip", [r"images/\d", r"list\.txt"]).prefix == "x/"
        assert find_members("y", tmp_path / "x.zip", [r"list\.txt"]).prefix == "images/"
        assert find_members("y", tmp_path / "x.zip", [r".*1\.png", r".*list"]).prefix == ""
        assert find_members("y", tmp_path / "x.zip", [r"images/2"]).prefix == "a/q/"

    def test_among_many_folders(self, tmp_path):
        names = [f"{i:03d}/{j}.png" for i in range(200) for j in range(3)]
        zip_of(dict.fromkeys([*names, "150/list.txt"], b""), tmp_path / "x.zip")
        assert find_members("y", tmp_path / "x.zip", [r"\d\.png", "list"]).prefix == "150/"

    def test_what_is_missing_is_said(self, tmp_path):
        folder_of({"list.txt": b""}, tmp_path / "x y")
        said = (
            f"cars3d: cars/*/mesh.mat not found; looked in {tmp_path}/x y, {tmp_path}/x y/cars3d (does not exist); "
            f"run `setsup fetch cars3d --root '{tmp_path}/x y'`, or pass the folder that contains the files "
            "(root=)"
        )
        with pytest.raises(DataError, match=f"^{re.escape(said)}$"):
            find_members("cars3d", tmp_path / "x y", self.HOLDS)
        with pytest.raises(DataError, match=r"looked in .*\(does not exist\); run `setsup fetch cars3d`, or pass"):
            find_members("cars3d", None, self.HOLDS)
        folder_of({"a/list.txt": b"", "b/cars/1/mesh.mat": b""}, tmp_path / "apart")
        with pytest.raises(DataError, match=r"list\.txt, cars/\*/mesh\.mat not found|not found in one folder"):
            find_members("cars3d", tmp_path / "apart", self.HOLDS)

    def test_a_broken_archive_does_not_hide_what_was_unpacked(self, tmp_path):
        folder_of(FILES, tmp_path / "d")
        (tmp_path / "d" / "cars.zip").write_bytes(b"PK\x03\x04 not whole")
        assert len(find_members("cars3d", tmp_path / "d", self.HOLDS, ["cars.zip"])) == len(FILES) + 1
        (tmp_path / "d" / "list.txt").unlink()
        with pytest.raises(DataError, match=r"cars\.zip is truncated"):
            find_members("cars3d", tmp_path / "d", self.HOLDS, ["cars.zip"])

    def test_a_packed_archive_says_what_to_do(self, tmp_path):
        gz_of(FILES, tmp_path / "cars.tar.gz")
        said = r"compressed with gzip as a whole, .*; unpack it \(tar -xf cars\.tar\.gz\) and pass the folder"
        with pytest.raises(DataError, match=said):
            open_members(tmp_path / "cars.tar.gz")
        with pytest.raises(DataError, match=said):
            find_members("cars3d", tmp_path, self.HOLDS, ["cars.tar.gz"])

    @pytest.mark.parametrize(
        ("name", "write"), [("my cars.zip", zip_of), ("release.TAR", tar_of), ("download", zip_of), ("a.zip.1", tar_of)]
    )
    def test_an_archive_of_any_name_in_the_folder(self, tmp_path, name, write):
        write({f"wrap/{each}": content for each, content in FILES.items()}, tmp_path / name)
        zip_of({"other": b""}, tmp_path / "another.zip")
        (tmp_path / "broken.zip").write_bytes(b"<html>")
        found = find_members("cars3d", tmp_path, self.HOLDS, ["cars.zip"])
        assert (found.source, found.names.to_pylist()) == (tmp_path / name, SORTED)

    def test_archives_that_lie_there_are_a_last_resort(self, tmp_path):
        zip_of(FILES, tmp_path / "any.zip")
        zip_of(FILES, tmp_path / "cars.zip")
        folder_of(FILES, tmp_path / "cars3d")
        assert find_members("cars3d", tmp_path, self.HOLDS).source == tmp_path / "cars3d"
        assert find_members("cars", tmp_path, self.HOLDS, ["cars.zip"]).source == tmp_path / "cars.zip"
        (tmp_path / "cars3d" / "list.txt").unlink()
        assert find_members("cars3d", tmp_path, self.HOLDS).source == tmp_path / "any.zip"
        zip_of(FILES, tmp_path / "z-Cars3D.zip")  # the name of the data set first
        assert find_members("cars3d", tmp_path, self.HOLDS).source == tmp_path / "z-Cars3D.zip"

    def test_archives_without_the_release_are_named(self, tmp_path):
        zip_of({"x": b""}, tmp_path / "scenenn.zip")

        def said():
            with pytest.raises(DataError) as caught:
                find_members("cars3d", tmp_path, self.HOLDS)
            assert "\n" not in str(caught.value)
            return str(caught.value)

        assert (
            f"{tmp_path}/cars3d (does not exist); scenenn.zip there does not contain any files of the dataset; run `set"
            in said()
        )
        for number in range(4):
            tar_of({"x": b""}, tmp_path / f"{number}.tar")
        assert "; 0.tar, 1.tar, 2.tar and 2 more there do not contain any files of the dataset; run" in said()
        zip_of({"list.txt": b""}, tmp_path / "part.zip")
        zip_of({"a/list.txt": b"", "b/cars/1/mesh.mat": b""}, tmp_path / "two.zip")
        (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04 cut")
        gz_of(FILES, tmp_path / "my cars.tar.gz")
        text = said()
        assert "; part.zip there lacks cars/*/mesh.mat;" in text
        assert "; two.zip there has them in two folders;" in text
        assert "; cut.zip is truncated" in text
        assert (
            "; my cars.tar.gz there is compressed as a whole: unpack it (tar -xf 'my cars.tar.gz'); run `setsup" in text
        )

    def test_only_so_many_archives_are_looked_into(self, tmp_path):
        for number in range(32):
            zip_of({"x": b""}, tmp_path / f"{number:02d}.zip")
        zip_of(FILES, tmp_path / "last.zip")
        with pytest.raises(DataError, match="and 29 more there do not contain any files of the dataset"):
            find_members("y", tmp_path, self.HOLDS)

    def test_an_archive_as_root_says_what_it_lacks(self, tmp_path):
        path = zip_of({"list.txt": b""}, tmp_path / "x.zip")
        said = (
            f"cars3d: {path} does not contain cars/*/mesh.mat; pass another archive, or the folder that contains the "
        )
        with pytest.raises(DataError, match=f"^{re.escape(said)}.*or run `setsup fetch cars3d`$"):
            find_members("cars3d", path, self.HOLDS)
        zip_of({"a/list.txt": b"", "b/cars/1/mesh.mat": b""}, path)
        settle(path, 1_600_000_001)
        with pytest.raises(DataError, match=r"x\.zip contains list\.txt, cars/\*/mesh\.mat, but not in one folder"):
            find_members("cars3d", path, self.HOLDS)

    def test_words_for_what_is_missing(self, tmp_path):
        holds = {r"list\.txt": "the list", r"cars/(?P<n>\d+)": "cars/<number>"}
        with pytest.raises(DataError, match=r"^y: the list, cars/<number> not found; looked in"):
            find_members("y", tmp_path, holds)
        folder_of(FILES, tmp_path)
        assert find_members("y", tmp_path, holds).names.to_pylist() == SORTED

    def test_a_folder_that_may_not_be_entered(self, tmp_path, monkeypatch):
        real = os.stat

        def refused(path, *given, **named):
            if str(path).startswith(f"{tmp_path}/"):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *given, **named)

        monkeypatch.setattr(os, "stat", refused)
        with pytest.raises(DataError, match=rf"{tmp_path} \(permission denied\), .*run `setsup fetch y"):
            find_members("y", tmp_path, self.HOLDS)


class TestReadable:
    @pytest.mark.parametrize(
        ("pattern", "words"),
        [
            (r"(?P<record>\w[\w.-]*)\.tfrecord", "*.tfrecord"),
            (r"[0-9]{8}(\.zip|/[^/]+/(models/model_normalized|model)\.obj)", "*"),
            (r"(train|val)/[^/]+/[0-9]{5}\.h5|((train|val|test)/)?([^/]+/)?rgb_[0-9]{5}\.jpg", "*/*/*.h5 or rgb_*.jpg"),
            (r"Annotations/[a-z]+_(pascal|imagenet)/[^/]+\.mat", "Annotations/*_*/*.mat"),
            (r"session0[1-4]/multiview/", "session0*/multiview/"),
            (r"^a\+\(b\)\[1\]\|c\\d$", "a+(b)[1]|c\\d"),
            (r"(?:ab){2}(?i:c)(\d+-)*x", "*cx"),
        ],
    )
    def test_no_expression_is_left(self, pattern, words):
        assert readable(pattern) == words
