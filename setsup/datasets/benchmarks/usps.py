"""USPS: 9,298 handwritten digits of 16 × 16 pixels, from the files of LIBSVM's page or an HDF5 file.

Convention
----------
``usps.bz2`` and ``usps.t.bz2`` are texts with a line an image: the digit plus 1, and 256 values from −1 (background)
to 1, row by row, each with its number from 1 and a colon in front. ``usps.h5``, a copy that is used as often, has
``train`` and ``test``, each with ``data``, (n, 256) from 0 to 1, and ``target``, the digits. Values become bytes as
torchvision makes them: scaled to 0 … 255 in single precision, and cut off.

References
----------
.. [1] J. J. Hull, "A Database for Handwritten Text Recognition Research", IEEE Transactions on Pattern Analysis and
   Machine Intelligence 1994.

"""

import bz2
import hashlib
import os
import warnings
from pathlib import Path

import numpy as np

from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.cached_arrays import cached_npy
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.h5.images import h5_dataset, h5_errors, h5_open
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.files import cache_folder
from setsup.files.disk import need_regular, read_errors
from setsup.files.lfs import refuse_pointer

__all__ = ["Usps", "open"]

_SPLITS = ("train", "test")
_TEXTS = (("usps.bz2", "usps"), ("usps.t.bz2", "usps.t"))
_HDF5 = "usps.h5"
_SIDE = 16
_PIXELS = _SIDE**2
_PIECE = 1 << 20
_MOST_PIECES = 64  # of an unpacked text, of which the larger has about 20 MB
_MOST_ROWS = 1 << 16


class Usps(BaseDataset):
    """Handwritten digits of ZIP codes: the rows of the train file, followed by those of the test file.

    In the published files rows 0 to 7,290 are train and 7,291 to 9,297 test. Factors are ``digit`` and ``split``. The
    only modality is ``image``, (16, 16, 1) uint8 grayscale: 0 is the background. The texts are read once and kept in
    the cache.

    Parameters
    ----------
    files : sequence of Path
        The texts of train and test, or the HDF5 file.

    Raises
    ------
    DataError
        When a file is damaged, or does not have the published content.

    """

    name = "usps"

    def __init__(self, *files: Path) -> None:
        self._source = files[0].parent
        parts = [_kept(path, "") for path in files] if len(files) == 2 else [_kept(files[0], each) for each in _SPLITS]
        self._images = np.concatenate([part[:, 1:] for part in parts]).reshape(-1, _SIDE, _SIDE, 1)
        columns = {
            Factor("digit", Kind.NOMINAL, tuple(range(10))): np.concatenate([part[:, 0] for part in parts]),
            Factor("split", Kind.NOMINAL, _SPLITS, role="split"): np.repeat(
                np.arange(2), [len(each) for each in parts]
            ),
        }
        self.factors = table_of(columns)
        self.modalities = {"image": Modality((_SIDE, _SIDE, 1), "uint8", color="grey")}

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        return gather(self._images, rows, out)


def open(root: Path | str | None = None) -> Usps:
    """Open USPS.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``usps.bz2`` and ``usps.t.bz2``, unpacked or not, or with ``usps.h5``; or with a folder ``usps``
        that has them; None for the default folders.

    Raises
    ------
    DataError
        When a file is missing (the message shows the command that fetches it), or damaged.

    """
    from setsup.files import find_root

    wanted = [[*names, _HDF5] for names in _TEXTS]
    folder = find_root("usps", root, wanted)
    texts = [next((folder / name for name in names if os.path.exists(folder / name)), None) for names in _TEXTS]
    found = [path for path in texts if path is not None]
    return Usps(*(found if len(found) == 2 else [folder / _HDF5]))


def _kept(path: Path, group: str) -> Array:
    """Digit and pixels of each image of a text, or of a group of an HDF5 file, (n, 257) uint8."""
    refuse_pointer(path)
    need_regular(path)
    with read_errors(path):
        state = path.stat()
    told = repr((str(path.resolve()), group, state.st_size, state.st_mtime_ns))
    kept = cache_folder() / "prepared" / hashlib.sha256(os.fsencode(told)).hexdigest()[:32] / "usps.npy"
    return cached_npy(
        kept,
        lambda array: array.dtype == np.uint8 and array.shape[1:] == (1 + _PIXELS,),
        lambda: _read_group(path, group) if group else _read_text(path),
    )


