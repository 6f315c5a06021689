"""Spherical regression of angles: an angle's sine and cosine as a point of the circle and a choice of its quadrant.

References
----------
.. [1] S. Liao, E. Gavves, C. G. M. Snoek, "Spherical regression: learning viewpoints, surface normals and 3D rotations
   on n-spheres", CVPR 2019 (arXiv 1904.05404), and its published code.
.. [2] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, table 2.

"""

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import DataError, SetsupError

__all__ = ["AngleLogits", "Magnitude", "SphericalHead", "decode_angles", "spherical_losses"]

Magnitude = Literal["cosine", "log"]

_SIGNS = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))
"""Signs of cosine and sine in quadrants 0 to 3, as angles pass them from 0 on."""


class AngleLogits(NamedTuple):
    """Predictions of a network for some angles.

    Attributes
    ----------
    magnitudes : (..., 2) float
        Logits whose softmax is the squared cosine and the squared sine.
    quadrants : (..., 4) float
        Logits of the quadrants from 0°, 90°, 180° and 270° on.

    """

    magnitudes: Tensor
    quadrants: Tensor


class SphericalHead(nn.Module):
    """Angles from embeddings: for each angle a dense layer with tanh, and linear ones for magnitudes and quadrant [2]_.

    Parameters
    ----------
    size : int
        Dimensions of embeddings, which are scaled to length 1 first.
    angles : int
        How many.
    width : int
        Of the dense layer of each angle.

    Examples
    --------
    >>> head = SphericalHead(64, angles=3)
    >>> sum(weights.numel() for weights in head.parameters())  # 3 · (65 · 128 + 129 · 6)
    27282

    """

    def __init__(self, size: int, angles: int, width: int = 128) -> None:
        super().__init__()
        self.hidden = nn.ModuleList(nn.Sequential(nn.Linear(size, width), nn.Tanh()) for _ in range(angles))
        self.magnitudes = nn.ModuleList(nn.Linear(width, 2) for _ in range(angles))
        self.quadrants = nn.ModuleList(nn.Linear(width, 4) for _ in range(angles))

    def forward(self, embedded: Tensor) -> AngleLogits:
        """Logits (..., angles, 2) and (..., angles, 4) float32 of embeddings (..., size) float of any length."""
        with torch.autocast(embedded.device.type, enabled=False):
            unit = functional.normalize(embedded.float(), dim=-1)
            hidden = [layers(unit) for layers in self.hidden]
            magnitudes = [layer(features) for layer, features in zip(self.magnitudes, hidden, strict=True)]
            quadrants = [layer(features) for layer, features in zip(self.quadrants, hidden, strict=True)]
            return AngleLogits(torch.stack(magnitudes, -2), torch.stack(quadrants, -2))


def decode_angles(logits: AngleLogits) -> Tensor:
    """Angles of the likeliest quadrants, with the magnitudes of the spherical exponential √softmax [1]_.

    Parameters
    ----------
    logits : AngleLogits
        (..., 2) and (..., 4) float.

    Returns
    -------
    (...) float, radians
        From −π to π.

    Examples
    --------
    >>> logits = AngleLogits(torch.tensor([0.0, 0.0]), torch.tensor([0.0, 5.0, 0.0, 0.0]))
    >>> torch.rad2deg(decode_angles(logits))
    tensor(135.)

    """
    sizes = logits.magnitudes.softmax(-1).sqrt()
    signs = sizes.new_tensor(_SIGNS)[logits.quadrants.argmax(-1)]
    cosine, sine = (sizes * signs).unbind(-1)
    return torch.atan2(sine, cosine)


def spherical_losses(logits: AngleLogits, angles: Tensor, magnitude: Magnitude = "cosine") -> tuple[Tensor, Tensor]:
    """Loss of the magnitudes, and of the quadrant, of each angle [1]_.

    With the target (|cos a|, |sin a|), a point of the circle as √softmax is, the magnitudes' loss is 1 less the
    cosine of the angle between the two, as ABC has it [2]_, or the cross-entropy −cos² a · log p₁ − sin² a · log p₂ of
    the published code. The quadrant's is the cross-entropy.

    Parameters
    ----------
    logits : AngleLogits
        (..., 2) and (..., 4) float.
    angles : (...) float, radians
        True ones, any multiple of 2π more; NaN where unknown.
    magnitude : {"cosine", "log"}
        Loss of the magnitudes.

    Returns
    -------
    two of (...) float
        0 for unknown angles, without gradients.

    Raises
    ------
    DataError
        When the shapes disagree.
    SetsupError
        When the loss is unknown.

    Examples
    --------
    >>> logits = AngleLogits(torch.tensor([[0.0, 0.0]]), torch.zeros(1, 4))
    >>> of_magnitudes, of_quadrants = spherical_losses(logits, torch.tensor([torch.pi / 4]))
    >>> of_magnitudes.abs().item() < 1e-6, round(of_quadrants.exp().item(), 3)
    (True, 4.0)

    """
    if magnitude not in get_args(Magnitude):
        raise SetsupError(f"magnitude must be one of {', '.join(get_args(Magnitude))}, not {magnitude!r}")
    shapes = tuple(logits.magnitudes.shape), tuple(logits.quadrants.shape)
    if shapes != ((*angles.shape, 2), (*angles.shape, 4)):
        raise DataError(
            f"logits must have the shapes (..., 2) and (..., 4) for angles of shape (...), not {shapes} for "
            f"{tuple(angles.shape)}"
        )
    known = ~angles.isnan()
    # gradients of what is masked would be NaN where the target is
    cosine, sine = (function(torch.where(known, angles, 0.0)) for function in (torch.cos, torch.sin))
    log_shares = logits.magnitudes.log_softmax(-1)
    if magnitude == "cosine":
        target = torch.stack([cosine.abs(), sine.abs()], -1)
        of_magnitudes = 1 - (target * (log_shares / 2).exp()).sum(-1)
    else:
        of_magnitudes = -(torch.stack([cosine.square(), sine.square()], -1) * log_shares).sum(-1)
    quadrants = torch.where(sine < 0, torch.where(cosine < 0, 2, 3), torch.where(cosine < 0, 1, 0))
    of_quadrants = functional.cross_entropy(logits.quadrants.reshape(-1, 4), quadrants.reshape(-1), reduction="none")
    return torch.where(known, of_magnitudes, 0.0), torch.where(known, of_quadrants.reshape(angles.shape), 0.0)
