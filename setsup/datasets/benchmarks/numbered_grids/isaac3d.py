"""Isaac3D: 737,280 images of a robot arm with an object in a kitchen, every combination of nine factors.

Convention
----------
The README of the release gives a formula for the number of an image whose strides are those of the order below, but
under other names: its robot_x-movement, of 8 levels, has the stride of a factor of 4. The demonstration in the same
repository, whose images show one factor each, has the order below.
"""

from pathlib import Path

from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.benchmarks.numbered_grids.reader import open_grid
from setsup.factors import Factor, Kind

__all__ = ["open"]

_SIZES = {
    "object_shape": 3,
    "robot_x": 8,
    "robot_y": 5,
    "camera_height": 4,
    "object_scale": 4,
    "lighting_intensity": 4,
    "lighting_y": 6,
    "object_color": 4,
    "wall_color": 4,
}
_NOMINAL = ("object_shape", "object_color", "wall_color")


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open Isaac3D: ``Isaac3D/images/000000.png`` and so on, of 512 × 512 pixels, or ``Isaac3D_down128``.

    Levels are numbers 0, 1, …, in equal steps of the normalised range of a factor, as defined by the release.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Nie, Karras, Garg, Debnath, Patney, Patel, Anandkumar, "Semi-Supervised StyleGAN for Disentanglement
       Learning", ICML 2020.

    """
    factors = [
        Factor(name, Kind.NOMINAL if name in _NOMINAL else Kind.ORDINAL, tuple(range(levels)))
        for name, levels in _SIZES.items()
    ]
    return open_grid("isaac3d", "Isaac3D", factors, root, size)
