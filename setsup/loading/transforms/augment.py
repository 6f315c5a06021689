"""The transform of a batch: keyed operations on its images, and on everything that lies on their pixels."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setsup.correspondence import planar
from setsup.errors import DataError, SetsupError, near
from setsup.loading.batch import Batch
from setsup.loading.transforms.choices import Move, checked_operations, factors_of, moves, steps_of
from setsup.loading.transforms.modalities import keyed, tensor_of
from setsup.loading.transforms.resampling.maps import carried
from setsup.loading.transforms.slots import Slots
from setsup.loading.transforms.stack import mapped, processed
from setsup.random import stream_key

__all__ = ["Augment", "Compose"]

Size = tuple[int, int]

_PLANE = ((4, 5), "(sets, size, height, width) or (sets, size, height, width, k)")
_AXES = {  # numbers of axes of each kind, and their names
    "color": ((5,), "(sets, size, channels, height, width)"),
    "label": _PLANE,
    "depth": _PLANE,
    "normal": ((5,), "(sets, size, height, width, 3)"),
    "points": ((4,), "(sets, size, n, 2)"),
}
_LAST = {"normal": 3, "points": 2}  # lengths of last axes
_GEOMETRY = ("independent", "copies", "sets")


@dataclass(frozen=True)
class Augment:
    """Changes the images of a batch, each by numbers of its own, and carries along what lies on their pixels.

    Every number that is drawn is a function of (seed, stream, step, set, slot, copy, operation): the same on any
    device, for any number of workers, and after a resume. Consecutive geometric operations are multiplied into one
    matrix an image, by which it is resampled once (:mod:`setsup.loading.transforms.resampling`). Photometric operations
    change pictures only.

    Parameters
    ----------
    operations : sequence of operations
        Applied in order.
    modalities : mapping of str to str
        What is changed, and as what: ``color`` for pictures, (sets, size, C, H, W) uint8, or float32 in 0 … 1;
        ``label`` and ``depth``, (sets, size, H, W) or (sets, size, H, W, k); ``normal``, (sets, size, H, W, 3), x to
        the right and y down; ``points``, pixels (x, y) as (sets, size, n, 2). All on images of one size.
    copies : int, optional
        So many independent results of each image, along a new axis after sets and slots.
    geometry : str
        What shares one geometry: nothing (``independent``), the ``copies`` of one image, or all images of one of the
        ``sets``.
    into : str, optional
        Puts results beside the modalities, under ``<into>_<name>``, and not in their place.
    fill : float or mapping of str to float
        What stands where a result shows no pixel of its source: one number for pictures, 0 … 1, or numbers by
        modality. 0 for all else.
    eight_bit : bool
        Pictures are uint8 after every operation, by the laws of Pillow: what a paper needs that augmented stored
        pictures. Results are uint8; otherwise they are float32 in 0 … 1.
    seed : int
        0 ≤ seed < 2⁶⁴.
    stream : str
        Two of these with one seed draw the same numbers unless their streams differ.

    Raises
    ------
    SetsupError
        When the arguments are no operations, kinds, …, or operations contradict each other.
    DataError
        When it is called with a batch that lacks what is needed.

    Notes
    -----
    Where operations are geometric, the result has ``homography``, or ``<into>_homography``, float64
    (sets, size[, copies], 3, 3): matrices from the pixels of what was read to those of the result. Beside points stands
    ``<name>_inside``, bool (sets, size[, copies], n): whether each is on the result. Points become float64; NaN is
    beyond a horizon.

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
    geometry: str = "independent"
    into: str | None = None
    fill: float | Mapping[str, float] = 0.0
    eight_bit: bool = False
    seed: int = 0
    stream: str = "Augment"

    def __post_init__(self) -> None:
        """Check the arguments."""
        object.__setattr__(self, "operations", checked_operations(self.operations, "Augment"))
        _check_modalities(self.modalities)
        _check_fill(self.fill, self.modalities)
        whole = isinstance(self.copies, int | np.integer) and not isinstance(self.copies, bool)
        if self.copies is not None and (not whole or self.copies < 1):
            raise SetsupError(f"copies must be a whole number from 1 on, or None, not {self.copies!r}")
        if self.geometry not in _GEOMETRY:
            raise SetsupError(f"geometry must be one of {', '.join(_GEOMETRY)}, not {self.geometry!r}")
        if self.into is not None and (not isinstance(self.into, str) or not self.into):
            raise SetsupError(f"into must be what names of results begin with, or None, not {self.into!r}")
        stream_key(self.seed, self.stream)  # checks the two

    def __call__(self, batch: Batch) -> Batch:
        """The batch with results in place of the modalities, or beside them."""
        values = {name: _checked(batch, name, kind, self._fill(name)) for name, kind in self.modalities.items()}
        lead, size = _common(values, self.modalities)
        if not all(moves(operation) for operation in self.operations):
            for name in (name for name, kind in self.modalities.items() if kind == "color"):
                _check_range(name, values[name])
        copies = self.copies or 1
        own, shared = self._slots(batch, (*lead, copies))
        steps = steps_of(self.operations, own, shared, size)
        total = Move(np.tile(np.eye(3), (len(own), 1, 1)), size)
        for step in (step for step in steps if isinstance(step, Move)):
            total = Move(planar.compose(total.matrices, step.matrices), step.size)
        found: Batch = {}
        for name, kind in self.modalities.items():
            images, target, fill = values[name].flatten(0, 1), self._target(name), self._fill(name)
            if kind == "color":
                found[target] = processed(images, steps, copies, fill, self.eight_bit)
            elif kind == "points":
                points = images[:, None].expand(-1, copies, -1, -1).flatten(0, 1)
                found[target], found[f"{target}_inside"] = carried(points, total.matrices, total.size)
            else:
                found[target] = mapped(images, total, kind, copies, fill)
        if any(moves(operation) for operation in self.operations):
            device = next(iter(values.values())).device
            found[self._target("homography")] = torch.from_numpy(total.matrices).to(device)
        taken = [name for name in found if self.into is not None and name in batch]
        if taken:
            raise DataError(f"the batch has {taken[0]!r} already: give into= another text than {self.into!r}")
        axes = lead if self.copies is None else (*lead, copies)
        return {**batch, **{name: value.unflatten(0, axes) for name, value in found.items()}}

    def _target(self, name: str) -> str:
        return name if self.into is None else f"{self.into}_{name}"

    def _fill(self, name: str) -> float:
        if isinstance(self.fill, Mapping):
            return float(self.fill.get(name, 0.0))
        return float(self.fill) if self.modalities[name] == "color" else 0.0

    def _slots(self, batch: Batch, axes: tuple[int, ...]) -> tuple[Slots, Slots]:
        """Keys of all results, flat, and those from which their geometry is drawn."""
        own = keyed(batch, self.seed, self.stream, axes)
        own = replace(own, eight_bit=self.eight_bit, factors=_codes(batch, factors_of(self.operations), axes))
        if self.geometry == "independent":
            return own, own
        keys = own.keys.reshape(axes)
        first = keys[:, :, :1] if self.geometry == "copies" else keys[:, :1, :1]
        return own, replace(own, keys=np.broadcast_to(first, axes).reshape(-1))


