"""Train and evaluate the small runs of ABC's pose experiment; what is done already is left as it is.

    setsup prepare abc-pose-procedural --option processes=2
    python docs/experiments/pose_small.py
    python docs/experiments/pose_small.py --accelerator gpu --parallel 8 --ablations

They are on the substitute, which is rendered beforehand; one that was rendered with ``--root FOLDER`` is named here in
the same way. Interrupted runs resume where they stopped. `setsup report
abc/table1-cars-small`, `abc/table2-cars-small`, `abc/figS4-small` and those of chairs show the tables at any time.
Runs of the features of ResNet50-V2 fail where its weights are neither in the cache nor to be fetched.
"""

import argparse

from small_runs import Stage, add_options, measure_all, runs_folder

from setsup_papers.abc.pose.experiments import PRESETS

RUNS = [
    *((f"table1-cars{end}", 0) for end in ("", "-no-real", "-tcc", "-augmentation")),
    *((f"table1-chairs{end}", 0) for end in ("", "-no-real")),
    *((f"table1-cars{end}", seed) for seed in (1, 2) for end in ("", "-no-real")),
    *((f"table1-chairs{end}", 0) for end in ("-tcc", "-augmentation")),
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


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    add_options(options, precision="bf16", root="folder that abc-pose-procedural was rendered to, if not the usual one")
    options.add_argument("--ablations", action="store_true", help="also those of figure S4")
    asked = options.parse_args()
    above = runs_folder(asked) / "pose"
    listed = [*RUNS, *ABLATIONS] if asked.ablations else RUNS
    stages = [
        Stage(f"abc/{name}-small", seed, above / f"{name}-small", asked.root, ("--substitute",))
        for name, seed in listed
    ]
    measure_all([[stage] for stage in stages], asked)
