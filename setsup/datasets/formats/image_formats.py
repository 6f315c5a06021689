"""Supported image formats: formats of Pillow, and their file extensions."""

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from setsup.optional import command, installed

__all__ = ["ENDINGS", "KNOWN_ENDINGS", "ending_pattern", "image_endings", "missing_plugins", "pillow_formats"]

ENDINGS = (
    *(".bmp", ".gif", ".jfif", ".jp2", ".jpe", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm"),
    *(".tif", ".tiff", ".webp"),
)
"""File extensions of images on every installation, in any case; see :func:`image_endings` for all."""

# bitmaps only: Pillow hands EPS to another program, and some old formats have decoders that nobody looks after
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "JPEG2000")


class _Plugged(NamedTuple):
    """A format that Pillow reads with a plug-in: its endings, and modules that add it, the first to be named."""

    endings: tuple[str, ...]
    modules: tuple[str, ...]


_PLUGGED = {
    "AVIF": _Plugged((".avif",), ("pillow_avif",)),  # a part of Pillow itself since 11.3
    "HEIF": _Plugged((".heic", ".heif", ".hif"), ("pillow_heif", "pi_heif")),
}


KNOWN_ENDINGS = (*ENDINGS, *(ending for plugin in _PLUGGED.values() for ending in plugin.endings))
"""File extensions of all images, including those that require a plug-in."""


def image_endings() -> tuple[str, ...]:
    """File extensions of images on this installation, in lower case; AVIF and HEIC if Pillow has the plug-in.

    Examples
    --------
    >>> set(ENDINGS) <= set(image_endings())
    True

    """
    return (*ENDINGS, *(ending for name, plugin in _PLUGGED.items() if _plugged(name) for ending in plugin.endings))


def pillow_formats() -> tuple[str, ...]:
    """Pillow's names of the formats that images may have."""
    return (*_FORMATS, *(name for name in _PLUGGED if _plugged(name)))


def ending_pattern(endings: tuple[str, ...] | None = None) -> str:
    """Regular expression (RE2) of the endings, all of :func:`image_endings` by default; it ignores case.

    Examples
    --------
    >>> ending_pattern((".jpg", ".png"))
    '(?i:[.](?:jpg|png))'

    """
    chosen = image_endings() if endings is None else endings
    return f"(?i:[.](?:{'|'.join(ending.removeprefix('.') for ending in chosen)}))"


def missing_plugins(names: Any) -> str:
    """Report how many files need a Pillow plug-in that is not installed; empty if there are none.

    `names` pyarrow array of file names.

    """
    import pyarrow.compute as pc

    missing = []
    for name, plugin in _PLUGGED.items():
        if _plugged(name):
            continue
        count = pc.sum(pc.match_substring_regex(names, ending_pattern(plugin.endings) + "$")).as_py() or 0
        if count:
            files = "1 file ends" if count == 1 else f"{count:,} files end"
            endings = " or ".join(plugin.endings)
            missing.append(
                f"{files} in {endings}, which Pillow cannot decode without a plug-in: {command(plugin.modules[:1])}"
            )
    return "; ".join(missing)


def _plugged(name: str) -> bool:
    """Whether Pillow decodes a format; a plug-in that is installed is registered, one a user registered is found."""
    from PIL import Image

    # Pillow lists its own reader of AVIF where it was built without it too
    return _is_built_in(name) or (name != "AVIF" and name in Image.OPEN) or _registered(name)


@cache
def _is_built_in(name: str) -> bool:
    from PIL import features

    known = name.lower()
    return known in features.modules and features.check_module(known)


@cache
def _registered(name: str) -> bool:
    """Register the first plug-in for a format that is installed and works."""
    from PIL import Image

    for module in filter(installed, _PLUGGED[name].modules):
        try:
            plugin = import_module(module)
            if name == "HEIF":
                plugin.register_heif_opener()
        except Exception:  # whatever a plug-in fails with that does not fit this Pillow or this machine
            continue
        if name in Image.OPEN:
            return True
    return False
