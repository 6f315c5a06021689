"""Images of objects with keypoints that are defined for each category, and published pairs of images."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools, Reals, Rows
from setsup.checks import check_arguments
from setsup.datasets.adapters.fetching import common_size, fetch_images, sample_headers
from setsup.datasets.adapters.image_files import ReleaseDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.dataset import Modality, of_row
from setsup.datasets.keypoint_pairs import KeypointPairs
from setsup.datasets.originals import Original, originals_of, refuse_changed
from setsup.datasets.per_process import per_process
from setsup.errors import DataError
from setsup.factors.table import FactorTable

__all__ = ["KeypointImages", "fitted"]

_LOOKED_AT = 16
_VISIBLE, _OUTSIDE = 0, 2  # of setsup.correspondence.Status


class KeypointImages(ReleaseDataset):
    """Images with keypoints; a subclass has ``published_pairs``.

    Attributes
    ----------
    pair_factors : tuple of str
        The factors in which two images of a drawn pair agree, such as ``("category",)``.
    same_keypoints : tuple of str
        The factors in which two images must agree to share keypoints; none if all images have the same keypoints.
    keypoint_names : tuple of str
        Names of the keypoints; if empty, they are named by their numbers, from 0.
    keypoint_scale : str
        Scale of the errors that the benchmark's papers report: ``bbox``, ``img`` or ``keypoints``, as in
        :class:`setsup.experiments.evaluations.keypoint_transfer.Transfer`.

    """

    pair_factors: tuple[str, ...] = ("category",)
    same_keypoints: tuple[str, ...] = ("category",)
    keypoint_names: tuple[str, ...] = ()
    keypoint_scale = "bbox"

    def __init__(
        self,
        name: str,
        factors: FactorTable,
        images: MemberImages,
        points: Reals | None,
        boxes: Reals | None,
        size: tuple[int, int] | None,
    ) -> None:
        """Take `points` (rows, keypoints, 2), NaN for missing ones, and `boxes` (rows, 4), in pixels of the files.

        None where a release lacks the file.
        """
        self.name, self.factors = name, factors
        self._images, self._size = images, size
        self._points, self._boxes = points, boxes
        shape = size or common_size(sample_headers(images, _LOOKED_AT))
        self.modalities = {"image": Modality((*shape, 3), "uint8", color="srgb")}
        if points is not None:
            self.modalities["keypoints"] = Modality((points.shape[1], 2), "float32", unit="px")
        if boxes is not None:
            self.modalities["box"] = Modality((4,), "float32", unit="px")

    @per_process
    def _sizes(self) -> Rows:
        """Height and width of each image file, (rows, 2)."""
        headers = sample_headers(self._images, len(self._images))
        return np.array([(header.height, header.width) for header in headers], dtype=np.int64)

    @of_row
    def image_size(self, row: int) -> tuple[int, int]:
        """Height and width of a row's image as fetched."""
        if self._size is not None:
            return self._size
        height, width = self._sizes[row].tolist()
        return height, width

    @of_row
    def keypoint_pairs(self, rows: Sequence[int]) -> KeypointPairs:
        """Keypoints that two rows share; they are of one category if the dataset has categories.

        Parameters
        ----------
        rows : (2,) int
            Image 1 and image 2.

        Returns
        -------
        KeypointPairs
            In the order of the annotation, with their names, positions in pixels of the images as fetched.
            Keypoints that either image lacks are left out, as are those that `size` cuts off image 1; those that it
            cuts off image 2 are OUTSIDE.

        Raises
        ------
        DataError
            When there are not two rows, they are of two categories, or the release lacks the file of keypoints.

        """
        check_arguments(KeypointImages.keypoint_pairs, locals(), DataError)
        if len(rows) != 2:
            raise DataError(f"keypoints are shared by two rows of {self.name}, not {len(rows)}; pass [row, other]")
        row1, row2 = map(int, rows)
        for name in self.same_keypoints:
            first, second = self.factors.codes(name, [row1, row2]).tolist()
            if first != second:
                raise DataError(
                    f"rows {row1} and {row2} of {self.name} show objects of different categories; draw them with "
                    "PixelPairSampler, or take them from published_pairs"
                )
        points1, points2 = (
            self._as_fetched(points, row) for points, row in zip(self._shared(row1, row2), rows, strict=True)
        )
        known = np.isfinite(points1).all(axis=1) & np.isfinite(points2).all(axis=1)
        if self._size is not None:
            known &= _inside(points1, self._size)
        numbers = np.flatnonzero(known)
        status = np.full(len(numbers), _VISIBLE, np.uint8)
        if self._size is not None:
            status[~_inside(points2[numbers], self._size)] = _OUTSIDE
        names = [self.keypoint_names[number] if self.keypoint_names else str(number) for number in numbers.tolist()]
        return KeypointPairs(points1[numbers], points2[numbers], status, names)

    def _shared(self, row1: int, row2: int) -> tuple[Reals, Reals]:
        """Keypoints of two rows, in pixels of their files, NaN where an image does not have them."""
        points = self._known_points()
        return points[row1], points[row2]

    def _known_points(self) -> Reals:
        """Keypoints of all rows, in pixels of their files."""
        if self._points is None:
            raise DataError(f"{self!r} has no file with keypoints; fetch or unpack the release again")
        return self._points

    def _as_fetched(self, points: Reals, row: int) -> Reals:
        """Convert points (n, 2) from pixels of an image file to pixels of the image as fetched."""
        return points if self._size is None else fitted(points, self._sizes[row].tolist(), self._size)

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Encoded images of (n,) rows; None for other modalities."""
        if name != "image":
            return None
        refuse_changed(self.name, size=self._size)
        return originals_of(self._images.take(rows), 3)

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        if name == "image":
            return fetch_images(self._images, rows, self.modalities[name].shape, self._size, out)
        known: Any = self._points if name == "keypoints" else self._boxes
        flat = [
            self._as_fetched(known[row].reshape(-1, 2), row).reshape(known.shape[1:])
            for row in rows.reshape(-1).tolist()
        ]
        found = np.array(flat, np.float32).reshape(*rows.shape, *known.shape[1:])
        if out is None:
            return found
        out[...] = found
        return out


def fitted(points: npt.ArrayLike, whole: Sequence[int], size: Sequence[int]) -> Reals:
    """Points (n, 2) of an image, after it is resized to just cover a size and cropped about its centre.

    `whole, size` (height, width) of the image and of the result, pixels; as :func:`setsup.datasets.images.resize`.

    Examples
    --------
    >>> fitted([[0, 0], [9, 4]], (5, 10), (5, 5)).tolist()
    [[-2.5, 0.0], [6.5, 4.0]]

    """
    share = min(whole[0] / size[0], whole[1] / size[1])
    edge = (np.array([whole[1], whole[0]]) - share * np.array([size[1], size[0]])) / 2
    return np.asarray((np.asarray(points, np.float64) + 0.5 - edge) / share - 0.5)


def _inside(points: Reals, size: tuple[int, int]) -> Bools:
    """Which points (n, 2) are within an image."""
    low, high = np.array([-0.5, -0.5]), np.array([size[1], size[0]]) - 0.5
    return np.asarray(((points >= low) & (points <= high)).all(axis=1))
