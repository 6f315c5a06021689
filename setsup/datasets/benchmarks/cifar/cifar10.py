"""CIFAR-10: 60,000 photographs of 32 × 32 pixels in ten categories.

References
----------
.. [1] A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", technical report, University of Toronto,
   2009, and its page, which describes the files.

"""

from pathlib import Path

from setsup.datasets.adapters.packed_release import PackedRelease
from setsup.datasets.benchmarks.cifar.images import CifarImages, file_names

__all__ = ["open", "prepare"]

_PARTS = {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)}
_ARCHIVES = ("cifar-10-python.tar.gz", "cifar-10-binary.tar.gz")
_RELEASE = PackedRelease("cifar10", _ARCHIVES, "cifar10_unpacked", file_names(_PARTS))


def open(root: Path | str | None = None) -> CifarImages:
    """Open CIFAR-10 in the Python or the binary version, whose rows are equal.

    Factors: ``category`` and ``split``. In the published files rows 0 to 49,999 are train, in the order of the five
    batches, and 50,000 to 59,999 test.

    Parameters
    ----------
    root : Path, str or None
        Folder with the unpacked files, or with a subfolder that contains them, such as torchvision's
        ``cifar-10-batches-py``; None for the default folders. :func:`prepare` unpacks the published archive.

    Raises
    ------
    DataError
        When a file is missing (the message shows the command that fetches or unpacks it), or damaged.

    """
    return CifarImages("cifar10", _RELEASE.find(root), _PARTS, {"labels": "category"})


def prepare(root: Path | str | None = None) -> Path:
    """Unpack ``cifar-10-python.tar.gz`` or ``cifar-10-binary.tar.gz`` once, into a folder that :func:`open` finds.

    The folder ``cifar10_unpacked`` is next to the archive or, if that location is read-only, in the cache folder.
    """
    _RELEASE.unpack(root)
    return open(root).folder
