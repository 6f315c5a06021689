"""Classifiers on top of layers: what they read, how they are trained, and which epoch is reported."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

import torch
from torch.nn import functional

from setsup.errors import SetsupError
from setsup.samplers import EpochSampler
from setsup_papers.cmc.frozen import derived_seed
from setsup_papers.cmc.layer_probes import LayerProbes
from setsup_papers.cmc.settings import CMCSettings
from tests.papers.cmc.toys import Boxes, run_of

CONFIG = CMCSettings(
    views=("grey",),
    encoder="small",
    width=0.2,
    objective="patch",
    patch_layer="conv2",
    projection=8,
    images=((1, 16, 16),),
)


@pytest.fixture(scope="module")
def stripes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of stripes: upright ones, level ones, and none; some of unknown class, and a split."""
    dice = np.random.default_rng(0)
    kind = dice.integers(0, 3, 150)
    wave = 60 * np.sin(np.arange(20) * 1.6 + dice.uniform(0, 6, (150, 1)))
    images = 120 + dice.normal(0, 10, (150, 20, 20))
    images += np.where((kind == 0)[:, None, None], wave[:, None, :], 0)
    images += np.where((kind == 1)[:, None, None], wave[:, :, None], 0)
    path = tmp_path_factory.mktemp("stripes") / "stripes.npz"
    split = np.where(np.arange(150) < 100, "train", "test")
    np.savez(path, image=images.clip(0, 255).astype(np.uint8)[..., None].repeat(3, -1), kind=kind, split=split)
    return path


@pytest.mark.long("trainings")
def test_stripes_are_told_and_the_best_epoch_is_reported(stripes: Path, tmp_path: Path) -> None:
    run = run_of(stripes, CONFIG, 16, tmp_path, split="train")
    probes = LayerProbes(
        factor="kind", layers=("conv1", "conv2", "fc4"), pooled=(4,), hidden=(0, 20), split="test", epochs=12,
        decays=(8,), batch=32, baselines=("untrained",),
    )  # fmt: skip
    measured = probes.measure(run)
    values = measured.values
    for title in ("conv1", "conv2", "fc4", "conv2 MLP", "untrained: conv2"):
        epochs, each = measured.curves[title]
        assert list(epochs) == list(range(1, 13))
        assert values[f"{title}: accuracy"] == max(each)
        assert values[f"{title}: best epoch"] == 1 + int(np.argmax(each))
        assert values[f"{title}: accuracy of the last epoch"] == each[-1]
    assert values["conv2: accuracy"] > 0.9 > 0.5 > values["majority"]
    assert values["untrained: conv2: accuracy"] == values["conv2: accuracy"]  # nothing was trained here


