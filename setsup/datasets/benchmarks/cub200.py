"""CUB-200-2011: 11,788 photographs of birds of 200 species, and splits of classification and of metric learning."""

from pathlib import Path

import numpy as np

from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.texts import text_of

__all__ = ["open"]

_HOLDS = {
    r"images\.txt$": "images.txt",
    r"image_class_labels\.txt$": "image_class_labels.txt",
    r"images/[0-9]{3}\.[^/]+/[^/]+\.jpg": "images/001.Black_footed_Albatross/*.jpg",
}
_SPLIT = "train_test_split.txt"
_TRAINED = 100  # species of metric learning's training part
_MOST = 1 << 22


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open CUB-200-2011: the folder ``CUB_200_2011``, or a zip or tar of it.

    Rows are the lines of ``images.txt``. Factors: ``species``; ``split``, the published one, where
    ``train_test_split.txt`` is there; and ``retrieval``, the split of metric learning: the first 100 species are for
    training and the others for the test.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Wah, Branson, Welinder, Perona, Belongie, "The Caltech-UCSD Birds-200-2011 Dataset", Caltech 2011.
    .. [2] Oh Song, Xiang, Jegelka, Savarese, "Deep Metric Learning via Lifted Structured Feature Embedding", CVPR 2016.

    """
    size = check_size(size)
    release = find_members("cub200", root, _HOLDS, ["CUB_200_2011", "CUB_200_2011.zip", "CUB_200_2011.tar"])
    names = _by_image(release, "images.txt")
    labels = _by_image(release, "image_class_labels.txt", names)
    places = release.places([f"images/{name}" for name in names.values()])
    rows = np.flatnonzero(places >= 0)
    listed = list(names.values())
    warn_left_out(release.source, "images", [listed[row] for row in np.flatnonzero(places < 0).tolist()], len(listed))
    classes = np.array([_number(release, label) for label in labels.values()])[rows]
    retrieval = Factor("retrieval", Kind.NOMINAL, ("train", "test"), role="split")
    factors = [nominal("species", [listed[row].split("/")[0] for row in rows.tolist()])]
    if _SPLIT in release:
        marks = np.array(list(_by_image(release, _SPLIT, names).values()), object)[rows]
        factors.append(
            (Factor("split", Kind.NOMINAL, ("train", "test"), role="split"), (marks != "1").astype(np.int64))
        )
    factors.append((retrieval, (classes > _TRAINED).astype(np.int64)))
    return ImageFilesDataset("cub200", table_of(factors), MemberImages(release, places[rows]), size)


def _by_image(release: MemberIndex, name: str, images: dict[str, str] | None = None) -> dict[str, str]:
    """What a list says of each image, by its number; of all `images`, in their order."""
    place = release.place(name)
    label = release.label(place)
    lines = [line.split(maxsplit=1) for line in text_of(release.read(place, _MOST), label).splitlines() if line.strip()]
    wrong = next((number for number, line in enumerate(lines, 1) if len(line) != 2), None)
    if wrong is not None:
        raise DamagedFile(f"{label}: line {wrong} is not the number of an image and what is said of it")
    found = {number: said.strip() for number, said in lines}
    if images is None:
        return found
    lost = next((number for number in images if number not in found), None)
    if lost is not None:
        raise DamagedFile(f"{label} says nothing of image {lost}, which images.txt lists")
    return {number: found[number] for number in images}


def _number(release: MemberIndex, text: str) -> int:
    if not text.isdecimal():
        label = release.label(release.place("image_class_labels.txt"))
        raise DamagedFile(f"{label} has the class {text!r}; a number from 1 to 200 was expected")
    return int(text)
