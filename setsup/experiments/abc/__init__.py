"""Experiments of "Learning ABCs: Approximate Bijective Correspondence" (arXiv 2103.03240), and what it says of them."""

from setsup.experiments.abc.presets import PRESETS, ABCSettings
from setsup.experiments.abc.reports import REPORTS

__all__ = ["PRESETS", "REPORTS", "ABCSettings"]
