"""Open one of a benchmark's named splits: published splits, splits of papers, and subsets."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.dataset import Dataset, Selection
from setsup.errors import DataError, FactorError, advice, did_you_mean
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.split import check_disjoint
from setsup.factors.split import split as drawn
from setsup.files import ManifestSplit

__all__ = ["open_split"]

_SPLIT = "split"
_REST = "none of the parts"

_log = logging.getLogger("setsup")


def open_split(dataset: Dataset, name: str, declared: Sequence[ManifestSplit] = ()) -> Dataset:
    """Keep the rows of a split, renumbered."""
    levels = dataset.factors[_SPLIT].levels or () if _SPLIT in dataset.factors else ()
    for split in declared:
        if split.name == name and split.where is not None and not split.drawn:
            return _subset(dataset, split.name, split.where)
        if not (split.drawn or split.factor):
            continue
        if split.name == name:
            return _split_parts(dataset, split)
        part = name.removeprefix(f"{split.name}-")
        if part != name:
            whole = _split_parts(dataset, split)
            if part in (whole.factors[_SPLIT].levels or ()):
                return _part(whole, part)
    if name not in levels:
        raise _unknown(dataset, name, [*_names(dataset.factors, declared), *map(str, levels)])
    for split in declared:
        if split.disjoint and not (split.where or split.drawn or split.factor):
            _check(dataset, dataset.factors, _SPLIT, split)
    return _part(dataset, name)


def _subset(dataset: Dataset, name: str, expression: str) -> Dataset:
    try:
        return dataset.where(expression)
    except FactorError as error:
        # a manifest speaks of the whole release, and the user may have a part of it
        why = str(error).partition("\n")[0]
        raise DataError(
            f"{dataset.name}: the split {name!r} (where {expression}) cannot be selected from the available files: "
            f"{why}"
        ) from error


def _part(dataset: Dataset, part: str) -> Dataset:
    levels = dataset.factors[_SPLIT].levels or ()
    rows = np.flatnonzero(dataset.factors.codes(_SPLIT) == levels.index(part))
    if not len(rows):
        raise DataError(
            f"{dataset.name} has no rows in the split {part!r}, because the release is incomplete; fetch or unpack the "
            "missing files"
        )
    return dataset.select(rows)


def _split_parts(dataset: Dataset, split: ManifestSplit) -> Dataset:
    """Rows of all parts of a split, with the parts as the factor ``split``."""
    if split.where is not None:
        dataset = _subset(dataset, split.name, split.where)
    table, names = dataset.factors, _part_names(split)
    if split.factor is not None:
        if split.factor not in table:
            raise DataError(
                f"{dataset.name} has no split {split.name!r}, because the files that define its parts are missing; "
                "fetch or unpack them"
            )
        names = [str(level) for level in table[split.factor].levels or ()]
        codes = table.codes(split.factor)
        _check(dataset, table, split.factor, split)
    else:
        try:
            codes = _draw(table, split) if split.test is None else _draw_beside(table, split, split.test)
        except FactorError as error:
            raise DataError(
                f"the split {split.name!r} of {dataset.name} cannot be created from the available files: {error}"
            ) from error
        _warn(dataset, codes, split)
    rows = np.flatnonzero((codes >= 0) & (codes < len(names)))
    if not len(rows):
        raise DataError(
            f"none of the available rows of {dataset.name} is in a part of the split {split.name!r}; fetch or unpack "
            "the missing files"
        )
    others = table.without([_SPLIT]) if _SPLIT in table else table
    factor = Factor(_SPLIT, Kind.NOMINAL, tuple(names), role="split")
    return Selection(dataset, rows, others.select(rows).with_factor(factor, codes[rows].astype(np.uint8)))


def _draw_beside(table: FactorTable, split: ManifestSplit, test: str) -> npt.NDArray[Any]:
    """Split the rows outside the test set; the test set is the last part."""
    chosen = np.zeros(len(table), bool)
    chosen[table.rows(test)] = True
    if not chosen.any():
        raise FactorError(f"no row satisfies {test}")
    last = len(split.drawn)
    codes = np.full(len(table), last)
    if not chosen.all():
        others = _draw(table.select(np.flatnonzero(~chosen)), split)
        codes[~chosen] = np.where(others < last, others, -1)  # where the shares leave some in no part
    if split.disjoint:
        parts = Factor(_REST, Kind.NOMINAL, tuple(_part_names(split)), role="split")
        check_disjoint(table.with_factor(parts, codes), _REST, split.disjoint)
    return codes


def _draw(table: FactorTable, split: ManifestSplit) -> npt.NDArray[Any]:
    shares = dict(split.drawn)
    rest = 1 - sum(shares.values())
    if rest > 1e-9:
        shares[_REST] = rest
    parts = drawn(
        table,
        shares,
        split.seed,
        name=f"{split.name} parts",
        stratify=split.stratify or None,
        disjoint=split.disjoint or None,
        rounding=split.rounding,
    )
    return parts.codes(f"{split.name} parts")


def _check(dataset: Dataset, table: FactorTable, factor: str, split: ManifestSplit) -> None:
    if not split.disjoint:
        return
    try:
        check_disjoint(table, factor, split.disjoint)
    except FactorError as error:
        raise DataError(
            f"the split {split.name!r} of {dataset.name} differs from the published one: {error}"
        ) from error


def _warn(dataset: Dataset, codes: npt.NDArray[Any], split: ManifestSplit) -> None:
    """Warn how many groups are in several parts of a split that was published so."""
    if not split.leaks:
        return
    group = dataset.factors.group_by(split.leaks).of_rows()
    known = (group >= 0) & (codes >= 0) & (codes < len(_part_names(split)))
    pairs = np.unique(np.stack([group[known], codes[known]], axis=1), axis=0)
    counts = np.unique(pairs[:, 0], return_counts=True)[1]
    _log.warning(
        "the published split %r of %s leaks: rows of the same %s are in several parts (%s of %s)",
        *(split.name, dataset.name, ", ".join(split.leaks), f"{(counts > 1).sum():,}", f"{len(counts):,}"),
    )


def _part_names(split: ManifestSplit) -> list[str]:
    """Names of the parts, if they are not the levels of a factor."""
    return [name for name, _ in split.drawn] + (["test"] if split.test else [])


def _names(table: FactorTable, declared: Sequence[ManifestSplit]) -> list[str]:
    """Names that open splits and their parts."""
    names = []
    for split in declared:
        parts = _part_names(split)
        if split.factor in table:
            parts = [str(level) for level in table[str(split.factor)].levels or ()]
        names += [split.name, *(f"{split.name}-{part}" for part in parts)]
    return names


def _unknown(dataset: Dataset, name: str, known: Sequence[str]) -> DataError:
    names = list(dict.fromkeys(known))
    if name in names:
        there = ", ".join(map(str, dataset.factors[_SPLIT].levels or ())) if _SPLIT in dataset.factors else "none"
        return DataError(f"{dataset.name} has no split {name!r} with the given options; known: {there}")
    if not names:
        split = advice(f"split={name!r}", f"--split {name}")
        return DataError(f"{dataset.name} has no splits; leave out {split}")
    hint = did_you_mean(name, names)
    listed = "" if hint.startswith("; choose from") else f" Its splits: {', '.join(names)}"
    return DataError(f"{dataset.name} has no split {name!r}{hint}{listed}")
