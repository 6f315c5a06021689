"""Objects of rendered rooms, cut out and labelled: a substitute for photographs of ten classes such as STL-10's.

    setsup render room --size 128 192 --modalities image depth normals instances labels --out rooms-train

:func:`write_objects` writes a file that is a dataset, ``setsup.open("objects-train.npz")``: ``image`` (32, 32, 3)
uint8, and the factors ``shape``, one of a dozen solids, ``room``, and ``visible``, its pixels in the rendering.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import setsup
from setsup.errors import DataError, SetsupError
from setsup.files import written

if TYPE_CHECKING:
    from setsup.datasets import Dataset

__all__ = ["cut_objects", "write_objects"]

_SHAPE = re.compile(r"(ball|block|bowl|bottle|chest|column|cone|cross|ring|stairs|stool|vase) \d+")
_MARGIN = 1.2  # sides of the cut by those of the box around an object
_BATCH = 64


def cut_objects(
    rooms: "Dataset", size: int = 32, least: int = 120
) -> tuple[npt.NDArray[np.uint8], list[str], list[int], list[int]]:
    """Cut out the square around every object that is seen large and whole enough, resized.

    Parameters
    ----------
    rooms : RenderedFolder
        Of ``setsup render room`` with image and instances, and without ``--objects``.
    size : int
        Pixels of the result's side.
    least : int
        Pixels of an object that must be seen. Objects at the edge of a rendering are left out.

    Returns
    -------
    images : (n, size, size, 3) uint8
    shapes : list of str
    numbers : list of int
        Of the rooms.
    visible : list of int
        Pixels of each object.

    """
    missing = [name for name in ("image", "instances") if name not in rooms.modalities]
    if missing:
        raise DataError(
            f"{rooms.name} lacks modalities ({', '.join(missing)}); render the rooms again with `setsup render room` "
            "and these modalities"
        )
    images: list[Any] = []
    shapes: list[str] = []
    numbers: list[int] = []
    counts: list[int] = []
    room = rooms.factors.codes("room") if "room" in rooms.factors else np.zeros(len(rooms), int)
    for start in range(0, len(rooms), _BATCH):
        rows = np.arange(start, min(start + _BATCH, len(rooms)))
        fetched = rooms.fetch(rows, ["image", "instances"])
        for row, image, instances in zip(rows.tolist(), fetched["image"], fetched["instances"], strict=True):
            names = rooms.names(row)  # type: ignore[attr-defined]
            for number, box, count in _boxes(instances):
                match = _SHAPE.fullmatch(names.get(number, ""))
                if match is not None and count >= least:
                    images.append(_cut(image[..., :3], box, size))
                    shapes.append(match[1])
                    numbers.append(int(room[row]))
                    counts.append(count)
    if not images:
        raise DataError(
            f"{rooms.name} shows no object of at least {least} pixels; render larger images of rooms with objects"
        )
    return np.stack(images), shapes, numbers, counts


def write_objects(rooms: Path | str, path: Path | str, size: int = 32, least: int = 120) -> int:
    """Write the objects of a folder of rooms to an ``.npz`` file that :func:`setsup.open` opens; their number."""
    target = Path(path)
    if target.suffix != ".npz":
        raise SetsupError(f"objects can be written only to an .npz file, not to {target.name}")
    images, shapes, numbers, visible = cut_objects(setsup.open(rooms), size, least)
    with written(target) as part, part.open("wb") as file:
        np.savez(file, image=images, shape=np.array(shapes), room=np.array(numbers), visible=np.array(visible))
    return len(images)


def _boxes(instances: npt.NDArray[Any]) -> Iterator[tuple[int, tuple[int, int, int, int], int]]:
    """Number, box (top, left, bottom, right) and pixels of each instance that does not touch the edge."""
    edge = np.unique(np.concatenate([instances[0], instances[-1], instances[:, 0], instances[:, -1]]))
    for number in np.setdiff1d(np.unique(instances), edge).tolist():
        y, x = np.nonzero(instances == number)
        yield number, (int(y.min()), int(x.min()), int(y.max()) + 1, int(x.max()) + 1), len(y)


def _cut(image: npt.NDArray[np.uint8], box: tuple[int, int, int, int], size: int) -> npt.NDArray[np.uint8]:
    """The square around a box, within the image, resized and antialiased."""
    from PIL import Image

    top, left, bottom, right = box
    side = min(round(_MARGIN * max(bottom - top, right - left)), *image.shape[:2])
    y, x = (
        min(max((low + high - side) // 2, 0), whole - side)
        for low, high, whole in ((top, bottom, image.shape[0]), (left, right, image.shape[1]))
    )
    part = Image.fromarray(image[y : y + side, x : x + side])
    return np.asarray(part.resize((size, size), Image.Resampling.BICUBIC), np.uint8)
