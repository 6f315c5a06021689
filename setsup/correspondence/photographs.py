"""Photographs of planes, or from one place, with the homographies between them: the layout of HPatches.

References
----------
.. [1] V. Balntas, K. Lenc, A. Vedaldi, K. Mikolajczyk, "HPatches: a benchmark and evaluation of handcrafted and learned
   local descriptors", CVPR 2017 (arXiv 1704.05939).

"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_arguments
from setsup.correspondence import planar
from setsup.correspondence.homographies import HOMOGRAPHIES, planar_pairs
from setsup.correspondence.homography_files import parse_homography
from setsup.correspondence.pixel_pairs import PixelPairs
from setsup.datasets.adapters.fetching import Images
from setsup.datasets.adapters.image_sources import ImageFiles
from setsup.datasets.dataset import of_row
from setsup.datasets.formats.image_formats import KNOWN_ENDINGS
from setsup.datasets.images import check_size, header
from setsup.datasets.own.table import ImageTable
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.expand_user import expanded

__all__ = ["Photographs", "open_photographs"]

_HOMOGRAPHY = re.compile(r"H_1_(\d+)(\.txt)?")
_VIEW = re.compile(r"[1-9]\d*")
_FIRST = 1  # number of the view whose pixels the homographies start from


class Photographs(ImageTable):
    """Views of scenes with homographies between them; made by :func:`open_photographs`.

    Attributes
    ----------
    pair_factors : tuple of str
        ``("scene",)``: the factors in which two views agree.

    """

    pair_factors = ("scene",)

    def __init__(
        self, name: str, factors: FactorTable, images: Images, matrices: npt.NDArray[np.float64], size: Any
    ) -> None:
        super().__init__(name, factors, images, size)
        self._matrices = matrices  # from pixels of the first view of the scene, as photographed
        self._known: dict[int, tuple[int, int]] = {}

    @of_row
    def image_size(self, row: int) -> tuple[int, int]:
        """Height and width of the image of a row as it is fetched."""
        return self._size or self._photographed(row)

    @of_row
    def homography(self, rows: Sequence[int]) -> Reals:
        r"""Homography between two rows of the same scene, as they are fetched.

        Parameters
        ----------
        rows : (2,) int
            View 1 and view 2.

        Returns
        -------
        (3, 3) float64
            From pixels (x, y) of view 1 to those of view 2; centres of pixels are integers.

        Raises
        ------
        DataError
            When there are not two rows, or they are of two scenes.

        Examples
        --------
        >>> import tempfile
        >>> from PIL import Image
        >>> folder = Path(tempfile.mkdtemp())
        >>> for view in (1, 2):
        ...     Image.new("RGB", (8, 6)).save(folder / f"{view}.png")
        >>> _ = (folder / "H_1_2").write_text("1 0 3\n0 1 0\n0 0 1\n")
        >>> open_photographs(folder, (3, 4)).homography([0, 1]).tolist()
        [[1.0, 0.0, 1.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]

        """
        check_arguments(Photographs.homography, locals(), DataError)
        row1, row2 = self._pair(rows)
        matrix = self._to_view(row2) @ np.linalg.inv(self._to_view(row1))
        return np.asarray(matrix / matrix[2, 2] if matrix[2, 2] > 0 else matrix)

    @of_row
    def pixel_pairs(self, rows: Sequence[int], pixels: npt.ArrayLike | None = None) -> PixelPairs:
        """Partners of pixels of one row in another row of the same scene.

        Parameters
        ----------
        rows : (2,) int
            View 1 and view 2.
        pixels : (n, 2) float, optional
            Pixels (x, y) of view 1; all of them, row after row, by default.

        Returns
        -------
        PixelPairs
            One per pixel: VISIBLE, or OUTSIDE where view 2 does not show the point. Nothing is ever occluded.

        Raises
        ------
        DataError
            When there are not two rows, or they are of two scenes.

        """
        check_arguments(Photographs.pixel_pairs, locals(), DataError)
        row1, row2 = self._pair(rows)
        sizes = [self.image_size(row) for row in (row1, row2)]
        return planar_pairs(np.eye(3), self.homography([row1, row2]), sizes[0], sizes[0], sizes[1], pixels)

    def _pair(self, rows: Sequence[int]) -> tuple[int, int]:
        """Two rows of one scene."""
        if len(rows) != 2:
            raise DataError(
                f"pixels can be paired only between two rows of {self.name}, not {len(rows)}; pass [row, other]"
            )
        row1, row2 = map(int, rows)
        if self.factors.codes("scene", [row1])[0] != self.factors.codes("scene", [row2])[0]:
            raise DataError(
                f"rows {row1} and {row2} of {self.name} show different scenes; draw them with PixelPairSampler"
            )
        return row1, row2

    def _to_view(self, row: int) -> Reals:
        """Homography from the first view of the scene, as photographed, to a row as it is fetched."""
        matrix: Reals = self._matrices[row]
        if self._size is None:
            return matrix
        return planar.compose(matrix, _fitted(*self._photographed(row), *self._size))

    def _photographed(self, row: int) -> tuple[int, int]:
        """Height and width of a photograph in its file, which is read once."""
        if row not in self._known:
            found = header(*self._images.take(np.array([row]))[0])
            self._known[row] = found.height, found.width
        return self._known[row]


def open_photographs(folder: Path | str, size: tuple[int, int] | None = None) -> Photographs:
    r"""Open photographs with homographies: ``<scene>/1.ppm``, ``2.ppm``, … and ``H_1_2``, …, as HPatches [1]_ has them.

    ``H_1_k`` is a text of 3 × 3 numbers, which takes pixels (x, y) of view 1 to those of view k; centres of pixels are
    integers, (0, 0) the first. Images may be of any format, and files of homographies may end in ``.txt``. A folder
    with the views of one scene will do, too.

    Parameters
    ----------
    folder : Path or str
        The folder.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and cut out the centre; the homographies
        follow. Training needs it where photographs differ in size.

    Returns
    -------
    Photographs
        With factors ``scene`` and ``view``.

    Raises
    ------
    DataError
        When there are no homographies, one is damaged, singular, missing or there twice, or its image is missing.

    References
    ----------
    .. [1] V. Balntas, K. Lenc, A. Vedaldi, K. Mikolajczyk, "HPatches: a benchmark and evaluation of handcrafted and
       learned local descriptors", CVPR 2017 (arXiv 1704.05939).

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for view in (1, 2):
    ...     Image.new("RGB", (8, 6)).save(folder / f"{view}.png")
    >>> _ = (folder / "H_1_2").write_text("1 0 3\n0 1 0\n0 0 1\n")
    >>> photographs = open_photographs(folder)
    >>> pairs = photographs.pixel_pairs([0, 1], [[1, 2], [6, 2]])
    >>> pairs.points2.tolist(), pairs.visible.tolist()
    ([[4.0, 2.0], [9.0, 2.0]], [True, False])

    """
    check_arguments(open_photographs, locals(), DataError)
    folder, size = expanded(folder), check_size(size)
    files, scenes, views, matrices = [], [], [], []
    for scene in _scenes(folder):
        known = {_FIRST: np.eye(3)} | {view: _read(path) for view, path in _homographies(scene).items()}
        for view, matrix in sorted(known.items()):
            files.append(str(_image(scene, view).relative_to(folder)))
            scenes.append(scene.name)
            views.append(view)
            matrices.append(matrix)
    if not files:
        raise DataError(f"{folder} has no pixel correspondences for its photographs; add {HOMOGRAPHIES}")
    factors = [
        Factor("scene", Kind.NOMINAL, tuple(sorted(set(scenes)))),
        Factor("view", Kind.ORDINAL, tuple(sorted(set(views)))),
    ]
    table = FactorTable.from_values({"scene": scenes, "view": views}, factors)
    return Photographs(folder.name, table, ImageFiles(folder / "photographs", files), np.stack(matrices), size)


def _scenes(folder: Path) -> list[Path]:
    """Folders of one scene each: all within a folder, or itself."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; pass a folder that contains photographs and homographies")
    within = sorted({path.parent for path in folder.glob("*/H_1_[0-9]*")})
    return within or sorted({path.parent for path in folder.glob("H_1_[0-9]*")})


