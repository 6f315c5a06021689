"""Operations for some of the images, and what a list of operations does to each image.

A list becomes *steps* over all images at once: a :class:`Move` holds a matrix an image, a :class:`Paint` one operation
and the images that it changes. Consecutive moves are one, so that an image is resampled once for them.
"""

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Array, Bools, Matrices, Size
from setsup.correspondence import planar
from setsup.errors import SetsupError
from setsup.loading.transforms.operations.base import check_probability
from setsup.loading.transforms.operations.geometry import Geometric, where
from setsup.loading.transforms.slots import Slots

__all__ = ["ForLevels", "Move", "OneOf", "Paint", "RandomApply", "build_steps", "factor_names", "moves"]


@dataclass(frozen=True)
class OneOf:
    """One of several operations for each image, all equally likely.

    Each operation receives only the images that it is chosen for. Operations that change the size of images must all be
    geometric and result in one size. If one of them is geometric, images that share their geometry share the choice.

    Parameters
    ----------
    operations : sequence of operations
        At least one.

    Examples
    --------
    >>> from setsup.loading.transforms import Flip, Shift
    >>> OneOf([Flip(1.0), Shift(0.1)])
    OneOf(operations=(Flip(p=1.0), Shift(fraction=0.1)))

    """

    operations: Sequence[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", check_operations(self.operations, "OneOf"))
        if not self.operations:
            raise SetsupError("OneOf requires at least one operation")


@dataclass(frozen=True)
class RandomApply:
    """An operation with probability p, and nothing otherwise.

    If the operation is geometric, images that share their geometry share the choice.

    Parameters
    ----------
    operation : operation
        Must not change the size of images.
    p : float
        0 … 1.

    Examples
    --------
    >>> from setsup.loading.transforms import Shift
    >>> RandomApply(Shift(0.1), p=0.3)
    RandomApply(operation=Shift(fraction=0.1), p=0.3)

    """

    operation: Any
    p: float = 0.5

    def __post_init__(self) -> None:
        check_operations([self.operation], "RandomApply")
        check_probability(self.p, "RandomApply: p")


@dataclass(frozen=True)
class ForLevels:
    """An operation for images of some levels of a factor, and nothing for others.

    Parameters
    ----------
    operation : operation
        Must not change the size of images.
    factor : str
        Name of a factor in ``batch["factors"]``.
    levels : int or sequence of int
        Codes of its levels.

    Examples
    --------
    >>> from setsup.loading.transforms import Shift
    >>> ForLevels(Shift(0.1), "part", 1)
    ForLevels(operation=Shift(fraction=0.1), factor='part', levels=(1,))

    """

    operation: Any
    factor: str
    levels: int | Sequence[int]

    def __post_init__(self) -> None:
        check_operations([self.operation], "ForLevels")
        levels = (self.levels,) if isinstance(self.levels, int | np.integer) else self.levels
        whole = isinstance(levels, tuple | list) and all(isinstance(code, int | np.integer) for code in levels)
        if not isinstance(self.factor, str) or not whole or not levels:
            raise SetsupError(
                f"ForLevels requires the name of a factor and codes of its levels, not {self.factor!r} and "
                f"{self.levels!r}"
            )
        object.__setattr__(self, "levels", tuple(int(code) for code in levels))


@dataclass(frozen=True, slots=True)
class Move:
    """A matrix (n, 3, 3) for each image, and the (height, width) that all then have."""

    matrices: Matrices
    size: Size


@dataclass(frozen=True, slots=True)
class Paint:
    """A photometric operation, the keys it draws from, and whether each image (n,) is changed; None: all are."""

    operation: Any
    slots: Slots
    chosen: Bools | None = None


Steps = list[Move | Paint]


def check_operations(operations: Any, of: str) -> tuple[Any, ...]:
    """Operations as a tuple; SetsupError when one is none."""
    if isinstance(operations, str) or not isinstance(operations, Iterable):
        raise SetsupError(f"{of} requires a list of operations, not {operations!r}")
    checked = tuple(operations)
    for operation in checked:
        known = isinstance(operation, OneOf | RandomApply | ForLevels | Geometric)
        if isinstance(operation, type) or not (known or callable(operation)):
            raise SetsupError(f"{of} requires operations such as Flip() or Crop(64), not {operation!r}")
        if not known and not _takes_two(operation):
            raise SetsupError(
                f"{of} requires operations, callables of (images, slots), not {operation!r:.80}; combine transforms of "
                "batches, such as recipes, with Compose"
            )
    return checked


def _takes_two(operation: Any) -> bool:
    """Whether a callable can be given images and slots; True where nobody can tell."""
    try:
        inspect.signature(operation).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # of something compiled
        return True
    return True


def _inner(operation: Any) -> tuple[Any, ...]:
    """Operations that an operation chooses from."""
    if isinstance(operation, OneOf):
        return tuple(operation.operations)
    return (operation.operation,) if isinstance(operation, RandomApply | ForLevels) else ()


def moves(operation: Any) -> bool:
    """Whether an operation is geometric, or chooses one that is."""
    return hasattr(operation, "homography") or any(moves(inner) for inner in _inner(operation))


def factor_names(operations: Iterable[Any]) -> set[str]:
    """Names of the factors that operations read."""
    names: set[str] = set()
    for operation in operations:
        names |= factor_names(_inner(operation)) | ({operation.factor} if isinstance(operation, ForLevels) else set())
    return names


def build_steps(operations: Iterable[Any], own: Slots, shared: Slots, size: Size) -> Steps:
    """What operations do to each image.

    `size` (height, width).
    """
    steps: Steps = []
    for number, operation in enumerate(operations):
        for step in _steps(operation, own.at(number), shared.at(number), size):
            last = steps[-1] if steps else None
            if isinstance(step, Move) and isinstance(last, Move):
                steps[-1] = Move(planar.compose(last.matrices, step.matrices), step.size)
            else:
                steps.append(step)
            size = step.size if isinstance(step, Move) else size
    return steps


def _steps(operation: Any, own: Slots, shared: Slots, size: Size) -> Steps:
    """Steps of one operation."""
    if hasattr(operation, "homography"):  # as isinstance of the protocol, in a hundredth of its time
        return [Move(*operation.homography(shared, *size))]
    inner = _inner(operation)
    if not inner:
        return [Paint(operation, own)]
    chooser = shared if moves(operation) else own
    which: Array  # of the inner operations each image gets, from 1 on; 0 is none
    if isinstance(operation, OneOf):
        which = 1 + chooser.below(len(inner))
    elif isinstance(operation, RandomApply):
        which = chooser.uniform(0, 1) < operation.p
    else:
        which = np.isin(own.factors[operation.factor], operation.levels)
    # an operation inside draws from keys of its own, apart from the choice, which is parameter 0
    branches = [_steps(choice, own.at(number), shared.at(number), size) for number, choice in enumerate(inner, 1)]
    moved = [branch[0] for branch in branches if len(branch) == 1 and isinstance(branch[0], Move)]
    all_moved = isinstance(operation, OneOf) and len(moved) == len(branches)
    sizes = [step.size for branch in branches for step in branch if isinstance(step, Move)]
    if len(different := dict.fromkeys(sizes if all_moved else [size, *sizes])) > 1:
        shown = " and ".join(f"{height} × {width}" for height, width in different)
        raise SetsupError(
            f"{operation} returns images of different sizes, {shown}; resize all images to one size first"
        )
    if all_moved:
        return [Move(np.stack([move.matrices for move in moved])[which - 1, np.arange(len(which))], sizes[0])]
    steps = [_restricted(step, which == number) for number, branch in enumerate(branches, 1) for step in branch]
    # an image has one of the steps, so their order is free; moves in front join those before
    return sorted(steps, key=lambda step: isinstance(step, Paint))


def _restricted(step: Move | Paint, chosen: Bools) -> Move | Paint:
    """A step for chosen images only."""
    if isinstance(step, Move):
        return Move(where(chosen, step.matrices), step.size)
    return Paint(step.operation, step.slots, chosen if step.chosen is None else step.chosen & chosen)
