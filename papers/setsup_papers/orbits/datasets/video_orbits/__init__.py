"""Orbits of faces in videos: the "Late Night" recipe, and what it wrote as a dataset.

Paper: A. Tacchetti, S. Voinea, G. Evangelopoulos, "Trading robust representations for sample complexity through
self-supervised visual experience", NeurIPS 2018. An orbit is the track of one face through an uninterrupted shot, its
canonical member the frame in which the face is turned least, ties decided by the detector's score::

    from setsup_papers.orbits.datasets import video_orbits

    video_orbits.extract("shows", "orbits")
    faces = setsup.load("video-orbits", root="orbits")
    canonical = {"canonical": True}
    orbits = setsup.OrbitSampler(faces.factors, "track", sets=16, size=8, canonical=canonical, on_small_group="drop")
"""

from pathlib import Path

from setsup.errors import DataError
from setsup.files.expand_user import expanded
from setsup_papers.orbits.datasets.video_orbits.cuts import ContentCuts, Cuts, no_cuts
from setsup_papers.orbits.datasets.video_orbits.dataset import open
from setsup_papers.orbits.datasets.video_orbits.faces import Cascades, Detector, Faces, YuNet, confirmed
from setsup_papers.orbits.datasets.video_orbits.recipe import extract
from setsup_papers.orbits.datasets.video_orbits.tracks import Track, largest, link, overlap
from setsup_papers.orbits.datasets.video_orbits.yaw import Canonical, Yaw, least_yaw, yaw_of_points

__all__ = [
    "Canonical",
    "Cascades",
    "ContentCuts",
    "Cuts",
    "Detector",
    "Faces",
    "Track",
    "Yaw",
    "YuNet",
    "confirmed",
    "extract",
    "largest",
    "least_yaw",
    "link",
    "no_cuts",
    "open",
    "overlap",
    "prepare",
    "yaw_of_points",
]


def prepare(root: Path | str | None = None) -> Path:
    """Find the orbits in a folder of videos by the recipe as it stands, for ``setsup prepare video-orbits --root``.

    Parameters
    ----------
    root : Path, str or None
        Folder of videos, or of folders of frames; orbits are written into its folder ``orbits``, where
        ``setsup.load("video-orbits", root)`` finds them.

    Returns
    -------
    Path
        The folder of the orbits.

    Raises
    ------
    DataError
        No root is given, and as :func:`extract`.

    Examples
    --------
    >>> prepare()
    Traceback (most recent call last):
    setsup.errors.DataError: the folder of videos is missing; pass it with `setsup prepare video-orbits --root FOLDER`

    """
    if root is None:
        raise DataError("the folder of videos is missing; pass it with `setsup prepare video-orbits --root FOLDER`")
    return extract(root, expanded(root) / "orbits").parent
