"""Pascal3D+: objects in photographs with the pose of a fitted CAD model."""

from setsup.datasets.benchmarks.pascal3d.dataset import Pascal3D, geodesic, open, project, read_abc_list, rotation

__all__ = ["Pascal3D", "geodesic", "open", "project", "read_abc_list", "rotation"]
