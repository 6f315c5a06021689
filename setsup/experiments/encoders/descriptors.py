"""Features of pixels that need no training: colours, DAISY, dense SIFT, and a small network with random weights.

References
----------
.. [1] E. Tola, V. Lepetit, P. Fua, "DAISY: an efficient dense descriptor applied to wide-baseline stereo", PAMI 2010.
.. [2] D. Lowe, "Distinctive image features from scale-invariant keypoints", IJCV 2004; at every pixel as in C. Liu,
   J. Yuen, A. Torralba, "SIFT flow", PAMI 2011.

"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import SetsupError, imported
from setsup.random import stream_key

__all__ = ["NETWORK", "color_features", "daisy_features", "random_features", "sift_features"]

Images = npt.NDArray[np.uint8]
Maps = npt.NDArray[Any]

NETWORK = "four 3 × 3 convolutions of 32 channels with dilations 1, 2, 4 and 8, ReLU between"
"""The network of :func:`random_features`."""

_RADIUS = 15  # of DAISY, pixels
_SIZE = 4.0  # of a keypoint of SIFT: its 4 × 4 histograms cover 24 × 24 pixels
_DILATIONS = (1, 2, 4, 8)
_CHANNELS = 32


def color_features(images: Images) -> Maps:
    """SRGB values in 0 … 1 of images (n, h, w, 3 or 4) uint8, (n, h, w, 3) float64."""
    return np.asarray(images[..., :3] / 255)


def daisy_features(images: Images) -> Maps:
    """DAISY of every pixel of grey images, continued by reflection: (n, h, w, 3) uint8 to (n, h, w, 200) float32."""
    feature, color = imported("skimage.feature", "train"), imported("skimage.color", "train")
    maps = []
    for image in images:
        grey = np.pad(color.rgb2gray(image[..., :3]), _RADIUS, mode="reflect")
        maps.append(np.asarray(feature.daisy(grey, step=1, radius=_RADIUS), dtype=np.float32))
    return np.stack(maps)


def sift_features(images: Images) -> Maps:
    """OpenCV's SIFT at every pixel, upright, of size 4: (n, h, w, 3) uint8 to (n, h, w, 128) float32."""
    cv2: Any = imported("cv2", "opencv")
    height, width = images.shape[1:3]
    points = [cv2.KeyPoint(float(x), float(y), _SIZE, 0.0) for y in range(height) for x in range(width)]
    sift = cv2.SIFT_create()
    maps = []
    for image in images:
        kept, described = sift.compute(cv2.cvtColor(np.ascontiguousarray(image[..., :3]), cv2.COLOR_RGB2GRAY), points)
        if len(kept) != len(points):
            raise SetsupError(
                f"OpenCV described {len(kept):,} of {len(points):,} pixels of an image of {height} × {width}, which is "
                "too small for SIFT; pass larger images"
            )
        maps.append(np.asarray(described, dtype=np.float32).reshape(height, width, 128))
    return np.stack(maps)


def random_features(device: str = "cpu", seed: int = 0) -> Callable[[Images], Maps]:
    """A network with random weights, normal by He's rule: (n, h, w, 3) uint8 to (n, h, w, 32) float32.

    It is :data:`NETWORK`; images are scaled to −1 … 1, and continued by reflection. Each side has 9 pixels or more.
    """
    import torch
    from torch import nn

    generator = torch.Generator().manual_seed(stream_key(seed, "weights of pixel features") % (1 << 63))
    layers: list[nn.Module] = []
    for number, dilation in enumerate(_DILATIONS):
        inputs = _CHANNELS if number else 3
        layer = nn.Conv2d(inputs, _CHANNELS, 3, padding=dilation, dilation=dilation, padding_mode="reflect", bias=False)
        with torch.no_grad():
            layer.weight.normal_(0, (2 / (9 * inputs)) ** 0.5, generator=generator)
        layers += [layer, nn.ReLU()]
    network = nn.Sequential(*layers[:-1]).to(device).eval()

    def features(images: Images) -> Maps:
        pixels = torch.from_numpy(np.ascontiguousarray(images[..., :3])).to(device).movedim(-1, 1) / 127.5 - 1
        with torch.inference_mode():
            return np.asarray(network(pixels).movedim(1, -1).float().cpu().numpy())

    return features
