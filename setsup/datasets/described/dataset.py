"""Open a benchmark by its manifest alone."""

import logging
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Places
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.missing_files import refuse_twice, warn_left_out
from setsup.datasets.described.columns import (
    Columns,
    add_times,
    check_rows,
    fill_template,
    kept_rows,
    read_tables,
)
from setsup.datasets.described.conditions import names_in
from setsup.datasets.described.factors import factor_table
from setsup.datasets.described.images import read_image_names
from setsup.datasets.described.lists import add_lists
from setsup.datasets.described.schema import Layout, read_layout
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.factors import FactorTable
from setsup.files import Manifest, find_members
from setsup.files.archives.members import MemberIndex
from setsup.files.roots import some
from setsup.html import counted

__all__ = ["DescribedImages", "open_described", "read_described"]

_log = logging.getLogger("setsup")


class DescribedImages(ImageFilesDataset):
    """Images of a release, with factors from their names or tables, as returned by :func:`open_described`.

    Attributes
    ----------
    manifest : Manifest
        Description of the release.

    """

    def __init__(
        self, manifest: Manifest, factors: FactorTable, images: MemberImages, size: tuple[int, int] | None
    ) -> None:
        super().__init__(manifest.name, factors, images, size)
        self.manifest = manifest


def open_described(
    manifest: Manifest, root: Path | str | None = None, size: tuple[int, int] | None = None, own: bool = False
) -> DescribedImages:
    """Open a benchmark by its manifest; nothing is downloaded.

    Parameters
    ----------
    manifest : Manifest
        Manifest with a ``layout``; see docs/datasets/described.md.
    root : Path, str or None
        As in :func:`setsup.files.find_members`.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and crop the centre.
    own : bool
        Whether the manifest is a user's own: nothing is fetched, and links must stay inside the root.

    Raises
    ------
    DataError
        When the manifest is invalid, or the release is missing, damaged or a different one.

    """
    size = check_size(size)
    release, places, factors = read_described(manifest, root, own)
    return DescribedImages(manifest, factors, MemberImages(release, places), size)


def read_described(
    manifest: Manifest, root: Path | str | None = None, own: bool = False
) -> tuple[MemberIndex, Places, FactorTable]:
    """Find the release that a manifest describes, the places of its rows' images (rows,), and their factors.

    Parameters and errors are those of :func:`open_described`. If the manifest names an adapter, the factors that have
    no column in the layout are left to it.
    """
    layout = read_layout(manifest)
    release = find_members(manifest.name, root, layout.holds, layout.archives, parts=layout.parts, own=own)
    try:
        places, columns = (
            _find_listed(release, layout) if layout.tables else _find_named(release, layout, manifest.name, own)
        )
        factors = factor_table(add_times(columns, layout), layout)
    except DamagedFile as error:
        if own and "fetch" in error.hint:  # nothing of a user's own is fetched
            raise DamagedFile(error.args[0], "correct the data or the manifest", file=error.file) from error
        raise
    return release, places, factors


def _find_named(release: MemberIndex, layout: Layout, name: str, own: bool) -> tuple[Places, Columns]:
    """Images whose names match; of those that lists leave out, a warning tells the number."""
    places, columns = read_image_names(name, release, layout)
    check_rows(columns, layout)
    conditional = [] if layout.without is None else names_in(layout.without, layout.columns)
    among = [column for column in layout.lists if column in conditional]
    columns = add_lists(name, columns, release, places, layout, among, own)
    kept = np.flatnonzero(kept_rows(columns, layout))
    if lists := [columns.labels[column] for column in among if column in columns]:
        _log.warning("%s: %s of its images are left out", ", ".join(lists), f"{len(places) - len(kept):,}")
    if len(kept) < len(places):
        places, columns = places[kept], columns.take(kept)
    rest = [column for column in layout.lists if column not in among]
    return places, add_lists(name, columns, release, places, layout, rest, own)


def _find_listed(release: MemberIndex, layout: Layout) -> tuple[Places, Columns]:
    """Images that tables name; those that are not there are left out, with one warning."""
    columns = read_tables(release, layout)
    check_rows(columns, layout)
    paths = fill_template(layout.paths[0], columns)
    if layout.unique:
        _refuse_repeated(paths, str(release.source))
    places = release.places(paths)
    for template in layout.paths[1:]:
        lost = np.flatnonzero(places < 0)
        places[lost] = release.places(fill_template(template, columns.take(lost)))
    wanted = kept_rows(columns, layout)
    lost = np.flatnonzero(wanted & (places < 0))
    warn_left_out(release.source, "images", paths.take(lost).to_pylist(), int(np.count_nonzero(wanted)))
    if layout.images is not None:
        _warn_unlisted(release, layout, places)
    kept = np.flatnonzero(wanted & (places >= 0))
    return places[kept], columns if len(kept) == len(places) else columns.take(kept)


def _refuse_repeated(paths: Any, label: str) -> None:
    import pyarrow.compute as pc

    if pc.count_distinct(paths).as_py() < len(paths):
        refuse_twice(label, paths.to_pylist())


def _warn_unlisted(release: MemberIndex, layout: Layout, places: Places) -> None:
    """Warn of images that no table names."""
    unlisted = np.zeros(len(release), bool)
    unlisted[release.matching(layout.images or "")[0]] = True
    unlisted[places[places >= 0]] = False
    if unlisted.any():
        lists = " or ".join(table.files[0] for table in layout.tables if table.key is None or table is layout.tables[0])
        names = release.names.take(np.flatnonzero(unlisted)).to_pylist()
        _log.warning(
            "%s: %s does not list %s (%s), which setsup leaves out",
            *(release.source, lists, counted(int(np.count_nonzero(unlisted)), "image"), some(names)),
        )
