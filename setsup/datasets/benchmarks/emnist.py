"""EMNIST: handwritten digits and letters of NIST's Special Database 19, in six parts in the format of MNIST.

Convention
----------
The published files store images column by column; here images are upright. Labels of ``letters`` count from 1.
"""

import string
from pathlib import Path
from typing import Literal

from setsup.checks import check_choice
from setsup.datasets.benchmarks.idx_images import IdxImages, release
from setsup.errors import DataError
from setsup.factors import Factor, Kind

__all__ = ["open"]

# letters whose small form is written like the large one are one class in two of the parts
_MERGED = (*string.digits, *string.ascii_uppercase, *"abdefghnqrt")
_CHARACTERS: dict[str, tuple[str, ...]] = {
    "byclass": (*string.digits, *string.ascii_uppercase, *string.ascii_lowercase),
    "bymerge": _MERGED,
    "balanced": _MERGED,
    "letters": tuple(string.ascii_lowercase),
    "digits": tuple(string.digits),
    "mnist": tuple(string.digits),
}


def open(
    root: Path | str | None = None,
    part: Literal["byclass", "bymerge", "balanced", "letters", "digits", "mnist"] = "balanced",
) -> IdxImages:
    """Open one part of EMNIST.

    `part`: ``byclass`` has 814,255 images of 62 characters, ``bymerge`` the same images of 47 characters (lower-case
    letters that look like their capitals are merged), ``balanced`` 131,600 of these, equally many of each; ``letters``
    145,600 of 26 letters in both cases; ``digits`` 280,000 and ``mnist`` 70,000 digits.

    References
    ----------
    .. [1] Cohen, Afshar, Tapson, van Schaik, "EMNIST: an extension of MNIST to handwritten letters", 2017 (arXiv
       1702.05373).

    """
    check_choice(part, list(_CHARACTERS), "part", DataError)
    prefixes = [f"emnist-{part}-{split}" for split in ("train", "test")]
    label = Factor("character", Kind.NOMINAL, _CHARACTERS[part])
    folder = release("emnist", root, prefixes)
    return IdxImages("emnist", folder, label, prefixes, first=int(part == "letters"), transposed=True)
