"""ShapeNetCore: models of everyday objects as meshes with materials, and as voxels."""

from setsup.datasets.benchmarks.shapenet.dataset import ShapeNet, open

__all__ = ["ShapeNet", "open"]
