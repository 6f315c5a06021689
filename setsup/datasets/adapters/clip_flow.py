"""Optical flow of clips: computed once by TV-L1, and saved next to the videos, one file per row.

Convention
----------
Field j of a clip maps frame j to frame j + 1: the content of frame j at (x, y) is at (x + u, y + v) in frame j + 1.
Fields are (2, height, width), first u and then v, in pixels of the frames as opened; they are clipped to ±20 pixels and
scaled to ±1. On disk they are int8, in steps of 20/127 pixels, since published fields are 8-bit images.

References
----------
.. [1] C. Zach, T. Pock, H. Bischof, "A duality based approach for realtime TV-L1 optical flow", DAGM 2007.
.. [2] K. Simonyan, A. Zisserman, "Two-stream convolutional networks for action recognition in videos", 2014
   (arXiv 1406.2199).

"""

import logging
import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.cached_arrays import file_states
from setsup.errors import DataError, imported
from setsup.files import written
from setsup.files.archives.members import MemberIndex
from setsup.files.prepared import prepared_places
from setsup.jobs import Unit, run

__all__ = ["LIMIT", "STEPS", "FlowFiles", "compute_flow", "flow_preparer", "tvl1_flow"]

LIMIT = 20.0
"""Pixels at which flow is clipped."""

STEPS = 127
"""Steps of the stored integers to either side of 0."""

_VERSION = 1  # of what is computed: raised where the same frames would have another flow
_GREY = np.array([0.2125, 0.7154, 0.0721], np.float32)
_ROWS = 8  # of a unit of work

_log = logging.getLogger("setsup")


