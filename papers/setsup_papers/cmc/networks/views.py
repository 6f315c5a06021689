"""Encoders of views for contrastive multiview coding: one network per view, whose layers can be read by name [1]_.

A view has any number of channels: 1 of luminance or depth, 2 of colours, 20 of ten fields of motion.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), tables 8-10, and its
   published code.

"""

from collections.abc import Iterable, Mapping

from torch import Tensor, nn

from setsup.errors import SetsupError, did_you_mean, require_modules
from setsup.methods.networks.layers import convolution, dense, flat_size

__all__ = ["RESNETS", "ViewEncoder", "alexnet_view", "resnet_view", "small_view", "stl10_view"]

RESNETS: Mapping[str, tuple[str, tuple[int, int, int, int]]] = {
    "resnet18": ("basic", (2, 2, 2, 2)),
    "resnet50": ("bottleneck", (3, 4, 6, 3)),
    "resnet101": ("bottleneck", (3, 4, 23, 3)),
}
"""Kinds of blocks, and how many of each stage."""

OUT = "out"
"""Name of the features among the layers."""


class ViewEncoder(nn.Module):
    """Stages by name, applied in order, and a head that returns the features of a view.

    Parameters
    ----------
    stages : mapping of str to nn.Module
        In order; the last returns (n, …).
    head : nn.Module
        From the last stage to features (n, d).
    image : (channels, height, width), optional
        What the stages were built for: other channels are an error, and other sides for dense stages.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> encoder = ViewEncoder({"conv1": nn.Conv2d(1, 4, 3), "pool": nn.AdaptiveAvgPool2d(1)}, nn.Flatten())
    >>> images = torch.zeros(2, 1, 8, 8)
    >>> tuple(encoder(images).shape)
    (2, 4)
    >>> {name: tuple(layer.shape) for name, layer in encoder.layers(images, ["conv1", "out"]).items()}
    {'conv1': (2, 4, 6, 6), 'out': (2, 4)}

    """

    def __init__(
        self, stages: Mapping[str, nn.Module], head: nn.Module, image: tuple[int, int, int] | None = None
    ) -> None:
        super().__init__()
        self.image = image
        self.stages = nn.ModuleDict(stages)
        self.head = head
        dense = [
            name for name, stage in stages.items() if any(isinstance(layer, nn.Linear) for layer in stage.modules())
        ]
        self._dense: set[str] = {*dense, OUT} if dense else set()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the stages, in order; the features are ``out``."""
        return tuple(self.stages)

    def channels(self, name: str) -> int:
        """Channels of a stage's map, which are those of its last convolution, or of one before it."""
        if name == OUT:
            raise SetsupError(
                f"{OUT!r} is the vector of features, not a feature map; choose a stage, {', '.join(self.names)}"
            )
        channels = 0
        for stage, layers in self.stages.items():
            channels = next(
                (layer.out_channels for layer in reversed([*layers.modules()]) if isinstance(layer, nn.Conv2d)),
                channels,
            )
            if stage == name:
                return channels
        raise self._unknown(name)

    def _unknown(self, name: str) -> SetsupError:
        known = (*self.names, OUT)
        return SetsupError(f"unknown layer {name!r}{did_you_mean(name, known)}")

    def _check(self, sizes: tuple[int, ...], wanted: set[str]) -> None:
        """Refuse other channels than the encoder was built for, and other sides where a dense layer is wanted."""
        if self.image is None or sizes == self.image:
            return
        if sizes[0] != self.image[0] or wanted & self._dense:
            came, reads = (" × ".join(map(str, size)) for size in (sizes, self.image))
            raise SetsupError(
                f"images must be {reads} (channels × height × width) for this encoder, not {came}; crop or resize them"
            )

    def forward(self, images: Tensor) -> Tensor:
        """Features (n, d) of images (n, C, H, W) float; their length is not normalised."""
        return self.layers(images, (OUT,))[OUT]

    def layers(self, images: Tensor, names: Iterable[str] | None = None) -> dict[str, Tensor]:
        """Compute the outputs of stages in one pass, which ends at the last requested stage.

        Parameters
        ----------
        images : (n, C, H, W) float
            A view of images.
        names : iterable of str, optional
            Stages, and ``out`` for the features; by default all.

        Returns
        -------
        dict of str to (n, …) float tensors

        Raises
        ------
        SetsupError
            When there is no stage of a name, or images have another size than those the encoder was built for.

        """
        wanted = {*self.names, OUT} if names is None else set(names)
        if unknown := sorted(wanted - {*self.names, OUT}):
            raise self._unknown(unknown[0])
        self._check(tuple(images.shape[1:]), wanted)
        outputs: dict[str, Tensor] = {}
        value = images
        for name, stage in self.stages.items():
            if not wanted - outputs.keys():
                return outputs
            value = stage(value)
            if name in wanted:
                outputs[name] = value
        if OUT in wanted:
            outputs[OUT] = self.head(value)
        return outputs


