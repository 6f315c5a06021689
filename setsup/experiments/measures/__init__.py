"""What is measured on trained methods whose embeddings are one vector an image.

Information and accuracy are measured under noise, at the scale that a loss resolves; principal components,
disentanglement scores, retrieval and linear probes on embeddings as they are. Factors go by their names in the table of
the dataset.
"""

from setsup.experiments.measures.components import Components
from setsup.experiments.measures.information import Accuracy, FactorInformation, NoiseSweep, noise_of
from setsup.experiments.measures.orbits import OrbitStructure
from setsup.experiments.measures.probes import Probes
from setsup.experiments.measures.scores import Disentanglement, Retrieval

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