def tvl1_flow(frames: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Flow from each frame to the next, by scikit-image's TV-L1 with its defaults, on grayscale frames from 0 to 1.

    Parameters
    ----------
    frames : (n, height, width, 3) uint8
        sRGB.

    Returns
    -------
    (n − 1, 2, height, width) float32, pixels

    Raises
    ------
    DataError
        When scikit-image is not installed, or frames have another shape or dtype.

    """
    shown = np.asarray(frames)
    if shown.ndim != 4 or shown.shape[-1] != 3 or shown.dtype != np.uint8:
        raise DataError(
            f"frames must be uint8 of shape (n, height, width, 3), not {shown.dtype} of shape {shown.shape}"
        )
    registration: Any = imported("skimage.registration", "train")
    grey = (shown @ _GREY) / np.float32(255)
    flow = np.empty((max(len(grey) - 1, 0), 2, *grey.shape[1:]), np.float32)
    for field, first, second in zip(flow, grey[:-1], grey[1:], strict=True):
        # rows first there, and x first here
        field[:] = registration.optical_flow_tvl1(first, second, dtype=np.float32)[::-1]
    return flow


class FlowFiles:
    """Flow of the windows of a release's videos, in files that are written on first use.

    Parameters
    ----------
    name : str
        Of the dataset.
    members : MemberIndex
        The files of the release; flow is saved in the folder ``NAME_flow`` next to them or, if that is not writable, in
        the cache folder.
    places : (videos,) int64
        Positions of its videos. A file is identified by the size and modification time of its video.
    about : str
        Everything else that frames depend on: length, stride, size.

    """

    def __init__(self, name: str, members: MemberIndex, places: npt.NDArray[np.int64], about: str) -> None:
        self._members, self._places = members, places
        self._about = f"tvl1 {_VERSION} {LIMIT} {STEPS} {about}"
        source = members.source
        top = source / f"{name}_flow" if source.is_dir() else source.with_name(f"{name}_flow")
        self._folders = (top, prepared_places(source, f"{name}_flow")[1])

    @property
    def folder(self) -> Path:
        """Folder where files are written."""
        return self._folders[0 if _writable(self._folders[0]) else 1]

    def path(self, video: int, frame: int) -> Path:
        """Return the file of a window: the one that exists, or the one to write."""
        paths = [folder / self._file(video, frame) for folder in self._folders]
        return next((path for path in paths if path.is_file()), self.folder / paths[0].name)

    def read(self, video: int, frame: int, shape: tuple[int, ...]) -> npt.NDArray[np.int8] | None:
        """Read the fields of a window, of the given shape; None if there is no file, or it is damaged."""
        path = self.path(video, frame)
        try:
            fields = np.load(path, allow_pickle=False)
        except FileNotFoundError:
            return None
        except Exception as error:  # numpy lets several kinds through
            _log.warning("%s is damaged (%s); recomputing its optical flow", path, error)
            return None
        return fields if fields.dtype == np.int8 and fields.shape == shape else None

    def write(self, video: int, frame: int, fields: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
        """Write fields, in pixels; return the stored steps."""
        steps = np.asarray(np.rint(np.clip(fields / LIMIT, -1, 1) * STEPS), np.int8)
        path = self.path(video, frame)
        with written(path) as part, part.open("wb") as file:
            np.save(file, steps)
        return steps

    def _file(self, video: int, frame: int) -> str:
        state = file_states(self._members, [int(self._places[video])])
        digest = sha256(os.fsencode(f"{self._about} {state}")).hexdigest()[:16]
        stem = Path(state[0][0]).stem
        return f"{stem}-{frame:06d}-{digest}.npy"


def compute_flow(dataset: Any, rows: Sequence[int] | None = None, *, processes: int = 1) -> int:
    """Compute the flow of rows that have none yet, in several processes; an interrupted run resumes.

    `dataset` with a modality ``flow``; all `rows` by default; returns the number of rows.
    """
    if "flow" not in dataset.modalities:
        raise DataError(f"{dataset.name} has no modality 'flow'; open the dataset with flow=True")
    wanted = list(range(len(dataset))) if rows is None else [int(row) for row in rows]
    units = [
        Unit(f"rows {part[0]} … {part[-1]}", (dataset, part), len(part))
        for part in (wanted[start : start + _ROWS] for start in range(0, len(wanted), _ROWS))
    ]
    run(_computed, units, processes=processes, what=f"{dataset.name}: flow", counted="rows")
    return len(wanted)


def flow_preparer(open_clips: Callable[..., Any]) -> Callable[..., list[Path]]:
    """The ``prepare`` of a release of videos, with the options of its ``open`` and the number of processes."""

    def prepare(
        root: Path | str | None = None, *, flow: bool = False, processes: int = 1, **options: Any
    ) -> list[Path]:
        """Compute the flow of all rows in advance; an interrupted run resumes.

        Each field of 128 × 171 pixels takes about 0.1 s on one core. Without `flow`, nothing is done. The other options
        are those of ``open``.

        `processes` int; returns list of Path, the folder with the files of flow.
        """
        if not flow:
            return []
        dataset = open_clips(root, flow=True, **options)
        compute_flow(dataset, processes=processes)
        return [dataset.flow_folder]

    # for `setsup prepare`, which reads names and types of options there
    root, *options = signature(open_clips).parameters.values()
    named = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in options]
    processes = Parameter("processes", Parameter.KEYWORD_ONLY, default=1, annotation=int)
    vars(prepare)["__signature__"] = signature(prepare).replace(parameters=[root, *named, processes])
    return prepare


def _computed(data: tuple[Any, list[int]]) -> int:
    dataset, rows = data
    for row in rows:
        dataset.fetch(row, ["flow"])
    return len(rows)


def read_or_compute(
    files: FlowFiles, video: int, frame: int, shape: tuple[int, ...], frames: Callable[[], Array]
) -> npt.NDArray[np.float32]:
    """Fields of a window in −1 … 1, of the given shape, from its file, or computed from its frames and saved."""
    steps = files.read(video, frame, shape)
    if steps is None:
        steps = files.write(video, frame, tvl1_flow(frames()))
    return steps.astype(np.float32) / np.float32(STEPS)


def _writable(folder: Path) -> bool:
    return os.access(folder if folder.exists() else folder.parent, os.W_OK)
