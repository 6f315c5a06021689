"""Train and evaluate the small runs of DCoDR, two at a time; what is done already is left as it is.

    python docs/experiments/domains_small.py
    python docs/experiments/domains_small.py --parallel 16 --accelerator gpu --only shapes3d

They are on the substitutes that setsup makes; `setsup prepare cars3d-procedural` renders the turntable beforehand, and
without it its runs are left out. Interrupted runs resume where they stopped. `setsup report dcodr/shapes3d-small`,
`dcodr/cars3d-small`, `dcodr/table1-small` and `dcodr/table5-small` show the tables at any time.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DATASETS = ("shapes3d", "cars3d")
NEGATIVES = "-norec-no-domain-negatives"

RUNS = [
    *(
        (f"{dataset}{end}", 0)
        for dataset in DATASETS
        for end in ("-norec", NEGATIVES, "", "-lord", "-ml-vae", "-drnet")
    ),
    *((f"cars3d-norec-{end}", 0) for end in ("blur", "horizontal-flip")),
    *((f"{dataset}-norec", seed) for seed in (1, 2) for dataset in DATASETS),
    *((f"{dataset}{NEGATIVES}", seed) for seed in (1, 2) for dataset in DATASETS),
    *(
        (f"{dataset}{end}", seed)
        for seed in (1, 2)
        for dataset in DATASETS
        for end in ("", "-lord", "-ml-vae", "-drnet")
    ),
    *((f"cars3d-norec-{end}", seed) for seed in (1, 2) for end in ("blur", "horizontal-flip")),
]
"""Presets without ``-small``, and seeds, in order of importance."""

_SETSUP = [sys.executable, "-c", "import sys; from setsup_cli.main import main; sys.exit(main())"]


def commands(name: str, seed: int, device: Sequence[str]) -> list[list[str]]:
    """Subcommands of one run; LORD has two stages."""
    stages = [f"{name}-latent", name] if name.endswith("-lord") else [name]
    found = []
    for stage in stages:
        folder = Path("runs", "dcodr", f"{stage}-small-substitute")
        words = ["train", f"dcodr/{stage}-small", "--substitute", "--seed", str(seed), "--out", str(folder)]
        found.append([*words, *(["--accelerator", device[0]] if device else [])])
        where = ["--device", {"gpu": "cuda"}.get(device[0], device[0])] if device and device[0] != "auto" else []
        found.append(["eval", str(folder / f"seed-{seed}"), *where])
    return found


def train(name: str, seed: int, device: Sequence[str]) -> str:
    """Train and evaluate one run with one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = time.perf_counter()
    for words in commands(name, seed, device):
        done = subprocess.run([*_SETSUP, *words], env=environment, capture_output=True, text=True)
        if done.returncode:
            return f"{name} seed {seed}: {' '.join(words)}: {done.stderr.strip()[-300:]}"
    return f"{name} seed {seed}: done in {time.perf_counter() - started:.0f} s"


def main() -> None:
    """Read options, and train all runs."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--parallel", type=int, default=2, help="runs at a time")
    options.add_argument("--accelerator", choices=("auto", "cpu", "gpu"), default="auto")
    options.add_argument("--only", nargs="*", default=[""], help="beginnings of names of runs, such as cars3d-norec")
    options.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    asked = options.parse_args()
    chosen = [one for one in RUNS if one[1] in asked.seeds and one[0].startswith(tuple(asked.only))]
    with ThreadPoolExecutor(asked.parallel) as pool:
        for line in pool.map(lambda one: train(*one, (asked.accelerator,)), chosen):
            print(line, flush=True)


if __name__ == "__main__":
    main()
