"""The transform of a batch: keyed operations on its images, and on modalities on the same pixels."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.arrays import Size
from setsup.checks import check_integer
from setsup.correspondence import planar
from setsup.errors import DataError, SetsupError, did_you_mean
from setsup.loading.batch import Batch
from setsup.loading.transforms.apply import apply_steps, mapped
from setsup.loading.transforms.choices import Move, Steps, build_steps, check_operations, factor_names, moves
from setsup.loading.transforms.modalities import KINDS, keyed_slots, possible_leads
from setsup.loading.transforms.resampling.warp import carried
from setsup.loading.transforms.slots import Slots
from setsup.random import stream_key

__all__ = ["Augment", "Compose"]

_IMAGES = ("color", "clip")
_COPIED = 3  # leading axes of images that were copied before: sets, positions and copies
_GEOMETRY = ("independent", "copies", "sets")


@dataclass(frozen=True)
class Augment:
    """Augments each image of a batch with its own random numbers, and other modalities with the same geometry.

    Every random number is a function of (seed, stream, step, set, slot, copy, operation), so it is the same on any
    device, for any number of workers, and after a resume. Consecutive geometric operations are multiplied into one
    matrix per image, which is resampled once (:mod:`setsup.loading.transforms.resampling`). Photometric operations
    change images only.

    Parameters
    ----------
    operations : sequence of operations
        Applied in order.
    modalities : mapping of str to str
        Modalities to change, and their kinds: ``color`` for images, (sets, size, C, H, W) uint8, or float32 in 0 … 1;
        ``label`` and ``depth``, (sets, size, H, W) or (sets, size, H, W, k); ``normal``, (sets, size, H, W, 3), x to
        the right and y down; ``points``, pixels (x, y) as (sets, size, n, 2); ``clip``, (sets, size, frames, C, H, W),
        all frames of which change equally; ``flow``, motion in pixels, x and y alternating, (sets, size, 2k, H, W) or
        (sets, size, k, 2, H, W). All images must have the same size. Modalities with one image per set, such as
        ``canonical_image``, do not have the axis ``size``; use a second Augment, with other random numbers, for them.
    copies : int, optional
        Number of independent results of each image, along a new axis after sets and positions. Images that already have
        copies, made by ``resize=`` of the loader, are augmented independently.
    geometry : str
        Which results share one geometry: none (``independent``), the ``copies`` of an image, or all images of a set
        (``sets``).
    into : str, optional
        Prefix of the names of results, ``<into>_<name>``; without it, results replace the modalities.
    fill : float or mapping of str to float
        Value of pixels that lie outside of the source: a number for images, 0 … 1, or numbers by modality; 0 by
        default.
    eight_bit : bool
        Images are uint8 after every operation, with the arithmetic of Pillow, as in papers that augmented stored
        images. Results are uint8; otherwise they are float32 in 0 … 1.
    seed, stream : int, str
        0 ≤ seed < 2⁶⁴; transforms with the same seed draw the same numbers unless their streams differ.

    Raises
    ------
    SetsupError
        If an argument is invalid, or operations contradict each other.
    DataError
        If a batch lacks a required modality or factor.

    Notes
    -----
    With geometric operations, the result has ``homography``, or ``<into>_homography``, float64
    (sets, size[, copies], 3, 3): matrices from the pixels of the input to those of the result of the last Augment.
    ``homographies`` has, by modality, the matrices through all Augments so far: from the pixels that the first one
    read (as loaded, or of a view such as ``view_1``) to those of the batch.
    Points have a mask ``<name>_inside``, bool (sets, size[, copies], n): whether each is on the result. Points become
    float64; points beyond a horizon are NaN, as is flow that leads there.

    Examples
    --------
    >>> import setsup
    >>> from setsup.loading.transforms import Augment, Flip, ResizedCrop
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2)
    >>> twice = Augment([ResizedCrop(32, area=(0.5, 1)), Flip()], copies=2)
    >>> batch = next(iter(setsup.loader(shapes, sets, transform=twice, workers=0)))
    >>> tuple(batch["image"].shape), batch["image"].dtype, tuple(batch["homography"].shape)
    ((2, 4, 2, 3, 32, 32), torch.float32, (2, 4, 2, 3, 3))

    """

    operations: Sequence[Any]
    _: KW_ONLY
    modalities: Mapping[str, str] = field(default_factory=lambda: {"image": "color"})
    copies: int | None = None
    geometry: Literal["independent", "copies", "sets"] = "independent"
    into: str | None = None
    fill: float | Mapping[str, float] = 0.0
    eight_bit: bool = False
    seed: int = 0
    stream: str = "Augment"

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", check_operations(self.operations, "Augment"))
        _check_modalities(self.modalities)
        _check_fill(self.fill, self.modalities)
        if self.copies is not None:
            check_integer(self.copies, "copies", SetsupError, 1)
        if self.geometry not in _GEOMETRY:
            raise SetsupError(f"geometry must be one of {', '.join(_GEOMETRY)}, not {self.geometry!r}")
        if self.into is not None and (not isinstance(self.into, str) or not self.into):
            raise SetsupError(f"into must be a non-empty prefix for the names of results, or None, not {self.into!r}")
        stream_key(self.seed, self.stream)  # checks the two

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with results in place of the modalities, or in addition to them."""
        lead = _lead(batch, self.modalities)
        if len(lead) == _COPIED and self.copies is not None:
            raise DataError(
                f"the images already have {lead[2]} copies each; leave out copies= of this Augment, or the transform "
                "that created the copies"
            )
        values = {name: _checked(batch, name, kind, self._fill(name)) for name, kind in self.modalities.items()}
        size = _size(values, self.modalities, len(lead))
        moving = [moves(operation) for operation in self.operations]
        for name, kind in self.modalities.items():
            if kind in _IMAGES and not all(moving):
                _check_range(name, values[name])
        copies = self.copies or 1
        axes = lead if self.copies is None else (*lead, copies)
        own, shared = self._slots(batch, lead, copies)
        steps = build_steps(self.operations, own, shared, size)
        moved = [Move(np.tile(np.eye(3), (len(own), 1, 1)), size), *(step for step in steps if isinstance(step, Move))]
        total = Move(planar.compose(*(step.matrices for step in moved)), moved[-1].size)
        added: Batch = {}
        for name, kind in self.modalities.items():
            flat, target = values[name].flatten(0, len(lead) - 1), self._target(name)
            if kind == "points":
                points = flat[:, None].expand(-1, copies, -1, -1).flatten(0, 1)
                added[target], added[f"{target}_inside"] = carried(points, total.matrices, total.size)
            else:
                added[target] = self._changed(flat, kind, steps, total, self._fill(name))
        if any(moving):
            device = next(iter(values.values())).device
            added[self._target("homography")] = torch.from_numpy(total.matrices).to(device)
        taken = [name for name in added if self.into is not None and name in batch]
        if taken:
            raise DataError(f"the batch already contains {taken[0]!r}; pass a value for into= other than {self.into!r}")
        added = {name: value.unflatten(0, axes) for name, value in added.items()}
        matrices = added.get(self._target("homography"))
        return {**batch, **added, **self._homographies(batch, axes, matrices)}

    def _changed(self, flat: Tensor, kind: str, steps: Steps, total: Move, fill: float) -> Tensor:
        """A modality (n, …) after all steps, (n · copies, …)."""
        copies = self.copies or 1
        if kind == "color":
            return self._changed(flat[:, None], "clip", steps, total, fill)[:, 0]
        if kind == "clip":
            frames, results = flat.shape[1], len(flat) * copies
            rows = np.arange(results).repeat(frames)
            source = rows // copies * frames + np.tile(np.arange(frames), results)
            done = apply_steps(flat.flatten(0, 1), steps, source, rows, fill, self.eight_bit)
            return done.reshape(results, frames, *done.shape[1:])
        if kind == "flow":
            fields = mapped(flat.flatten(1, -3).movedim(1, -1), total, kind, copies, fill)
            return fields.movedim(-1, 1).reshape(len(fields), *flat.shape[1:-2], *fields.shape[1:3])
        return mapped(flat, total, kind, copies, fill)

    def _homographies(self, batch: Batch, axes: tuple[int, ...], matrices: Tensor | None) -> Batch:
        """Matrices of all modalities through every Augment so far, each in memory of its own; None moves nothing."""
        before: Mapping[str, Tensor] = batch.get("homographies", {})
        after = dict(before)
        for name in self.modalities:
            if name in before:
                earlier = before[name] if self.copies is None else before[name][..., None, :, :]
                after[self._target(name)] = (
                    earlier.expand(*axes, 3, 3).clone() if matrices is None else matrices @ earlier
                )
            elif matrices is not None:
                after[self._target(name)] = matrices.clone()
        return {"homographies": after} if after else {}

    def _target(self, name: str) -> str:
        return name if self.into is None else f"{self.into}_{name}"

    def _fill(self, name: str) -> float:
        if isinstance(self.fill, Mapping):
            return float(self.fill.get(name, 0.0))
        return float(self.fill) if self.modalities[name] in _IMAGES else 0.0

    def _slots(self, batch: Batch, lead: tuple[int, ...], copies: int) -> tuple[Slots, Slots]:
        """Keys of all results, flat, and those from which their geometry is drawn."""
        axes = (*lead, copies)
        own = keyed_slots(batch, self.seed, self.stream, lead, copies)
        own = replace(own, eight_bit=self.eight_bit, factors=_codes(batch, factor_names(self.operations), axes))
        if self.geometry == "independent":
            return own, own
        alone = 1 if self.geometry == "sets" else min(2, len(lead))  # axes along which geometry is not shared
        first = own.keys.reshape(axes)[(slice(None),) * alone + (slice(1),) * (len(axes) - alone)]
        return own, replace(own, keys=np.broadcast_to(first, axes).reshape(-1))


