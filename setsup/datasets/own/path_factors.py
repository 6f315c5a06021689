"""Columns of factors from the paths of images, for a million of them at once."""

import logging
from typing import Any

import numpy as np

from setsup.arrays import Places
from setsup.datasets.own.path_pattern import PathPattern, suggest_pattern
from setsup.errors import DataError, short
from setsup.files.archives.listing import as_numpy
from setsup.files.archives.names import shown

__all__ = ["parent_folders", "read_fields"]

_SHOWN = 3
_LARGEST_32 = 3.4e38
_log = logging.getLogger("setsup")


def parent_folders(names: Any) -> Any:
    """Path of the folder that contains each file; ``"."`` for the top folder.

    `names` pyarrow large_string array of paths; returns one of as many.

    Examples
    --------
    >>> import pyarrow as pa
    >>> parent_folders(pa.array(["cats/1.png", "top.png"], pa.large_string())).to_pylist()
    ['cats', '.']

    """
    import pyarrow.compute as pc

    folders = pc.struct_field(pc.extract_regex(names, "(?s)^(?:(?P<folder>.*)/)?[^/]*$"), "folder")
    return pc.if_else(pc.equal(folders, ""), ".", folders)


def read_fields(pattern: PathPattern, names: Any, source: str) -> tuple[Places, dict[str, Any]]:
    """Read the fields of a pattern from paths; paths that do not match are left out, with a warning.

    Parameters
    ----------
    pattern : PathPattern
        The pattern.
    names : pyarrow large_string array of n strings
        Paths of images, relative to their folder.
    source : str
        That folder or archive, for messages.

    Returns
    -------
    places : (m,) int64
        Which of the paths match, ascending.
    columns : dict of str to pyarrow array of m values
        large_string, int64 or float64, by the types of the fields.

    Raises
    ------
    DataError
        When no path matches, or a number is too large.

    """
    import pyarrow.compute as pc

    matches = pc.extract_regex(names, _whole(pattern.expression))
    places = as_numpy(pc.indices_nonzero(matches.is_valid())).astype(np.int64)
    if not len(places):
        example = names[0].as_py()
        raise DataError(
            f"none of the {len(names):,} images of {source} matches the pattern {pattern.text!r}; the first image is "
            f"{shown(example)}, which matches {suggest_pattern(example)!r}"
        )
    others = names.filter(matches.is_null())
    matches, names = matches.take(places), names.take(places)
    groups = {name: pc.struct_field(matches, f"f{number}") for number, name in enumerate(pattern.types)}
    if len(others):
        _log.warning(
            "%s: %s of %s images do not match the pattern %r and are left out: %s; %s is read as %s",
            *(source, f"{len(others):,}", f"{len(names) + len(others):,}", pattern.text, _some(others)),
            *(shown(names[0].as_py()), _values(groups, 0)),
        )
    if pattern.longest is not None:
        _warn_if_unsure(pattern, names, groups, source)
    return places, {name: _typed(pattern.types[name], name, group, names) for name, group in groups.items()}


def _whole(expression: str) -> str:
    return f"^(?:{expression})$"


def _some(names: Any) -> str:
    """The first few of many names."""
    return ", ".join(map(shown, names[:_SHOWN].to_pylist())) + (", …" if len(names) > _SHOWN else "")


def _values(groups: dict[str, Any], row: int) -> str:
    """Values of the fields of one path."""
    return ", ".join(f"{name}={shown(group[row].as_py())}" for name, group in groups.items())


def _warn_if_unsure(pattern: PathPattern, names: Any, groups: dict[str, Any], source: str) -> None:
    """Warn about paths in which the pattern is ambiguous."""
    import pyarrow.compute as pc

    other = pc.extract_regex(names, _whole(pattern.longest or ""))
    differs = np.zeros(len(names), bool)
    for number, group in enumerate(groups.values()):
        differs |= np.asarray(pc.not_equal(group, pc.struct_field(other, f"f{number}")))
    if not differs.any():
        return
    first = int(np.argmax(differs))
    _log.warning(
        "%s: the pattern %r is ambiguous in %s of %s paths; %s is read as %s, with each field as short as possible, "
        "from left to right; if this is wrong, include more literal text in the pattern",
        *(source, pattern.text, f"{int(differs.sum()):,}", f"{len(names):,}"),
        *(shown(names[first].as_py()), _values(groups, first)),
    )


def _typed(kind: str, name: str, group: Any, names: Any) -> Any:
    """Values of a field; each distinct one is converted once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not kind:
        return group
    encoded = group.dictionary_encode()
    texts = pc.replace_substring_regex(encoded.dictionary, r"^[+]", "")
    try:
        values = texts.cast(pa.int64() if kind == "d" else pa.float64())
    except pa.ArrowInvalid:
        raise _too_large(name, kind, group, names, [not _fits(text) for text in texts.to_pylist()], encoded) from None
    if kind == "f" and (large := np.abs(as_numpy(values)) > _LARGEST_32).any():
        raise _too_large(name, kind, group, names, large, encoded)
    return values.take(encoded.indices)


def _fits(text: str) -> bool:
    # Python refuses to read integers of thousands of digits
    return len(text.lstrip("-0")) < 20 and -(2**63) <= int(text) < 2**63


def _too_large(name: str, kind: str, group: Any, names: Any, large: Any, encoded: Any) -> DataError:
    row = int(np.argmax(np.asarray(large, bool)[as_numpy(encoded.indices)]))
    what = "64 bits" if kind == "d" else "32-bit floating point"
    value = group[row].as_py()
    value = short(value, 40)
    return DataError(
        f"{shown(names[row].as_py())} has {name} = {value}, which does not fit in {what}; read it as text with "
        f"{{{name}}}"
    )
