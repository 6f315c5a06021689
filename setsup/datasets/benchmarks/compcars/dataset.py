"""CompCars: 136,726 web photographs of whole cars by make, model and year, with viewpoint and box.

Convention
----------
Boxes are (left, top, right, bottom) in 1-based inclusive pixels of the stored images.
"""

import logging
import re
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.cropped_images import BoxedDataset, BoxedImages, Crops
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.benchmarks.compcars.labels import VIEWPOINTS, read_labels
from setsup.datasets.benchmarks.compcars.lists import ATTRIBUTES, Models, listed, named, read_models
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members

__all__ = ["CompCars", "open"]


_IMAGE = r"image/(?P<image>(?P<make>[0-9]{1,6})/(?P<model>[0-9]{1,6})/(?P<year>[^/]+)/[^/]+)\.jpg"
_LABEL = r"label/[0-9]{1,6}/[0-9]{1,6}/[^/]+/[^/]+\.txt"
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_PARTS = ("train", "test")
_CLASSIFICATION = "train_test_split/classification/{}.txt"
_VERIFICATION = "train_test_split/verification/verification_{}.txt"
_PAIRS = ("pairs_easy", "pairs_medium", "pairs_hard")

_log = logging.getLogger("setsup")


class CompCars(BoxedDataset):
    """Web photographs of cars, each with the box of one car, as returned by :func:`open`.

    Factors: ``make`` and ``model`` (names, or numbers if ``misc/make_model_name.mat`` is missing), ``year`` (of the
    model, unknown for some), ``viewpoint`` (unknown if uncertain); attributes of the model from
    ``misc/attributes.txt``, if available, ``car_type``, ``maximum_speed`` (km/h), ``displacement`` (litres),
    ``door_number`` and ``seat_number``; ``split``, the lists for the classification of 431 models, and
    ``verification``: train, the list that trains verification and tests attributes, and test, the images of the
    verification pairs. Images in neither list are in no part. The modalities are ``image``, the cropped and resized box
    (bilinear, antialiased, without preserving the aspect ratio), and ``box``, as annotated.

    Rows are sorted by file name. Images without a label, or whose label has no box, are left out; the numbers of these
    images and of missing listed images are logged.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.
    crops : Crops
        Crop of the boxes, from the options of :func:`open`.

    Raises
    ------
    DataError
        Files are damaged, or no image has a label.

    """

    def __init__(
        self,
        members: MemberIndex,
        crops: Crops = Crops(),  # noqa: B008  it is frozen
    ) -> None:
        places, boxes, fields = _find_images(members)
        images = BoxedImages(members, places, boxes, crops, "compcars")
        super().__init__("compcars", _table(members, fields), images)


def open(
    root: Path | str | None = None,
    size: tuple[int, int] = (128, 128),
    margin: float = 0.0,
    jitter: float = 0.0,
    seed: int = 0,
) -> CompCars:
    """Open the web images of CompCars.

    The first call reads all labels, and stores them in the user's cache folder.

    Parameters
    ----------
    root : Path, str or None
        Folder, zip or tar (without a password) that contains ``image``, ``label``, ``misc`` and ``train_test_split``;
        or a parent folder of these, such as ``data``. None for the default folders.
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
        When the files are missing (the message shows where to download them) or damaged, or an argument is out of
        range.

    """
    crops = Crops(size, margin, jitter, seed)
    holds = {_IMAGE: "image/78/1/2014/3ac218c0c6c378.jpg", _LABEL: "label/78/1/2014/3ac218c0c6c378.txt"}
    return CompCars(find_members("compcars", root, holds, ("compcars.zip", "compcars.tar")), crops)


