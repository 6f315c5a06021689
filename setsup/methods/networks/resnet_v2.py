"""ResNet50-V2 up to conv4_block6: residual blocks that normalise before they convolve [1]_.

Strides, padding and biases are those of Keras' ResNet50V2, whose weights the paper on ABC begins with. There the last
block of a stage halves the sides, not the first: 128 × 128 pixels become 64 (conv1), 32 (pooling), then 16, 8 and 4
after the stages conv2, conv3 and conv4.

References
----------
.. [1] K. He, X. Zhang, S. Ren, J. Sun, "Identity mappings in deep residual networks", ECCV 2016.

"""

from collections import OrderedDict

from torch import Tensor, nn

from setsup.methods.networks.initialisation import bare

__all__ = ["Bottleneck", "resnet50v2"]

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


def resnet50v2() -> nn.Sequential:
    """ResNet50-V2 up to conv4_block6, without initialisation; 8,548,480 parameters and 24,960 running statistics.

    Its parts are named as in Keras: ``conv1``, ``conv2_block1`` … ``conv4_block6``. The result is a sum of the last
    block, before any norm and ReLU. Keras' own weights were trained on images in [−1, 1].

    Returns `nn.Sequential` (n, 3, height, width) float → (n, 1024, height / 32, width / 32).
    """
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
    return nn.Sequential(parts)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=_EPSILON, momentum=_MOMENTUM)
