"""Rows of a report over the re-splits that they share: their accuracies, and paired tests against one of them.

Accuracies of a row are means over its seeds, re-split by re-split, so that a re-split counts once however many seeds
there are. What rows with fewer seeds lose by that is not corrected: their accuracies vary by the seed, too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from setsup.evaluation.paired import PairedTest
from setsup.experiments.report.report import Resplits

__all__ = ["CAVEAT", "LEVEL", "Compared"]

CAVEAT = (
    "re-splits of one test set share images, so they are not the independent samples that the test assumes: p "
    "indicates whether a difference exceeds the variation among these re-splits, not what other images or other "
    "seeds would show"
)
"""What must stand beside each p."""

LEVEL = 0.05
"""Of significance, after the correction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Rows over shared re-splits.

    Attributes
    ----------
    resplits : Resplits
        What is compared.
    on : str
        What all rows were run on, if not as published: a substitute dataset, or another precision.
    accuracies : mapping of str to list of float
        By label, of each re-split: means over seeds.
    seeds : mapping of str to int
        By label, how many.
    tests : mapping of str to PairedTest
        By label, against the reference; empty where that or all others were not measured.
    without : str
        Why there are no tests; empty if there are.

    """

    resplits: Resplits
    on: str
    accuracies: Mapping[str, list[float]]
    seeds: Mapping[str, int]
    tests: Mapping[str, PairedTest]
    without: str = ""

    @property
    def stars(self) -> dict[str, str]:
        """By label, ``*`` where the difference to the reference is significant."""
        return {label: "*" for label, test in self.tests.items() if test.significant}

    @property
    def lines(self) -> list[str]:
        """The tests in words; a line on what was tested, a line each, and what to think of it."""
        reference, on = self.resplits.reference, f" ({self.on})" if self.on else ""
        if not self.tests:
            return [f"no paired tests{on}: {self.without}"] if self.without else []
        count = len(self.accuracies[reference])
        head = (
            f"paired t-tests{on}: {self.resplits.key}, each method less {reference} over {count:,} re-splits, means "
            f"over seeds; p times {len(self.tests)} (Bonferroni), * below {LEVEL}"
        )
        comparisons = []
        for label, test in self.tests.items():
            numbers = f"{test.difference:+.3f}, t = {test.t:.2f}, p {_p(test.corrected)}".replace("-", "−")
            comparisons.append(f"{label}: {numbers}{' *' if test.significant else ''}")
        return [head, *comparisons, CAVEAT]

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON; an infinite t is null."""
        tests = {
            label: {
                "difference": test.difference,
                "t": test.t if math.isfinite(test.t) else None,
                "p": test.p,
                "corrected": test.corrected,
                "significant": test.significant,
            }
            for label, test in self.tests.items()
        }
        return {
            "key": self.resplits.key,
            "on": self.on or None,
            "reference": self.resplits.reference or None,
            "accuracies": {label: list(shares) for label, shares in self.accuracies.items()},
            "seeds": dict(self.seeds),
            "tests": tests,
            "without": self.without or None,
            "caveat": CAVEAT if tests else None,
        }


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"= {value:.4f}"
