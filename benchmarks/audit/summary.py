"""The shares of broken batches of a sampler, in words and as a table: from what is kept alone, without any sampler."""

import statistics
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["Share", "share", "shares", "shown"]


class Share(NamedTuple):
    """Broken batches over batches, over the cells of a sampler that are not refused."""

    worst: float
    worst_cell: str
    median: float
    cells: int
    refused: int


def shares(found: dict[str, Any], entry: dict[str, Any]) -> dict[str, Share]:
    """The shares of a sampler, under each promise of its family; none where all cells are refused."""
    return {name: share(entry, place) for place, name in enumerate(found["families"][entry["family"]], 1)}


def share(entry: dict[str, Any], place: int) -> Share:
    """The share under the promise at a place of the counts."""
    counted = {cell: counts for cell, counts in entry["cells"].items() if not isinstance(counts, str)}
    refused = len(entry["cells"]) - len(counted)
    if not counted:
        return Share(float("nan"), "", float("nan"), 0, refused)
    by_cell = {cell: counts[place] / counts[0] for cell, counts in counted.items()}
    worst = max(by_cell, key=by_cell.__getitem__)
    return Share(by_cell[worst], worst, statistics.median(by_cell.values()), len(counted), refused)


def shown(found: dict[str, Any], entry: dict[str, Any]) -> Iterator[str]:
    """A sampler in words, a promise on a line."""
    dependency = f", {entry['dependency']}" if entry["dependency"] else ""
    yield f"{entry['name']} ({entry['version']}{dependency}; ranks: {entry['ranks']})"
    for name, value in shares(found, entry).items():
        own = " (its own)" if name in entry["own"] else ""
        if value.cells:
            yield (
                f"  {name}{own}: worst {value.worst:.1%} ({value.worst_cell}), median {value.median:.1%} of "
                f"{value.cells} cells, {value.refused} refused"
            )
        else:
            yield f"  {name}{own}: all {value.refused} cells refused"
