"""KITTI Masks: sequences of 64 × 64 masks of pedestrians, with the centre and area of each.

Convention
----------
The file is a pickle of ``{"pedestrians": [(frames, 64, 64) bool, …], "pedestrians_latents": [(frames, 3) float32, …]}``
as the published script writes it; it is read without unpickling. Latents are the centre of mass, from the top and from
the left, and the number of pixels.

References
----------
.. [1] D. Klindt, L. Schott, Y. Sharma, I. Ustyuzhaninov, W. Brendel, M. Bethge, D. Paiton, "Towards Nonlinear
   Disentanglement in Natural Data with Temporal Sparse Coding", ICLR 2021 (arXiv 2007.10930), and its published code.

"""

from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array, Floats, Places, Rows
from setsup.datasets.adapters.inconsistent import replaced
from setsup.datasets.base import BaseDataset
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.pickled import PickledArray, read_pickle
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.disk import need_regular, read_errors
from setsup.files.mapped import MappedFile, check_mapped

__all__ = ["KittiMasks", "open"]

_FILE = "kitti_peds_v2.pickle"
_SIDE = 64
_LATENTS = {"y": "px", "x": "px", "area": "px²"}


class KittiMasks(BaseDataset):
    """Masks of pedestrians in the order of the file: the frames of a sequence follow each other.

    Factors: ``sequence``, ``frame`` (a key: the position in the sequence), and ``y``, ``x``, ``area``, continuous. A
    pair of the paper is a frame and one that is at most five later: ``SequencePairSampler(table, "sequence", "frame",
    window=5)``, whose offset is uniform over those that are present (the published loader draws one of five and stops
    at the last frame). The only modality is ``image``, (64, 64, 1) uint8 grayscale: 255 is the pedestrian. It is mapped
    from the file.

    Parameters
    ----------
    file : Path or str
        ``kitti_peds_v2.pickle``.

    Raises
    ------
    DataError
        When the file is missing or damaged, or does not have the published content.

    """

    name = "kitti-masks"

    def __init__(self, file: Path | str) -> None:
        self.file = self._source = Path(file).absolute()
        need_regular(self.file)
        with read_errors(self.file):
            self._size = self.file.stat().st_size
            if not self._size:
                raise DamagedFile(f"{self.file} is empty; expected sequences of masks")
            content = MappedFile.open(self.file)
        masks, latents = _arrays(read_pickle(content, self.file), self.file)
        lengths = [array.shape[0] for array in masks]
        starts = np.array([array.start for array in masks], np.int64)
        frame = np.concatenate([np.arange(length) for length in lengths])
        sequence = np.repeat(np.arange(len(masks)), lengths)
        self._places: Places = starts[sequence] + frame * _SIDE**2
        values = np.concatenate([_matrix(content, array) for array in latents])
        columns = {
            Factor(name, Kind.CONTINUOUS, unit=unit): values[:, k] for k, (name, unit) in enumerate(_LATENTS.items())
        }
        columns = {
            Factor("sequence", Kind.NOMINAL, tuple(range(len(masks)))): sequence,
            Factor("frame", Kind.ORDINAL, tuple(range(max(lengths))), within="sequence", role="key"): frame,
            **columns,
        }
        self.factors = FactorTable(list(columns), {factor.name: column for factor, column in columns.items()})
        self.modalities = {"image": Modality((_SIDE, _SIDE, 1), "uint8", color="grey")}

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        check_mapped(self._bytes)
        flat = out.reshape(len(rows), _SIDE**2)
        for number, start in enumerate(self._places[rows].tolist()):
            flat[number] = self._bytes[start : start + _SIDE**2]
        np.multiply(flat != 0, 255, out=flat, casting="unsafe")
        return out

    @per_process
    def _bytes(self) -> Array:
        with read_errors(self.file):
            if self.file.stat().st_size != self._size:
                raise replaced(self.file)
            return np.frombuffer(MappedFile.open(self.file), np.uint8)


def open(root: Path | str | None = None) -> KittiMasks:
    """Open KITTI Masks.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``kitti_peds_v2.pickle``, or with a folder ``kitti-masks`` that has it; None for the default
        folders.

    Raises
    ------
    DataError
        When the file is missing (the message shows the command that fetches it), or does not have the published
        content.

    """
    from setsup.files import find_root

    return KittiMasks(find_root("kitti-masks", root, [_FILE]) / _FILE)


def _arrays(content: Any, path: Path) -> tuple[list[PickledArray], list[PickledArray]]:
    """Masks and latents of the sequences, whose shapes have been checked."""
    names = ("pedestrians", "pedestrians_latents")
    masks, latents = (content.get(name) if isinstance(content, dict) else None for name in names)
    if not (isinstance(masks, list) and isinstance(latents, list) and masks and latents):
        raise DamagedFile(f"{path} lacks the lists {names[0]!r} and {names[1]!r}")
    if len(masks) != len(latents):
        raise DamagedFile(
            f"{path} has {len(masks):,} sequences of masks but {len(latents):,} of latents; expected the same number "
            "of both"
        )
    for number, pair in enumerate(zip(masks, latents, strict=True)):
        shapes = [(each.shape, each.dtype.kind) if isinstance(each, PickledArray) else None for each in pair]
        frames = pair[0].shape[0] if shapes[0] is not None and pair[0].shape else 0
        if shapes != [((frames, _SIDE, _SIDE), "b"), ((frames, len(_LATENTS)), "f")] or not frames:
            raise DamagedFile(
                f"{path}: sequence {number} has masks of {_told(pair[0])} and latents of {_told(pair[1])}; expected "
                f"boolean masks of shape (frames, {_SIDE}, {_SIDE}) and floating-point latents of shape (frames, "
                f"{len(_LATENTS)})"
            )
    return masks, latents


def _told(value: Any) -> str:
    return (
        f"dtype {value.dtype} and shape {value.shape}"
        if isinstance(value, PickledArray)
        else f"type {type(value).__name__}"
    )


def _matrix(content: Any, array: PickledArray) -> Floats:
    numbers: Array = np.frombuffer(content, array.dtype, int(np.prod(array.shape)), array.start)
    return numbers.reshape(array.shape).astype(np.float32)
