"""``setsup pairs --run``: what a trained network takes for the same place in two images."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

from PIL import Image

from setsup.errors import SetsupError
from setsup.experiments.pixel_features import pixel_features
from setsup.reports.pixel_features import distance_map
from setsup_cli.main import main
from tests.cli.refusals import refused
from tests.true_files import mnist

Run = Callable[..., Any]

METHOD = """
from dataclasses import dataclass
import lightning, torch
from setsup.experiments import Data, Preset, Sets

class Colors(lightning.LightningModule):
    def __init__(self, whole):
        super().__init__()
        self.whole, self.weight = whole, torch.nn.Parameter(torch.ones(()))
    def embed(self, batch):
        maps = batch["image"].float().movedim(-3, -1) * self.weight
        return maps if self.whole else maps.mean((-3, -2))
    def training_step(self, batch, number):
        return self.weight ** 2
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.0)

@dataclass(frozen=True)
class Settings:
    whole: bool = True
    def build(self, table, generator):
        return Colors(self.whole)

PRESETS = [
    Preset(
        name="mine/colors",
        shows="colours",
        data=Data("mnist", "train"),
        sampler=Sets(inactive=("digit",), size=2),
        method=Settings(),
        steps=1,
    )
]
"""

OWN = ["--preset", "colors.py"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A picture of random colours, the same moved by 32 pixels, and runs whose features are the colours."""
    folder = tmp_path_factory.mktemp("matches")
    mnist.write(folder / "release")
    (folder / "colors.py").write_text(METHOD)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SETSUP_CACHE", str(folder / "cache"))
        for name, more in (("maps", []), ("means", ["--method.whole", "false"])):
            words = ["colors.py", "--out", name, "--root", "release", "--accelerator", "cpu", *more]
            assert main(["train", *words]) == 0
    picture = np.random.default_rng(0).integers(0, 256, (64, 160, 3), dtype=np.uint8)
    Image.fromarray(picture[:, :128]).save(folder / "left.png")
    Image.fromarray(picture[:, 32:]).save(folder / "right.png")
    Image.fromarray(np.zeros((3, 20_000), np.uint8)).save(folder / "wide.png")
    Image.fromarray(np.zeros((64, 64), np.uint16)).save(folder / "deep.png")
    plain = (folder / "wide.png").read_bytes()
    head = b"IHDR" + struct.pack(">II", 60_000, 60_000) + plain[24:29]
    (folder / "huge.png").write_bytes(plain[:12] + head + struct.pack(">I", zlib.crc32(head)) + plain[33:])
    return folder


@pytest.fixture
def images(trained: Path, setsup: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the pictures and runs, in which the command is run."""
    monkeypatch.chdir(trained)
    return trained


def test_matches_are_those_of_a_shift(setsup: Run, images: Path) -> None:
    words = [
        "pairs",
        "--run",
        "maps/seed-0",
        "left.png",
        "right.png",
        "--height",
        64,
        "--pixel",
        50,
        20,
        "--json",
        *OWN,
    ]
    found = setsup(*words).json
    moved = np.array(found["points1"]) - np.array(found["points2"])
    shared = np.array(found["points1"])[:, 0] >= 32
    assert shared.sum() >= 16 * 24 - 4  # two pixels may have one colour by chance
    assert (moved[shared] == [32, 0]).all()
    assert (found["pixel"], found["nearest"]) == ([50, 20], [18, 20])
    with Image.open(found["file"]) as sheet:
        assert min(sheet.size) > 300


def test_words_and_the_pixel_in_the_middle(setsup: Run, images: Path) -> None:
    found = setsup("pairs", "--run", "maps/seed-0", "left.png", "right.png", "--height", 64, "-o", "sheet.png", *OWN)
    assert found.code == 0, found.err
    assert "matched both ways; pixel 64 32 is nearest to 32 32" in found.out
    assert Path("sheet.png").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["maps/seed-0", "left.png"], "requires two images, not 1"),
        (["maps/seed-0", "left.png", "right.png", "--height", "50"], "--height must be a multiple of 32, not 50"),
        (["maps/seed-0", "left.png", "colors.py"], "colors.py is not a readable image"),
        (["maps/seed-0", "left.png", "huge.png"], "huge.png has 60000 × 60000 pixels"),
        (["maps/seed-0", "deep.png", "right.png"], "deep.png has pixels of mode I;16"),
        (["maps/seed-0", "wide.png", "right.png"], "wide.png would be resized to 192 × 1280000 pixels"),
        (["maps/seed-0", "left.png", "right.png", "--height", "64", "--pixel", "128", "3"], "is outside"),
        (["means/seed-0", "left.png", "right.png", "--height", "64"], "does not return a feature for every pixel"),
        (["nowhere", "left.png", "right.png"], "nowhere"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(setsup: Run, images: Path, words: list[str], said: str) -> None:
    refused(setsup("pairs", "--run", *words, *OWN), said)


def test_a_method_that_takes_no_such_image_is_named() -> None:
    def embed(batch: dict) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied\nby any means")

    trained = SimpleNamespace(method=SimpleNamespace(embed=embed), device="cpu")
    with pytest.raises(SetsupError, match="runs/x could not embed an image of 32 × 64 pixels: mat1 and mat2 shapes"):
        pixel_features(trained, np.zeros((32, 64, 3), np.uint8), "runs/x")


def test_a_map_is_bright_where_features_are_near() -> None:
    far = np.arange(12.0).reshape(3, 4)
    found = distance_map(np.full((3, 4, 3), 100, np.uint8), far)
    assert found[0, 0].tolist() == [255, 210, 60]
    assert found[2, 3].tolist() == [35, 35, 35]
    assert (np.diff(found[0, :, 0].astype(int)) < 0).all()
