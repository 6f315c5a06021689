"""Which tars an address means: those of a folder or store, one, or those that a pattern with numbers names."""

import math
import re
from itertools import product
from pathlib import Path

from setsup.errors import DataError
from setsup.files.expand_user import expanded
from setsup.files.manifests.validators import relative
from setsup.shards.stores.store import Store

__all__ = ["split_address", "tar_names"]

_MOST = 1_000_000  # tars that a pattern may name
_NUMBERS = re.compile(r"\{(\d{1,12})\.\.(\d{1,12})\}")
_PACKED = re.compile(r"\.(tar\.[a-z0-9]+|tgz|tbz2?|txz|tzst)$", re.IGNORECASE)


def split_address(url: str | Path) -> tuple[str, tuple[str, ...] | None]:
    """Part an address into that of a folder and the names of tars in it; None for all tars that are there."""
    text = str(url)
    if "://" not in text and expanded(text).is_dir():
        return text, None
    brace = text.find("{")
    cut = text.rfind("/", 0, brace if brace >= 0 else None)
    folder, last = (text[: cut + 1], text[cut + 1 :]) if cut >= 0 else (".", text)
    folder = folder.rstrip("/") or "/"
    if brace >= 0 or "}" in text:
        return folder, _expanded(last, text)
    if last.lower().endswith(".tar") and cut >= 0 and not folder.endswith(":"):
        return folder, (last,)
    return (folder, (last,)) if last.lower().endswith(".tar") and cut < 0 else (text, None)


def tar_names(store: Store, wanted: tuple[str, ...] | None) -> tuple[list[str], list[str]]:
    """Names of the tars of a store, in order, and of packed ones, which cannot be read in part."""
    names = list(store.names() if wanted is None else wanted)
    tars = [name for name in names if name.lower().endswith(".tar")]
    packed = [name for name in names if _PACKED.search(name)]
    if not tars and packed:
        raise DataError(
            f"{store.url}: {packed[0]} is compressed as a whole, which prevents random access; decompress it to a "
            "plain tar (gunzip)"
        )
    if not tars:
        web = (
            "; web servers do not list files, so list them, as in data-{000000..000099}.tar"
            if store.url.startswith("http")
            else ""
        )
        raise DataError(f"no tars found in {store.url}; pass the folder or address that contains them{web}")
    for name in tars:
        try:
            relative(name)
        except ValueError as error:
            raise DataError(f"{store.url}: invalid name {name!r} of a tar: expected {error}; rename it") from None
    return tars, packed


def _expanded(pattern: str, address: str) -> tuple[str, ...]:
    parts = _NUMBERS.split(pattern)
    plain, bounds = parts[::3], list(zip(parts[1::3], parts[2::3], strict=True))
    if any(sign in part for part in plain for sign in "{}"):
        raise DataError(f"{address}: braces must contain a range of numbers, as in data-{{000000..000099}}.tar")
    counts = [int(last) - int(first) + 1 for first, last in bounds]
    if min(counts) < 1 or math.prod(counts) > _MOST:
        raise DataError(f"{address} must expand to between 1 and {_MOST:,} tars, not {max(0, math.prod(counts)):,}")
    names = []
    for numbers in product(*(range(int(first), int(last) + 1) for first, last in bounds)):
        text = plain[0]
        for number, (first, last), part in zip(numbers, bounds, plain[1:], strict=True):
            padded = any(bound[0] == "0" and bound != "0" for bound in (first, last))
            text += str(number).zfill(max(len(first), len(last)) if padded else 0) + part
        names.append(text)
    return tuple(dict.fromkeys(names))
