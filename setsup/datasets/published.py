"""Compare an opened release with its manifest: whether it is the right release, and whether it is complete.

The names of levels identify a release: a level that the manifest does not list belongs to another dataset, and is
refused. The number of rows shows whether it is complete: fewer rows are a part of the release, more rows are another
edition or other files; each gives one warning. This check applies to all adapters.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.dataset import Dataset, Selection
from setsup.errors import DataError, advice
from setsup.factors import Factor, FactorTable
from setsup.files import Manifest, ManifestFactor, ManifestPartial
from setsup.files.roots import some

__all__ = ["Counts", "check_published", "count_published"]

_TELLING = 3  # levels of a factor whose absent ones are named
_NAMED = 2  # factors of which they are
_SPLIT = "split"
_FEW = 1 << 20  # combinations of levels that are counted one by one

_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class Counts:
    """Samples that are present, and the least and the most that editions of what is there have."""

    there: int
    fewest: int
    most: int

    @property
    def complete(self) -> bool:
        """Whether no published sample is missing."""
        return self.there >= self.fewest


def check_published(dataset: Dataset, manifest: Manifest, options: Mapping[str, Any], left_out: int = 0) -> None:
    """Refuse another dataset's files, and warn once if the number of rows or levels differs from the manifest.

    `options` are those with which the dataset was opened; `left_out` rows have already been reported by a warning.

    Raises
    ------
    DataError
        When a factor has levels that the manifest does not list.

    """
    messages: list[str] = []
    if not any(option in options for option, _ in manifest.samples_by_option):
        _refuse_unknown(dataset, manifest)
        messages = _beyond(dataset.factors, manifest)
    counts = count_published(dataset, manifest, options)
    if counts is not None and counts.there + left_out < counts.fewest:
        messages.insert(0, _fewer(dataset, manifest, counts))
    elif counts is not None and counts.there > counts.most:
        messages.insert(
            0,
            f"{counts.there:,} samples are present, but only {counts.most:,} were published; the additional samples "
            "are copies, or belong to another edition or dataset",
        )
    elif counts is not None:
        messages += _fuller(dataset.factors, manifest)
    if messages:
        _log.warning("%s: %s", manifest.name, "; ".join(messages))


def count_published(dataset: Dataset, manifest: Manifest, options: Mapping[str, Any]) -> Counts | None:
    """Count the samples of a whole dataset and those that were published; None if the published number is unknown.

    If parts of the release are separate downloads, the available parts are counted.
    """
    whole = dataset.source if isinstance(dataset, Selection) else dataset
    there = len(whole.factors)
    for option, known in manifest.samples_by_option:
        if option in options:
            number = dict(known).get(options[option]) if isinstance(options[option], str | int | float) else None
            return None if number is None else Counts(there, number, number)
    published = () if manifest.samples is None else (manifest.samples, *manifest.editions)
    whole_release = Counts(there, min(published), max(published)) if published else None
    if whole_release is not None and whole_release.fewest <= there <= whole_release.most:
        return whole_release
    if manifest.partial is None or not _tells(whole.factors, manifest.partial.by):
        return whole_release
    return _of_parts(whole.factors, manifest, manifest.partial, whole_release)


def _tells(table: FactorTable, names: Sequence[str]) -> bool:
    """Whether a table tells the parts of a release."""
    return len(table) > 0 and all(name in table and not table[name].continuous for name in names)


def _of_parts(
    table: FactorTable, manifest: Manifest, partial: ManifestPartial, whole_release: Counts | None
) -> Counts | None:
    """Count what the parts that are present have; None where their numbers are not known."""
    sizes = [len(table[name]) + 1 for name in partial.by]
    # the last of each factor stands for unknown
    codes = [_known(table, name, size - 1) for name, size in zip(partial.by, sizes, strict=True)]
    cell = np.ravel_multi_index(codes, sizes)
    cells = np.flatnonzero(np.bincount(cell)) if math.prod(sizes) < _FEW else np.unique(cell)
    parts = np.unravel_index(cells, sizes)
    if partial.samples is None:
        counts = {factor.name: factor.count for factor in manifest.factors}
        named = zip(partial.by, parts, sizes, strict=True)
        lacks = any(len(np.unique(part[part < size - 1])) < (counts[name] or 0) for name, part, size in named)
        return None if lacks else whole_release
    if isinstance(partial.samples, int):
        return Counts(len(table), partial.samples * len(cells), partial.samples * len(cells))
    levels, known = table[partial.by[0]].levels or (), dict(partial.samples)
    numbers = [known.get(levels[code], (0,)) if code < len(levels) else (0,) for code in parts[0].tolist()]
    return Counts(len(table), sum(map(min, numbers)), sum(map(max, numbers)))


def _known(table: FactorTable, name: str, unknown: int) -> npt.NDArray[np.int64]:
    codes = table.codes(name).astype(np.int64)
    return np.where((codes < 0) | (codes >= unknown), unknown, codes)


def _told(table: FactorTable, manifest: Manifest) -> list[tuple[ManifestFactor, Factor]]:
    """Factors of the manifest that the table has; what optional files would tell is not in every release."""
    return [(told, table[told.name]) for told in manifest.factors if told.name in table]


def _refuse_unknown(dataset: Dataset, manifest: Manifest) -> None:
    for told, factor in _told(dataset.factors, manifest):
        if not isinstance(told.levels, tuple) or factor.levels is None:
            continue
        known = set(told.levels)
        unknown = [level for level in factor.levels if level not in known]
        if not unknown:
            continue
        alike = {_alike(level) for level in told.levels}
        unknown = [level for level in unknown if _alike(level) not in alike]
        if unknown:
            raise DataError(
                f"{manifest.name}: the files contain unknown levels of {told.name}: "
                f"{some([str(level)[:60] for level in unknown])}; {manifest.title} has "
                f"{some([str(each) for each in told.levels])}, so the files belong to another dataset; pass the folder "
                f"of {manifest.name} ({advice('root=', '--root')}), or open the files under their own name or as a "
                "folder of images"
            )


def _alike(level: object) -> object:
    """What copies of a release, which write "hot air balloon" as "Hot_air-balloon", agree in."""
    return "".join(each for each in level.casefold() if each.isalnum()) if isinstance(level, str) else level


def _beyond(table: FactorTable, manifest: Manifest) -> list[str]:
    """Say which factors contradict the manifest otherwise."""
    messages = []
    for told, factor in _told(table, manifest):
        if told.count is not None and factor.levels is None:
            messages.append(f"{told.name} is continuous, but the manifest specifies {told.count:,} levels")
        elif told.count is not None and len(factor.levels or ()) > told.count:
            messages.append(f"{told.name} has {len(factor):,} levels, but the manifest specifies {told.count:,}")
    return messages


def _fuller(table: FactorTable, manifest: Manifest) -> list[str]:
    """Say which published splits have more rows than published, as when the files of two splits are swapped."""
    published = {split.name: split.rows[1] - split.rows[0] for split in manifest.splits if split.rows is not None}
    levels = table[_SPLIT].levels if _SPLIT in table else None
    if manifest.editions or not levels:
        return []
    rows = dict(zip(levels, table.counts(_SPLIT).tolist(), strict=True))
    return [
        f"the split {name} has {rows[name]:,} samples, but only {number:,} were published; it may contain the files of "
        "another split"
        for name, number in published.items()
        if rows.get(name, 0) > number
    ]


def _fewer(dataset: Dataset, manifest: Manifest, counts: Counts) -> str:
    """Say how many samples are there, and which categories and the like are wholly absent."""
    absent = []
    for told, factor in _told(dataset.factors, manifest):
        if told.kind != "nominal" or told.role != "variation" or not isinstance(told.levels, tuple):
            continue
        if len(told.levels) < _TELLING or factor.levels is None:
            continue
        rows = dict(zip(map(_alike, factor.levels), dataset.factors.counts(told.name).tolist(), strict=True))
        lost = [str(level) for level in told.levels if not rows.get(_alike(level))]
        if lost:
            absent.append(f"{told.name} {some(lost)}")
    none = f", with none of {' or of '.join(absent[:_NAMED])}" if absent else ""
    return (
        f"{counts.there:,} of the {counts.fewest:,} published samples are present{none}; fetch or unpack the release "
        "again, unless you want only a part of it"
    )
