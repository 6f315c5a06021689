"""ShapeNetCore: models of everyday things as meshes with materials, and as voxels."""

from setsup.datasets.shapenet.dataset import ShapeNet, open

__all__ = ["ShapeNet", "open"]
