"""Cars196, also known as Stanford Cars: 16,185 photographs of cars of 196 classes of make, model and year.

Convention
----------
Boxes are (left, top, right, bottom), in 1-based inclusive pixels of the stored images.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.adapters.cropped_images import BoxedDataset, BoxedImages, Crops
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.benchmarks.cars196.annotations import (
    ANNOTATIONS,
    BODIES,
    IMAGES,
    Cars,
    body,
    make,
    read_cars,
    year,
)
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members

__all__ = ["Cars196", "open"]


_PARTS = ("train", "test")
_SEEN = 98  # classes on which metric learning trains; the others are for its tests
_PACKED = r"car(?:s_train|s_test|_ims|_devkit)\.(?:zip|tar)"
_HOLDS = {ANNOTATIONS: "devkit/cars_train_annos.mat or cars_annos.mat", IMAGES: "cars_train, cars_test or car_ims"}


class Cars196(BoxedDataset):
    """Photographs of cars, each with the box and the model class of one car, as returned by :func:`open`.

    Factors: ``model_class`` (196 names such as ``Acura RL Sedan 2012``; unknown in the test part if its labels are
    missing); ``make``, ``body`` (unknown if the name has none) and ``year``, which are parsed from these names; the key
    ``file``, the image in the release; ``split`` as published, and ``retrieval``, the split of metric learning: the
    first 98 classes for training and the other 98 for testing. The modalities are ``image``, the box cropped and
    resized (bilinear, antialiased, without preserving the aspect ratio), and ``box``, as annotated.

    Rows are in the order of the annotations: those of ``cars_train`` and then ``cars_test``, or of ``car_ims``.
    Annotated images that are missing are left out, with a warning.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.
    crops : Crops
        Crop of the boxes, from the options of :func:`open`.

    Raises
    ------
    DataError
        Annotations are missing or damaged, or all images are missing.

    """

    def __init__(
        self,
        members: MemberIndex,
        crops: Crops = Crops(),  # noqa: B008  it is frozen
    ) -> None:
        cars = read_cars(members)
        places = _places(members, cars.images)
        rows = np.flatnonzero(places >= 0)
        images = BoxedImages(members, places[rows], cars.boxes[rows], crops, "cars196")
        super().__init__("cars196", _table(cars, rows), images)


def open(
    root: Path | str | None = None,
    size: tuple[int, int] = (128, 128),
    margin: float = 0.0,
    jitter: float = 0.0,
    seed: int = 0,
) -> Cars196:
    """Open Cars196.

    Parameters
    ----------
    root : Path, str or None
        Folder, zip or tar with ``cars_train``, ``cars_test`` and ``devkit`` (and ``cars_test_annos_withlabels.mat`` in
        or next to it, which the classes of the test part require), or with ``car_ims`` and ``cars_annos.mat``; None for
        the default folders.
    size : (height, width)
        Of the images.
    margin : float
        Margin added on each side of a box, as a fraction of its width or height.
    jitter : float
        Largest random shift of each side of a box, as a fraction below 0.5. The image of a row depends only on the row
        and the seed.
    seed : int
        0 ≤ seed < 2⁶⁴.

    Raises
    ------
    DataError
        When the files are missing (the message shows how to get them) or damaged, or an argument is out of range.

    """
    crops = Crops(size, margin, jitter, seed)
    members = find_members("cars196", root, _HOLDS, ("cars196.zip", "cars196.tar"), parts=_PACKED)
    return Cars196(members, crops)


def _places(members: MemberIndex, images: list[str]) -> npt.NDArray[np.int64]:
    """Places of the images, -1 for those that are missing."""
    # some mirrors have cars_train/cars_train/00001.jpg
    nested = [f"{image.partition('/')[0]}/{image}" for image in images]
    places = np.maximum(members.places(images), members.places(nested))
    lost = np.flatnonzero(places < 0)
    warn_left_out(members.source, "images", [images[row] for row in lost.tolist()], len(images))
    return places


def _table(cars: Cars, rows: npt.NDArray[np.int64]) -> FactorTable:
    makes, bodies, years = ([tell(name) for name in cars.classes] for tell in (make, body, year))
    known: dict[str, tuple[Kind, tuple[Any, ...], list[Any]]] = {
        "make": (Kind.NOMINAL, tuple(sorted(set(makes))), makes),
        "body": (Kind.NOMINAL, BODIES, bodies),
        "year": (Kind.ORDINAL, tuple(sorted({each for each in years if each is not None})), years),
    }
    codes = cars.codes[rows]
    columns: dict[Factor, Array] = {Factor("model_class", Kind.NOMINAL, cars.classes): codes}
    for name, (kind, levels, values) in known.items():
        # the class -1 is the last of these
        of_class = [levels.index(value) if value in levels else -1 for value in values] + [-1]
        if levels:
            columns[Factor(name, kind, levels)] = np.array(of_class, np.int64)[codes]
    files = tuple(cars.images[row] for row in rows.tolist())
    columns[Factor("file", Kind.NOMINAL, files, role="key")] = np.arange(len(rows))
    columns[Factor("split", Kind.NOMINAL, _PARTS, role="split")] = cars.test[rows].astype(np.int64)
    columns[Factor("retrieval", Kind.NOMINAL, _PARTS, role="split")] = np.where(codes < 0, -1, codes >= _SEEN)
    return table_of(columns)
