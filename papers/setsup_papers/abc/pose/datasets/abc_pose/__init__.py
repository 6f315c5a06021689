"""abc-pose: the images of ABC's pose experiment; renderings of ShapeNet, and photographs of four other releases."""

from setsup_papers.abc.pose.datasets.abc_pose.dataset import AbcPose, open

__all__ = ["AbcPose", "open"]
