"""Units of work that are functions of their data alone: in this process, in several processes, or on a Ray cluster.

A unit says what to do, not where: its result is the same wherever and however often it runs. Output goes to files or to
a store; what a unit returns is small.
"""

from setsup.jobs.ray_options import Ray
from setsup.jobs.running import check_processes, run
from setsup.jobs.units import Unit

__all__ = ["Ray", "Unit", "check_processes", "run"]
