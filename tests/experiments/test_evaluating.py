"""Evaluations of a run are measured on it, kept beside it, and asked for by any preset that trains the same."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import DataError, FactorError, SetsupError  # noqa: E402
from setsup.experiments import (  # noqa: E402
    Data,
    Measured,
    Run,
    RunConfig,
    TrainedRun,
    evaluate,
    find_preset,
    open_run,
    smoke,
    train,
)
from setsup.experiments.evaluating import check_evaluations  # noqa: E402
from setsup.experiments.evaluations import Probes  # noqa: E402
from setsup.experiments.runs.run_folder import begin  # noqa: E402
from tests.experiments.small import PLAIN, Tiny  # noqa: E402

HERE = RunConfig(workers=0)


@dataclass(frozen=True)
class Weights:
    """The sum of the magnitudes of all weights, times a number."""

    times: float = 1.0

    def measure(self, trained: TrainedRun) -> Measured:
        assert trained.device == "cpu"
        return Measured({"sum": self.times * sum(float(w.detach().abs().sum()) for w in trained.method.parameters())})


@dataclass(frozen=True)
class Broken:
    """An evaluation that fails."""

    def measure(self, trained: TrainedRun) -> Measured:
        raise DataError("it cannot be measured: measure something else")


SHORT = replace(PLAIN, steps=2, evaluations={"once": Weights(), "twice": Weights(times=2.0)})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(SHORT, tmp_path_factory.mktemp("run"), config=HERE)


@pytest.fixture
def fresh(run: Run) -> Run:
    """The run before anything was measured."""
    (run.folder / "evaluation.json").unlink(missing_ok=True)
    return run


def expected(run: Run) -> float:
    state = torch.load(run.folder / "last.ckpt", weights_only=True)["state_dict"]
    return sum(weight.abs().double().sum().item() for weight in state.values())


def test_all_evaluations_are_measured_and_kept(fresh: Run) -> None:
    found = evaluate(fresh, device="cpu")
    assert list(found) == ["once", "twice"]
    assert found["once"].values["sum"] == pytest.approx(expected(fresh))
    assert found["twice"].values["sum"] == pytest.approx(2 * expected(fresh))
    kept = json.loads((fresh.folder / "evaluation.json").read_text())
    assert list(kept) == ["once", "twice"]
    assert kept["twice"]["about"] == {"measure": "Weights", "times": 2.0}
    assert kept["twice"]["values"] == pytest.approx(dict(found["twice"].values))
    assert kept["twice"]["steps"] == 2


def test_some_are_measured_and_the_others_stay(fresh: Run) -> None:
    assert list(evaluate(fresh, only=["twice"], device="cpu")) == ["twice"]
    assert list(fresh.results()) == ["twice"]
    assert list(evaluate(fresh, only=("once",), device="cpu")) == ["once"]
    assert set(fresh.results()) == {"once", "twice"}


def test_another_preset_that_trains_the_same_brings_its_own(fresh: Run) -> None:
    other = replace(SHORT, name="small/other", shows="more", evaluations={"thrice": Weights(times=3.0)})
    assert list(evaluate(fresh, other, device="cpu")) == ["thrice"]
    assert fresh.results()["thrice"]["values"]["sum"] == pytest.approx(3 * expected(fresh))


def test_seeds_and_checkpoints_are_no_part_of_what_is_trained(fresh: Run) -> None:
    assert list(evaluate(fresh, replace(SHORT, seeds=9, checkpoint_every=2), device="cpu")) == ["once", "twice"]


def test_a_preset_that_trains_something_else_is_refused(fresh: Run) -> None:
    other = replace(SHORT, name="small/other", method=Tiny(rate=1.0), steps=3)
    sentence = "small/other differs from the preset of the run .*: .*method.rate 1.0 instead of 0.001"
    with pytest.raises(SetsupError, match=sentence) as caught:
        evaluate(fresh, other, device="cpu")
    assert "steps 3 instead of 2" in str(caught.value)
    advice = "replace(preset, method=replace(preset.method, rate=0.001), steps=2)"
    assert str(caught.value).endswith(advice)
    fixed = replace(other, method=replace(other.method, rate=0.001), steps=2)
    check_evaluations(fresh, fixed)
    with pytest.raises(SetsupError) as caught:
        evaluate(fresh, replace(other, data=Data("mnist", "train")), device="cpu")
    assert "replace(" not in str(caught.value)
    assert fresh.results() == {}


def test_evaluations_that_there_are_not(fresh: Run) -> None:
    with pytest.raises(SetsupError, match="small/plain has no evaluation named 'twic'; did you mean 'twice'"):
        evaluate(fresh, only=["once", "twic"], device="cpu")
    assert fresh.results() == {}


def test_names_of_factors_are_looked_up_before_the_first_is_measured(fresh: Run) -> None:
    late = Probes(factors=("wall_hue", "shap"), samples=100)
    preset = replace(SHORT, evaluations={"once": Weights(), "linear": late})
    sentence = "'linear' of small/plain uses the factor 'shap', which the training data .*; did you mean 'shape'"
    with pytest.raises(FactorError, match=sentence):
        evaluate(fresh, preset, device="cpu")
    assert fresh.results() == {}
    assert list(evaluate(fresh, preset, only=["once"], device="cpu")) == ["once"]


def test_what_was_measured_before_an_error_is_kept(fresh: Run) -> None:
    preset = replace(SHORT, evaluations={"once": Weights(), "broken": Broken(), "twice": Weights()})
    with pytest.raises(DataError, match="it cannot be measured"):
        evaluate(fresh, preset, device="cpu")
    assert list(fresh.results()) == ["once"]


def test_a_run_is_measured_at_any_of_its_checkpoints(tmp_path: Path) -> None:
    run = begin(tmp_path, SHORT, 0, config={"precision": "float32"})
    with pytest.raises(DataError, match="contains no checkpoint yet; repeat the command that started the run"):
        evaluate(run, device="cpu")
    assert not (tmp_path / "evaluation.json").exists()


def test_an_experiment_that_trains_nothing_is_measured(tmp_path: Path) -> None:
    preset = smoke(find_preset("abc/figS3"))
    run = train(preset, tmp_path, config=HERE)
    assert (run.finished, run.progress().steps, run.checkpoint.exists()) == (True, 0, False)
    (found,) = evaluate(open_run(tmp_path), device="cpu").values()
    assert set(found.curves) == {"sets of 4", "sets of 32"}
    with pytest.raises(SetsupError, match="differs from the preset of the run"):
        evaluate(run, SHORT, device="cpu")
