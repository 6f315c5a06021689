"""Models of a copy of ShapeNetCore and their files: one tree, or one zip per category."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Places
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.texts import comma_separated

__all__ = ["Models", "find_models", "published_splits"]


_FILE = (
    r"(?P<synset>[0-9]{8})/(?P<model>[^/]+)/(?P<stem>models/model_normalized|model)\."
    r"(?P<kind>obj|solid\.binvox|surface\.binvox)"
)
_STEMS = {"v2": "models/model_normalized", "v1": "model"}
_ARCHIVES = ("ShapeNetCore.v2.zip", "ShapeNetCore.v1.zip", "ShapeNetCore.zip", "ShapeNetCore.v2.tar")
_LARGEST_LIST = 1 << 27
_SPLITS = ("train", "val", "test")


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """Models of a release, sorted by synset and id.

    `synsets, ids` (n,) pyarrow arrays of text; `obj, solid, surface` (n,) int64.
    """

    release: MemberIndex
    version: str
    synsets: Any
    ids: Any
    obj: Places
    solid: Places
    surface: Places


def find_models(root: Path | str | None) -> Models:
    """Find all models below a root, as :func:`setsup.datasets.benchmarks.shapenet.open` takes it."""
    holds = {
        r"[0-9]{8}/[^/]+/(models/model_normalized|model)\.obj": "<synset>/<model>/models/model_normalized.obj, "
        "<synset>/<model>/model.obj or <synset>.zip"
    }
    release = find_members("shapenet", root, holds, _ARCHIVES, parts=r"[0-9]{8}\.zip")
    return _models(release)


def published_splits(models: Models) -> npt.NDArray[np.int64] | None:
    """Codes of train (0), val (1) and test (2) from ``all.csv``, -1 for models it does not list; None without it."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as csv

    if "all.csv" not in models.release:
        return None
    member = models.release.place("all.csv")
    label = models.release.label(member)
    columns = ["synsetId", "modelId", "split"]
    kinds = csv.ConvertOptions(include_columns=columns, column_types=dict.fromkeys(columns, pa.string()))
    try:
        content = comma_separated(models.release.read(member, _LARGEST_LIST))
        table = csv.read_csv(io.BytesIO(content), convert_options=kinds)
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise DamagedFile(f"{label} is not a table with the columns {', '.join(columns)}") from error
    codes = pc.index_in(table["split"], value_set=pa.array(_SPLITS))
    if codes.null_count:
        wrong = table["split"].filter(pc.is_null(codes))[0]
        raise DamagedFile(f"{label} has the split {str(wrong)[:40]!r}; expected one of {', '.join(_SPLITS)}")
    where = pc.index_in(_keys(models.synsets, models.ids), value_set=_keys(table["synsetId"], table["modelId"]))
    return np.asarray(pc.fill_null(codes.combine_chunks().take(where), -1), np.int64)


def _models(release: MemberIndex) -> Models:
    import pyarrow as pa
    import pyarrow.compute as pc

    places, groups = release.matching(_FILE)
    stems, kinds = groups["stem"], groups["kind"]
    meshes = pc.equal(kinds, "obj")
    versions = [version for version, stem in _STEMS.items() if pc.any(pc.and_(meshes, pc.equal(stems, stem))).as_py()]
    if len(versions) > 1:
        raise DataError(f"{release.source} contains models of both versions, v1 and v2; move them to separate folders")
    keys = _keys(groups["synset"], groups["model"])
    own = np.asarray(meshes)
    voxels = []
    for kind in ("solid.binvox", "surface.binvox"):
        there = np.flatnonzero(np.asarray(pc.equal(kinds, kind)))
        at = np.asarray(pc.fill_null(pc.index_in(keys.filter(own), value_set=keys.take(there)), -1), np.int64)
        voxels.append(np.where(at >= 0, np.append(places[there], -1)[at], -1))
    synsets, ids = (_plain(groups[name]).filter(own) for name in ("synset", "model"))
    order = np.asarray(pc.sort_indices(pa.table({"s": synsets, "i": ids}), [("s", "ascending"), ("i", "ascending")]))
    solid, surface = (column[order] for column in voxels)
    return Models(release, versions[0], synsets.take(order), ids.take(order), places[own][order], solid, surface)


def _keys(synsets: Any, ids: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(_plain(synsets), _plain(ids), pa.scalar("/", pa.large_string()))


def _plain(column: Any) -> Any:
    import pyarrow as pa

    joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return joined.cast(pa.large_string())
