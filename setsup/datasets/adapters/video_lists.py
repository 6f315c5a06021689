"""Lists of the official splits next to the videos of a release, and factors in the names of files."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.factor_columns import nominal
from setsup.errors import DataError
from setsup.factors import Factor
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.roots import some
from setsup.files.texts import text_of

__all__ = ["PARTS", "lists_beside", "split_factor"]

PARTS = ("train", "test")
_MOST = 1 << 22  # bytes of a list

_log = logging.getLogger("setsup")


def lists_beside(
    name: str, members: MemberIndex, root: Path | None, pattern: str, archives: Sequence[str] = ()
) -> dict[tuple[str, ...], tuple[str, list[str]]]:
    """Find and read lists: among the videos' own files, otherwise in the folder that contains the release."""
    places, groups = members.matching(rf"(?:.*/)?{pattern}")
    if not len(places):
        beside = root.parent if root is not None and root.is_file() else root
        try:
            members = find_members(name, beside, [rf"(?:[^/]+/)?{pattern}"], archives)
        except DataError:
            return {}
        places, groups = members.matching(rf"(?:[^/]+/)?{pattern}")
    keys = zip(*(groups[group].to_pylist() for group in groups), strict=True)
    lists = {}
    for key, member in zip(keys, places.tolist(), strict=True):
        label = members.label(member)
        text = text_of(members.read(member, _MOST), label)
        lists[key] = label, [line.strip() for line in text.splitlines() if line.strip()]
    return lists


def split_factor(
    name: str, keys: Sequence[str], parts: Mapping[str, str], where: object
) -> tuple[Factor, npt.NDArray[np.int64]]:
    """Make the factor of an official split, with the code of each video; warns about listed videos that are missing.

    Examples
    --------
    >>> split_factor("split1", ["a", "b", "c"], {"c": "train", "a": "test"}, "videos.zip")[1]
    array([ 1, -1,  0])

    """
    lost = sorted(set(parts) - set(keys))
    if lost:
        _log.warning(
            "%s: %s of the %s videos in the lists of %s are missing from the release (%s)",
            *(where, f"{len(lost):,}", f"{len(parts):,}", name, some(lost)),
        )
    return nominal(name, [parts.get(key) for key in keys], role="split", levels=PARTS)
