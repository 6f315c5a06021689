"""Photographs with boxes of objects, and renderings, cut to the object: what poses are looked up for, and among."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.boxes import crop
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.base import BaseDataset
from setsup.datasets.benchmarks.shapenet_renderings.poses import crop_to_alpha
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.image_formats import KNOWN_ENDINGS, ending_pattern
from setsup.datasets.formats.source import Source
from setsup.datasets.images import decode, header, parallel
from setsup.datasets.own.beside import without_outputs
from setsup.errors import DataError, did_you_mean
from setsup.experiments.data import image_modality
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import open_members
from setsup.files.expand_user import expanded
from setsup_papers.abc.pose.photo_boxes import PhotoBox

if TYPE_CHECKING:
    from setsup.datasets import Dataset

__all__ = ["BoxedPhotographs", "CutRenderings", "open_photographs"]

_NOT_HIDDEN = "(?:[^/.][^/]*/)*[^/.][^/]*"
"""Paths without a part that begins with a dot."""


def open_photographs(
    places: Sequence[Path | str], boxes: Sequence[PhotoBox] | None = None, size: tuple[int, int] = (128, 128)
) -> "BoxedPhotographs":
    """Open photographs as a dataset of one row for each box, or for each photograph without boxes.

    Parameters
    ----------
    places : sequence of Path or str
        A folder, zip or tar of images, which are taken in the order of their names; or image files.
    boxes : sequence of PhotoBox, optional
        Names of files are paths below the folder, or names alone where these are unique. Photographs without a box are
        left out. By default all photographs are taken whole.
    size : (height, width)
        To which boxes are brought; their proportions are not kept.

    Returns
    -------
    BoxedPhotographs

    Raises
    ------
    DataError
        When there are no images, one cannot be read, or a box names none of them or lies outside of its photograph.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from setsup_papers.abc.pose.photo_boxes import PhotoBox
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (200, 100)).save(folder / "a.png")
    >>> boxes = [PhotoBox("a.png", (10.0, 20.0, 110.0, 180.0), "by hand")]
    >>> photographs = open_photographs([folder], boxes, size=(64, 64))
    >>> photographs.edges.tolist(), photographs.fetch(0)["image"].shape
    ([[10.0, 20.0, 110.0, 100.0]], (64, 64, 3))

    """
    names, sources = _list([expanded(path) for path in places])
    chosen: list[tuple[int, PhotoBox | None]]
    if boxes is None:
        chosen = [(at, None) for at in range(len(names))]
    elif not boxes:
        raise DataError("at least one box is required, because each box is treated as a photograph")
    else:
        chosen = _placed(names, boxes)
    items = parallel(lambda pair: _checked(sources[pair[0]], pair[1]), chosen)
    given = [edges if box is None else box.edges for edges, (_, box) in zip(items, chosen, strict=True)]
    files = [names[at] for at, _ in chosen]
    return BoxedPhotographs(files, [sources[at] for at, _ in chosen], items, given, size, len(set(names)))


class BoxedPhotographs(BaseDataset):
    """Boxes in photographs, cut out and brought to a size (bilinear, antialiased); made by :func:`open_photographs`.

    The factor ``file`` is the name of a photograph, the modality ``image`` (height, width, 3) uint8 sRGB.

    Attributes
    ----------
    files : list of str
        Name of the photograph of each row.
    edges : (n, 4) float64
        Left, top, right and bottom of each box, in pixels from the upper left corner, clipped to the photograph.
    given : (n, 4) float64
        The boxes as passed in.
    boxless : int
        Number of photographs that were excluded, because no box refers to them.

    """

    name = "photographs"

    def __init__(
        self,
        files: Sequence[str],
        sources: Sequence[tuple[Source, str]],
        edges: Sequence[tuple[float, ...]],
        given: Sequence[tuple[float, ...]],
        size: tuple[int, int],
        photographs: int,
    ) -> None:
        self.files, self._sources, self._size = list(files), list(sources), size
        self.edges, self.given = (np.array(sides, dtype=np.float64).reshape(-1, 4) for sides in (edges, given))
        levels = tuple(dict.fromkeys(files))
        codes = {name: code for code, name in enumerate(levels)}
        factor = Factor("file", Kind.NOMINAL, levels, role="key")
        self.factors = FactorTable([factor], {"file": np.array([codes[name] for name in files], dtype=np.int64)})
        self.modalities = {"image": Modality((*size, 3), "uint8", color="srgb")}
        self.boxless = photographs - len(levels)

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        def put(slot: int) -> None:
            row = int(rows[slot])
            out[slot] = crop(decode(*self._sources[row], 3), self.edges[row], self._size)

        parallel(put, range(len(rows)))
        return out


class CutRenderings(BaseDataset):
    """Images of a dataset cut to what is not transparent and brought to a size, as ABC's evaluation does.

    Images without transparency are brought to the size as they are. The modality is ``image``, without alpha.

    Parameters
    ----------
    dataset : Dataset
        Of renderings.
    rows : (n,) int64
        Which of them.
    size : (height, width)
        Of the images.

    Raises
    ------
    DataError
        When these are not images of uint8.

    """

    def __init__(self, dataset: "Dataset", rows: Rows, size: tuple[int, int]) -> None:
        self.name = dataset.name
        self.factors = dataset.factors.select(rows)
        self._dataset, self._rows, self._modality, self._size = dataset, rows, image_modality(dataset), size
        form = dataset.modalities[self._modality]
        if form.dtype != "uint8" or len(form.shape) != 3 or form.shape[2] not in (1, 3, 4):
            raise DataError(
                f"{self._modality!r} of {dataset.name} must be uint8 images of shape (height, width, channels), with "
                f"1, 3 or 4 channels and values from 0 to 255, not {form.dtype} of shape {form.shape}; convert floats "
                "in [0, 1] with (255 * x).round().astype('uint8')"
            )
        channels = min(3, form.shape[2])
        self.modalities = {"image": Modality((*size, channels), "uint8", color="srgb" if channels == 3 else "grey")}

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        own = self._rows[rows]
        given = self._dataset.fetch(own, [self._modality])[self._modality]

        def put(slot: int) -> None:
            out[slot] = _cut(given[slot], self._size, f"{self.name}, row {own[slot]}")

        parallel(put, range(len(rows)))
        return out


def _cut(image: Array, size: tuple[int, int], label: str) -> Array:
    if image.shape[2] == 4 and (image[..., 3] < 255).any():
        try:
            return crop_to_alpha(image, size)[..., :3]
        except DataError as error:
            raise DataError(f"{label}: {error}") from error
    height, width, channels = image.shape
    if (height, width) == size:
        return image[..., :3]
    cut = crop(np.repeat(image, 3, axis=2) if channels == 1 else image[..., :3], (0, 0, width, height), size)
    return cut[..., :1] if channels == 1 else cut


def _list(places: Sequence[Path]) -> tuple[list[str], list[tuple[Source, str]]]:
    """Names of photographs, and what reads them."""
    if not places:
        raise DataError("at least one photograph is required; pass a folder of photographs, or image files")
    if len(places) == 1 and not (places[0].is_file() and _is_image(places[0])):
        (folder,) = places
        members = open_members(folder)
        rows = without_outputs(members, members.matching(f"{_NOT_HIDDEN}{ending_pattern()}")[0])
        if not len(rows):
            raise DataError(
                f"{folder} contains no image files; pass a folder, a zip or a tar of images, or image files"
            )
        taken = MemberImages(members, rows).take(np.arange(len(rows)))
        labels = [members.label(int(row)) for row in rows]
        names = [members.names[int(row)].as_py() for row in rows]
        return names, [(source, label) for (source, _), label in zip(taken, labels, strict=True)]
    for path in places:
        if path.is_dir():
            raise DataError(f"{path} is a folder; pass one folder of photographs, or image files")
        if not path.is_file():
            raise DataError(f"{path} does not exist; check the path")
    return [str(path) for path in places], [(path, str(path)) for path in places]


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in KNOWN_ENDINGS


def _placed(names: Sequence[str], boxes: Sequence[PhotoBox]) -> list[tuple[int, PhotoBox | None]]:
    """The photograph of each box."""
    whole = {name: at for at, name in enumerate(names)}
    short: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        short.setdefault(Path(name).name, []).append(at)
    with_boxes: list[tuple[int, PhotoBox | None]] = []
    lost: list[PhotoBox] = []
    for box in boxes:
        position = whole.get(box.file.replace("\\", "/").removeprefix("./"))
        alike = short.get(box.file, []) if position is None else [position]
        if len(alike) > 1:
            raise DataError(
                f"{box.where}: {len(alike)} photographs are named {box.file!r}; use the path of one of them"
            )
        if alike:
            with_boxes.append((alike[0], box))
        else:
            lost.append(box)
    if lost:
        first, others = lost[0], len(lost) - 1
        more = (f", and so do {others:,} other lines" if others > 1 else ", and so does another line") if others else ""
        raise DataError(
            f"{first.where} refers to {first.file!r}{more}, but no photograph has that "
            f"name{did_you_mean(first.file, names)}"
        )
    return with_boxes


def _checked(item: tuple[Source, str], box: PhotoBox | None) -> tuple[float, ...]:
    """Edges of a box, clipped to its photograph; of all of it without one."""
    size = header(*item)
    if box is None:
        return 0.0, 0.0, float(size.width), float(size.height)
    left, top, right, bottom = box.edges
    clipped = max(left, 0.0), max(top, 0.0), min(right, float(size.width)), min(bottom, float(size.height))
    if not (clipped[0] < clipped[2] and clipped[1] < clipped[3]):
        edges = ", ".join(f"{edge:g}" for edge in box.edges)
        raise DataError(
            f"{box.where}: the box {edges} lies outside {box.file}, which has {size.width} × {size.height} pixels"
        )
    return clipped
