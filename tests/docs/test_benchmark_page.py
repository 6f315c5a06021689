"""The benchmark that a page adds in fifteen lines opens a release, and its module reads arrays."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.files import read_manifest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "datasets" / "benchmark.md").read_text()
DESCRIBED = (ROOT / "docs" / "datasets" / "described.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    return [part.split("```")[0] for part in page.split(f"```{language}\n")[1:]]


def test_the_manifest_has_about_fifteen_lines_and_opens_a_release(tmp_path: Path) -> None:
    text = blocks(PAGE, "yaml")[0]
    assert len(text.splitlines()) <= 16
    (tmp_path / "paper-cups.yaml").write_text(text)
    manifest = read_manifest(tmp_path / "paper-cups.yaml")
    assert [factor.name for factor in manifest.factors] == ["cup", "view"]
    for number, name in enumerate(("blue/000.png", "blue/120.png", "red/000.png")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (6, 4), (number, 0, 0)).save(tmp_path / name)
    cups = setsup.open(tmp_path / "paper-cups.yaml")
    assert cups.factors.values("cup").tolist() == ["blue", "blue", "red"]
    assert cups.factors.values("view").tolist() == [0, 120, 0]
    assert cups.fetch([[2, 0]])["image"][0, :, 0, 0, 0].tolist() == [2, 0]
    assert len(setsup.open(tmp_path / "paper-cups.yaml", split="front")) == 2


def test_the_module_of_arrays_is_a_dataset() -> None:
    found: dict[str, object] = {}
    exec(compile(blocks(PAGE, "python")[0], "digits.py", "exec"), found)  # noqa: S102
    images = np.arange(3 * 784, dtype=np.uint8).reshape(3, 28, 28, 1)
    factors = setsup.FactorTable.from_values({"digit": [1, 2, 3]})
    digits = found["Digits"](images, factors)  # type: ignore[operator]
    assert np.array_equal(digits.fetch([2, 1])["image"], images[[2, 1]])


LAYOUTS = [
    (["train/0001_c002.jpg", "test/0003_c001.jpg"], {"vehicle": 1, "camera": 2, "split": "train"}),
    (["art/cat/1.jpg", "photo/cat/1.jpg"], {"domain": "art", "category": "cat", "split": "test"}),
    (["images/a.jpg", "images/b.jpg"], {"species": "crow", "country": "Chad"}),
]
"""Images, and the first row."""


@pytest.mark.parametrize("number", [0, 1, 2])
def test_layouts_of_the_page_on_them_open(tmp_path: Path, number: int) -> None:
    (tmp_path / "mine.yaml").write_text(blocks(DESCRIBED, "yaml")[number])
    names, row = LAYOUTS[number]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 4)).save(tmp_path / name)
    (tmp_path / "images.csv").write_text("file,species,photographer\nb.jpg,crow,ann\na.jpg,wren,bob\n")
    (tmp_path / "photographers.csv").write_text("photographer,country\nbob,Peru\nann,Chad\n")
    (tmp_path / "photo_train.txt").write_text("photo/cat/1.jpg 3\n")
    (tmp_path / "art_test.txt").write_text("art/cat/1.jpg 3\n")
    assert setsup.open(tmp_path / "mine.yaml").factors.row(0) == row
