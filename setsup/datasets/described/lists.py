"""Lists of images, such as those of a published split: a column contains the list of each row's image."""

import logging
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Places
from setsup.datasets.described.columns import Columns, fill_template
from setsup.datasets.described.schema import Layout
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.listing import as_numpy
from setsup.files.archives.members import MemberIndex
from setsup.files.roots import some
from setsup.files.texts import Place, content_of, label_of, text_of

__all__ = ["add_lists"]

_MOST = 1 << 27
_MOST_FILES = 1000
_INNER = "path"  # group by which images are sought in lists, where the folders around it are called differently
_BESIDE = "(?i:splits|[^/]*(?:label|list)s?)"
"""Folders of lists beside that of the images: Dassl's ``splits``, the authors' ``pacs_label``, and ``txt_lists``."""

_log = logging.getLogger("setsup")


def add_lists(
    name: str, columns: Columns, release: MemberIndex, places: Places, layout: Layout, among: Iterable[str], own: bool
) -> Columns:
    """Add some of the columns defined by lists; a column is left out if none of its lists exists.

    `places` are those of the rows' images. Lists of a benchmark may also be next to its release.

    Raises
    ------
    DataError
        When a list is damaged, or two lists contain the same image.

    """
    import pyarrow as pa

    def paths_of(rows: Places) -> Any:
        inner = columns.values.get(_INNER)
        return release.names.take(pa.array(places[rows])) if inner is None else inner.take(rows).cast(pa.large_string())

    values, labels = dict(columns.values), dict(columns.labels)
    for column in among:
        texts = list(layout.lists[column])
        codes, covered, names = np.full(len(places), -1), np.zeros(len(places), bool), list[str]()
        files = [(code, path) for code, text in enumerate(texts) for path in layout.lists[column][text]]
        for code, template in files:
            filled = fill_template(template, columns).dictionary_encode()
            if (number := len(filled.dictionary)) > _MOST_FILES:
                raise DataError(
                    f"{name}: {template} in layout.lists expands to {number:,} files, more than the limit of "
                    f"{_MOST_FILES:,}; use a group of images with fewer values"
                )
            for number, file in enumerate(filled.dictionary.to_pylist()):
                if (source := _find(release, file, own)) is None:
                    continue
                names.append(label_of(source))
                rows = np.flatnonzero(as_numpy(filled.indices) == number)
                covered[rows] = True
                content = text_of(content_of(source, _MOST, "a list of images"), names[-1])
                rows = rows[_listed(content, paths_of(rows))]
                if ((codes[rows] >= 0) & (codes[rows] != code)).any():
                    raise DamagedFile(f"{names[-1]} contains an image that is also in the list of another part")
                codes[rows] = code
        if not names:
            continue
        values[column] = pa.array(texts, pa.large_string()).take(pa.array(codes, mask=codes < 0))
        labels[column] = some(names)
        lost = np.flatnonzero(covered & (codes < 0))
        if len(lost) and len(texts) > 1:  # of one list alone, others are what it does not have
            first = _end(paths_of(lost[:1])[0].as_py())
            counts = (f"{len(lost):,}", f"{np.count_nonzero(covered):,}")
            _log.info("%s: the lists lack %s of %s images, such as %s; these have no %s", name, *counts, first, column)
    return replace(columns, values=values, labels=labels)


def _listed(text: str, paths: Any) -> npt.NDArray[np.bool_]:
    """Whether a line is the path of an image, its folder and file, or ends with the path; (paths,)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lines = pc.utf8_trim_whitespace(pa.array(text.splitlines(), pa.large_string()))
    # a label may stand last
    lines = pc.replace_substring(pc.replace_substring_regex(lines, r"(\S)\s* [0-9]+$", r"\1"), "\\", "/")
    listed = np.array(pc.is_in(paths, value_set=lines))
    others = lines.filter(pc.invert(pc.is_in(lines, value_set=paths))).to_pylist()
    short, backwards = set(others), sorted(f"/{line}"[::-1] for line in others)
    rows = np.flatnonzero(~listed) if others else np.zeros(0, np.int64)
    for row, path in zip(rows.tolist(), paths.take(pa.array(rows)).to_pylist(), strict=True):
        end = f"/{path}"[::-1]
        at = bisect_left(backwards, end)
        listed[row] = _end(path) in short or (at < len(backwards) and backwards[at].startswith(end))
    return listed


def _end(path: str) -> str:
    """Folder and file."""
    return path[path.rfind("/", 0, max(path.rfind("/"), 0)) + 1 :]


def _find(release: MemberIndex, name: str, own: bool) -> Place | None:
    """Shallowest file of a name in the release; else in a folder of lists beside it, or beside its archive."""
    for members, around in ((release, "(?s:.*/)?"), (release.above(), f"(?:{_BESIDE}/)?")):
        if places := _places(members, name, around):
            return members, min(places, key=lambda place: (members.names[place].as_py().count("/"), place))
    outer = release.source.absolute().parent
    if own or (release.source.is_dir() and release.prefix):
        return None
    if release.source.is_dir():
        # the folder of images was named, of which the authors' lists are no part
        folders = [each for each in sorted(outer.glob("*/")) if re.fullmatch(_BESIDE, each.name)]
    else:
        folders = [outer, *sorted(outer.glob("*/"))]
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _places(members: MemberIndex, name: str, around: str) -> list[int]:
    """Places of the files of a name in folders that match."""
    import pyarrow.compute as pc

    places: list[int] = as_numpy(pc.indices_nonzero(pc.ends_with(members.names, name))).tolist()
    return [place for place in places if re.fullmatch(around, members.names[place].as_py().removesuffix(name))]
