"""ImageNet as published for ILSVRC 2012: rows are images, with the same numbers in every form of the release."""

from pathlib import Path

from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.benchmarks.imagenet.files import SPLITS, SynsetFiles, find_files
from setsup.datasets.images import check_size
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["SynsetImages", "open"]


class SynsetImages(ImageFilesDataset):
    """Images by synset: ImageNet, a subset of it, or a test set with its synsets.

    Factors: ``synset`` (WordNet's id, such as ``n01440764``; unknown for validation images without labels),
    ``category`` (a key: the name of the synset, if the release contains it) and ``split``. The file name is not a
    factor; :meth:`paths` returns it.

    The only modality is ``image``, (None, None, 3) uint8 sRGB: the sizes differ, and only images of the same size can
    be fetched together, so a loader needs its ``resize``, or `size` here. Grayscale and CMYK images are converted to
    sRGB. EXIF orientations are applied, unlike in most programs for ImageNet; few images have one. A few of the
    published JPEG files contain extraneous bytes before their end; they are decoded as in those programs, with a
    warning.

    Row numbers are 0 … N − 1, by split, synset and the bytes of the file's name: the same in every process, at every
    opening, and for images in folders or in the tars. Memory banks such as those of CMC may be indexed by them. (Train
    comes first, so its numbers do not depend on the presence of val.)

    `size` (height, width), optional.

    References
    ----------
    .. [1] Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge", IJCV 2015.
    .. [2] Tian, Krishnan, Isola, "Contrastive Multiview Coding", ECCV 2020, section 3.

    """

    def __init__(
        self, name: str, files: SynsetFiles, splits: tuple[str, ...] = SPLITS, size: tuple[int, int] | None = None
    ) -> None:
        images = MemberImages(files.parts, files.places, files.part)
        super().__init__(name, _table(files, splits), images, size, lenient=True)


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> SynsetImages:
    """Open ImageNet: the training and validation images that are present.

    `size` (height, width), optional.

    `root`: a folder with ``ILSVRC2012_img_train.tar`` and ``ILSVRC2012_img_val.tar`` as published, which need not be
    unpacked; one of these; or a folder, zip or tar with trees ``train/<synset>/*.JPEG`` and ``val/<synset>/*.JPEG`` or
    ``val/*.JPEG``, such as Kaggle's. Parent folders of these are accepted too. None for the default folders. Validation
    images that are not sorted into folders get their synsets from ``ILSVRC2012_devkit_t12.tar.gz``, unpacked or not, or
    from ``LOC_val_solution.csv``, next to them.
    """
    size = check_size(size)
    return SynsetImages("imagenet", find_files("imagenet", root), size=size)


def _table(files: SynsetFiles, splits: tuple[str, ...]) -> FactorTable:
    levels = files.synsets
    factors = {Factor("split", Kind.NOMINAL, splits, role="split"): files.split}
    if levels:
        named = files.categories
        extra = {} if named is None else {Factor("category", Kind.NOMINAL, named, role="key"): files.synset}
        factors = {Factor("synset", Kind.NOMINAL, levels): files.synset, **extra, **factors}
    return table_of(factors)
