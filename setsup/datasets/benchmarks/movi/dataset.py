"""Frames of MOVi, from the TFRecord files that TFDS reads, without TensorFlow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from setsup.arrays import Array, Rows
from setsup.checks import check_choice, check_integer
from setsup.datasets import images
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.inconsistent import replaced
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.adapters.nested_objects import NestedObjects
from setsup.datasets.adapters.record_files import RecordFiles
from setsup.datasets.base import BaseDataset
from setsup.datasets.benchmarks.movi import maps
from setsup.datasets.benchmarks.movi.index import Index, read_index
from setsup.datasets.benchmarks.movi.records import MAPS
from setsup.datasets.benchmarks.movi.variants import NUMBERS, SPLITS, VARIANTS
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.depth_images import decode_deep
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members

__all__ = ["MoviFrames", "open"]

Letter = Literal["a", "b", "c", "d", "e", "f"]
Side = Literal[128, 256, 512]

_OF_MAPS = {
    "image": "video",
    "instances": "segmentations",
    "depth": "depth",
    "normals": "normal",
    "box_coordinates": "object_coordinates",
    "exact_flow": "forward_flow",
    "exact_flow_back": "backward_flow",
}
_TURN = np.diag([1.0, -1, -1, 1])  # from the axes of OpenCV to those of Blender


class MoviFrames(BaseDataset):
    """Frames of the videos of one variant of MOVi, video after video.

    Parameters
    ----------
    release : MemberIndex
        The files.
    variant : str
        ``"a"`` to ``"f"``.
    resolution : int
        Height and width of the images, pixels.

    Attributes
    ----------
    objects : FactorTable
        Objects of all videos in order: attributes, mass, friction and restitution, and the key ``object``, its number
        in the video.

    """

    name = "movi"
    cpu_bound = True

    def __init__(self, release: MemberIndex, variant: Letter, resolution: Side) -> None:
        self._source = release.source
        self._letter, self._variant, self._side = variant, VARIANTS[variant], int(resolution)
        places, self._splits = _files(release, variant, self._side)
        self._files = RecordFiles(release, places)
        scenes, objects = self._index.scenes, self._index.objects
        self._firsts = np.cumsum(scenes["frames"], dtype=np.int64) - scenes["frames"]
        self._scene_of = np.repeat(np.arange(len(scenes)), scenes["frames"])
        counts = scenes["objects"].astype(np.int64)
        self._first_motions = np.cumsum(counts * scenes["frames"]) - counts * scenes["frames"]
        self.objects = self._object_table(objects, counts)
        self._nested = NestedObjects(self.objects, counts)
        self.factors = self._frame_table(scenes)
        self.modalities = self._describe()

    def _object_table(self, objects: Array, counts: Rows) -> FactorTable:
        columns: dict[Factor, Array] = {}
        for name, level in self._variant.levels.items():
            columns[Factor(name, Kind.NOMINAL, level.names)] = np.asarray(objects[name], np.int64)
        if "asset_id" in self._variant.features:
            columns.update([nominal("asset", [text.decode() for text in objects["asset"].tolist()])])
        numbers = [*NUMBERS, *(["scale"] if "scale" in self._variant.features else [])]
        columns.update({Factor(name, Kind.CONTINUOUS): np.asarray(objects[name]) for name in numbers})
        number = np.arange(len(objects)) - np.repeat(np.cumsum(counts) - counts, counts)
        levels = tuple(range(max(1, int(counts.max()))))
        return table_of({**columns, Factor("object", Kind.ORDINAL, levels, role="key"): number})

    def _frame_table(self, scenes: Array) -> FactorTable:
        of, split = self._scene_of, self._splits[self._index.files]
        names = [f"{SPLITS[part]}/{name.decode()}" for part, name in zip(split, scenes["name"].tolist(), strict=True)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DamagedFile(f"{self._source} contains the video {twice} more than once")
        scene, codes = nominal("scene", names)
        number = np.arange(len(of)) - self._firsts[of]
        levels = tuple(range(int(scenes["frames"].max())))
        columns: list[tuple[Factor, Array]] = [
            (scene, codes[of]),
            (Factor("frame", Kind.ORDINAL, levels, within="scene", role="key"), number),
        ]
        level_counts = [each for name in self._variant.levels for each in self._nested.level_counts([name])]
        for factor, column in (self._nested.count_factor(), *level_counts):
            named = Factor(factor.name.lower().replace(" ", "_"), factor.kind, factor.levels)
            columns.append((named, column[of]))
        if any(scenes["background"].tolist()):
            factor, column = nominal("background", [text.decode() for text in scenes["background"].tolist()])
            columns.append((factor, column[of]))
        if np.isfinite(scenes["motion_blur"]).all():
            columns.append((Factor("motion_blur", Kind.CONTINUOUS), scenes["motion_blur"][of]))
        columns.append((Factor("split", Kind.NOMINAL, SPLITS, role="split"), split[of]))
        return table_of(columns)

    def _describe(self) -> dict[str, Modality]:
        size, most = (self._side, self._side), self._nested.most
        found = {
            "image": Modality((*size, 3), "uint8", color="srgb"),
            "depth": Modality(size, "float32", unit="m"),
            "exact_flow": Modality((*size, 2), "float32", unit="pixel"),
            "exact_flow_back": Modality((*size, 2), "float32", unit="pixel"),
            "instances": Modality(size, "int32"),
            "normals": Modality((*size, 3), "float32"),
            "box_coordinates": Modality((*size, 3), "float32"),
            "pose": Modality((4, 4), "float32", unit="m"),
            "intrinsics": Modality((3, 3), "float32", unit="pixel"),
            "object_poses": Modality((most, 4, 4), "float32", unit="m"),
            "visible_pixels": Modality((most,), "int32", unit="pixel"),
            **{name: Modality((most,), "int8") for name in self._variant.levels},
        }
        if "color" in self._variant.features:
            found["rgb"] = Modality((most, 3), "float32")
        if "scale" in self._variant.features:
            found["scale"] = Modality((most,), "float32")
        if np.isfinite(self._index.scenes["background_color"]).all():
            found["background_color"] = Modality((3,), "float32")
        return found

    @per_process
    def _index(self) -> Index:
        """Index of the records, mapped."""
        return read_index(self._files, self._letter, self._variant, self._side)

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        scenes = self._scene_of[rows]
        if name in _OF_MAPS:
            return self._maps(name, rows, out)
        if name == "pose":
            return self._poses(rows).astype(np.float32)
        if name == "intrinsics":
            out[...] = np.eye(3)
            out[:, [0, 1], [0, 1]] = self._focal(scenes)[:, None]
            out[:, :2, 2] = (self._side - 1) / 2
            return out
        if name in ("object_poses", "visible_pixels"):
            return self._motions(name, rows, out)
        if name == "background_color":
            return np.asarray(self._index.scenes["background_color"][scenes])
        if name == "rgb":
            return self._of_objects(self._index.objects["rgb"], scenes, out)
        return self._nested.nested(name, scenes)

    def _focal(self, scenes: Rows) -> Array:
        """Focal lengths of videos, pixels."""
        of = self._index.scenes[scenes]
        return np.asarray(self._side * of["focal_length"].astype(np.float64) / of["sensor_width"])

    def _poses(self, rows: Rows) -> Array:
        frames = self._index.frames[rows]
        return np.asarray(maps.poses(frames["position"], frames["quaternion"]) @ _TURN)

    def _of_objects(self, values: Array, scenes: Rows, out: Array) -> Array:
        out[...] = np.nan
        for slot, scene in enumerate(scenes.tolist()):
            first, count = self._nested.firsts[scene], self._nested.counts[scene]
            out[slot, :count] = values[first : first + count]
        return out

    def _motions(self, name: str, rows: Rows, out: Array) -> Array:
        out[...] = -1 if name == "visible_pixels" else np.nan
        world = np.linalg.inv(self._poses(rows))
        for slot, (row, scene) in enumerate(zip(rows.tolist(), self._scene_of[rows].tolist(), strict=True)):
            count, frames = int(self._nested.counts[scene]), int(self._index.scenes["frames"][scene])
            first = self._first_motions[scene] + row - self._firsts[scene]
            own = self._index.motions[first : first + (count - 1) * frames + 1 : frames] if count else None
            if own is not None and name == "visible_pixels":
                out[slot, :count] = own["visible"]
            elif own is not None:
                out[slot, :count] = world[slot] @ maps.poses(own["position"], own["quaternion"])
        return out

    def _maps(self, name: str, rows: Rows, out: Array) -> Array:
        feature = _OF_MAPS[name]
        convert = self._converter(name, rows)
        scenes, spans = self._scene_of[rows], self._index.frames["spans"][rows, MAPS.index(feature)]
        files = self._index.files[scenes]
        # file by file, so that one that has to be unpacked is unpacked once
        order = np.argsort(files, kind="stable").tolist()

        def read(slot: int) -> None:
            file, row = int(files[slot]), int(rows[slot])
            label = f"{self._files.label(file)}, {feature!r} of frame {row - self._firsts[scenes[slot]]} (row {row})"
            out[slot] = convert(slot, self._files.read(file, *spans[slot].tolist()), label)

        images.parallel(read, order)
        return out

    def _converter(self, name: str, rows: Rows) -> Callable[[int, bytes, str], Any]:
        """Make the function from the slot and content of a map to its array."""
        size = self._side, self._side
        scenes = self._scene_of[rows]
        ranges = self._index.scenes["ranges"][scenes]
        if name in ("image", "instances"):
            channels = 3 if name == "image" else 1

            def eight(slot: int, content: bytes, label: str) -> Array:
                pixels = images.decode(content, label, channels)
                if pixels.shape != (*size, channels):
                    raise replaced(label)
                return pixels if channels == 3 else pixels[..., 0].astype(np.int32) - 1

            return eight
        if name == "depth":
            focal, native = self._focal(scenes), self._variant.native
            return lambda slot, content, label: (
                maps.from_range(decode_deep(content, label, size)[..., 0], ranges[slot, 0])
                * maps.z_factors(self._side, native, focal[slot])
            )
        if name == "normals":
            poses = self._poses(rows)
            return lambda slot, content, label: maps.camera_normals(
                decode_deep(content, label, size, 3), poses[slot, :3, :3]
            )
        if name == "box_coordinates":
            return lambda slot, content, label: decode_deep(content, label, size, 3) / np.float32(65535)
        place, sign = (1, 1) if name == "exact_flow" else (2, -1)
        return lambda slot, content, label: sign * maps.exact_flow(content, self._side, ranges[slot, place], label)


def open(root: Path | str | None = None, variant: Letter = "a", resolution: Side = 128) -> MoviFrames:
    """Open a variant of MOVi [1]_, as the TFRecord files of its folder ``movi_a/128x128/1.0.0``.

    Rows are frames, video after video. Factors: ``scene``, split and name of the video; the key ``frame``; ``objects``,
    the number of objects; the number of objects of each level of their nominal attributes (``cube``, ``small``, …);
    ``background`` (C to F) and ``motion_blur`` (F) of the video; and ``split``.

    Modalities: ``image``; ``depth``, metres along the optical axis; ``exact_flow`` and ``exact_flow_back``, pixels
    (right, down) to the next frame and to the one before; ``instances``, the number of each pixel's object, −1 for the
    background; ``normals`` in the camera's frame; ``box_coordinates``, the place within the object's bounding box, 0 to
    1 as published; ``pose``, camera to world, and ``intrinsics``. For the objects of the video, in the order of the
    release and padded to the largest number with −1 or NaN: ``object_poses``, to the camera; ``visible_pixels``, of the
    frame at its rendered size of 256 × 256 (F: 512 × 512); codes of ``shape``, ``size``, ``color`` and ``material``
    (A), ``shape`` and ``material`` (B), ``category`` (C to F) and ``motion`` (D to F), whose levels are those of
    :attr:`MoviFrames.objects`; ``rgb`` (A, B) and ``scale`` (B to F). B has ``background_color``.

    Velocities, boxes and collisions of the release are not read.

    Parameters
    ----------
    root : Path or str, optional
        Folder that contains ``movi_a``, or this folder, or the one with the files.
    variant : str
        ``"a"`` to ``"f"``.
    resolution : int
        128, 256, or 512 for F: which of the published sizes.

    Raises
    ------
    DataError
        When the files are missing or damaged.

    References
    ----------
    .. [1] K. Greff et al., "Kubric: a scalable dataset generator", CVPR 2022.

    """
    check_choice(variant, list(VARIANTS), "variant", DataError)
    sides = [side for side in (128, 256, 512) if side <= VARIANTS[variant].native]
    if check_integer(resolution, "resolution", DataError) not in sides:
        known = " or ".join(map(str, sides))
        raise DataError(f"resolution of variant {variant} must be {known}, not {resolution}")
    holds = {_pattern(variant, resolution): f"movi_{variant}/{resolution}x{resolution}/1.0.0/*.tfrecord-*"}
    return MoviFrames(find_members("movi", root, holds), variant, resolution)


def _pattern(letter: str, side: int) -> str:
    return (
        rf"(?:(?:movi_{letter}/)?{side}x{side}/)?(?:1\.0\.0/)?movi_{letter}-(?P<split>{'|'.join(SPLITS)})\.tfrecord-"
        r"(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})"
    )


def _files(release: MemberIndex, letter: str, side: int) -> tuple[Rows, Rows]:
    """Places of the record files, by split and number, and the split of each; a warning counts missing ones."""
    places, groups = release.matching(_pattern(letter, side))
    splits = np.array([SPLITS.index(split) for split in groups["split"].to_pylist()], np.int64)
    numbers, counts = (np.array(groups[name].to_pylist()).astype(np.int64) for name in ("number", "count"))
    lost, total = [], 0
    for code in np.unique(splits).tolist():
        own = splits == code
        found = numbers[own].tolist()
        count = int(counts[own].max())
        if len(set(counts[own].tolist())) > 1 or len(set(found)) < len(found) or max(found) >= count:
            raise DamagedFile(
                f"{release.source} contains the files of {SPLITS[code]} of several versions or twice; keep those of one"
            )
        total += count
        missing = sorted(set(range(count)) - set(found))
        lost += [f"movi_{letter}-{SPLITS[code]}.tfrecord-{number:05}-of-{count:05}" for number in missing]
    warn_left_out(release.source, "record files", lost, total)
    order = np.lexsort((numbers, splits))
    return places[order], splits[order]
