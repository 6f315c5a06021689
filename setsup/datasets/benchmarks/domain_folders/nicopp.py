"""NICO++: about 89,000 photographs of 60 categories in six contexts that all of them share."""

from pathlib import Path

from setsup.datasets.benchmarks.domain_folders.lists import split_by_lists
from setsup.datasets.benchmarks.domain_folders.reader import DomainImages, Domains, images_of, read_tree
from setsup.datasets.images import check_size

__all__ = ["open"]

_AROUND = "(?:NICO_DG(?:_Benchmark)?/)?"  # the lists lie beside this folder
_NICO = Domains(
    "nicopp",
    {name: _AROUND + name for name in ("autumn", "dim", "grass", "outdoor", "rock", "water")},
    ("NICO_DG_Benchmark.zip", "DG_Benchmark/NICO_DG_Benchmark.zip", "NICO_DG.zip", "DG_Benchmark", "public_dg_0416"),
)
_LISTS = {"train": "_train.txt", "val": "_val.txt", "test": "_test.txt"}


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> DomainImages:
    """Open NICO++ as its benchmark of domain generalisation: ``NICO_DG/<context>/<category>/<image>``.

    Where the published lists are there as well (``NICO_DG_official/autumn_train.txt`` and the like, in the release or
    beside its zip), the factor ``split`` has their parts. The training part of the challenge's first track,
    ``public_dg_0416/train``, has the same form.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Zhang, He, Xu, Yu, Shen, Cui, "NICO++: Towards Better Benchmarking for Domain Generalization", CVPR 2023.

    """
    size = check_size(size)
    tree = read_tree(_NICO, root)
    return images_of(_NICO, tree, size, split_by_lists(_NICO, tree, _LISTS))
