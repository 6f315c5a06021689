"""CLEVR by object: about 550,000 objects with their factors, each with its image."""

from pathlib import Path

from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.nested_objects import ObjectImages
from setsup.datasets.benchmarks.clevr.images import MODALITIES, UNITS
from setsup.datasets.benchmarks.clevr.scenes import ATTRIBUTES, PARTS, find_scenes
from setsup.datasets.images import check_size
from setsup.errors import DataError
from setsup.factors import Factor, Kind

__all__ = ["open"]


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ObjectImages:
    """Open CLEVR by object, from the files of ``clevr``.

    Rows are the objects of the images of training and validation, image after image in the order of the release.
    Factors: ``shape``, ``size``, ``color``, ``material``; ``rotation``, ``x``, ``y``, ``right`` and ``front``,
    continuous; the keys ``scene``, the name of the image's file without ``.png``, and ``object``, its number in the
    image; and ``split``. Modalities: ``image``, the whole image, ``position``, ``pixel`` and ``depth``;
    :mod:`setsup.datasets.benchmarks.clevr.scenes` defines the coordinates.

    `size` (height, width), optional; images have 320 × 480 pixels, and ``pixel`` refers to that size.

    Raises
    ------
    DataError
        When the release is missing, or a file of scenes is missing or damaged.

    References
    ----------
    .. [1] Johnson, Hariharan, van der Maaten, Fei-Fei, Zitnick, Girshick, "CLEVR: A Diagnostic Dataset for
       Compositional Language and Elementary Visual Reasoning", CVPR 2017.

    """
    size = check_size(size)
    scenes = find_scenes("clevr-objects", root)
    if not len(scenes.objects.table):
        raise DataError(
            f"{scenes.release.source} contains neither scenes/CLEVR_train_scenes.json nor "
            "scenes/CLEVR_val_scenes.json; fetch or unpack the release again"
        )
    table, of_image = scenes.objects.table, scenes.objects.images
    split = Factor("split", Kind.NOMINAL, PARTS, role="split")
    factors = table.without(["z", "pixel_x", "pixel_y", "depth"]).with_factor(split, scenes.parts[of_image])
    columns = {name: source for name, source in MODALITIES.items() if name not in (*ATTRIBUTES, "rotation")}
    images = MemberImages(scenes.release, scenes.places[of_image])
    return ObjectImages("clevr-objects", factors, images, scenes.objects, columns, UNITS, size, nested=False)
