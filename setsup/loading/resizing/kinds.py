"""How modalities follow the pixels of their image: kinds, and what each kind does to the arrays of one image.

Points are pixels (x, y) whose centres are integers. Boxes are (left, top, right, bottom) in pixels from the upper left
corner of the image, which runs from 0 to its width and height, as torchvision's ``XYXY`` and COCO's corners have it.
"""

from collections.abc import Mapping

import numpy as np

from setsup.arrays import Array, Bools, Matrices, Reals, Rows, Size
from setsup.datasets.modality import Modality
from setsup.errors import DataError, SetsupError, did_you_mean
from setsup.loading.resizing.resizes import Letterbox, Place, Resize

__all__ = [
    "PIXELS",
    "find_kinds",
    "homographies",
    "move_boxes",
    "move_intrinsics",
    "move_points",
    "resize_map",
    "resized_modality",
]

_SHAPES: Mapping[str, tuple[str, tuple[int | None, ...]]] = {
    "color": ("(height, width, channels)", (None, None, None)),
    "label": ("(height, width) or (height, width, k)", (None, None)),
    "depth": ("(height, width) or (height, width, k)", (None, None)),
    "points": ("(n, 2)", (None, 2)),
    "boxes": ("(4,) or (n, 4)", (4,)),
    "intrinsics": ("(3, 3)", (3, 3)),
    "unchanged": ("", ()),
}
_AUGMENTED = ("normal", "flow", "clip")  # kinds of Augment that need more than a box
PIXELS = ("color", "label", "depth")
"""Kinds with one value per pixel."""

_TIE = 2.0**-30  # pixels: of two pixels as equally near as this, the one to the right or below is the nearest


def find_kinds(
    resize: Resize, modalities: Mapping[str, Modality], names: tuple[str, ...], dataset: str
) -> dict[str, str]:
    """Kind of each modality that a loader fetches: as named by the resize, or as its description tells."""
    named = dict(resize.modalities or {})
    of = type(resize).__name__
    for name, kind in named.items():
        if name not in modalities:
            raise DataError(f"{of}: {dataset} has no modality {name!r}{did_you_mean(name, modalities)}")
        if kind in _AUGMENTED:
            raise SetsupError(
                f"{of} cannot resize {name!r} as {kind}; leave it out with modalities=[…] of the loader, or open the "
                "dataset with size= and transform the modality with Augment"
            )
        if kind not in _SHAPES:
            raise SetsupError(f"{of}: unknown kind {kind!r} of {name!r}{did_you_mean(kind, _SHAPES)}")
    kinds: dict[str, str] = {}
    for name in names:
        found = named.get(name) or _known(name, modalities[name])
        if found is None:
            raise SetsupError(
                f"{of} cannot tell how to resize {name!r} of {dataset}, because it is {modalities[name].dtype} "
                f"{modalities[name].shape} and not an 8-bit image; specify its kind, "
                f'one of {", ".join(_SHAPES)}, as in modalities={{{name!r}: "unchanged"}}, or leave it out with '
                "modalities=[…] of the loader"
            )
        _check(found, name, modalities[name], of)
        kinds[name] = found
    if not any(kind in PIXELS for kind in kinds.values()):
        raise SetsupError(
            f"{of} requires a modality with pixels, which determines the size of each original, but the loader "
            f"fetches {', '.join(names) or 'none'}; add the images to modalities="
        )
    _check_names(kinds, of)
    if isinstance(resize, Letterbox) and isinstance(resize.fill, Mapping):
        _check_fill(resize.fill, kinds, modalities, of)
    return kinds


def _check_names(kinds: Mapping[str, str], of: str) -> None:
    """Refuse modalities whose names the batch needs for what a resize adds."""
    added = {"homographies"} | {f"{name}_inside" for name, kind in kinds.items() if kind in ("points", "boxes")}
    for name in kinds:
        if name in added:
            raise SetsupError(
                f"{of} adds {name!r} to the batch, but the dataset has a modality of that name; leave this modality "
                "out with modalities=[…]"
            )


def _check_fill(
    fill: Mapping[str, float], kinds: Mapping[str, str], modalities: Mapping[str, Modality], of: str
) -> None:
    """Refuse fills of modalities that are not resized, and values that their pixels cannot have."""
    for name, value in fill.items():
        if kinds.get(name) not in PIXELS:
            known = [each for each, kind in kinds.items() if kind in PIXELS]
            raise SetsupError(
                f"{of}: fill contains {name!r}, which is not a resized modality with pixels"
                f"{did_you_mean(str(name), known)}"
            )
        if kinds[name] == "color":
            if not 0 <= value <= 1:
                raise SetsupError(f"{of}: fill of {name!r} must be a number from 0 to 1, not {value!r}")
            continue
        dtype = np.dtype(modalities[name].dtype)
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        if limits is not None and not (float(value).is_integer() and limits.min <= value <= limits.max):
            raise SetsupError(
                f"{of}: fill of {name!r} must be an integer from {limits.min} to {limits.max} ({dtype}), not {value!r}"
            )


def _known(name: str, modality: Modality) -> str | None:
    if modality.color and modality.dtype == "uint8" and len(modality.shape) == 3:
        return "color"
    return "intrinsics" if name == "intrinsics" and modality.shape == (3, 3) else None


