"""SVHN, cropped: digits of house numbers in 32 × 32 pixels, from the published MAT files.

Convention
----------
``train_32x32.mat``, ``test_32x32.mat`` and ``extra_32x32.mat`` (MAT version 5) each have ``X``, (32, 32, 3, n) uint8,
and ``y``, (n, 1), the digits, with 10 for the digit 0.

References
----------
.. [1] Y. Netzer, T. Wang, A. Coates, A. Bissacco, B. Wu, A. Y. Ng, "Reading Digits in Natural Images with Unsupervised
   Feature Learning", NIPS Workshop on Deep Learning and Unsupervised Feature Learning 2011.

"""

import hashlib
import logging
import os
import threading
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np

from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.inconsistent import count_mismatch, replaced
from setsup.datasets.adapters.prepared_images import convert, prepare_command
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.cached_arrays import cached_npy
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.matlab.mat import read_mat
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.files import cache_folder
from setsup.files.disk import need_regular, read_errors
from setsup.files.lfs import refuse_pointer
from setsup.files.prepared import PreparedArray

__all__ = ["Svhn", "open", "prepare"]

_FILES = {"train": "train_32x32.mat", "test": "test_32x32.mat", "extra": "extra_32x32.mat"}
_IMAGE = (32, 32, 3)
_MOST = 2_000_000_000  # bytes of a file, and of its images, of which extra has 1.63 GB
_BLOCK = 8192

_log = logging.getLogger("setsup")


class _Held:
    """Images of the files that this process has read."""

    def __init__(self) -> None:
        self.lock, self.images = threading.Lock(), dict[int, Array]()


class Svhn(BaseDataset):
    """Digits of house numbers: the rows of the train file, followed by those of the test file and of the extra file.

    In the published files rows 0 to 73,256 are train, 73,257 to 99,288 test and 99,289 to 630,419 extra. Factors are
    ``digit`` and ``split``. The only modality is ``image``, (32, 32, 3) uint8 sRGB. It is mapped from the arrays that
    :func:`prepare` makes if they exist; otherwise each process reads the MAT file that it needs into memory.

    Parameters
    ----------
    folder : Path or str
        Folder of the files; that of extra may be missing.
    root : Path or str, optional
        Root passed by the user, for the command in messages.

    Raises
    ------
    DataError
        When a file is missing, damaged or not the expected one.

    """

    name = "svhn"

    def __init__(self, folder: Path | str, root: Path | str | None = None) -> None:
        self.folder = self._source = Path(folder)
        self._command = prepare_command(self.name, root)
        parts = [part for part, name in _FILES.items() if os.path.exists(self.folder / name)]
        paths = [self.folder / _FILES[part] for part in parts]
        digits = [_digits(path) for path in paths]
        counts = [len(each) for each in digits]
        self._starts: Rows = np.cumsum([0, *counts])
        self._prepared = [
            PreparedArray(path, "images", (count, *_IMAGE), "uint8") for path, count in zip(paths, counts, strict=True)
        ]
        columns = {
            Factor("digit", Kind.NOMINAL, tuple(range(10))): np.concatenate(digits),
            Factor("split", Kind.NOMINAL, tuple(parts), role="split"): np.repeat(np.arange(len(parts)), counts),
        }
        self.factors = table_of(columns)
        self.modalities = {"image": Modality(_IMAGE, "uint8", color="srgb")}

    def prepare(self) -> list[Path]:
        """Convert the images of each file to an array that is mapped into memory; see :func:`prepare`."""
        paths = []
        for array in self._prepared:
            fill = partial(_fill, cache(partial(_read_images, array)))
            paths.append(convert(array, f"{self.name} {array.source.name}", _BLOCK, fill))
        del self._held  # from now on the arrays are read
        return paths

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        parts = np.searchsorted(self._starts, rows, side="right") - 1
        for part in np.unique(parts).tolist():
            here = parts == part
            out[here] = self._images(part)[rows[here] - self._starts[part]]
        return out

    @per_process
    def _held(self) -> _Held:
        return _Held()

    def _images(self, part: int) -> Array:
        held = self._held
        with held.lock:
            if part not in held.images:
                array = self._prepared[part]
                prepared = array.open()
                if prepared is None:
                    _log.warning(
                        "reading %s into memory (%s bytes in each process); run %s once to convert it",
                        *(array.source, f"{array.shape[0] * array.row_bytes:,}", self._command),
                    )
                held.images[part] = _read_images(array) if prepared is None else prepared
            return held.images[part]


def open(root: Path | str | None = None) -> Svhn:
    """Open SVHN, cropped digits.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``train_32x32.mat`` and ``test_32x32.mat``, and ``extra_32x32.mat`` where it is wanted; or with a
        folder ``svhn`` that has them; None for the default folders.

    Raises
    ------
    DataError
        When a file is missing (the message shows the command that fetches it), or damaged.

    """
    from setsup.files import find_root

    return Svhn(find_root("svhn", root, [_FILES["train"], _FILES["test"]]), root)


def prepare(root: Path | str | None = None) -> list[Path]:
    """Convert the images once to arrays that are mapped into memory, such as ``train_32x32.images.npy``.

    They are next to the MAT files or, if that location is read-only, in the cache folder. The extra file needs 5 GB of
    memory while it is converted.
    """
    return open(root).prepare()


def _digits(path: Path) -> Array:
    """Digits of a file, (n,) uint8: read once, since the images have to be passed over, and kept in the cache."""
    refuse_pointer(path)
    need_regular(path)
    with read_errors(path):
        state = path.stat()
    told = repr((str(path.resolve()), state.st_size, state.st_mtime_ns))
    kept = cache_folder() / "prepared" / hashlib.sha256(os.fsencode(told)).hexdigest()[:32] / "digits.npy"
    return cached_npy(kept, lambda array: array.dtype == np.uint8 and array.ndim == 1, lambda: _read_digits(path))


def _read_digits(path: Path) -> Array:
    labels = np.asarray(read_mat(path, str(path), ["y"], _MOST)["y"])
    if labels.ndim != 2 or labels.shape[1] != 1 or not labels.size or labels.dtype.kind not in "uif":
        raise DamagedFile(f"{path}: 'y' has dtype {labels.dtype} and shape {labels.shape}; expected numbers of (n, 1)")
    wrong = ~np.isin(labels[:, 0], np.arange(1, 11))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DamagedFile(
            f"{path}: the label of image {row} is {labels[row, 0]}; expected 1 to 10, where 10 is digit 0"
        )
    return np.asarray(labels[:, 0].astype(np.uint8) % np.uint8(10))


def _fill(images: Callable[[], Array], start: int, stop: int, out: Array) -> None:
    """Write rows of a block of a conversion."""
    out[...] = images()[start:stop]


def _read_images(array: PreparedArray) -> Array:
    """Images of a file, (n, 32, 32, 3): a view of what MATLAB stores."""
    path = array.source
    read = read_mat(path, str(path), ["X", "y"], _MOST)
    found, labels = np.asarray(read["X"]), np.asarray(read["y"])
    if found.ndim == 3:  # MATLAB has no last axis of length 1
        found = found[..., None]
    if found.dtype != np.uint8 or found.shape[:3] != _IMAGE:
        raise DamagedFile(
            f"{path}: 'X' has dtype {found.dtype} and shape {found.shape}; expected uint8 of shape (32, 32, 3, n)"
        )
    if found.shape[3] != labels.size:
        raise count_mismatch(f"{path}: 'X'", found.shape[3], "'y'", labels.size)
    if found.shape[3] != array.shape[0]:
        raise replaced(path)
    return found.transpose(3, 0, 1, 2)
