"""Features that a trained method gives every pixel of an image, for matches between two of them."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError, SetsupError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["MULTIPLE", "pixel_features", "resized_view"]

MULTIPLE = 32
"""Both sides of an image are a multiple of it, so that networks can halve them."""

_MOST = 1 << 21  # pixels of an image as resized


def resized_view(image: "Image", height: int, name: str) -> npt.NDArray[np.uint8]:
    """An image (height, w, C) uint8 of about the same proportions, whose width is a multiple of :data:`MULTIPLE`, too.

    Raises
    ------
    DataError
        When it would have more than 2²¹ pixels; `name` is that of the image.

    Examples
    --------
    >>> from PIL import Image
    >>> resized_view(Image.new("RGB", (300, 200)), 64, "a.png").shape
    (64, 96, 3)

    """
    width = max(MULTIPLE, round(image.width * height / image.height / MULTIPLE) * MULTIPLE)
    if width * height > _MOST:
        raise DataError(
            f"{name} would be resized to {height} × {width} pixels, but matching is limited to {_MOST:,} pixels; "
            "lower --height"
        )
    return np.array(image if image.size == (width, height) else image.resize((width, height)))


def pixel_features(trained: Any, view: npt.NDArray[np.uint8], name: str) -> npt.NDArray[np.float64]:
    """Features (h, w, D) of all pixels of an image (h, w, C) uint8.

    Parameters
    ----------
    trained : TrainedRun
        From :func:`setsup.experiments.load_trained`.
    view : (h, w, C) uint8
        The image.
    name : str
        Of the run, for errors.

    Raises
    ------
    SetsupError
        When the method cannot embed such an image, or does not give every pixel a feature.

    """
    import torch

    with torch.inference_mode():
        image = torch.from_numpy(view).movedim(-1, 0)[None, None].to(trained.device)
        try:
            embedded = trained.method.embed({"image": image})
        except (RuntimeError, ValueError, LookupError) as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise SetsupError(
                f"{name} could not embed an image of {view.shape[0]} × {view.shape[1]} pixels: {reason}"
            ) from error
    if not isinstance(embedded, torch.Tensor) or tuple(embedded.shape[2:4]) != view.shape[:2]:
        raise SetsupError(
            f"{name} does not return a feature for every pixel; pass a run whose method computes pixel features, "
            "for example pixels/rooms-small"
        )
    features: npt.NDArray[np.float64] = embedded[0, 0].double().cpu().numpy()
    return features
