"""MPI3D, the photographs: ``mpi3d_real.npz``."""

from pathlib import Path

from setsup.datasets.benchmarks.mpi3d.dataset import Mpi3D, open_variant

__all__ = ["open", "prepare"]

_FILES = ("mpi3d_real.npz", "real.npz", "mpi3d_real/mpi3d_real.npz")


def open(root: Path | str | None = None) -> Mpi3D:
    """Open the photographs of MPI3D."""
    return open_variant("mpi3d-real", root, _FILES)


def prepare(root: Path | str | None = None) -> list[Path]:
    """Unpack the images once; see :meth:`setsup.datasets.benchmarks.mpi3d.Mpi3D.prepare`."""
    return open(root).prepare()
