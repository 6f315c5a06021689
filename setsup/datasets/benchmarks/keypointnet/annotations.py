"""Annotations of KeypointNet as arrays: keypoints of all models, from one JSON file per category."""

import os
import re
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.cached_arrays import file_states
from setsup.datasets.formats.json_text import read_json
from setsup.errors import DamagedFile, DataError
from setsup.files import cache_folder, written
from setsup.files.archives.members import MemberIndex

__all__ = ["Annotations", "annotation_files", "read_annotations", "read_category"]

_LARGEST = 1 << 28
_MOST_KEYPOINTS = 4096  # of a model; every row has as many places as the model with the most
_QUICK = 1 << 22  # bytes of JSON that are parsed in less time than matters
_EDITION = 1  # of the arrays in the cache
_CLASS, _MODEL = re.compile("[0-9]{8}"), re.compile(r"[^\s/\\]{1,200}")


@dataclass(frozen=True, slots=True, eq=False)
class Annotations:
    """Annotations of all models, one after the other.

    `classes, models` (n,) str; `files, positions` (n,) int64; `firsts` (n + 1,) int64; `xyz` (k, 3) float32; `ids` (k,)
    int16.
    """

    classes: npt.NDArray[np.str_]
    models: npt.NDArray[np.str_]
    files: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    firsts: npt.NDArray[np.int64]
    xyz: npt.NDArray[np.float32]
    ids: npt.NDArray[np.int16]


def annotation_files(members: MemberIndex) -> list[int]:
    """Places of the files to read: one per category, or a single file of all categories."""
    places, named = members.matching(r"annotations/(?P<category>[^/]+)\.json")
    names = named["category"].to_pylist()
    # the published folder also holds all.json, which says everything once more
    single = [int(member) for member, name in zip(places, names, strict=True) if name != "all"]
    return single or [int(member) for member in places]


def read_annotations(members: MemberIndex) -> Annotations:
    """Read all annotations; those of the whole release come from arrays in the user's cache after the first time."""
    places = annotation_files(members)
    if members.sizes[places].sum() < _QUICK:
        return _join(members, places)
    path = cache_folder() / "keypointnet" / f"annotations-{_identity(members, places)}.npz"
    annotations = _load(path)
    if annotations is None:
        annotations = _join(members, places)
        try:
            with written(path) as part:
                np.savez(part, **{field.name: getattr(annotations, field.name) for field in fields(annotations)})
        except DataError:
            pass  # a cache that cannot be written costs a second at the next opening
    return annotations


def read_category(members: MemberIndex, member: int) -> list[dict[str, Any]]:
    """Parse one file: models as published, each checked to be a JSON object."""
    label = members.label(member)
    models = read_json(members.read(member, _LARGEST), label)
    if not isinstance(models, list) or not all(isinstance(model, dict) for model in models):
        raise DamagedFile(f"{label} is not a list of annotated models")
    return models


def _join(members: MemberIndex, places: list[int]) -> Annotations:
    parts = [_arrays(members, member) for member in places]
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    classes, models, files, positions, counts, xyz, ids = joined
    keys = np.char.add(np.char.add(classes, "-"), models)
    unique, first = np.unique(keys, return_index=True)
    if len(unique) < len(keys):
        twice = np.setdiff1d(np.arange(len(keys)), first)[0]
        raise DataError(
            f"{members.label(int(files[twice]))} repeats the annotation of {keys[twice]}; remove one of the files"
        )
    return Annotations(classes, models, files, positions, np.cumsum([0, *counts]), xyz, ids)


def _check_symmetries(symmetries: Any, count: int) -> None:
    """Make sure that symmetries, where there are any, name keypoints of their own model."""
    for kind in symmetries.values() if symmetries else ():
        for symmetry in kind:
            for index in symmetry["kp_indexes"]:
                if type(index) is not int or not 0 <= index < count:
                    raise ValueError(f"a symmetry refers to keypoint {index!r}, but the model has {count} keypoints")


def _arrays(members: MemberIndex, member: int) -> tuple[npt.NDArray[Any], ...]:
    label = members.label(member)
    models = read_category(members, member)
    if not models:
        raise DamagedFile(f"{label} contains no annotated models")
    xyz, ids = [np.empty((0, 3))], [np.empty(0, np.int16)]
    for number, model in enumerate(models):
        try:
            _check_name(model["class_id"], _CLASS)
            _check_name(model["model_id"], _MODEL)
            points = model["keypoints"]
            if len(points) > _MOST_KEYPOINTS:
                raise ValueError(f"{len(points):,} keypoints, more than the limit of {_MOST_KEYPOINTS:,}")
            xyz.append(np.array([point["xyz"] for point in points], np.float64).reshape(len(points), 3))
            _check_symmetries(model.get("symmetries"), len(points))
            ids.append(np.array([_semantic(point["semantic_id"]) for point in points], np.int16))
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            why = " ".join(str(error).split())[:100]
            raise DamagedFile(f"{label}: model {number} does not match the published format: {why}") from error
    where = np.concatenate(xyz)
    with np.errstate(over="ignore"):
        where = where.astype(np.float32)
    if not np.isfinite(where).all():
        raise DamagedFile(f"{label} contains a keypoint whose position is not finite")
    return (
        np.array([model["class_id"] for model in models]),
        np.array([model["model_id"] for model in models]),
        np.full(len(models), member, np.int64),
        np.arange(len(models)),
        np.array([len(model["keypoints"]) for model in models], np.int64),
        where,
        np.concatenate(ids),
    )


def _check_name(name: str, pattern: re.Pattern[str]) -> None:
    if pattern.fullmatch(name) is None or name.startswith("."):
        raise ValueError(f"invalid name {name[:60]!r}")


def _semantic(number: int) -> int:
    if not isinstance(number, int) or not 0 <= number < 1 << 15:
        raise ValueError(f"invalid semantic id {number!r}; expected an integer from 0 to {(1 << 15) - 1:,}")
    return number


def _identity(members: MemberIndex, places: list[int]) -> str:
    """Digest of what files there are, and of their places, which are stored; it changes when one is replaced."""
    made_of = _EDITION, str(members.source.absolute()), places, file_states(members, places)
    return sha256(os.fsencode(repr(made_of))).hexdigest()[:24]


def _load(path: Path) -> Annotations | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            annotations = Annotations(**{field.name: arrays[field.name] for field in fields(Annotations)})
    except Exception:  # not there, or damaged: it is made again
        return None
    whole = len(annotations.classes) == len(annotations.models) == len(annotations.firsts) - 1 and annotations.firsts[
        -1
    ] == len(annotations.xyz)
    return annotations if whole and len(annotations.ids) == len(annotations.xyz) else None
