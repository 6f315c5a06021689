"""Causal3DIdent: images of seven objects whose ten continuous factors depend on each other and on the object."""

from pathlib import Path

from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.benchmarks.ident3d.reader import Part, open_parts

__all__ = ["open"]

_SHAPES = ("teapot", "hare", "dragon", "cow", "armadillo", "horse", "head")
_PARTS = [
    Part(split, shape, rf"{name}(?:set)?/raw_latents_{shape}\.npy", f"images_{shape}")
    for split, name in enumerate(("train", "test"))
    for shape in range(len(_SHAPES))
]


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open Causal3DIdent: the folders ``trainset`` and ``testset``, or uncompressed tars of them.

    Factors are ``shape``, the ten continuous factors of 3DIdent, each from −1 to 1, and ``split``. Object and spotlight
    cause positions, rotations and hues, as shown by a graph in the paper.

    `size` (height, width), optional.

    References
    ----------
    .. [1] von Kügelgen, Sharma, Gresele, Brendel, Schölkopf, Besserve, Locatello, "Self-Supervised Learning with Data
       Augmentations Provably Isolates Content from Style", NeurIPS 2021.

    """
    return open_parts("causal3dident", _PARTS, r"(?:train|test)set\.tar", _SHAPES, root, size)
