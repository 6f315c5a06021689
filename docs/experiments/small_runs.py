"""What the scripts of small runs share: their options, and trainings side by side; no script of its own.

A run that was measured since it was trained is left as it is, and one that was interrupted resumes.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Stage", "add_options", "measure_all", "runs_folder"]

_SETSUP = [sys.executable, "-c", "import sys; from setsup_cli.main import main; sys.exit(main())"]
"""The command, also where only this checkout is on the path of Python."""


@dataclass(frozen=True)
class Stage:
    """One preset with a seed: `out` is the folder above that of the run, `more` are options of the training."""

    preset: str
    seed: int
    out: Path
    root: str | None = None
    more: tuple[str, ...] = ()

    @property
    def run(self) -> Path:
        """Folder of the run."""
        return self.out / f"seed-{self.seed}"


MNIST = "folder of the four files of MNIST, where setsup fetch did not put them"


def add_options(options: argparse.ArgumentParser, precision: str = "float32", root: str | None = MNIST) -> None:
    """Add what all scripts take; `root` is the help of that option, None where no run needs it."""
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    if root is not None:
        options.add_argument("--root", help=root)
    options.add_argument("--parallel", type=int, default=2, help="runs at a time")
    options.add_argument("--threads", type=int, default=1, help="of each run")
    options.add_argument("--accelerator", choices=("auto", "cpu", "gpu"), default="auto")
    options.add_argument("--precision", choices=("float32", "bf16"), default=precision)
    options.add_argument("--only", nargs="*", default=[], help="words, one of which names of runs contain")
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--smoke", action="store_true", help="test that everything runs; results are meaningless")


def runs_folder(asked: argparse.Namespace) -> Path:
    """Folder around all runs, another one for those that only test."""
    return Path("runs-smoke" if asked.smoke else "runs")


def measure_all(runs: Sequence[Sequence[Stage]], asked: argparse.Namespace, cwd: Path | None = None) -> None:
    """Train and evaluate runs, each of one stage after the other, and print a line on each when it is done.

    Those are left out whose seed was not asked for, or whose name has none of the words.
    """

    def wanted(last: Stage) -> bool:
        return last.seed in asked.seeds and (not asked.only or any(word in last.preset for word in asked.only))

    chosen = [stages for stages in runs if wanted(stages[-1])]
    print(f"{len(chosen)} runs, {asked.parallel} at a time", flush=True)
    with ThreadPoolExecutor(asked.parallel) as pool:
        for done in as_completed([pool.submit(_measure, stages, asked, cwd) for stages in chosen]):
            print(done.result(), flush=True)


def _measure(stages: Sequence[Stage], asked: argparse.Namespace, cwd: Path | None) -> str:
    """Train and evaluate one run; a line on how that went."""
    began = time.monotonic()
    name = f"{stages[-1].preset} seed {stages[-1].seed}"
    environment = {**os.environ, "OMP_NUM_THREADS": str(asked.threads)}
    for stage in stages:
        for words in _commands(stage, asked):
            if words[0] == "eval" and _is_measured((cwd or Path()) / stage.run):
                continue
            done = subprocess.run([*_SETSUP, *words], cwd=cwd, env=environment, capture_output=True, text=True)
            if done.returncode:
                return f"{name}: {words[0]} failed: {(done.stderr or done.stdout).strip()[-600:]}"
    return f"{name}: done in {time.monotonic() - began:.0f} s"


def _commands(stage: Stage, asked: argparse.Namespace) -> list[list[str]]:
    root = ["--root", stage.root] if stage.root else []
    train = ["train", stage.preset, "--seed", str(stage.seed), "--out", str(stage.out), *root, *stage.more]
    train += ["--accelerator", asked.accelerator, "--precision", asked.precision]
    train += ["--smoke"] if asked.smoke else []
    device = [] if asked.accelerator == "auto" else ["--device", "cuda" if asked.accelerator == "gpu" else "cpu"]
    return [train, ["eval", str(stage.run), *root, *device]]


def _is_measured(run: Path) -> bool:
    """Whether results are there that are not older than the training."""
    results, metrics = run / "evaluation.json", run / "metrics.jsonl"
    return results.exists() and metrics.exists() and results.stat().st_mtime >= metrics.stat().st_mtime