@dataclass(frozen=True)
class Compose:
    """Several transforms of a batch, one after the other.

    Parameters
    ----------
    transforms : sequence of callables
        Each takes a batch and returns one.

    Raises
    ------
    SetsupError
        When one cannot be called, or two draw the same numbers: their seed and stream are equal.

    Examples
    --------
    >>> from setsup.loading.transforms import Augment, Compose, Flip, Shift
    >>> both = Compose([Augment([Flip()]), Augment([Shift(0.1)], into="moved", stream="moved")])
    >>> both.transforms[0].operations
    (Flip(p=0.5),)

    """

    transforms: Sequence[Callable[[Batch], Batch]]

    def __post_init__(self) -> None:
        """Check the transforms."""
        found = tuple(self.transforms) if isinstance(self.transforms, Iterable) else None
        if found is None or any(isinstance(one, type) or not callable(one) for one in found):
            raise SetsupError(f"Compose takes a list of callables of a batch, not {self.transforms!r}")
        object.__setattr__(self, "transforms", found)
        keys = [(one.seed, one.stream) for one in found if hasattr(one, "seed") and hasattr(one, "stream")]
        for key in keys:
            if keys.count(key) > 1:
                raise SetsupError(
                    f"two of the transforms draw the same numbers (seed {key[0]}, stream {key[1]!r}): give one another "
                    "stream=, or put what shares them into one Augment"
                )

    def __call__(self, batch: Batch) -> Batch:
        """The batch that the last one returns."""
        for transform in self.transforms:
            batch = transform(batch)
        return batch