@dataclass(frozen=True)
class Compose:
    """Applies several transforms of a batch in sequence.

    Parameters
    ----------
    transforms : sequence of callables
        Each takes a batch and returns one.

    Raises
    ------
    SetsupError
        When a transform is not callable, or two transforms, including those in a nested Compose, have the same seed
        and stream and would draw the same numbers.

    Examples
    --------
    >>> from setsup.loading.transforms import Augment, Compose, Flip, Shift
    >>> both = Compose([Augment([Flip()]), Augment([Shift(0.1)], into="moved", stream="moved")])
    >>> both.transforms[0].operations
    (Flip(p=0.5),)

    """

    transforms: Sequence[Callable[[Batch], Batch]]

    def __post_init__(self) -> None:
        transforms = tuple(self.transforms) if isinstance(self.transforms, Iterable) else None
        if transforms is None or any(
            isinstance(transform, type) or not callable(transform) for transform in transforms
        ):
            raise SetsupError(
                "Compose requires a list of transforms, callables that take and return a batch, not "
                f"{self.transforms!r}"
            )
        object.__setattr__(self, "transforms", transforms)
        keys = [
            (transform.seed, transform.stream)
            for transform in _flat(transforms)
            if hasattr(transform, "seed") and hasattr(transform, "stream")
        ]
        for key in keys:
            if keys.count(key) > 1:
                raise SetsupError(
                    f"two of the transforms draw the same random numbers (seed {key[0]}, stream {key[1]!r}); pass "
                    "another stream= to one of them, or combine their operations in one Augment to share the numbers"
                )

    def __call__(self, batch: Batch) -> Batch:
        """The batch that the last one returns."""
        for transform in self.transforms:
            batch = transform(batch)
        return batch


