"""Multi-PIE: faces of 337 people in 15 views, 19 lightings and six expressions, read from the published tree.

The tree is ``session0S/multiview/<subject>/<recording>/<camera>/<file>.png``; the name of a file repeats its folders.
High-resolution images (``session0S/highres``) are not part. The 15 cameras of a recording fire together, so a subject,
session, recording and shot make an orbit of views, with the frontal one as its canonical member::

    faces = setsup.load("multi-pie", root="Multi-Pie")
    orbit = ["subject", "session", "recording", "shot"]
    views = setsup.OrbitSampler(faces.factors, orbit, canonical={"camera": "05_1"}, where="elevated == False")

With ``where="sessions == 4 and recording == 1 and elevated == False"`` the orbits are neutral faces of the subjects who
came to all four sessions, 129 in the release.

Without Multi-PIE, :func:`write_substitute` renders made-up heads into a tree of the same form.
"""

from pathlib import Path

from setsup.datasets.benchmarks.multi_pie.dataset import CAMERAS, EXPRESSIONS, MultiPie, open
from setsup.datasets.benchmarks.multi_pie.substitute import write_substitute
from setsup.errors import DataError

__all__ = ["CAMERAS", "EXPRESSIONS", "MultiPie", "open", "prepare", "write_substitute"]


def prepare(root: Path | str | None = None, substitute: int = 0, seed: int = 0, processes: int = 1) -> list[Path]:
    """Render a substitute for Multi-PIE if requested; the published files need no preparation.

    ``setsup prepare multi-pie --root FOLDER --option substitute=20 processes=2`` writes 20 made-up subjects,
    4 sessions × 13 cameras × 20 shots each, as :func:`write_substitute`.

    Parameters
    ----------
    root : Path, str or None
        Folder of the substitute.
    substitute : int
        Number of subjects.
    seed : int
        Seed of the synthetic subjects.
    processes : int
        Worker processes.

    Returns
    -------
    list of Path
        The folder of the substitute, or nothing.

    Raises
    ------
    DataError
        When a substitute is requested without a root, and as for :func:`write_substitute`.

    Examples
    --------
    >>> prepare()
    []
    >>> prepare(substitute=20)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    setsup.errors.DataError: the folder for the substitute is missing; pass it with `setsup prepare multi-pie --root ...

    """
    if not substitute:
        return []
    if root is None:
        raise DataError(
            "the folder for the substitute is missing; pass it with `setsup prepare multi-pie --root FOLDER ...`"
        )
    return [write_substitute(root, substitute, seed=seed, processes=processes)]
