"""Stateless draws: pure functions from a step number to rows of a factor table."""

from setsup.samplers.domains import DomainSampler
from setsup.samplers.draw import Draw
from setsup.samplers.epochs import EpochSampler
from setsup.samplers.mixture import Mixture, Stepwise
from setsup.samplers.orbits import OrbitSampler
from setsup.samplers.report import Entry, Report
from setsup.samplers.sampler import Sampler, Shard, from_dict
from setsup.samplers.sets import SetSampler
from setsup.samplers.triplets import TripletSampler

__all__ = [
    "DomainSampler",
    "Draw",
    "Entry",
    "EpochSampler",
    "Mixture",
    "OrbitSampler",
    "Report",
    "Sampler",
    "SetSampler",
    "Shard",
    "Stepwise",
    "TripletSampler",
    "from_dict",
]