def _find_images(members: MemberIndex) -> tuple[Rows, Array, dict[str, Any]]:
    """Places and boxes of the images that are kept, and what their paths and labels say."""
    import pyarrow as pa
    import pyarrow.compute as pc

    places, groups = members.matching(_IMAGE)
    images = groups["image"].cast(pa.large_string())
    text = pa.scalar("", pa.large_string())
    wanted = pc.binary_join_element_wise(pa.scalar("label/", pa.large_string()), images, text)
    labelled = members.places(pc.binary_join_element_wise(wanted, pa.scalar(".txt", pa.large_string()), text))
    there = np.flatnonzero(labelled >= 0)
    if not len(there):
        raise DataError(
            f"{members.source} has no label for any of its {len(places):,} images; unpack the release again"
        )
    labels = read_labels(members, labelled[there])
    boxed = np.isfinite(labels["box"]).all(axis=1)
    for lost, why in (
        (np.flatnonzero(labelled < 0), "have no label"),
        (there[~boxed], "have a label without a box, or with an empty box"),
    ):
        if len(lost):
            _log.warning(
                "%s: %s of %s images %s, such as %s; they are left out",
                *(members.source, f"{len(lost):,}", f"{len(places):,}", why, members.label(int(places[lost[0]]))),
            )
    chosen = there[boxed]
    if not len(chosen):
        raise DataError(f"{members.source} contains no label with a box; unpack the release again")
    fields = {name: groups[name].take(chosen).to_pylist() for name in ("make", "model", "year")}
    fields["viewpoint"] = labels["viewpoint"][boxed].astype(np.int64)
    fields["image"] = pc.binary_join_element_wise(images.take(chosen), pa.scalar(".jpg", pa.large_string()), text)
    return places[chosen], labels["box"][boxed], fields


def _table(members: MemberIndex, fields: dict[str, Any]) -> FactorTable:
    known = read_models(members)
    columns: dict[Factor, Array] = {}
    makes, make = np.unique(np.array([int(number) for number in fields["make"]]), return_inverse=True)
    models, model = np.unique(np.array([int(number) for number in fields["model"]]), return_inverse=True)
    columns[Factor("make", Kind.NOMINAL, named(makes.tolist(), known.makes))] = make
    columns[Factor("model", Kind.NOMINAL, named(models.tolist(), known.models))] = model
    years = np.array([int(text) if _YEAR.fullmatch(text) else 0 for text in fields["year"]])
    _add(columns, "year", years)
    columns[Factor("viewpoint", Kind.NOMINAL, VIEWPOINTS)] = fields["viewpoint"]
    _add_attributes(columns, known, models, model)
    for name, lists, pairs in (
        ("split", [[_CLASSIFICATION.format(part)] for part in _PARTS], 1),
        ("verification", [[_VERIFICATION.format("train")], [_VERIFICATION.format(part) for part in _PAIRS]], 2),
    ):
        train = listed(members, lists[0], fields["image"])
        test = listed(members, lists[1], fields["image"], pairs)
        if train.any() or test.any():
            parts = np.where(train, 0, np.where(test, 1, -1))
            columns[Factor(name, Kind.NOMINAL, _PARTS, role="split")] = parts
    return table_of(columns)


def _add_attributes(columns: dict[Factor, Array], known: Models, models: Rows, model: Rows) -> None:
    """Factors of the attributes that any model has."""
    if not known.attributes:
        return
    nothing = (0.0,) * len(ATTRIBUTES)
    told = np.array([known.attributes.get(number, nothing) for number in models.tolist()])[model]
    speed, displacement, doors, seats, kind = told.T
    kinds = np.array(sorted(known.types), np.int64) if known.types else np.unique(kind[kind > 0]).astype(np.int64)
    if len(kinds):
        codes = np.minimum(np.searchsorted(kinds, kind), len(kinds) - 1)
        columns[Factor("car_type", Kind.NOMINAL, named(kinds.tolist(), known.types))] = np.where(
            kinds[codes] == kind, codes, -1
        )
    for name, values, unit in (("maximum_speed", speed, "km/h"), ("displacement", displacement, "L")):
        if values.any():
            columns[Factor(name, Kind.CONTINUOUS, unit=unit)] = np.where(values > 0, values, np.nan).astype(np.float32)
    _add(columns, "door_number", doors.astype(np.int64))
    _add(columns, "seat_number", seats.astype(np.int64))


def _add(columns: dict[Factor, Array], name: str, values: Rows) -> None:
    """An ordinal factor of integers, of which 0 is unknown; none where all are."""
    levels = np.unique(values[values > 0])
    if len(levels):
        codes = np.searchsorted(levels, values)
        columns[Factor(name, Kind.ORDINAL, tuple(levels.tolist()))] = np.where(values > 0, codes, -1)
