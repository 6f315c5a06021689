"""Stateless draws: pure functions from a step number to rows of a factor table.

Where to read: :mod:`~setsup.samplers.sampler` says what a sampler is and what follows from it, and each kind has a
module of its own: ``sets`` (ABC), ``domains`` (DCoDR), ``orbits`` and ``triplets`` (orbit losses), ``epochs``,
``mixture``. Below them, in the order in which a draw passes through them: ``plan`` (which sets of a step hold what),
``holding`` (the groups of a list of held factors), ``choose`` and ``different`` (which group), ``members`` and
``window`` (which of its rows), ``within`` (rows without repeats).
"""

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