def test_training_is_that_of_one_classifier_by_hand(stripes: Path, tmp_path: Path) -> None:
    run = run_of(stripes, CONFIG, 16, tmp_path, split="train")
    probes = LayerProbes(
        factor="kind", layers=("conv1", "conv2"), pooled=(3, 3), split="test", epochs=2, decays=(1,), batch=25, rate=0.3
    )
    found = probes.measure(run).curves["conv2"][1]
    # the same for conv2 alone
    data, seed = run.dataset, derived_seed(run, "layers")
    test = run.open(split="test")
    sampler = EpochSampler(data.factors, 25, seed=seed)
    encoder = run.method.encoders["grey"].eval()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = torch.nn.Linear(encoder.layers(torch.zeros(1, 1, 16, 16), ["conv1"])["conv1"].shape[1] * 9, 3)
        torch.nn.init.normal_(first.weight, 0, 0.01)
        head = torch.nn.Linear(encoder.layers(torch.zeros(1, 1, 16, 16), ["conv2"])["conv2"].shape[1] * 9, 3)
        torch.nn.init.normal_(head.weight, 0, 0.01)
        torch.nn.init.zeros_(head.bias)

    def maps(batch: dict) -> torch.Tensor:
        with torch.no_grad():
            return functional.adaptive_max_pool2d(encoder.layers(batch["grey"][0], ["conv2"])["conv2"], 3).flatten(1)

    def batch_of(dataset, rows, step, boxes):  # type: ignore[no-untyped-def]
        images = torch.from_numpy(dataset.fetch(rows[None], ["image"])["image"]).movedim(-1, 2)
        return boxes({"image": images, "step": step})

    speed = torch.zeros_like(head.weight), torch.zeros_like(head.bias)
    accuracies, rate = [], 0.3
    for epoch in range(2):
        for step in range(4 * epoch, 4 * epoch + 4):
            rows = sampler[step].indices[0]
            batch = batch_of(data, rows, step, Boxes(16).build(data, seed))
            loss = functional.cross_entropy(
                head(maps(batch)), torch.from_numpy(data.factors.codes("kind", rows)).long()
            )
            slopes = torch.autograd.grad(loss, (head.weight, head.bias))
            with torch.no_grad():
                for weight, slope, one in zip((head.weight, head.bias), slopes, speed, strict=True):
                    one.mul_(0.9).add_(slope)
                    weight.sub_(rate * one)
        rate *= 0.2
        batch = batch_of(test, np.arange(len(test)), 0, Boxes(16, centre=True).build(test, 0))
        told = head(maps(batch)).argmax(1).numpy()
        accuracies.append(float((told == test.factors.codes("kind")).mean()))
    np.testing.assert_allclose(found, accuracies, atol=0.021)  # one image of 50 may stand on an edge


def test_other_data_can_be_fitted_to(stripes: Path, tmp_path: Path) -> None:
    run = run_of(stripes, CONFIG, 16, tmp_path, split="train")
    options = {"factor": "kind", "layers": ("conv1",), "pooled": (3,), "epochs": 1, "batch": 25}
    same = LayerProbes(split="test", **options).measure(run).values
    others = {"stripes": replace(run.data, split="train"), "tested": replace(run.data, split="test")}
    named = replace(run, datasets=others, _embedded={}, _opened={})
    for how in (
        {"fit_dataset": "stripes", "split": "test"},
        {"fit_dataset": "stripes", "dataset": "tested"},
        {"dataset": "tested"},
    ):
        assert LayerProbes(**how, **options).measure(named).values == same


def test_layers_of_patches_are_a_map(stripes: Path, tmp_path: Path) -> None:
    config = CMCSettings(
        views=("grey",),
        encoder="small",
        width=0.2,
        objective="patch",
        patch_layer="conv2",
        projection=8,
        images=((1, 8, 8),),
    )
    run = run_of(stripes, config, 16, tmp_path, split="train")
    probes = LayerProbes(factor="kind", layers=("fc4",), pooled=(), strided=(8, 4), split="test", epochs=1, batch=50)
    values = probes.measure(run).values
    assert set(values) == {
        "majority", "fc4 strided: accuracy", "fc4 strided: accuracy of the last epoch", "fc4 strided: best epoch",
    }  # fmt: skip
    batch = {"grey": torch.rand(1, 3, 1, 16, 20), "mask": torch.ones(1, 3, dtype=torch.bool)}
    run.method.eval()
    found = probes._features(run, run.method, batch, ["grey"])["fc4"].unflatten(1, (-1, 3, 4))
    patch = batch["grey"][0, 1:2, :, 4:12, 8:16]
    with torch.no_grad():
        wanted = run.method.encoders["grey"].layers(patch, ["fc4"])["fc4"][0]
    torch.testing.assert_close(found[1, :, 1, 2], wanted)


def test_what_cannot_be_probed_is_refused(stripes: Path, tmp_path: Path) -> None:
    run = run_of(stripes, CONFIG, 16, tmp_path, split="train")
    with pytest.raises(SetsupError, match="set a split or a dataset to test on"):
        LayerProbes(factor="kind")
    with pytest.raises(SetsupError, match="has no factor 'sort'"):
        LayerProbes(factor="sort", split="test").measure(run)
    with pytest.raises(SetsupError, match="unknown layer 'conv5'"):
        LayerProbes(factor="kind", split="test", layers=("conv5",), pooled=()).measure(run)
