"""Train and evaluate the small runs of the orbit papers, two at a time; what is done already is left as it is.

    python docs/experiments/orbits_small.py --root FOLDER_OF_MNIST

Interrupted runs resume where they stopped. `setsup report orbits/mnist-small` shows the table at any time. On a GPU, or
with days to spare, `setsup train orbits/mnist-oj` and the others without ``-small`` have the papers' sizes.
"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setsup.experiments.orbits.presets import COMPARED

RUNS = [
    *((f"mnist-{end}-small", seed) for seed in range(3) for end in (*COMPARED, "oe")),
    *((f"mnist-{end}-small", 0) for end in ("st", "ae", "st-stn", "ot-stn")),
    *((f"even-odd-{end}-small", 0) for end in ("oj", "ot", "ex", "st")),
    *(
        (f"mnist-{end}-small-{name}", seed)
        for name in ("shift-6", "orbits-20000")
        for seed in range(3)
        for end in COMPARED
    ),
    *((f"mnist-oj-small-{name}", seed) for name in ("switches", "rectified-more") for seed in range(3)),
    *((f"mnist-{end}-small-{name}", seed) for name in ("batch", "steps-250") for seed in range(3) for end in COMPARED),
    *((f"mnist-{end}-small-raw-code", seed) for seed in range(3) for end in ("oj", "ot")),
    *(
        (f"mnist-{end}-small-{name}", seed)
        for name in ("width-full", "steps-4000")
        for seed in range(3)
        for end in COMPARED
    ),
]
"""Presets and seeds, in order of importance."""


def train(name: str, seed: int, root: str | None) -> str:
    """Train and evaluate one run with one thread."""
    folder = Path("runs", "orbits", name)
    where = ["--root", root] if root else []
    command = [str(Path(sys.executable).with_name("setsup"))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for words in (
        ["train", f"orbits/{name}", "--seed", str(seed), "--out", str(folder), *where],
        ["eval", str(folder / f"seed-{seed}"), *where],
    ):
        done = subprocess.run([*command, *words], env=environment, capture_output=True, text=True)
        if done.returncode:
            return f"{name} seed {seed}: {done.stderr.strip()[-300:]}"
    return f"{name} seed {seed}: done"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--root", help="folder of the four files of MNIST, where setsup fetch did not put them")
    root = options.parse_args().root
    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(lambda one: train(*one, root), RUNS):
            print(line, flush=True)