def _homographies(scene: Path) -> dict[int, Path]:
    """The file of each view but the first, one for every image."""
    by_view: dict[int, Path] = {}
    for path in sorted(scene.iterdir()):
        match = _HOMOGRAPHY.fullmatch(path.name)
        if match is None or (view := int(match[1])) == _FIRST:
            continue
        if view in by_view:
            raise DataError(
                f"{scene} has two homographies of view {view}, {by_view[view].name} and {path.name}; remove one of them"
            )
        by_view[view] = path
    for path in scene.iterdir():
        view_of = _VIEW.fullmatch(path.stem)
        if view_of and path.name.lower().endswith(KNOWN_ENDINGS) and int(path.stem) not in {_FIRST, *by_view}:
            raise DataError(
                f"{scene} contains {path.name}, but no homography H_1_{path.stem} of view {path.stem}; add the "
                f"homography, or remove {path.name}"
            )
    return by_view


def _image(scene: Path, view: int) -> Path:
    images = sorted(path for path in scene.glob(f"{view}.*") if path.name.lower().endswith(KNOWN_ENDINGS))
    if len(images) != 1:
        what = (
            f"{len(images)} images of that view; keep only one"
            if images
            else f"no image of that view; add one, for example {view}.png"
        )
        raise DataError(f"{scene} contains a homography of view {view}, but {what}")
    return images[0]


def _read(path: Path) -> Reals:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} could not be read: {error.strerror or error}; check the file") from error
    return parse_homography(content, str(path))


def _fitted(height: int, width: int, to_height: int, to_width: int) -> Reals:
    """From pixels of an image to those of the one that was made to cover a size, its centre cut out."""
    share = min(height / to_height, width / to_width)
    rows, columns = share * to_height, share * to_width
    return planar.fit((width - columns) / 2, (height - rows) / 2, rows, columns, to_height, to_width)
