"""A way to run the command in this process, and a folder of pictures as a user has them."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from setsup_cli.main import main
from tests.stores import bucket, s3
from tests.true_files import mnist

__all__ = ["bucket", "s3"]


@dataclass(frozen=True)
class Result:
    """What the command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def setsup(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Result:
        capsys.readouterr()
        code = main([str(word) for word in words])
        streams = capsys.readouterr()
        return Result(code, streams.out, streams.err)

    return run


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the advice that a person at a terminal gets."""
    monkeypatch.setattr("setsup_cli.suggestions.is_watched", lambda: True)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """photos.csv of 48 pictures: 4 subjects × 2 lights × 6 takes, red in the picture tells the subject."""
    folder = tmp_path / "album"
    (folder / "pictures").mkdir(parents=True)
    with (folder / "photos.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["path", "subject", "light", "age"])
        for row in range(48):
            subject, light, take = row // 12, row // 6 % 2, row % 6
            pixels = np.zeros((40, 60, 3), np.uint8)
            pixels[..., 0] = 50 * (subject + 1)
            pixels[..., 1] = 10 * take
            Image.fromarray(pixels).save(folder / "pictures" / f"{row:02}.png")
            name = ["Ada", "Łucja", "Chidi", "Mei"][subject]
            table.writerow([f"pictures/{row:02}.png", name, ["day", "night"][light], 20 + 1.5 * row])
    return folder / "photos.csv"


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small MNIST in the published format."""
    folder = tmp_path_factory.mktemp("mnist")
    mnist.write(folder)
    return folder
