"""Multi-PIE as a dataset, with factors parsed from the file names."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Places
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.images import check_size
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members

__all__ = ["CAMERAS", "EXPRESSIONS", "MultiPie", "open"]


CAMERAS: dict[str, tuple[int, bool]] = {
    **{
        camera: (15 * step - 90, False)
        for step, camera in enumerate(
            ("24_0", "01_0", "20_0", "19_0", "04_1", "05_0", "05_1", "14_0", "13_0", "08_0", "09_0", "12_0", "11_0")
        )
    },
    "19_1": (-45, True),
    "08_1": (45, True),
}
"""Yaw in degrees of each camera, and whether it looks down from above; 13 stand at head height."""

EXPRESSIONS: dict[tuple[int, int], str] = {
    **{(1, 1): "neutral", (1, 2): "smile"},
    **{(2, 1): "neutral", (2, 2): "surprise", (2, 3): "squint"},
    **{(3, 1): "neutral", (3, 2): "smile", (3, 3): "disgust"},
    **{(4, 1): "neutral", (4, 2): "neutral", (4, 3): "scream"},
}
"""What the subjects were asked for in each session and recording."""

_NAMES = ("neutral", "smile", "surprise", "squint", "disgust", "scream")
_PACKED = r"session0[1-4]\.(?:zip|tar)"
_SESSIONS, _RECORDINGS, _SHOTS = 4, 3, 20
_SPLITS = ("train", "test")
_PATTERN = r"session\d\d/multiview/\d\d\d/\d\d/\d\d_\d/\d\d\d_\d\d_\d\d_\d\d\d_\d\d\.png"
_EXAMPLE = "session01/multiview/001/01/05_1/001_01_01_051_00.png"
_SHAPE = (480, 640, 3)

_log = logging.getLogger("setsup")


class MultiPie(ImageFilesDataset):
    """Images of faces by subject, session, recording, camera and shot.

    Factors: ``subject`` (the available ids, as strings of three digits), ``session`` (1 to 4, within five months),
    ``recording`` (1 to 3 within the session), ``expression`` (of both; unknown for a third recording of session 1),
    ``camera``, ``yaw`` (deg, minus towards camera 24_0; papers differ in the sign), ``elevated`` (cameras 19_1 and
    08_1, whose yaw is about −45 and 45) and ``lighting`` (0: room light; 1 to 18: the flash that fired). The key
    ``shot`` distinguishes the two images of a recording under room light, 0 and 19, and the key ``sessions`` is the
    number of available sessions of the subject. ``setting1`` and ``setting2`` are splits. The file name is not a
    factor, since the others determine it; :meth:`paths` returns it.

    The only modality is ``image``, (480, 640, 3) uint8 sRGB. Rows are sorted by file name.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.
    size : (height, width), optional
        Size that images are resized to.

    Raises
    ------
    DataError
        When no file has a published name, or the sampled images are damaged.

    Notes
    -----
    Files whose names contradict their folders (subject 002 in the folder of 001) or name a session, recording, camera
    or shot that does not exist are left out, because the correct one is unknown. Their number is logged.

    Some copies contain upside-down images of camera 08_1, for example of subject 003; they are returned unchanged.

    """

    def __init__(self, members: MemberIndex, size: tuple[int, int] | None = None) -> None:
        places, fields = _parse(members)
        super().__init__("multi-pie", _table(fields), MemberImages(members, places), size)


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> MultiPie:
    """Open Multi-PIE: all sessions that are present.

    Parameters
    ----------
    root : Path, str or None
        A folder, zip or tar with the folders ``session01`` to ``session04``, or a folder around it such as
        ``Multi-Pie/data``; sessions may be missing. None for the default folders.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and crop the centre.

    Raises
    ------
    DataError
        When the files are missing, or none has a published name.

    """
    size = check_size(size)
    archives = [f"{name}.{end}" for name in ("multi-pie", "Multi-Pie") for end in ("zip", "tar")]
    return MultiPie(find_members("multi-pie", root, [r"session0[1-4]/multiview/"], archives, parts=_PACKED), size)


def _parse(members: MemberIndex) -> tuple[Places, dict[str, Array]]:
    """Places of the files that are kept, and for each the numbers in its name."""
    places, groups = members.matching(f"(?P<name>{_PATTERN})")
    letters = _letters(groups["name"], len(_EXAMPLE))
    if not len(places):
        raise DataError(
            f"{members.source} contains no file with a name such as {_EXAMPLE}; unpack the release as it was published"
        )

    def number(*positions: int) -> Array:
        numbers: Array = np.zeros(len(letters), np.int16)
        for at in positions:
            numbers = numbers * 10 + (letters[:, at] - ord("0"))
        return numbers

    start = _EXAMPLE.rindex("/") + 1
    folders = {
        "subject": number(20, 21, 22),
        "session": number(7, 8),
        "recording": number(24, 25),
        "camera": number(27, 28, 30),
    }
    names = {
        "subject": number(start, start + 1, start + 2),
        "session": number(start + 4, start + 5),
        "recording": number(start + 7, start + 8),
        "camera": number(start + 10, start + 11, start + 12),
        "shot": number(start + 14, start + 15),
    }
    valid = np.all([folders[field] == names[field] for field in folders], axis=0)
    valid &= (names["session"] >= 1) & (names["session"] <= _SESSIONS) & (names["shot"] < _SHOTS)
    valid &= (names["recording"] >= 1) & (names["recording"] <= _RECORDINGS) & (_cameras()[names["camera"]] >= 0)
    if not valid.all():
        wrong = places[np.flatnonzero(~valid)]
        message = (
            f"{len(wrong):,} of {len(places):,} files, such as {members.label(int(wrong[0]))}, contradict their "
            "folders, or contain an unknown session, recording, camera or shot"
        )
        if not valid.any():
            raise DataError(f"{message}; unpack the release as it was published")
        _log.warning("%s; they are left out", message)
    return places[valid], {field: values[valid] for field, values in names.items()}


def _letters(texts: Any, length: int) -> npt.NDArray[np.uint8]:
    """Texts of one length as a matrix of their bytes, without a Python object for each."""
    import pyarrow as pa

    flat = pa.concat_arrays(texts.chunks) if isinstance(texts, pa.ChunkedArray) else texts
    flat = flat.cast(pa.large_binary())
    if not len(flat):
        return np.empty((0, length), np.uint8)
    start = int(np.frombuffer(flat.buffers()[1], np.int64)[flat.offset])
    return np.frombuffer(flat.buffers()[2], np.uint8)[start : start + len(flat) * length].reshape(-1, length)


def _cameras() -> Array:
    """Code of each camera by the three digits of its name, -1 where there is none."""
    codes = np.full(1000, -1, np.int16)
    codes[[int(camera.replace("_", "")) for camera in CAMERAS]] = np.arange(len(CAMERAS))
    return codes


def _table(fields: Mapping[str, Array]) -> FactorTable:
    ids, subject = np.unique(fields["subject"], return_inverse=True)
    session, recording, shot = fields["session"], fields["recording"], fields["shot"]
    camera = _cameras()[fields["camera"]]
    yaws = sorted({yaw for yaw, _ in CAMERAS.values()})
    yaw, elevated = np.array([(yaws.index(yaw), above) for yaw, above in CAMERAS.values()]).T
    shown = np.full((_SESSIONS + 1, _RECORDINGS + 1), -1)
    for key, name in EXPRESSIONS.items():
        shown[key] = _NAMES.index(name)
    expression = shown[session, recording]
    factors = {
        Factor("subject", Kind.NOMINAL, tuple(f"{number:03}" for number in ids.tolist())): subject,
        Factor("session", Kind.ORDINAL, tuple(range(1, _SESSIONS + 1))): session - 1,
        Factor("recording", Kind.NOMINAL, tuple(range(1, _RECORDINGS + 1)), within="session"): recording - 1,
        Factor("expression", Kind.NOMINAL, _NAMES): expression,
        Factor("camera", Kind.NOMINAL, tuple(CAMERAS)): camera,
        Factor("yaw", Kind.ORDINAL, tuple(yaws), unit="deg"): yaw[camera],
        Factor("elevated", Kind.NOMINAL, (False, True)): elevated[camera],
        Factor("lighting", Kind.NOMINAL, tuple(range(_SHOTS - 1))): shot % (_SHOTS - 1),
        Factor("shot", Kind.NOMINAL, tuple(range(_SHOTS)), role="key"): shot,
        Factor("sessions", Kind.ORDINAL, tuple(range(1, _SESSIONS + 1)), role="key"): _attended(subject, session) - 1,
        Factor("setting1", Kind.NOMINAL, _SPLITS, role="split"): _setting(subject, session == 1, 100),
        Factor("setting2", Kind.NOMINAL, _SPLITS, role="split"): _setting(subject, expression == 0, 200),
    }
    return table_of(factors)


def _attended(subject: Array, session: Array) -> Array:
    """Number of sessions that the subject of each row is in."""
    there = np.zeros((subject.max() + 1, _SESSIONS + 1), bool)
    there[subject, session] = True
    counts: Array = np.count_nonzero(there, axis=1)[subject]
    return counts


def _setting(subject: Array, chosen: npt.NDArray[np.bool_], train: int) -> Array:
    """0 (train) for the first subjects by id that have a chosen row, 1 (test) for the others; -1 in other rows."""
    first = np.unique(subject[chosen])[:train]
    return np.where(chosen, np.where(np.isin(subject, first), 0, 1), -1)
