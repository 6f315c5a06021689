"""Train and evaluate the small runs of ABC's pose experiment; what is done already is left as it is.

    setsup prepare abc-pose-procedural --option processes=2
    python docs/experiments/pose_small.py
    python docs/experiments/pose_small.py --accelerator gpu --parallel 8 --ablations

They are on the substitute, which is rendered beforehand. Interrupted runs resume where they stopped. `setsup report
abc/table1-cars-small`, `abc/table2-cars-small`, `abc/figS4-small` and those of chairs show the tables at any time.
Without the
weights of ResNet50-V2 in the cache its features are left out.
"""

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from setsup.experiments.pose import PRESETS

RUNS = [
    *((f"table1-cars{end}", 0) for end in ("", "-no-real", "-tcc", "-augmentation")),
    *((f"table1-chairs{end}", 0) for end in ("", "-no-real", "-tcc", "-augmentation")),
    *((f"table1-cars{end}", seed) for seed in (1, 2) for end in ("", "-no-real")),
    *((f"table2-cars{end}", 0) for end in ("", "-no-real", "-regression")),
    *((f"table1-{plural}{end}", 0) for end in ("-cc-vae", "-ml-vae", "-features") for plural in ("cars", "chairs")),
    *((f"table2-chairs{end}", 0) for end in ("", "-no-real", "-regression")),
]
"""Presets without ``abc/`` and ``-small``, and seeds, in order of importance."""

ABLATIONS = [
    (preset.name.removeprefix("abc/").removesuffix("-small"), 0)
    for preset in PRESETS
    if preset.name.startswith("abc/figS4") and preset.name.endswith("-small")
]

_SETSUP = [sys.executable, "-c", "import sys; from setsup_cli.main import main; sys.exit(main())"]


def commands(name: str, seed: int, accelerator: str, precision: str, smoke: bool) -> list[list[str]]:
    """Subcommands of one run."""
    folder = Path("runs", "pose-smoke" if smoke else "pose", f"{name}-small")
    words = ["train", f"abc/{name}-small", "--substitute", "--seed", str(seed), "--out", str(folder)]
    words += ["--accelerator", accelerator, "--precision", precision]
    words += ["--smoke"] if smoke else []
    device = {"gpu": ["--device", "cuda"], "cpu": ["--device", "cpu"]}.get(accelerator, [])
    return [words, ["eval", str(folder / f"seed-{seed}"), *device]]


def train(name: str, seed: int, accelerator: str, precision: str, smoke: bool) -> str:
    """Train and evaluate one run with one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = time.perf_counter()
    for words in commands(name, seed, accelerator, precision, smoke):
        done = subprocess.run([*_SETSUP, *words], env=environment, capture_output=True, text=True)
        if done.returncode:
            return f"{name} seed {seed}: {' '.join(words)}: {done.stderr.strip()[-300:]}"
    return f"{name} seed {seed}: done in {time.perf_counter() - started:.0f} s"


def main() -> None:
    """Read options, and train all runs."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--parallel", type=int, default=2, help="runs at a time")
    options.add_argument("--accelerator", choices=("auto", "cpu", "gpu"), default="auto")
    options.add_argument("--precision", choices=("float32", "bf16"), default="bf16")
    options.add_argument("--ablations", action="store_true", help="also those of figure S4")
    options.add_argument("--smoke", action="store_true", help="four steps of each, to test that they run")
    options.add_argument("--only", nargs="*", default=[""], help="beginnings of names of runs, such as table1-cars")
    options.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    asked = options.parse_args()
    listed = [*RUNS, *ABLATIONS] if asked.ablations else RUNS
    chosen = [one for one in listed if one[1] in asked.seeds and one[0].startswith(tuple(asked.only))]
    with ThreadPoolExecutor(asked.parallel) as pool:
        runs = [pool.submit(train, *one, asked.accelerator, asked.precision, asked.smoke) for one in chosen]
        for done in as_completed(runs):
            print(done.result(), flush=True)


if __name__ == "__main__":
    main()
