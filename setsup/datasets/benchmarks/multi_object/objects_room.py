"""Objects Room: a million images of a room with up to three objects, and three test sets."""

from pathlib import Path
from typing import Literal

from setsup.checks import check_choice
from setsup.datasets.benchmarks.multi_object.dataset import MultiObjectImages, find_file, prepare_images
from setsup.datasets.benchmarks.multi_object.forms import OBJECTS_ROOM, Form
from setsup.errors import DataError

__all__ = ["open", "prepare"]

_NAME = "objects-room"

Version = Literal["train", "six_objects", "empty_room", "identical_color"]
_DEFAULT: Version = "train"


def open(root: Path | str | None = None, version: Version = _DEFAULT) -> MultiObjectImages:
    """Open the training set or a test set of Objects Room, as the TFRecord file of its release.

    `version`: ``train`` has up to 3 objects, ``six_objects`` exactly 6, ``empty_room`` none, ``identical_color`` 4 to 6
    of one color. Objects have masks but no factors, so ``objects``, the number of masks with a pixel, is the only
    factor. Modality ``labels``: 0 sky, 1 floor, 2 and 3 the halves of the wall, 4 an object. A file of more than 32 MB,
    such as the training set, is first read by ``setsup prepare objects-room``.

    References
    ----------
    .. [1] Kabra, Burgess, Matthey, Kaufman, Greff, Reynolds, Lerchner, "Multi-Object Datasets", 2019.

    """
    form = _form(version)
    return MultiObjectImages(find_file(_NAME, root, form), form, _NAME, root, "" if version == _DEFAULT else version)


def prepare(root: Path | str | None = None, version: Version = _DEFAULT) -> list[Path]:
    """Read a version once: factors into the cache folder, images and masks into an array next to the file.

    The array has 16 GB for the training set. Works block by block; an interrupted run resumes.
    Parameters and errors are those of :func:`open`.
    """
    return prepare_images(_NAME, root, _form(version))


def _form(version: str) -> Form:
    check_choice(version, list(OBJECTS_ROOM), "version", DataError)
    return OBJECTS_ROOM[version]
