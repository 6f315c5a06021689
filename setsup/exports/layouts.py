"""Layouts of exported renders: a function for each, which writes all of its files below a folder."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from setsup.arrays import Array, Bools, Pixels, Rows
from setsup.errors import DataError, did_you_mean
from setsup.exports.bop import camera_entry, encode_ply, info_entry, model_entry, object_entry
from setsup.exports.coco import annotation
from setsup.exports.flow import encode_flo, encode_kitti_flow
from setsup.exports.png import encode_png, opaque
from setsup.exports.scene_rows import FRAME, flow_videos_of, scenes_of, videos_of
from setsup.exports.tapvid import Video, video_of, write_tap_vid, write_video
from setsup.exports.tracks import NEEDED, choose_queries, follow
from setsup.exports.transforms import frame_entry, transforms
from setsup.progress import Advance
from setsup.scenes.recipes.models import Model, loaded

__all__ = ["LAYOUTS", "Export", "Layout", "LayoutName"]

LayoutName = Literal["bop", "coco", "kitti", "sintel", "tap-vid", "transforms"]

_VISIBLE = 0  # of setsup.correspondence.Status
_STEPS = (1 << 16) - 1  # of a depth image


@dataclass(frozen=True, slots=True)
class Export:
    """What is exported.

    `scene` are the factors of a scene, `names` those of the instances that are annotated, `models` meshes by name, in
    metres; None for what the dataset has. `points` is the number of tracks of each video.
    """

    dataset: Any
    scene: Sequence[str] | None
    names: Sequence[str] | None
    models: Mapping[str, Model]
    points: int
    seed: int

    def row(self, row: int, *names: str) -> dict[str, Array]:
        """Modalities of a row."""
        found: dict[str, Array] = self.dataset.fetch(row, list(names))
        return found

    def instances(self, row: int) -> dict[int, str]:
        """Names of the instances of a row that are annotated, by number."""
        listed: dict[int, str] = self.dataset.names(row)
        named = {number: name or "object" for number, name in listed.items()}
        return {number: name for number, name in named.items() if self.names is None or name in self.names}


def _write_transforms(folder: Path, export: Export, advance: Advance) -> None:
    dataset = export.dataset
    depth = "depth" in dataset.modalities
    for scene in scenes_of(dataset, export.scene):
        scale = _scale(export, scene.rows, 1e-3) if depth else None
        last = _last_frame(dataset)
        frames = []
        for row in scene.rows.tolist():
            found = export.row(row, "image", *(["depth"] if depth else []))
            image, far = f"images/{row:06d}.png", f"depths/{row:06d}.png" if depth else None
            _write(folder / scene.name / image, encode_png(found["image"]))
            if far is not None and scale is not None:
                _write(folder / scene.name / far, encode_png(_steps(found["depth"], scale)))
            time = None if last is None else dataset.factors.row(row)[FRAME] / max(last, 1)
            frames.append(frame_entry(dataset.camera(row), image, far, time))
            advance(1)
        _write_json(folder / scene.name / "transforms.json", transforms(frames, scale))


def _last_frame(dataset: Any) -> float | None:
    """The last frame of all videos; None where there are no frames."""
    if FRAME not in dataset.factors or dataset.factors[FRAME].levels is None:
        return None
    return float(max(dataset.factors[FRAME].levels))


def _write_coco(folder: Path, export: Export, advance: Advance) -> None:
    dataset = export.dataset
    rows = range(len(dataset.factors))
    category = _numbers(export, rows)
    wanted = ["image", "instances", *(name for name in ("mask", "labels") if name in dataset.modalities)]
    images, annotations, above = [], list[dict[str, Any]](), dict[str, str]()
    for row in rows:
        found = export.row(row, *wanted)
        file = f"images/{row:06d}.png"
        _write(folder / file, encode_png(opaque(found["image"])))
        height, width = found["instances"].shape
        images.append({"id": row + 1, "file_name": file, "height": height, "width": width})
        for number, name in export.instances(row).items():
            visible, whole = _masks(found, number)
            if not visible.any():
                continue
            if "labels" in found:
                above.setdefault(name, dataset.classes["labels"][int(found["labels"][visible][0])])
            annotations.append(annotation(len(annotations) + 1, row + 1, category[name], visible, whole))
        advance(1)
    categories = [
        {"id": number, "name": name, "supercategory": above.get(name, "")} for name, number in category.items()
    ]
    about = {"description": dataset.name, "version": "1.0"}
    content = {
        "info": about,
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": categories,
    }
    _write_json(folder / "annotations.json", content)


def _write_bop(folder: Path, export: Export, advance: Advance) -> None:
    dataset = export.dataset
    numbers = _numbers(export, range(len(dataset.factors)))
    amodal = "mask" in dataset.modalities
    wanted = ["image", "depth", "instances", "object_poses", *(["mask"] if amodal else [])]
    for number, scene in enumerate(scenes_of(dataset, export.scene)):
        place = folder / "train" / f"{number:06d}"
        scale = 1000 * _scale(export, scene.rows, 1e-4)
        cameras = dict[int, Any]()
        truth, infos = dict[int, list[Any]](), dict[int, list[Any]]()
        for image, row in enumerate(scene.rows.tolist()):
            found = export.row(row, *wanted)
            _write(place / "rgb" / f"{image:06d}.png", encode_png(opaque(found["image"])))
            _write(place / "depth" / f"{image:06d}.png", encode_png(_steps(found["depth"], scale / 1000)))
            cameras[image] = camera_entry(dataset.camera(row), scale)
            truth[image], infos[image] = [], []
            for instance, name in export.instances(row).items():
                visible, whole = _masks(found, instance)
                whole = visible if whole is None else whole
                if not whole.any():
                    continue
                file = f"{image:06d}_{len(truth[image]):06d}.png"
                _write(place / "mask_visib" / file, encode_png(_bytes(visible)))
                truth[image].append(object_entry(numbers[name], found["object_poses"][instance]))
                if amodal:
                    _write(place / "mask" / file, encode_png(_bytes(whole)))
                    infos[image].append(info_entry(visible, whole, found["depth"]))
            advance(1)
        _write_json(place / "scene_camera.json", cameras)
        _write_json(place / "scene_gt.json", truth)
        if amodal:
            _write_json(place / "scene_gt_info.json", infos)
    _write_models(folder, export.models, numbers)


def _write_models(folder: Path, models: Mapping[str, Model], numbers: Mapping[str, int]) -> None:
    """Write the models that there are, and which number has which name."""
    about = {}
    for name, number in numbers.items():
        if name in models:
            mesh = loaded(models[name])
            _write(folder / "models" / f"obj_{number:06d}.ply", encode_ply(mesh))
            about[number] = model_entry(mesh.vertices[np.unique(mesh.faces)])
    if about:
        _write_json(folder / "models" / "models_info.json", about)
    _write_json(folder / "object_names.json", {number: name for name, number in numbers.items()})


def _write_sintel(folder: Path, export: Export, advance: Advance) -> None:
    """Folders of MPI-Sintel: training/clean, flow and occlusions, each with a folder for each video."""
    for video in flow_videos_of(export.dataset, export.scene, "sintel"):
        for time, row in enumerate(video.rows.tolist()):
            last = time == len(video.rows) - 1
            found = export.row(row, "image", *([] if last else ["exact_flow", "flow_status"]))
            name = f"{video.name}/frame_{time + 1:04d}"
            _write(folder / "training" / "clean" / f"{name}.png", encode_png(opaque(found["image"])))
            if not last:  # its flow leads to a frame that is not there
                hidden = _bytes(found["flow_status"] != _VISIBLE)
                _write(folder / "training" / "flow" / f"{name}.flo", encode_flo(found["exact_flow"]))
                _write(folder / "training" / "occlusions" / f"{name}.png", encode_png(hidden))
            advance(1)


def _write_kitti(folder: Path, export: Export, advance: Advance) -> None:
    """Folders of KITTI 2015: training/image_2, flow_occ and flow_noc, with the numbers _10 and _11 of two frames."""
    pair, names = 0, []
    for video in flow_videos_of(export.dataset, export.scene, "kitti"):
        content = b""
        for time, row in enumerate(video.rows.tolist()):
            last = time == len(video.rows) - 1
            found = export.row(row, "image", *([] if last else ["exact_flow", "flow_status"]))
            content = encode_png(opaque(found["image"]))
            if time:
                _write(folder / "training" / "image_2" / f"{pair - 1:06d}_11.png", content)
            if not last:
                flow, seen = found["exact_flow"], found["flow_status"] == _VISIBLE
                _write(folder / "training" / "image_2" / f"{pair:06d}_10.png", content)
                _write(folder / "training" / "flow_occ" / f"{pair:06d}_10.png", encode_kitti_flow(flow))
                _write(folder / "training" / "flow_noc" / f"{pair:06d}_10.png", encode_kitti_flow(flow, seen))
                names.append(f"{video.name} {time}")
                pair += 1
            advance(1)
    _write(folder / "training" / "pairs.txt", "".join(f"{name}\n" for name in names).encode())


def _write_tap_vid(folder: Path, export: Export, advance: Advance) -> None:
    """``tapvid.pkl`` with all videos, and a ``.npz`` for each."""
    folder.mkdir(exist_ok=True)

    def written() -> Iterator[tuple[str, Video]]:
        for video in videos_of(export.dataset, export.scene):
            made = _video(export, video.name, video.rows)
            with (folder / f"{video.name}.npz").open("wb") as file:
                write_video(file, made)
            yield video.name, made
            advance(len(video.rows))

    write_tap_vid(folder / "tapvid.pkl", written())


def _video(export: Export, name: str, rows: Rows) -> Video:
    """Frames of a video, and tracks of points that are chosen in them."""
    dataset = export.dataset
    frames = dataset.fetch(rows, ["image"])["image"]
    instances = dataset.fetch(rows, ["instances"])["instances"]
    times, pixels = choose_queries(instances, export.points, export.seed, name)
    if hasattr(dataset, "tracks"):
        levels = next(factor.levels for factor in dataset.recipe.factors if factor.name == FRAME)
        columns = [levels.index(dataset.factors.row(row)[FRAME]) for row in rows.tolist()]
        points, shown = np.empty((len(times), len(rows), 2)), np.zeros((len(times), len(rows)), bool)
        for time in np.unique(times).tolist():
            some = times == time
            places, status = dataset.tracks(int(rows[time]), pixels[some])
            points[some], shown[some] = places[:, columns], status[:, columns] == _VISIBLE
    else:
        found = dataset.fetch(rows, list(NEEDED))
        cameras = [dataset.camera(row) for row in rows.tolist()]
        points, shown = follow(times, pixels, cameras, found["depth"], found["instances"], found["object_poses"])
    return video_of(frames, points, shown)


class Layout(NamedTuple):
    """How files of a layout are written, the modalities that it needs, and whether it contains videos."""

    write: Callable[[Path, Export, Advance], None]
    needs: tuple[str, ...]
    videos: bool = False


LAYOUTS: Mapping[LayoutName, Layout] = {
    "bop": Layout(_write_bop, ("image", "depth", "instances", "object_poses")),
    "coco": Layout(_write_coco, ("image", "instances")),
    "kitti": Layout(_write_kitti, ("image", "exact_flow", "flow_status"), videos=True),
    "sintel": Layout(_write_sintel, ("image", "exact_flow", "flow_status"), videos=True),
    "tap-vid": Layout(_write_tap_vid, ("image", *NEEDED), videos=True),
    "transforms": Layout(_write_transforms, ("image",)),
}


def _masks(found: Mapping[str, Array], number: int) -> tuple[Bools, Bools | None]:
    """What is seen of an instance, and the whole of it within the image, where that is known."""
    visible = found["instances"] == number
    if "mask" not in found:
        return visible, None
    return visible, (found["mask"][..., number // 8] >> np.uint8(number % 8) & 1).astype(bool) | visible


def _numbers(export: Export, rows: Sequence[int]) -> dict[str, int]:
    """Numbers of the names of instances, from 1, in the order of the names."""
    names = {name for row in rows for name in export.instances(row).values()}
    for name in export.names or ():
        if name not in names:
            known = {name or "object" for row in rows for name in export.dataset.names(row).values()}
            raise DataError(f"{export.dataset.name} has no instances named {name!r}{did_you_mean(name, sorted(known))}")
    if not names:
        raise DataError(f"{export.dataset.name} has no instances in any row; render scenes with objects")
    return {name: number for number, name in enumerate(sorted(names), 1)}


def _scale(export: Export, rows: Rows, finest: float) -> float:
    """Metres of a step of depth images: the finest power of ten from `finest` on that the largest depth fits."""
    farthest = max(float(export.row(row, "depth")["depth"].max()) for row in rows.tolist())
    scale = finest
    while farthest > scale * _STEPS:
        scale *= 10
    return scale


def _steps(depth: Array, scale: float) -> Array:
    return np.rint(depth.astype(np.float64) / scale).astype(np.uint16)


def _bytes(mask: Bools) -> Pixels:
    return np.where(mask, 255, 0).astype(np.uint8)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _write_json(path: Path, content: Any) -> None:
    _write(path, (json.dumps(content, ensure_ascii=False) + "\n").encode())
