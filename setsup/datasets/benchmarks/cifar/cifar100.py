"""CIFAR-100: 60,000 photographs of 32 × 32 pixels in a hundred categories of twenty superclasses.

References
----------
.. [1] A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", technical report, University of Toronto,
   2009, and its page, which describes the files.

"""

from pathlib import Path

import numpy as np

from setsup.datasets.adapters.packed_release import PackedRelease
from setsup.datasets.benchmarks.cifar.images import CifarImages, file_names
from setsup.errors import DamagedFile

__all__ = ["open", "prepare"]

_LABELS = {"coarse_labels": "superclass", "fine_labels": "category"}
_PARTS = {"train": ("train",), "test": ("test",)}
_ARCHIVES = ("cifar-100-python.tar.gz", "cifar-100-binary.tar.gz")
_RELEASE = PackedRelease("cifar100", _ARCHIVES, "cifar100_unpacked", file_names(_PARTS))


def open(root: Path | str | None = None) -> CifarImages:
    """Open CIFAR-100 in the Python or the binary version, whose rows are equal.

    Factors: ``superclass`` (the coarse label), ``category`` within it (the fine label), and ``split``. In the published
    files rows 0 to 49,999 are train and 50,000 to 59,999 test.

    Parameters
    ----------
    root : Path, str or None
        Folder with the unpacked files, or with a subfolder that contains them, such as torchvision's
        ``cifar-100-python``; None for the default folders. :func:`prepare` unpacks the published archive.

    Raises
    ------
    DataError
        When a file is missing (the message shows the command that fetches or unpacks it) or damaged, or when images of
        one category are in two superclasses.

    """
    images = CifarImages("cifar100", _RELEASE.find(root), _PARTS, _LABELS)
    coarse, fine = (images.factors.codes(name).astype(np.int64) for name in _LABELS.values())
    names = images.factors["category"].levels or ()
    above = np.full(len(names), -1)
    above[fine] = coarse
    if (wrong := above[fine] != coarse).any():
        row = int(np.argmax(wrong))
        raise DamagedFile(f"{images.folder}: images of {names[fine[row]]} are in two superclasses (row {row})")
    return images


def prepare(root: Path | str | None = None) -> Path:
    """Unpack ``cifar-100-python.tar.gz`` or ``cifar-100-binary.tar.gz`` once, into a folder that :func:`open` finds.

    The folder ``cifar100_unpacked`` is next to the archive or, if that location is read-only, in the cache folder.
    """
    _RELEASE.unpack(root)
    return open(root).folder
