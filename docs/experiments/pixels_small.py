"""Train and evaluate the small runs of single-pixel contrast, two at a time; what is done already is left as it is.

    python docs/experiments/pixels_small.py --root FOLDER_OF_MNIST

Interrupted runs resume where they stopped. Rooms are rendered beforehand, as the page says, to ``rooms-train`` and
``rooms-test``; without them their run is left out. `setsup report pixels/colors-small` and `setsup report
pixels/rooms-small` show the tables at any time.
"""

import argparse
from pathlib import Path

from small_runs import Stage, add_options, measure_all, runs_folder

from setsup_papers.pixels.presets import NORMS, WEIGHTS, named

FIRST = [(f"{named('inf', within)}-small", seed) for seed in range(3) for within in (1.0, 0.3)]
OTHERS = [(f"{named(norm, within)}-small", seed) for seed in range(3) for norm in NORMS for within in WEIGHTS]
ROOMS = "pixels/rooms-small"


def runs(asked: argparse.Namespace) -> list[list[Stage]]:
    """In order of importance."""
    above, root = runs_folder(asked), asked.root
    found = [Stage(name, seed, above / name, root) for name, seed in FIRST]
    if Path("rooms-train").is_dir() and Path("rooms-test").is_dir():
        found.append(Stage(ROOMS, 0, above / ROOMS))
    else:
        print(f"there are no rooms-train and rooms-test: without {ROOMS}", flush=True)
    longer = () if asked.smoke else ("--steps", "8000")
    found += [Stage(name, seed, above / f"{name}-steps-8000", root, longer) for name, seed in FIRST]
    found += [Stage(name, seed, above / name, root) for name, seed in OTHERS if (name, seed) not in FIRST]
    return [[stage] for stage in found]


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    add_options(options, precision="bf16")
    asked = options.parse_args()
    measure_all(runs(asked), asked)
