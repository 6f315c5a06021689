"""Factors of variation of samples, and groups of samples that share them.

A :class:`FactorTable` gives every sample's factors, :class:`Groups` the rows that share some of them.
"""

from setsup.factors.concat import concat
from setsup.factors.correlated import correlated_weights
from setsup.factors.factor import Factor, Kind, Level
from setsup.factors.groups import Groups
from setsup.factors.split import check_disjoint, split
from setsup.factors.table import FactorTable

__all__ = [
    "Factor",
    "FactorTable",
    "Groups",
    "Kind",
    "Level",
    "check_disjoint",
    "concat",
    "correlated_weights",
    "split",
]
