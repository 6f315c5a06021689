"""Angles of a batch's images as targets of regression, from its factors, and rotations of angles."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from setsup.errors import SetsupError
from setsup.factors import FactorTable
from setsup.loading.batch import Batch

__all__ = ["AngleTargets", "pose_rotation"]

_RADIANS = {"deg": torch.pi / 180, "rad": 1.0, "turn": 2 * torch.pi}


class AngleTargets(nn.Module):
    """Angles of images, from factors with a unit of angles, continuous or with levels.

    Parameters
    ----------
    table : FactorTable
        Of the training data.
    names : sequence of str
        Of the factors.

    Raises
    ------
    SetsupError
        When the table has no such factor, or its values are not angles.

    Examples
    --------
    >>> from setsup.factors import Factor, FactorTable, Kind
    >>> table = FactorTable([Factor("azimuth", Kind.CONTINUOUS, unit="deg", period=360.0)], {"azimuth": [90.0]})
    >>> batch = {"factors": {"azimuth": torch.tensor([[180.0, torch.nan]])}}
    >>> AngleTargets(table, ["azimuth"]).angles(batch)
    tensor([[[3.1416],
             [   nan]]])

    """

    def __init__(self, table: FactorTable, names: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        self._units: list[float] = []
        if not names or len(set(names)) < len(self.names):
            raise SetsupError(f"angles must be one or more distinct factors, not {', '.join(self.names) or 'none'}")
        for number, name in enumerate(self.names):
            factor = table[name]
            if factor.unit not in _RADIANS:
                raise SetsupError(
                    f"the unit of the factor {name!r} must be one of {', '.join(_RADIANS)}, not {factor.unit!r}; "
                    "choose other angles with --method.angles"
                )
            levels = None if factor.levels is None else torch.tensor([float(level) for level in factor.levels])
            # of the training data, which a run keeps anyway
            self.register_buffer(f"levels{number}", levels, persistent=False)
            self._units.append(_RADIANS[factor.unit])

    def angles(self, batch: Batch) -> Tensor:
        """Angles of a batch's images in radians, (sets, size, angles) float32, NaN where unknown."""
        angles = []
        for number, (name, unit) in enumerate(zip(self.names, self._units, strict=True)):
            values, levels = batch["factors"][name], getattr(self, f"levels{number}")
            if levels is not None:
                values = torch.where(values < 0, torch.nan, levels[values.long().clamp(min=0)])
            angles.append(values.float() * unit)
        return torch.stack(angles, -1)


def pose_rotation(azimuth: Tensor, elevation: Tensor, theta: Tensor | float = 0.0) -> Tensor:
    """Rotations of poses, from object to camera: Rz(−theta)·Rx(elevation − 90°)·Rz(−azimuth).

    :func:`setsup_papers.abc.pose.rotation_from_euler` is the same for degrees and numpy.

    Parameters
    ----------
    azimuth, elevation, theta : (...) float, radians
        Of one shape; theta also as a number.

    Returns
    -------
    (..., 3, 3) of the same dtype

    Examples
    --------
    >>> zero = torch.zeros(())
    >>> pose_rotation(zero, zero)  # seen from the front: x right, z up
    tensor([[ 1.,  0.,  0.],
            [-0.,  0.,  1.],
            [ 0., -1.,  0.]])

    """
    theta = torch.as_tensor(theta, dtype=azimuth.dtype, device=azimuth.device).expand(azimuth.shape)
    (sa, ca), (se, ce), (st, ct) = ((angle.sin(), angle.cos()) for angle in (azimuth, elevation, theta))
    right = torch.stack([ca, sa, torch.zeros_like(ca)], -1)
    up = torch.stack([-se * sa, se * ca, ce], -1)
    back = torch.stack([ce * sa, -ce * ca, se], -1)
    st, ct = st[..., None], ct[..., None]
    return torch.stack([ct * right + st * up, ct * up - st * right, back], -2)
