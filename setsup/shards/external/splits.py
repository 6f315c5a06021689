"""Splits of a set of tars that others wrote, by the folders or the names of the tars.

Tars in ``train/`` and ``val/``, or of names such as ``train-000000.tar`` and ``imagenet-val-000000.tar``, are of splits
if each of them says one, and they do not all say the same.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.split_words import SPLIT_WORDS, usual_split

__all__ = ["SPLIT", "split_notes", "split_words", "with_split"]

SPLIT = "split"

_ORDER = [word for words in SPLIT_WORDS.values() for word in words]
_WORDS = re.compile(r"[a-z]+")


def with_split(
    table: FactorTable, tars: Sequence[str], rows: Sequence[int], described: Mapping[str, Factor]
) -> FactorTable:
    """A table with the factor ``split`` where the names of the tars say it, and no other factor has that name.

    `rows` are those of each tar; a factor that is described stays as it is if it has the same levels.
    """
    words = [word for word in split_words(tars) if word is not None]
    if SPLIT in table or not _tell_all(words, tars):
        return table
    levels = tuple(sorted(set(words), key=_ORDER.index))
    codes = np.repeat([levels.index(word) for word in words], rows)
    factor = Factor(SPLIT, Kind.NOMINAL, levels, role="split")
    older = described.get(SPLIT)
    if older is not None and older.levels is not None and set(older.levels) == set(levels):
        factor = older
        codes = np.repeat([factor.code(word) for word in words], rows)
    return FactorTable([*table.factors, factor], {**{name: table.column(name) for name in table.names}, SPLIT: codes})


def split_notes(tars: Sequence[str], is_field: bool) -> Iterator[str]:
    """Say where names of tars tell splits that are no factor; `is_field`: members have a field of that name."""
    words = [word for word in split_words(tars) if word is not None]
    if is_field and _tell_all(words, tars):
        yield "the factor split is the field of the json members, not what folders or names of tars say"
    elif not is_field and 0 < len(words) < len(tars):
        yield (
            f"{len(words):,} of {len(tars):,} tars name a split, so there is no factor split; name one in each folder "
            "or tar, such as train, validation or test"
        )


def split_words(tars: Sequence[str]) -> list[str | None]:
    """The split that each tar says by its folder, or by its name if more of them do; None where it says none.

    Examples
    --------
    >>> split_words(["train/0.tar", "val/0.tar"]), split_words(["birds-train-00.tar", "birds-eval-00.tar"])
    (['train', 'val'], ['train', 'eval'])
    >>> split_words(["train/0.tar", "extra/0.tar"])
    ['train', None]

    """
    found = [[_word(tar.rpartition("/")[end]) for tar in tars] for end in (0, 2)]
    return max(found, key=lambda words: (_tell_all(words, tars), len(tars) - words.count(None)))


def _tell_all(words: Sequence[str | None], tars: Sequence[str]) -> bool:
    """Whether words tell the split of each tar, and are of several splits."""
    return len(words) == len(tars) and None not in words and len(set(words)) > 1


def _word(text: str) -> str | None:
    """The only split that a text says."""
    words = {word for word in _WORDS.findall(text.lower()) if usual_split(word)}
    return words.pop() if len(words) == 1 else None
