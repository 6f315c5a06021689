import codecs

import pytest

from setsup.errors import DataError
from setsup.files.archives.members import open_members
from setsup.files.texts import content_of, find_beside, label_of, read_beside, text_of


def test_texts_are_utf8_with_a_mark_or_without():
    assert text_of("Käfer\n".encode(), "a.txt") == "Käfer\n"
    assert text_of(codecs.BOM_UTF8 + b"a\n", "a.txt") == "a\n"
    assert text_of(b"", "a.txt") == ""
    with pytest.raises(DataError, match=r"^a\.txt is not UTF-8 text \(.* at byte 2\); take it away$"):
        text_of(b"ab\xff", "a.txt", "take it away")


def test_files_of_the_release_come_before_those_beside_it(tmp_path):
    release, near, far = (tmp_path / name for name in ("release", "near", "far"))
    for folder in (release, near, far):
        (folder / "lists").mkdir(parents=True)
    (release / "other.txt").write_text("")
    members = open_members(release)
    names = ("val.txt", "lists/val.txt")
    assert find_beside(members, [near, far], names) is None
    (far / "val.txt").write_text("far")
    (near / "lists" / "val.txt").write_text("near")
    found = find_beside(members, [near, far], names)
    assert (found, label_of(found)) == (near / "lists" / "val.txt", str(near / "lists" / "val.txt"))
    assert content_of(found, 4, "a list") == b"near"
    (release / "lists" / "val.txt").write_text("release")
    found = find_beside(open_members(release), [near, far], names)
    assert label_of(found) == str(release / "lists" / "val.txt")
    assert content_of(found, 7, "a list") == b"release"


def test_what_cannot_be_read_is_told(tmp_path):
    file = tmp_path / "val.txt"
    with pytest.raises(DataError, match=r"val\.txt does not exist; expected a list"):
        read_beside(file, 3, "a list")
    file.write_text("long")
    with pytest.raises(DataError, match=r"val\.txt has 4 bytes, more than the limit of 3 for a list; fetch it again"):
        read_beside(file, 3, "a list")
    with pytest.raises(DataError):
        content_of((open_members(tmp_path), 0), 3, "a list")
    with pytest.raises(DataError, match="is not a file; expected a list"):
        read_beside(tmp_path, 3, "a list")
