"""CIFAR-100: 60,000 photographs of 32 × 32 pixels in a hundred categories of twenty superclasses.

References
----------
.. [1] A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", technical report, University of Toronto,
   2009, and its page, which describes the files.

"""

from pathlib import Path

import numpy as np

from setsup.datasets.adapters.packed_release import PackedRelease
from setsup.datasets.benchmarks.cifar.images import CifarImages, file_names
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind

__all__ = ["open", "prepare"]

_SUPERCLASSES = (
    "aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices "
    "household_furniture insects large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes "
    "large_omnivores_and_herbivores medium_mammals non-insect_invertebrates people reptiles small_mammals trees "
    "vehicles_1 vehicles_2"
).split()
_CATEGORIES = (
    "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can "
    "castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin "
    "elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster "
    "man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck "
    "pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk "
    "skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger "
    "tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm"
).split()
_LABELS = {
    "coarse_labels": Factor("superclass", Kind.NOMINAL, tuple(_SUPERCLASSES)),
    "fine_labels": Factor("category", Kind.NOMINAL, tuple(_CATEGORIES), within="superclass"),
}
_PARTS = {"train": ("train",), "test": ("test",)}
_ARCHIVES = ("cifar-100-python.tar.gz", "cifar-100-binary.tar.gz")
_RELEASE = PackedRelease("cifar100", _ARCHIVES, "cifar100_unpacked", file_names(_PARTS))


def open(root: Path | str | None = None) -> CifarImages:
    """Open CIFAR-100 in the Python or the binary version, whose rows are equal.

    Factors: ``superclass`` (the coarse label), ``category`` within it (the fine label), and ``split``. In the published
    files rows 0 to 49,999 are train and 50,000 to 59,999 test.

    Parameters
    ----------
    root : Path, str or None
        Folder with the unpacked files, or with a subfolder that contains them, such as torchvision's
        ``cifar-100-python``; None for the default folders. :func:`prepare` unpacks the published archive.

    Raises
    ------
    DataError
        When a file is missing (the message shows the command that fetches or unpacks it) or damaged, or when images of
        one category are in two superclasses.

    """
    images = CifarImages("cifar100", _RELEASE.find(root), _PARTS, _LABELS)
    coarse, fine = (images.factors.codes(factor.name).astype(np.int64) for factor in _LABELS.values())
    above = np.full(len(_CATEGORIES), -1)
    above[fine] = coarse
    if (wrong := above[fine] != coarse).any():
        row = int(np.argmax(wrong))
        raise DamagedFile(f"{images.folder}: images of {_CATEGORIES[fine[row]]} are in two superclasses (row {row})")
    return images


def prepare(root: Path | str | None = None) -> Path:
    """Unpack ``cifar-100-python.tar.gz`` or ``cifar-100-binary.tar.gz`` once, into a folder that :func:`open` finds.

    The folder ``cifar100_unpacked`` is next to the archive or, if that location is read-only, in the cache folder.
    """
    _RELEASE.unpack(root)
    return open(root).folder
