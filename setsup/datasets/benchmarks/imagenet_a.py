"""ImageNet-A: 7,500 photographs of 200 synsets of ImageNet that classifiers of their time got wrong; a test set.

File names contain spaces (``0.000116_digital clock _ digital clock_0.865662.jpg``). As a pool of backgrounds::

    pool = setsup.load("imagenet-a", root="imagenet-a.tar", size=(256, 256))
    behind = Background(pool.fetch(range(1000))["image"])
"""

from pathlib import Path

import numpy as np

from setsup.datasets.benchmarks.imagenet.dataset import SynsetImages
from setsup.datasets.benchmarks.imagenet.files import ENDS, SynsetFiles, in_tree
from setsup.datasets.benchmarks.imagenet.labels import synset_names, unique_names
from setsup.datasets.images import check_size
from setsup.errors import DataError
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members

__all__ = ["open"]

_ARCHIVES = ("imagenet-a.tar", "imagenet-a.zip")
_FILE = rf"n[0-9]{{8}}/[^/]+{ENDS}"
_README = "README.txt"
_LONGEST = 1 << 20


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> SynsetImages:
    """Open ImageNet-A.

    Rows are ordered by synset and the bytes of the file's name. Names of the synsets are a factor if the release's
    ``README.txt`` lists them.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Hendrycks, Zhao, Basart, Steinhardt, Song, "Natural Adversarial Examples", CVPR 2021.

    """
    size = check_size(size)
    release = find_members("imagenet-a", root, {_FILE: "imagenet-a/<synset>/*.jpg"}, _ARCHIVES)
    places, synsets, codes = in_tree(release, _FILE, 0)
    none = np.zeros(len(places), np.int64)
    files = SynsetFiles((release,), none, places, tuple(synsets), codes, none, _names(release, synsets))
    return SynsetImages("imagenet-a", files, ("test",), size)


def _names(release: MemberIndex, synsets: list[str]) -> tuple[str, ...] | None:
    """Names of the synsets, where the file that explains the release lists all of them."""
    if _README not in release:
        return None
    member = release.place(_README)
    try:
        names = synset_names(release.read(member, _LONGEST), release.label(member))
    except DataError:
        return None  # it is written for people, and may say anything
    return unique_names(synsets, names) if set(synsets) <= set(names) else None
