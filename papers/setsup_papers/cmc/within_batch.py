"""Contrast within the batch: between features of images, or between images and places of maps.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849).
.. [2] R. D. Hjelm et al., "Learning deep representations by mutual information estimation and maximization", ICLR 2019.

"""

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from setsup.methods.embeddings import check_temperature
from setsup_papers.cmc.inputs import both_directions, check_different, check_names
from setsup_papers.cmc.losses import in_batch_loss, patch_loss

__all__ = ["BatchContrast", "PatchContrast", "Projection"]


class BatchContrast(nn.Module):
    """:func:`~setsup_papers.cmc.in_batch_loss` of each pair of views, in both directions.

    Negatives are images of the same draw: with several devices, those of the device.

    Parameters
    ----------
    pairs : sequence of (str, str)
        Pairs of views, each in both directions.
    temperature : float
        τ.

    Raises
    ------
    SetsupError
        When the temperature is not positive, or a view is paired with itself.

    Examples
    --------
    >>> import torch
    >>> contrast = BatchContrast([("frame", "flow")], temperature=1.0)
    >>> losses = contrast({"frame": torch.eye(3), "flow": torch.eye(3)}, groups=None)
    >>> {way: round(float(loss), 4) for way, loss in losses.items()}
    {('frame', 'flow'): 0.5514, ('flow', 'frame'): 0.5514}

    """

    def __init__(self, pairs: Sequence[tuple[str, str]], temperature: float = 0.07) -> None:
        super().__init__()
        check_temperature(temperature)
        check_different(pairs)
        self.directions = both_directions(pairs)
        self.temperature = temperature

    def forward(self, features: Mapping[str, Tensor], groups: Tensor | None) -> dict[tuple[str, str], Tensor]:
        """Losses by (anchor, candidates) of features (n, d) of unit length, with groups of images (n,)."""
        return {
            (anchor, other): in_batch_loss(features[anchor], features[other], self.temperature, groups)
            for anchor, other in self.directions
        }


class PatchContrast(nn.Module):
    """:func:`~setsup_papers.cmc.patch_loss` of features of a view, and places of another one's early maps [1]_.

    Both are projected first: by two layers with batch normalisation and ReLU in between, plus a linear one [2]_. A
    single view is paired with itself, which is local infomax. Negatives are of the same draw: with several devices,
    those of the device.

    Parameters
    ----------
    pairs : sequence of (str, str)
        Pairs of views, each in both directions.
    features : int
        Size of features.
    channels : mapping of str to int
        Channels of each view's map.
    size : int
        Of projections.

    Examples
    --------
    >>> import torch
    >>> contrast = PatchContrast([("L", "L")], features=8, channels={"L": 16}, size=32)
    >>> losses = contrast({"L": torch.randn(4, 8)}, {"L": torch.randn(4, 16, 3, 3)}, groups=None)
    >>> list(losses), losses["L", "L"].shape
    ([('L', 'L')], torch.Size([]))

    """

    def __init__(
        self, pairs: Sequence[tuple[str, str]], features: int, channels: Mapping[str, int], size: int = 2048
    ) -> None:
        super().__init__()
        check_names(view for pair in pairs for view in pair)
        self.directions = both_directions(pairs)
        views = dict.fromkeys(view for pair in pairs for view in pair)
        self.images = nn.ModuleDict({view: Projection(features, size) for view in views})
        self.places = nn.ModuleDict({view: Projection(channels[view], size) for view in views})

    def forward(
        self, features: Mapping[str, Tensor], maps: Mapping[str, Tensor], groups: Tensor | None
    ) -> dict[tuple[str, str], Tensor]:
        """Losses by (view of images, view of places) of features (n, d) and maps (n, C, h, w)."""
        images = {view: layer(features[view][:, :, None, None]).flatten(1) for view, layer in self.images.items()}
        places = {view: layer(maps[view]) for view, layer in self.places.items()}
        return {(anchor, other): patch_loss(images[anchor], places[other], groups) for anchor, other in self.directions}


class Projection(nn.Module):
    """Two 1 × 1 convolutions with batch normalisation and ReLU in between, plus a linear one: (n, C, h, w)."""

    def __init__(self, channels: int, size: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, size, 1, bias=False),
            nn.BatchNorm2d(size),
            nn.ReLU(inplace=True),
            nn.Conv2d(size, size, 1),
        )
        self.shortcut = nn.Conv2d(channels, size, 1, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        """Projected maps (n, size, h, w)."""
        projected: Tensor = self.layers(maps) + self.shortcut(maps)
        return projected
