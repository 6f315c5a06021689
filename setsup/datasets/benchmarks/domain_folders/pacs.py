"""PACS: 9,991 images of seven categories: photographs, art paintings, cartoons and sketches."""

from pathlib import Path

from setsup.datasets.benchmarks.domain_folders.lists import split_by_lists
from setsup.datasets.benchmarks.domain_folders.reader import DomainImages, Domains, images_of, read_tree
from setsup.datasets.images import check_size

__all__ = ["open"]

_PACS = Domains(
    "pacs",
    {name: name for name in ("art_painting", "cartoon", "photo", "sketch")},
    ("PACS.zip", "PACS", "kfold"),
)
_LISTS = {"train": "_train_kfold.txt", "validation": "_crossval_kfold.txt"}


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> DomainImages:
    """Open PACS: a folder, zip or tar with ``<domain>/<category>/<image>``.

    Where the lists of the paper's split are there as well (``photo_train_kfold.txt`` and the like), the factor
    ``split`` has their parts.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Li, Yang, Song, Hospedales, "Deeper, Broader and Artier Domain Generalization", ICCV 2017.

    """
    size = check_size(size)
    tree = read_tree(_PACS, root)
    return images_of(_PACS, tree, size, split_by_lists(_PACS, tree, _LISTS))
