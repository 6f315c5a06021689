"""MPI3D: an object on a robot arm, in four variants; each is a separate dataset with its own module."""

from setsup.datasets.benchmarks.mpi3d.dataset import Mpi3D, open_variant

__all__ = ["Mpi3D", "open_variant"]