def _check_modalities(modalities: Any) -> None:
    if not isinstance(modalities, Mapping) or not modalities:
        raise SetsupError(f'modalities must say what is changed, as in {{"image": "color"}}, not {modalities!r}')
    for name, kind in modalities.items():
        if kind not in _AXES:
            raise SetsupError(f"{name!r} is of no known kind, {kind!r}{near(kind, _AXES)}")


def _check_fill(fill: Any, modalities: Mapping[str, str]) -> None:
    for name, value in fill.items() if isinstance(fill, Mapping) else [(None, fill)]:
        if name is not None and name not in modalities:
            raise SetsupError(f"fill names {name!r}, which is none of the modalities{near(name, modalities)}")
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise SetsupError(f"fill must be a number, or numbers by modality, not {value!r}")
        if (name is None or modalities[name] == "color") and not 0 <= value <= 1:
            raise SetsupError(f"pictures are filled with a number from 0 to 1, not {value!r}")


def _checked(batch: Batch, name: str, kind: str, fill: float) -> Tensor:
    """A modality of a batch, if its axes and dtype are those of its kind, and it can hold what it is filled with."""
    found = tensor_of(batch, name)
    numbers, axes = _AXES[kind]
    if found.ndim not in numbers or found.shape[-1] != _LAST.get(kind, found.shape[-1]):
        more = "; what follows copies= goes into the same Augment" if kind == "color" and found.ndim == 6 else ""
        raise DataError(f"{name!r} must be {axes} to be {kind}, not {tuple(found.shape)}{more}")
    if kind == "color":
        _check_pictures(name, found)
    if kind in ("depth", "normal") and not found.dtype.is_floating_point:
        raise DataError(f"{name!r} must be floating to be {kind}, not {found.dtype}: what must not be mixed is label")
    if kind == "label" and not found.dtype.is_floating_point and found.dtype != torch.bool:
        limits = torch.iinfo(found.dtype)
        if not fill.is_integer() or not limits.min <= fill <= limits.max:
            raise DataError(f"{name!r} is {found.dtype} and cannot be filled with {fill:g}")
    return found


def _check_pictures(name: str, found: Tensor) -> None:
    if found.dtype not in (torch.uint8, torch.float32):
        raise DataError(f"{name!r} must be uint8 or float32 to be color, not {found.dtype}")
    if found.shape[2] > 4 >= found.shape[4]:
        raise DataError(f"{name!r} has its channels last, {tuple(found.shape)}: movedim(-1, -3) puts them first")


def _check_range(name: str, found: Tensor) -> None:
    """A look at one picture shows what was meant and costs nothing, but on a device, which would have to wait."""
    if found.dtype != torch.float32 or found.device.type != "cpu" or not found.numel():
        return
    low, high = (float(end) for end in found[0, 0].aminmax())
    if low < -0.01 or high > 1.01:
        raise DataError(f"{name!r} is float32 from {low:g} to {high:g}, and colours are 0 … 1: scale it, or pass uint8")


def _common(values: Mapping[str, Tensor], modalities: Mapping[str, str]) -> tuple[tuple[int, int], Size]:
    """Sets and slots of all modalities, and the height and width of their images."""
    leads = {name: tuple(value.shape[:2]) for name, value in values.items()}
    sizes = {
        name: tuple(value.shape[3:] if modalities[name] == "color" else value.shape[2:4])
        for name, value in values.items()
        if modalities[name] != "points"
    }
    if not sizes:
        raise DataError("points alone do not say how large the images are: name a modality of pixels beside them")
    for of, what in ((leads, "(sets, size)"), (sizes, "(height, width)")):
        if len(set(of.values())) > 1:
            raise DataError(f"modalities of one Augment must agree on {what}, and here are {of}")
    (lead, *_), (size, *_) = leads.values(), sizes.values()
    return (int(lead[0]), int(lead[1])), (int(size[0]), int(size[1]))


def _codes(batch: Batch, names: Iterable[str], axes: tuple[int, ...]) -> dict[str, npt.NDArray[Any]]:
    """Codes of factors, one for each result."""
    found = {}
    for name in names:
        factors = batch.get("factors", {})
        if name not in factors:
            raise DataError(f'the batch has no factor {name!r} under "factors"{near(name, factors)}')
        codes = torch.as_tensor(factors[name]).cpu().numpy()
        found[name] = np.broadcast_to(codes[..., None], axes).reshape(-1)
    return found
