"""The benchmark that a page adds in thirty lines opens a release, and its manifest is read."""

from pathlib import Path

import numpy as np
from PIL import Image

from setsup.files import read_manifest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "datasets" / "benchmark.md").read_text()


def blocks(language: str) -> list[str]:
    return [part.split("```")[0] for part in PAGE.split(f"```{language}\n")[1:]]


def test_the_module_has_thirty_lines_and_opens_a_release(tmp_path: Path) -> None:
    module, arrays = blocks("python")
    assert len(module.splitlines()) <= 30
    found: dict[str, object] = {}
    exec(compile(module, "paper_cups.py", "exec"), found)  # noqa: S102
    for number, name in enumerate(("blue/000.png", "blue/120.png", "red/000.png")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (6, 4), (number, 0, 0)).save(tmp_path / name)
    cups = found["open"](tmp_path)  # type: ignore[operator]
    assert cups.factors.values("cup").tolist() == ["blue", "blue", "red"]
    assert cups.factors.values("view").tolist() == [0, 120, 0]
    assert cups.fetch([[2, 0]])["image"][0, :, 0, 0, 0].tolist() == [2, 0]
    exec(compile(arrays, "digits.py", "exec"), found)  # noqa: S102
    images = np.arange(3 * 784, dtype=np.uint8).reshape(3, 28, 28, 1)
    digits = found["Digits"](images, cups.factors)  # type: ignore[operator]
    assert np.array_equal(digits.fetch([2, 1])["image"], images[[2, 1]])


def test_the_manifest_is_one(tmp_path: Path) -> None:
    (tmp_path / "paper-cups.yaml").write_text(blocks("yaml")[0])
    manifest = read_manifest(tmp_path / "paper-cups.yaml")
    assert manifest.adapter == "setsup.datasets.benchmarks.paper_cups"
    assert [factor.name for factor in manifest.factors] == ["cup", "view"]
