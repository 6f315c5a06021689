"""The dataset that a preset trains on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.errors import DataError, SetsupError
from setsup.files.expand_user import expanded

if TYPE_CHECKING:
    from setsup.datasets import Dataset

__all__ = ["YOURS", "Data", "explain_missing", "image_modality", "is_lost", "shared_modalities"]

YOURS = "your-data"
"""Name of data that a preset leaves to the user; its ``missing`` says how they are named."""

_WRITTEN = ("rendered", "shards")
"""Kinds of sources that were written with their options."""


@dataclass(frozen=True, slots=True)
class Data:
    """The dataset that a preset trains on.

    Attributes
    ----------
    name : str
        Any source that :func:`setsup.open` opens.
    split : str, optional
        Split of the dataset; by default the whole dataset.
    substitute : str, optional
        Dataset with the same factors, for users without the published files; it is never used silently.
    where : str, optional
        Expression over the factors that selects rows; they are renumbered.
    options : tuple of (str, value)
        Options for opening the dataset, such as ``(("size", (64, 64)),)``, and for a table ``("kinds", (("age",
        "continuous"),))``; not for the substitute, nor for rendered datasets and shards, which were written with them.
    modalities : tuple of str, optional
        Modalities of a batch, such as ``image`` and ``depth``; by default all.

    """

    name: str
    split: str | None = None
    substitute: str | None = None
    where: str | None = None
    options: tuple[tuple[str, Any], ...] = ()
    modalities: tuple[str, ...] | None = None

    def open(self, root: Path | str | None = None, *, substitute: bool = False, split: str | None = None) -> "Dataset":
        """Open the dataset.

        Parameters
        ----------
        root : Path or str, optional
            As for :func:`setsup.open`; of the substitute, where that is opened.
        substitute : bool
            Whether to open the substitute dataset instead.
        split : str, optional
            Another split than that of the training.

        Raises
        ------
        DataError
            When files are missing or damaged; the message says how to get them. When it has no such modality.
        SetsupError
            When there is no substitute.

        """
        from setsup import opening
        from setsup.datasets.dataset import check_modalities

        if substitute and self.substitute is None:
            raise SetsupError(f"{self.name} has no substitute; omit --substitute and fetch the published files")
        if substitute and self.substitute is not None:
            dataset = opening.open(self.substitute, root, split or self.split, self.where)
        else:
            kind = opening.find_kind(self.name)
            options = {} if kind in _WRITTEN else dict(self.options)
            if isinstance(options.get("kinds"), tuple | list):  # as a run's settings keep a mapping
                options["kinds"] = dict(options["kinds"])
            dataset = opening.open(self.name, root, split or self.split, self.where, kind=kind, **options)
        if self.where is not None and not len(dataset):
            raise DataError(f"no row of {dataset.name} satisfies {self.where!r}; change --data.where")
        if self.modalities is not None:
            check_modalities(dataset, self.modalities)  # checks the names
        return dataset


def is_lost(name: str) -> bool:
    """Whether the name of a dataset is a relative path, which leads nowhere from the current folder."""
    from setsup.datasets import names

    path = expanded(name)
    return (
        name not in names() and "://" not in name and ":" not in name and not path.is_absolute() and not path.exists()
    )


@contextmanager
def explain_missing(who: str, name: str, missing: Mapping[str, str]) -> Iterator[None]:
    """Say where a dataset that is not there comes from, by what a preset's ``missing`` says of its name."""
    try:
        yield
    except DataError as error:
        advice = missing.get(name)
        if advice is None or not is_lost(name):
            raise
        problem = "it requires your own data" if name == YOURS else f"{name} does not exist"
        raise DataError(f"{who} has no data: {problem}; {advice}") from error


def shared_modalities(data: Data | None, dataset: "Dataset") -> tuple[str, ...] | None:
    """Modalities of the training that a dataset has, which may be another one; None for all of it."""
    if data is None or data.modalities is None:
        return None
    return tuple(name for name in data.modalities if name in dataset.modalities)


def image_modality(dataset: "Dataset") -> str:
    """The modality ``image``, or the only one with colours; DataError where there is none, or no telling which."""
    colored = [name for name, modality in dataset.modalities.items() if modality.color]
    if "image" in dataset.modalities or len(colored) == 1:
        return "image" if "image" in dataset.modalities else colored[0]
    modalities = (
        f"several image modalities ({', '.join(colored)}), none of them named 'image'" if colored else "no images"
    )
    raise DataError(
        f"{dataset.name} has {modalities} (its modalities: {', '.join(dataset.modalities)}), but an encoder reads one "
        "image per row; open a dataset with one image modality, or with a modality named 'image'"
    )
