"""Lists of a published split, one text for each domain and part: lines ``<domain>/<category>/<image> <label>``."""

import logging
import re
from collections.abc import Mapping

import numpy as np

from setsup.arrays import Places
from setsup.datasets.benchmarks.domain_folders.reader import Domains, Tree
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.texts import Place, content_of, label_of, text_of

__all__ = ["listed_rows", "split_by_lists"]

_MOST = 1 << 27
_BESIDE = r"(?i:splits|[^/]*(?:label|list)s?)"
"""Folders of lists beside that of the images: Dassl's ``splits``, the authors' ``pacs_label``, and ``txt_lists``."""

_log = logging.getLogger("setsup")


def split_by_lists(domains: Domains, tree: Tree, lists: Mapping[str, str]) -> list[tuple[Factor, Places]]:
    """Factor ``split`` by the lists that lie in the release or beside it; nothing where there is none.

    `lists`: for each part the end of its files' names, such as ``_train.txt``, after the name of the domain. Rows that
    no list has are in no part; their number is logged.

    Raises
    ------
    DataError
        A list is damaged, or two of them have the same image.

    """
    codes, covered = np.full(len(tree.place), -1), np.zeros(len(tree.place), bool)
    for code, end in enumerate(lists.values()):
        for number, level in enumerate(domains.folders):
            there = np.flatnonzero(tree.domain == number)
            label, rows = listed_rows(tree, f"{level}{end}", there)
            covered[there] |= label is not None
            if (codes[rows] >= 0).any():
                raise DamagedFile(f"{label} has an image that is in the list of another part, too")
            codes[rows] = code
    if not covered.any():
        return []
    if without := np.flatnonzero(covered & (codes < 0)).tolist():
        first = f"{tree.category[without[0]]}/{tree.file[without[0]]}"
        counts = (f"{len(without):,}", f"{np.count_nonzero(covered):,}")
        _log.info("%s: its lists lack %s of %s images, such as %s; these are in no split", domains.name, *counts, first)
    return [(Factor("split", Kind.NOMINAL, tuple(lists), role="split"), codes)]


def listed_rows(tree: Tree, name: str, among: Places) -> tuple[str | None, Places]:
    """Rows of `among` whose image the text of that name lists, with the label of the text; None where there is none."""
    place = _place(tree.release, name)
    if place is None:
        return None, np.zeros(0, np.int64)
    label = label_of(place)
    content = content_of(place, _MOST, "a list of images")
    ends = {end for line in text_of(content, label).splitlines() if (end := _last_two(line))}
    files = zip((tree.category[row] for row in among.tolist()), (tree.file[row] for row in among.tolist()), strict=True)
    chosen = np.fromiter((each in ends for each in files), bool, len(among))
    return label, among[chosen]


def _place(release: MemberIndex, name: str) -> Place | None:
    """Shallowest file of a name in the release; else in a folder of lists beside it, or beside its archive."""
    quoted = name.replace(".", r"\.")
    for members, around in ((release, "(?:.*/)?"), (release.above(), rf"(?:{_BESIDE}/)?")):
        places: list[int] = members.matching(f"{around}{quoted}")[0].tolist()
        if places:
            return members, min(places, key=lambda place: (members.names[place].as_py().count("/"), place))
    outer = release.source.absolute().parent
    if release.source.is_dir():
        if release.prefix:
            return None
        # the folder of images was named, of which the authors' lists are no part
        folders = [each for each in sorted(outer.glob("*/")) if re.fullmatch(_BESIDE, each.name)]
    else:
        folders = [outer, *(each for each in sorted(outer.glob("*/")))]
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _last_two(line: str) -> tuple[str, str] | None:
    """Category and file of a line, whose label stands last and without which it is as good."""
    path = line.strip()
    head, _, label = path.rpartition(" ")
    if head and label.isdigit():
        path = head.rstrip()
    parts = path.replace("\\", "/").split("/")
    return (parts[-2], parts[-1]) if len(parts) > 1 else None
