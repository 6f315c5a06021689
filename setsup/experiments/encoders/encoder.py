"""A frozen encoder with its preprocessing, as evaluations take a trained method."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from setsup.checks import check_integer
from setsup.errors import DataError, SetsupError
from setsup.experiments.encoders.preprocessing import unit_rgb

__all__ = ["MOST", "RANDOM", "Encoder"]

MOST = 256
"""Images of a batch that evaluations embed, and so the most per forward pass."""
RANDOM = "RANDOM WEIGHTS"


class Encoder(nn.Module):
    """A frozen network with the preprocessing that it was trained with.

    Parameters
    ----------
    name : str
        As :func:`open_encoder` reads it.
    network : torch.nn.Module
        From preprocessed images (n, …) to vectors (n, d).
    preprocess : callable
        From images (n, C, H, W) of a dataset, uint8 or float in [0, 1], to the input of the network.
    batch : int
        Images per forward pass, 1 to 256: fewer need less memory.
    modality : str
        Modality of the images in a batch.
    random : bool
        Whether weights are random; `label` and all results report it.
    weights : str
        Identity of the weights, such as a digest; results report it.

    Examples
    --------
    >>> pixels = Encoder("pixels", nn.Flatten(), lambda images: images.float())
    >>> batch = {"image": torch.zeros(2, 3, 1, 8, 8), "mask": torch.ones(2, 3, dtype=torch.bool)}
    >>> tuple(pixels.embed(batch).shape)
    (2, 3, 64)

    """

    def __init__(
        self,
        name: str,
        network: nn.Module,
        preprocess: Callable[[Tensor], Any],
        *,
        batch: int = 64,
        modality: str = "image",
        random: bool = False,
        weights: str = "",
    ) -> None:
        super().__init__()
        self.name, self.random, self.modality, self.weights = name, random, modality, weights
        self.network = network.requires_grad_(False).eval()
        self.preprocess = preprocess
        self.batch = check_integer(batch, "batch", SetsupError, 1, MOST)

    @property
    def label(self) -> str:
        """Name of the encoder, and whether its weights are random."""
        return f"{self.name} ({RANDOM})" if self.random else self.name

    @property
    def about(self) -> dict[str, Any]:
        """Description of the encoder for results, as JSON values."""
        return {"encoder": self.name, "random_weights": self.random, "weights": self.weights}

    def train(self, mode: bool = True) -> "Encoder":
        """Keep evaluation mode, since the encoder is frozen."""
        return super().train(False)

    @torch.no_grad()
    def embed(self, batch: Mapping[str, Any]) -> Tensor:
        """Embed the images of a batch.

        Parameters
        ----------
        batch : mapping
            The modality of the images, (sets, size, C, H, W); and ``mask`` (sets, size) bool, without which all
            positions count. Padding is not encoded.

        Returns
        -------
        (sets, size, d) float
            Zeros where the batch is padded.

        Raises
        ------
        SetsupError
            When there are no such images, or they are not what an encoder reads.

        """
        images = batch.get(self.modality)
        if not isinstance(images, Tensor) or images.ndim != 5:
            raise DataError(
                f"{self.label} reads images (sets, size, channels, height, width) from {self.modality!r}, but the "
                f"batch contains only {', '.join(batch)}; choose one of these modalities"
            )
        mask = batch.get("mask")
        if mask is None:
            mask = torch.ones(images.shape[:2], dtype=torch.bool, device=images.device)
        vectors = torch.cat([self._encoded(part) for part in torch.split(images[mask], self.batch)])
        embedded = vectors.new_zeros(*mask.shape, vectors.shape[1])
        embedded[mask] = vectors
        return embedded

    def _encoded(self, images: Tensor) -> Tensor:
        encoded = self.network(self.preprocess(images))
        if not isinstance(encoded, Tensor) or encoded.ndim != 2 or len(encoded) != len(images):
            gave = tuple(encoded.shape) if isinstance(encoded, Tensor) else f"a {type(encoded).__name__}"
            raise SetsupError(
                f"{self.label} must return one vector per image, of shape (n, d), not {gave} for {len(images)} images"
            )
        return encoded


class Pixels(nn.Module):
    """Pixels of the images as they are, (n, 3, H, W) uint8 or float to (n, 3 · H · W) float32 in [0, 1]."""

    def forward(self, images: Tensor) -> Tensor:
        """Flatten."""
        return unit_rgb(images).flatten(1)
