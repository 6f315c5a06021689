"""Labels and colours of Colored MNIST, drawn again whenever an image is drawn."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch

from setsup.arrays import Codes
from setsup.datasets.benchmarks.colored_mnist import LABEL_NOISE, NOISE, zeroed
from setsup.errors import DataError, SetsupError
from setsup.loading.batch import Batch
from setsup.loading.transforms.modalities import get_images, keyed_slots
from setsup.loading.transforms.operations.base import check_probability
from setsup.random import stream_key

__all__ = ["FreshColors"]


@dataclass(frozen=True)
class FreshColors:
    """New labels and colours for the images of Colored MNIST, from the distribution of the dataset.

    The label is the clean label, flipped with probability ``label_noise``; the colour is the new label, flipped with
    the probability of the image's environment. The random numbers are a function of (seed, stream, step, set,
    slot). The published code of single-pixel contrast [1]_ draws labels and colours at every access, so that images
    have no fixed label. Apply it before other transforms of images.

    Parameters
    ----------
    noise : tuple of float
        0 … 1: for each level of the factor ``environment`` the share of colours that differ from the label.
    label_noise : float
        0 … 1: share of labels that differ from the digit.
    image : str
        Modality to colour, with 2 or 3 channels of which one is empty, see
        :func:`setsup.datasets.benchmarks.colored_mnist.zeroed`; of any type.
    seed, stream : int, str
        0 ≤ seed < 2⁶⁴; transforms with one seed draw the same flips unless their streams differ.

    Returns
    -------
    batch
        With new images, and new codes of ``label`` and ``color`` in ``factors``. The others stay, as do the images of
        canonical rows.

    Raises
    ------
    SetsupError
        If the batch has no such modality, no step or not the factors of Colored MNIST, or its sets fix the label or
        the colour, which would change.
    DataError
        If the images have other axes or channels, a clean label or environment is unknown, or there are more
        environments than entries of ``noise``.

    References
    ----------
    .. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
       (arXiv 2512.04970), first experiment, and its published code.

    Examples
    --------
    >>> import torch
    >>> from setsup_papers.pixels.fresh_colors import FreshColors
    >>> image = torch.zeros(1, 8, 3, 32, 32, dtype=torch.uint8)
    >>> image[:, :, 1:] = 200  # cyan
    >>> codes = dict.fromkeys(["clean_label", "label", "color", "environment"], torch.zeros(1, 8, dtype=torch.int64))
    >>> batch = FreshColors(noise=(1.0,), label_noise=0.0)({"image": image, "factors": codes, "step": 0})
    >>> batch["factors"]["color"][0].tolist(), batch["image"][0, 0, :, 0, 0].tolist()
    ([1, 1, 1, 1, 1, 1, 1, 1], [200, 0, 200])

    """

    noise: tuple[float, ...] = NOISE
    label_noise: float = LABEL_NOISE
    image: str = "image"
    _: KW_ONLY
    seed: int = 0
    stream: str = "FreshColors"

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", tuple(self.noise))
        for share in self.noise:
            check_probability(share, "FreshColors: noise")
        check_probability(self.label_noise, "FreshColors: label_noise")
        stream_key(self.seed, self.stream)

    def __call__(self, batch: Batch) -> Batch:
        """Draw labels and colours, and colour the images."""
        images = get_images(batch, self.image)
        channels = images.shape[-3]
        if channels not in (2, 3):
            raise DataError(f"{self.image!r} must have the 2 or 3 channels of Colored MNIST, not {channels}")
        lead = tuple(images.shape[:2])
        clean = _codes(batch, "clean_label", lead, 2)
        environment = _codes(batch, "environment", lead, len(self.noise))
        _check_free(batch)
        slots = keyed_slots(batch, self.seed, self.stream, lead)
        shares = np.asarray(self.noise, np.float64)[environment]
        label = clean ^ (slots.uniform(0, 1, 0).reshape(lead) < self.label_noise)
        color = label ^ (slots.uniform(0, 1, 1).reshape(lead) < shares)
        fresh = {"label": torch.from_numpy(label).to(images.device), "color": torch.from_numpy(color).to(images.device)}
        images = _colored(images, fresh["color"])
        return {**batch, self.image: images, "factors": {**batch["factors"], **fresh}}


def _codes(batch: Batch, name: str, lead: tuple[int, ...], levels: int) -> Codes:
    """Codes of a factor, (sets, size) int64, each below the number of its levels."""
    given = batch.get("factors", {}).get(name)
    if given is None or tuple(given.shape) != lead:
        raise SetsupError(
            f"the batch has no codes of the factor {name!r} for its {lead[0]} sets of {lead[1]}; use FreshColors on "
            "batches of colored-mnist, before images are copied or moved"
        )
    codes = np.asarray(torch.as_tensor(given).cpu().numpy(), np.int64)
    if not ((codes >= 0) & (codes < levels)).all():
        raise DataError(
            f"the factor {name!r} of the batch has codes from {codes.min()} to {codes.max()}, but FreshColors "
            f"expects 0 to {levels - 1}; draw from colored-mnist, and set noise to one value for each of its "
            "environments"
        )
    return codes


def _check_free(batch: Batch) -> None:
    fixed = [name for name in ("label", "color") if name in batch.get("inactive", {})]
    if fixed:
        raise SetsupError(
            f"the sets fix {' and '.join(fixed)}, which FreshColors draws again per image; fix clean_label, digit or "
            "environment, or omit the transform"
        )


def _colored(images: torch.Tensor, color: torch.Tensor) -> torch.Tensor:
    """Images (sets, size, …, channels, height, width) in other colours, (sets, size)."""
    channels = images.shape[-3]
    # one channel is empty and all others are the grey image
    grey = images.amax(dim=-3, keepdim=True)
    kept = torch.arange(channels, device=images.device) != zeroed(color, channels)[..., None]
    shape = (*color.shape, *[1] * (images.ndim - 5), channels, 1, 1)
    return torch.where(kept.reshape(shape), grey, 0)
