"""The folder of a substitute says what it was made with, and refuses anything else by name."""

from pathlib import Path
from typing import Any

import pytest

from setsup.datasets.adapters.substitutes import settle_record
from setsup.errors import DataError

MADE: dict[str, Any] = {"version": 1, "seed": 0, "models": 2, "shots": [0, 7], "meshes": {"cars/cow.obj": "ab"}}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"models": 3}, "models=2 instead of 3"),
        ({"seed": 4, "models": 3}, "seed=0 instead of 4, models=2 instead of 3"),
        ({"shots": [7]}, "shots=0 7 instead of 7"),
        ({"meshes": {}}, "meshes=cars/cow.obj instead of none"),
        ({"meshes": {"cars/cow.obj": "cd"}}, "meshes=cars/cow.obj, which has changed since then"),
    ],
)
def test_what_differs_is_said_and_nothing_else(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    settle_record(tmp_path, "Substitute for nothing", MADE)
    settle_record(tmp_path, "Substitute for nothing", MADE)
    with pytest.raises(DataError) as error:
        settle_record(tmp_path, "Substitute for nothing", MADE | changed)
    assert f"created with {said}; pass the same options, or choose another folder (root=" in str(error.value)


def test_a_folder_of_something_else_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError, match=r"contains notes\.txt, but not SUBSTITUTE\.json.*root="):
        settle_record(tmp_path, "Substitute for nothing", MADE)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
