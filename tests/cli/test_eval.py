"""``setsup eval``: a preset's measurements on runs, with settings of their own."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.experiments.runs import run as library_run
from tests.cli.refusals import refused

Run = Callable[..., Any]

OWN = Path(__file__).parent / "own_method.py"
RUN = "runs/own/mean/seed-0"
MEAN = ["--preset", f"{OWN}:own/mean"]


@pytest.fixture
def trained(setsup: Run, digits: Path) -> Path:
    assert setsup("train", f"{OWN}:own/mean", "--root", digits, "--seeds", 0, 1).code == 0
    return Path(RUN)


def kept(run: Path | str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(run) / "evaluation.json").read_text())
    return found


@pytest.mark.long("trainings")
def test_results_are_printed_and_kept(setsup: Run, trained: Path) -> None:
    found = setsup("eval", trained, *MEAN)
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines()[0] == f"{RUN}: own/mean, seed 0, 20 steps"
    assert found.out.splitlines()[-1] == f"{RUN}/evaluation.json"
    assert "SUBSTITUTE" not in found.out
    assert "NOT FINISHED" not in found.out
    results = kept(trained)
    assert {name: entry["about"]["samples"] for name, entry in results.items()} == {"spread": 50, "second": 20}
    lines = [line.split() for line in found.out.splitlines()]
    for name, entry in results.items():
        assert [name, "deviation", f"{entry['values']['deviation']:.4g}"] in lines
        assert [name, "nothing", "nan"] in lines
        assert [name, "line", "curve", "of", "2", "points"] in lines


@pytest.mark.long("trainings")
def test_the_number_is_that_of_the_embeddings(setsup: Run, trained: Path) -> None:
    """All 200 rows of the split are asked for, so the order in which they are drawn is of no account."""
    assert setsup("eval", trained, *MEAN, "--only", "spread", "--spread.samples", "200").code == 0
    assert setsup("embed", trained, *MEAN).code == 0
    embedded = np.load(trained / "embeddings-mnist-train" / "embeddings.npy")
    assert kept(trained)["spread"]["values"]["deviation"] == pytest.approx(float(embedded.std()), rel=1e-5)


@pytest.mark.long("trainings")
def test_settings_of_evaluations_are_options(setsup: Run, trained: Path) -> None:
    found = setsup("eval", trained, *MEAN, "--spread.scale", "2", "--second.samples", "30", "--second.scale=0")
    assert found.code == 0
    results = kept(trained)
    assert results["spread"]["about"] == {"measure": "Spread", "samples": 50, "scale": 2.0}
    assert results["second"]["about"] == {"measure": "Spread", "samples": 30, "scale": 0.0}
    assert results["second"]["values"]["deviation"] == 0
    shown = " ".join(re.sub("[│╭╮╰╯─]", " ", setsup("eval", trained, *MEAN, "--help").out).split())
    assert "Usage: setsup eval RUNS ... [OPTIONS]" in shown
    assert "--spread.samples N [default: 50]" in shown
    assert "--second.samples N [default: 20]" in shown


@pytest.mark.long("trainings")
def test_each_is_announced_before_it_is_made(
    setsup: Run, trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    save = library_run.Run.save

    def saved_now(run: Any, *words: Any) -> None:
        said.append(capsys.readouterr().out)
        save(run, *words)

    monkeypatch.setattr(library_run.Run, "save", saved_now)
    assert setsup("eval", trained, *MEAN).code == 0
    assert said == [
        f"{RUN}: own/mean, seed 0, 20 steps\nmeasuring spread, 1 of 2: Spread, samples 50, scale 1.0\n",
        "measuring second, 2 of 2: Spread, samples 20, scale 1.0\n",
    ]
    said.clear()
    assert setsup("eval", trained, *MEAN, "--only", "second", "--again", "--json").code == 0
    assert said == [""]


@pytest.mark.long("trainings")
def test_what_was_measured_before_is_printed(setsup: Run, trained: Path) -> None:
    first = setsup("eval", trained, *MEAN)
    second = setsup("eval", trained, *MEAN)
    assert "measuring" not in second.out
    said = "measured before: spread, 1 of 2: Spread, samples 50, scale 1.0"
    assert said in second.out.splitlines()
    assert second.out.replace("measured before:", "measuring") == first.out
    assert setsup("eval", trained, *MEAN, "--again").out == first.out
    changed = setsup("eval", trained, *MEAN, "--spread.samples", "20").out
    assert "measuring spread, 1 of 2" in changed
    assert "measured before: second, 2 of 2" in changed


@pytest.mark.long("trainings")
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_measured(
    setsup: Run, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests may run as root, whom no rights hinder: a folder stands in the place of the file."""
    (trained / "evaluation.json").mkdir()
    monkeypatch.setattr("setsup.experiments.evaluating.load_trained", None)
    found = setsup("eval", trained, *MEAN)
    assert found.code == 2
    assert found.err.startswith(f"setsup: cannot write {RUN}/evaluation.json: a folder of this name exists; ")


