"""Trainings that start from the weights of another run, and presets with several datasets and modalities."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments import Data, Measured, RunConfig, TrainedRun, evaluate, load_trained, open_run, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.initial_weights import InitialWeights, start_from  # noqa: E402
from setsup.experiments.runs.run_folder import default_folder  # noqa: E402
from setsup.experiments.settings import flatten, put  # noqa: E402
from tests.experiments.small import FEW, PLAIN, PRESETS, Tiny  # noqa: E402

HERE = RunConfig(workers=0)
FIRST = replace(PLAIN, name="small/first", steps=3)
SECOND = replace(PLAIN, name="small/second", steps=2, initial_run="small/first")
pytestmark = pytest.mark.long("trainings")


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {preset.name: preset for preset in (*PRESETS, FIRST, SECOND)}
    monkeypatch.setattr("setsup.experiments.runs.run_folder.find_named", known.get)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "last.ckpt", weights_only=True)["state_dict"]


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_the_second_stage_starts_from_the_run_of_its_seed(tmp_path: Path) -> None:
    folders = {seed: tmp_path / default_folder("small/first", seed, False, False) for seed in (0, 1)}
    for seed, folder in folders.items():
        train(FIRST, folder, seed=seed, config=HERE)
    run = train(SECOND, tmp_path / "small/second/seed-1", seed=1, config=HERE)
    assert run.preset.initial_run == str(folders[1])
    # the same as a method that is given these weights by hand, and trained on the same draws
    by_hand = build_method(Tiny(), run.factors(), 1)
    by_hand.load_state_dict(weights(folders[1]))
    torch.save({"state_dict": by_hand.state_dict()}, tmp_path / "weights.pt")
    of_file = train(replace(SECOND, initial_run=str(tmp_path / "weights.pt")), tmp_path / "other", seed=1, config=HERE)
    assert equal(weights(run.folder), weights(of_file.folder))
    digests = [json.loads((one.folder / "run.json").read_text())["initial_weights_sha256"] for one in (run, of_file)]
    assert digests[0] == digests[1]
    afresh = train(replace(SECOND, initial_run=None), tmp_path / "afresh", seed=1, config=HERE)
    assert not equal(weights(run.folder), weights(afresh.folder))


def test_a_run_resumes_where_its_initial_weights_are_gone_and_not_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = train(FIRST, tmp_path / "first", config=HERE)
    other = train(FIRST, tmp_path / "other", seed=5, config=HERE)
    monkeypatch.chdir(tmp_path)
    second = replace(SECOND, initial_run="first", steps=4, checkpoint_every=1)
    whole = train(second, tmp_path / "whole", config=HERE)
    part = train(replace(second, steps=2), tmp_path / "part", config=HERE)
    (part.folder / "run.json").write_text((whole.folder / "run.json").read_text())  # as if stopped at step 2
    monkeypatch.chdir("/")
    moved = first.folder.rename(tmp_path / "moved")
    resumed = train(replace(second, initial_run=str(tmp_path / "first")), part.folder, config=HERE)
    assert resumed.finished
    assert equal(weights(resumed.folder), weights(whole.folder))
    train(replace(second, initial_run=str(moved)), whole.folder, config=HERE)  # the same weights elsewhere
    with pytest.raises(SetsupError, match="contains another run: initial_weights is '"):
        train(replace(second, initial_run=str(other.folder)), whole.folder, config=HERE)
    with pytest.raises(SetsupError, match="initial_weights is None in that run, not '"):
        train(replace(second, steps=3, initial_run=str(moved)), moved, config=HERE)


def test_initial_weights_that_cannot_be_had(tmp_path: Path) -> None:
    folder = tmp_path / default_folder("small/second", 0, False, False)
    with pytest.raises(
        DataError, match=r"starts from a run of 'small/first' with seed 0, but .*/first/seed-0 does not exist"
    ):
        train(SECOND, folder, config=HERE)
    assert not folder.exists(), "what is refused leaves no folder"
    with pytest.raises(DataError, match="starts from a run of 'nowhere' with seed 0, but"):
        train(replace(SECOND, initial_run="nowhere"), folder, config=HERE)
    torch.save({"encoder.0.weight": torch.zeros(2)}, tmp_path / "some.pt")
    with pytest.raises(SetsupError, match=r"^ABC cannot start from .*some.pt \(encoder.1.weight is missing\); pass a"):
        train(replace(SECOND, initial_run=str(tmp_path / "some.pt")), folder, config=HERE)
    (tmp_path / "none.pt").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"none.pt is not a readable checkpoint"):
        train(replace(SECOND, initial_run=str(tmp_path / "none.pt")), folder, config=HERE)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"small/second cannot start from .*empty: no run found in "):
        train(replace(SECOND, initial_run=str(tmp_path / "empty")), folder, config=HERE)
    begun = train(replace(FIRST, steps=2), tmp_path / "begun", config=HERE)
    found = json.loads((begun.folder / "run.json").read_text())
    found["settings"]["steps"] = 3
    (begun.folder / "run.json").write_text(json.dumps(found))
    with pytest.raises(SetsupError, match="begun, which has completed 2 of 3 steps; finish that run first"):
        train(replace(SECOND, initial_run=str(begun.folder)), folder, config=HERE)


def test_a_method_takes_what_it_needs_of_other_networks(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Head(Tiny):
        """A method that has one layer of the first stage."""

        def build(self, table: Any, generator: torch.Generator) -> Any:
            method = super().build(table, generator)

            def load_initial(given: dict[str, torch.Tensor]) -> None:
                method.encoder[4].weight.data.copy_(given["head"])

            method.load_initial = load_initial
            return method

    torch.save({"head": torch.full((4, 16), 0.25)}, tmp_path / "head.pt")
    preset = replace(SECOND, method=Head(rate=1e-9), initial_run=str(tmp_path / "head.pt"))
    found = weights(train(preset, tmp_path / "run", config=HERE).folder)["encoder.4.weight"]
    torch.testing.assert_close(found, torch.full((4, 16), 0.25), atol=1e-6, rtol=0)
    torch.save({"body": torch.zeros(1)}, tmp_path / "head.pt")
    with pytest.raises(SetsupError, match=r"^ABC cannot start from .*head.pt \(KeyError: 'head'\); pass a run"):
        train(preset, tmp_path / "other", config=HERE)


def test_weights_that_a_method_cannot_load_are_named() -> None:
    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 3)

        def load_initial(self, given: dict[str, torch.Tensor]) -> None:
            self.load_state_dict(given)

    initial = InitialWeights(Path("some.pt"), {"layer.weight": torch.zeros(3, 2)}, "")
    with pytest.raises(SetsupError, match=r"start from some.pt \(layer.bias is missing\); pass a run"):
        start_from(Own(), initial)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Sizes:
    """How many rows each dataset of the preset has."""

    def measure(self, trained: TrainedRun) -> Measured:
        parts = {"training": trained.dataset, "gallery": trained.open("gallery")}
        return Measured({name: len(dataset) for name, dataset in parts.items()})


def test_evaluations_open_further_datasets_by_name(tmp_path: Path) -> None:
    gallery = Data("shapes3d-procedural", where=f"{FEW} and shape == 'cube'")
    preset = replace(PLAIN, steps=1, datasets={"gallery": gallery}, evaluations={"sizes": Sizes()})
    run = train(preset, tmp_path, config=HERE)
    assert evaluate(run, preset)["sizes"].values == {"training": 480_000, "gallery": 1_000}
    other = put(preset, {"datasets.gallery.where": f"{FEW} and wall_hue == 0"})
    assert flatten(other)["datasets.gallery.name"] == "shapes3d-procedural"
    assert evaluate(run, other)["sizes"].values["gallery"] == 400, "it does not change what is trained"
    assert train(other, tmp_path, config=HERE).finished
    assert open_run(tmp_path, replace(preset, datasets={})).preset.datasets == {}, "one was removed from the file"
    with pytest.raises(SetsupError, match=r"has no dataset named 'galery'; did you mean 'gallery'"):
        load_trained(run, preset=preset).open("galery")
    with pytest.raises(SetsupError, match="cannot use the name 'my gallery' for a dataset"):
        replace(preset, datasets={"my gallery": gallery})


def test_modalities_are_checked_before_anything_is_made(tmp_path: Path) -> None:
    data = Data("shapes3d-procedural", modalities=("image",))
    assert train(replace(PLAIN, steps=1, data=data), tmp_path / "run", config=HERE).finished
    with pytest.raises(DataError, match="has no modality 'imag'; did you mean 'image'"):
        train(replace(PLAIN, data=replace(data, modalities=("imag",))), tmp_path / "other", config=HERE)
    assert not (tmp_path / "other").exists()
