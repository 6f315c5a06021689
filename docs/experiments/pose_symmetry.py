"""Measure by renderings that the models of abc-pose-procedural have one mirror plane, and no other symmetry.

    python docs/experiments/pose_symmetry.py
    python docs/experiments/pose_symmetry.py --models 20 --codebook 0 --real 0 --tests 0

Each model is rendered from 24 azimuths. Printed are, for each part, the largest share of pixels that change under the
mirror plane, and the smallest that change under any turn, or mirror image that is turned, by a multiple of 15 degrees.
"""

import argparse

from setsup_papers.abc.pose.datasets.abc_pose.factors import CATEGORIES
from setsup_papers.abc.pose.datasets.abc_pose_procedural.models import draw_model
from setsup_papers.abc.pose.datasets.abc_pose_procedural.symmetry import asymmetries, views_around
from setsup_papers.abc.pose.datasets.abc_pose_procedural.writing import Counts, list_blocks


def main() -> None:
    """Read options, and print a line for each part."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("models", 80), ("codebook", 30), ("real", 2000), ("tests", 400), ("seed", 0)):
        options.add_argument(f"--{name}", type=int, default=usual, help="as of `setsup prepare abc-pose-procedural`")
    asked = options.parse_args()
    counts = {name: max(1, getattr(asked, name)) for name in ("models", "codebook", "real", "tests")}
    blocks = list_blocks(Counts(**counts, views=1, size=64), {})
    for category in CATEGORIES:
        for source, split, some in (
            ("rendering", "train", asked.models),
            ("rendering", "codebook", asked.codebook),
            ("real", "train", asked.real),
            ("real", "test", asked.tests),
        ):
            numbers = [
                block.number
                for block in blocks
                if (block.category, block.source, block.split) == (category, source, split) and some
            ]
            if numbers:
                found = [asymmetries(views_around(draw_model(asked.seed, category, number))) for number in numbers]
                mirror, other = max(one[0] for one in found), min(one[1] for one in found)
                print(f"{category}, {split}, {source}: {len(numbers)} models, {mirror:.4f}, {other:.3f}", flush=True)


if __name__ == "__main__":
    main()
