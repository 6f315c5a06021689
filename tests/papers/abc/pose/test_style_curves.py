"""Style over a training, from kept checkpoints: against the measures of each checkpoint by itself."""

import logging
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
pytest.importorskip("skimage", reason="scikit-image is not installed")

import torch

from setsup.errors import SetsupError
from setsup.experiments import Data, Preset, Run, RunConfig, Sets, evaluate, load_trained, open_run, train
from setsup.experiments.report.fill import Result, fill
from setsup.experiments.report.picture import draw_report
from setsup.methods.networks.images import OverImages
from setsup_papers.abc.digits import digit_measures
from setsup_papers.abc.method import ABC
from setsup_papers.abc.pose.mnist import PRESETS, REPORTS
from setsup_papers.abc.pose.style_curves import SECONDS, StyleOverTraining, training_points
from setsup_papers.abc.settings import ABCObjective
from tests.true_files import mnist

MEASURE = StyleOverTraining(every=2, noise=0.5)


@dataclass(frozen=True)
class Linear:
    """ABC of a linear map of pixels."""

    def build(self, table: Any, generator: Any) -> ABC:
        layer = torch.nn.Linear(784, 3, bias=False)
        with torch.no_grad():
            layer.weight.uniform_(-1, 1, generator=generator)
        encoder = OverImages(1, 28, 28, torch.nn.Sequential(torch.nn.Flatten(), layer))
        return ABC(ABCObjective(rate=1e-2), encoder)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three steps, of which two are kept."""
    folder = tmp_path_factory.mktemp("digits")
    mnist.write(folder / "release")
    preset = Preset(
        name="mine/digits",
        shows="digits",
        data=Data("mnist", "train"),
        sampler=Sets(inactive=("digit",), size=4, where="digit != 9"),
        method=Linear(),
        steps=5,
        evaluations={"training": MEASURE},
    )
    train(preset, folder / "run", root=folder / "release", config=RunConfig(workers=0, keep_every=2, accelerator="cpu"))
    return open_run(folder / "run", preset)


def alone(run: Run, checkpoint: str) -> dict[str, float]:
    """Measures of a checkpoint, as of a run that is evaluated at it."""
    trained = load_trained(open_run(run.folder, run.preset, checkpoint=checkpoint), device="cpu")
    train, test = trained.dataset, trained.open(split="test")
    rows = np.arange(0, len(test), 2)
    nines = [np.flatnonzero(part.factors.codes("digit") == 9)[::2] for part in (train, test)]
    embedded = trained.embed(test, rows)
    of_nines = np.concatenate([trained.embed(part, some) for part, some in zip((train, test), nines, strict=True)])
    images = np.concatenate([part.fetch(some)["image"] for part, some in zip((train, test), nines, strict=True)])
    sigma = 0.5 * math.sqrt(embedded.astype(np.float64).var(axis=0).sum() / 3)
    of_test = test.factors.codes("digit", rows), test.fetch(rows)["image"]
    return asdict(digit_measures(embedded, *of_test, of_nines, images, sigma=sigma))


@pytest.mark.long("trainings")
def test_curves_are_the_measures_of_each_checkpoint(run: Run) -> None:
    found = evaluate(run, device="cpu")["training"]
    last = alone(run, "last")
    for name, value in last.items():
        steps, heights = found.curves[f"{name} over steps"]
        assert steps == [0, 2, 4, 5]
        assert heights[2] == pytest.approx(alone(run, "step-4")[name])
        assert heights[3] == pytest.approx(value) == found.values[name]
        seconds, over = found.curves[f"{name} over seconds"]
        assert seconds == list(SECONDS)
        past = [height for place, height in zip(seconds, over, strict=True) if place > run.progress().seconds]
        assert all(math.isnan(height) for height in past)
    assert found.values["seconds"] == run.progress().seconds
    assert found.pictures["neighbours"].mode == "RGB"
    assert evaluate(run, device="cpu")["training"].values == found.values  # as it was saved


def test_the_first_point_is_the_network_before_its_training(run: Run) -> None:
    trained = load_trained(run, device="cpu")
    points = training_points(trained)
    assert [point.step for point in points] == [0, 2, 4, 5]
    assert [point.seconds for point in points] == sorted(point.seconds for point in points)
    first, last = (dict(point.method().named_parameters()) for point in (points[0], points[-1]))
    for name, weights in trained.untrained.named_parameters():
        assert torch.equal(first[name], weights)
        assert torch.equal(last[name], dict(trained.method.named_parameters())[name])
        assert not torch.equal(first[name], last[name])


def test_a_run_that_kept_nothing_has_the_ends(run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    import shutil

    bare = tmp_path / "bare"
    shutil.copytree(run.folder, bare, ignore=shutil.ignore_patterns("step-*"))
    trained = load_trained(open_run(bare, run.preset), device="cpu")
    with caplog.at_level(logging.WARNING, logger="setsup"):
        assert [point.step for point in training_points(trained)] == [0, 5]
    assert "--keep-every N`" in caplog.text
    with pytest.raises(SetsupError, match="is not a run with a checkpoint"):
        training_points(replace(trained, folder=tmp_path))


def test_settings_are_checked() -> None:
    with pytest.raises(SetsupError, match="every must be 1 or more and noise 0 or more"):
        StyleOverTraining(every=0)
    assert StyleOverTraining().shrunk().every == 20


@pytest.mark.long("charts")
def test_a_chart_has_the_curves_of_all_methods() -> None:
    """Of each measure one over steps and one over seconds; what was not reached has no height."""
    (report,) = REPORTS
    results = []
    for place, row in enumerate(report.rows):
        for seed in (0, 1):
            over = [0.1 * place + 0.01 * seed, 0.5, math.nan]
            curves = {chart.curve: ([1.0, 2.0, 5.0], over) for chart in report.charts}
            values = {column.key: 0.1 * place for column in report.columns}
            results.append(Result(row.preset, seed, f"{place}-{seed}", values=values, curves=curves))
    found = fill(report, results, {preset.name: preset.seeds for preset in PRESETS})
    assert [line.row.label for line in found.lines] == ["ABC", "CC-VAE", "ML-VAE", "Sanchez et al."]
    (verdict,) = found.verdicts
    assert verdict.holds is False  # ABC is the lowest here
    assert "Sanchez et al. is 0.30 above ABC" in verdict.found
    narrow = replace(report, charts=report.charts[:2], columns=report.columns[:1], claims=())
    whole, fewer = (draw_report(fill(one, results, {})) for one in (narrow, replace(narrow, charts=narrow.charts[:1])))
    assert whole.height >= fewer.height
    assert whole.tobytes() != fewer.tobytes()


def test_presets_train_on_digits_but_the_nine() -> None:
    assert [preset.name for preset in PRESETS] == [
        "abc/figS7",
        "abc/figS7-cc-vae",
        "abc/figS7-ml-vae",
        "abc/figS7-sanchez-shared",
        "abc/figS7-sanchez",
    ]
    assert all(preset.sampler.where == "digit != 9" and preset.data.name == "mnist" for preset in PRESETS)
