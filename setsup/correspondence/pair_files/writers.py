"""Files of pairs of views: a function for each layout, which writes all of its files below a folder."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from setsup.arrays import Floats, Reals
from setsup.checks.memory import check_memory
from setsup.correspondence.pair_files.choosing import ScenePairs
from setsup.correspondence.pair_files.exr import encode_exr
from setsup.correspondence.pair_files.layouts import (
    PAIRS,
    d2net_scene,
    dust3r_camera,
    dust3r_metadata,
    loftr_scene,
    superglue_line,
)
from setsup.correspondence.pair_files.portable import pickle_plain, write_npz
from setsup.correspondence.pair_files.shared_points import SharedPoints, find_points
from setsup.correspondence.pair_files.views import ViewFiles, encode_image, read_images, read_views
from setsup.datasets.dataset import Dataset
from setsup.errors import DataError, advice
from setsup.progress import Advance
from setsup.samplers.overlap.bands import Band
from setsup.samplers.overlap.table import TRACKS, OverlapTable

__all__ = ["LAYOUTS", "Layout", "LayoutName", "MeasuredDataset", "WrittenScene"]

LayoutName = Literal["d2-net", "loftr", "dust3r", "superglue", "hloc"]

_SHARED = 32  # sample pixels of each ordered pair in D2-Net's files
_PAIRS, _SCENES = "pairs.txt", "scenes.txt"


class MeasuredDataset(NamedTuple):
    """A dataset, the overlaps of its views, and the bands that pairs are in."""

    dataset: Dataset
    table: OverlapTable
    bands: Mapping[str, Band]


class WrittenScene(NamedTuple):
    """A scene to write.

    Attributes
    ----------
    name : str
        Its name.
    pairs : ScenePairs
        Its pairs.
    overlaps : (m,) float32
        Overlaps of the pairs.
    images : list of str
        Names of the images of its views, without suffix; with it where they are `files`.
    files : bool
        Whether images are files that the dataset has.

    """

    name: str
    pairs: ScenePairs
    overlaps: Floats
    images: list[str]
    files: bool


class _Cameras(NamedTuple):
    """Cameras of the views of a scene: intrinsics (n, 3, 3), and poses (n, 4, 4) from the world to the camera."""

    k: Reals
    poses: Reals


def _write_d2net(folder: Path, source: MeasuredDataset, scenes: Sequence[WrittenScene], advance: Advance) -> None:
    for scene in scenes:
        views, pairs = scene.pairs.views, scene.pairs.pairs
        check_memory(
            40 * len(views) ** 2,
            f"the matrices of {len(views):,} views",
            f"the views with {advice('where=', '--where')}",
            DataError,
        )
        cameras = _write_views(source.dataset, scene, partial(_put_megadepth, folder, scene.name), advance, depth=True)
        overlaps = np.full((len(views), len(views)), np.nan)
        if source.bands == {"overlap": (0.0, source.bands["overlap"][1])}:
            overlaps[source.table.is_disjoint(views[:, None], views)] = 0
        overlaps[pairs[:, 0], pairs[:, 1]] = scene.overlaps
        arrays = d2net_scene(
            [_image(scene.name, name) for name in scene.images],
            [_depth(scene.name, name) for name in scene.images],
            *cameras,
            overlaps,
            _points(source, scene, cameras, None if source.table.source == TRACKS else _SHARED),
            pairs,
        )
        file = folder / "scene_info" / f"{scene.name}.0.npz"
        file.parent.mkdir(exist_ok=True)
        write_npz(file, arrays)
    _write_lines(folder / _SCENES, [f"{scene.name}.0" for scene in scenes])


def _write_loftr(folder: Path, source: MeasuredDataset, scenes: Sequence[WrittenScene], advance: Advance) -> None:
    low, high = source.bands["overlap"]
    names = [f"{scene.name}_{low:g}_{high:g}" for scene in scenes]
    for scene, name in zip(scenes, names, strict=True):
        put = partial(_put_megadepth, folder, scene.name)
        cameras = _write_views(source.dataset, scene, put, advance, depth=True, skew=True)
        shared = _points(source, scene, cameras, 1)
        content = loftr_scene(
            [_image(scene.name, image) for image in scene.images],
            [_depth(scene.name, image) for image in scene.images],
            *cameras,
            scene.pairs.pairs,
            scene.overlaps.astype(np.float64),
            np.concatenate([shared.pixels1, shared.pixels2], axis=1),
        )
        _write_bytes(folder / "scene_info" / f"{name}.npz", pickle_plain(content))
    _write_lines(folder / _SCENES, names)


def _write_dust3r(folder: Path, source: MeasuredDataset, scenes: Sequence[WrittenScene], advance: Advance) -> None:
    pairs, known = [], 0
    for number, scene in enumerate(scenes):
        _write_views(source.dataset, scene, partial(_put_dust3r, folder / scene.name / "0"), advance, depth=True)
        own = np.empty(len(scene.pairs.pairs), PAIRS)
        own["scene_id"], own["score"] = number, scene.overlaps
        own["im1_id"], own["im2_id"] = known + scene.pairs.pairs.T
        pairs.append(own)
        known += len(scene.images)
    names = [f"{scene.name} 0" for scene in scenes]
    images = [name for scene in scenes for name in scene.images]
    write_npz(folder / "all_metadata.npz", dust3r_metadata(names, images, np.concatenate(pairs)))


def _write_superglue(folder: Path, source: MeasuredDataset, scenes: Sequence[WrittenScene], advance: Advance) -> None:
    lines = []
    for scene in scenes:
        put = partial(_put_megadepth, folder, scene.name)
        k, poses = _write_views(source.dataset, scene, put, advance, depth=False)
        names = [f"{scene.name}/{name}.jpg" for name in scene.images]
        for one, two in scene.pairs.pairs.tolist():
            lines.append(superglue_line((names[one], names[two]), (k[one], k[two]), (poses[one], poses[two])))
    _write_lines(folder / _PAIRS, lines)


def _write_hloc(folder: Path, source: MeasuredDataset, scenes: Sequence[WrittenScene], advance: Advance) -> None:
    lines = []
    for scene in scenes:
        names = scene.images
        if not scene.files:
            images = read_images(source.dataset, scene.pairs.views)
            for name, image in zip(names, images, strict=True):
                _write_bytes(folder / _image(scene.name, name), encode_image(image))
                advance(1)
            names = [f"{scene.name}/{name}.jpg" for name in names]
        lines += [f"{names[one]} {names[two]}" for one, two in scene.pairs.pairs.tolist()]
    _write_lines(folder / _PAIRS, lines)


class Layout(NamedTuple):
    """How files of a layout are written, and which names and pairs they contain.

    Attributes
    ----------
    write : callable
        Writes all files below a folder; its last argument is called with the number of views that are done.
    directed : bool
        Whether a pair is written in each direction that fits; otherwise once.
    zeros : bool
        Whether pairs with an overlap of 0 are written.
    blanks : bool
        Whether names may contain blanks, which separate columns in other layouts.
    own_files : bool
        Whether images are files of the dataset, where it has some; otherwise all are written.

    """

    write: Callable[[Path, MeasuredDataset, Sequence[WrittenScene], Advance], None]
    directed: bool = False
    zeros: bool = True
    blanks: bool = False
    own_files: bool = False


LAYOUTS: Mapping[LayoutName, Layout] = {
    "d2-net": Layout(_write_d2net, directed=True, blanks=True),
    "loftr": Layout(_write_loftr, zeros=False),
    "dust3r": Layout(_write_dust3r),
    "superglue": Layout(_write_superglue),
    "hloc": Layout(_write_hloc, own_files=True),
}


def _points(source: MeasuredDataset, scene: WrittenScene, cameras: _Cameras, most: int | None) -> SharedPoints:
    """Common points of the pairs of a scene; refuses pairs that overlap and have none."""
    views, pairs = scene.pairs.views, scene.pairs.pairs
    shared = find_points(source.dataset, source.table, views, pairs, cameras.poses, most)
    lost = np.flatnonzero((scene.overlaps > 0) & (np.bincount(shared.pair, minlength=len(pairs)) == 0))
    if len(lost):
        one, two = views[pairs[lost[0]]].tolist()
        raise DataError(
            f"rows {one} and {two} of {source.dataset.name} share no point, but their overlap is "
            f"{scene.overlaps[lost[0]]:.3f} in the table: the dataset has changed since it was measured; measure the "
            "overlaps again"
        )
    return shared


def _write_views(
    dataset: Dataset,
    scene: WrittenScene,
    put: Callable[[str, ViewFiles], None],
    advance: Advance,
    *,
    depth: bool,
    skew: bool = False,
) -> _Cameras:
    """Write the files of the views of a scene with ``put(name, view)``."""
    k, poses = [], []
    views = read_views(dataset, scene.pairs.views, depth=depth, skew=skew)
    for name, view in zip(scene.images, views, strict=True):
        put(name, view)
        k.append(view.k)
        poses.append(view.pose)
        advance(1)
    return _Cameras(np.stack(k), np.stack(poses))


def _put_megadepth(folder: Path, scene: str, name: str, view: ViewFiles) -> None:
    """Write ``images/<scene>/<name>.jpg``, and ``depths/<scene>/<name>.h5`` where there is depth."""
    _write_bytes(folder / _image(scene, name), encode_image(view.image))
    if view.depth is not None:
        import h5py

        file = folder / _depth(scene, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(file, "w") as content:
            content.create_dataset("depth", data=view.depth, compression="gzip", shuffle=True)


def _put_dust3r(folder: Path, name: str, view: ViewFiles) -> None:
    """Write ``<name>.jpg``, ``.exr`` and ``.npz``."""
    _write_bytes(folder / f"{name}.jpg", encode_image(view.image))
    if view.depth is not None:
        _write_bytes(folder / f"{name}.exr", encode_exr(view.depth))
    write_npz(folder / f"{name}.npz", dust3r_camera(view.k, view.pose))


def _image(scene: str, name: str) -> str:
    return f"images/{scene}/{name}.jpg"


def _depth(scene: str, name: str) -> str:
    return f"depths/{scene}/{name}.h5"


def _write_bytes(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    _write_bytes(path, "".join(f"{line}\n" for line in lines).encode())
