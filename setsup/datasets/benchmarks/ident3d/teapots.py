"""3DIdent: 275,000 images of a teapot with ten independent continuous factors."""

from pathlib import Path

from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.benchmarks.ident3d.reader import Part, open_parts

__all__ = ["open"]

_PARTS = [Part(split, 0, rf"{name}/raw_latents\.npy", "images") for split, name in enumerate(("train", "test"))]


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open 3DIdent: ``3dident_train.tar`` and ``3dident_test.tar``, or the folder ``3dident`` that they contain.

    Factors are ten continuous ones, each from −1 to 1: the position ``x``, ``y``, ``z`` of the object, its rotations
    ``rotation_x``, ``rotation_y``, ``rotation_z``, the position of the spotlight, ``spotlight``, and the hues of
    object, spotlight and background; and ``split``. Fixing a continuous factor in sets requires a tolerance.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Zimmermann, Sharma, Schneider, Bethge, Brendel, "Contrastive Learning Inverts the Data Generating Process",
       ICML 2021.

    """
    return open_parts("3dident", _PARTS, r"3dident_(?:train|test)\.tar", (), root, size)
