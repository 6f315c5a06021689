"""Train and evaluate the small runs of contrastive multiview coding; what is done already is left as it is.

    python docs/experiments/cmc_data.py FOLDER
    python docs/experiments/views_small.py FOLDER --root FOLDER_OF_MNIST

Runs are below ``./runs``, by default two at a time with one thread each; on one GPU beside 16 cores ``--parallel 16``
is faster. Interrupted runs resume where they stopped. `setsup report cmc/rooms-small`, and `setsup report --all --out
page.html`, show the tables at any time.
"""

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setsup.experiments.cmc.small_presets import PRESETS

SETSUP = [sys.executable, "-c", "import sys; from setsup_cli.main import main; sys.exit(main())"]
"""The command, also where only this checkout is on the path of Python."""

BY_IMPORTANCE = ("rooms-full", "rooms-", "digits-", "colors-", "patches-")
"""What the names of presets begin with."""


def listed(only: list[str], seeds: list[int]) -> list[tuple[str, int]]:
    """Presets and seeds, in order of importance; all of the first seed first."""

    def place(name: str) -> int:
        return next(at for at, head in enumerate(BY_IMPORTANCE) if name.startswith(f"cmc/{head}"))

    chosen = [preset for preset in PRESETS if not only or any(word in preset.name for word in only)]
    runs = [(preset.name, seed) for preset in chosen for seed in seeds if seed < preset.seeds]
    return sorted(runs, key=lambda run: (run[1], place(run[0])))


def measured(name: str, seed: int, given: argparse.Namespace) -> str:
    """Train and evaluate one run; a line on how that went."""
    began = time.monotonic()
    out = Path(given.out, name, f"seed-{seed}").absolute()
    root = ["--root", str(given.root.absolute())] if given.root and "digits" in name else []
    train = ["train", name, "--seed", str(seed), "--out", str(out.parent), "--workers", "0", "--quiet", *root]
    train += ["--accelerator", given.accelerator, "--precision", given.precision, *(["--smoke"] if given.smoke else [])]
    device = [] if given.accelerator == "auto" else ["--device", "cpu" if given.accelerator == "cpu" else "cuda"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(given.threads)}
    for step in (train, ["eval", str(out), "--quiet", *root, *device]):
        done = subprocess.run([*SETSUP, *step], cwd=given.data, env=environment, capture_output=True, text=True)
        if done.returncode:
            return f"{name} seed {seed}: {step[0]} failed: {(done.stderr or done.stdout).strip()[-600:]}"
    return f"{name} seed {seed}: done in {time.monotonic() - began:.0f} s"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, help="folder that docs/experiments/cmc_data.py has filled")
    options.add_argument("--root", type=Path, help="folder of MNIST's four files, where setsup fetch did not put them")
    options.add_argument("--out", type=Path, default=Path("runs"), help="folder of the runs")
    options.add_argument("--parallel", type=int, default=2, help="runs at a time")
    options.add_argument("--threads", type=int, default=1, help="of each run")
    options.add_argument("--accelerator", default="auto", help="auto, cpu or gpu, as of setsup train")
    options.add_argument("--precision", default="float32", help="as of setsup train")
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--only", nargs="*", default=[], help="words, one of which names of presets contain")
    options.add_argument("--smoke", action="store_true", help="test that everything runs; results are meaningless")
    given = options.parse_args()
    runs = listed(given.only, given.seeds)
    print(f"{len(runs)} runs, {given.parallel} at a time", flush=True)
    with ThreadPoolExecutor(given.parallel) as pool:
        for line in pool.map(lambda run: measured(*run, given), runs):
            print(line, flush=True)
