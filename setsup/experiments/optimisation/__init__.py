"""Optimisers and learning-rate schedules as settings of a method, and what ``configure_optimizers`` makes of them.

They are imported without torch, as presets are.
"""

from setsup.experiments.optimisation.groups import ParameterGroup, optimise
from setsup.experiments.optimisation.optimisers import SGD, Adam, AdamW, Optimiser
from setsup.experiments.optimisation.schedules import Constant, OneCycle, Schedule, StepDecay, WarmupCosine

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Constant",
    "OneCycle",
    "Optimiser",
    "ParameterGroup",
    "Schedule",
    "StepDecay",
    "WarmupCosine",
    "optimise",
]