def _flat(transforms: Iterable[Any]) -> Iterator[Any]:
    """All transforms, those of a Compose in place of it."""
    for transform in transforms:
        yield from _flat(transform.transforms) if isinstance(transform, Compose) else (transform,)


def _check_modalities(modalities: Any) -> None:
    if not isinstance(modalities, Mapping) or not modalities:
        raise SetsupError(
            f'modalities must map modalities to their kinds, as in {{"image": "color"}}, not {modalities!r}'
        )
    for name, kind in modalities.items():
        if kind not in KINDS:
            raise SetsupError(f"unknown kind {kind!r} of {name!r}{did_you_mean(kind, KINDS)}")


def _check_fill(fill: Any, modalities: Mapping[str, str]) -> None:
    for name, value in fill.items() if isinstance(fill, Mapping) else [(None, fill)]:
        if name is not None and name not in modalities:
            raise SetsupError(
                f"fill contains {name!r}, which is not one of the modalities{did_you_mean(name, modalities)}"
            )
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise SetsupError(f"fill must be a number, or a mapping of modalities to numbers, not {value!r}")
        if (name is None or modalities[name] in _IMAGES) and not 0 <= value <= 1:
            raise SetsupError(f"fill of images must be a number from 0 to 1, not {value!r}")


def _lead(batch: Batch, modalities: Mapping[str, str]) -> tuple[int, ...]:
    """Sets and slots of all modalities; sets alone where they have one image a set."""
    possible = {name: possible_leads(batch, name, kind) for name, kind in modalities.items()}
    common = set.intersection(*possible.values())
    axes = max(common) if common else 0
    leads = {name: tuple(batch[name].shape[: axes or max(possible[name])]) for name in possible}
    if not common or len(set(leads.values())) > 1:
        raise DataError(
            f"modalities of one Augment must all have the same leading axes, (sets, size) or (sets,), not {leads}"
        )
    lead = next(iter(leads.values()))
    for name, matrices in batch.get("homographies", {}).items():
        if name in modalities and tuple(matrices.shape[:-2]) != lead:
            raise DataError(
                f"{name!r} was copied and transformed with leading axes {tuple(matrices.shape[:-2])}, but now has "
                f"{lead}; put the operations after copies= into the same Augment, or select the same copy of "
                f"homographies[{name!r}]"
            )
    return lead


