"""Splits of a set of tars that others wrote, by the folders or the names of the tars.

Tars in ``train/`` and ``val/``, or of names such as ``train-000000.tar`` and ``imagenet-val-000000.tar``, are of splits
if each of them says one, and they do not all say the same.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from setsup.factors import Factor, FactorTable, Kind

__all__ = ["SPLIT", "split_words", "with_split"]

SPLIT = "split"

_ORDER = ("train", "training", "val", "valid", "validation", "dev", "test", "testing")
_WORDS = re.compile(r"[a-z]+")


def with_split(
    table: FactorTable, tars: Sequence[str], rows: Sequence[int], described: Mapping[str, Factor]
) -> FactorTable:
    """A table with the factor ``split`` where the names of the tars say it, and no other factor has that name.

    `rows` are those of each tar; a factor that is described stays as it is if it has the same levels.
    """
    words = None if SPLIT in table else split_words(tars)
    if words is None:
        return table
    levels = tuple(sorted(set(words), key=_ORDER.index))
    codes = np.repeat([levels.index(word) for word in words], rows)
    factor = Factor(SPLIT, Kind.NOMINAL, levels, role="split")
    older = described.get(SPLIT)
    if older is not None and older.levels is not None and set(older.levels) == set(levels):
        factor = older
        codes = np.repeat([factor.code(word) for word in words], rows)
    return FactorTable([*table.factors, factor], {**{name: table.column(name) for name in table.names}, SPLIT: codes})


def split_words(tars: Sequence[str]) -> list[str] | None:
    """The split that each tar says, None where one says none, or all say the same.

    Examples
    --------
    >>> split_words(["train/0.tar", "val/0.tar"]), split_words(["birds-train-00.tar", "birds-test-00.tar"])
    (['train', 'val'], ['train', 'test'])
    >>> split_words(["train/0.tar", "extra/0.tar"]), split_words(["train-0.tar", "train-1.tar"])
    (None, None)

    """
    for at in (0, 1):  # folders, then names: the first that tells them all
        found = [_word(tar.rpartition("/")[2 * at]) for tar in tars]
        words = [word for word in found if word is not None]
        if len(words) == len(tars) and len(set(words)) > 1:
            return words
    return None


def _word(text: str) -> str | None:
    """The only split that a text says."""
    words = {word for word in _WORDS.findall(text.lower()) if word in _ORDER}
    return words.pop() if len(words) == 1 else None