@pytest.mark.long("trainings")
def test_some_of_them_leave_the_others(setsup: Run, trained: Path) -> None:
    assert setsup("eval", trained, *MEAN).code == 0
    before = kept(trained)
    found = setsup("eval", trained, *MEAN, "--only", "second", "--second.samples", "10", "--json")
    assert list(found.json[0]["evaluations"]) == ["second"]
    after = kept(trained)
    assert after["spread"] == before["spread"]
    assert after["second"]["about"]["samples"] == 10


@pytest.mark.long("trainings")
def test_several_runs_in_one_json_value(setsup: Run, trained: Path) -> None:
    folders = [RUN, "runs/own/mean/seed-1"]
    found = setsup("eval", *folders, *MEAN, "--only", "spread", "--spread.samples", "30", "--json")
    assert (found.code, found.err) == (0, "")
    assert [(entry["folder"], entry["seed"]) for entry in found.json] == [(folders[0], 0), (folders[1], 1)]
    for entry, folder in zip(found.json, folders, strict=True):
        assert (entry["preset"], entry["steps"], entry["finished"]) == ("own/mean", 20, True)
        assert (entry["substitute"], entry["smoke"]) == (False, False)
        spread = entry["evaluations"]["spread"]
        assert spread["about"]["samples"] == kept(folder)["spread"]["about"]["samples"] == 30
        assert spread["values"]["nothing"] is None


@pytest.mark.long("trainings")
def test_another_preset_that_trains_the_same(setsup: Run, trained: Path) -> None:
    assert "--third.samples" not in setsup("eval", trained, *MEAN, "--help").out
    twin = ["--preset", f"{OWN}:own/twin"]
    found = setsup("eval", trained, *twin, "--third.scale", "3", "--json")
    assert (found.code, found.err) == (0, "")
    assert (found.json[0]["preset"], list(found.json[0]["evaluations"])) == ("own/twin", ["third"])
    assert kept(trained)["third"]["about"] == {"measure": "Spread", "samples": 7, "scale": 3.0}
    other = setsup("eval", trained, "--preset", f"{OWN}:own/other")
    assert (other.code, other.out) == (2, "")
    assert f"own/other differs from the preset of the run {RUN}: method.width 5 instead of 3" in other.err


@pytest.mark.long("trainings")
def test_a_file_alone_stands_for_the_preset_of_the_run(setsup: Run, trained: Path) -> None:
    found = setsup("eval", trained, "--preset", OWN, "--json")
    assert (found.code, found.err) == (0, "")
    assert found.json[0]["preset"] == "own/mean"
    assert setsup("embed", trained, "--preset", OWN).code == 0


