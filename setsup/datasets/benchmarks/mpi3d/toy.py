"""MPI3D, the simplistic renderings: ``mpi3d_toy.npz``."""

from pathlib import Path

from setsup.datasets.benchmarks.mpi3d.dataset import Mpi3D, open_variant

__all__ = ["open", "prepare"]

_FILES = ("mpi3d_toy.npz", "sim_toy_64x_ordered_without_heldout_factors.npz", "mpi3d_toy/mpi3d_toy.npz")


def open(root: Path | str | None = None) -> Mpi3D:
    """Open the simplistic renderings of MPI3D.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``mpi3d_toy.npz``, or with a subfolder ``mpi3d-toy`` that contains it; None for the default folders.

    Raises
    ------
    DataError
        When the file is missing (the message shows the command that fetches it), or does not have the published
        content.

    """
    return open_variant("mpi3d-toy", root, _FILES)


def prepare(root: Path | str | None = None) -> list[Path]:
    """Unpack the images once; see :meth:`setsup.datasets.benchmarks.mpi3d.Mpi3D.prepare`."""
    return open(root).prepare()
