"""Members of orbits of digits, rendered on the device of a batch from what its factors say."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from setsup.errors import DataError
from setsup.loading.batch import Batch

__all__ = ["AffineMembers"]

_FACTORS = ("rotation", "shear", "scale", "translation_x", "translation_y")
_ORDER = ("rotate", "shear", "scale", "translate")


class AffineMembers:
    """Renders ``image`` of Affine MNIST from ``original`` and the factors of a batch, on the device that these are on.

    A digit is turned, sheared, enlarged and moved by the factors ``rotation`` (rad), ``shear``, ``scale``,
    ``translation_x`` and ``translation_y`` (px), and interpolated bilinearly, nothing outside: the images are those
    of :func:`~setsup.datasets.benchmarks.affine_mnist.affine.affine_copies`, but for rounding. Canonical images are
    the digits themselves in the middle of the canvas.

    Parameters
    ----------
    side : int
        Pixels of the canvas, square.
    order : sequence of str
        As the dataset was opened with.

    Raises
    ------
    DataError
        When a batch has no ``original``, or lacks a factor; or the order is not the four steps.

    Examples
    --------
    >>> digit = torch.tensor([[0, 9], [0, 9]], dtype=torch.uint8)[None, None, None]
    >>> factors = dict(rotation=0.0, shear=0.0, scale=1.0, translation_x=1.0, translation_y=0.0)
    >>> batch = {"original": digit, "factors": {name: torch.tensor([[value]]) for name, value in factors.items()}}
    >>> AffineMembers(4)(batch)["image"][0, 0, 0].tolist()
    [[0, 0, 0, 0], [0, 0, 0, 9], [0, 0, 0, 9], [0, 0, 0, 0]]

    """

    def __init__(self, side: int = 40, order: Sequence[str] = _ORDER) -> None:
        if sorted(order) != sorted(_ORDER):
            raise DataError(f"the order must be {', '.join(_ORDER)}, each once and in any order, not {order!r}")
        self.side, self.order = side, tuple(order)

    def __call__(self, batch: Batch) -> Batch:
        """The batch with ``image`` (sets, size, 1, side, side) uint8 in place of ``original``."""
        factors = batch.get("factors", {})
        missing = [
            *(["original"] if "original" not in batch else []),
            *(name for name in _FACTORS if name not in factors),
        ]
        if missing:
            raise DataError(
                f"AffineMembers renders digits of affine-mnist by its factors, and this batch has no "
                f"{', '.join(missing)}: fetch the modality 'original' of affine-mnist or even-odd"
            )
        found = {name: value for name, value in batch.items() if name not in ("original", "canonical_original")}
        digits = batch["original"]
        maps = _maps({name: factors[name].flatten() for name in _FACTORS}, self.order)
        drawn = _render(digits.reshape(-1, *digits.shape[-2:]), maps, self.side)
        found["image"] = drawn.reshape(*digits.shape[:-2], self.side, self.side)
        if "canonical_original" in batch:
            found["canonical_image"] = self._in_the_middle(batch["canonical_original"])
        return found

    def _in_the_middle(self, digits: Tensor) -> Tensor:
        spare = [self.side - side for side in digits.shape[-2:]]
        edges = [part for side in reversed(spare) for part in (side // 2, side - side // 2)]
        return functional.pad(digits, edges)


def _maps(factors: dict[str, Tensor], order: Sequence[str]) -> Tensor:
    """Where places go, as `affine_maps` has it: (n, 2, 3) float64."""
    angle, shear, scale, x, y = (factors[name].double() for name in _FACTORS)
    one, zero = torch.ones_like(angle), torch.zeros_like(angle)
    cos, sin = angle.cos(), angle.sin()
    linear = {
        "rotate": _rows(cos, sin, -sin, cos),
        "shear": _rows(one, shear, zero, one),
        "scale": _rows(scale, zero, zero, scale),
    }
    found = torch.cat([_rows(one, zero, zero, one), torch.zeros_like(angle)[:, None, None].expand(-1, 2, 1)], -1)
    for step in order:
        if step == "translate":
            found = found + torch.cat([torch.zeros_like(found[..., :2]), torch.stack([x, y], -1)[..., None]], -1)
        else:
            found = linear[step] @ found
    return found


def _rows(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return torch.stack([a, b, c, d], -1).reshape(-1, 2, 2)


def _render(digits: Tensor, maps: Tensor, side: int) -> Tensor:
    """Interpolate digits (n, h, w) uint8 on a canvas: (n, side, side) uint8."""
    _, height, width = digits.shape
    a, b, c, d = maps[:, 0, 0], maps[:, 0, 1], maps[:, 1, 0], maps[:, 1, 1]
    back = _rows(d, -b, -c, a) / (a * d - b * c)[:, None, None]
    shift = -(back @ maps[:, :, 2:])[..., 0]
    # pixels of the canvas about its middle, and of the digit in units of its half sides, which grid_sample takes
    step = torch.arange(side, dtype=torch.float64, device=digits.device) - (side - 1) / 2
    half = torch.tensor([width / 2, height / 2], dtype=torch.float64, device=digits.device)
    along, down = (back / half[:, None]).unbind(-1)
    along, down, start = along.float(), down.float(), (shift / half).float()
    row, column = step.float()[:, None, None], step.float()[:, None]
    grid = start[:, None, None] + column * along[:, None, None] + row * down[:, None, None]
    drawn = functional.grid_sample(digits[:, None].float(), grid, align_corners=False)
    return (drawn[:, 0] + 0.5).to(torch.uint8)
