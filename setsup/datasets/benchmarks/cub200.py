"""CUB-200-2011: 11,788 photographs of birds of 200 species, and splits of classification and of metric learning."""

import logging
import re
from pathlib import Path

import numpy as np

from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.missing_files import refuse_twice, warn_left_out
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.roots import some
from setsup.files.texts import text_of

__all__ = ["open"]

_HOLDS = {
    r"images\.txt$": "images.txt",
    r"image_class_labels\.txt$": "image_class_labels.txt",
    r"images/[0-9]{3}\.[^/]+/[^/]+\.jpg": "images/001.Black_footed_Albatross/*.jpg",
}
_IMAGE = r"[0-9]{3}\.[^/]+/[^/]+\.jpg"
_CLASS = "[1-9]|[1-9][0-9]|1[0-9][0-9]|200"
_SPLIT = "train_test_split.txt"
_TRAINED = 100  # species of metric learning's training part
_MOST = 1 << 22

_log = logging.getLogger("setsup")


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
    names = _by_image(release, "images.txt", _IMAGE, "001.Black_footed_Albatross/*.jpg")
    labels = _by_image(release, "image_class_labels.txt", _CLASS, "a class from 1 to 200", names)
    _check_classes(release, names, labels)
    listed = list(names.values())
    places = release.places([f"images/{name}" for name in listed])
    rows = np.flatnonzero(places >= 0)
    warn_left_out(release.source, "images", [listed[row] for row in np.flatnonzero(places < 0).tolist()], len(listed))
    _report_unlisted(release, listed)
    classes = np.array([int(label) for label in labels.values()])[rows]
    retrieval = Factor("retrieval", Kind.NOMINAL, ("train", "test"), role="split")
    factors = [nominal("species", [listed[row].split("/")[0] for row in rows.tolist()])]
    if _SPLIT in release:
        marks = np.array(list(_by_image(release, _SPLIT, "[01]", "1 for training or 0", names).values()), object)[rows]
        factors.append(
            (Factor("split", Kind.NOMINAL, ("train", "test"), role="split"), (marks != "1").astype(np.int64))
        )
    factors.append((retrieval, (classes > _TRAINED).astype(np.int64)))
    return ImageFilesDataset("cub200", table_of(factors), MemberImages(release, places[rows]), size)


def _by_image(
    release: MemberIndex, name: str, form: str, words: str, images: dict[str, str] | None = None
) -> dict[str, str]:
    """What a list says of each image, by its number; of all `images`, in their order.

    What it says has the `form` of an expression, which `words` describe.
    """
    place = release.place(name)
    label = release.label(place)
    found: dict[str, str] = {}
    for at, line in enumerate(text_of(release.read(place, _MOST), label).splitlines(), 1):
        if not line.strip():
            continue
        number, said, *_ = *line.split(maxsplit=1), ""
        said = said.rstrip()
        if not re.fullmatch("[1-9][0-9]{0,8}", number) or not re.fullmatch(form, said):
            raise DamagedFile(f"{label}: line {at} is not the number of an image and {words}: {line[:60]!r}")
        if number in found:
            raise DamagedFile(f"{label}: line {at} is the second of image {number}")
        found[number] = said
    if not found:
        raise DamagedFile(f"{label} is empty")
    if images is None:
        refuse_twice(label, list(found.values()))
        return found
    for one, other, which in ((images, found, label), (found, images, release.label(release.place("images.txt")))):
        lost = next((number for number in one if number not in other), None)
        if lost is not None:
            raise DamagedFile(f"{which} says nothing of image {lost}, which another list of the release has")
    return {number: found[number] for number in images}


def _check_classes(release: MemberIndex, names: dict[str, str], labels: dict[str, str]) -> None:
    """Refuse a class that is not the number of the image's folder."""
    for number, name in names.items():
        if int(name[:3]) != int(labels[number]):
            label = release.label(release.place("image_class_labels.txt"))
            raise DamagedFile(f"{label} has the class {labels[number]} for image {number}, which is {name}")


def _report_unlisted(release: MemberIndex, listed: list[str]) -> None:
    """Warn of images that no list names."""
    there = release.under("images").matching(_IMAGE)[0]
    names = release.under("images").names.take(there).to_pylist()
    if lost := sorted(set(names).difference(listed)):
        _log.warning(
            "%s: %s images are not in images.txt (%s); they are left out",
            *(release.source, f"{len(lost):,}", some(lost)),
        )