def alexnet_view(image: tuple[int, int, int], features: int = 128, width: float = 1.0) -> ViewEncoder:
    """Half an AlexNet, for ImageNet: five convolutions, two dense layers of 2,048, and one to the features.

    Batch normalisation and ReLU follow all layers but the last; convolutions have no bias.

    `image` (channels, height, width), 224 × 224 in the paper and at least 63 × 63; `width` multiplies all channels;
    returns `ViewEncoder` with ``conv1`` … ``conv5``, ``fc6`` and ``fc7``.
    """
    return _half_alexnet(image, (48, 128, 192), ((11, 4, 2), (5, 1, 2)), features, width)


def stl10_view(image: tuple[int, int, int], features: int = 64, width: float = 1.0) -> ViewEncoder:
    """The half AlexNet for STL-10: 3 × 3 convolutions with stride 1, pools after the first two and the last.

    `image` (channels, height, width), 64 × 64 in the paper and at least 15 × 15; `width` multiplies all channels;
    returns `ViewEncoder` with ``conv1`` … ``conv5``, ``fc6`` and ``fc7``.
    """
    return _half_alexnet(image, (48, 96, 192), ((3, 1, 1), (3, 1, 1)), features, width)


def _half_alexnet(
    image: tuple[int, int, int],
    sizes: tuple[int, int, int],
    first: tuple[tuple[int, int, int], tuple[int, int, int]],
    features: int,
    width: float,
) -> ViewEncoder:
    """Half an AlexNet of these channels, whose first two convolutions have these kernels, strides and paddings."""
    a, b, c, hidden = (scaled(size, width) for size in (*sizes, 2048))
    stages: dict[str, nn.Module] = {
        "conv1": nn.Sequential(*convolution(image[0], a, *first[0]), nn.MaxPool2d(3, 2)),
        "conv2": nn.Sequential(*convolution(a, b, *first[1]), nn.MaxPool2d(3, 2)),
        "conv3": convolution(b, c, 3, 1, 1),
        "conv4": convolution(c, c, 3, 1, 1),
        "conv5": nn.Sequential(*convolution(c, b, 3, 1, 1), nn.MaxPool2d(3, 2)),
    }
    stages["fc6"] = nn.Sequential(nn.Flatten(), *dense(flat_size(stages, image), hidden))
    stages["fc7"] = dense(hidden, hidden)
    return ViewEncoder(stages, nn.Linear(hidden, features), image)


def small_view(image: tuple[int, int, int], features: int = 64, width: float = 1.0) -> ViewEncoder:
    """Three 3 × 3 convolutions of 32, 64 and 128 channels, each with a 2 × 2 pool, and a dense layer of 256.

    It is not a network of a paper: it is for small images, such as halves of digits.

    `image` (channels, height, width), at least 8 × 8; `width` multiplies all channels; returns `ViewEncoder` with
    ``conv1`` … ``conv3`` and ``fc4``.
    """
    sizes = [image[0], *(scaled(size, width) for size in (32, 64, 128))]
    stages: dict[str, nn.Module] = {
        f"conv{at}": nn.Sequential(*convolution(sizes[at - 1], sizes[at], 3, 1, 1), nn.MaxPool2d(2))
        for at in range(1, len(sizes))
    }
    hidden = scaled(256, width)
    stages["fc4"] = nn.Sequential(nn.Flatten(), *dense(flat_size(stages, image), hidden))
    return ViewEncoder(stages, nn.Linear(hidden, features), image)


def resnet_view(name: str, image: tuple[int, int, int], features: int = 128, width: float = 1.0) -> ViewEncoder:
    """A complete ResNet per view, with its average over positions; blocks have `width` times the usual channels.

    The first convolution has 64 channels in all widths. Strides and weights to begin with are torchvision's.

    `name` ``resnet18``, ``resnet50`` or ``resnet101``; `image` (channels, height, width), 224 × 224 in the paper;
    `width` 0.5, 1 or 2 for v1, v2 and v3 of the published code; returns `ViewEncoder` with ``stem``, ``stage1`` …
    ``stage4`` and ``pool``.
    """
    if name not in RESNETS:
        raise SetsupError(f"unknown ResNet {name!r}{did_you_mean(name, RESNETS)}")
    require_modules(f"{name} needs", "transformers")
    from transformers import ResNetConfig, ResNetModel

    kind, depths = RESNETS[name]
    sizes = [(4 if kind == "bottleneck" else 1) * scaled(size, width) for size in (64, 128, 256, 512)]
    # the first stage of basic blocks has no stride, and a shortcut only where its width differs from the stem's
    config = ResNetConfig(
        num_channels=image[0], embedding_size=64, layer_type=kind, depths=list(depths), hidden_sizes=sizes
    )
    model = ResNetModel(config)
    stages: dict[str, nn.Module] = {"stem": model.embedder}
    stages |= {f"stage{at}": stage for at, stage in enumerate(model.encoder.stages, start=1)}
    stages["pool"] = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return ViewEncoder(stages, nn.Linear(sizes[-1], features), image)


def scaled(size: int, width: float) -> int:
    """Channels of a layer of a network of another width: even, and 2 at least."""
    return max(2, 2 * round(size * width / 2))
