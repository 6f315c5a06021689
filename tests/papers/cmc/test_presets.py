"""Presets of contrastive multiview coding: settings of the paper, and a step of each on files as they are published."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

from setsup.experiments import Preset, RunConfig, evaluate, find_preset, presets, smoke, train
from setsup.experiments.settings import put
from setsup.loading.views.colors import SPACES as KNOWN
from setsup_papers.cmc.experiments.figure5 import SPACES
from tests.true_files import div2k, imagenet, imagenet_100, nyu, stl10, ucf101

WRITERS: dict[str, Any] = {
    "imagenet": imagenet,
    "imagenet-100": imagenet_100,
    "stl10": stl10,
    "nyu": nyu,
    "div2k": div2k,
    "ucf101": ucf101,
}
CHANGED: dict[str, dict[str, Any]] = {  # to be trained in seconds
    "cmc/imagenet-resnet50": {"method.encoder": "resnet18", "method.width": 0.25},
    "cmc/fig5-d64": {"data.options": (("crop", (120, 128)),), "augmentation.offset": 32, "eval_transform.offset": 32},
    "cmc/ucf101-vd": {
        "data.options": (("flow", True), ("length", 16), ("size", (96, 128))),
        "augmentation.size": 96,
        "eval_transform.size": 96,
    },
}


SLOW = ("cmc/stl10-patch", "cmc/nyu-1-views", "cmc/nyu-4-views", "cmc/nyu-contrast-normals", "cmc/ucf101-vd")
"""Presets whose parts are all in others, and flow, which takes many seconds; `stl10-patch` is measured below."""

CPU = RunConfig(workers=0, accelerator="cpu")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Files of a dataset as they are published, written once."""
    made: dict[str, Path] = {}

    def write(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            WRITERS[name].write(made[name])
        return made[name]

    return write


def small(name: str) -> Preset:
    """A smoke preset that a CPU trains in seconds."""
    preset = smoke(find_preset(name))
    method = replace(preset.method, width=0.125) if hasattr(preset.method, "width") else preset.method
    return put(replace(preset, method=method, evaluations={}, steps=2), CHANGED.get(name, {}))


@pytest.mark.long("trainings")
@pytest.mark.parametrize(
    "name",
    [
        "cmc/imagenet-alexnet",
        "cmc/imagenet-resnet50",
        "cmc/fig6-m64",
        "cmc/stl10-nce",
        "cmc/fig5-hed",
        "cmc/fig5-d64",
        "cmc/nyu-full",
        "cmc/nyu-predict-labels",
        *(pytest.param(name, marks=pytest.mark.smoke) for name in SLOW),
    ],
)
def test_a_step_on_published_files(name: str, written: Callable[[str], Path], tmp_path: Path) -> None:
    preset = small(name)
    assert preset.data is not None
    run = train(
        preset, tmp_path / "run", root=written(preset.data.name), config=RunConfig(workers=0, accelerator="cpu")
    )
    assert run.finished
    assert np.isfinite(run.metrics()["loss"])


@pytest.mark.long("trainings")
@pytest.mark.parametrize("name", ["cmc/stl10-patch", "cmc/nyu-2-views"])
def test_evaluations_on_published_files(name: str, written: Callable[[str], Path], tmp_path: Path) -> None:
    preset = replace(small(name), evaluations=smoke(find_preset(name)).evaluations)
    assert preset.data is not None
    run = train(
        preset, tmp_path / "run", root=written(preset.data.name), config=RunConfig(workers=0, accelerator="cpu")
    )
    found = evaluate(run, device="cpu")
    keys = {f"{part}: {key}" for part, measured in found.items() for key in measured.values}
    wanted = {
        "cmc/stl10-patch": {"layers: conv5: accuracy", "layers: fc7 MLP: accuracy", "strided: conv5 strided: accuracy"},
        "cmc/nyu-2-views": {"segmentation: L: mIoU", "segmentation: L: pixel accuracy"},
    }
    assert wanted[name] <= keys


@pytest.mark.long("trainings")
def test_views_of_ones_own(tmp_path: Path) -> None:
    rows = np.arange(12)
    draws = np.random.default_rng(0)
    images = draws.integers(0, 256, (12, 24, 20, 3), np.uint8)
    np.savez(tmp_path / "mine.npz", image=images, depth=draws.random((12, 24, 20), np.float32), kind=rows % 3)
    for pairs, views in (("core", ("L,ab", "depth")), ("full", ("image,depth",))):
        asked = {"data.name": str(tmp_path / "mine.npz"), "method.views": views, "method.pairs": pairs}
        preset = put(find_preset("cmc"), asked | {"augmentation.views": views, "eval_transform.views": views})
        run = train(smoke(preset), tmp_path / pairs, config=CPU)
        assert np.isfinite(run.metrics()["loss"])


def test_steps_are_the_epochs_of_the_paper() -> None:
    alexnet = find_preset("cmc/imagenet-alexnet")
    assert alexnet.steps == round(400 * 1_281_167 / 128)
    assert [round(step * 128 / 1_281_167) for step in alexnet.method.schedule.at] == [250, 300, 350]
    code = find_preset("cmc/imagenet-alexnet-code")
    assert (code.method.negatives, alexnet.method.negatives) == (16_384, 4_096)
    full = find_preset("cmc/nyu-full")
    assert (full.steps, full.method.pairs, full.method.views) == (18_633, "full", ("L", "ab", "depth", "normals"))
    assert full.evaluations["segmentation"].steps == round(200 * 795 / 64)
    assert find_preset("cmc/stl10-nce").method.temperature == 0.1


def test_color_spaces_have_the_names_of_their_channels() -> None:
    assert {space: KNOWN[space].views for space in KNOWN} == dict(SPACES)


def test_small_presets_say_so() -> None:
    for name, preset in presets().items():
        if name.startswith("cmc/") and ("rooms" in name or "digits" in name or "colors" in name or "patches" in name):
            assert name.endswith("-small")
            assert preset.shows.endswith(", small")
