"""Names of scenes and images in files of pairs."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from setsup.arrays import Rows
from setsup.errors import DataError, abbreviate, advice

__all__ = ["check_blanks", "file_names", "row_names", "scene_names"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f\\:]")
_LONGEST = 120  # letters of a scene's name, of which names of files and folders are made


def scene_names(dataset: Any, agree: Sequence[str], numbers: Sequence[int], rows: Sequence[int]) -> list[str]:
    """Names of scenes: levels of the factor that tells them apart, where these are strings, else numbers.

    `numbers` are those in the overlap table, `rows` one row of each scene.
    """
    factor = dataset.factors[agree[0]] if len(agree) == 1 else None
    if factor is None or not factor.levels or not all(isinstance(level, str) for level in factor.levels):
        return [f"{number:04}" for number in numbers]
    codes = dataset.factors.codes(factor.name, np.asarray(rows))
    names = [str(factor.levels[code]).replace("/", "-") for code in codes.tolist()]
    for name in names:
        if not name.strip(" .") or _CONTROL.search(name) or len(name) > _LONGEST:
            raise DataError(
                f"the scene {abbreviate(name)} of {dataset.name} cannot name a file; rename it, or leave it out with "
                f"{advice('where=', '--where')}"
            )
    if len({name.casefold() for name in names}) < len(names):
        twice = next(name for name in names if [other.casefold() for other in names].count(name.casefold()) > 1)
        raise DataError(
            f"two scenes of {dataset.name} would be called {abbreviate(twice)} in the files; rename one, or leave it "
            f"out with {advice('where=', '--where')}"
        )
    return names


def row_names(rows: Rows, total: int) -> list[str]:
    """Names of images by their rows, all of one length: ``000017``."""
    digits = max(6, len(str(total - 1)))
    return [f"{row:0{digits}}" for row in rows.tolist()]


def file_names(dataset: Any, rows: Rows) -> list[str] | None:
    """Names of the image files of a dataset, as its cameras list them; None where it has no files."""
    for method in ("image_names", "paths"):
        if hasattr(dataset, method):
            return list(getattr(dataset, method)(rows))
    return None


def check_blanks(names: Sequence[str], what: str) -> None:
    """Refuse names that a list which is separated by blanks cannot hold."""
    for name in names:
        if name.split() != [name]:
            raise DataError(
                f"the name of {what} {abbreviate(name)} contains a blank, which separates columns in this layout; "
                f"rename it, or leave it out with {advice('where=', '--where')}"
            )
