"""Photographs that scikit-image and scikit-learn ship, cut into tiles: genuine images where no dataset is at hand.

:func:`write_photographs` writes a file that is a dataset, ``setsup.open("photographs.npz")``: ``image`` (96, 96, 3)
uint8 and the factor ``photograph``.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import SetsupError, imported
from setsup.files import written

__all__ = ["PHOTOGRAPHS", "photograph_tiles", "write_photographs"]

PHOTOGRAPHS = ("astronaut", "chelsea", "coffee", "motorcycle", "rocket", "china", "flower")
"""Those in colour that show what a camera sees; the last two are scikit-learn's."""

_SCIKIT_LEARN = ("china", "flower")


def photograph_tiles(size: int = 96, stride: int = 48) -> tuple[npt.NDArray[np.uint8], list[str]]:
    """Tiles of all photographs, as they are and at half their size, and which photograph each is of.

    Parameters
    ----------
    size, stride : int
        Pixels of a tile's side, and from one to the next. Tiles without any contrast, such as a black background, are
        left out.

    Returns
    -------
    tiles : (n, size, size, 3) uint8
    names : list of str

    """
    if size < 1 or stride < 1:
        raise SetsupError(f"size and stride of tiles must be 1 or more, not {size} and {stride}")
    tiles, names = [], []
    for name in PHOTOGRAPHS:
        whole = _photograph(name)
        half = _halved(whole)
        for image in (whole, half):
            for top in range(0, image.shape[0] - size + 1, stride):
                for left in range(0, image.shape[1] - size + 1, stride):
                    tile = image[top : top + size, left : left + size]
                    if tile.std() > 2:  # of 255
                        tiles.append(tile)
                        names.append(name)
    return np.stack(tiles), names


def write_photographs(path: Path | str, size: int = 96, stride: int = 48) -> int:
    """Write the tiles to an ``.npz`` file that :func:`setsup.open` opens, and return their number."""
    tiles, names = photograph_tiles(size, stride)
    target = Path(path)
    if target.suffix != ".npz":
        raise SetsupError(f"photographs can be written only to an .npz file, not to {target.name}")
    with written(target) as part, part.open("wb") as file:
        np.savez(file, image=tiles, photograph=np.array(names))
    return len(tiles)


def _photograph(name: str) -> npt.NDArray[np.uint8]:
    if name in _SCIKIT_LEARN:
        datasets: Any = imported("sklearn.datasets", "train")
        return np.asarray(datasets.load_sample_image(f"{name}.jpg"), np.uint8)
    # read from the package's folder, so that nothing is ever downloaded
    package: Any = imported("skimage", "train")
    folder = Path(package.__file__).parent / "data"
    stem = {"motorcycle": "motorcycle_left"}.get(name, name)
    path = next((candidate for end in ("png", "jpg") if (candidate := folder / f"{stem}.{end}").exists()), None)
    if path is None:
        raise SetsupError(
            f"scikit-image {package.__version__} does not contain the image {stem} (looked in {folder}); install "
            "scikit-image 0.26 or another version that ships it"
        )
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), np.uint8)


def _halved(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Means of 2 × 2 pixels."""
    height, width = (side // 2 * 2 for side in image.shape[:2])
    parts = image[:height, :width].reshape(height // 2, 2, width // 2, 2, 3).astype(np.uint16)
    return np.asarray((parts.sum((1, 3)) + 2) // 4, np.uint8)
