"""Files of weights that Keras 2 wrote as HDF5, by ``save_weights`` or ``save``, as its applications publish them.

A weight is a dataset ``layer/weight:0`` in groups of any depth, such as ``conv1_conv/conv1_conv/kernel:0``. It is read
under the name of its layer and its own, ``conv1_conv/kernel``, with axes in Keras' order.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setsup.errors import DamagedFile, DataError

__all__ = ["SIGNATURE", "is_keras", "load_keras"]

SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""How files of HDF5 begin."""

_KERNEL = "/kernel"


def is_keras(weights: Any) -> bool:
    """Whether weights have names of :func:`load_keras`, which no state dict of torch has."""
    return any(isinstance(name, str) and name.endswith(_KERNEL) for name in weights)


def load_keras(path: Path) -> dict[str, Tensor]:
    """Weights of a file by layer and name; DataError if it holds none, or is damaged."""
    import h5py

    weights: dict[str, Tensor] = {}

    def read(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or not name.endswith(":0"):
            return
        layer, _, weight = name.removesuffix(":0").rpartition("/")
        key = f"{layer.rpartition('/')[2]}/{weight}"
        if key in weights:
            raise DataError(f"{path} contains the weight {key!r} twice; pass the file of one network")
        weights[key] = _tensor(path, name, item)

    try:
        with h5py.File(path, "r") as file:
            file.visititems(read)
    except DataError:
        raise
    except Exception as error:  # the library meets damaged bytes with errors of many kinds
        raise DamagedFile(
            f"{path} is not a readable HDF5 file ({type(error).__name__}): it is truncated or damaged"
        ) from None
    if not weights:
        raise DataError(
            f"{path} contains no weights of Keras (…/kernel:0); pass a file written by save_weights of Keras 2, such "
            "as resnet50v2_weights_tf_dim_ordering_tf_kernels_notop.h5"
        )
    return weights


def _tensor(path: Path, name: str, item: Any) -> Tensor:
    """A dataset as float32; its numbers must be in the file, so that none allocates more than the file has."""
    if item.dtype.kind != "f" or item.external or item.is_virtual or item.id.get_storage_size() < item.nbytes:
        raise DataError(
            f"{name!r} in {path} must be stored as uncompressed floats, not as {item.dtype} {item.shape}; pass a file "
            "that Keras wrote without compression"
        )
    return torch.from_numpy(np.asarray(item[()], np.float32))
