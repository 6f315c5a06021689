"""Units of work that are functions of their data alone, done here, by several processes, or on a Ray cluster.

A unit says what is to be done, not where: whoever does it, and however often, the outcome is the same. What a unit
makes goes to files or to a store; what it gives back is small.
"""

from setsup.jobs.cluster import Ray
from setsup.jobs.running import check_processes, run
from setsup.jobs.units import Unit

__all__ = ["Ray", "Unit", "check_processes", "run"]
