"""Frozen encoders that setsup did not train, usable wherever evaluations take a trained method.

:func:`open_encoder` reads one by its name; :func:`encoder_run` gives it a dataset, as a
:class:`~setsup.experiments.TrainedRun` that every evaluation works on; :class:`FactorKnowledge` measures what an
encoder knows about each factor. :func:`open_dense_encoder` reads one of pixels.
"""

# ruff: noqa: E402

from setsup.errors import require_modules

require_modules("encoders need", "torch", "lightning")  # before what imports them

from setsup.experiments.encoders.dense_encoders import DenseEncoder, open_dense_encoder
from setsup.experiments.encoders.encoder import Encoder
from setsup.experiments.encoders.factors import standard_evaluations, suitable_factors
from setsup.experiments.encoders.knowledge import FactorKnowledge
from setsup.experiments.encoders.opening import open_encoder
from setsup.experiments.encoders.preprocessing import Preprocessing
from setsup.experiments.encoders.run import encoder_run, evaluate_encoder

__all__ = [
    "DenseEncoder",
    "Encoder",
    "FactorKnowledge",
    "Preprocessing",
    "encoder_run",
    "evaluate_encoder",
    "open_dense_encoder",
    "open_encoder",
    "standard_evaluations",
    "suitable_factors",
]
