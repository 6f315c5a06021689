"""The rendered files as a dataset, read as those of SmallNORB are."""

from pathlib import Path

from setsup.datasets.adapters.substitutes import find_substitute, place_substitute
from setsup.datasets.benchmarks.smallnorb.dataset import SmallNorb
from setsup_papers.dcodr.datasets.smallnorb_procedural.writing import LAST, write_toys

__all__ = ["ProceduralSmallNorb", "open", "prepare"]


class ProceduralSmallNorb(SmallNorb):
    """Made-up toys in place of those of SmallNORB.

    Factors, levels and modalities are those of :class:`~setsup.datasets.benchmarks.smallnorb.dataset.SmallNorb`. Rows
    stand by split, category, instance, elevation, azimuth, lighting and camera.
    """

    name = "smallnorb-procedural"


def open(root: Path | str | None = None) -> ProceduralSmallNorb:
    """Open smallnorb-procedural.

    Parameters
    ----------
    root : Path, str or None
        Folder that :func:`prepare` rendered to, or one around it; None for the usual places.

    Raises
    ------
    DataError
        When nothing was rendered there, with the command that does.

    """
    return ProceduralSmallNorb(find_substitute("smallnorb-procedural", root, LAST), root)


def prepare(root: Path | str | None = None, toys: int = 10, seed: int = 0, processes: int = 1) -> list[Path]:
    """Render the toys; the files are mapped into memory as they are.

    An interrupted run resumes. The same seed gives the same files, with any number of processes. A toy takes about two
    seconds.

    Parameters
    ----------
    root : Path, str or None
        Folder of the files: new, empty, or left unfinished by an earlier call with the same options.
        None for the usual place.
    toys : int
        How many of each category, 2 to 10 and even: half of them in each split. SmallNORB has 10.
    seed : int
        Another one gives other toys.
    processes : int
        Worker processes.

    Returns
    -------
    list of Path
        The folder.

    Raises
    ------
    DataError
        A number is out of its range, the folder holds something else, the library of the renderer is missing, or the
        disk is full.

    """
    folder = place_substitute("smallnorb-procedural", root)
    write_toys(folder, toys, seed=seed, processes=processes)
    return [folder]
