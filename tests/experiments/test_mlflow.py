"""MLflow gets every step once, in one run of its own for each run folder: of a stub, and of MLflow where installed."""

import sys
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import RunConfig, Validation, train  # noqa: E402
from setsup.experiments.training import checkpointing  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from tests.experiments.small import PLAIN  # noqa: E402

CONFIG = RunConfig(workers=0, log=("mlflow",))
PRESET = replace(PLAIN, steps=6, checkpoint_every=2, validation=Validation(every=2, draws=1))


@dataclass
class FakeRun:
    """A run of MLflow, as far as Lightning and setsup ask for one."""

    tags: dict[str, str]
    params: dict[str, str] = field(default_factory=dict)
    history: list[tuple[str, int, float]] = field(default_factory=list)
    status: str = "RUNNING"

    @property
    def info(self) -> Any:
        return SimpleNamespace(run_id=str(id(self)), experiment_id="7", status=self.status)

    @property
    def data(self) -> Any:
        metrics = {name: value for name, _, value in self.history}
        return SimpleNamespace(params=self.params, metrics=metrics, tags=self.tags)


class FakeClient:
    """A tracking server for each address, in memory."""

    servers: ClassVar[dict[str, dict[str, FakeRun]]] = {}

    def __init__(self, uri: str) -> None:
        self.runs = self.servers.setdefault(uri, {})

    def get_experiment_by_name(self, name: str) -> Any:
        assert name == "setsup"
        return SimpleNamespace(experiment_id="7", lifecycle_stage="active") if self.runs else None

    def create_experiment(self, name: str, artifact_location: str | None) -> str:
        return "7"

    def create_run(self, experiment_id: str, tags: dict[str, str]) -> FakeRun:
        run = FakeRun(dict(tags))
        self.runs[run.info.run_id] = run
        return run

    def get_run(self, run_id: str) -> FakeRun:
        return self.runs[run_id]

    def search_runs(self, experiments: list[str], wanted: str, max_results: int = 1_000) -> list[FakeRun]:
        name, value = wanted.removeprefix("tags.`").removesuffix("'").split("` = '")
        return [run for run in self.runs.values() if run.tags.get(name) == value][:max_results]

    def get_metric_history(self, run_id: str, name: str) -> list[Any]:
        found = self.runs[run_id].history
        return [SimpleNamespace(step=step, value=value) for key, step, value in found if key == name]

    def log_batch(self, run_id: str, metrics: Any = (), params: Any = ()) -> None:
        run = self.runs[run_id]
        for one in params:
            assert run.params.setdefault(one.key, one.value) == one.value, "MLflow refuses a parameter that changes"
        run.history += [(one.key, one.step, one.value) for one in metrics]

    def update_run(self, run_id: str, status: str) -> None:
        self.runs[run_id].status = status

    set_terminated = update_run


@pytest.fixture
def fake_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that keeps what it is told."""
    parts = {
        "mlflow": {"set_tracking_uri": lambda uri: None},
        "mlflow.entities": {"Metric": SimpleNamespace, "Param": SimpleNamespace},
        "mlflow.tracking": {"MlflowClient": FakeClient, "context": SimpleNamespace(resolve_tags=dict)},
        "mlflow.tracking.context": {"resolve_tags": dict},
        "mlflow.utils": {},
        "mlflow.utils.mlflow_tags": {"MLFLOW_RUN_NAME": "mlflow.runName"},
    }
    for name, content in parts.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("lightning.pytorch.loggers.mlflow._MLFLOW_AVAILABLE", True)
    monkeypatch.setattr(FakeClient, "servers", {})


def fail_once(preset: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train until the machine goes down, three steps after the last checkpoint or less."""
    whole = ABC.training_step

    def training_step(self: ABC, batch: Any, batch_idx: int) -> torch.Tensor:
        if self.global_step == 3:
            raise ConnectionError
        return whole(self, batch, batch_idx)

    with monkeypatch.context() as patch:
        patch.setattr(ABC, "training_step", training_step)
        patch.setattr(checkpointing, "_FLUSH", 1)  # all steps were logged
        with pytest.raises(ConnectionError):
            train(preset, folder, config=CONFIG)


def check_one_run(client: Any, folder: Path) -> None:
    """One finished run with each step once, and with the first settings."""
    experiment = client.get_experiment_by_name("setsup")
    (run,) = client.search_runs([experiment.experiment_id], f"tags.`mlflow.runName` = '{PRESET.name} seed 0'")
    run_id = run.info.run_id
    assert [one.step for one in client.get_metric_history(run_id, "loss")] == [1, 2, 3, 4, 5, 6]
    assert [one.step for one in client.get_metric_history(run_id, "validation/loss")] == [2, 4, 6]
    assert (run.data.params["preset"], run.data.params["method.rate"]) == (PRESET.name, "0.001")
    assert run.data.params["workers"] == "0"
    assert run.info.status == "FINISHED"


@pytest.mark.long("other libraries")
@pytest.mark.usefixtures("fake_mlflow")
def test_mlflow_goes_on_in_the_run_that_was_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    fail_once(PRESET, tmp_path / "a", monkeypatch)
    ((uri, runs),) = FakeClient.servers.items()
    assert uri == f"sqlite:///{tmp_path / 'a' / 'mlflow.db'}"
    assert [run.status for run in runs.values()] == ["FAILED"]
    train(PRESET, tmp_path / "a", config=replace(CONFIG, workers="thread"))
    check_one_run(FakeClient(uri), tmp_path / "a")
    # a server that somebody named has a run for each folder
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracking.example")
    for folder in ("b", "c"):
        train(replace(PRESET, steps=1, validation=Validation()), tmp_path / folder, config=CONFIG)
    assert len(FakeClient.servers["http://tracking.example"]) == 2


@pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is not installed")
@pytest.mark.long("trainings")
@pytest.mark.filterwarnings("ignore")  # its own
def test_mlflow_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.tracking import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    fail_once(PRESET, tmp_path, monkeypatch)
    train(PRESET, tmp_path, config=replace(CONFIG, workers="thread"))
    check_one_run(MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}"), tmp_path)


def test_without_mlflow_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup.errors.installed", lambda module: module != "mlflow")
    with pytest.raises(SetsupError, match=r"^--log mlflow needs mlflow, which is not installed: pip install mlflow$"):
        train(PRESET, tmp_path / "run", config=CONFIG)
    assert not (tmp_path / "run").exists()
