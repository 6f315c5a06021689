"""Falcor3D: 233,280 images of a living room, every combination of seven factors of lighting and camera."""

from pathlib import Path

from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.benchmarks.numbered_grids.reader import open_grid
from setsup.factors import Factor, Kind

__all__ = ["open"]

_SIZES = {
    "lighting_intensity": 5,
    "lighting_x": 6,
    "lighting_y": 6,
    "lighting_z": 6,
    "camera_x": 6,
    "camera_y": 6,
    "camera_z": 6,
}


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open Falcor3D: ``Falcor3D/images/000000.png`` and so on, of 1024 × 1024 pixels, or ``Falcor3D_down128``.

    Levels are numbers 0, 1, …, in equal steps of the normalised range of a factor, as defined by the release.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Nie, Karras, Garg, Debnath, Patney, Patel, Anandkumar, "Semi-Supervised StyleGAN for Disentanglement
       Learning", ICML 2020.

    """
    factors = [Factor(name, Kind.ORDINAL, tuple(range(levels))) for name, levels in _SIZES.items()]
    return open_grid("falcor3d", "Falcor3D", factors, root, size)
