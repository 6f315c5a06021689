"""MPI3D, the photographs of complex objects: ``real3d_complicated_shapes_ordered.npz``."""

from pathlib import Path

from setsup.datasets.benchmarks.mpi3d.dataset import Mpi3D, open_variant

__all__ = ["open", "prepare"]

_FILES = ("real3d_complicated_shapes_ordered.npz", "mpi3d_real_complex.npz", "mpi3d_complex.npz")


def open(root: Path | str | None = None) -> Mpi3D:
    """Open the photographs of MPI3D's complex objects."""
    return open_variant("mpi3d-complex", root, _FILES)


def prepare(root: Path | str | None = None) -> list[Path]:
    """Unpack the images once; see :meth:`setsup.datasets.benchmarks.mpi3d.Mpi3D.prepare`."""
    return open(root).prepare()
