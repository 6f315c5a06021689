"""Train and evaluate the small runs of contrastive multiview coding; what is done already is left as it is.

    python docs/experiments/cmc_data.py FOLDER
    python docs/experiments/views_small.py FOLDER --root FOLDER_OF_MNIST

Runs are below ``./runs``, by default two at a time with one thread each; on one GPU beside 16 cores ``--parallel 16``
is faster. Interrupted runs resume where they stopped. `setsup report cmc/rooms-small`, and `setsup report --all --out
page.html`, show the tables at any time.
"""

import argparse
from pathlib import Path

from small_runs import Stage, add_options, measure_all, runs_folder

from setsup_papers.cmc.experiments import SMALL_PRESETS

BY_IMPORTANCE = ("rooms-full", "rooms-", "digits-", "colors-", "patches-")
"""What the names of presets begin with."""


def runs(out: Path, root: str | None) -> list[list[Stage]]:
    """In order of importance, all of the first seed first."""

    def place(name: str) -> int:
        return next(at for at, head in enumerate(BY_IMPORTANCE) if name.startswith(f"cmc/{head}"))

    presets = sorted(SMALL_PRESETS, key=lambda preset: place(preset.name))
    return [
        [Stage(preset.name, seed, out / preset.name, root if "digits" in preset.name else None)]
        for seed in range(3)
        for preset in presets
        if seed < preset.seeds
    ]


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("data", type=Path, help="folder that docs/experiments/cmc_data.py has filled")
    options.add_argument("--out", type=Path, help="folder of the runs; runs by default")
    add_options(options)
    asked = options.parse_args()
    root = str(Path(asked.root).absolute()) if asked.root else None
    measure_all(runs((asked.out or runs_folder(asked)).absolute(), root), asked, cwd=asked.data)
