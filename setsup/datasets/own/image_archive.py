"""Recognize a zip or tar of images by its listing, without reading its files."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from setsup.datasets.formats.image_formats import ending_pattern, missing_plugins
from setsup.datasets.signatures import MARKS
from setsup.errors import DataError
from setsup.files.archives.archive_format import archive_kind
from setsup.files.archives.listing import find_matches

__all__ = ["ARCHIVE_ENDINGS", "check_image_archive", "holds_samples", "one_tar"]

ARCHIVE_ENDINGS = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".zst", ".7z", ".rar")
"""Endings of archives, also of those that cannot be read file by file."""

_KEY = r"(?s)^(?P<key>(?:.*/)?[^/.]+)[.][^/]*$"


def check_image_archive(path: Path, names: Any) -> None:
    """Refuse an archive that contains no images, or a dataset of another kind, such as a single tar of shards.

    `names` pyarrow large_string array, of its files.
    """
    kind = archive_kind(path)
    marked = "|".join(re.escape(mark) for mark in MARKS)
    for row in find_matches(names, f"^(?:[^/]*/)?(?:{marked})(?:/|$)")[:1].tolist():
        raise DataError(
            f"{path} is a {kind} that contains a dataset ({names[row].as_py()}); unpack it, and pass the folder"
        )
    if len(find_matches(names, ending_pattern() + "$")):
        if kind == "tar" and holds_samples(names):
            raise one_tar(str(path))
        return
    missing = missing_plugins(names)
    if kind == "tar" and not missing:
        raise one_tar(str(path))
    raise DataError(
        f"{path} is a {kind} that contains no images"
        + (
            f": {missing}"
            if missing
            else "; to open the files of a benchmark, pass its name, with this path as the root"
        )
    )


def one_tar(source: str) -> DataError:
    """Error for a single tar of a set of shards, which is not a dataset."""
    folder = source.rpartition("/")[0] or "."
    return DataError(
        f"{source} is a single tar, not a dataset; pass the folder that contains it, {folder} (`setsup index "
        f"{folder}` indexes tars written by other programs)"
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