def _read_text(path: Path) -> Array:
    content = _unpacked(path)
    numbers = _numbers(content, path)
    label, index, value = numbers[:, 0], numbers[:, 1::2], numbers[:, 2::2]
    wrong = (index != np.arange(1, 1 + _PIXELS)).any(1) | ~np.isin(label, np.arange(1, 11)) | ~(abs(value) <= 1).all(1)
    if wrong.any():
        raise _wrong_line(path, int(np.argmax(wrong)))
    return _rows(label - 1, (value.astype(np.float32) + 1) / 2)


def _unpacked(path: Path) -> bytes:
    with read_errors(path), path.open("rb") as raw:
        packed = raw.read(3) == b"BZh"
    try:
        with read_errors(path), bz2.open(path) if packed else path.open("rb") as file:
            pieces: list[bytes] = []  # a read of the limit at once would take that much memory
            while (piece := file.read(_PIECE)) and len(pieces) <= _MOST_PIECES:
                pieces.append(piece)
    except EOFError as error:
        raise DamagedFile(f"{path} is truncated: its last block is incomplete") from error
    if len(pieces) > _MOST_PIECES:
        raise DamagedFile(f"{path} has more than {_MOST_PIECES} MiB of text")
    return b"".join(pieces)


def _numbers(content: bytes, path: Path) -> Array:
    """Numbers of a text, (n, 513): the label, then the number and the value of each pixel."""
    for row, line in enumerate(content.splitlines()):
        if line.count(b":") != _PIXELS:
            raise _wrong_line(path, row)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy stops at what is no number with a warning only
            numbers = np.fromstring(content.replace(b":", b" ").decode("ascii"), np.float64, sep=" ")
    except (DeprecationWarning, ValueError) as error:
        raise DamagedFile(f"{path} has something other than numbers in its lines") from error
    if not len(numbers) or len(numbers) % (1 + 2 * _PIXELS):
        raise DamagedFile(f"{path} has {len(numbers):,} numbers; expected a positive multiple of {1 + 2 * _PIXELS}")
    return numbers.reshape(-1, 1 + 2 * _PIXELS)


def _wrong_line(path: Path, row: int) -> DamagedFile:
    return DamagedFile(f"{path}: line {row + 1} is not a label from 1 to 10 and 256 values from -1 to 1, 1:-1 2:0.5 …")


def _read_group(path: Path, group: str) -> Array:
    with h5_open(path) as file:
        stored = [h5_dataset(path, file, f"{group}/{name}") for name in ("data", "target")]
        (count, *pixels), labels = stored[0].shape or (0,), stored[1].shape
        if pixels != [_PIXELS] or labels != (count,) or not 0 < count <= _MOST_ROWS:
            raise DamagedFile(
                f"{path}: {group} has data of shape {stored[0].shape} and a target of shape {labels}; expected (n, "
                "256) and (n,)"
            )
        with h5_errors(path):
            values, digits = (np.asarray(each[()]) for each in stored)
    if values.dtype.kind != "f" or digits.dtype.kind not in "ui":
        raise DamagedFile(f"{path}: {group} has data of dtype {values.dtype} and a target of dtype {digits.dtype}")
    wrong = ~((values >= 0) & (values <= 1)).all(1) | ~np.isin(digits, np.arange(10))
    if wrong.any():
        raise DamagedFile(
            f"{path}: row {int(np.argmax(wrong))} of {group} has a digit beyond 0 to 9, or a value beyond 0 to 1"
        )
    return _rows(digits, values.astype(np.float32))


def _rows(digits: Array, shades: Array) -> Array:
    """Digits, and pixels of shades from 0 to 1, as bytes."""
    return np.column_stack([digits.astype(np.uint8), (shades * np.float32(255)).astype(np.uint8)])
