"""VeRi-776: about 50,000 photographs of 776 vehicles by 20 cameras of a city, a benchmark of re-identification.

Convention
----------
Names are ``<vehicle>_c<camera>_<frame>_<number>.jpg``, such as ``0002_c002_00030600_0.jpg``.
"""

from pathlib import Path

import numpy as np

from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.images import check_size
from setsup.factors import Factor, Kind
from setsup.files.archives.releases import find_members

__all__ = ["open"]

_FOLDERS = {"train": "image_train", "query": "image_query", "gallery": "image_test"}
_FILE = r"(?P<vehicle>[0-9]{4})_c(?P<camera>[0-9]{3})_(?P<frame>[0-9]+)_[0-9]+\.jpg"


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open VeRi-776: a folder, zip or tar with ``image_train``, ``image_query`` and ``image_test``.

    Rows are in the order of these folders and of the files' names. Factors: ``vehicle``, ``camera``, the key ``frame``,
    and ``split``: ``train``, ``query``, and ``gallery``, of which queries are copies: a search leaves out images of the
    query's own vehicle and camera.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Liu, Liu, Mei, Ma, "PROVID: Progressive and Multimodal Vehicle Reidentification for Large-Scale Urban
       Surveillance", IEEE Transactions on Multimedia 2018.

    """
    size = check_size(size)
    folders = "|".join(_FOLDERS.values())
    wanted = {rf"(?:{folders})/{_FILE}": "image_train/0002_c002_00030600_0.jpg"}
    release = find_members("veri776", root, wanted, ["VeRi", "VeRi.zip", "VeRi.tar"])
    found = [release.matching(rf"{folder}/{_FILE}") for folder in _FOLDERS.values()]
    places = np.concatenate([place for place, _ in found])
    split = np.repeat(np.arange(len(found)), [len(place) for place, _ in found])
    said = {
        name: [int(text) for _, groups in found for text in groups[name].to_pylist()]
        for name in ("vehicle", "camera", "frame")
    }
    factors = [
        nominal("vehicle", said["vehicle"]),
        nominal("camera", said["camera"]),
        nominal("frame", said["frame"], role="key"),
        (Factor("split", Kind.NOMINAL, tuple(_FOLDERS), role="split"), split),
    ]
    return ImageFilesDataset("veri776", table_of(factors), MemberImages(release, places), size)
