"""Validation measures what it says, and a training does not notice it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from torch import nn  # noqa: E402

import setsup  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Data, Preset, Run, RunConfig, Validation, load_trained, open_run, smoke, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.settings import flatten, put, training_settings  # noqa: E402
from setsup.experiments.training.monitoring.validation import open_validation  # noqa: E402
from setsup.factors import Factor, FactorTable, Kind  # noqa: E402
from setsup.random import stream_key  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from setsup_papers.abc.settings import ABCObjective  # noqa: E402
from tests.experiments.by_hand import abc_loss, draws  # noqa: E402
from tests.experiments.numbered import Numbered  # noqa: E402
from tests.experiments.small import FEW, PLAIN  # noqa: E402
from tests.experiments.validated import VALIDATED, Restless, hold_out  # noqa: E402

SHAPES = setsup.load("shapes3d-procedural")
HERE = RunConfig(workers=0)
OTHERS = "orientation == 0 and scale == 1.25"
MEASURED = {"validation/loss", "validation/noise", "validation/knn/shape"}


def lines(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]


def check_equal_state(one: Run, other: Run) -> None:
    """Weights, buffers and optimisers are the same bit for bit."""
    state, expected = one.state(), other.state()
    assert state["state_dict"].keys() == expected["state_dict"].keys()
    for name, value in state["state_dict"].items():
        assert torch.equal(value, expected["state_dict"][name]), name
    optimisers = [list(found["optimizer_states"][0]["state"].values()) for found in (state, expected)]
    for found, wanted in zip(*optimisers, strict=True):
        assert torch.equal(found["exp_avg_sq"], wanted["exp_avg_sq"])


def test_a_training_does_not_notice_its_validation(tmp_path: Path) -> None:
    preset = replace(VALIDATED, steps=7, validation=replace(VALIDATED.validation, every=3))
    run = train(preset, tmp_path / "validated", config=HERE)
    plain = train(replace(preset, validation=Validation()), tmp_path / "plain", config=HERE)
    check_equal_state(run, plain)
    assert run.state()["state_dict"]["counts"].tolist() == [7, 7]
    for found, expected in zip(lines(run), lines(plain), strict=True):
        measured = {name: found.pop(name) for name in list(found) if name.startswith("validation/")}
        assert found == expected
        assert measured.keys() == (MEASURED if found["step"] in (3, 6) else set())
    names = (tmp_path / "validated" / "metrics.csv").read_text().partition("\n")[0].split(",")
    assert set(names) == {"step", "loss", "noise"} | MEASURED
    # as the run has it in its folder
    assert open_run(run.folder, preset).preset.validation == preset.validation


@pytest.mark.long("trainings")
def test_the_loss_is_that_of_draws_of_the_other_rows(tmp_path: Path) -> None:
    preset = replace(PLAIN, steps=4, validation=Validation(every=2, where=OTHERS, draws=3))
    preset = replace(preset, sampler=replace(PLAIN.sampler, where=None))
    runs = [train(preset, tmp_path / str(seed), seed=seed, config=HERE) for seed in (0, 3)]
    held_out = SHAPES.where(OTHERS)
    # the same draws for all seeds
    sets = setsup.SetSampler(held_out.factors, inactive=["wall_hue"], size=4, sets=2, seed=stream_key(0, "validation"))
    for run in runs:
        encoder, images = load_trained(run, device="cpu").method.encoder, draws(held_out, sets)
        with torch.no_grad():
            losses = [abc_loss(*encoder(next(images))).item() for _ in range(3)]
        assert lines(run)[3]["validation/loss"] == pytest.approx(np.mean(losses), rel=1e-5)
        assert run.metrics().keys() == {"loss", "validation/loss"}


@pytest.mark.long("trainings")
def test_neighbours_and_probes_are_those_of_scikit_learn(tmp_path: Path) -> None:
    neighbors = pytest.importorskip("sklearn.neighbors", reason="scikit-learn is not installed")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    asked = Validation(every=4, where=OTHERS, draws=0, knn=("shape",), probe=("wall_hue",), rows=150, k=1)
    preset = replace(PLAIN, data=replace(PLAIN.data, where=FEW), steps=4, validation=asked)
    run = train(preset, tmp_path, config=HERE)
    trained = load_trained(run, device="cpu")
    held_out = open_validation(asked, trained, preset.sampler)
    fit, test = trained.embed(rows=held_out.fit), trained.embed(held_out.dataset, held_out.test)
    assert len(fit) == len(test) == 150
    table, other = trained.dataset.factors, held_out.dataset.factors
    nearest = neighbors.KNeighborsClassifier(1).fit(fit, table.codes("shape", held_out.fit))
    expected = nearest.score(test, other.codes("shape", held_out.test))
    assert lines(run)[3]["validation/knn/shape"] == pytest.approx(expected)
    # C is 1 over the penalty times the rows
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=1 / (1e-4 * 150), max_iter=10_000, tol=1e-4))
    probe.fit(fit, table.values("wall_hue", held_out.fit).astype(str))
    score = probe.score(test, other.values("wall_hue", held_out.test).astype(str))
    assert lines(run)[3]["validation/probe/wall_hue"] == pytest.approx(score)
    assert set(lines(run)[3]) == {"step", "loss", "validation/knn/shape", "validation/probe/wall_hue"}


@pytest.mark.long("exhaustive comparisons")
@pytest.mark.parametrize("where", [None, FEW, "wall_hue < 0.35", "orientation == 0 and floor_hue > 0.55"])
def test_no_image_is_both_fitted_and_tested(where: str | None) -> None:
    data = replace(PLAIN.data, where="orientation == 0 and wall_hue < 0.55")
    dataset = data.open()
    asked = Validation(every=1, where=where, draws=0, knn=("shape",), rows=3_000)
    preset = replace(PLAIN, data=data, sampler=replace(PLAIN.sampler, where=None), validation=asked)
    held_out = hold_out(preset, ABC(ABCObjective(), nn.Identity()), dataset)

    def identities(of: Any, rows: Any) -> set[tuple[Any, ...]]:
        return set(zip(*(of.factors.values(name, rows).tolist() for name in of.factors.names), strict=True))

    fit, test = identities(dataset, held_out.fit), identities(held_out.dataset, held_out.test)
    assert len(fit) == len(held_out.fit) > 0
    assert len(test) == len(held_out.test) == min(3_000, len(held_out.test))
    assert not fit & test
    # indices are rows of the training data
    known = held_out.training_rows >= 0
    rows = np.arange(len(held_out.dataset))[known][:50]
    for name in dataset.factors.names:
        there = dataset.factors.values(name, held_out.training_rows[rows])
        np.testing.assert_array_equal(there, held_out.dataset.factors.values(name, rows))
    assert known.sum() == len(identities(dataset, None) & identities(held_out.dataset, None))


@pytest.mark.long("trainings")
def test_the_loss_gets_no_rows_that_are_not_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bool, bool, int]] = []
    whole = Restless.loss

    def loss(self: Restless, batch: Any) -> torch.Tensor:
        seen.append((self.training, torch.is_grad_enabled(), int(batch["indices"].max())))
        return whole(self, batch)

    monkeypatch.setattr(Restless, "loss", loss)
    train(replace(VALIDATED, steps=5, validation=replace(VALIDATED.validation, where=OTHERS)), tmp_path, config=HERE)
    assert [(mode, gradients) for mode, gradients, _ in seen[-3:]] == [(False, False)] * 3
    assert [row for *_, row in seen[-3:]] == [-1] * 3
    assert all(mode and gradients and row >= 0 for mode, gradients, row in seen[-8:-3])


@pytest.mark.long("trainings")
def test_a_run_may_be_validated_otherwise_when_it_resumes(tmp_path: Path) -> None:
    preset = replace(VALIDATED, steps=8, checkpoint_every=4, validation=Validation(every=4, draws=1))
    whole = train(replace(preset, validation=Validation()), tmp_path / "whole", config=HERE)

    def stop(run: Run) -> None:
        monkeypatch.setattr(Restless, "training_step", training_step)

    def training_step(self: Restless, batch: Any, batch_idx: int) -> torch.Tensor:
        if self.global_step == 6:
            raise ConnectionError
        return ABC.training_step(self, batch, batch_idx)

    with pytest.MonkeyPatch.context() as monkeypatch, pytest.raises(ConnectionError):
        train(preset, tmp_path / "run", config=HERE, on_start=stop)
    other = replace(preset, validation=Validation(every=2, draws=2))
    run = train(other, tmp_path / "run", config=HERE)
    check_equal_state(run, whole)
    assert [line["step"] for line in lines(run) if "validation/loss" in line] == [4, 6, 8]
    assert not run.difference(preset)
    assert open_run(run.folder, preset).preset.validation.every == 2


def test_levels_are_matched_by_their_values(tmp_path: Path) -> None:
    from setsup.experiments.training.monitoring.held_out import _codes

    trained = FactorTable([Factor("digit", Kind.NOMINAL, ("one", "two", "three"))], {"digit": [0, 1, 2]})
    other = FactorTable([Factor("digit", Kind.NOMINAL, ("three", "four", "one"))], {"digit": [0, 1, 2, -1]})
    assert _codes(trained, other, "digit", np.arange(4)).tolist() == [2, -1, 0, -1]


class Lossless(ABC):
    """Has a network for its loss."""

    loss: Any = None


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (Validation(every=1, knn=("shapes",)), r"^validation uses the factor 'shapes', .*did you mean 'shape'\?$"),
        (Validation(every=1, split="test"), "no split 'test'"),
        (Validation(every=1, dataset="gallery"), "^small/plain has no dataset named 'gallery' for validation"),
        (Validation(every=1, where="scale == 1.25"), "^validation cannot draw from its rows as .*draws 0$"),
    ],
)
def test_what_cannot_be_validated_leaves_no_folder(tmp_path: Path, asked: Validation, sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        train(replace(PLAIN, validation=asked), tmp_path / "run", config=HERE)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_method_without_a_loss(tmp_path: Path) -> None:
    dataset = PLAIN.data.open()
    method = Lossless(ABCObjective(), nn.Identity())
    preset = replace(PLAIN, validation=Validation(every=1))
    with pytest.raises(SetsupError, match=r"^validation requires Lossless.loss\(batch\), .* --validation.draws 0$"):
        hold_out(preset, method, dataset)
    preset = replace(PLAIN, validation=Validation(every=1, draws=0, knn=("shape",)))
    assert hold_out(preset, method, dataset) is not None


@pytest.mark.long("trainings")
def test_a_loss_that_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ABC.loss

    def loss(self: ABC, batch: Any) -> Any:
        return whole(self, batch) if self.training else whole(self, batch)[None].expand(3)

    monkeypatch.setattr(ABC, "loss", loss)
    with pytest.raises(SetsupError, match=r"^ABC.loss returned Tensor \(3,\), but validation requires a single number"):
        train(replace(PLAIN, steps=2, validation=Validation(every=1)), tmp_path, config=HERE)


@pytest.mark.long("trainings")
def test_a_further_dataset_is_validated_on(tmp_path: Path) -> None:
    further = {"large": Data("shapes3d-procedural", where=OTHERS)}
    asked = Validation(every=2, dataset="large", draws=2, knn=("shape",), rows=40)
    preset = replace(PLAIN, steps=2, sampler=replace(PLAIN.sampler, where=None), data=replace(PLAIN.data, where=FEW))
    run = train(replace(preset, datasets=further, validation=asked), tmp_path / "a", config=HERE)
    same = replace(asked, dataset=None, where=OTHERS)
    again = train(replace(preset, validation=same), tmp_path / "b", config=HERE)
    assert lines(run) == lines(again)
    other = train(replace(preset, validation=replace(same, where=None)), tmp_path / "c", config=HERE)
    assert lines(run)[1]["validation/loss"] != lines(other)[1]["validation/loss"]


def test_steps_of_several_draws_are_validated_at_their_end(tmp_path: Path) -> None:
    preset = replace(VALIDATED, steps=4, accumulate=2, validation=Validation(every=2, draws=1))
    run = train(preset, tmp_path / "validated", config=HERE)
    plain = train(replace(preset, validation=Validation()), tmp_path / "plain", config=HERE)
    check_equal_state(run, plain)
    assert [line["step"] for line in lines(run)] == [1, 2, 3, 4]
    assert [line["step"] for line in lines(run) if "validation/loss" in line] == [2, 4]


def test_state_by_row_and_plain_attributes_are_restored() -> None:
    from setsup.experiments.training.monitoring.validation import _undisturbed
    from setsup.methods.rows import RowState

    method = ABC(ABCObjective(), nn.Identity())
    method.bank, method.queue = RowState(5, 2, initial=1.0), torch.zeros(3)
    rows = torch.arange(5)
    before = method.bank.gather(rows)
    torch.manual_seed(0)
    expected = torch.random.get_rng_state()
    with _undisturbed(method, torch.device("cpu")):
        method.bank.update(rows[:3], torch.rand(3, 2))
        method.queue += 1
        assert not method.training
    assert torch.equal(method.bank.gather(rows), before)
    assert method.queue.tolist() == [0, 0, 0]
    assert torch.equal(torch.random.get_rng_state(), expected)
    assert method.training


def test_embeddings_that_are_not_finite_stop_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ABC.embed

    def embed(self: ABC, batch: Any) -> torch.Tensor:
        return whole(self, batch) * (1 if self.training else torch.nan)

    monkeypatch.setattr(ABC, "embed", embed)
    asked = Validation(every=2, draws=1, knn=("shape",), probe=("shape",), rows=20)
    run = train(replace(PLAIN, steps=2, data=replace(PLAIN.data, where=FEW), validation=asked), tmp_path, config=HERE)
    names = {"validation/loss", "validation/knn/shape", "validation/probe/shape"}
    assert {name: value for name, value in run.metrics().items() if name != "loss"} == dict.fromkeys(names)


@pytest.mark.parametrize(
    "wrong", [{"every": -1}, {"draws": -1}, {"rows": 0}, {"k": 0}, {"every": 1, "draws": 0}], ids=str
)
def test_settings_that_there_are_not(wrong: dict[str, int]) -> None:
    with pytest.raises(SetsupError, match=r"^validation "):
        Validation(**wrong)


def test_validation_is_a_setting_that_identifies_no_run() -> None:
    preset = put(PLAIN, {"validation.every": 10, "validation.probe": ("shape",)})
    assert isinstance(preset, Preset)
    assert (preset.validation.every, preset.validation.probe) == (10, ("shape",))
    assert flatten(preset) != flatten(PLAIN)
    assert training_settings(flatten(preset), False) == training_settings(flatten(PLAIN), False)
    assert smoke(preset).validation == replace(preset.validation, every=2, draws=2, rows=256)


@pytest.mark.long("trainings")
def test_a_recipe_of_an_augmentation_is_validated_too(tmp_path: Path) -> None:
    from tests.experiments.small import AUGMENTED

    preset = replace(AUGMENTED, steps=4, validation=Validation(every=2, draws=2, knn=("shape",), rows=20))
    run = train(preset, tmp_path / "a", config=HERE)
    again = train(preset, tmp_path / "b", config=replace(HERE, workers="thread"))
    assert lines(run) == lines(again)
    method = build_method(preset.method, SHAPES.factors, 0)
    assert "validation/loss" in lines(run)[3]
    assert method.training


def test_an_image_that_is_there_several_times_is_not_fitted_and_tested() -> None:
    whole = Numbered(60)
    repeated = whole.select(np.repeat(np.arange(30), 3))
    preset = replace(PLAIN, validation=Validation(every=1, draws=0, knn=("shape",), rows=20))
    found = hold_out(preset, ABC(ABCObjective(), nn.Identity()), repeated)
    assert found is not None
    assert len(found.fit)
    assert len(found.test)
    assert not set(repeated.rows[found.fit]) & set(repeated.rows[found.test])


class Looked(ABC):
    """Keeps the rows that it embeds."""

    def embed(self, batch: Any) -> Any:
        rows = batch["indices"]
        self.rows = [*getattr(self, "rows", ()), *rows.flatten().tolist()]
        return rows[..., None].float()


def test_rows_of_a_substitute_are_rows_that_are_trained_on() -> None:
    data = Data("shapes3d", substitute="shapes3d-procedural", where=FEW)
    asked = Validation(every=1, draws=0, knn=("shape",), rows=20)
    dataset, method = data.open(substitute=True), Looked(ABCObjective(), nn.Identity())
    held_out = hold_out(replace(PLAIN, data=data, validation=asked), method, dataset, substitute=True)
    assert held_out is not None
    held_out.accuracies(method, "cpu", "float32")
    assert {*method.rows} == {*held_out.fit, *held_out.test}
