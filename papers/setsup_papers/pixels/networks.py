"""Networks of single-pixel contrast: a U-Net with a feature for every pixel, and a classifier of these features [1]_.

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
   (arXiv 2512.04970), appendix, and its published code.

"""

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional

from setsup.checks import check_integer, check_number
from setsup.errors import SetsupError

__all__ = ["PixelClassifier", "PixelUNet"]

_NEARLY_ZERO = 1e-6
"""Standard deviation of the initial weights of layers whose output is added to something."""

_HEAD_GROUPS = 8
"""Groups of the normalisation before the features."""


class PixelUNet(nn.Module):
    """Features of every pixel, from stages of residual blocks and back, with self-attention at the lowest resolution.

    Stage i has ``blocks[i]`` residual blocks of ``widths[i]`` channels, whose outputs are also kept for the way up, and
    halves the resolution. The way up has as many blocks, each of which takes one kept output, and one more. Blocks have
    group normalisation with a single group.

    Parameters
    ----------
    widths : sequence of int
        Channels of each stage.
    blocks : sequence of int
        Residual blocks of each stage.
    features : int
        D.
    channels : int
        Of images.
    heads : int
        Of the attention; they divide the last width.
    dropout : float
        Probability in blocks of the last two stages and in the middle.

    Raises
    ------
    SetsupError
        When widths and blocks do not agree, the last width is not a multiple of the heads, or the first none of eight.

    Examples
    --------
    >>> import torch
    >>> network = PixelUNet((32, 64, 64), (1, 2, 2))
    >>> sum(weights.numel() for weights in network.parameters())
    993664
    >>> tuple(network(torch.zeros(1, 3, 32, 32)).shape)
    (1, 32, 32, 32)

    """

    def __init__(
        self,
        widths: Sequence[int] = (32, 64, 64),
        blocks: Sequence[int] = (1, 2, 2),
        features: int = 32,
        channels: int = 3,
        heads: int = 4,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if len(widths) != len(blocks) or not widths:
            raise SetsupError(
                f"widths and blocks must contain one number for each stage, not {tuple(widths)} and {tuple(blocks)}"
            )
        for number in (*widths, features, channels, heads):
            check_integer(number, "a number of channels or heads", SetsupError, 1)
        for number in blocks:
            check_integer(number, "a number of blocks", SetsupError)
        check_number(dropout, "dropout", SetsupError, 0, 1)
        if widths[-1] % heads or widths[0] % _HEAD_GROUPS:
            raise SetsupError(
                f"widths must begin with a multiple of {_HEAD_GROUPS} (groups) and end with a multiple of {heads} "
                f"(heads), not {tuple(widths)}"
            )
        self.first = _convolution(channels, widths[0], 3)
        self.down, self.up, self.lower, self.higher = (nn.ModuleList() for _ in range(4))
        last = len(widths) - 1
        for stage, (width, count) in enumerate(zip(widths, blocks, strict=True)):
            rate = dropout if stage >= last - 1 else 0.0
            following = widths[min(stage + 1, last)]
            self.down.append(nn.ModuleList(_Block(width, rate) for _ in range(count)))
            self.lower.append(_convolution(width, following, 1))
            self.higher.append(_convolution(following, width, 1))
            self.up.append(nn.ModuleList(_Block(width, rate, fuses=number < count) for number in range(count + 1)))
        self.middle = nn.ModuleList(
            [_Block(widths[-1], dropout), SelfAttention(widths[-1], heads), _Block(widths[-1], dropout)]
        )
        self.head = nn.Sequential(
            nn.GroupNorm(_HEAD_GROUPS, widths[0]), nn.SiLU(), _convolution(widths[0], features, 3)
        )

    @property
    def divisor(self) -> int:
        """The number that heights and widths of images must be multiples of."""
        return 1 << len(self.down)

    def forward(self, images: Tensor) -> Tensor:
        """Features (n, D, H, W) of images (n, C, H, W) float.

        Raises
        ------
        SetsupError
            When a side is not a multiple of :attr:`divisor`.

        """
        height, width = images.shape[-2:]
        if height % self.divisor or width % self.divisor:
            raise SetsupError(
                f"images of {height} × {width} pixels cannot be halved {len(self.down)} times; crop or resize them to "
                f"multiples of {self.divisor}"
            )
        values, kept = self.first(images), []
        for blocks, lower in zip(self.down, self.lower, strict=True):
            for block in blocks:  # type: ignore[attr-defined]
                values = block(values)
                kept.append(values)
            values = lower(functional.avg_pool2d(values, 2))
        for layer in self.middle:
            values = layer(values)
        for blocks, higher in zip(reversed(self.up), reversed(self.higher), strict=True):
            values = functional.interpolate(higher(values), scale_factor=2, mode="nearest")
            for block in blocks:  # type: ignore[attr-defined]
                values = block(values, kept.pop() if block.fuses else None)
        features: Tensor = self.head(values)
        return features


class PixelClassifier(nn.Module):
    """A logit for every pixel from features of all: one layer of attention, and a small network for each pixel.

    Parameters
    ----------
    features : int
        D.
    hidden : sequence of int
        Widths of the network's layers, with GELU after each.

    Examples
    --------
    >>> import torch
    >>> classifier = PixelClassifier(32)
    >>> sum(weights.numel() for weights in classifier.parameters() if weights.requires_grad)
    28479
    >>> tuple(classifier(torch.zeros(2, 32, 8, 8)).shape)
    (2, 8, 8)

    """

    def __init__(self, features: int = 32, hidden: Sequence[int] = (150, 100, 50)) -> None:
        super().__init__()
        self.attention = _Attention(features, heads=1)
        layers: list[nn.Module] = []
        for before, after in pairwise((features, *hidden)):
            layers += [nn.Linear(before, after), nn.GELU()]
        self.layers = nn.Sequential(*layers, nn.Linear((features, *hidden)[-1], 1))

    def forward(self, features: Tensor) -> Tensor:
        """Logits (n, h, w) of features (n, D, h, w) float."""
        attended, _ = self.attention(features)
        logits: Tensor = self.layers(attended)[..., 0]
        return logits.reshape(len(features), *features.shape[-2:])


class SelfAttention(nn.Module):
    """Attention over all places; its result is added to the normalised input, as the published code has it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = _Attention(width, heads)
        self.out = nn.Linear(width, width)
        nn.init.normal_(self.out.weight, std=_NEARLY_ZERO)
        nn.init.zeros_(self.out.bias)

    def forward(self, maps: Tensor) -> Tensor:
        """Of maps (n, width, h, w), the same."""
        attended, normalised = self.attention(maps)
        added: Tensor = normalised + self.out(attended).transpose(1, 2).reshape(maps.shape)
        return added


class _Attention(nn.Module):
    """Attended values of all places, (n, places, width), and the normalised maps."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(1, width, eps=1e-6)
        self.norm.bias.requires_grad_(False)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.query_norm, self.key_norm = (nn.GroupNorm(1, width // heads) for _ in range(2))

    def forward(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        normalised = self.norm(maps)
        places = normalised.flatten(2).transpose(1, 2)
        query, key, value = (
            layer(places).unflatten(2, (self.heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        query, key = self._normalised(self.query_norm, query), self._normalised(self.key_norm, key)
        attended = functional.scaled_dot_product_attention(query, key, value)
        return attended.transpose(1, 2).flatten(2), normalised

    def _normalised(self, norm: nn.GroupNorm, vectors: Tensor) -> Tensor:
        """Normalise (n, heads, places, size) over everything but n; weights are of the size."""
        normalised: Tensor = norm(vectors.permute(0, 3, 2, 1)).permute(0, 3, 2, 1)
        return normalised


class _Block(nn.Module):
    """x + h(x): twice normalisation, SiLU and a 3 × 3 convolution; `fuses` adds a normalised second input before."""

    def __init__(self, width: int, dropout: float, fuses: bool = False) -> None:
        super().__init__()
        self.fuses = fuses
        self.norms = nn.ModuleList(nn.GroupNorm(1, width) for _ in range(2 + fuses))
        self.convolutions = nn.ModuleList(_convolution(width, width, 3) for _ in range(2))
        self.dropout = nn.Dropout(dropout)
        nn.init.normal_(self.convolutions[1].weight, std=_NEARLY_ZERO)  # type: ignore[arg-type]

    def forward(self, maps: Tensor, kept: Tensor | None = None) -> Tensor:
        values = self.norms[0](maps)
        if kept is not None:
            values = (values + self.norms[2](kept)) / math.sqrt(2)
        values = self.convolutions[0](functional.silu(values))
        values = self.convolutions[1](self.dropout(functional.silu(self.norms[1](values))))
        result: Tensor = maps + values
        return result


def _convolution(before: int, after: int, side: int) -> nn.Conv2d:
    """A convolution that keeps the size, with Xavier weights and no initial bias."""
    layer = nn.Conv2d(before, after, side, padding=side // 2)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer
