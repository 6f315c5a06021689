"""Disentanglement scores: how far each code follows one factor, and each factor one code.

Codes are (n, d) numbers, one row per image, factors (n, k) codes of levels with -1 where unknown. A row counts for the
factors that are known there; every result says how many rows each factor left out. Seven definitions, each in the form
of its paper with what the paper leaves open pinned in the function's documentation: scores are comparable with each
other, and with published ones only as far as those choices agree.
"""

from setsup.evaluation.scores.dci import DCI, dci
from setsup.evaluation.scores.explicitness import Explicitness, curve_explicitness, explicitness
from setsup.evaluation.scores.factor_vae import factor_vae
from setsup.evaluation.scores.infomec import InfoMEC, infomec
from setsup.evaluation.scores.information import discretise, mutual_information
from setsup.evaluation.scores.pairwise import mig, modularity, sap
from setsup.evaluation.scores.score import Score

__all__ = [
    "DCI",
    "Explicitness",
    "InfoMEC",
    "Score",
    "curve_explicitness",
    "dci",
    "discretise",
    "explicitness",
    "factor_vae",
    "infomec",
    "mig",
    "modularity",
    "mutual_information",
    "sap",
]
