from pathlib import Path

import pytest

from setsup.errors import DataError
from setsup.files import existing_folder, need_readable


def test_a_file_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("")
    need_readable(tmp_path / "x.csv", "a CSV file")
    with pytest.raises(DataError, match=r"y\.csv does not exist; expected a CSV file"):
        need_readable(tmp_path / "y.csv", "a CSV file")
    with pytest.raises(DataError, match="is not a file; expected a CSV file"):
        need_readable(tmp_path, "a CSV file")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "x.csv").write_text("")
    monkeypatch.setattr(Path, "open", refuse)  # root may read whatever its mode
    with pytest.raises(DataError, match=r"x\.csv cannot be read: Permission denied"):
        need_readable(tmp_path / "x.csv", "a CSV file")


def test_the_folder_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert existing_folder(tmp_path / "a" / "b") == tmp_path
    monkeypatch.chdir(tmp_path)
    assert existing_folder(Path()) == tmp_path
