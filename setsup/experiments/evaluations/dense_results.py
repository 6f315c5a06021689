"""What `setsup report dense` measured: values by encoder and pair of views, their summaries, and tables of both."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from setsup.experiments.evaluations.dense import (
    ANGLES,
    OVERLAPS,
    DenseSettings,
    Summary,
    bin_values,
    describe_settings,
    summarise,
)

__all__ = ["DenseResults", "bin_names", "tables"]

Values = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseResults:
    """Values of encoders on pairs of views.

    Attributes
    ----------
    about : mapping of str to JSON value
        Dataset, how pixels are matched, whether features are of pixels or patches, seed.
    settings : DenseSettings
        What was measured.
    rows : sequence of (int, int)
        The pairs of views.
    scenes : sequence of int
        Number of the scene of each pair.
    angles, overlaps : sequence of float
        Angle between the cameras of each pair, degrees, and its overlap; NaN where unknown.
    measured : mapping of str to mapping of str to sequence of float
        By encoder and name, a value for each pair, as :func:`measure_pairs` returns them.
    weights : mapping of str to str
        Which weights each encoder has.

    """

    about: Mapping[str, Any]
    settings: DenseSettings
    rows: Sequence[tuple[int, int]]
    scenes: Sequence[int]
    angles: Sequence[float]
    overlaps: Sequence[float]
    measured: Mapping[str, Values] = field(default_factory=dict)
    weights: Mapping[str, str] = field(default_factory=dict)

    def summary(self, encoder: str, name: str) -> Summary:
        """Summarise a value of an encoder over all pairs."""
        return summarise(self.measured[encoder].get(name, [math.nan] * len(self.rows)), self.scenes)

    def binned(self, encoder: str, name: str, by: str) -> list[Summary]:
        """Summarise a value of an encoder in bins ``by`` angle or overlap; none where this is unknown for all pairs."""
        known, ends = (self.angles, ANGLES) if by == "angle" else (self.overlaps, OVERLAPS)
        if all(math.isnan(value) for value in known):
            return []
        return bin_values(self.measured[encoder].get(name, [math.nan] * len(self.rows)), self.scenes, known, ends)

    @property
    def names(self) -> list[str]:
        """Names of all values, in their order."""
        return list(dict.fromkeys(name for values in self.measured.values() for name in values))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values; numbers that are not finite remain floats."""
        pairs = [
            {"rows": list(rows), "scene": int(scene), "angle": angle, "overlap": overlap}
            for rows, scene, angle, overlap in zip(self.rows, self.scenes, self.angles, self.overlaps, strict=True)
        ]
        encoders = {}
        for encoder, values in self.measured.items():
            encoders[encoder] = {
                "weights": self.weights.get(encoder, ""),
                "values": {name: _plain(self.summary(encoder, name)) for name in values},
                "by_angle": self._bins(encoder, "angle"),
                "by_overlap": self._bins(encoder, "overlap"),
                "by_pair": {name: list(numbers) for name, numbers in values.items()},
            }
        return {**self.about, "settings": describe_settings(self.settings), "pairs": pairs, "encoders": encoders}

    def _bins(self, encoder: str, by: str) -> dict[str, dict[str, Any]]:
        found = {name: self.binned(encoder, name, by) for name in self.measured[encoder]}
        return {
            name: dict(zip(bin_names(by), map(_plain, summaries), strict=True))
            for name, summaries in found.items()
            if summaries
        }

    def to_csv(self) -> str:
        """A line for each encoder, value and bin: mean, spread over scenes, and how many pairs and scenes."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(["encoder", "value", "bin", "mean", "spread", "pairs", "scenes"])
        for encoder, values in self.measured.items():
            for name in values:
                bins = {"all": self.summary(encoder, name)}
                for by in ("angle", "overlap"):
                    found = self.binned(encoder, name, by)
                    bins |= {f"{by} {label}": one for label, one in zip(bin_names(by), found, strict=False)}
                for label, one in bins.items():
                    writer.writerow([encoder, name, label, _cell(one.mean), _cell(one.spread), one.pairs, one.scenes])
        return lines.getvalue()


def _plain(summary: Summary) -> dict[str, Any]:
    return {"mean": summary.mean, "spread": summary.spread, "pairs": summary.pairs, "scenes": summary.scenes}


def _cell(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def bin_names(by: str) -> list[str]:
    """Names of the bins of angles, in degrees, or of overlaps."""
    ends = ANGLES if by == "angle" else OVERLAPS
    return [f"{low:g}–{high:g}{'°' if by == 'angle' else ''}" for low, high in pairwise(ends)]


def tables(results: DenseResults) -> list[tuple[str, list[str], list[list[str]]]]:
    """Tables for people: title, heads, and a row for each encoder with means and spreads over scenes."""
    settings, found = results.settings, []
    limits = [f"within {limit:g} px" for limit in settings.pixels]
    limits += [f"within {100 * limit:g} cm" for limit in settings.metres]
    titles = {
        "visible": "protocol visible: share of visible pixels whose nearest feature is within …",
        "visible, mutual": "protocol visible, mutual nearest neighbours only: their share, and that of them within …",
        "ratio": f"protocol ratio: share of the {settings.matches:,} best matches by the ratio test within …",
    }
    for protocol, title in titles.items():
        first = ["visible: mutual"] if protocol == "visible, mutual" else []
        names = [*first, *(f"{protocol}: {limit}" for limit in limits)]
        heads = [name.partition(": ")[2].removeprefix("within ") for name in names]
        found.append(_table(results, title, names, heads))
    others = ["rejection", "instances", "edges", "visible: near ties", "ratio: near ties"]
    found.append(_table(results, "areas under ROC curves, and shares of near ties", others, others))
    for by in ("angle", "overlap"):
        for name in ("visible: within 5 px", "ratio: within 5 px", "ratio: within 2 cm"):
            rows = []
            for encoder in results.measured:
                summaries = results.binned(encoder, name, by)
                if any(one.pairs for one in summaries):
                    rows.append([encoder, *(_text(one) for one in summaries)])
            if rows:
                counts = [one.pairs for one in results.binned(rows[0][0], name, by)]
                heads = [f"{label} ({count})" for label, count in zip(bin_names(by), counts, strict=True)]
                found.append((f"{name}, by {by}, with the number of pairs", ["encoder", *heads], rows))
    return [one for one in found if len(one[1]) > 1]


def _table(
    results: DenseResults, title: str, names: Sequence[str], heads: Sequence[str]
) -> tuple[str, list[str], list[list[str]]]:
    """A table of the values that some encoder has."""
    kept = [at for at, name in enumerate(names) if any(results.summary(one, name).pairs for one in results.measured)]
    rows = [[encoder, *(_text(results.summary(encoder, names[at])) for at in kept)] for encoder in results.measured]
    return title, ["encoder", *(heads[at] for at in kept)], rows


def _text(summary: Summary) -> str:
    if math.isnan(summary.mean):
        return ""
    return f"{summary.mean:.3f}" + ("" if math.isnan(summary.spread) else f" ± {summary.spread:.3f}")
