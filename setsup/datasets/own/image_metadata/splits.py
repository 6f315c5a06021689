"""Splits of the files of a folder, by their paths, as ``datasets`` finds them.

Convention
----------
``data/NAME-00000-of-00004.zip`` is of the split NAME. Without such files, a folder ``train``, ``training``,
``my-train`` or ``train_2`` says train, and its files alone are read; ``validation``, ``valid``, ``val``, ``dev`` and
``test``, ``testing``, ``eval``, ``evaluation`` say the others. Without such folders, names of files say it, where a
separator follows the word: ``train.zip``, ``my_val-2.zip``. Otherwise all files are of one split, train. Case matters.
"""

import re
from typing import Any

from setsup.arrays import Places
from setsup.factors.split_words import SPLIT_WORDS
from setsup.files.archives.listing import find_matches

__all__ = ["find_splits", "visible"]

_BETWEEN = "[-._ 0-9]"
_SHARD = r"^data/(?P<split>[^/]*)-[0-9]{5}-of-[0-9]{5}[^/]*[.][^/]*$"
_NAME = re.compile(r"\w+(\.\w+)*")
_IGNORED = ("README.md", "config.json", "dataset_info.json", "dataset_infos.json", "dummy_data.zip")
_HIDDEN = r"(?:^|/)[.]|(?:^|/)__[^/]*/"


def visible(names: Any) -> Any:
    """Names of files that are data: neither hidden, nor in folders such as ``__pycache__``, nor about the dataset.

    `names` pyarrow large_string array; returns one.
    """
    import pyarrow.compute as pc

    ignored = "|".join(map(re.escape, (*_IGNORED, "dataset_dict.json")))
    return names.filter(pc.invert(pc.match_substring_regex(names, rf"{_HIDDEN}|(?:^|/)(?:{ignored})$")))


def find_splits(names: Any) -> tuple[dict[str, Places], bool]:
    """Places of the files of each split, in the order of ``datasets``, and whether their paths say them.

    `names` pyarrow large_string array of paths, of which none is hidden.

    Examples
    --------
    >>> import pyarrow as pa
    >>> find_splits(pa.array(["test/0.png", "train/0.png", "x.csv"], pa.large_string()))
    ({'train': array([1]), 'test': array([0])}, True)

    """
    import numpy as np

    shards = find_matches(names, _SHARD)
    if len(shards):
        words = [re.match(_SHARD, name)["split"] for name in names.take(shards).to_pylist()]  # type: ignore[index]
        known = [word for word in SPLIT_WORDS if word in words]
        order = [*known, *sorted({word for word in words if _NAME.fullmatch(word)}.difference(known))]
        return {word: shards[np.array(words) == word] for word in order}, True
    for end in (rf"(?:{_BETWEEN}[^/]*)?/", rf"{_BETWEEN}[^/]*$"):  # folders, then names of files
        found = {
            split: find_matches(names, rf"(?:^|/)(?:[^/]*{_BETWEEN})?(?:{'|'.join(words)}){end}")
            for split, words in SPLIT_WORDS.items()
        }
        found = {split: places for split, places in found.items() if len(places)}
        if found:
            return found, True
    return {"train": np.arange(len(names))}, False
