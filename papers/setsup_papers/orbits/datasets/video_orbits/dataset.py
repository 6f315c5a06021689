"""Orbits found in videos: a factor table over the crops that ``extract`` wrote, or over frames cropped by others."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.images import check_size
from setsup.datasets.own.table import ImageTable
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded
from setsup.files.roots import some
from setsup.files.texts import comma_separated
from setsup_papers.orbits.datasets.video_orbits.clips import FRAMES
from setsup_papers.orbits.datasets.video_orbits.records import TABLE

__all__ = ["open"]

_NAME = "video-orbits"
_LARGEST = 4 << 30
_ARCHIVES = (f"{_NAME}.zip", f"{_NAME}.tar")
_TEXTS, _WHOLE, _NUMBERS = ("file", "video", "track"), ("shot", "frame"), ("time", "score", "yaw")


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageTable:
    """Open orbits that :func:`setsup_papers.orbits.datasets.video_orbits.extract` wrote, or folders of cropped frames.

    Factors of the former: ``video`` (name of the file), ``shot`` (within it, from 0), ``track`` (the orbit), ``frame``
    (of the video, from 0), ``time`` (s), ``score`` (of the detector), ``yaw`` (deg, positive to the right of the
    image) and ``canonical`` (True for one frame of each track, the least turned). What a table does not tell is
    absent.

    Of the latter, ``<track>/<frame>.png``: ``track`` (the folder) and ``frame`` (place of the file by name, from 0).

    Parameters
    ----------
    root : Path, str or None
        A folder, zip or tar with ``orbits.csv``, or else with folders of frames. None for the usual places.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and cut out the centre.

    Returns
    -------
    ImageTable

    Raises
    ------
    DataError
        There is neither, the table is damaged, or files that it names are missing.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("ann/a.png", "ann/b.png", "bob/a.png"):
    ...     (folder / name).parent.mkdir(exist_ok=True)
    ...     Image.new("RGB", (40, 50), "tan").save(folder / name)
    >>> open(folder).factors
    FactorTable(3 rows: track 2, frame 2)

    """
    size, folder = check_size(size), None if root is None else expanded(root)
    try:
        members = find_members(_NAME, folder, {rf"{TABLE}$".replace(".", r"\."): TABLE}, _ARCHIVES)
    except DataError as missing:
        try:
            members = find_members(_NAME, folder, [FRAMES], _ARCHIVES)
        except DataError:
            raise DataError(
                f"{missing}; find the orbits of a folder of videos with `setsup prepare video-orbits --root VIDEOS`"
            ) from None
        unfinished, _ = members.matching(r"(?:.+/)?tracks/.+/recipe\.json")
        if len(unfinished):
            raise DataError(
                f"{members.source} contains tracks but no {TABLE}, because the search for orbits was interrupted; "
                "resume the search with `setsup prepare video-orbits`, or with "
                "setsup_papers.orbits.datasets.video_orbits.extract"
            ) from None
        table, places = _of_frames(members)
    else:
        table, places = _of_table(members)
    return ImageTable(_NAME, table, MemberImages(members, places), size)


def _of_frames(members: MemberIndex) -> tuple[FactorTable, Any]:
    places, groups = members.matching(FRAMES)
    folders, codes = np.unique(np.asarray(groups["folder"].to_pylist(), object), return_inverse=True)
    # names are in the order of their bytes, in which a folder inside of another lies among the files of that one
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    frame = np.concatenate([np.arange(count) for count in counts])
    track = Factor("track", Kind.NOMINAL, tuple(folders.tolist()))
    number = Factor("frame", Kind.ORDINAL, tuple(range(int(counts.max()))), role="key")
    values = {"track": folders[codes[order]].tolist(), "frame": frame.tolist()}
    return FactorTable.from_values(values, [track, number]), places[order]


def _of_table(members: MemberIndex) -> tuple[FactorTable, Any]:
    table_place = members.place(TABLE)
    label = members.label(table_place)
    columns = _columns(members.read(table_place, _LARGEST), label)
    places = members.places(columns["file"])
    if (places < 0).any():
        missing = [columns["file"][int(row)].as_py() for row in np.flatnonzero(places < 0)]
        raise DataError(
            f"{int((places < 0).sum()):,} of {len(places):,} files of {label} are missing: {some(missing)[:300]}; "
            "start `setsup prepare video-orbits` again, or restore them"
        )
    names = {name: columns[name].to_pylist() for name in columns.column_names if name != "file"}
    names = {name: values for name, values in names.items() if any(value is not None for value in values)}
    if "video" in names:
        _check_nested(names["track"], names["video"], label)
    return FactorTable.from_values(names, [_factor(name, values, names) for name, values in names.items()]), places


def _columns(content: bytes, label: str) -> Any:
    """Columns of the table that are factors, and the files; None where a field is empty."""
    import pyarrow as pa
    import pyarrow.csv as csv

    kinds = {
        **dict.fromkeys(_TEXTS, pa.string()),
        **dict.fromkeys(_WHOLE, pa.int64()),
        **dict.fromkeys(_NUMBERS, pa.float64()),
        "canonical": pa.bool_(),
    }
    try:
        options = csv.ConvertOptions(
            column_types=kinds,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            true_values=["true"],
            false_values=["false"],
        )
        parse = csv.ParseOptions(newlines_in_values=True)
        table = csv.read_csv(io.BytesIO(comma_separated(content)), csv.ReadOptions(use_threads=False), parse, options)
    except (pa.ArrowException, ValueError, UnicodeDecodeError) as error:
        raise DataError(
            f"{label} is not a table of orbits ({' '.join(str(error).split())[:160]}); create the table again"
        ) from error
    for name in ("file", "track"):
        if table.column_names.count(name) != 1 or table[name].null_count:
            raise DataError(f"{label} must have one column {name!r} without empty fields; create the table again")
    order = ("video", "track", "yaw", "shot", "frame", "time", "score", "canonical")
    twice = [name for name in order if table.column_names.count(name) > 1]
    if twice or not table.num_rows:
        raise DataError(f"{label} has {f'two columns {twice[0]!r}' if twice else 'no rows'}; create the table again")
    for name in _NUMBERS:
        if name in table.column_names and not np.isfinite(table[name].drop_null().to_numpy()).all():
            raise DataError(f"{label}: column {name!r} contains a number that is not finite; create the table again")
    return table.select(["file", *(name for name in order if name in table.column_names)])


def _check_nested(tracks: list[str], videos: list[str | None], label: str) -> None:
    of: dict[str, str | None] = {}
    for track, video in zip(tracks, videos, strict=True):
        if of.setdefault(track, video) != video:
            raise DataError(f"{label}: track {track!r} occurs in two videos; create the table again")


def _factor(name: str, values: list[Any], there: dict[str, list[Any]]) -> Factor:
    levels = None if name in _NUMBERS else tuple(sorted({value for value in values if value is not None}))
    within = "video" if "video" in there else None
    match name:
        case "video":
            return Factor(name, Kind.NOMINAL, levels)
        case "track":
            return Factor(name, Kind.NOMINAL, levels, within=within)
        case "shot" | "frame":
            return Factor(name, Kind.ORDINAL, levels, within=within, role="key")
        case "canonical":
            return Factor(name, Kind.NOMINAL, (False, True), role="key")
        case "yaw":
            return Factor(name, Kind.CONTINUOUS, unit="deg")
        case _:
            return Factor(name, Kind.CONTINUOUS, unit="s" if name == "time" else "", role="key")
