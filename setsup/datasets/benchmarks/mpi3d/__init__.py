"""MPI3D: an object on a robot's arm, in four variants; each is a dataset of its own, with a module here."""

from setsup.datasets.benchmarks.mpi3d.dataset import Mpi3D, open_variant

__all__ = ["Mpi3D", "open_variant"]
