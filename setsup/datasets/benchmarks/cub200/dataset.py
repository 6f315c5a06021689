"""CUB-200-2011: photographs of birds of 200 species with attributes, parts and boxes.

The manifest describes the rows. Attributes, parts and boxes require code because they are arrays, not factors.

Convention
----------
Parts and boxes are used as published: a part (x, y) is the pixel in column x and row y, counted from 0. Boxes, which
are published as left, top, width and height, are (left, top, right, bottom), where right is left + width and bottom is
top + height. In the published files the smallest left and top are 0, and the most frequent right is 499, the last
column of an image that is 500 pixels wide. The code of CMR counts from 1 instead.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from setsup.arrays import Array, Places, Reals, Rows
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.keypoint_images import KeypointImages
from setsup.datasets.adapters.number_texts import Column, read_columns, read_matrix
from setsup.datasets.benchmarks.cub200.attributes import ATTRIBUTES, attribute_factors, read_attributes
from setsup.datasets.cached_arrays import cached_array, file_states
from setsup.datasets.dataset import Modality
from setsup.datasets.described import read_described
from setsup.datasets.images import check_size
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile
from setsup.factors import FactorTable
from setsup.files import load_manifest
from setsup.files.archives.members import MemberIndex

__all__ = ["CUB200", "PARTS", "open", "read_boxes", "read_parts"]

PARTS = (
    *("back", "beak", "belly", "breast", "crown", "forehead", "left eye", "left leg"),
    *("left wing", "nape", "right eye", "right leg", "right wing", "tail", "throat"),
)
"""Names of the 15 parts, in the order of their numbers."""

_LABELS = "attributes/image_attribute_labels.txt"
_BY_CLASS = "attributes/class_attribute_labels_continuous.txt"
_PARTS = "parts/part_locs.txt"
_BOXES = "bounding_boxes.txt"
_SPECIES = 200
_MOST = 1 << 30  # bytes of a list
_FARTHEST = 1_000_000  # pixels
_VERSION = 1  # of the cached codes of attributes
_CODES = np.dtype([("codes", "u1", (len(ATTRIBUTES),))])


class CUB200(KeypointImages):
    """Photographs of CUB-200-2011, as returned by :func:`open`.

    Rows are those of ``images.txt``. In addition to ``species``, ``number`` (key: number of the image), ``split`` and
    ``retrieval``, nine groups of attributes are factors, such as ``bill_shape`` and ``size``: a worker gave one value
    of them. They are unknown where none or several are present. Modalities, each available if its file exists:

    - ``image``, uint8 sRGB.
    - ``keypoints``, (15, 2) float32: x and y of the parts in pixels of ``image``; NaN if a part is not visible.
    - ``box``, (4,) float32: left, top, right and bottom of the bird in pixels of ``image``.
    - ``attributes``, (312,) uint8: 1 if the attribute is present, 0 if not.
    - ``certainty``, (312,) uint8: 1 not visible, 2 guessing, 3 probably, 4 definitely.

    Images are not turned by the orientation that a camera noted, since parts and boxes are in pixels of the files.

    Any two birds have the same parts, so :meth:`keypoint_pairs` takes any two rows; a sampler of pairs draws two birds
    of one species by default.

    Attributes
    ----------
    attribute_names : tuple of str
        Names of the 312 attributes, as ``has_bill_shape::dagger``.

    Examples
    --------
    Birds with blue wings:

    >>> import setsup
    >>> birds = setsup.load("cub200")  # doctest: +SKIP
    >>> blue = birds.attribute_names.index("has_wing_color::blue")  # doctest: +SKIP
    >>> present = birds.fetch(range(len(birds)), ["attributes"])["attributes"]  # doctest: +SKIP
    >>> birds.select(present[:, blue].nonzero()[0])  # doctest: +SKIP

    Any attribute becomes a factor by the number of the image; a sampler may then fix it:

    >>> from setsup.factors import FactorTable
    >>> values = {"number": birds.factors.values("number"), "blue_wings": present[:, blue] == 1}  # doctest: +SKIP
    >>> table = birds.factors.join(FactorTable.from_values(values), on="number")  # doctest: +SKIP
    >>> sampler = setsup.SetSampler(table, inactive=["blue_wings"], size=8)  # doctest: +SKIP
    >>> birds = birds.with_factors(table)  # doctest: +SKIP

    A loader crops the original images, and parts and boxes with them:

    >>> from setsup.loading.resizing import RandomResizedCrop
    >>> kinds = {"keypoints": "points", "box": "boxes", "attributes": "unchanged", "certainty": "unchanged"}
    >>> crop = RandomResizedCrop(224, modalities=kinds)
    >>> loader = setsup.loader(birds, sampler, resize=crop)  # doctest: +SKIP
    >>> images = setsup.loader(birds, sampler, resize=RandomResizedCrop(224), modalities=["image"])  # doctest: +SKIP

    """

    pair_factors = ("species",)
    same_keypoints = ()
    keypoint_names = PARTS
    attribute_names = ATTRIBUTES

    def __init__(
        self, members: MemberIndex, places: Places, factors: FactorTable, size: tuple[int, int] | None = None
    ) -> None:
        self._members = members
        self._numbers: Rows = factors.values("number").astype(np.int64)
        points = self._read_list(_PARTS, read_parts)
        boxes = self._read_list(_BOXES, read_boxes)
        if _LABELS in members:
            factors = table_of(
                [(factor, factors.codes(factor.name)) for factor in factors.factors] + attribute_factors(self._codes)
            )
        super().__init__("cub200", factors, MemberImages(members, places, upright=False), points, boxes, size)
        if _LABELS in members:
            self.modalities |= {name: Modality((len(ATTRIBUTES),), "uint8") for name in ("attributes", "certainty")}

    @per_process
    def class_attributes(self) -> Reals:
        """Percentage of the workers to whom a species has an attribute, (species, 312) float32, by codes of species.

        Raises
        ------
        DataError
            When ``class_attribute_labels_continuous.txt`` is missing or damaged.

        """
        member = self._members.place(_BY_CLASS)
        label = self._members.label(member)
        found = read_matrix(self._members.read(member, _MOST), label, len(ATTRIBUTES), 0, 100)
        if len(found) != _SPECIES:
            raise DamagedFile(f"{label} has {len(found):,} lines; expected {_SPECIES}")
        levels = self.factors["species"].levels or ()
        return found[[int(str(level).partition(".")[0]) - 1 for level in levels]].astype(np.float32)

    @per_process
    def _codes(self) -> Array:
        """Certainty and presence of the attributes of all rows, (n, 312) uint8, mapped."""
        member = self._members.place(_LABELS)
        label = self._members.label(member)
        made_of = [_VERSION, file_states(self._members, [member]), self._numbers.tobytes()]

        def make() -> Array:
            codes = read_attributes(self._members.read(member, _MOST), label, self._numbers)
            return codes.view(_CODES).reshape(-1)

        return cached_array("cub200", made_of, _CODES, len(self._numbers), make)["codes"]

    def _read_list(self, name: str, read: Callable[[bytes, str, Rows], Reals]) -> Reals | None:
        if name not in self._members:
            return None
        member = self._members.place(name)
        return read(self._members.read(member, _MOST), self._members.label(member), self._numbers)

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        if name not in ("attributes", "certainty"):
            return super()._read(name, rows, out)
        codes = self._codes[rows]
        return np.asarray(codes & 1 if name == "attributes" else codes >> 1)


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> CUB200:
    """Open CUB-200-2011.

    Parameters
    ----------
    root : Path, str or None
        The unpacked release ``CUB_200_2011``, a zip or tar of it, or a folder that contains one of them; None for the
        default folders.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and cut out the centre; parts and boxes
        follow.

    Returns
    -------
    CUB200

    Raises
    ------
    DataError
        When images or lists are missing (the message shows how to get them), or a list is damaged.

    Notes
    -----
    These files are read, the first three of them always, the others if they exist::

        images.txt              number, path
        image_class_labels.txt  number, species
        images/                 photographs
        train_test_split.txt    number, 1 for training
        bounding_boxes.txt      number, left, top, width, height
        parts/part_locs.txt     number, part, x, y, 1 if visible
        attributes/image_attribute_labels.txt                number, attribute, 1 if present, certainty, time
        attributes/class_attribute_labels_continuous.txt     312 percentages of each species

    In a few published lines of ``image_attribute_labels.txt`` up to two values stand before the time that the others
    lack; the first four values are used. Locations and times of single workers (``part_click_locs.txt``) are not read.

    """
    size = check_size(size)
    members, places, factors = read_described(load_manifest("cub200"), root)
    return CUB200(members, places, factors, size)


def read_parts(content: bytes, label: str, images: Rows) -> Reals:
    """Parts of some images by ``part_locs.txt``, (n, 15, 2) float64, NaN where a part is not visible.

    `images` (n,) int64: their numbers.
    """
    columns = {
        "image": Column(np.int32, 1, 10**9),
        "part": Column(np.int8, 1, len(PARTS)),
        "x": Column(np.float64, -_FARTHEST, _FARTHEST),
        "y": Column(np.float64, -_FARTHEST, _FARTHEST),
        "visible": Column(np.int8, 0, 1),
    }
    lines = read_columns(content, label, columns, "the numbers of an image and a part from 1 to 15, x, y, and 0 or 1")
    points = np.stack([lines["x"], lines["y"]], axis=1)
    points[lines["visible"] == 0] = np.nan
    keys = lines["image"].astype(np.int64) * len(PARTS) + lines["part"] - 1
    wanted = images[:, None] * len(PARTS) + np.arange(len(PARTS))
    return points[_places(keys, wanted.reshape(-1), label, len(PARTS))].reshape(len(images), len(PARTS), 2)


def read_boxes(content: bytes, label: str, images: Rows) -> Reals:
    """Boxes of some images by ``bounding_boxes.txt``, (n, 4) float64: left, top, right, bottom.

    `images` (n,) int64: their numbers.
    """
    columns = {
        "image": Column(np.int32, 1, 10**9),
        "x": Column(np.float64, -_FARTHEST, _FARTHEST),
        "y": Column(np.float64, -_FARTHEST, _FARTHEST),
        "width": Column(np.float64, 0, _FARTHEST),
        "height": Column(np.float64, 0, _FARTHEST),
    }
    lines = read_columns(content, label, columns, "the number of an image, x, y, width and height")
    sides = np.stack([lines["x"], lines["y"], lines["x"] + lines["width"], lines["y"] + lines["height"]], axis=1)
    return sides[_places(lines["image"].astype(np.int64), images, label, 1)]


def _places(keys: Rows, wanted: Rows, label: str, each: int) -> Places:
    """Lines with the wanted keys; `each`: keys of an image, the first of which is its number times `each`."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    if len(twice := np.flatnonzero(ordered[1:] == ordered[:-1])):
        raise DamagedFile(f"{label} repeats a line of image {ordered[twice[0]] // each}")
    place = np.minimum(np.searchsorted(ordered, wanted), len(keys) - 1)
    if len(lost := np.flatnonzero(ordered[place] != wanted)):
        raise DamagedFile(f"{label} lacks a line of image {wanted[lost[0]] // each}")
    return np.asarray(order[place])
