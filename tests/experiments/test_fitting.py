"""Settings that a method takes from the data: completed once, kept with the run, and no difference from the preset."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments import Run, RunConfig, evaluate, find_preset, load_trained, open_run, train  # noqa: E402
from setsup.experiments.configs import fit_to_batch  # noqa: E402
from setsup.experiments.report.registry import find_report, report_on  # noqa: E402
from setsup.experiments.runs.config_file import read_config  # noqa: E402
from setsup.experiments.runs.run_folder import check_begin  # noqa: E402
from setsup.experiments.training.dry_run import dry_run  # noqa: E402
from tests.experiments.fitted import HALVED, WHOLE, FlatSettings  # noqa: E402
from tests.experiments.small import Tiny  # noqa: E402

HERE = RunConfig(workers=0, accelerator="cpu")
FILE = str(Path(__file__).parent / "fitted.py")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(HALVED, tmp_path_factory.mktemp("run"), config=HERE)


def settings_of(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_text())["settings"]


def test_the_run_has_the_shape_after_the_augmentation(run: Run) -> None:
    assert settings_of(run.folder)["method.image"] == [3, 32, 32]
    assert run.preset.method.image == (3, 32, 32)
    assert open_run(run.folder, HALVED).preset.method.image == (3, 32, 32)
    assert run.state()["state_dict"]["layer.weight"].shape == (2, 3 * 32 * 32)


def test_a_run_is_opened_without_its_data(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup.opening.open", lambda *_, **__: pytest.fail("data were opened"))
    for preset in (None, HALVED, replace(HALVED, name="fitted/other")):
        trained = load_trained(open_run(run.folder, HALVED), device="cpu", preset=preset)
        assert trained.method.layer.in_features == 3 * 32 * 32
        assert trained.config.image == (3, 32, 32)


def test_the_same_command_resumes(tmp_path: Path) -> None:
    train(WHOLE, tmp_path, config=HERE)
    again = train(replace(WHOLE, steps=4), tmp_path, config=HERE)
    assert (again.progress().steps, again.preset.method.image) == (4, (3, 64, 64))
    about = json.loads((tmp_path / "run.json").read_text())
    assert about["from_data"] == {"method.image": None}
    explicit = replace(WHOLE, steps=4, method=FlatSettings(image=(3, 64, 64)))
    assert train(explicit, tmp_path, config=HERE).finished
    with pytest.raises(SetsupError, match=r"another run: method.width is 2 in that run, not 3"):
        train(replace(WHOLE, steps=4, method=FlatSettings(width=3)), tmp_path, config=HERE)
    with pytest.raises(SetsupError, match=r"another run: method.image is \[3, 64, 64\] in that run, not \[3, 32, 32\]"):
        train(replace(HALVED, name=WHOLE.name, steps=4, augmentation=None, method=Shrinking()), tmp_path, config=HERE)


def test_checks_download_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*words: Any) -> None:
        raise DataError("there is no connection")

    monkeypatch.setattr("setsup.methods.networks.published.download", offline)
    preset = replace(HALVED, initial_run="resnet50v2-imagenet")
    assert dry_run(preset, tmp_path / "run", config=HERE).fetches == "resnet50v2-imagenet"
    assert dry_run(HALVED, tmp_path / "run", config=HERE).fetches is None
    with pytest.raises(DataError, match=r"no connection.* instead of the name; pass --initial-run PATH"):
        train(preset, tmp_path / "run", config=HERE)
    assert not (tmp_path / "run").exists()


@dataclass(frozen=True, kw_only=True)
class Shrinking(FlatSettings):
    """They take another shape from the same images, as if the data had changed."""

    __qualname__ = "FlatSettings"  # by which run.json has the class

    def fit_to(self, batch: Any) -> "FlatSettings":
        return replace(self, image=(3, 32, 32))

    def build(self, table: Any, generator: Any) -> Any:
        return FlatSettings(image=(3, 64, 64)).build(table, generator)


def test_checks_write_nothing_and_take_both(run: Run, tmp_path: Path) -> None:
    plan = dry_run(HALVED, tmp_path / "absent", config=HERE)
    assert (plan.parameters, list(tmp_path.iterdir())) == (2 * 3 * 32 * 32 + 2, [])
    assert dry_run(HALVED, run.folder, config=HERE).from_step == 2
    # seeds of a sweep after the first are checked without data
    check_begin(run.folder, HALVED, 0, config=run.description["config"])
    with pytest.raises(SetsupError, match=r"method.hidden is None in that run, not 3"):
        check_begin(run.folder, replace(HALVED, method=FlatSettings(hidden=3)), 0, config=run.description["config"])


def test_it_does_not_differ_from_a_preset_that_leaves_it_to_the_data(run: Run, tmp_path: Path) -> None:
    assert run.difference(HALVED) == {}
    assert run.difference(replace(HALVED, method=run.preset.method)) == {}
    changed = replace(HALVED, method=FlatSettings(hidden=3, image=(3, 64, 64)))
    assert run.difference(changed) == {"method.hidden": (3, None), "method.image": ([3, 64, 64], [3, 32, 32])}
    given = train(replace(WHOLE, method=FlatSettings(hidden=3)), tmp_path, config=HERE)
    assert given.difference(WHOLE) == {"method.hidden": (None, 3)}, "only what the data completed is left to them"


def test_the_report_has_it_in_the_line_of_the_preset(run: Run) -> None:
    preset = find_preset(f"{FILE}:fitted/halved")
    found = evaluate(open_run(run.folder, preset), preset, device="cpu")
    assert found["length"].values == {"trained": 2 * 3 * 32 * 32, "untrained": 2 * 3 * 32 * 32}
    [line] = report_on(find_report(f"{FILE}:fitted/halved"), [run.folder]).lines
    assert (line.differs, line.values["trained"].mean) == ((), 6144.0)


def test_one_measurement_for_the_preset_and_the_run(run: Run, tmp_path: Path) -> None:
    stored: list[str] = []
    for preset in (None, HALVED, replace(HALVED, name="fitted/other")):
        evaluate(run, preset, device="cpu", on_stored=lambda name, _: stored.append(name))
    assert len(stored) >= 2, "measured once, whichever preset asks"


def test_the_file_of_settings_has_what_was_asked_for(run: Run, tmp_path: Path) -> None:
    text = (run.folder / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(f"file: {FILE}\n{text}")
    assert read_config(tmp_path / "config.yaml").preset.method.image is None


def test_settings_of_another_class_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SetsupError, match=r"Dict.fit_to must return an instance of the same class"):
        train(replace(WHOLE, method=Dict()), tmp_path / "run", config=HERE)
    assert list(tmp_path.iterdir()) == []


@dataclass(frozen=True, kw_only=True)
class Dict(FlatSettings):
    """They do not return settings."""

    def fit_to(self, batch: Any) -> Any:
        return {"image": (3, 64, 64)}


def test_settings_without_the_method_stay_as_they_are() -> None:
    tiny = Tiny()
    assert fit_to_batch(tiny, {}) is tiny
