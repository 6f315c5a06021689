"""What "Learning ABCs: Approximate Bijective Correspondence" (arXiv 2103.03240) found, as reports.

The paper shows its results on Shapes3D and MNIST as figures, without tables, so the references of our numbers are
words. Its claims name almost no thresholds either. Those tested here are ours, and every claim says so.
"""

from setsup_papers.abc.reports import mnist, shapes3d, simulation

__all__ = ["REPORTS"]

REPORTS = [*shapes3d.REPORTS, *simulation.REPORTS, shapes3d.AUGMENTATION, *mnist.REPORTS]
"""All of them."""
