"""Encoders of pixels by their names."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_arguments
from setsup.errors import SetsupError, close_matches, suggest
from setsup.experiments.preset_registry import split_file_name
from setsup.files.expand_user import expanded

__all__ = ["DENSE_FORMS", "DenseEncoder", "open_dense_encoder"]

DENSE_FORMS = (
    "hf:NAME or hf:./FOLDER, timm:NAME (either with @LAYER,LAYER), FILE.py:FUNCTION, daisy, sift, colors or random"
)
"""What names an encoder of pixels."""

_PLAIN = ("daisy", "sift", "colors", "random")
_LAYERS = re.compile(r"(.+)@(\d+(?:,\d+)*)")


@dataclass(frozen=True, slots=True)
class DenseEncoder:
    """An encoder of pixels.

    Attributes
    ----------
    label : str
        Its name.
    weights : str
        Which weights these are, or that there are none.
    features : callable
        From images (n, h, w, 3) uint8 to features (n, rows, columns, D): of the pixels, or of a coarser grid.

    """

    label: str
    weights: str
    features: Callable[[npt.NDArray[np.uint8]], npt.NDArray[Any]]


def open_dense_encoder(name: str, device: str | None = None, *, grid: bool = False, seed: int = 0) -> DenseEncoder:
    """Open a frozen encoder of pixels; nothing is downloaded.

    =========================== ========================================================================================
    name                        encoder
    =========================== ========================================================================================
    ``hf:facebook/dinov2-small`` a vision transformer in the cache of the Hugging Face hub (``HF_HOME``)
    ``hf:./folder``             a folder with ``config.json``, ``preprocessor_config.json`` and weights
    ``timm:NAME``               a vision transformer of timm, where timm is installed
    ``hf:NAME@6,12``            the outputs of blocks 6 and 12, concatenated; of timm, too
    ``my_file.py:build``        what a function returns: a ``torch.nn.Module`` from (n, 3, h, w) float32 in [0, 1] to
                                (n, D, rows, columns), or a module and a preprocessing; ``build`` may be left out
    ``daisy``                   DAISY of radius 15 of the grey image, 200 numbers
    ``sift``                    OpenCV's SIFT at every pixel, upright, of size 4, 128 numbers
    ``colors``                  sRGB values
    ``random``                  four 3 × 3 convolutions with 32 channels and RANDOM WEIGHTS
    =========================== ========================================================================================

    Parameters
    ----------
    name : str
        As above.
    device : str, optional
        Where networks run: a GPU if there is one, by default.
    grid : bool
        Whether features of patches stay at the patches; otherwise they are interpolated bilinearly to pixels.
    seed : int
        Of random weights, also of those that a function of your own draws from torch.

    Returns
    -------
    DenseEncoder

    Raises
    ------
    DataError
        When weights are not on this machine, or damaged; the message says how to get them.
    SetsupError
        When the name names no such encoder, a library is not installed, or a function of your own fails.

    Examples
    --------
    >>> encoder = open_dense_encoder("random", "cpu")
    >>> encoder.features(np.zeros((1, 24, 32, 3), np.uint8)).shape
    (1, 24, 32, 32)

    """
    check_arguments(open_dense_encoder, locals())
    if name in ("colors", "daisy", "sift"):
        from setsup.experiments.encoders import descriptors

        plain = {
            "colors": descriptors.color_features,
            "daisy": descriptors.daisy_features,
            "sift": descriptors.sift_features,
        }
        return DenseEncoder(name, "none", plain[name])
    if device is None:
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "random":
        from setsup.experiments.encoders.descriptors import NETWORK, random_features

        return DenseEncoder(name, f"random, seed {seed}: {NETWORK}", random_features(device, seed))
    if (file := split_file_name(name)) is not None:
        return _own(name, expanded(file[0]), file[1] or "build", seed, device, grid)
    if name.startswith(("hf:", "timm:")):
        from setsup.experiments.encoders.patch_features import patch_features

        match = _LAYERS.fullmatch(name)
        model, layers = (match[1], tuple(map(int, match[2].split(",")))) if match else (name, ())
        features, weights = patch_features(model, device, layers=layers, grid=grid)
        return DenseEncoder(name, weights, features)
    close = close_matches(name, _PLAIN)
    raise SetsupError(f"unknown encoder of pixels {name!r}{suggest(close) if close else f'; pass {DENSE_FORMS}'}")


def _own(name: str, path: Any, function: str, seed: int, device: str, grid: bool) -> DenseEncoder:
    import torch

    from setsup.experiments.encoders.own import own_encoder
    from setsup.experiments.encoders.patch_features import as_arrays, at_pixels

    network, prepare, weights = own_encoder(path, function, seed)
    network.to(device).eval()

    def features(images: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        height, width = images.shape[1:3]
        pixels = torch.from_numpy(np.ascontiguousarray(images)).to(device).movedim(-1, 1)
        with torch.inference_mode():
            maps = network(prepare(pixels))
            if not isinstance(maps, torch.Tensor) or maps.ndim != 4 or len(maps) != len(images):
                shape = tuple(maps.shape) if isinstance(maps, torch.Tensor) else type(maps).__name__
                raise SetsupError(
                    f"the network of {name} must return features of pixels of shape ({len(images)}, D, rows, columns), "
                    f"not {shape}"
                )
            whole = tuple(maps.shape[2:]) == (height, width)
            return as_arrays(maps if grid or whole else at_pixels(maps, height, width))

    return DenseEncoder(name, weights, features)
