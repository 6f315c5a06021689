"""Train and evaluate the small runs of DCoDR, two at a time; what is done already is left as it is.

    python docs/experiments/domains_small.py
    python docs/experiments/domains_small.py --parallel 16 --accelerator gpu --times 5 --only shapes3d

They are on the substitutes that setsup makes. `setsup prepare cars3d-procedural` and `setsup prepare
smallnorb-procedural` render two of them beforehand; runs on one that is missing fail, with the command that makes it.
Interrupted runs resume where they stopped. `setsup report dcodr/shapes3d-small`, `dcodr/table1-small` and the other
small reports show the tables at any time; runs of more steps, ``--times``, are in folders of their own, and have lines
of their own there.
"""

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from setsup.experiments import find_preset
from setsup.experiments.dcodr.small_presets import COMPARED, PRESETS

ENDS = (
    "-norec",
    "-norec-no-domain-negatives",
    "",
    "-lord",
    "-ml-vae",
    "-drnet",
    "-norec-blur",
    "-norec-horizontal-flip",
    "-no-domain-negatives",
)
"""Of the names of presets, before ``-small``, in order of importance."""

_SETSUP = [sys.executable, "-c", "import sys; from setsup_cli.main import main; sys.exit(main())"]


def chosen(only: list[str], seeds: list[int]) -> list[tuple[str, int]]:
    """Presets without ``dcodr/`` and ``-small``, and seeds, in order of importance; all of the first seed first."""
    small = {preset.name for preset in PRESETS}
    names = [f"{dataset}{end}" for end in ENDS for dataset in COMPARED if f"dcodr/{dataset}{end}-small" in small]
    return [(name, seed) for seed in seeds for name in names if name.startswith(tuple(only))]


def commands(name: str, seed: int, accelerator: str, times: int, smoke: bool) -> list[list[str]]:
    """Subcommands of one run; LORD has two stages."""
    found = []
    end = "-smoke" if smoke else f"-times-{times}" if times > 1 else ""
    before: list[str] = []
    for stage in [f"{name}-latent", name] if name.endswith("-lord") else [name]:
        folder = Path("runs", f"domains{end}", f"{stage}-small")
        run = str(folder / f"seed-{seed}")
        steps = 2 if smoke else times * find_preset(f"dcodr/{stage}-small").steps
        words = ["train", f"dcodr/{stage}-small", "--substitute", "--seed", str(seed), "--out", str(folder)]
        more = ["--smoke"] if smoke else []
        found.append([*words, "--steps", str(steps), "--accelerator", accelerator, *before, *more])
        device = {"gpu": ["--device", "cuda"], "cpu": ["--device", "cpu"]}.get(accelerator, [])
        found.append(["eval", run, *device])
        before = ["--initial-run", run]
    return found


def train(name: str, seed: int, accelerator: str, times: int, smoke: bool) -> str:
    """Train and evaluate one run with one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = time.perf_counter()
    for words in commands(name, seed, accelerator, times, smoke):
        done = subprocess.run([*_SETSUP, *words], env=environment, capture_output=True, text=True)
        if done.returncode:
            return f"{name} seed {seed}: {' '.join(words)}: {done.stderr.strip()[-300:]}"
    return f"{name} seed {seed}: done in {time.perf_counter() - started:.0f} s"


def main() -> None:
    """Read options, and train all runs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--parallel", type=int, default=2, help="runs at a time")
    options.add_argument("--accelerator", choices=("auto", "cpu", "gpu"), default="auto")
    options.add_argument("--times", type=int, default=1, help="multiplies the steps of each preset")
    options.add_argument("--smoke", action="store_true", help="two steps of each, to test that they run")
    options.add_argument("--only", nargs="*", default=[""], help="beginnings of names, such as cars3d-norec")
    options.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    asked = options.parse_args()
    with ThreadPoolExecutor(asked.parallel) as pool:
        runs = [
            pool.submit(train, *one, asked.accelerator, asked.times, asked.smoke)
            for one in chosen(asked.only, asked.seeds)
        ]
        for done in as_completed(runs):
            print(done.result(), flush=True)


if __name__ == "__main__":
    main()
