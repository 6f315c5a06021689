"""MPI3D, the realistic renderings: ``mpi3d_realistic.npz``."""

from pathlib import Path

from setsup.datasets.benchmarks.mpi3d.dataset import Mpi3D, open_variant

__all__ = ["open", "prepare"]

_FILES = (
    "mpi3d_realistic.npz",
    "sim_realistic_64x_ordered_without_heldout_factors.npz",
    "mpi3d_realistic/mpi3d_realistic.npz",
)


def open(root: Path | str | None = None) -> Mpi3D:
    """Open the realistic renderings of MPI3D."""
    return open_variant("mpi3d-realistic", root, _FILES)


def prepare(root: Path | str | None = None) -> list[Path]:
    """Unpack the images once; see :meth:`setsup.datasets.benchmarks.mpi3d.Mpi3D.prepare`."""
    return open(root).prepare()
