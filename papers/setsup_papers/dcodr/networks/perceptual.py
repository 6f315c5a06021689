"""Distances of images: L1 with features of VGG16, as LORD and DCoDR reconstruct by [1]_, [2]_, or with a pyramid.

References
----------
.. [1] A. Gabbay, Y. Hoshen, "Demystifying inter-class disentanglement", ICLR 2020 (arXiv 1906.11796), and its published
   code.
.. [2] K. Simonyan, A. Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR 2015.

"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import DataError, SetsupError
from setsup.methods.networks.files import load_state
from setsup.methods.networks.pretrained import check_weights
from setsup.methods.networks.published import weights_file

__all__ = ["PerceptualDistance", "PyramidDistance", "vgg16_features"]

_WIDTHS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and convolutions of each stage of VGG16."""

_COMPARED = (3, 8, 13, 22, 30)
"""Layers whose outputs are compared: relu1_2, relu2_2, relu3_2, relu4_3 and pool5."""

_PREFIX = "features."

_SMALLEST = 32
"""Pixels of a side that five poolings leave one of."""


def vgg16_features(weights: Mapping[str, Any] | None = None, source: Path | str = "the file") -> nn.Sequential:
    """The convolutional part of VGG16, numbered as torchvision's ``features`` [2]_.

    Parameters
    ----------
    weights : mapping of str to Tensor, optional
        As in torchvision's file: ``features.0.weight`` and so on; those of the classifier are left out. Without them
        weights are normal by He's rule, from torch's random numbers.
    source : Path or str
        Where they are from, for errors.

    Returns
    -------
    nn.Sequential
        31 layers, (n, 3, H, W) float → (n, 512, H / 32, W / 32).

    Raises
    ------
    DataError
        When weights are not those of a VGG16.

    Examples
    --------
    >>> with torch.device("meta"):
    ...     network = vgg16_features()
    >>> len(network), sum(weights.numel() for weights in network.parameters())
    (31, 14714688)

    """
    if weights is None:
        network = _layers()
        for layer in network:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
        return network
    with torch.device("meta"):  # nothing is drawn, as the file gives every number
        network = _layers()
    named = {name.removeprefix(_PREFIX): (name, weight) for name, weight in weights.items() if name.startswith(_PREFIX)}
    if odd := next((name for name, weight in named.values() if not isinstance(weight, Tensor)), None):
        raise DataError(f"{odd!r} in {source} must be a tensor, not a {type(weights[odd]).__name__}; pass a state_dict")
    if not named:
        raise DataError(f"{source} has no weights {_PREFIX}…; pass torchvision's file of VGG16, vgg16-397923af.pth")
    network.load_state_dict(check_weights(source, named, network.state_dict()), assign=True)
    return network


class PerceptualDistance(nn.Module):
    """Mean absolute difference of images, and of their features at five places of VGG16 [1]_.

    d(x, y) = mean|x - y| + Σ mean|F(x) - F(y)| over relu1_2, relu2_2, relu3_2, relu4_3 and pool5, all with weight 1.
    Images in [0, 1] go into the network as they are, without mean and standard deviation of ImageNet; grey ones are
    repeated to three channels.

    The published code names the outputs of four convolutions and of the last pooling. But torchvision's ReLUs work in
    place, and overwrite what it stored: it compares what comes after them.

    The network is not part of ``parameters()`` or ``state_dict()``: it is never trained, and it is opened when the
    distance is first computed, so that a trained method is evaluated without its file.

    Parameters
    ----------
    weights : str or Path
        torchvision's file of VGG16, or ``"vgg16-imagenet"``, which is downloaded if it is missing; or ``"random"`` for
        RANDOM WEIGHTS, always the same ones, to try a training without the file; a warning is logged.

    Raises
    ------
    DataError
        At the first distance, when the file cannot be read or is another network's.

    Examples
    --------
    >>> distance = PerceptualDistance("random")
    >>> images = torch.rand(2, 3, 32, 32)
    >>> distance(images, images)
    tensor([0., 0.])

    """

    def __init__(self, weights: str | Path = "vgg16-imagenet") -> None:
        super().__init__()
        self.weights = weights
        self._opened: list[nn.Sequential] = []  # not a module of this one

    def forward(self, images: Tensor, targets: Tensor) -> Tensor:
        """Distance of each image from its target, (n,) float32; the gradient is that of the images.

        Parameters
        ----------
        images, targets : (n, 1 or 3, H, W) float in [0, 1]
            Sides of 32 or more.

        Raises
        ------
        DataError
            When shapes disagree.
        SetsupError
            When images are too small, or have another number of channels.

        """
        if images.shape != targets.shape:
            raise _unlike(images, targets)
        channels, *sides = images.shape[-3:]
        if min(sides) < _SMALLEST or channels not in (1, 3):
            raise SetsupError(
                f"VGG16 compares images of at least {_SMALLEST} × {_SMALLEST} pixels with 1 or 3 channels, not "
                f"{sides[0]} × {sides[1]} pixels with {channels} channels; convert the images, or compare pyramids "
                "with --method.perceptual pyramid"
            )
        images, targets = (batch.expand(-1, 3, -1, -1) if batch.shape[1] == 1 else batch for batch in (images, targets))
        network = self._network(images.device)
        difference = _mean_difference(images, targets.detach())
        with torch.no_grad():
            wanted = list(_features(network, targets))
        for have, want in zip(_features(network, images), wanted, strict=True):
            difference = difference + _mean_difference(have, want)
        return difference

    def _network(self, device: torch.device) -> nn.Sequential:
        """The opened network, on the device of images."""
        if not self._opened:
            self._opened.append(_open(self.weights).requires_grad_(False).eval())
        network = self._opened[0]
        if next(network.parameters()).device != device:
            network.to(device)
        return network


