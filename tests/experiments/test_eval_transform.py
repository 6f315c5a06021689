"""What is embedded is made as the preset says, without the randomness of training."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")
pytest.importorskip("kornia", reason="kornia is not installed")

from torch import nn  # noqa: E402

import setsup  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import RunConfig, evaluate, find_preset, load_trained, train  # noqa: E402
from setsup.experiments.evaluations import Components  # noqa: E402
from setsup.experiments.settings import put  # noqa: E402
from setsup.loading.transforms import Augment, Compose, Crop  # noqa: E402
from setsup.loading.views import ColorViews  # noqa: E402
from setsup.methods.recipes import evaluation_transform, recipes  # noqa: E402
from setsup_cli.main import main  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from setsup_papers.abc.settings import ABCObjective  # noqa: E402
from tests.experiments.small import PLAIN  # noqa: E402

HERE = RunConfig(workers=0)
SHAPES = setsup.load("shapes3d-procedural")
ROWS = np.arange(0, 480_000, 96_001)


class Views(ABC):
    """Embeds an image as the means of its views."""

    def __init__(self) -> None:
        super().__init__(ABCObjective(rate=1e-30), nn.Linear(3, 3, bias=False))
        nn.init.eye_(self.encoder.weight)

    def embed(self, batch: Any) -> torch.Tensor:
        found: torch.Tensor = self.encoder(torch.cat([batch["L"], batch["ab"]], 2).mean((-1, -2)))
        return found


@dataclass(frozen=True)
class ViewsSettings:
    """No settings."""

    def build(self, table: Any, generator: torch.Generator) -> Views:
        return Views()


@dataclass(frozen=True)
class Own:
    """Views of a box at a place drawn at random."""

    def build(self, dataset: Any, seed: int) -> Any:
        return Compose([Augment([Crop(32)], seed=seed), ColorViews("lab")])


@dataclass(frozen=True)
class Whole:
    """Views of the whole image."""

    def build(self, dataset: Any, seed: int) -> Any:
        return ColorViews("lab")


VIEWS = replace(
    PLAIN,
    name="small/views",
    method=ViewsSettings(),
    sampler=replace(PLAIN.sampler, size=2),
    augmentation="cmc-resnet",
    evaluations={"components": Components(factors=("wall_hue",), samples=8, shown=8)},
    steps=1,
)
PRESETS = [VIEWS]  # of this file, for the command


def means(rows: np.ndarray, box: tuple[int, int, int, int] | None, size: int) -> np.ndarray:
    """Mean L, a and b of a box of images, by Pillow and scikit-image, normalised as the code of CMC does."""
    color = pytest.importorskip("skimage", reason="scikit-image is not installed").color
    images = SHAPES.fetch(rows)["image"]
    boxes = [Image.fromarray(one).resize((size, size), Image.Resampling.BILINEAR, box) for one in images]
    lab = np.stack([color.rgb2lab(np.asarray(one)).mean((0, 1)) for one in boxes])
    return np.asarray((lab - [50, 6.025, -6.6895]) / [50, 92.208, 101.1675])


@pytest.mark.long("trainings")
def test_a_run_of_cmc_is_evaluated_and_embedded_in_the_middle_of_its_images(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(VIEWS, tmp_path / "run", config=HERE)
    assert evaluate(run, device="cpu").keys() == {"components"}
    trained = load_trained(run, device="cpu")
    found = trained.embed(rows=ROWS)
    np.testing.assert_allclose(found, means(ROWS, (4, 4, 60, 60), 224), atol=0.01)
    assert np.array_equal(trained.embed(rows=ROWS[::-1].copy()), found[::-1]), "nothing depends on the batch"
    words = ["--preset", f"{__file__}:small/views", "--rows", "5", "--device", "cpu", "--json"]
    assert main(["embed", str(run.folder), *words]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    expected = means(np.load(files["rows"]), (4, 4, 60, 60), 224)
    np.testing.assert_allclose(np.load(files["embeddings"]), expected, atol=0.01)


@pytest.mark.parametrize("name", ["cmc-alexnet", "cmc-resnet"])
def test_of_256_pixels_the_224_in_the_middle_are_seen(name: str) -> None:
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1, 2, 3, 256, 256), dtype=np.uint8))
    transform = evaluation_transform(name)
    assert transform is not None
    assert torch.equal(transform({"image": images, "step": 7})["image"], images[..., 16:240, 16:240])


def test_every_recipe_says_what_is_evaluated() -> None:
    made = {name for name in recipes() if evaluation_transform(name) is not None}
    assert made == {"cmc-alexnet", "cmc-resnet", "cmc-stl10", "cmc-nyu"}, "all whose views are no modality of the data"
    with pytest.raises(SetsupError, match="unknown recipe 'cmc'"):
        evaluation_transform("cmc")


def test_views_that_only_training_has_are_said_before_it(tmp_path: Path) -> None:
    own = replace(VIEWS, augmentation=Own())
    with pytest.raises(
        SetsupError,
        match=r"^Views\.embed reads 'L', but evaluation batches contain only .*; set the preset's eval_transform",
    ):
        train(own, tmp_path / "run", config=HERE)
    assert not (tmp_path / "run").exists()
    # without evaluations nothing is embedded before somebody asks for it
    run = train(replace(own, evaluations={}), tmp_path / "run", config=HERE)
    with pytest.raises(SetsupError, match=r"^Views\.embed reads 'L'"):
        load_trained(run, device="cpu").embed(rows=ROWS)
    # and what is embedded is no part of what was trained
    again = train(replace(own, eval_transform=Whole()), tmp_path / "run", config=HERE)
    found = load_trained(again, device="cpu").embed(rows=ROWS)
    np.testing.assert_allclose(found, means(ROWS, None, 64), atol=1e-3)


def test_an_evaluation_may_name_another_recipe() -> None:
    mnist = replace(find_preset("abc/mnist"), eval_transform="cmc-stl10")
    assert mnist.eval_transform == "cmc-stl10"
    with pytest.raises(SetsupError, match="setting eval_transform must be"):
        put(mnist, {"eval_transform": 3})
