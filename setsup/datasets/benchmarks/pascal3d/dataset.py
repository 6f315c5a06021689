"""Pascal3D+: objects of 12 rigid classes in photographs, each with the pose of an aligned CAD model.

Convention
----------
Model frame: z up, front towards −y. Azimuth 0 has the camera in front of the object, 90 on its +x side. Boxes are
(left, top, right, bottom) in 1-based inclusive pixels, clipped to the image.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.cropped_images import BoxedDataset, BoxedImages, Crops
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.benchmarks.pascal3d.cad import CadModel, read_cad
from setsup.datasets.benchmarks.pascal3d.lists import ABC, abc_codes, read_abc_list, validation
from setsup.datasets.benchmarks.pascal3d.objects import COARSE, FLAGS, POSE, SIDES, VIEW
from setsup.datasets.benchmarks.pascal3d.pose import geodesic, project, rotation
from setsup.datasets.benchmarks.pascal3d.records import find_images, open_records
from setsup.datasets.dataset import Modality, of_row
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.column_storage import check_rows
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded

__all__ = ["Pascal3D", "geodesic", "open", "project", "read_abc_list", "rotation"]

_ARCHIVES = ("PASCAL3D+_release1.1.zip", "PASCAL3D+_release1.1.tar")
_HOLDS = (r"Annotations/[a-z]+_(pascal|imagenet)/[^/]+\.mat", r"Images/[a-z]+_(pascal|imagenet)/")

_log = logging.getLogger("setsup")


class Pascal3D(BoxedDataset):
    """Annotated objects of Pascal3D+ release 1.1, as returned by :func:`open`.

    A row is an object of the class that the folder of its annotation is named after, so no object appears twice;
    objects whose box lies outside the image are left out. The modalities are ``image``, the box cropped and resized
    (bilinear, antialiased, without preserving the aspect ratio), ``box`` and ``rotation``, the matrix of
    :func:`~setsup.datasets.benchmarks.pascal3d.pose.rotation`.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.
    records : FactorTable
        Result of :func:`~setsup.datasets.benchmarks.pascal3d.records.open_records`.
    parts : sequence of (Factor, (rows,) int64)
        The factors ``split`` and ``abc``, with their codes.
    crops : Crops
        Crop of the boxes, from the options of :func:`open`.

    """

    def __init__(
        self,
        members: MemberIndex,
        records: FactorTable,
        parts: Sequence[tuple[Factor, Rows]],
        crops: Crops = Crops(),  # noqa: B008  it is frozen
    ) -> None:
        folders = _folders(records)
        photos = records.values("photo").tolist()
        places = find_images(members, folders, photos)
        lost = np.flatnonzero(places < 0).tolist()
        warn_left_out(members.source, "images", [f"Images/{folders[row]}/{photos[row]}" for row in lost], len(photos))
        present = np.flatnonzero(places >= 0)
        records, parts = records.select(present), [(factor, codes[present]) for factor, codes in parts]
        public = ("category", *POSE, "distance", "cad", *FLAGS, "source", *COARSE, "photo", "object")
        columns = {name: records.column(name) for name in public}
        columns |= {factor.name: codes for factor, codes in parts}
        factors = FactorTable([*map(records.__getitem__, public), *(factor for factor, _ in parts)], columns)
        boxes = np.stack([records.column(name) for name in SIDES], axis=1)
        boxed = BoxedImages(members, places[present], boxes, crops, "pascal3d")
        super().__init__("pascal3d", factors, boxed)
        self.modalities["rotation"] = Modality((3, 3), "float32")
        self._members = members
        self._view = np.stack([records.column(name) for name in VIEW], axis=1)

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        if name != "rotation":
            return super()._read(name, rows, out)
        return rotation(*(self.factors.codes(factor, rows) for factor in POSE)).astype(np.float32)

    @of_row
    def cameras(self, rows: npt.ArrayLike) -> dict[str, Array]:
        """Parameters of the published projection, named as those of :func:`~.pose.project`.

        Parameters
        ----------
        rows : integer array of any shape
            Row numbers.

        Returns
        -------
        dict of str to float64 array of the shape of ``rows``
            Azimuth, elevation, theta, distance, px, py, focal, viewport; NaN where the pose is unknown.

        """
        index = check_rows(rows, len(self))
        cameras = {name: self.factors.codes(name, index).astype(np.float64) for name in POSE}
        return cameras | {name: self._view[index, column].astype(np.float64) for column, name in enumerate(VIEW)}

    def cad_model(self, category: str, index: int) -> CadModel:
        """CAD model of a class, numbered from 1 as the factor ``cad`` is; see :class:`CadModel`.

        Raises
        ------
        DataError
            When the class or the model does not exist, or its file is missing or damaged.

        """
        return read_cad(self._members, category, index)


def _folders(records: FactorTable) -> list[str]:
    """Folders of the rows' images and annotations, such as ``car_pascal``."""
    category, source = (records.values(name).tolist() for name in ("category", "source"))
    return [f"{a}_{b}" for a, b in zip(category, source, strict=True)]


