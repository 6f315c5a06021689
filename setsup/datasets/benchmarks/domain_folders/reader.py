"""Read ``<domain>/<category>/<image>``: folders, one archive of them, or an archive for each domain.

Convention
----------
Rows are ordered by domain, category and the bytes of the file's name, as programs order them that read a folder of
classes for each domain in turn. Folders around the tree do not matter.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setsup.arrays import Places
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.roots import some

__all__ = ["DomainImages", "Domains", "Tree", "images_of", "open_tree", "read_tree"]

_IMAGE = r"[^/]+\.(?i:jpe?g|png|bmp)"


class Domains(NamedTuple):
    """One benchmark: its name, its domains with expressions (RE2) for what their folders are called, its archives."""

    name: str
    folders: dict[str, str]
    archives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Images of a release in the order of the rows: `place`, `domain` (n,) int64; `category` and `file`, n names."""

    release: MemberIndex
    place: Places
    domain: Places
    category: list[str]
    file: list[str]

    def select(self, rows: Places) -> "Tree":
        """Some of the rows."""
        names = ([values[row] for row in rows.tolist()] for values in (self.category, self.file))
        return Tree(self.release, self.place[rows], self.domain[rows], *names)


class DomainImages(ImageFilesDataset):
    """Images of some categories in several domains.

    Factors are ``domain`` and ``category``. The only modality is ``image``, uint8 sRGB; see
    :class:`~setsup.datasets.adapters.image_files.ImageFilesDataset` for sizes.
    """


def open_tree(domains: Domains, root: Path | str | None, size: tuple[int, int] | None) -> DomainImages:
    """Open a benchmark that has nothing but the tree."""
    size = check_size(size)
    return images_of(domains, read_tree(domains, root), size)


def images_of(
    domains: Domains, tree: Tree, size: tuple[int, int] | None, more: Iterable[tuple[Any, Any]] = ()
) -> DomainImages:
    """Make the dataset of a tree; `more` are further factors with their codes."""
    levels = list(domains.folders)
    there = [levels[code] for code in tree.domain.tolist()]
    columns = [nominal("domain", there, levels=levels), nominal("category", tree.category), *more]
    return DomainImages(domains.name, table_of(columns), MemberImages(tree.release, tree.place), size)


def read_tree(domains: Domains, root: Path | str | None) -> Tree:
    """Find the images of a release.

    Raises
    ------
    DataError
        There is none.

    """
    folder = "|".join(domains.folders.values())
    holds = rf"(?:{folder})/[^/]+/{_IMAGE}"
    example = "/".join([next(iter(domains.folders)), "<category>", "*.jpg"])
    archives = rf"(?:{folder})\.(?:zip|tar)"
    release = find_members(domains.name, root, {holds: example}, domains.archives, parts=archives)
    found = []
    for number, pattern in enumerate(domains.folders.values()):
        rows: dict[tuple[str, bytes], tuple[int, str]] = {}
        places, names = release.matching(rf"(?:{pattern})/(?P<category>[^/]+)/(?P<file>{_IMAGE})")
        named = zip(names["category"].to_pylist(), names["file"].to_pylist(), places.tolist(), strict=True)
        for category, file, at in named:
            # of folders that differ only in how a domain is written, the first counts
            rows.setdefault((category, file.encode("utf-8", "surrogatepass")), (at, file))
        found += [(number, key[0], *rest) for key, rest in sorted(rows.items())]
    if not found:
        raise DamagedFile(f"{release.source} holds no image such as {example}")
    numbers, categories, there, files = zip(*found, strict=True)
    place, domain = (np.array(column, np.int64) for column in (there, numbers))
    _refuse_other_domains(domains, release, place, set(categories))
    return Tree(release, place, domain, list(categories), list(files))


def _refuse_other_domains(domains: Domains, release: MemberIndex, known: Places, categories: set[str]) -> None:
    """Refuse a tree of which further domains have the same categories: another benchmark's, some names of which agree.

    `known` are the places of the images that were found.
    """
    import pyarrow.compute as pc

    left = np.ones(len(release), bool)
    left[known] = False
    if not left.any():
        return
    rest = release.names.take(np.flatnonzero(left))
    fields = pc.extract_regex(rest, rf"^(?P<folder>[^/._][^/]*/[^/]+)/{_IMAGE}$").drop_null()
    folders = (each.split("/") for each in pc.struct_field(fields, "folder").unique().to_pylist())
    own = re.compile("|".join(domains.folders.values()))
    others = sorted({domain for domain, category in folders if category in categories and not own.fullmatch(domain)})
    if others:
        raise DataError(
            f"{domains.name}: {release.source} has domains that it does not have, with the same categories: "
            f"{some(others)}; it has {', '.join(domains.folders)}; name the folder of {domains.name} (--root or "
            "root=), or take the others out of it"
        )
