"""Lists of pairs in CSV files, in a release or next to it."""

import csv
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path

from setsup.errors import DamagedFile, abbreviate
from setsup.files.archives.members import MemberIndex
from setsup.files.roots import data_places
from setsup.files.texts import Place, comma_separated, find_beside, text_of

__all__ = ["find_list", "read_rows"]

_NAME = re.compile(r"[^/\\]+\.(?:jpg|png)")


def find_list(members: MemberIndex, name: str, root: Path | None, files: Sequence[str]) -> Place | None:
    """Find the first of some files: in the release of a benchmark, in the folder around it, or in its folders."""
    source = members.source
    inner = source / members.prefix if os.path.isdir(source) else source
    folders = [inner.parent, source if os.path.isdir(source) else source.parent, *data_places(name, root)]
    return find_beside(members, [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder)], files)


def read_rows(content: bytes, label: str, columns: int) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a list whose first two columns are paths of images; rows have at least so many columns."""
    text = text_of(comma_separated(content), label)
    try:
        lines = [line for line in csv.reader(io.StringIO(text, newline="")) if line]
    except csv.Error as error:
        raise DamagedFile(f"{label} could not be parsed as CSV: {error}") from None
    if len(lines) < 2:
        raise DamagedFile(f"{label} lists no pairs; expected a line of heads, and a line for each pair")
    for number, line in enumerate(lines[1:], 2):
        if len(line) < columns:
            raise DamagedFile(f"{label}: line {number} has {len(line)} columns; expected {columns}")
        for path in line[:2]:
            if _NAME.fullmatch(path.rpartition("/")[2]) is None:
                raise DamagedFile(f"{label}: line {number} has {abbreviate(path)}; expected the path of an image")
    return lines[0], lines[1:]
