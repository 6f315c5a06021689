"""CLEVR by image: 100,000 images of three to ten objects, whose factors are nested per image."""

from pathlib import Path

from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.nested_objects import ObjectImages
from setsup.datasets.benchmarks.clevr.scenes import ATTRIBUTES, PARTS, find_scenes
from setsup.datasets.images import check_size
from setsup.factors import Factor, Kind

__all__ = ["MODALITIES", "UNITS", "open"]

MODALITIES = {
    **{name: name for name in ATTRIBUTES},
    "rotation": "rotation",
    "position": ("x", "y", "z"),
    "pixel": ("pixel_x", "pixel_y"),
    "depth": "depth",
}
"""Modalities of objects, and the columns that they are made of."""

UNITS = {"pixel": "pixel"}


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ObjectImages:
    """Open CLEVR by image: the folder ``CLEVR_v1.0``, or a zip or tar of it.

    Rows are images, by part and name. Factors: ``objects``, the number of objects; for each level of shape, size, color
    and material, the number of objects in the image that have it (``cube``, …, ``metal``); and ``split``. The test
    images have no published scenes, so all their factors but the split are unknown.

    Modalities besides ``image`` are nested: one entry per object of the image, in the order of the release, padded to
    the largest number of objects. ``shape``, ``size``, ``color`` and ``material`` are codes of levels, −1 after the
    last object; ``rotation``, ``position``, ``pixel`` and ``depth`` are NaN there. ``objects`` of the dataset is the
    table of all objects; :mod:`setsup.datasets.benchmarks.clevr.scenes` defines the coordinates.

    `size` (height, width), optional; images have 320 × 480 pixels, and ``pixel`` refers to that size.

    Raises
    ------
    DataError
        When the release is missing, or a file of scenes is damaged.

    References
    ----------
    .. [1] Johnson, Hariharan, van der Maaten, Fei-Fei, Zitnick, Girshick, "CLEVR: A Diagnostic Dataset for
       Compositional Language and Elementary Visual Reasoning", CVPR 2017.

    """
    size = check_size(size)
    scenes = find_scenes("clevr", root)
    factors = [
        scenes.objects.count_factor(),
        *scenes.objects.level_counts(list(ATTRIBUTES)),
        (Factor("split", Kind.NOMINAL, PARTS, role="split"), scenes.parts),
    ]
    images = MemberImages(scenes.release, scenes.places)
    return ObjectImages("clevr", table_of(factors), images, scenes.objects, MODALITIES, UNITS, size)
