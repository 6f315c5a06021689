"""abc-pose-procedural: a substitute for the images of ABC's pose experiment, made-up cars and chairs in two domains.

No image of it is a photograph, and nothing measured on it says what the published data would give. Each model has
exactly one mirror plane, from its front to its rear. ``setsup prepare abc-pose-procedural`` renders it.
"""

from setsup_papers.abc.pose.datasets.abc_pose_procedural.dataset import ProceduralPose, open, prepare

__all__ = ["ProceduralPose", "open", "prepare"]
