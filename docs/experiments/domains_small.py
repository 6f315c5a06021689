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

from small_runs import Stage, add_options, measure_all, runs_folder

from setsup.experiments import find_preset
from setsup_papers.dcodr.presets import COMPARED, PRESETS

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


def runs(asked: argparse.Namespace) -> list[list[Stage]]:
    """In order of importance, all of the first seed first; LORD has two stages."""
    small = {preset.name for preset in PRESETS}
    names = [f"{dataset}{end}" for end in ENDS for dataset in COMPARED if f"dcodr/{dataset}{end}-small" in small]
    return [_stages(name, seed, asked) for seed in range(3) for name in names]


def _stages(name: str, seed: int, asked: argparse.Namespace) -> list[Stage]:
    found: list[Stage] = []
    above = runs_folder(asked) / (f"domains-times-{asked.times}" if asked.times > 1 else "domains")
    for stage in [f"{name}-latent", name] if name.endswith("-lord") else [name]:
        preset = f"dcodr/{stage}-small"
        steps = 2 if asked.smoke else asked.times * find_preset(preset).steps
        before = ("--initial-run", str(found[-1].run)) if found else ()
        more = ("--substitute", "--steps", str(steps), *before)
        found.append(Stage(preset, seed, above / f"{stage}-small", more=more))
    return found


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    add_options(options, root=None)
    options.add_argument("--times", type=int, default=1, help="multiplies the steps of each preset")
    asked = options.parse_args()
    measure_all(runs(asked), asked)
