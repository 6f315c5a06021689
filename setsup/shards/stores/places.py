"""Words that say where shards lie, in the place of a dataset's name."""

from pathlib import Path
from typing import TYPE_CHECKING

from setsup.errors import DataError
from setsup.files.expand_user import expanded
from setsup.shards.stores.opening import intended_address

if TYPE_CHECKING:
    from setsup.datasets import Dataset

__all__ = ["is_shards", "open_place"]

_MARKS = ("shards.json", ".setsup")


def is_shards(word: str) -> bool:
    """Whether a word is an address, or a folder that holds tars or what belongs to them, finished or not."""
    if "://" in word or intended_address(word) is not None:
        return True
    folder = expanded(word)
    if not any((folder / name).exists() for name in _MARKS) and not any(folder.glob("*.tar")):
        # in folders within, as others write them; shards may also lie below a render
        if (folder / "rendered.json").exists() or not any(folder.glob("*/*.tar")):
            return False
    from setsup.datasets import names

    return word not in names()


def open_place(
    url: str,
    root: Path | str | None = None,
    split: str | None = None,
    where: str | None = None,
    *,
    index: str | None = None,
) -> "Dataset":
    """Open shards as :func:`setsup.load` opens a dataset by its name."""
    if root is not None:
        raise DataError(f"{url} holds shards, which need no other files; leave out the root {root}")
    from setsup.datasets.adapters.splits import open_split
    from setsup.shards.opening import open_shards

    dataset: Dataset = open_shards(url, index=index)
    if split is not None:
        dataset = open_split(dataset, split)
    return dataset if where is None else dataset.where(where)
