"""``setsup train`` with files of settings, plans, sweeps, runs side by side, longer runs and kept checkpoints."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.cli.refusals import refused

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

Run = Callable[..., Any]

OWN = Path(__file__).parent / "own_method.py"
MEAN = f"{OWN}:own/mean"
ROOT = Path(__file__).resolve().parents[2]


def weights(folder: Path | str) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(Path(folder, "last.ckpt"), weights_only=True)["state_dict"]
    return found


def equal(one: Path | str, other: Path | str) -> bool:
    """Whether two runs have the same weights and metrics, bit for bit."""
    same = Path(one, "metrics.jsonl").read_bytes() == Path(other, "metrics.jsonl").read_bytes()
    these, those = weights(one), weights(other)
    return same and these.keys() == those.keys() and all(torch.equal(these[name], those[name]) for name in these)


class TestFiles:
    @pytest.mark.long("trainings")
    def test_what_is_printed_and_what_a_run_keeps_train_the_same(self, setsup: Run, digits: Path) -> None:
        words = ["--root", digits, "--steps", 3, "--method.betas", 0.1, "1e-3", "--method.pairs"]
        words = [*words[:-1], "--sampler.size", 5, "--seeds", 3, "--workers", "thread"]
        printed = setsup("train", MEAN, *words, "--print-config")
        assert (printed.code, printed.err) == (0, "")
        assert not Path("runs").exists()
        Path("mine.yaml").write_text(printed.out)
        content = yaml.safe_load(printed.out)
        assert (content["preset"], content["file"], content["seeds"]) == ("own/mean", str(OWN.resolve()), [3])
        assert (content["settings"]["steps"], content["settings"]["sampler"]["class"]) == (3, "Sets")
        assert content["settings"]["method"]["betas"] == [0.1, 0.001]
        assert content["config"]["workers"] == "thread"
        assert setsup("train", MEAN, *words).code == 0
        for file, out in (("mine.yaml", "printed"), ("runs/own/mean/seed-3/config.yaml", "kept")):
            found = setsup("train", "--config", file, "--out", out)
            assert (found.code, found.err) == (0, "")
            assert "changed: sampler.size 5 (not 4), " in found.out
            assert equal(f"{out}/seed-3", "runs/own/mean/seed-3")
        kept = Path("runs/own/mean/seed-3/config.yaml")
        assert yaml.safe_load(kept.read_text()) == content
        assert setsup("train", "--config", "mine.yaml", "--print-config").out == printed.out
        assert setsup("train", "--config", "mine.yaml", "--print-config", "--json").json == content

    @pytest.mark.long("trainings")
    def test_a_preset_with_further_datasets(self, setsup: Run, digits: Path) -> None:
        words = ["orbits/mnist-oj", "--smoke", "--root", digits, "--datasets.test.split", "classification"]
        Path("mine.yaml").write_text(setsup("train", *words, "--print-config").out)
        datasets = yaml.safe_load(Path("mine.yaml").read_text())["settings"]["datasets"]
        assert datasets["test"]["split"] == "classification"
        assert setsup("train", "--config", "mine.yaml").code == 0
        kept = Path("runs/orbits/mnist-oj-smoke/seed-0")
        found = setsup("train", "--config", kept / "config.yaml", "--out", "again")
        assert (found.code, found.err) == (0, "")
        assert equal("again/seed-0", kept)
        kept_settings = (json.loads((one / "run.json").read_text())["settings"] for one in (kept, Path("again/seed-0")))
        assert next(kept_settings) == next(kept_settings)

    def test_options_win_over_the_file(self, setsup: Run, digits: Path) -> None:
        words = ["--root", digits, "--steps", 3, "--sampler.size", 5, "--smoke", "--substitute"]
        Path("mine.yaml").write_text(setsup("train", MEAN, *words, "--print-config").out)
        more = ["--sampler.inactive", "digit", "split", "--sampler.size", 6, "--seeds", 1, 2, "--precision", "bf16"]
        content = yaml.safe_load(setsup("train", "--config", "mine.yaml", *more, "--print-config").out)
        assert (content["seeds"], content["smoke"], content["substitute"]) == ([1, 2], True, True)
        assert content["settings"]["sampler"]["size"] == 6
        assert content["settings"]["sampler"]["inactive"] == ["digit", "split"]
        assert (content["settings"]["steps"], content["config"]["precision"]) == (3, "bf16")
        moved = setsup("train", MEAN, "--config", "mine.yaml", "--print-config")
        assert (moved.code, yaml.safe_load(moved.out)["file"]) == (0, str(OWN.resolve()))

    def test_a_short_file_of_ones_own(self, setsup: Run) -> None:
        Path("mine.yaml").write_text(
            f"preset: own/mean\nfile: {OWN}\nseeds: 2\nsettings:\n  steps: 7\n  method: {{rate: 1e-3}}\n"
        )
        content = yaml.safe_load(setsup("train", "--config", "mine.yaml", "--print-config").out)
        assert (content["seeds"], content["settings"]["steps"]) == ([2], 7)
        assert content["settings"]["method"]["rate"] == 0.001
        assert content["settings"]["sampler"]["size"] == 4

    def test_a_preset_whose_file_has_changed(self, setsup: Run, digits: Path) -> None:
        printed = setsup("train", MEAN, "--root", digits, "--steps", 2, "--print-config").out
        digest = yaml.safe_load(printed)["file_sha256"]
        Path("mine.yaml").write_text(printed.replace(digest, "a" * 64))
        found = setsup("train", "--config", "mine.yaml", "--dry-run")
        assert "FILE CHANGED: the file of the preset has changed since" in found.out

    def test_a_path_instead_of_a_preset(self, setsup: Run, digits: Path) -> None:
        printed = setsup("train", MEAN, "--root", digits, "--steps", 2, "--print-config").out
        Path("run").mkdir()
        Path("run/config.yaml").write_text(printed)
        Path("run/run.json").write_text('{"preset": "own/mean"}')
        for path, what in (("run", "the folder of a run"), ("run/config.yaml", "a file of settings")):
            found = setsup("train", path)
            assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
            assert found.err.startswith(f"setsup: {path} is {what}, not a preset; ")
            meant = found.err.split("`")[1].split()
            assert setsup(*meant[1:], "--print-config").out == printed

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("preset: [", "mine.yaml could not be parsed as YAML"),
            ("settings: {}", "mine.yaml, line 1: preset is missing"),
            ("preset: abc/fig3z", "mine.yaml: unknown preset 'abc/fig3z'"),
            ("preset: abc/fig3a\nsetings: {}", "mine.yaml, line 2: unknown key 'setings'; did you mean 'settings'"),
            ("preset: abc/fig3a\nsettings: {method: {rat: 1}}", "mine.yaml: unknown setting 'method.rat'; did you"),
            ("preset: abc/fig3a\nsettings: {method: {rate: x}}", "mine.yaml: setting method.rate must be float, not"),
            ("preset: abc/fig3a\nsettings: {method: Other}", "mine.yaml: setting method must be a ABCSettings"),
            ("preset: abc/fig3a\nsettings: {steps: 0}", "mine.yaml: abc/fig3a: steps must be 1 or more with a method"),
            (
                "preset: abc/fig3a\nsettings: {1: 2}",
                "settings must be a mapping whose keys are strings (the key 1 is of type int)",
            ),
            ("preset: abc/fig3a\nseeds: [x]", "mine.yaml, line 2: seeds must be a list of integers, not ['x']"),
            ("preset: abc/fig3a\nconfig: {presision: bf16}", "mine.yaml: config: unknown setting 'presision'; did"),
            ("preset: abc/fig3a\nconfig: {devices: 0}", "mine.yaml: config: devices must be 1 or more, not 0"),
            ("preset: own/mean\nfile: gone.py", "gone.py"),
        ],
    )
    def test_what_is_refused_is_one_sentence(self, setsup: Run, text: str, sentence: str) -> None:
        Path("mine.yaml").write_text(text)
        refused(setsup("train", "--config", "mine.yaml", "--substitute"), sentence)
        assert not Path("runs").exists()

    def test_another_preset_and_a_file_that_is_not_there(self, setsup: Run) -> None:
        Path("mine.yaml").write_text(setsup("train", "abc/fig3a", "--print-config").out)
        assert (
            "the config is for the preset abc/fig3a, not abc/fig3b; for a preset of your own, set `file` to its path"
            in setsup("train", "abc/fig3b", "--config", "mine.yaml").err
        )
        assert (
            "with --config, a preset must be the first argument"
            in setsup("train", "--config", "mine.yaml", "--steps", 3, "abc/fig3a").err
        )
        assert (
            "other.yaml does not exist; `setsup train PRESET --print-config`"
            in setsup("train", "--config", "other.yaml").err
        )


class TestDryRun:
    def test_it_says_what_would_be_trained_and_writes_nothing(self, setsup: Run, digits: Path, tmp_path: Path) -> None:
        words = ["train", MEAN, "--root", digits, "--seeds", 0, 1, "--dry-run"]
        before = sorted(tmp_path.rglob("*"))
        found = setsup(*words)
        assert (found.code, found.err) == (0, "")
        assert sorted(tmp_path.rglob("*")) == before
        lines = [line.strip() for line in found.out.splitlines()]
        assert "a step: 2 sets of 4" in lines
        assert "networks: 2,355 parameters" in lines, "784 × 3 + 3"
        assert "seed 1: runs/own/mean/seed-1: 20 steps" in lines
        plans = setsup(*words, "--json").json["runs"]
        assert [(plan["seed"], plan["rows"], plan["draw"]) for plan in plans] == [
            (seed, int(lines[-4].split()[1].replace(",", "")), [2, 4]) for seed in (0, 1)
        ]

    def test_it_finds_what_training_would(self, setsup: Run, digits: Path) -> None:
        words = ["train", MEAN, "--root", digits]
        assert "unknown factor 'digits'" in setsup(*words, "--sampler.inactive", "digits", "--dry-run").err
        assert setsup(*words, "--steps", 3).code == 0
        before = {path: path.read_bytes() for path in Path("runs/own/mean/seed-0").iterdir()}
        assert "contains another run" in setsup(*words, "--method.rate", 1, "--dry-run").err
        assert "seed-0: 2 steps, from step 3" in setsup(*words, "--steps", 5, "--dry-run").out
        assert before == {path: path.read_bytes() for path in Path("runs/own/mean/seed-0").iterdir()}


@pytest.mark.long("trainings")
def test_a_longer_run(setsup: Run, digits: Path) -> None:
    words = ["train", MEAN, "--root", digits]
    assert setsup(*words, "--steps", 3).code == 0
    found = setsup(*words, "--steps", 5)
    assert (found.code, "resuming from step 3" in found.out) == (0, True)
    assert setsup(*words, "--steps", 5, "--out", "whole").code == 0
    assert equal("runs/own/mean/seed-0", "whole/seed-0")
    refused = setsup(*words, "--steps", 4)
    assert (refused.code, "has been trained for 5 steps, more than the requested 4" in refused.err) == (2, True)


@pytest.mark.long("trainings")
def test_checkpoints_that_are_kept(setsup: Run, digits: Path) -> None:
    run = "runs/own/mean/seed-0"
    words = ["train", MEAN, "--root", digits, "--steps", 6]
    assert setsup(*words, "--keep-every", 2, "--keep-best", "loss").code == 0
    assert setsup("train", MEAN, "--root", digits, "--steps", 4, "--out", "short").code == 0
    evaluated = setsup("eval", run, "--preset", MEAN, "--checkpoint", "step-4")
    assert (evaluated.code, evaluated.err) == (0, "")
    assert "checkpoint step-000004, of step 4" in evaluated.out
    assert evaluated.out.splitlines()[-1] == f"{run}/evaluation-step-000004.json"
    assert not Path(run, "evaluation.json").exists()
    assert setsup("eval", "short/seed-0", "--preset", MEAN).code == 0
    kept, short = (
        json.loads(Path(file).read_text())["spread"]["values"]
        for file in (f"{run}/evaluation-step-000004.json", "short/seed-0/evaluation.json")
    )
    assert kept == short
    embedded = setsup("embed", run, "--preset", MEAN, "--checkpoint", "step-4", "--json").json
    other = setsup("embed", "short/seed-0", "--preset", MEAN, "--json").json
    files = [found["files"]["embeddings"] for found in (embedded, other)]
    assert np.array_equal(*map(np.load, files))
    assert files[0] == f"{run}/embeddings-mnist-train-step-000004/embeddings.npy"
    (best,) = setsup("eval", run, "--preset", MEAN, "--checkpoint", "best", "--json").json
    assert (best["checkpoint"], best["steps"] in (2, 4, 6)) == ("best", True)
    refused = setsup("embed", run, "--preset", MEAN, "--checkpoint", "step-3")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "has no checkpoint 'step-000003' (available: best, step-000002, step-000004, step-000006)" in refused.err
    exported = setsup("export", run, "weights.pt", "--preset", MEAN, "--checkpoint", "step-4", "--json").json
    assert (exported["steps"], exported["file"]) == (4, "weights.pt")
    assert torch.equal(torch.load("weights.pt")["layer.weight"], weights("short/seed-0")["layer.weight"])


class TestSweeps:
    SWEEP = ("--sweep", "method.rate=0.1,0.2", "--sweep", "sampler.size=4,5")

    @pytest.mark.long("trainings")
    def test_the_points_are_the_runs_with_these_settings(self, setsup: Run, digits: Path) -> None:
        words = ["train", MEAN, "--root", digits, "--steps", 2, "--seeds", 0, 1]
        found = setsup(*words, "--sweep", "method.rate=0.1,0.2", "--json")
        assert (found.code, found.err) == (0, "")
        points = found.json["sweep"]
        assert [point["values"] for point in points] == [{"method.rate": 0.1}, {"method.rate": 0.2}]
        losses = []
        for point, rate in zip(points, (0.1, 0.2), strict=True):
            folder = f"runs/own/mean/method.rate={rate}"
            assert point["folder"] == folder
            assert setsup(*words, "--method.rate", rate, "--out", f"by-hand-{rate}").code == 0
            assert all(equal(f"{folder}/seed-{seed}", f"by-hand-{rate}/seed-{seed}") for seed in (0, 1))
            losses.append([run["metrics"]["loss"] for run in point["runs"]])
            assert point["metrics"]["loss"]["mean"] == pytest.approx(np.mean(losses[-1]))
            assert point["metrics"]["loss"]["std"] == pytest.approx(np.std(losses[-1], ddof=1))
        again = setsup(*words, "--sweep", "method.rate=0.1,0.2,0.3")
        assert again.out.count("is finished") == 4
        table = again.out.splitlines()[-3:]
        assert [line.split()[:2] for line in table] == [["0.1", "2"], ["0.2", "2"], ["0.3", "2"]]

    def test_values_are_those_of_the_option(self, setsup: Run, digits: Path) -> None:
        words = ["train", MEAN, "--root", digits, "--dry-run", "--json"]
        values = [
            [run["values"][name] for run in setsup(*words, "--sweep", f"{name}={text}").json["runs"]]
            for name, text in (
                ("data.where", "digit == 3,digit >= 4"),
                ("sampler.inactive", "digit,digit split"),
                ("method.note", "none,1"),
            )
        ]
        assert values == [["digit == 3", "digit >= 4"], [["digit"], ["digit", "split"]], [None, "1"]]

    def test_several_are_combined(self, setsup: Run, digits: Path) -> None:
        found = setsup("train", MEAN, "--root", digits, *self.SWEEP, "--dry-run", "--json")
        folders = [Path(plan["folder"]).parent.name for plan in found.json["runs"]]
        assert folders == [f"method.rate={rate},sampler.size={size}" for rate in (0.1, 0.2) for size in (4, 5)]
        assert [plan["draw"] for plan in found.json["runs"]] == [[2, 4], [2, 5]] * 2

    @pytest.mark.parametrize(
        ("sweep", "sentence"),
        [
            (["method.rate=0.1,x"], "--method.rate must be a number, not 'x'"),
            (["method.rate"], "--sweep must be SETTING=VALUE,VALUE"),
            (["method.rat=1,2"], "unknown setting 'method.rat'; did you mean 'method.rate'"),
            (["steps=1,2", "steps=3"], "--sweep steps=… is specified twice"),
            (["sampler.inactive=digit,number"], "sampler.inactive=number: unknown factor 'number'"),
        ],
    )
    def test_errors_in_any_point_come_first(self, setsup: Run, digits: Path, sweep: list[str], sentence: str) -> None:
        found = setsup("train", MEAN, "--root", digits, "--steps", 2, "--sweep", *sweep)
        assert (found.code, found.out, found.err.count("\n")) == (2, "", 1), found.err
        assert sentence in found.err
        assert not Path("runs").exists()

    def test_a_point_that_fails_does_not_keep_others_from_being_trained(self, setsup: Run, digits: Path) -> None:
        found = setsup("train", MEAN, "--root", digits, "--steps", 3, "--sweep", "method.rate=1e30,0.1")
        assert found.code == 2
        assert "method.rate=1e+30/seed-0: the loss of step 2 of own/mean is not finite" in found.err
        assert [line.split()[:3] for line in found.out.splitlines()[-2:]] == [
            ["1e+30", "1,", "1"],
            ["0.1", "1", found.out.splitlines()[-1].split()[2]],
        ]
        assert Path("runs/own/mean/method.rate=0.1/seed-0/metrics.csv").exists()


@pytest.mark.long("trainings")
def test_runs_side_by_side_are_those_in_sequence(
    setsup: Run, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # of which each of two has one
    words = ["train", MEAN, "--root", digits, "--steps", 8, "--seeds", 0, 1, "--sweep", "method.rate=0.1,1e30"]
    threads, found = torch.get_num_threads(), []
    torch.set_num_threads(1)
    for out, more in (("one", []), ("two", ["--parallel", 2])):
        done = setsup(*words, "--json", "--out", out, *more)
        assert done.code == 2
        assert done.err.count("is not finite") == 1
        assert "(and 1 more runs failed)" in done.err
        found.append(done.json["sweep"])
    torch.set_num_threads(threads)
    for seed in (0, 1):
        assert equal(*(tmp_path / out / "method.rate=0.1" / f"seed-{seed}" for out in ("one", "two")))
    assert [point["metrics"] for point in found[0]] == [point["metrics"] for point in found[1]]


def test_what_cannot_run_side_by_side(setsup: Run, digits: Path) -> None:
    words = ["train", MEAN, "--root", digits, "--seeds", 0, 1]
    assert "--parallel must be 1 or more, not 0" in setsup(*words, "--parallel", 0).err
    assert "each on one device" in setsup(*words, "--parallel", 2, "--devices", 2).err
    assert not Path("runs").exists()


def test_processes_take_numbers_of_their_own(tmp_path: Path) -> None:
    script = (
        "import sys; from setsup_cli.training.trainings import _take_number\n"
        f"print(_take_number({str(tmp_path)!r}, 2), _take_number({str(tmp_path)!r}, 2), flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(2)
    ]
    assert {process.stdout.readline() for process in processes if process.stdout} == {"0 0\n", "1 1\n"}
    for process in processes:
        process.communicate()
