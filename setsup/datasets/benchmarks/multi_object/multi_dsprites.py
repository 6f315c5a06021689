"""Multi-dSprites: a million images of one to five sprites."""

from pathlib import Path
from typing import Literal

from setsup.checks import check_choice
from setsup.datasets.benchmarks.multi_object.dataset import MultiObjectImages, find_file, prepare_images
from setsup.datasets.benchmarks.multi_object.forms import MULTI_DSPRITES, Form
from setsup.errors import DataError

__all__ = ["open", "prepare"]

_NAME = "multi-dsprites"

Version = Literal["binarized", "colored_on_grayscale", "colored_on_colored"]
_DEFAULT: Version = "colored_on_grayscale"


def open(root: Path | str | None = None, version: Version = _DEFAULT) -> MultiObjectImages:
    """Open one version of Multi-dSprites, as the TFRecord file of its release.

    `version`: ``binarized`` has 2 or 3 white sprites on black, ``colored_on_grayscale`` 2 to 5 colored ones on grey,
    ``colored_on_colored`` 1 to 4 on a color. A file of more than 32 MB, such as the published ones, is first read by
    ``setsup prepare multi-dsprites``, option ``version`` as here. The numbers of a sprite are ``x``, ``y``,
    ``orientation``, ``scale`` and ``color`` (RGB).

    References
    ----------
    .. [1] Kabra, Burgess, Matthey, Kaufman, Greff, Reynolds, Lerchner, "Multi-Object Datasets", 2019.

    """
    form = _form(version)
    return MultiObjectImages(find_file(_NAME, root, form), form, _NAME, root, "" if version == _DEFAULT else version)


def prepare(root: Path | str | None = None, version: Version = _DEFAULT) -> list[Path]:
    """Read a version once: factors into the cache folder, images and masks into an array next to the file.

    The array has 16 GB for a million images. Works block by block; an interrupted run resumes.
    Parameters and errors are those of :func:`open`.
    """
    return prepare_images(_NAME, root, _form(version))


def _form(version: str) -> Form:
    check_choice(version, list(MULTI_DSPRITES), "version", DataError)
    return MULTI_DSPRITES[version]
