"""Evaluations of trained methods that embed each image as one vector.

Information and accuracy are measured under noise, at the scale that a loss resolves; principal components,
disentanglement scores, retrieval and linear probes on embeddings as they are. Factors go by their names in the table of
the dataset.
"""

from setsup.experiments.evaluations.components import Components
from setsup.experiments.evaluations.information import Accuracy, FactorInformation, NoiseSweep, noise_of
from setsup.experiments.evaluations.orbits import OrbitStructure
from setsup.experiments.evaluations.probes import Probes
from setsup.experiments.evaluations.scores import Disentanglement, Retrieval

__all__ = [
    "Accuracy",
    "Components",
    "Disentanglement",
    "FactorInformation",
    "NoiseSweep",
    "OrbitStructure",
    "Probes",
    "Retrieval",
    "noise_of",
]
