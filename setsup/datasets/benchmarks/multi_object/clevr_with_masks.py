"""CLEVR with masks: 100,000 images of three to ten objects, generated again with the mask of each."""

from pathlib import Path

from setsup.datasets.benchmarks.multi_object.dataset import MultiObjectImages, find_file, prepare_images
from setsup.datasets.benchmarks.multi_object.forms import CLEVR_WITH_MASKS

__all__ = ["open", "prepare"]

_NAME = "clevr-with-masks"


def open(root: Path | str | None = None) -> MultiObjectImages:
    """Open CLEVR with masks, as the TFRecord file of its release.

    The images are not those of ``clevr``. The levels of an object are ``shape``, ``size``, ``color`` and ``material``,
    integers as published; its numbers are ``rotation``, ``position`` (x, y, z), ``pixel`` (x, y) and ``depth``, which
    :mod:`setsup.datasets.benchmarks.clevr.scenes` defines. A file of more than 32 MB, such as the published one, is
    first read by ``setsup prepare clevr-with-masks``.

    References
    ----------
    .. [1] Kabra, Burgess, Matthey, Kaufman, Greff, Reynolds, Lerchner, "Multi-Object Datasets", 2019.

    """
    return MultiObjectImages(find_file(_NAME, root, CLEVR_WITH_MASKS), CLEVR_WITH_MASKS, _NAME, root)


def prepare(root: Path | str | None = None) -> list[Path]:
    """Read the file once: factors into the cache folder, images and masks into an array next to the file.

    The array has 31 GB for 100,000 images. Works block by block; an interrupted run resumes.
    Parameters and errors are those of :func:`open`.
    """
    return prepare_images(_NAME, root, CLEVR_WITH_MASKS)
