"""Where the scenes of a BOP dataset are, by the names of files.

Convention
----------
A dataset has folders of splits, such as ``test``, ``train_pbr`` or ``test_primesense``: the split, and its type after
the first ``_``. A split has folders of scenes, and a scene has ``scene_camera.json`` next to the folders of its images.
With several sensors, names of files and folders of a scene end in ``_`` and that of the sensor.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from setsup.errors import DataError
from setsup.files.archives.members import MemberIndex

__all__ = ["BOP_MARKS", "SPLITS", "BopScene", "dataset_folder", "find_scenes"]

SPLITS = ("train", "val", "test", "onboarding")

_CAMERAS = "scene_camera"
_NUMBERED = "[0-9]" * 6
_SPLIT_FOLDERS = tuple(f"{split}{end}/" for split in SPLITS for end in ("", "_*"))

BOP_MARKS = (
    *(f"{_CAMERAS}.json", f"{_CAMERAS}_*.json"),
    *(
        f"{split}{scene}"
        for split in ("", *_SPLIT_FOLDERS)
        for scene in (
            *(f"{folder}{_CAMERAS}.json" for folder in ("[0-9]*/", "obj_*/")),
            f"{_NUMBERED}/{_CAMERAS}_*.json",  # only scenes are listed: folders of images may be large
        )
    ),
)
"""Patterns of files by which a dataset, one of its splits or one of its scenes is recognized."""

_SPLIT = re.compile(rf"({'|'.join(SPLITS)})(?:_(.+))?")


@dataclass(frozen=True, slots=True)
class BopScene:
    """Images of a scene by one sensor.

    `folder` is empty or ends in ``/``; `sensor`, `split` and `split_type` are empty where there is none.
    """

    folder: str
    name: str
    number: int
    sensor: str
    split: str
    split_type: str

    def file(self, kind: str) -> str:
        """Name of a list of the scene: ``scene_gt``."""
        return f"{self.folder_of(kind)}.json"

    def folder_of(self, kind: str) -> str:
        """Name of a folder of the scene: ``mask_visib``."""
        return f"{self.folder}{kind}{self.sensor and f'_{self.sensor}'}"


def find_scenes(files: MemberIndex, source: Path) -> list[BopScene]:
    """Find all scenes of one dataset, ordered by folder and sensor."""
    _, groups = files.matching(rf"(?P<folder>(?:.*/)?){_CAMERAS}(?:_(?P<sensor>[^/]+))?\.json")
    found = sorted(set(zip(groups["folder"].to_pylist(), groups["sensor"].to_pylist(), strict=True)))
    outer = list(source.resolve().parts) if source.is_dir() else []
    tops = sorted({dataset_folder(folder) for folder, _ in found})
    if len(tops) > 1:
        names = " and ".join(top.rstrip("/") or "." for top in tops[:2])
        raise DataError(f"{source} contains {len(tops)} BOP datasets, such as {names}; open one of them")
    scenes = []
    for folder, sensor in found:
        parts = [*outer, *folder.split("/")[:-1]]
        match = _SPLIT.fullmatch(parts[-2]) if len(parts) > 1 else None
        name = folder.removeprefix(tops[0]).rstrip("/") or source.resolve().name
        number = int(parts[-1]) if parts and parts[-1].isdecimal() and len(parts[-1]) < 10 else -1
        split, split_type = (match[1], match[2] or "") if match else ("", "")
        scenes.append(BopScene(folder, name, number, sensor, split, split_type))
    return scenes


def dataset_folder(scene: str) -> str:
    """The folder of the dataset that a scene's folder is in, where that is inside: empty, or with ``/`` at the end."""
    return "".join(f"{part}/" for part in scene.split("/")[:-3])
