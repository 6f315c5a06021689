"""Lists of materials of OBJ files (MTL)."""

import re
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["Entry", "map_options", "read_mtl"]

_COUNTS = MappingProxyType(
    {"-s": 3, "-o": 3, "-t": 3, "-mm": 2, "-boost": 1, "-bm": 1, "-texres": 1}
    | dict.fromkeys(("-blendu", "-blendv", "-cc", "-clamp", "-imfchan", "-type", "-colorspace"), 1)
)
"""Most words that options of maps take."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_TEXTS = frozenset(("-blendu", "-blendv", "-cc", "-clamp", "-imfchan", "-type", "-colorspace"))


@dataclass(slots=True)
class Entry:
    """What stands below a ``newmtl``.

    Attributes
    ----------
    color : 3 floats or None
        Kd.
    map : str
        What stands behind the last map_Kd: options and the name of a file.
    dissolved : bool
        It is transparent.

    """

    color: tuple[float, float, float] | None = None
    map: str = ""
    dissolved: bool = False


@dataclass(slots=True)
class MapOptions:
    """Options of a map: words by option, and the name of the file behind them."""

    name: str
    words: dict[str, list[str]] = field(default_factory=dict)

    def pair(self, option: str, default: float) -> tuple[float, float]:
        """First two numbers of an option; what is missing is as the first one for -s, and the default for others."""
        numbers = [float(word) for word in self.words.get(option, [])]
        if not numbers:
            return default, default
        return numbers[0], numbers[1] if len(numbers) > 1 else default


def map_options(text: str) -> MapOptions:
    """Split what stands behind a map.

    Examples
    --------
    >>> map_options("-s 2 2 1 -clamp on my tex.png")
    MapOptions(name='my tex.png', words={'-s': ['2', '2', '1'], '-clamp': ['on']})

    """
    options, left = MapOptions(text.strip()), text.strip()
    while True:
        option, _, rest = left.partition(" ")
        most = _COUNTS.get(option.strip().lower())
        if most is None or not rest.strip():
            options.name = left
            return options
        left, words = rest.strip(), list[str]()
        while len(words) < most:
            word, _, rest = left.partition(" ")
            if not rest.strip() or not (option.lower() in _TEXTS or _NUMBER.fullmatch(word)):
                break
            words.append(word)
            left = rest.strip()
        options.words[option.lower()] = words


def read_mtl(content: bytes) -> dict[str, Entry]:
    """Materials by name; of two of one name the later one, as in most readers."""
    entries: dict[str, Entry] = {}
    entry = None
    for line in content.decode("utf-8", "replace").splitlines():
        key, _, text = line.strip().replace("\t", " ").partition(" ")
        key, text = key.lower(), text.strip()
        if key == "newmtl" and text:
            entry = entries[text] = Entry()
        if entry is None or not text:
            continue
        if key == "kd":
            entry.color = _color(text) or entry.color
        elif key == "map_kd":
            entry.map = text
        elif key == "map_d":
            entry.dissolved = True
        elif key == "d":
            values = [word for word in text.split() if _NUMBER.fullmatch(word)]
            entry.dissolved |= bool(values) and float(values[-1]) < 1
    return entries


def _color(text: str) -> tuple[float, float, float] | None:
    """Three numbers, or one for all; None for spectra and damage."""
    try:
        values = [float(word) for word in text.partition("#")[0].split()]
    except ValueError:
        return None
    if not values or not all(abs(value) < 1e6 for value in values):
        return None
    # green and blue are as red where they do not stand there
    red, green, blue = values[:3] if len(values) > 2 else values[:1] * 3
    return red, green, blue