def _check(kind: str, name: str, modality: Modality, of: str) -> None:
    described, shape = _SHAPES[kind]
    own = modality.shape
    if kind in ("label", "depth"):
        fits = len(own) in (2, 3) and None not in own[2:]
    elif kind == "boxes":
        fits = len(own) in (1, 2) and own[-1] == 4 and None not in own
    elif kind == "points":
        fits = len(own) == 2 and own[1] == 2 and own[0] is not None
    else:
        fits = kind == "unchanged" or (
            len(own) == len(shape) and all(side in (None, there) for side, there in zip(shape, own, strict=True))
        )
    floating = np.issubdtype(np.dtype(modality.dtype), np.floating)
    if kind == "color":
        fits = fits and modality.dtype == "uint8"
    if not fits or (kind in ("depth", "intrinsics") and not floating):
        of_what = {"color": "uint8 ", "depth": "floating point ", "intrinsics": "floating point "}.get(kind, "")
        raise DataError(
            f"{of}: {name!r} must be {of_what}{described} as {kind}, not {modality.dtype} {own}"
            + ("; for values that must not be interpolated use label" if kind == "depth" else "")
        )


def resized_modality(kind: str, modality: Modality, size: Size) -> Modality:
    """What a modality of a kind is after the resize, apart from copies."""
    if kind in PIXELS:
        return Modality((*size, *modality.shape[2:]), modality.dtype, modality.unit, modality.color)
    dtype = "float64" if kind in ("points", "boxes") else modality.dtype
    return Modality(modality.shape, dtype, modality.unit, modality.color)


def resize_map(values: Array, place: Place, kind: str) -> Array:
    """A map (height, width, …) in the region of the result: `label` by nearest pixels, `depth` bilinear.

    Depth is not averaged, and 0, which means no depth, is never mixed in: beside it the nearest pixel is taken.
    """
    left, top, width, height = place.box
    x = left + (np.arange(place.columns) + 0.5) * (width / place.columns) - 0.5
    y = top + (np.arange(place.rows) + 0.5) * (height / place.rows) - 0.5
    column = np.clip(np.floor(x + (0.5 + _TIE)).astype(np.int64), 0, values.shape[1] - 1)
    row = np.clip(np.floor(y + (0.5 + _TIE)).astype(np.int64), 0, values.shape[0] - 1)
    nearest: Array = values[row[:, None], column]
    if kind == "label":
        return nearest
    across, columns = _neighbours(x, values.shape[1])
    down, rows = _neighbours(y, values.shape[0])
    more = (1,) * (values.ndim - 2)
    across, down = across.reshape(-1, *more).astype(values.dtype), down.reshape(-1, 1, *more).astype(values.dtype)
    corners = [values[r[:, None], c] for r in rows for c in columns]
    known = np.logical_and.reduce([np.isfinite(corner) & (corner != 0) for corner in corners])
    with np.errstate(invalid="ignore"):
        upper, lower = (first * (1 - across) + last * across for first, last in (corners[:2], corners[2:]))
        return np.where(known, upper * (1 - down) + lower * down, nearest)


def _neighbours(at: Array, length: int) -> tuple[Array, list[Rows]]:
    """Pixels before and behind positions along one axis, and the weight of the second."""
    inside: Array = np.clip(at, 0, length - 1)
    first = np.floor(inside).astype(np.int64)
    return inside - first, [first, np.minimum(first + 1, length - 1)]


def homographies(places: Reals) -> Matrices:
    """Matrices (..., 3, 3) from pixels of originals to those of results, by the conventions of homographies.

    `places` (..., 8): left, top, width and height of boxes, then row, column, rows and columns of regions.
    """
    left, top, width, height, row, column, rows, columns = np.moveaxis(places, -1, 0)
    found = np.zeros((*places.shape[:-1], 3, 3))
    across, down = columns / width, rows / height
    found[..., 0, 0], found[..., 0, 2] = across, (0.5 - left) * across - 0.5 + column
    found[..., 1, 1], found[..., 1, 2] = down, (0.5 - top) * down - 0.5 + row
    found[..., 2, 2] = 1
    return found


def move_points(points: Array, matrices: Matrices, size: Size) -> tuple[Reals, Bools]:
    """Points (n, k, 2) moved by (n, copies, 3, 3), float64 (n, copies, k, 2), and whether they are on the result."""
    scale = matrices[..., (0, 1), (0, 1)][:, :, None]
    moved = points[:, None].astype(np.float64) * scale + matrices[..., :2, 2][:, :, None]
    return moved, np.all((moved >= -0.5) & (moved < np.array([size[1], size[0]]) - 0.5), axis=-1)


def move_boxes(boxes: Array, matrices: Matrices, size: Size) -> tuple[Reals, Bools]:
    """Boxes (n, …, 4) moved by (n, copies, 3, 3), cut off at the sides of the result, and whether any of each is left.

    Returns float64 (n, copies, …, 4) and bool (n, copies, …). A box that is not on the result has no area there.
    """
    flat = boxes.reshape(len(boxes), 1, -1, 4).astype(np.float64)
    scale = np.tile(matrices[..., (0, 1), (0, 1)], 2)[:, :, None]
    # a side at e pixels from the corner lies at e − ½ where centres of pixels are integers
    moved = (flat - 0.5) * scale + np.tile(matrices[..., :2, 2], 2)[:, :, None] + 0.5
    cut = np.clip(moved, 0, np.tile(np.array([size[1], size[0]], np.float64), 2))
    inside: Bools = np.all(cut[..., 2:] > cut[..., :2], axis=-1)
    lead = (len(boxes), matrices.shape[1], *boxes.shape[1:-1])
    return cut.reshape(*lead, 4), inside.reshape(lead)


def move_intrinsics(intrinsics: Array, matrices: Matrices) -> Array:
    """Intrinsics (n, 3, 3) of the results, (n, copies, 3, 3) of their dtype."""
    return (matrices @ intrinsics[:, None].astype(np.float64)).astype(intrinsics.dtype)