def _checked(batch: Batch, name: str, kind: str, fill: float) -> Tensor:
    """A modality of a batch, if its dtype is one of its kind, and it can hold what it is filled with."""
    values: Tensor = batch[name]
    if kind in _IMAGES and values.dtype not in (torch.uint8, torch.float32):
        raise DataError(f"{name!r} of kind {kind} must be uint8 or float32, not {values.dtype}")
    if kind in _IMAGES and values.shape[-3] > 4 >= values.shape[-1]:
        raise DataError(
            f"{name!r} must have the channels before the height and width, not shape {tuple(values.shape)}; move them "
            "with movedim(-1, -3)"
        )
    if kind in ("depth", "normal", "flow") and not values.dtype.is_floating_point:
        raise DataError(
            f"{name!r} of kind {kind} must be floating point, not {values.dtype}; for values that must not be "
            "interpolated, use the kind label"
        )
    if kind == "label" and not values.dtype.is_floating_point and values.dtype != torch.bool:
        limits = torch.iinfo(values.dtype)
        if not fill.is_integer() or not limits.min <= fill <= limits.max:
            raise DataError(
                f"{name!r} of dtype {values.dtype} cannot be filled with {fill:g}; pass an integer from "
                f"{limits.min} to {limits.max} as fill"
            )
    return values


def _check_range(name: str, images: Tensor) -> None:
    """A look at one image shows what was meant and costs nothing, but on a device, which would have to wait."""
    if images.dtype != torch.float32 or images.device.type != "cpu" or not images.numel():
        return
    low, high = (float(end) for end in images[(0,) * (images.ndim - 3)].aminmax())
    if low < -0.01 or high > 1.01:
        raise DataError(
            f"{name!r} must be uint8, or float32 in 0 … 1, not float32 from {low:g} to {high:g}; scale the values"
        )


def _size(values: Mapping[str, Tensor], modalities: Mapping[str, str], lead: int) -> Size:
    """Height and width of the images of all modalities."""
    sizes: dict[str, Size] = {}
    for name, kind in modalities.items():
        if kind != "points":
            after = values[name].shape[lead:] if kind in ("label", "depth", "normal") else values[name].shape[-2:]
            sizes[name] = (int(after[0]), int(after[1]))
    if not sizes:
        raise DataError("points alone do not determine the size of images; add a modality with pixels")
    if len(set(sizes.values())) > 1:
        raise DataError(f"modalities of one Augment must have the same (height, width), not {sizes}")
    return next(iter(sizes.values()))


def _codes(batch: Batch, names: Iterable[str], axes: tuple[int, ...]) -> dict[str, npt.NDArray[Any]]:
    """Codes of factors, one for each result."""
    codes_by_name = {}
    for name in names:
        factors = batch.get("factors", {})
        if name not in factors:
            raise DataError(f'the batch has no factor {name!r} under "factors"{did_you_mean(name, factors)}')
        codes = torch.as_tensor(factors[name]).cpu().numpy()
        if codes.shape != axes[:-1]:
            raise DataError(
                f"codes of {name!r} have shape {codes.shape}, one per position, but the images have no positions, "
                f"only {axes[:-1]}; apply ForLevels to images with positions"
            )
        codes_by_name[name] = np.broadcast_to(codes[..., None], axes).reshape(-1)
    return codes_by_name
