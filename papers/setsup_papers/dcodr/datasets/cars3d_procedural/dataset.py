"""The rendered files as a dataset, read as those of Cars3D are."""

from pathlib import Path

from setsup.datasets.adapters.substitutes import find_substitute, place_substitute
from setsup.datasets.benchmarks.cars3d.dataset import Cars3D
from setsup.datasets.benchmarks.cars3d.files import find_cars
from setsup_papers.dcodr.datasets.cars3d_procedural.writing import LIST, write_cars

__all__ = ["ProceduralCars3D", "open", "prepare"]


class ProceduralCars3D(Cars3D):
    """Made-up cars in place of those of Cars3D: elevation, azimuth and object, every combination once.

    Factors, levels, modalities and the order of rows are those of
    :class:`~setsup.datasets.benchmarks.cars3d.dataset.Cars3D`. The camera stands at 0, 20, 40 or 60 degrees; at azimuth
    0 it sees the front, at 90 the left side.
    """

    name = "cars3d-procedural"


def open(root: Path | str | None = None) -> ProceduralCars3D:
    """Open cars3d-procedural.

    Parameters
    ----------
    root : Path, str or None
        Folder that :func:`prepare` rendered to, or one around it; None for the usual places.

    Raises
    ------
    DataError
        When nothing was rendered there, with the command that does.

    """
    return ProceduralCars3D(find_cars(find_substitute("cars3d-procedural", root, LIST)), root)


def prepare(root: Path | str | None = None, objects: int = 183, seed: int = 0, processes: int = 1) -> list[Path]:
    """Render the cars, and convert their images and masks into arrays that are mapped into memory.

    An interrupted run resumes; more objects may be asked for later. The same seed gives the same images, with any
    number of processes. A car takes about a second.

    Parameters
    ----------
    root : Path, str or None
        Folder of the files: new, empty, or left unfinished by an earlier call with the same seed.
        None for the usual place.
    objects : int
        How many cars, 1 to 999; Cars3D has 183.
    seed : int
        Another one gives other cars.
    processes : int
        Worker processes.

    Returns
    -------
    list of Path
        The array of the images and that of the masks, ``.npy`` files.

    Raises
    ------
    DataError
        A number is out of its range, the folder holds something else, the library of the renderer is missing, or the
        disk is full.

    """
    folder = place_substitute("cars3d-procedural", root)
    write_cars(folder, objects, seed=seed, processes=processes)
    return open(root).prepare()
