"""smallnorb-procedural: a substitute for SmallNORB, made-up toys, in the published file layout.

No image of it shows a toy of SmallNORB, and nothing measured on it says what SmallNORB would give.
``setsup prepare smallnorb-procedural`` renders the files.
"""

from setsup_papers.dcodr.datasets.smallnorb_procedural.dataset import ProceduralSmallNorb, open, prepare

__all__ = ["ProceduralSmallNorb", "open", "prepare"]
