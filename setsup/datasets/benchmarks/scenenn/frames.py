"""SceneNN frames: color and depth images extracted from the recordings, with the camera's path.

Convention
----------
Depth is along the camera's z, in metres, 0 if unknown. A pose maps camera coordinates (x right, y down, z forward) to
the frame of the scene's mesh, whose y points up. Intrinsics are in pixels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from setsup.datasets.adapters.fetching import read_distinct
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.benchmarks.scenenn.cameras import ASUS, lens, looked_up, recorded
from setsup.datasets.benchmarks.scenenn.objects import read_objects
from setsup.datasets.benchmarks.scenenn.splits import online3d
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.depth_images import decode_channels, decode_depth
from setsup.datasets.formats.source import Source
from setsup.datasets.images import decode
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members

__all__ = ["SceneNNFrames", "open"]

_SIZE = (480, 640)
_KINDS = ("image/image", "depth/depth", "mask/mask", "mask/mask_image")
# without two ways to read a name, which makes matching several times as fast
_FRAME = rf"(?P<scene>[0-9]{{3}})/(?P<kind>{'|'.join(_KINDS)})(?P<frame>[0-9]{{5,8}})\.png"
_MOST_FRAMES = 10**8
_SENSORS = ("asus", "kinect2")
_IMAGES = ("image", "depth", "mask")
_MOST_XML = 1 << 24  # bytes of an annotation


class SceneNNFrames(BaseDataset):
    """Color and depth images of recorded rooms; one row per frame that has both, by scene and frame number.

    Factors are ``scene``, ``frame`` (number in the scene, from 1; a key), ``time`` (recording time in s), ``tracked``
    (whether the trajectory has a pose for the frame that is a rotation and a translation: its last row is 0 0 0 1 and
    its determinant within 0.1 of 1) and ``sensor``; ``online3d`` is a split.

    Modalities are ``image``, (480, 640, 3) uint8; ``depth``, (480, 640) float32, m, 0 if unknown; ``pose``, (4, 4)
    float32, camera to world, NaN if a frame is not tracked; ``intrinsics``, (3, 3) float32, pixels; and, if masks
    exist, ``instances``, (480, 640) int32: the object id of each pixel as in the scene's XML file, -1 in frames without
    a mask. Masks encode ids as colors. With four channels, blue is the most significant, then green, red and alpha, as
    in the authors' program mask_from_label. With three channels, as in their README, the order is undocumented: red or
    blue is the most significant, whichever gives more pixels an id of the scene's XML file, which must be in the
    scene's folder. Neither was checked against a published mask.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.
    kinect2 : sequence of str
        Scenes that were recorded with a Kinect 2.

    Raises
    ------
    DataError
        When no frame has both images, or a trajectory, a file of times or of intrinsics is damaged.

    """

    name = "scenenn-frames"
    cpu_bound = True

    def __init__(self, members: MemberIndex, kinect2: Sequence[str] = ()) -> None:
        files = _found(members)
        wanted = sorted(set(kinect2))
        scenes = [f"{scene:03d}" for scene in np.unique(files.scenes).tolist()]
        if unknown := [scene for scene in wanted if scene not in scenes]:
            raise DataError(f"{members.source} has no frames of the scene {unknown[0]!r} in kinect2=")
        codes = np.unique(files.scenes, return_inverse=True)[1]
        sensors = np.isin(np.arange(len(scenes)), [scenes.index(scene) for scene in wanted]).astype(np.uint8)
        self._cameras = recorded(members, scenes, codes, files.frames)
        numbers, frames = np.unique(files.frames, return_inverse=True)
        split, parts = online3d(scenes, codes)
        tracked = ~np.isnan(self._cameras["pose"][:, 0, 0])
        self.factors = FactorTable(
            [
                Factor("scene", Kind.NOMINAL, tuple(scenes)),
                Factor("frame", Kind.ORDINAL, tuple(numbers.tolist()), within="scene", role="key"),
                Factor("time", Kind.CONTINUOUS, unit="s"),
                Factor("tracked", Kind.NOMINAL, (False, True)),
                Factor("sensor", Kind.NOMINAL, _SENSORS),
                split,
            ],
            {
                "scene": codes,
                "frame": frames,
                "time": self._cameras["time"],
                "tracked": tracked.astype(np.uint8),
                "sensor": sensors[codes],
                split.name: parts,
            },
        )
        self._source, self._members = members.source, members
        self._annotated: dict[str, Rows] = {}
        self._files = {kind: MemberImages(members, files.places[kind]) for kind in ("image", "depth")}
        self._masked = files.places["mask"] >= 0
        if self._masked.any():
            self._files["instances"] = MemberImages(members, np.maximum(files.places["mask"], 0))
        # the lens of a sensor that took no scene is never asked for
        self._lenses = np.stack(
            [lens(members, sensor) if code in sensors else ASUS for code, sensor in enumerate(_SENSORS)]
        )
        self.modalities = {name: _MODALITIES[name] for name in _MODALITIES if name != "instances" or self._masked.any()}

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        if name == "pose":
            return np.asarray(self._cameras["pose"][rows])
        if name == "intrinsics":
            return np.asarray(self._lenses[self.factors.codes("sensor", rows)])

        def take(distinct: Rows) -> list[tuple[Source, str, int]]:
            return [(*item, row) for item, row in zip(self._files[name].take(distinct), distinct.tolist(), strict=True)]

        def put(item: tuple[Source, str, int], slot: int) -> None:
            source, label, row = item
            if name != "instances":
                out[slot] = _READ[name](source, label)
            elif self._masked[row]:
                out[slot] = _ids(decode_channels(source, label, _SIZE), partial(self._known, row), label)
            else:
                out[slot] = -1

        read_distinct(rows, [out], take, put)
        return out

    def _known(self, row: int) -> Rows:
        """Ids of the objects in a row's scene, none where its annotation is missing."""
        scene = str(self.factors.values("scene", row))
        if scene not in self._annotated:
            name = f"{scene}/{scene}.xml"
            content = self._members.read(self._members.place(name), _MOST_XML) if name in self._members else None
            objects = [] if content is None else read_objects(content, f"{self._source}: {name}")
            self._annotated[scene] = np.array([scene_object.id for scene_object in objects], np.int64)
        return self._annotated[scene]


