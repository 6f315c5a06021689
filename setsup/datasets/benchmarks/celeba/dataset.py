"""CelebA: 202,599 aligned faces of 10,177 people with 40 attributes and landmarks, from the published files.

The images are those of ``img_align_celeba``, zipped or unpacked. The annotations are the published text files or
Kaggle's CSV files: next to the images, in ``Anno`` and ``Eval``, or in the same archive. The boxes and landmarks of the
in-the-wild images are not used.

DCoDR uses ``setsup.load("celeba", root, split="dcodr", crop=(128, 128), size=(64, 64))``.
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from setsup.arrays import Array, Places, Rows
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.fetching import fetch_images, sample_images
from setsup.datasets.adapters.image_files import ReleaseDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.benchmarks.celeba.annotations import MOST, Annotation, find_annotation, read_annotation
from setsup.datasets.benchmarks.celeba.frame import ALIGNED, Frame
from setsup.datasets.cached_arrays import cached_array, file_states
from setsup.datasets.dataset import Modality
from setsup.datasets.images import header, parallel
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.listing import as_numpy
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded
from setsup.files.texts import Place, content_of, label_of

__all__ = ["ATTRIBUTES", "CelebA", "open"]

_PUBLISHED = (
    *("5_o_Clock_Shadow", "Arched_Eyebrows", "Attractive", "Bags_Under_Eyes", "Bald", "Bangs", "Big_Lips", "Big_Nose"),
    *("Black_Hair", "Blond_Hair", "Blurry", "Brown_Hair", "Bushy_Eyebrows", "Chubby", "Double_Chin", "Eyeglasses"),
    *("Goatee", "Gray_Hair", "Heavy_Makeup", "High_Cheekbones", "Male", "Mouth_Slightly_Open", "Mustache"),
    *("Narrow_Eyes", "No_Beard", "Oval_Face", "Pale_Skin", "Pointy_Nose", "Receding_Hairline", "Rosy_Cheeks"),
    *("Sideburns", "Smiling", "Straight_Hair", "Wavy_Hair", "Wearing_Earrings", "Wearing_Hat", "Wearing_Lipstick"),
    *("Wearing_Necklace", "Wearing_Necktie", "Young"),
)
ATTRIBUTES: dict[str, str] = {name: name.lower().replace("5_", "five_") for name in _PUBLISHED}
"""Name of the factor of each attribute by its published name: in small letters, with five for 5."""

_POINTS = tuple(
    f"{point}_{axis}" for point in ("lefteye", "righteye", "nose", "leftmouth", "rightmouth") for axis in "xy"
)
_POINTS68 = tuple(f"{axis}{point}" for point in range(68) for axis in "xy")
_ANNOTATIONS: dict[str, tuple[str, tuple[str, ...] | None]] = {
    "identity": ("identity_CelebA", None),
    "attributes": ("list_attr_celeba", _PUBLISHED),
    "split": ("list_eval_partition", None),
    "landmarks": ("list_landmarks_align_celeba", _POINTS),
    "landmarks68": ("list_landmarks68_celeba_x64", _POINTS68),
}
"""Name of each file without its end, and of its columns where it has names of its own."""
_SEEN68 = Frame((128, 128), (64, 64))  # the images in which 68 landmarks were found
_ENTRY68 = np.dtype([("xy", "<f4", (68, 2))])
_VERSION68 = 1  # of what is made of the file

_SPLITS = ("train", "valid", "test")
_DCODR = {"train": 20, "test": 2}  # fewest images of a person, by the part

_FOLDER = r"(?:Img/)?img_align_celeba(?:_png)?(?:\.7z)?/(?:img_align_celeba(?:_png)?/)?"
_ARCHIVES = ("img_align_celeba.zip", "Img/img_align_celeba.zip", "CelebA/Img/img_align_celeba.zip")
_LOOKED_AT = 16
_BLOCK = 256  # aligned images that are held at once


class CelebA(ReleaseDataset):
    """Aligned faces, as returned by :func:`open`.

    The key ``number`` is the image number. The factors, each available if its file exists, are ``identity`` (the
    published number), the 40 attributes (False or True), named as in :data:`ATTRIBUTES`, ``face_found`` (key: whether
    there are 68 landmarks), ``split`` (train, valid, test) and, if identities and split exist, ``dcodr`` (train, test):
    the parts of the split, where train excludes people with fewer than 20 images and test those with one. Modalities:

    - ``image``, uint8 sRGB, (218, 178, 3), or the shape of `frame`.
    - ``landmarks``, (5, 2) float32, (x, y) in pixels of ``image``: left and right eye, nose, left and right corner of
      the mouth, where left means left in the image.
    - ``landmarks68``, (68, 2) float32, (x, y) in pixels of ``image``; NaN if no face was detected.

    Rows are sorted by image name.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.
    places : (n,) int64
        Positions of the images in `members`, in the order of their numbers.
    images : (n,) int64
        Image numbers.
    annotations : mapping of str to Place
        Files of ``identity``, ``attributes``, ``split``, ``landmarks`` and ``landmarks68``, those that are present.
    frame : Frame
        Crop and size of the images.

    Raises
    ------
    DataError
        An annotation file is damaged or lacks an image, or images are damaged or not the aligned ones.

    Notes
    -----
    The 68 landmarks are not part of the release. DCoDR detects them with the library face_alignment in the images of
    ``crop=(128, 128), size=(64, 64)``. To use your own, write them to ``list_landmarks68_celeba_x64.csv`` next to the
    other annotations: the header line is ``image_id,x0,y0,x1,y1,…,x67,y67``, followed by one line per image, such as
    ``000001.jpg,12.0,30.5,…``, with 136 zeros if no face was detected.

    """

    name = "celeba"

    def __init__(
        self,
        members: MemberIndex,
        places: Places,
        images: Rows,
        annotations: Mapping[str, Place],
        frame: Frame = Frame(),  # noqa: B008  it is frozen
    ) -> None:
        self._source, self._numbers, self._frame = members.source, images, frame
        self._images = MemberImages(members, places)
        self._look()
        self._file68 = annotations.get("landmarks68")
        told = {what: _read(what, source) for what, source in annotations.items() if what != "landmarks68"}
        where = str(members.source)
        self._warn(told.values())
        columns = {what: annotation.of(images, where) for what, annotation in told.items()}
        self._points = columns.get("landmarks", np.empty((0, 10))).reshape(-1, 5, 2).astype(np.int16)
        found68 = None if self._file68 is None else ~np.isnan(self._landmarks68[:, 0, 0])
        self.factors = _table(images, columns, told, found68)
        self.modalities = {"image": Modality((*frame.shape, 3), "uint8", color="srgb")}
        if "landmarks" in columns:
            self.modalities["landmarks"] = Modality((5, 2), "float32", unit="px")
        if self._file68 is not None:
            self.modalities["landmarks68"] = Modality((68, 2), "float32", unit="px")

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        if name == "landmarks":
            return self._frame.points(self._points[rows]).astype(np.float32)
        if name == "landmarks68":
            return self._frame.points(self._landmarks68[rows], _SEEN68).astype(np.float32)
        if self._frame.whole:
            return fetch_images(self._images, rows, out.shape[1:], out=out)
        for start in range(0, len(rows), _BLOCK):
            aligned = fetch_images(self._images, rows[start : start + _BLOCK], (*ALIGNED, 3))
            out[start : start + _BLOCK] = parallel(self._frame.apply, list(aligned))
        return out

    def _warn(self, told: Collection[Annotation]) -> None:
        """Warn of listed images that are missing."""
        listed = np.unique(np.concatenate([annotation.images for annotation in told] or [self._numbers]))
        lost = [f"{number:06}.jpg" for number in listed[~np.isin(listed, self._numbers)].tolist()]
        warn_left_out(self._source, "images", lost, len(listed))

    def _look(self) -> None:
        """See whether the images are the aligned ones, by some of them."""
        items = sample_images(self._images, _LOOKED_AT)
        for head, (_, label) in zip(parallel(lambda item: header(*item), items), items, strict=True):
            if (head.height, head.width) != ALIGNED:
                raise DataError(
                    f"{label} is {head.height} × {head.width} pixels (height × width); expected 218 × 178, the size of "
                    "the aligned images; use the published img_align_celeba"
                )

    @per_process
    def _landmarks68(self) -> Array:
        """68 landmarks of all rows as they were found, (n, 68, 2) float32, mapped."""
        source = self._file68
        if source is None:
            raise DataError(
                f"{self!r} has no file with 68 landmarks per face; add the file, and open the dataset again"
            )
        made_of = [_VERSION68, label_of(source), _state(source), self._numbers.tobytes()]

        def make() -> Array:
            told = _read("landmarks68", source)
            self._warn([told])
            values = told.of(self._numbers, str(self._source))
            return _found68(values, label_of(source)).view(_ENTRY68).reshape(-1)

        return cached_array("landmarks68", made_of, _ENTRY68, len(self._numbers), make)["xy"]


def open(
    root: Path | str | None = None, crop: tuple[int, int] | None = None, size: tuple[int, int] | None = None
) -> CelebA:
    """Open the aligned images of CelebA.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``img_align_celeba.zip`` or the unpacked ``img_align_celeba`` and the annotations (in ``Img``,
        ``Anno`` and ``Eval`` as published, or all in one folder), or Kaggle's archive, unpacked or not; or a folder
        with a subfolder ``celeba`` that contains these. None for the default folders. At least one annotation file is
        required.
    crop : (height, width), optional
        Crop every image to this size about its centre.
    size : (height, width), optional
        Resize every image, or its crop, to this size; see :class:`~setsup.datasets.benchmarks.celeba.frame.Frame`. LORD
        and DCoDR use ``crop=(128, 128), size=(64, 64)``.

    Raises
    ------
    DataError
        When images or annotations are missing (the message shows where to download them), damaged or inconsistent, or
        an argument is out of range.

    """
    frame = Frame(crop, size)
    path = None if root is None else expanded(root)
    members = find_members(
        "celeba", path, {rf"{_FOLDER}\d{{6}}\.(?:jpg|png)": "img_align_celeba/000001.jpg"}, _ARCHIVES
    )
    places, numbers = _found_images(members)
    folders = _beside(members, path)
    files = {what: find_annotation(members, folders, stem) for what, (stem, _) in _ANNOTATIONS.items()}
    annotations = {what: file for what, file in files.items() if file is not None}
    if not annotations:
        from setsup.files.roots import root_option

        texts = ", ".join(f"{stem}.txt" for what, (stem, _) in _ANNOTATIONS.items() if what != "landmarks68")
        raise DataError(
            f"celeba: no annotation file ({texts}, or a CSV file) was found in {members.source} or next to it; `setsup "
            f"fetch celeba{root_option(root)}` shows where to download one"
        )
    return CelebA(members, places, numbers, annotations, frame)


# -- inside ------------------------------------------------------------------------------------------------------------


def _found_images(members: MemberIndex) -> tuple[Places, Rows]:
    """Places and numbers of the images of one folder, the shallowest, rising by number."""
    import pyarrow as pa

    places, groups = members.matching(rf"(?P<folder>{_FOLDER})(?P<number>\d{{6}})\.(?:jpg|png)")
    folder, number = (
        pa.concat_arrays(texts.chunks) if isinstance(texts, pa.ChunkedArray) else texts
        for texts in (groups["folder"], groups["number"])
    )
    told = folder.dictionary_encode()
    folders = told.dictionary.to_pylist()
    best = min(folders, key=lambda name: (name.count("/"), name))
    # in numpy: what pyarrow compares with a text of Python imports pandas, which takes longer than all this
    chosen = as_numpy(told.indices) == folders.index(best)
    places, numbers = places[chosen], as_numpy(number.cast(pa.int64()))[chosen]
    twice = np.flatnonzero(numbers[1:] == numbers[:-1])
    if len(twice):
        first, second = (members.label(int(member)) for member in places[twice[0] : twice[0] + 2])
        raise DataError(f"{first} and {second} have the same image number; remove the duplicates")
    return places, numbers


def _beside(members: MemberIndex, root: Path | None) -> list[Path]:
    """Folders in which annotations may lie that are not among the members."""
    from setsup.files.roots import data_places

    source = members.source / members.prefix if os.path.isdir(members.source) else members.source.parent
    around = [source, source.parent] if source.name == "Img" else [source]
    return [folder for folder in dict.fromkeys([*around, *data_places("celeba", root)]) if os.path.isdir(folder)]


def _read(what: str, source: Place) -> Annotation:
    """Read an annotation, and see that it has the columns that it should."""
    _, names = _ANNOTATIONS[what]
    label = label_of(source)
    annotation = read_annotation(
        content_of(source, MOST, "annotations"),
        label,
        len(names or "1"),
        np.float32 if what == "landmarks68" else np.int32,
        names is not None,
    )
    if names is not None and annotation.columns != names:
        wrong = next(k for k, (came, name) in enumerate(zip(annotation.columns, names, strict=True)) if came != name)
        raise DamagedFile(
            f"{label}: column {wrong + 1} is named {annotation.columns[wrong][:40]!r}; expected {names[wrong]!r}"
        )
    allowed = {"identity": (1, 10**6), "split": (0, 2), "attributes": (-1, 1), "landmarks": (-10_000, 10_000)}
    if what in allowed:
        low, high = allowed[what]
        bad = (annotation.values < low) | (annotation.values > high)
        if what == "attributes":
            bad |= annotation.values == 0
        if bad.any():
            line, column = (int(at[0]) for at in np.nonzero(bad))
            known = "-1 or 1" if what == "attributes" else f"{low} to {high}"
            raise DamagedFile(
                f"{label}: line {annotation.first + line} has {annotation.values[line, column]}; expected {known}"
            )
    return annotation


def _found68(values: Array, label: str) -> Array:
    """Landmarks of all rows, NaN where all are zero."""
    landmarks = np.ascontiguousarray(values, "<f4")
    landmarks[(landmarks == 0).all(axis=1)] = np.nan
    known = np.isfinite(landmarks)
    half = np.flatnonzero(known.any(axis=1) & ~known.all(axis=1))
    if len(half):
        raise DataError(
            f"{label}: row {half[0]} has coordinates for only some of its landmarks; write 136 zeros for an image "
            "without a detected face"
        )
    landmarks[~known.any(axis=1)] = np.nan
    return landmarks


def _state(source: Place) -> object:
    if not isinstance(source, Path):
        return file_states(source[0], [source[1]])
    about = source.stat()
    return about.st_size, about.st_mtime_ns


def _table(
    images: Rows, columns: Mapping[str, Array], told: Mapping[str, Annotation], found68: Array | None
) -> FactorTable:
    number = Factor("number", Kind.ORDINAL, tuple(images.tolist()), role="key")
    factors: dict[Factor, Array] = {number: np.arange(len(images))}
    if "identity" in columns:
        ids, identity = np.unique(columns["identity"][:, 0], return_inverse=True)
        factors[Factor("identity", Kind.NOMINAL, tuple(ids.tolist()))] = identity
    if "attributes" in columns:
        for column, name in enumerate(told["attributes"].columns):
            factors[Factor(ATTRIBUTES[name], Kind.NOMINAL, (False, True))] = columns["attributes"][:, column] > 0
    if found68 is not None:
        factors[Factor("face_found", Kind.NOMINAL, (False, True), role="key")] = found68
    if "split" in columns:
        part = columns["split"][:, 0]
        factors[Factor("split", Kind.NOMINAL, _SPLITS, role="split")] = part
        if "identity" in columns:
            factors[Factor("dcodr", Kind.NOMINAL, tuple(_DCODR), role="split")] = _dcodr(told, images)
    return table_of(factors)


def _dcodr(told: Mapping[str, Annotation], images: Rows) -> Array:
    """0 and 1 for the parts of DCoDR, -1 in neither: by the images that a person has in the part.

    All images that are listed count, so that a part of the release has its images in the parts that the whole has.
    """
    listed = np.intersect1d(told["identity"].images, told["split"].images)
    identity, part = (told[what].of(listed, "the lists")[:, 0] for what in ("identity", "split"))
    parts = np.full(len(listed), -1)
    for code, (name, fewest) in enumerate(_DCODR.items()):
        here = part == _SPLITS.index(name)
        parts[here & (np.bincount(identity[here], minlength=identity.max() + 1)[identity] >= fewest)] = code
    return parts[np.searchsorted(listed, images)]
