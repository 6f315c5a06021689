"""Stateless draws: pure functions from a step number to rows of a factor table.

Each kind of sampler has a module of its own: ``sets`` (ABC), ``domains`` (DCoDR), ``orbits`` and ``triplets`` (orbit
losses), ``factor_pairs`` (Ada-GVAE), ``episodes`` (few-shot tasks), ``hierarchies``, ``sequence_pairs``,
``neighbours``, ``overlaps``, ``epochs``, ``mixture``, ``zips``; :mod:`~setsup.samplers.sampler` says what all samplers
share, ``schedules`` which options may change with the step. The folder ``groups`` has what they draw from:
``group_sampler`` (the groups of a list of inactive factors), ``fixed_factors`` (which factors each set fixes),
``choose`` and ``different`` (which group), ``members`` and ``window`` (which rows), ``anchors``, ``anchored`` and
``candidates`` (which rows go with another), ``within`` (no repeats), ``plan`` (all sets of a step), ``hierarchy``
(groups of groups) and ``across`` (two domains). The folder ``partners`` has what pairs are drawn from: ``differing``
(rows that differ in some factors: ``product`` in a grid, ``index`` anywhere), ``ranked`` (independent rows) and
``anchored_neighbours`` (rows near each other in an embedding). The folder ``overlap`` has what views of a scene are
drawn from: ``table`` (measured pairs), ``graph`` (those in the bands), ``first_pairs`` and ``forms`` (which sets of
them there are).
"""

from setsup.samplers.coverage import Reach, ReachedGroups, Reason, RowReach
from setsup.samplers.description import from_dict
from setsup.samplers.domains import DomainSampler
from setsup.samplers.draw import Draw
from setsup.samplers.episodes import EpisodeSampler
from setsup.samplers.epochs import EpochSampler
from setsup.samplers.factor_pairs import FactorPairSampler
from setsup.samplers.hierarchies import HierarchicalSampler
from setsup.samplers.mixture import Mixture
from setsup.samplers.neighbours import NeighbourSampler
from setsup.samplers.orbits import OrbitSampler
from setsup.samplers.overlaps import OverlapSampler
from setsup.samplers.report import AnchorEntry, Entry, PairEntry, Partners, Report
from setsup.samplers.sampler import Sampler, Shard
from setsup.samplers.schedules import Stepwise
from setsup.samplers.sequence_pairs import SequencePairSampler
from setsup.samplers.sets import SetSampler
from setsup.samplers.triplets import TripletSampler
from setsup.samplers.zips import Zip

__all__ = [
    "AnchorEntry",
    "DomainSampler",
    "Draw",
    "Entry",
    "EpisodeSampler",
    "EpochSampler",
    "FactorPairSampler",
    "HierarchicalSampler",
    "Mixture",
    "NeighbourSampler",
    "OrbitSampler",
    "OverlapSampler",
    "PairEntry",
    "Partners",
    "Reach",
    "ReachedGroups",
    "Reason",
    "Report",
    "RowReach",
    "Sampler",
    "SequencePairSampler",
    "SetSampler",
    "Shard",
    "Stepwise",
    "TripletSampler",
    "Zip",
    "from_dict",
]
