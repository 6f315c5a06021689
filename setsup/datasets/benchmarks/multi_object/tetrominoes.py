"""Tetrominoes: a million images of three tetrominoes."""

from pathlib import Path

from setsup.datasets.benchmarks.multi_object.dataset import MultiObjectImages, find_file, prepare_images
from setsup.datasets.benchmarks.multi_object.forms import TETROMINOES

__all__ = ["open", "prepare"]

_NAME = "tetrominoes"


def open(root: Path | str | None = None) -> MultiObjectImages:
    """Open Tetrominoes, as the TFRecord file of its release.

    The level of a tetromino is ``shape``, one of 17 shapes with their orientation; its numbers are ``x``, ``y`` and
    ``color`` (RGB). A file of more than 32 MB, such as the published one, is first read by ``setsup prepare
    tetrominoes``.

    References
    ----------
    .. [1] Kabra, Burgess, Matthey, Kaufman, Greff, Reynolds, Lerchner, "Multi-Object Datasets", 2019.

    """
    return MultiObjectImages(find_file(_NAME, root, TETROMINOES), TETROMINOES, _NAME, root)


def prepare(root: Path | str | None = None) -> list[Path]:
    """Read the file once: factors into the cache folder, images and masks into an array next to the file.

    The array has 5 GB for a million images. Works block by block; an interrupted run resumes.
    Parameters and errors are those of :func:`open`.
    """
    return prepare_images(_NAME, root, TETROMINOES)
