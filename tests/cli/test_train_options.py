"""``setsup train``: how gradients are clipped and accumulated, schedules, and ways of running are options."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.refusals import refused

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

Run = Callable[..., Any]

OWN = str(Path(__file__).parent / "scheduled_method.py")


def test_options_reach_the_run(setsup: Run, digits: Path) -> None:
    asked = "--clip-norm 1 --accumulate 2 --method.optimiser.rate 0.02 --method.optimiser.betas 0.8 0.99"
    asked += " --method.schedule.warmup 0.5 --method.schedule.momentum 0.6 0.7 --method.head-schedule.at 2 6"
    found = setsup("train", OWN, "--root", digits, *asked.split(), "--profiler", "simple", "--out", "run")
    assert (found.code, found.err) == (0, "")
    folder = Path("run/seed-0")
    about = json.loads((folder / "run.json").read_text())
    settings = {name: value for name, value in about["settings"].items() if "method." in name}
    assert (about["settings"]["clip_norm"], about["settings"]["accumulate"]) == (1.0, 2)
    assert settings["method.optimiser"] == "AdamW"
    assert settings["method.schedule.warmup"] == 0.5
    assert settings["method.head_schedule.at"] == [2, 6]
    assert about["config"]["profiler"] == "simple"
    assert (folder / "profile" / "fit-simple.txt").exists()
    state = torch.load(folder / "last.ckpt", weights_only=True)["optimizer_states"][0]["param_groups"]
    assert [group["lr"] for group in state] == [pytest.approx(0.02 * 4e-6), pytest.approx(0.1 * 0.01)]
    assert [group["betas"] for group in state] == [pytest.approx((0.7, 0.99)), (0.8, 0.99)]


def test_help_explains_nested_settings(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    shown = setsup("train", OWN, "--help").out
    for option in (
        "--clip-norm",
        "--clip-value",
        "--accumulate",
        "--method.schedule.warmup",
        "--method.optimiser.rate",
    ):
        assert option in shown
    for option in ("--strategy", "--sync-batchnorm", "--profiler"):
        assert option in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--clip-norm", "1", "--clip-value", "1"], "set clip_norm or clip_value"),
        (["--accumulate", "0"], "accumulate must be 1 or more"),
        (["--method.schedule.warmup", "2"], "warmup of OneCycle must be a fraction of all steps"),
        (["--strategy", "fsdp"], "fsdp"),
        (["--precision", "fp16", "--accelerator", "cpu"], "precision fp16 requires a GPU"),
    ],
)
def test_what_does_not_fit_is_one_sentence(setsup: Run, digits: Path, words: list[str], sentence: str) -> None:
    refused(setsup("train", OWN, "--root", digits, *words), sentence)
    assert not Path("runs").exists()