class PyramidDistance(nn.Module):
    """Mean absolute difference of images, and of the levels of their Laplacian pyramids.

    d(x, y) = mean|x - y| + Σ mean|Lₖ(x) - Lₖ(y)|, where Lₖ is what is lost when the image, which is halved k times, is
    averaged over 2 × 2 pixels and enlarged again, and the last level is what remains. It has no weights: ``-small``
    presets have it in place of VGG16.

    Parameters
    ----------
    levels : int
        Of the pyramid, 1 or more; 1 is the image itself.

    Examples
    --------
    >>> distance = PyramidDistance()
    >>> distance(torch.ones(1, 3, 8, 8), torch.zeros(1, 3, 8, 8))  # only the last level differs
    tensor([2.])

    """

    def __init__(self, levels: int = 3) -> None:
        super().__init__()
        if levels < 1:
            raise SetsupError(f"the number of pyramid levels must be 1 or more, not {levels}")
        self.levels = levels

    def forward(self, images: Tensor, targets: Tensor) -> Tensor:
        """Distance of each image from its target, (n,) float32.

        Parameters
        ----------
        images, targets : (n, C, H, W) float
            Sides are multiples of 2^(levels - 1).

        """
        if images.shape != targets.shape:
            raise _unlike(images, targets)
        most = 2 ** (self.levels - 1)
        if images.shape[-1] % most or images.shape[-2] % most:
            raise SetsupError(
                f"images of {images.shape[-2]} × {images.shape[-1]} pixels cannot be halved {self.levels - 1} times; "
                "use fewer levels"
            )
        # a level is linear in the image, so that the level of the difference is the difference of levels
        rest = images.float() - targets.detach().float()
        difference = rest.abs().flatten(1).mean(1)
        for _ in range(self.levels - 1):
            lower = functional.avg_pool2d(rest, 2)
            level = rest - functional.interpolate(lower, scale_factor=2.0, mode="nearest")
            difference = difference + level.abs().flatten(1).mean(1)
            rest = lower
        return difference + rest.abs().flatten(1).mean(1)


def _layers() -> nn.Sequential:
    layers: list[nn.Module] = []
    before = 3
    for width, count in _WIDTHS:
        for _ in range(count):
            layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
            before = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


def _open(weights: str | Path) -> nn.Sequential:
    if weights == "random":
        logging.getLogger("setsup").warning(
            "perceptual distances use a VGG16 with RANDOM WEIGHTS, so they cannot be compared with published values"
        )
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            return vgg16_features()
    path = weights_file(weights)
    return vgg16_features(load_state(path), path)


def _features(network: nn.Sequential, images: Tensor) -> "list[Tensor]":
    """Outputs of the compared layers."""
    kept, output = [], images
    for number, layer in enumerate(network):
        output = layer(output)
        if number in _COMPARED:
            kept.append(output)
    return kept


def _mean_difference(first: Tensor, second: Tensor) -> Tensor:
    """Mean absolute difference of each, (n,) float32."""
    return (first.float() - second.float()).abs().flatten(1).mean(1)


def _unlike(images: Tensor, targets: Tensor) -> DataError:
    return DataError(
        f"images have the shape {tuple(images.shape)}, but targets {tuple(targets.shape)}; pass one target of the "
        "same shape for each image"
    )