def open(root: Path | str | None = None, *, kinect2: Sequence[str] = ()) -> SceneNNFrames:
    """Open the frames that were extracted from SceneNN's recordings.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``005/image/image00001.png``, ``005/depth/depth00001.png``, ``005/trajectory.log`` and so on, or
        with a subfolder ``scenenn-frames`` or ``scenenn`` that contains them, or a zip or tar; None for the default
        folders of either name. Trajectories may also be in ``trajectory/005_trajectory.log``.
    kinect2 : sequence of str
        Scenes that were recorded with a Kinect 2, whose intrinsics are read from ``intrinsic/kinect2.ini``. All others
        were recorded with an Asus Xtion, like the main release; its intrinsics are read from ``intrinsic/asus.ini`` if
        it exists, and are the published ones otherwise.

    Raises
    ------
    DataError
        When the files are missing, no frame has both images, or a text file is damaged.

    """
    kinds = ("image", "depth")
    images = {rf"[0-9][0-9][0-9]/{kind}/{kind}[0-9]+\.png": f"<scene>/{kind}/{kind}<frame>.png" for kind in kinds}
    return SceneNNFrames(find_members("scenenn-frames", root, images), kinect2)


@dataclass(frozen=True, slots=True)
class _Found:
    """Frames that have image and depth: number of the scene, of the frame, and place of each file, -1 for none."""

    scenes: Rows
    frames: Rows
    places: Mapping[str, Rows]


def _found(members: MemberIndex) -> _Found:
    import pyarrow as pa
    import pyarrow.compute as pc

    matched, groups = members.matching(_FRAME)
    kinds = np.asarray(pc.index_in(groups["kind"], value_set=pa.array(_KINDS, groups["kind"].type)), np.int64)
    keys = np.asarray(groups["scene"].cast("int64")) * _MOST_FRAMES + np.asarray(groups["frame"].cast("int64"))
    by_kind = []
    for kind in range(len(_IMAGES)):
        # a mask has one of two names, and where both are there the first counts
        chosen = np.flatnonzero(np.minimum(kinds, 2) == kind)
        chosen = chosen[np.argsort(keys[chosen], kind="stable")]
        distinct, first = np.unique(keys[chosen], return_index=True)
        by_kind.append((distinct, matched[chosen[first]]))
    rows = np.intersect1d(by_kind[0][0], by_kind[1][0], assume_unique=True)
    if not len(rows):
        raise DataError(
            f"{members.source} has {len(by_kind[0][0]):,} color and {len(by_kind[1][0]):,} depth images, but no frame "
            "with both; extract the recordings with the published playback tool"
        )
    places = {kind: looked_up(*columns, rows) for kind, columns in zip(_IMAGES, by_kind, strict=True)}
    return _Found(rows // _MOST_FRAMES, rows % _MOST_FRAMES, places)


def _metres(source: Source, label: str) -> Array:
    return decode_depth(source, label, _SIZE) / np.float32(1000)


def _color(source: Source, label: str) -> Array:
    pixels = decode(source, label, 3)
    if pixels.shape[:2] != _SIZE:
        raise DataError(
            f"{label} is {pixels.shape[0]} × {pixels.shape[1]} pixels (height × width); expected 480 × 640; replace "
            "it, or remove the frame"
        )
    return pixels


def _ids(channels: Array, known: Callable[[], Rows], label: str) -> Array:
    """Ids of objects: the colors of a mask as numbers.

    `channels` (height, width, 3 or 4) uint8.
    """
    if channels.shape[-1] == 4:
        # the authors' program takes them in OpenCV's order of channels, which is not that of the file
        return _number(channels[..., [2, 1, 0, 3]])
    red, blue = _number(channels), _number(channels[..., ::-1])
    if np.array_equal(red, blue):
        return red
    by_red, by_blue = (int(np.isin(ids, known()).sum()) for ids in (red, blue))
    if by_red == by_blue:
        raise DataError(
            f"{label} has three channels, whose order (RGB or BGR) can only be determined with the ids in the scene's "
            "XML file; add that file to the scene's folder, or remove the mask"
        )
    return red if by_red > by_blue else blue


def _number(channels: Array) -> Array:
    """One number of a pixel's channels, the first the most significant."""
    padded = np.zeros((*channels.shape[:2], 4), np.uint8)
    padded[..., 4 - channels.shape[-1] :] = channels
    return padded.view(">i4")[..., 0].astype(np.int32)


_READ: Mapping[str, Callable[[Source, str], Array]] = MappingProxyType({"image": _color, "depth": _metres})
_MODALITIES = MappingProxyType(
    {
        "image": Modality((*_SIZE, 3), "uint8", color="srgb"),
        "depth": Modality(_SIZE, "float32", unit="m"),
        "pose": Modality((4, 4), "float32", unit="m"),
        "intrinsics": Modality((3, 3), "float32", unit="pixel"),
        "instances": Modality(_SIZE, "int32"),
    }
)
