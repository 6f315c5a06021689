"""ResNet50-V2 up to conv4_block6: residual blocks that normalise before they convolve [1]_.

Strides, padding and biases are those of Keras' ResNet50V2, whose weights the paper on ABC begins with. There the last
block of a stage halves the sides, not the first: 128 × 128 pixels become 64 (conv1), 32 (pooling), then 16, 8 and 4
after the stages conv2, conv3 and conv4.

References
----------
.. [1] K. He, X. Zhang, S. Ren, J. Sun, "Identity mappings in deep residual networks", ECCV 2016.

"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args

from torch import Tensor, nn

from setsup.errors import DataError, SetsupError
from setsup.methods.networks.initialisation import bare
from setsup.methods.networks.keras_files import is_keras

__all__ = ["Bottleneck", "PixelRange", "ResNet50V2", "load_trunk", "resnet50v2"]

PixelRange = Literal["unit", "symmetric"]

_WIDTHS_AND_DEPTHS = ((64, 3), (128, 4), (256, 6))  # stages conv2, conv3, conv4
_EPSILON = 1.001e-5
_MOMENTUM = 0.01  # torch's is the share of the new; Keras' 0.99 that of the old


class Bottleneck(nn.Module):
    """Pre-activation block: x + c₃(r(c₂(r(c₁(r(x)))))), where each r is a batch norm and ReLU; 1 × 1, 3 × 3, 1 × 1.

    The shortcut is x itself; where the block halves the sides, every second row and column of it; where it widens, a
    1 × 1 convolution of r(x). The weights are not initialised.
    """

    def __init__(self, channels: int, width: int, *, stride: int = 1, widens: bool = False) -> None:
        super().__init__()
        self.preact = nn.Sequential(_norm(channels), nn.ReLU())
        self.shortcut: nn.Module = nn.Identity()
        if widens:
            self.shortcut = bare(nn.Conv2d, channels, 4 * width, 1, stride)
        elif stride > 1:
            self.shortcut = nn.MaxPool2d(1, stride)
        self.widens = widens
        self.layers = nn.Sequential(
            bare(nn.Conv2d, channels, width, 1, bias=False),
            _norm(width),
            nn.ReLU(),
            bare(nn.Conv2d, width, width, 3, stride, 1, bias=False),
            _norm(width),
            nn.ReLU(),
            bare(nn.Conv2d, width, 4 * width, 1),
        )

    def forward(self, images: Tensor) -> Tensor:
        """(n, channels, height, width) float → (n, 4 · width, ⌈height / stride⌉, ⌈width / stride⌉)."""
        active = self.preact(images)
        result: Tensor = self.layers(active) + self.shortcut(active if self.widens else images)
        return result


class ResNet50V2(nn.Sequential):
    """ResNet50-V2 up to conv4_block6, without initialisation; 8,548,480 parameters and 24,960 running statistics.

    Its parts are named as in Keras: ``conv1``, ``conv2_block1`` … ``conv4_block6``. The result is a sum of the last
    block, before any norm and ReLU.

    Parameters
    ----------
    pixels : {"unit", "symmetric"}
        Range that images in [0, 1] are brought to first: none, or [−1, 1], on which Keras' own weights were trained.
    frozen_norm : bool
        Whether batch norms use their running statistics, unchanged, in training too.

    Raises
    ------
    SetsupError
        When the range is none of these.

    Examples
    --------
    >>> network = ResNet50V2()
    >>> sum(weights.numel() for weights in network.parameters())
    8548480

    """

    def __init__(self, *, pixels: PixelRange = "unit", frozen_norm: bool = False) -> None:
        if pixels not in get_args(PixelRange):
            raise SetsupError(f"pixels must be one of {', '.join(get_args(PixelRange))}, not {pixels!r}")
        parts: OrderedDict[str, nn.Module] = OrderedDict()
        parts["conv1"] = bare(nn.Conv2d, 3, 64, 7, 2, 3)
        # padded by zeros, not by −∞ as MaxPool2d's own padding: before the first ReLU, that is another result
        parts["pool1"] = nn.Sequential(nn.ZeroPad2d(1), nn.MaxPool2d(3, 2))
        channels = 64
        for stage, (width, depth) in enumerate(_WIDTHS_AND_DEPTHS, start=2):
            for block in range(1, depth + 1):
                stride = 2 if block == depth else 1
                parts[f"conv{stage}_block{block}"] = Bottleneck(channels, width, stride=stride, widens=block == 1)
                channels = 4 * width
        super().__init__(parts)
        self.pixels, self.frozen_norm = pixels, frozen_norm

    def forward(self, images: Tensor) -> Tensor:
        """Apply the network: (n, 3, height, width) float in [0, 1] → (n, 1024, height / 32, width / 32)."""
        if self.frozen_norm:
            for part in self.modules():
                if isinstance(part, nn.BatchNorm2d):
                    part.eval()
        features = images if self.pixels == "unit" else 2 * images - 1
        for part in self:
            features = part(features)
        return features

    def load_keras(self, weights: Mapping[str, Tensor], source: Path | str = "the file") -> None:
        """Take the weights of Keras' ResNet50V2; those of its later layers are left.

        Parameters
        ----------
        weights : mapping of str to Tensor
            By the names of Keras' layers and weights, ``conv2_block1_1_conv/kernel``, in Keras' order of axes, as
            files of ``save_weights`` hold them.
        source : Path or str
            Where they are from, for errors.

        Raises
        ------
        DataError
            When one is missing, has another shape, or is not finite.

        """
        state = self.state_dict()
        loaded: dict[str, Tensor] = {}
        for name, published in _keras_names(self):
            if published not in weights:
                raise DataError(
                    f"{source} does not contain the weight {published!r} of Keras' ResNet50V2; pass the published "
                    "file, resnet50v2_weights_tf_dim_ordering_tf_kernels_notop.h5"
                )
            weight = weights[published]
            weight = weight.permute(3, 2, 0, 1) if weight.ndim == 4 else weight
            if weight.shape != state[name].shape or not weight.isfinite().all():
                same = weight.shape == state[name].shape
                found = "values that are not finite" if same else tuple(weight.shape)
                raise DataError(
                    f"weight {published!r} of {source} must be finite and have the shape {tuple(state[name].shape)} "
                    f"(channels first) of ResNet50V2, not {found}; pass the published file"
                )
            loaded[name] = weight
        self.load_state_dict(state | loaded)


def resnet50v2(*, pixels: PixelRange = "unit", frozen_norm: bool = False) -> ResNet50V2:
    """Build :class:`ResNet50V2`, whose weights :func:`glorot_` or a file has to fill."""
    return ResNet50V2(pixels=pixels, frozen_norm=frozen_norm)


def load_trunk(method: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Start a method from the weights of Keras' ResNet50V2, where it has one; else from weights of all its parts.

    SetsupError for weights of Keras and a method without a ResNet50-V2; RuntimeError for others that do not fit.
    """
    if not is_keras(weights):
        method.load_state_dict(weights)
        return
    trunks = [part for part in method.modules() if isinstance(part, ResNet50V2)]
    if not trunks:
        raise SetsupError(
            f"{type(method).__name__} has no ResNet50-V2, so it cannot load the weights of Keras; train with "
            "--method.encoder resnet50v2, or without an initial run"
        )
    for trunk in trunks:
        trunk.load_keras(weights)


_NORM = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}
_CONVOLUTION = {"weight": "kernel", "bias": "bias"}
_INNER = {"preact.0": "preact_bn", "shortcut": "0_conv", "layers.0": "1_conv", "layers.1": "1_bn"}
_INNER |= {"layers.3": "2_conv", "layers.4": "2_bn", "layers.6": "3_conv"}


def _keras_names(network: ResNet50V2) -> Iterator[tuple[str, str]]:
    """Each weight and running statistic, with its name in Keras."""
    for name in network.state_dict():
        module, _, leaf = name.rpartition(".")
        block, _, inner = module.partition(".")
        if leaf == "num_batches_tracked":
            continue
        layer = f"{block}_{_INNER[inner]}" if inner else f"{block}_conv"
        yield name, f"{layer}/{(_NORM if layer.endswith('bn') else _CONVOLUTION)[leaf]}"


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=_EPSILON, momentum=_MOMENTUM)
