"""A user's own data: a folder of images, where the folders within it are the levels of a factor."""

from pathlib import Path

import numpy as np

from setsup.checks import check_array
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.formats.image_formats import ending_pattern, image_endings
from setsup.datasets.images import check_size
from setsup.datasets.own.table import ImageTable
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import open_members
from setsup.files.expand_user import expanded

__all__ = ["open_images"]


def open_images(folder: Path | str, size: tuple[int, int] | None = None) -> ImageTable:
    """Open a folder of images, or a zip or tar of one, as a dataset with the factor ``folder``.

    Rows are in the order of their paths. What several folders say, such as subject and session, is better told by a
    table with a column for each: see :func:`open_table`.

    Parameters
    ----------
    folder : Path or str
        The folder or archive.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and cut out the centre.

    Returns
    -------
    ImageTable
        Its factor ``folder`` is the path of the folder within `folder` that holds the image, such as ``"train/cats"``.

    Raises
    ------
    DataError
        When there are no images, all of them lie in one folder, or one is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, grey in [("cats/1.png", 10), ("cats/2.png", 20), ("dogs/1.png", 200)]:
    ...     (folder / name).parent.mkdir(exist_ok=True)
    ...     Image.new("L", (4, 3), grey).save(folder / name)
    >>> pets = open_images(folder)
    >>> pets.factors, pets.fetch(2)["image"].shape
    (FactorTable(3 rows: folder 2), (3, 4, 1))

    """
    path = expanded(folder)
    check_array(size, "size", DataError)
    size = check_size(size)
    members = open_members(path)
    places, groups = members.matching(f"(?:(?P<folder>.*)/)?[^/]*{ending_pattern()}")
    if not len(places):
        raise DataError(f"{path} holds no images: files that end in {', '.join(image_endings())}")
    folders, codes = np.unique([folder or "." for folder in groups["folder"].to_pylist()], return_inverse=True)
    if len(folders) < 2:
        raise DataError(
            f"all images of {path} lie in one folder, which gives no factor; sort them into folders, or list them in a "
            "CSV file with a column of paths and a column for every factor"
        )
    factor = Factor("folder", Kind.NOMINAL, tuple(folders.tolist()))
    return ImageTable(path.stem, FactorTable([factor], {"folder": codes}), MemberImages(members, places), size)
