"""DomainNet: about 590,000 images of 345 categories in six domains, each published as a zip."""

import logging
from pathlib import Path

import numpy as np

from setsup.datasets.benchmarks.domain_folders.lists import listed_rows, split_by_lists
from setsup.datasets.benchmarks.domain_folders.reader import DomainImages, Domains, Tree, images_of, read_tree
from setsup.datasets.images import check_size

__all__ = ["open"]

_NET = Domains(
    "domainnet",
    {name: name for name in ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")},
    ("domain_net", "DomainNet"),
)
_LISTS = {"train": "_train.txt", "test": "_test.txt"}
_DUPLICATES = ("domain_net_duplicates.txt", "DomainNet_duplicates.txt")

_log = logging.getLogger("setsup")


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> DomainImages:
    """Open DomainNet: whichever of its domains are there, zips and folders mixed.

    Where the published lists lie beside them (``clipart_train.txt``, ``clipart_test.txt`` and so on), the factor
    ``split`` has their parts. Images that DomainBed's ``domain_net_duplicates.txt`` lists are left out where that file
    lies beside them, as its script does; their number is logged.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Peng, Bai, Xia, Huang, Saenko, Wang, "Moment Matching for Multi-Source Domain Adaptation", ICCV 2019.
    .. [2] Gulrajani, Lopez-Paz, "In Search of Lost Domain Generalization", ICLR 2021.

    """
    size = check_size(size)
    tree = _without_duplicates(read_tree(_NET, root))
    return images_of(_NET, tree, size, split_by_lists(_NET, tree, _LISTS))


def _without_duplicates(tree: Tree) -> Tree:
    """Images that no list of duplicates has."""
    kept = np.arange(len(tree.place))
    for name in _DUPLICATES:
        label, rows = listed_rows(tree, name, kept)
        if label is not None:
            _log.warning("%s: %s of its images are left out", label, f"{len(rows):,}")
            kept = np.setdiff1d(kept, rows)
    return tree if len(kept) == len(tree.place) else tree.select(kept)
