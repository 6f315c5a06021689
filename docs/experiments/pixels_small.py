"""Train and evaluate the small runs of single-pixel contrast, two at a time; what is done already is left as it is.

    python docs/experiments/pixels_small.py --root FOLDER_OF_MNIST

Interrupted runs resume where they stopped. Rooms are rendered beforehand, as the page says, to ``rooms-train`` and
``rooms-test``; without them their run is left out. `setsup report pixels/colors-small` and `setsup report
pixels/rooms-small` show the tables at any time.
"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setsup.experiments.pixels.presets import NORMS, WEIGHTS, named

FIRST = [(named("inf", within), seed) for seed in range(3) for within in (1.0, 0.3)]
OTHERS = [(named(norm, within), seed) for seed in range(3) for norm in NORMS for within in WEIGHTS]
RUNS = [
    *(([f"{name}-small"], f"{name}-small", seed) for name, seed in FIRST),
    (["pixels/rooms-small"], "pixels/rooms-small", 0),
    *(([f"{name}-small", "--steps", "8000"], f"{name}-small-steps-8000", seed) for name, seed in FIRST),
    *(([f"{name}-small"], f"{name}-small", seed) for name, seed in OTHERS if (name, seed) not in FIRST),
]
"""Words of the training, folder and seed, in order of importance."""


def train(words: list[str], folder: str, seed: int, root: str | None) -> str:
    """Train and evaluate one run with one thread."""
    rooms = words[0] == "pixels/rooms-small"
    if rooms and not (Path("rooms-train").is_dir() and Path("rooms-test").is_dir()):
        return f"{folder}: there are no rooms-train and rooms-test"
    where = ["--root", root] if root and not rooms else []
    command = [str(Path(sys.executable).with_name("setsup"))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    out = Path("runs", folder)
    for step in (
        ["train", *words, "--seed", str(seed), "--precision", "bf16", "--out", str(out), *where],
        ["eval", str(out / f"seed-{seed}"), *where],
    ):
        done = subprocess.run([*command, *step], env=environment, capture_output=True, text=True)
        if done.returncode:
            return f"{folder} seed {seed}: {done.stderr.strip()[-300:]}"
    return f"{folder} seed {seed}: done"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--root", help="folder of the four files of MNIST, where setsup fetch did not put them")
    root = options.parse_args().root
    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(lambda one: train(*one, root), RUNS):
            print(line, flush=True)
