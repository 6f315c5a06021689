"""COCO's annotations of instances: boxes, and masks as compressed run lengths.

References
----------
.. [1] T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014, and its code, ``common/maskApi.c`` in
   github.com/cocodataset/cocoapi: run lengths in the order of columns, and their text.

"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Rows
from setsup.checks import check_array
from setsup.errors import SetsupError

__all__ = ["annotation", "box_of", "encode_rle"]

_FIRST = 48  # the letter of 0
_DIGIT, _SIGN, _MORE = 0x1F, 0x10, 0x20


def encode_rle(mask: npt.ArrayLike) -> dict[str, Any]:
    """Encode a mask as COCO's compressed run lengths.

    Parameters
    ----------
    mask : (h, w) bool
        The mask.

    Returns
    -------
    dict
        ``size``, [h, w], and ``counts``, the text of the run lengths, as ``pycocotools.mask.decode`` reads them.

    Raises
    ------
    SetsupError
        When the array is not (h, w) bool.

    Examples
    --------
    >>> encode_rle(np.eye(3, dtype=bool))
    {'size': [3, 3], 'counts': '013000'}

    """
    array = check_array(mask, "mask", SetsupError)
    if array.ndim != 2 or array.dtype != bool:
        raise SetsupError(f"mask must be a boolean array of shape (height, width), not {array.dtype} of {array.shape}")
    return {"size": [int(side) for side in array.shape], "counts": _text(_runs(array))}


def _runs(mask: Bools) -> Rows:
    """Lengths of runs in the order of columns, of pixels outside and inside in turn; the first is of those outside."""
    flat = mask.ravel(order="F")
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    ends = np.concatenate([[0] if flat.size and flat[0] else [], changes, [flat.size]]).astype(np.int64)
    return np.diff(ends, prepend=0)


def _text(runs: Rows) -> str:
    """Letters of 5 bits and a bit for more to come; from the fourth run on, differences to the last but one."""
    steps = runs.copy()
    steps[3:] -= runs[1:-2]
    letters = bytearray()
    for step in steps.tolist():
        more = True
        while more:
            digit = step & _DIGIT
            step >>= 5
            more = step != -1 if digit & _SIGN else step != 0
            letters.append(_FIRST + (digit | (_MORE if more else 0)))
    return letters.decode()


def box_of(mask: Bools) -> tuple[int, int, int, int]:
    """Smallest box around a mask with a pixel: x and y of its first pixel, width and height in pixels."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    x, y = int(columns[0]), int(rows[0])
    return x, y, int(columns[-1]) - x + 1, int(rows[-1]) - y + 1


def annotation(
    number: int, image: int, category: int, visible: Bools, whole: Bools | None, more: Sequence[tuple[str, Any]] = ()
) -> dict[str, Any]:
    """Annotation of an instance; `whole` is its mask with what is hidden, where it is known."""
    found: dict[str, Any] = {
        "id": number,
        "image_id": image,
        "category_id": category,
        "iscrowd": 0,
        "bbox": list(box_of(visible)),
        "area": int(visible.sum()),
        "segmentation": encode_rle(visible),
        **dict(more),
    }
    if whole is not None:
        found["amodal_bbox"] = list(box_of(whole))
        found["amodal_area"] = int(whole.sum())
        found["amodal_segmentation"] = encode_rle(whole)
    return found
