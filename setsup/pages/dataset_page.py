"""A dataset as a page asks for it: its card, counts under a filter, rows, images."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from setsup.arrays import Bools, Rows
from setsup.datasets.dataset import Dataset
from setsup.errors import DataError
from setsup.factors import FactorTable
from setsup.factors.expression import Expression, literal, quote
from setsup.factors.factor import Factor
from setsup.factors.histograms import count_values
from setsup.files.manifests.manifest import Manifest
from setsup.pages.answers import Answer, DamagedRows, Query, json_answer
from setsup.pages.images import draw_thumbs, image_modality, whole
from setsup.pages.licences import find_source_manifest
from setsup.pages.opened import Opening
from setsup.pages.recent import Recent
from setsup.random import fold, permute, stream_key

__all__ = ["PAGE_ROWS", "DatasetSource", "value_texts"]

PAGE_ROWS = 48
"""Rows of a page of them."""

_FILTERS = 64  # levels of a factor by which an exported page can be filtered
_KEPT = 4  # filters whose rows are kept
_KEPT_BYTES = 1 << 28  # and what they may take; the last one is kept in any case
_SAMPLE = 1 << 15  # rows from which counts are estimated: a share is then within 0.6 percentage points, 95 %
_LARGE = 1 << 24  # rows from which on counting takes so long that an estimate is shown meanwhile
_BLOCK = 1 << 16
_LEVELS = 2000  # levels of a factor that are listed
_BINS = 40
_CELLS = 1 << 16  # of a heat map
_ORDERS = ("table", "random")


@dataclass
class DatasetSource:
    """A dataset that answers.

    Attributes
    ----------
    dataset : Dataset
        What is shown.
    opening : Opening
        What opens it, as a command and :func:`setsup.open` take it.
    images : bool
        Whether images may be shown.
    withheld : str
        The licence for which they are not.
    shown : int
        Rows that can be leafed through in either order; 0 for all.

    """

    dataset: Dataset
    opening: Opening = field(default_factory=Opening)
    images: bool = True
    withheld: str = ""
    shown: int = 0

    def __post_init__(self) -> None:
        """Keep as many filters as their memory allows."""
        most = max(1, _KEPT_BYTES // max(len(self.dataset.factors), 1))
        self._masks: Recent[str, Bools] = Recent(min(_KEPT, most))

    def about(self) -> Mapping[str, Any]:
        """Name, factors and modalities, and what a benchmark's manifest says."""
        table = self.dataset.factors
        modality = image_modality(self.dataset) if self.images else None
        return {
            "kind": "dataset",
            "name": self.dataset.name,
            "source": self.opening.source,
            "rows": len(table),
            "grid": table.is_grid,
            "fingerprint": table.fingerprint,
            "factors": [_describe(factor) for factor in table.factors],
            "modalities": [
                {"name": name, "shape": list(kind.shape), "dtype": kind.dtype, "unit": kind.unit, "color": kind.color}
                for name, kind in self.dataset.modalities.items()
            ],
            "withheld": self.withheld,
            "thumbs": modality,
            "page": PAGE_ROWS,
            "shown": self.shown,
            "sample": _SAMPLE if len(table) >= _LARGE else 0,
            **_described_by(find_source_manifest(self.opening.source, self.dataset)),
        }

    def answer(self, query: Query) -> Answer:
        """Answer a question about the dataset."""
        answers = {
            "counts": self._counts,
            "estimate": self._estimate,
            "joint": self._joint,
            "rows": self._rows,
            "row": self._row,
            "thumbs": self._thumbs,
            "image": self._image,
        }
        return answers[query.choice("q", tuple(answers))](query)

    def mask(self, where: str) -> Bools | None:
        """Rows that a filter lets through, (rows,) bool; None without one."""
        if not where.strip():
            return None
        return self._masks.get(where, lambda: self.dataset.factors.mask(where))

    def _counts(self, query: Query) -> Answer:
        table, mask = self.dataset.factors, self.mask(query.text("where", default=""))
        return json_answer(_count(table, mask))

    def _estimate(self, query: Query) -> Answer:
        """Counts from some rows, drawn by a key, as if they were the whole table; exact ones where that is no use."""
        where, table, some = query.text("where", default=""), self.dataset.factors, self._sample
        mask = some.mask(where) if where.strip() else None
        if where.strip() and Expression.of(where, table.names).counts:  # rows of the whole table
            return self._counts(query)
        counted, times = _count(some, mask), len(table) / max(len(some), 1)
        scaled = {name: _times(counts, times) for name, counts in counted["factors"].items()}
        return json_answer({"rows": round(counted["rows"] * times), "factors": scaled, "sample": len(some)})

    @cached_property
    def _sample(self) -> FactorTable:
        """Rows from which counts are estimated: distinct ones, by a key, so that they are the same each time."""
        table = self.dataset.factors
        places = np.arange(min(_SAMPLE, len(table)))
        return table.select(np.sort(permute(fold(stream_key(0, "explore"), 1), len(table), places)))

    def _joint(self, query: Query) -> Answer:
        names = [query.text("x", 500), query.text("y", 500)]
        table = self.dataset.factors
        cells = len(table[names[0]]) * len(table[names[1]])
        if cells > _CELLS:
            raise DataError(
                f"{' and '.join(names)} have {cells:,} combinations, but a heat map shows at most {_CELLS:,}; choose "
                "factors with fewer levels"
            )
        return json_answer({"counts": table.joint_counts(names, self.mask(query.text("where", default="")))})

    def rows(self, where: str, order: str, page: int) -> tuple[Rows, int]:
        """Rows of a page, and how many there are in all; in random order by a key, the same each time."""
        mask = self.mask(where)
        ends = None if mask is None else _ends(mask)
        count = len(self.dataset.factors) if ends is None else int(ends[-1])
        places = np.arange(page * PAGE_ROWS, min((page + 1) * PAGE_ROWS, count), dtype=np.int64)
        if order == "random" and len(places):
            places = permute(fold(stream_key(0, "explore"), 0), count, places)
        return places if mask is None or ends is None else _nth(mask, ends, places), count

    def _rows(self, query: Query) -> Answer:
        page = query.integer("page", 0, 2**53)
        rows, count = self.rows(query.text("where", default=""), query.choice("order", _ORDERS), page)
        return json_answer({"rows": rows, "count": count, "values": self.values(rows)})

    def values(self, rows: Rows) -> dict[str, list[str]]:
        """Values of the factors of rows, in words; empty where unknown."""
        return value_texts(self.dataset.factors, rows)

    def _row(self, query: Query) -> Answer:
        row = query.integer("row", 0, len(self.dataset.factors) - 1)
        modalities = []
        for name, kind in self.dataset.modalities.items():
            if self.images or not kind.color:
                try:
                    shown, text = whole(self.dataset, row, name)
                except DamagedRows as error:
                    shown, text = None, error.rows[row]
                modalities.append({"name": name, "words": text, "image": shown is not None and self.images})
        values = {name: texts[0] for name, texts in self.values(np.array([row])).items()}
        return json_answer({"row": row, "values": values, "modalities": modalities})

    def _thumbs(self, query: Query) -> Answer:
        return draw_thumbs(self.dataset, query, self.images)

    def _image(self, query: Query) -> Answer:
        row = query.integer("row", 0, len(self.dataset.factors) - 1)
        shown, text = whole(self.dataset, row, self._modality(query))
        if shown is None:
            raise DataError(f"cannot show the image: {text}")
        return shown

    def _modality(self, query: Query) -> str:
        if not self.images:
            raise DataError(f"images of {self.dataset.name} are not included in this page")
        return query.choice("modality", tuple(self.dataset.modalities))


