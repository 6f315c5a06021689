"""Members of orbits of digits, rendered on the device of a batch from what its factors say."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from setsup.arrays import Reals
from setsup.datasets.benchmarks.affine_mnist.affine import ORDER, affine_maps
from setsup.errors import DataError
from setsup.loading.batch import Batch

__all__ = ["AffineMembers"]

_FACTORS = ("rotation", "shear", "scale", "translation_x", "translation_y")


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

    def __init__(self, side: int = 40, order: Sequence[str] = ORDER) -> None:
        affine_maps([], [], [], [], [], order)  # checks the order
        self.side, self.order = side, tuple(order)

    def __call__(self, batch: Batch) -> Batch:
        """The batch with ``image`` (sets, size, 1, side, side) uint8 in place of ``original``."""
        factors = batch.get("factors", {})
        missing = [name for name in ("original", *_FACTORS) if name not in (batch if name == "original" else factors)]
        if missing:
            raise DataError(
                "AffineMembers renders digits of affine-mnist from its factors, but the batch has no "
                f"{', '.join(missing)}; fetch the modality 'original' of affine-mnist or even-odd"
            )
        transformed = {name: value for name, value in batch.items() if name not in ("original", "canonical_original")}
        digits = batch["original"]
        rotation, shear, scale, x, y = (factors[name].flatten().cpu().numpy() for name in _FACTORS)
        maps = affine_maps(rotation, shear, scale, x, y, self.order)
        drawn = _render(digits.reshape(-1, *digits.shape[-2:]), maps, self.side)
        transformed["image"] = drawn.reshape(*digits.shape[:-2], self.side, self.side)
        if "canonical_original" in batch:
            transformed["canonical_image"] = self._in_the_middle(batch["canonical_original"])
        return transformed

    def _in_the_middle(self, digits: Tensor) -> Tensor:
        spare = [self.side - side for side in digits.shape[-2:]]
        edges = [part for side in reversed(spare) for part in (side // 2, side - side // 2)]
        return functional.pad(digits, edges)


def _render(digits: Tensor, maps: Reals, side: int) -> Tensor:
    """Interpolate digits (n, h, w) uint8 on a canvas: (n, side, side) uint8."""
    _, height, width = digits.shape
    if not len(digits):  # torch refuses an empty grid
        return digits.new_empty((0, side, side))
    back = np.linalg.inv(maps[:, :, :2])
    # pixels of the canvas about its middle, to those of the digit in units of its half sides, which grid_sample takes
    to_digit = np.concatenate([back, -back @ maps[:, :, 2:]], axis=2) / np.array([[width / 2], [height / 2]])
    to_digit[:, :, :2] *= side / 2
    theta = torch.from_numpy(to_digit.astype(np.float32)).to(digits.device)
    grid = functional.affine_grid(theta, [len(digits), 1, side, side], align_corners=False)
    drawn = functional.grid_sample(digits[:, None].float(), grid, align_corners=False)
    return (drawn[:, 0] + 0.5).to(torch.uint8)
