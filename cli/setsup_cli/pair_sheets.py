"""What ``setsup pairs`` writes and prints, whatever the pairs of views are of."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.errors import DataError
from setsup.files.expand_user import expanded
from setsup_cli.output import say, say_prose, show_json, show_table
from setsup_cli.output_paths import moved, write_image
from setsup_cli.parsing.values import check_image

if TYPE_CHECKING:
    from setsup.correspondence import PixelPairs
    from setsup.datasets import Dataset

__all__ = ["check_options", "count_statuses", "show_pairs"]

_STATUSES = ("visible", "occluded", "outside", "no_surface", "unknown")


def check_options(options: Any) -> Path:
    """Check the options of sheets; returns the path of the image."""
    for name in ("draws", "lines"):
        if getattr(options, name) < 1:
            raise DataError(f"--{name} must be 1 or more, not {getattr(options, name)}")
    out = expanded(options.out)
    check_image(out)
    return out


def count_statuses(pairs: "PixelPairs", unknown: bool = False) -> dict[str, int]:
    """Numbers of pixels by status; unknown ones if asked for."""
    import numpy as np

    names = _STATUSES if unknown else _STATUSES[:4]
    counts = np.bincount(pairs.status, minlength=len(names)).tolist()
    return dict(zip(names, counts, strict=True))


def show_pairs(
    options: Any,
    dataset: "Dataset",
    pairs: "Sequence[PixelPairs]",
    about: Sequence[Mapping[str, Any]],
    columns: Mapping[str, Sequence[str]],
    captions: Sequence[str],
    title: str,
    head: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> None:
    """Write the sheet, and print a table with a line for each pair: `columns` by their heads, and its counts.

    `about` has for each pair its ``rows`` and its counts; JSON has `head` and these.
    """
    from setsup.reports import match_sheet

    images = [
        (dataset.fetch(first, ["image"])["image"], dataset.fetch(second, ["image"])["image"])
        for first, second in (pair["rows"] for pair in about)
    ]
    sheet = match_sheet(images, pairs, captions, title, shown=options.lines)
    asked = check_options(options)
    out = write_image(sheet, asked, force=options.force)
    if options.json:
        show_json({**head, "pairs": list(about), "file": str(out)})
        return
    statuses = [name for name in _STATUSES if name in about[0]]
    body = [
        [*(column[number] for column in columns.values()), *(f"{pair[name]:,}" for name in statuses)]
        for number, pair in enumerate(about)
    ]
    for note in notes:
        say_prose(note)
    show_table([*columns, *statuses], body, right=statuses)
    say()
    for line in (*moved(asked, out), str(out)):
        say(line)