def open(
    root: Path | str | None = None,
    size: tuple[int, int] = (128, 128),
    margin: float = 0.0,
    jitter: float = 0.0,
    seed: int = 0,
) -> Pascal3D:
    """Open Pascal3D+ release 1.1.

    The first call reads all annotations, which takes half a minute for the release, and stores them in the user's cache
    folder.

    Parameters
    ----------
    root : Path, str or None
        The unpacked release, the published zip, a tar, or a folder that contains one of them; None for the default
        folders. ABC's lists ``car_test.txt`` and ``chair_test.txt`` are read from there or from a subfolder
        ``abc_lists``, if they exist.
    size : (height, width)
        Of the images.
    margin : float
        Margin added on each side of a box, as a fraction of its width or height.
    jitter : float
        Largest random shift of each side of a box, as a fraction below 0.5. The image of a row depends only on the row
        and the seed.
    seed : int
        0 ≤ seed < 2⁶⁴.

    Returns
    -------
    Pascal3D

    Raises
    ------
    DataError
        When the files are missing (the message shows how to get them), annotations are damaged (with their number and
        the first of them), or an argument is out of range.

    """
    crops = Crops(size, margin, jitter, seed)
    path = None if root is None else expanded(root)
    members = find_members("pascal3d", path, _HOLDS, _ARCHIVES)
    records = open_records(members)
    folders = _beside(members, path)
    parts = [_split(members, folders, records), _abc(members, folders, records)]
    return Pascal3D(members, records, parts, crops)


def _beside(members: MemberIndex, root: Path | None) -> list[Path]:
    """Folders in which lists may lie that are no part of the release."""
    from setsup.files.roots import data_places

    source = members.source if os.path.isdir(members.source) else members.source.parent
    return [folder for folder in dict.fromkeys([source, *data_places("pascal3d", root)]) if os.path.isdir(folder)]


def _split(members: MemberIndex, folders: list[Path], records: FactorTable) -> tuple[Factor, Rows]:
    """The factor ``split``: val is what VOC2012 validates on, train all else."""
    imagenet = records.codes("source") == records["source"].code("imagenet")
    listed = validation(members, folders)
    if listed is None:
        if not imagenet.all():
            _log.warning(
                "%s has no list of validation images (PASCAL/VOCdevkit/VOC2012/ImageSets/Main/val.txt or "
                "image_sets/val.txt), so the split of the PASCAL images is unknown",
                members.source,
            )
        codes = np.where(imagenet, 0, -1)
    else:
        held = np.array([image in listed for image in records["photo"].levels or ()])[records.codes("photo")]
        codes = np.where(held & ~imagenet, 1, 0)
    return Factor("split", Kind.NOMINAL, ("train", "val"), role="split"), codes.astype(np.int64)


def _abc(members: MemberIndex, folders: list[Path], records: FactorTable) -> tuple[Factor, Rows]:
    return Factor("abc", Kind.NOMINAL, ABC, role="split"), abc_codes(members, folders, records)
