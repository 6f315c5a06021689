"""ImageNet as ILSVRC 2012 published it: rows are pictures, numbered alike in every form of the release."""

from pathlib import Path
from typing import Any

import numpy.typing as npt

from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import PartedImages
from setsup.datasets.benchmarks.imagenet.files import SPLITS, Pictures, find_pictures
from setsup.datasets.images import checked_size
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["SynsetPictures", "open"]

Array = npt.NDArray[Any]


class SynsetPictures(ImageFilesDataset):
    """Pictures by synset: ImageNet, a subset of it, or a test set with its synsets.

    Factors: ``synset`` (WordNet's id, such as ``n01440764``; unknown for validation pictures without labels),
    ``category`` (what the synset is called, a key, where the release tells it) and ``split``. The name of the file is
    no factor; :meth:`paths` gives it.

    The one modality is ``image``, (None, None, 3) uint8 sRGB: the sizes differ, and only pictures of one size can be
    fetched together, so that a loader needs `size`. Grey pictures, and those in CMYK, become sRGB. Orientations that
    cameras noted are applied, which programs for ImageNet mostly do not; few pictures have such a note. A few of the
    published JPEG have stray bytes before their end; they are decoded as those programs do, with a warning.

    Row numbers are 0 … N − 1, by split, synset and the bytes of the file's name: the same in every process, at every
    opening, and whether the pictures lie in folders or in the tars. Memory banks such as those of CMC may be indexed by
    them. (Train comes first, so that its numbers do not depend on whether val is there.)

    `size` (height, width), optional.

    References
    ----------
    .. [1] Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge", IJCV 2015.
    .. [2] Tian, Krishnan, Isola, "Contrastive Multiview Coding", ECCV 2020, section 3.

    """

    def __init__(
        self, name: str, pictures: Pictures, splits: tuple[str, ...] = SPLITS, size: tuple[int, int] | None = None
    ) -> None:
        images = PartedImages(pictures.parts, pictures.part, pictures.places)
        super().__init__(name, _table(pictures, splits), images, size, lenient=True)


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> SynsetPictures:
    """Open ImageNet: the training and validation pictures that are there.

    `size` (height, width), optional.

    `root`: a folder with ``ILSVRC2012_img_train.tar`` and ``ILSVRC2012_img_val.tar`` as published, which need not
    be unpacked; one of these; or a folder, zip or tar with trees ``train/<synset>/*.JPEG`` and
    ``val/<synset>/*.JPEG`` or ``val/*.JPEG``, such as Kaggle's. Folders around these do not matter. None for the
    usual places. Validation pictures that are not sorted into folders get their synsets from
    ``ILSVRC2012_devkit_t12.tar.gz``, unpacked or not, or from ``LOC_val_solution.csv``, beside them.
    """
    size = checked_size(size)
    return SynsetPictures("imagenet", find_pictures("imagenet", root), size=size)


def _table(pictures: Pictures, splits: tuple[str, ...]) -> FactorTable:
    levels = pictures.synsets
    factors = {Factor("split", Kind.NOMINAL, splits, role="split"): pictures.split}
    if levels:
        named = pictures.categories
        extra = {} if named is None else {Factor("category", Kind.NOMINAL, named, role="key"): pictures.synset}
        factors = {Factor("synset", Kind.NOMINAL, levels): pictures.synset, **extra, **factors}
    return table_of(factors)
