"""What a resize shows of each image: a box of the original, and the region of the result that it fills."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal

from setsup.arrays import Size
from setsup.checks import check_choice, check_integer, check_number, is_integer
from setsup.datasets.originals import Box, Interpolation
from setsup.errors import SetsupError
from setsup.loading.crops import TRIES, Range, check_box, check_range, largest_box
from setsup.random import stream_key

__all__ = ["Letterbox", "Place", "RandomResizedCrop", "Resize", "ShortSide"]

_INTERPOLATIONS = ("bilinear", "bicubic")
_POSITIONS = ("centre", "random")


@dataclass(frozen=True, slots=True)
class Place:
    """What a result shows of an image.

    Attributes
    ----------
    box : (left, top, width, height)
        Part of the original, in pixels from its upper left corner.
    row, column : int
        First pixel of the region of the result that shows it.
    rows, columns : int
        Pixels of that region.

    """

    box: Box
    row: int
    column: int
    rows: int
    columns: int


@dataclass(frozen=True)
class Resize(ABC):
    """Base class of resizing each image to a common size when it is decoded; subclasses define :meth:`place`.

    Attributes
    ----------
    draws : int
        How many random numbers :meth:`place` takes.

    """

    size: int | Size
    _: KW_ONLY
    copies: int | None = None
    modalities: Mapping[str, str] | None = field(default=None, hash=False)
    interpolation: Interpolation = "bilinear"
    seed: int = 0
    stream: str | None = None

    draws: ClassVar[int] = 0

    def __post_init__(self) -> None:
        """Check the arguments, and store them in one form."""
        name = type(self).__name__
        object.__setattr__(self, "size", check_box(self.size, name))
        if self.copies is not None:
            check_integer(self.copies, f"{name}: copies", SetsupError, 1)
        if self.modalities is not None and not isinstance(self.modalities, Mapping):
            raise SetsupError(
                f'{name}: modalities must map modalities to their kinds, as in {{"mask": "label"}}, not '
                f"{self.modalities!r}"
            )
        check_choice(self.interpolation, _INTERPOLATIONS, f"{name}: interpolation", SetsupError)
        stream = name if self.stream is None else self.stream
        object.__setattr__(self, "stream", stream)
        stream_key(self.seed, stream)  # checks the two

    @property
    def shape(self) -> Size:
        """Height and width of results."""
        height, width = self.size  # type: ignore[misc]
        return height, width

    @abstractmethod
    def place(self, numbers: Sequence[float], height: int, width: int) -> Place:
        """What a result shows of an image of some height and width.

        `numbers`: as many as :attr:`draws`, each uniform in 0 … 1 and below 1.
        """

    def fill_of(self, name: str, kind: str) -> float:
        """Value of the pixels of a modality that lie outside the region of a result; of colors 0 … 1."""
        return 0


@dataclass(frozen=True)
class RandomResizedCrop(Resize):
    """Crops a box of random area and aspect ratio from each image, and resizes it.

    The distribution is that of torchvision's ``RandomResizedCrop``: up to ten times, a share of the image's area,
    uniform in ``scale``, and a ratio of width to height, log-uniform in ``ratio``, are drawn, and both sides rounded to
    integers, until the box fits into the image; its position is uniform over integers. If none of the ten fits, the box
    is the largest one in the centre whose ratio is in ``ratio``.

    Random numbers are functions of (seed, stream, step, set, position, copy).

    Parameters
    ----------
    size : int or (height, width)
        Pixels of the result.
    scale : (low, high)
        Share of the image's area, 0 < low ≤ high ≤ 1.
    ratio : (low, high)
        Ratio of width to height, 0 < low ≤ high.
    copies : int, optional
        Number of independent results of each image, along a new axis after sets and positions. An image is read
        once for all of them, and decoded once at each scale that they need.
    modalities : mapping of str to str, optional
        Kinds of modalities other than images: docs/loading.md.
    interpolation : str
        ``"bilinear"`` or ``"bicubic"``, both antialiased where an image shrinks.
    seed, stream : int, str
        0 ≤ seed < 2⁶⁴; the stream is the name of the class by default.

    Raises
    ------
    SetsupError
        If an argument is invalid.

    References
    ----------
    .. [1] C. Szegedy et al., "Going deeper with convolutions", CVPR 2015 (arXiv 1409.4842), section 6.

    Examples
    --------
    >>> crop = RandomResizedCrop(224, scale=(0.2, 1))
    >>> crop.shape, crop.place([0.5] * crop.draws, height=300, width=400).box
    ((224, 224), (66.0, 16.0, 268.0, 268.0))

    """

    scale: Range = (0.08, 1.0)
    ratio: Range = (3 / 4, 4 / 3)

    draws: ClassVar[int] = 2 * TRIES + 2

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        for name, high in (("scale", 1.0), ("ratio", math.inf)):
            ends = check_range(getattr(self, name), f"RandomResizedCrop: {name}", high=high, positive=True)
            object.__setattr__(self, name, ends)

    def place(self, numbers: Sequence[float], height: int, width: int) -> Place:
        """A box for an image; see :meth:`Resize.place`."""
        low, high = (math.log(end) for end in self.ratio)
        for attempt in range(TRIES):
            area = height * width * _between(*self.scale, numbers[2 * attempt])
            ratio = math.exp(_between(low, high, numbers[2 * attempt + 1]))
            tall, wide = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if 0 < tall <= height and 0 < wide <= width:
                left = math.floor(numbers[2 * TRIES] * (width - wide + 1))
                top = math.floor(numbers[2 * TRIES + 1] * (height - tall + 1))
                break
        else:
            tall, wide = largest_box(height, width, self.ratio)
            left, top = (width - wide) // 2, (height - tall) // 2
        return Place((float(left), float(top), float(wide), float(tall)), 0, 0, *self.shape)


@dataclass(frozen=True)
class ShortSide(Resize):
    """The image resized in proportion until its short side has a length, and a crop of that.

    With the default `short` the image just covers the result. ``ShortSide(224, short=256)`` is the usual way to
    evaluate a network on ImageNet: the short side becomes 256 pixels, and the central 224 × 224 remain. The box is not
    rounded to whole pixels of the original, so proportions are exact.

    Parameters
    ----------
    size : int or (height, width)
        Pixels of the result.
    short : int, optional
        Pixels of the short side before the crop, at least the longer side of the result.
    position : str
        Of the crop: ``"centre"``, or ``"random"``, uniform over all positions.
    copies, modalities, interpolation, seed, stream
        As of :class:`RandomResizedCrop`.

    Raises
    ------
    SetsupError
        If an argument is invalid.

    Examples
    --------
    >>> ShortSide(224, short=256).place([], height=512, width=1024).box
    (288.0, 32.0, 448.0, 448.0)

    """

    short: int | None = None
    position: Literal["centre", "random"] = "centre"

    draws: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        check_choice(self.position, _POSITIONS, "ShortSide: position", SetsupError)
        if self.short is not None and (not is_integer(self.short) or self.short < max(self.shape)):
            raise SetsupError(
                f"ShortSide: short must be an integer of at least {max(self.shape)}, the longer side of the result, "
                f"not {self.short!r}"
            )

    def place(self, numbers: Sequence[float], height: int, width: int) -> Place:
        """A box for an image; see :meth:`Resize.place`."""
        rows, columns = self.shape
        if self.short is None:
            pixels = min(height / rows, width / columns)  # of the original, for each of the result
        else:
            pixels = min(height, width) / self.short
        tall, wide = min(rows * pixels, height), min(columns * pixels, width)
        across, down = numbers[:2] if self.position == "random" else (0.5, 0.5)
        return Place((across * (width - wide), down * (height - tall), wide, tall), 0, 0, rows, columns)


@dataclass(frozen=True)
class Letterbox(Resize):
    """The whole image resized in proportion until it just fits into the result, with borders of one value.

    Sides are rounded to integers, at least 1; the homography of a result has the exact scales.

    Parameters
    ----------
    size : int or (height, width)
        Pixels of the result.
    fill : float or mapping of str to float
        Value of the borders: a number for images, 0 … 1, or numbers by modality; 0 by default.
    copies, modalities, interpolation, seed, stream
        As of :class:`RandomResizedCrop`; nothing is random.

    Raises
    ------
    SetsupError
        If an argument is invalid.

    Examples
    --------
    >>> Letterbox(64, fill=0.5).place([], height=100, width=200)
    Place(box=(0.0, 0.0, 200.0, 100.0), row=16, column=0, rows=32, columns=64)

    """

    fill: float | Mapping[str, float] = field(default=0.0, hash=False)

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        values = self.fill if isinstance(self.fill, Mapping) else {"": self.fill}
        for name, value in values.items():
            of = f" of {name!r}" if name else ""
            check_number(value, f"Letterbox: fill{of}", SetsupError, *(() if name else (0, 1)))

    def place(self, numbers: Sequence[float], height: int, width: int) -> Place:
        """Where an image lies; see :meth:`Resize.place`."""
        rows, columns = self.shape
        factor = min(rows / height, columns / width)
        tall = min(rows, max(1, round(height * factor)))
        wide = min(columns, max(1, round(width * factor)))
        box = (0.0, 0.0, float(width), float(height))
        return Place(box, (rows - tall) // 2, (columns - wide) // 2, tall, wide)

    def fill_of(self, name: str, kind: str) -> float:
        """Value of the borders; see :meth:`Resize.fill_of`."""
        if isinstance(self.fill, Mapping):
            return self.fill.get(name, 0)
        return self.fill if kind == "color" else 0


def _between(low: float, high: float, number: float) -> float:
    return low + (high - low) * number