def test_unfinished_runs_and_substitutes_are_labelled(
    setsup: Run, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(digits, tmp_path / "data" / "mnist")
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("STOP", "SIGTERM 4")
    preset = f"{OWN}:own/stand"
    assert setsup("train", preset, "--substitute").code == 130
    run = "runs/own/stand-substitute/seed-0"
    found = setsup("eval", run, "--preset", preset)
    assert found.code == 0
    assert found.out.splitlines()[:3] == [
        f"{run}: own/stand, seed 0, 5 steps",
        "NOT FINISHED: the preset has 20 steps",
        "trained on mnist, a SUBSTITUTE for shapes3d",
    ]
    (entry,) = setsup("eval", run, "--preset", preset, "--json").json
    assert (entry["substitute"], entry["finished"], entry["steps"]) == (True, False, 5)


@pytest.mark.long("trainings")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "`setsup eval` requires the argument RUNS: folders of runs of `setsup train`"),
        (["--json"], "`setsup eval` requires the argument RUNS"),
        (["nowhere"], "no run found in nowhere: run.json is missing"),
        (["runs"], f"it contains the runs {RUN}, runs/own/mean/seed-1"),
        ([RUN, "--preset", f"{OWN}:own/nothing"], "choose one, for example "),
        ([RUN, *MEAN, "--only", "spraed"], "own/mean has no evaluation named 'spraed'; did you mean 'spread'?"),
        ([RUN, *MEAN, "--spread.sample", "3"], "unknown option '--spread.sample'; did you mean '--spread.samples'"),
        ([RUN, *MEAN, "--spread.sample", "3"], f"(`setsup eval {RUN} --help` lists the options)"),
        ([RUN, *MEAN, "--spread.samples", "all"], "--spread.samples must be an integer, not 'all'"),
        ([RUN, *MEAN, "--device", "abacus"], "--device abacus is not available"),
    ],
)
def test_what_is_refused(setsup: Run, trained: Path, words: list[str], sentence: str) -> None:
    found = setsup("eval", *words)
    refused(found, sentence)


@pytest.mark.usefixtures("watched")
def test_a_preset_without_evaluations(setsup: Run, digits: Path) -> None:
    preset = f"{OWN}:own/unmeasured"
    found = setsup("train", preset, "--root", digits, "--steps", 2)
    run = "runs/own/unmeasured/seed-0"
    assert found.err.splitlines()[-1] == f"next: setsup embed {run}"
    found = setsup("eval", run, "--preset", preset)
    refused(found, f"own/unmeasured has no evaluations; compute embeddings with `setsup embed {run}`")


def test_an_evaluation_without_settings(setsup: Run, digits: Path) -> None:
    preset = f"{OWN}:own/count"
    assert setsup("train", preset, "--root", digits, "--steps", 2).code == 0
    found = setsup("eval", "runs/own/count/seed-0", "--preset", preset, "--spread.samples", "30")
    assert (found.code, found.err) == (0, "")
    results = kept("runs/own/count/seed-0")
    assert results["count"]["values"] == {"rows": 200}
    assert results["spread"]["about"]["samples"] == 30


@pytest.mark.long("trainings")
def test_a_setting_that_is_typed_reaches_all_runs_be_it_the_default_of_the_first(setsup: Run, digits: Path) -> None:
    folders = []
    for name in ("mean", "wide"):
        assert setsup("train", f"{OWN}:own/{name}", "--root", digits, "--steps", 2).code == 0
        folders.append(f"runs/own/{name}/seed-0")
    asked = ["eval", *folders, "--preset", OWN, "--only", "spread"]
    assert setsup(*asked).code == 0
    assert [kept(folder)["spread"]["about"]["samples"] for folder in folders] == [50, 20]
    assert setsup(*asked, "--spread.samples", "50").code == 0
    assert [kept(folder)["spread"]["about"]["samples"] for folder in folders] == [50, 50]


def test_names_of_options_are_those_that_presets_refuse() -> None:
    from setsup.experiments.preset import _OPTIONS
    from setsup_cli.commands.eval import Options

    assert {field.name for field in fields(Options)} | {"help"} == set(_OPTIONS)
