"""Views as files of pairs have them: images, depth and cameras of some rows."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from setsup.arrays import Array, Floats, Pixels, Reals, Rows
from setsup.correspondence.recorded_frames import row_camera
from setsup.errors import DataError, advice

__all__ = ["ViewFiles", "encode_image", "read_images", "read_views"]

_BLOCK = 1 << 26  # bytes that are fetched together, about
_QUALITY = 95


class ViewFiles(NamedTuple):
    """What is written of one view.

    Attributes
    ----------
    image : (height, width, 1 or 3) uint8
        Its image.
    depth : (height, width) float32 or None
        Along the optical axis, 0 where unknown; None where it is not asked for.
    k : (3, 3) float64
        Intrinsics in pixels, whose centres are at integers.
    pose : (4, 4) float64
        From the world to the camera.

    """

    image: Pixels
    depth: Floats | None
    k: Reals
    pose: Reals


def read_views(dataset: Any, rows: Rows, *, depth: bool, skew: bool) -> Iterator[ViewFiles]:
    """Views of some rows, in their order; with `depth` where it is asked for.

    Without `skew`, intrinsics that have some are refused.
    """
    asked = ["image", *(["depth"] if depth else [])]
    if not hasattr(dataset, "camera"):
        asked += ["pose", "intrinsics"]
    for row, found in _fetched(dataset, rows, asked):
        yield _view(dataset, row, found, skew)


def read_images(dataset: Any, rows: Rows) -> Iterator[Pixels]:
    """Images of some rows, in their order."""
    for row, found in _fetched(dataset, rows, ["image"]):
        yield _color(np.asarray(found["image"]), f"row {row} of {dataset.name}")


def _fetched(dataset: Any, rows: Rows, asked: list[str]) -> Iterator[tuple[int, dict[str, Array]]]:
    """Modalities of some rows; several rows are fetched together where their arrays have one size."""
    lacking = [name for name in asked if name not in dataset.modalities]
    if lacking:
        raise DataError(
            f"{dataset.name} lacks the modalities {', '.join(lacking)}, which this layout contains; pass a dataset "
            "that has them, or choose another layout: superglue and hloc contain no depth"
        )
    shapes = [dataset.modalities[name].shape for name in asked]
    together = 1
    if not any(None in shape for shape in shapes):
        together = max(1, _BLOCK // (4 * sum(int(np.prod(shape)) for shape in shapes)))
    for start in range(0, len(rows), together):
        some = rows[start : start + together]
        found = dataset.fetch(some, asked)
        for at, row in enumerate(some.tolist()):
            yield row, {name: found[name][at] for name in asked}


def _view(dataset: Any, row: int, found: dict[str, Array], skew: bool) -> ViewFiles:
    where = f"row {row} of {dataset.name}"
    image = _color(np.asarray(found["image"]), where)
    height, width = image.shape[:2]
    camera = row_camera(dataset, row, (height, width), found, option="where=")
    depth = None
    if "depth" in found:
        known = np.asarray(found["depth"], np.float32)
        depth = np.where(np.isfinite(known) & (known > 0), known, np.float32(0))
    for name, size in (("depth", None if depth is None else depth.shape), ("camera", (camera.height, camera.width))):
        if size is not None and size != (height, width):
            raise DataError(
                f"the image of {where} is {height} × {width} pixels (height × width), but its {name} is "
                f"{' × '.join(map(str, size))}; open the dataset so that all have one size"
            )
    if not skew and camera.k[0, 1]:
        raise DataError(
            f"the intrinsics of {where} have a skew of {camera.k[0, 1]:g} pixels, which readers of this layout ignore; "
            f"undistort the images to a camera without skew, or leave the row out with {advice('where=', '--where')}"
        )
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = camera.rotation, camera.translation
    return ViewFiles(image, depth, np.array(camera.k), pose)


def _color(image: Array, where: str) -> Pixels:
    """Grey or color; what has alpha in front of black."""
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3, 4):
        raise DataError(
            f"the image of {where} must be uint8 of shape (height, width, 1, 3 or 4), not {image.dtype} of shape "
            f"{image.shape}"
        )
    if image.shape[2] < 4:
        return image
    product = image[..., :3].astype(np.uint16) * image[..., 3:]
    return np.asarray((product + 127) // 255, np.uint8)


def encode_image(image: Pixels) -> bytes:
    """Encode an image as JPEG of quality 95, without chroma subsampling."""
    from simplejpeg import encode_jpeg

    grey = image.shape[2] == 1
    content: bytes = encode_jpeg(
        np.ascontiguousarray(image), _QUALITY, "GRAY" if grey else "RGB", "Gray" if grey else "444", fastdct=False
    )
    return content
