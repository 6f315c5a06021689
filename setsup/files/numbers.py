"""Numbers in text, as mesh and point-cloud files have them, and the error for a malformed file."""

from typing import NoReturn

import numpy as np
import numpy.typing as npt

from setsup.errors import DamagedFile

__all__ = ["numbers", "refuse"]

_ASCII = b"0123456789+-.eE \t\r\n\v\fnNaAiIfF"  # numbers, NaN and infinity among them
_LAST_WORD = b" -1.2345678e-300"


def refuse(label: str, what: str) -> NoReturn:
    """Raise the error for a malformed file."""
    raise DamagedFile(f"{label} {what}")


def numbers(text: bytes, label: str) -> npt.NDArray[np.float64]:
    """Read numbers that are separated by white space."""
    if text.translate(None, _ASCII):
        refuse(label, "contains characters that cannot be part of a number")
    try:
        # numpy stops at a word that it cannot read, with a warning at most: then the last number does not come out
        values = np.fromstring(text + _LAST_WORD, np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        values = np.empty(0)
    if not len(values) or values[-1] != float(_LAST_WORD):
        refuse(label, "contains a word that is not a number")
    return values[:-1]
