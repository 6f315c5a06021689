"""Units of work whose results are kept as files until all of them are there, so that an interrupted job resumes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from setsup.arrays import Array
from setsup.errors import DataError
from setsup.files import array_file
from setsup.jobs.cluster import Cluster
from setsup.jobs.running import run
from setsup.jobs.units import Unit

__all__ = ["Work"]

Arrays = Mapping[str, Array]

_WHAT, _FIX = "the result of a unit of work", "remove the file, and run the same call again"


class Work(NamedTuple):
    """Where units of work run, and where their results are.

    Attributes
    ----------
    folder : Path or None
        An existing folder, on a cluster one that its machines share; None to keep results in memory alone.
    settings : dict
        All that results depend on; results of other settings are ignored.
    processes : int
        Of this machine, or 1 on a cluster.
    on : Cluster or None
        The cluster, connected.

    """

    folder: Path | None
    settings: Mapping[str, Any]
    processes: int = 1
    on: Cluster | None = None

    def run(
        self,
        stage: str,
        function: Callable[[Any], Arrays],
        units: Sequence[Unit[Any]],
        dtypes: Mapping[str, str],
        what: str,
        counted: str,
    ) -> list[dict[str, Array]]:
        """Arrays of each unit, mapped from its file; those that have a file do not run.

        `stage` names the files; `dtypes` of the arrays, as ``<f8``.
        """
        if self.folder is None:
            return run(partial(_cast, function, dtypes), units, processes=self.processes, what=what, counted=counted)
        files = [self.folder / f"{stage}-{number:06}.unit" for number in range(len(units))]
        about = [{"unit": unit.name, "settings": self.settings} for unit in units]
        found = [_read(file, dtypes, one) for file, one in zip(files, about, strict=True)]
        left = [number for number, arrays in enumerate(found) if arrays is None]
        if not left:
            return [arrays for arrays in found if arrays is not None]
        run(
            partial(_keep, function, dtypes),
            [Unit(units[at].name, (files[at], about[at], units[at].data), units[at].size) for at in left],
            processes=self.processes,
            on=self.on,
            folder=self.folder,
            what=what,
            counted=counted,
        )
        for number in left:
            found[number] = array_file.read(files[number], dtypes, _WHAT, _FIX)[1]
        return [arrays for arrays in found if arrays is not None]


def _cast(function: Callable[[Any], Arrays], dtypes: Mapping[str, str], data: Any) -> dict[str, Array]:
    arrays = function(data)
    return {name: arrays[name].astype(dtype, copy=False) for name, dtype in dtypes.items()}


def _keep(
    function: Callable[[Any], Arrays], dtypes: Mapping[str, str], item: tuple[Path, Mapping[str, Any], Any]
) -> None:
    file, about, data = item
    array_file.write(file, about, _cast(function, dtypes, data))


def _read(file: Path, dtypes: Mapping[str, str], about: Mapping[str, Any]) -> dict[str, Array] | None:
    """Arrays of a finished unit; None where it is not there, damaged, or of other settings."""
    if not file.exists():
        return None
    try:
        said, arrays, _ = array_file.read(file, dtypes, _WHAT, _FIX)
    except DataError:
        return None
    return arrays if said == about else None
