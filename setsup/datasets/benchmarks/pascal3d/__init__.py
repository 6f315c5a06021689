"""Pascal3D+: objects in photographs with the pose of a CAD model that was fitted to them."""

from setsup.datasets.benchmarks.pascal3d.dataset import Pascal3D, geodesic, open, project, read_abc_list, rotation

__all__ = ["Pascal3D", "geodesic", "open", "project", "read_abc_list", "rotation"]
