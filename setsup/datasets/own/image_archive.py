"""Whether a file is a zip or tar of images; its listing is read, none of its files."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from setsup.datasets.formats.image_formats import ending_pattern, missing_plugins
from setsup.errors import DataError
from setsup.files import open_members
from setsup.files.archives.archive_format import archive_kind
from setsup.files.archives.listing import find_matches

__all__ = ["holds_samples", "is_archive", "is_image_archive"]

_ENDINGS = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".zst", ".7z", ".rar")
_KEY = r"(?s)^(?P<key>(?:.*/)?[^/.]+)[.][^/]*$"


def is_archive(path: Path) -> bool:
    """Whether a file has the ending or the content of an archive, perhaps one that cannot be read file by file."""
    if not path.is_file():
        return False
    if path.name.lower().endswith(_ENDINGS):
        return True
    try:
        return archive_kind(path) != "folder"
    except DataError:
        return False


def is_image_archive(path: Path, marks: Collection[str]) -> bool:
    """Whether an archive is a dataset of images; False for a tar that is one of many, as WebDataset writes them.

    DataError where it cannot be read file by file, holds no images, or one of the `marks`: files of another kind of
    dataset, which is to be unpacked.
    """
    if path.suffix.lower() == ".tar" and not path.stat().st_size:
        return False
    kind = archive_kind(path)
    names = open_members(path).names
    marked = "|".join(re.escape(mark) for mark in marks)
    for place in find_matches(names, f"^(?:[^/]*/)?(?:{marked})(?:/|$)")[:1].tolist():
        raise DataError(f"{path} is a {kind} of a dataset ({names[place].as_py()}); unpack it, and give the folder")
    if len(find_matches(names, ending_pattern() + "$")):
        return kind != "tar" or not holds_samples(names)
    missing = missing_plugins(names)
    if kind == "tar" and not missing:
        return False
    raise DataError(
        f"{path} is a {kind} without images"
        + (f": {missing}" if missing else "; for the files of a benchmark give its name, and this as the root")
    )


def holds_samples(names: Any) -> bool:
    """Whether most images have other files of the same key next to them, as the samples of a WebDataset have.

    `names` pyarrow large_string array. A key is a path up to the first dot of its last name.

    Examples
    --------
    >>> import pyarrow as pa
    >>> holds_samples(pa.array(["0.cls", "0.jpg", "1.cls", "1.jpg"], pa.large_string()))
    True
    >>> holds_samples(pa.array(["cats/0.jpg", "cats/1.jpg", "labels.txt"], pa.large_string()))
    False

    """
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = pc.struct_field(pc.extract_regex(names, _KEY), "key")
    images = np.zeros(len(names), bool)
    images[find_matches(names, ending_pattern() + "$")] = True
    of_images, of_others = keys.filter(pa.array(images)), keys.filter(pa.array(~images)).drop_null()
    return 2 * (pc.sum(pc.is_in(of_images, of_others)).as_py() or 0) > len(of_images)
