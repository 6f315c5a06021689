"""Views of color channels: one channel of a color space is the first view, the other two are the second.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849).

"""

import math
from dataclasses import dataclass

import torch

from setsup.errors import DataError
from setsup.loading.batch import Batch
from setsup.loading.transforms.by_image import Image, blocks, by_array, interleaved, put, spread
from setsup.loading.transforms.modalities import get_images
from setsup.loading.views.colors import array_in_color_space, color_space, in_color_space
from setsup.loading.views.names import add_views, check_names

__all__ = ["ColorViews"]

_CHUNK = 1 << 18  # values of images converted at a time, so that what lies between two operations stays in the cache


@dataclass(frozen=True)
class ColorViews:
    """Images in another color space, split into a view of one channel and a view of two, as in figure 5 of [1]_.

    Both views show the same pixels, so crops and flips must come before.

    Parameters
    ----------
    space : str
        One of :data:`setsup.loading.views.colors.SPACES`, such as ``"lab"`` or ``"ycbcr"``.
    image : str
        sRGB modality to convert: uint8, or floating point in 0 … 1.
    normalize : bool
        Whether to normalize channels to about −1 … 1, with the published means and standard deviations of the space,
        or with its range if none are published.
    names : (str, str), optional
        Names of the two views; those of the channels by default: ``("L", "ab")``, ``("Y", "CbCr")``, ``("H", "SV")`` …

    Returns
    -------
    batch
        With (sets, size, 1, height, width) and (sets, size, 2, height, width) float32 under the two names.

    Raises
    ------
    SetsupError
        When the space or the modality is unknown, or the batch already has one of the names.
    DataError
        When the images are not color images.

    Examples
    --------
    >>> import setsup
    >>> from setsup.loading.views import ColorViews
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2)
    >>> batch = next(iter(setsup.loader(shapes, sets, transform=ColorViews("lab"))))
    >>> tuple(batch["L"].shape), tuple(batch["ab"].shape)
    ((2, 4, 1, 64, 64), (2, 4, 2, 64, 64))

    """

    space: str
    image: str = "image"
    normalize: bool = True
    names: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        color_space(self.space)
        if self.names is not None:
            check_names(self.names, 2)

    def __call__(self, batch: Batch) -> Batch:
        """Add the two views."""
        images = get_images(batch, self.image)
        *lead, channels, height, width = images.shape
        flat = images.flatten(0, -4)
        both = [images.new_empty((len(flat), count, height, width), dtype=torch.float32) for count in (1, 2)]
        if by_array(flat) and channels == 3 and flat.dtype in (torch.uint8, torch.float32):
            self._by_array(flat.numpy(), *(view.numpy() for view in both))
        else:
            values = max(1, math.prod(images.shape[-3:]))
            count = max(1, _CHUNK // values if images.device.type == "cpu" else len(flat))
            for some, first, others in zip(*(torch.split(stack, count) for stack in (flat, *both)), strict=True):
                converted = self._converted(some)
                first.copy_(converted[:, :1])
                others.copy_(converted[:, 1:])
        return add_views(batch, self.names or color_space(self.space).views, both, lead)

    def _by_array(self, images: Image, first: Image, others: Image) -> None:
        def some(numbers: range) -> None:
            for number in numbers:
                image = interleaved(images[number])
                values = array_in_color_space(image, self.space, normalize=self.normalize)
                put(values, [*first[number], *others[number]])

        spread(some, blocks(len(images), math.prod(images.shape[-2:])))

    def _converted(self, images: torch.Tensor) -> torch.Tensor:
        try:
            return in_color_space(images, self.space, normalize=self.normalize)
        except DataError as error:
            raise DataError(f"{self.image!r}: {error}") from None
