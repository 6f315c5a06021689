"""Train and evaluate the small runs of the orbit papers, two at a time; what is done already is left as it is.

    python docs/experiments/orbits_small.py --root FOLDER_OF_MNIST

Interrupted runs resume where they stopped. `setsup report orbits/mnist-small` shows the table at any time. On a GPU, or
with days to spare, `setsup train orbits/mnist-oj` and the others without ``-small`` have the papers' sizes.
"""

import argparse

from small_runs import Stage, add_options, measure_all, runs_folder

from setsup_papers.orbits.presets import COMPARED

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

if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    add_options(options)
    asked = options.parse_args()
    above = runs_folder(asked) / "orbits"
    measure_all([[Stage(f"orbits/{name}", seed, above / name, asked.root)] for name, seed in RUNS], asked)