def _count(table: FactorTable, mask: Bools | None) -> dict[str, Any]:
    """Rows, and rows by the value of each factor."""
    rows, counted = len(table) if mask is None else int(np.count_nonzero(mask)), table.all_counts(mask)
    factors = {}
    for factor in table.factors:
        if factor.continuous:
            # as a filter of the page compares, which a click on a bar sets
            counts, edges = count_values(table, factor.name, _BINS, None, mask, wrap=False)
            factors[factor.name] = {"counts": counts, "edges": edges, "unknown": rows - int(counts.sum())}
        else:
            counts = counted[factor.name]
            listed = np.arange(len(counts))
            if len(counts) > _LEVELS:  # the largest, in the order of levels
                listed = np.sort(np.argsort(-counts, kind="stable")[:_LEVELS])
            factors[factor.name] = {"counts": counts[listed], "unknown": rows - int(counts.sum())}
            if len(counts) > _LEVELS:
                names = [_words(factor, int(code)) for code in listed]
                literals = [literal((factor.levels or ())[int(code)]) for code in listed]
                factors[factor.name] |= {"levels": names, "literals": literals}
    return {"rows": rows, "factors": factors}


def _times(counts: dict[str, Any], times: float) -> dict[str, Any]:
    """Counts of a factor in so many times as many rows."""
    return {
        **counts,
        "counts": np.rint(counts["counts"] * times).astype(np.int64),
        "unknown": round(counts["unknown"] * times),
    }


def _ends(mask: Bools) -> Rows:
    """Rows that a filter keeps up to the end of each block, (blocks,) int64."""
    starts = range(0, max(len(mask), 1), _BLOCK)
    return np.cumsum([np.count_nonzero(mask[start : start + _BLOCK]) for start in starts], dtype=np.int64)


def _nth(mask: Bools, ends: Rows, places: Rows) -> Rows:
    """Rows at some places among those that a filter keeps, without a list of all of them."""
    rows = np.empty(len(places), dtype=np.int64)
    blocks = np.searchsorted(ends, places, side="right")
    for block in np.unique(blocks):
        here, start = blocks == block, int(block) * _BLOCK
        kept = np.flatnonzero(mask[start : start + _BLOCK])
        rows[here] = start + kept[places[here] - (ends[block] - len(kept))]
    return rows


def _describe(factor: Factor) -> dict[str, Any]:
    levels = None if factor.levels is None else [_words(factor, code) for code in range(min(len(factor), _LEVELS))]
    return {
        "name": factor.name,
        "term": quote(factor.name),
        "kind": str(factor.kind),
        "levels": levels,
        "literals": None if factor.levels is None else [literal(level) for level in factor.levels[:_LEVELS]],
        "exported": factor.levels is not None and len(factor) <= _FILTERS,
        "size": len(factor),
        "unit": factor.unit,
        "within": factor.within,
        "role": factor.role,
    }


def value_texts(table: FactorTable, rows: Rows) -> dict[str, list[str]]:
    """Values of the factors of rows, in words; empty where unknown."""
    return {
        factor.name: [_words(factor, code) for code in table.codes(factor.name, rows).tolist()]
        for factor in table.factors
    }


def _words(factor: Factor, code: float) -> str:
    """A value in words; empty where it is unknown."""
    if factor.levels is None:
        return "" if code != code else f"{code:.6g}"
    return "" if code < 0 else str(factor.levels[int(code)])


def _described_by(manifest: Manifest | None) -> dict[str, Any]:
    if manifest is None:
        return {}
    return {
        "title": manifest.title,
        "description": manifest.description,
        "homepage": manifest.homepage,
        "licence": manifest.licence.name,
        "citation": manifest.citation,
    }
