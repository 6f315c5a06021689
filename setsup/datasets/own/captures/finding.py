"""Where the cameras of captures are: COLMAP models and ``transforms.json``, by the names of files.

Convention
----------
A *capture* is a folder of images with the cameras of one or more scenes. Its COLMAP models are in ``sparse/0``,
``sparse/1``, … or in ``sparse`` (or those of ``colmap/sparse``), or in the folder itself. Its other cameras are in
``transforms_train.json``, ``transforms_val.json`` and ``transforms_test.json``, or in ``transforms.json``.
"""

from setsup.files.archives.members import MemberIndex

__all__ = [
    "CAMERA_FILES",
    "CAPTURE_MARKS",
    "MODEL_FILES",
    "SPLITS",
    "TRANSFORMS",
    "find_incomplete",
    "find_models",
    "find_transforms",
    "join",
]

SPLITS = ("train", "val", "test")
TRANSFORMS = "transforms.json"
CAMERA_FILES = "cameras.bin and images.bin (or .txt) of a COLMAP model, or transforms.json"
"""What messages ask for."""

_LISTS = ("cameras", "images")
_ENDINGS = ("bin", "txt")
_SPARSE = ("sparse/", "sparse/[0-9]*/")

CAPTURE_MARKS = tuple(
    f"{folder}{name}"
    for folder in ("", "*/")
    for name in (
        TRANSFORMS,
        *(f"transforms_{split}.json" for split in SPLITS),
        *(
            f"{model}{kind}.{end}"
            for model in ("", *_SPARSE, *(f"colmap/{sparse}" for sparse in _SPARSE))
            for kind in _LISTS
            for end in _ENDINGS
        ),
    )
)
"""Patterns of files by which a capture is recognized, or a folder of captures."""

MODEL_FILES = tuple(f"{kind}.{end}" for kind in (*_LISTS, "points3D") for end in _ENDINGS)
"""Files of a model: one with such a name may be another list, if none is next to it and it is not in ``sparse``."""

_MODEL = r"(?P<folder>(?:.*/)?)(?:cameras|images)\.(?:bin|txt)"
_OF_SPLITS = {f"transforms_{split}.json": split for split in SPLITS}


def find_models(members: MemberIndex) -> dict[str, dict[str, str]]:
    """COLMAP models by capture, and in each by number: folders ``""`` or with ``/`` at their end.

    Numbers are empty for the only model of a capture. Models below another capture are left out, and so are those of
    ``sparse/0`` if ``sparse`` is a model itself, into which they were merged.
    """
    folders = [folder for folder, lists in _model_lists(members) if len(lists) == len(_LISTS)]
    captures: dict[str, dict[str, str]] = {}
    for folder in folders:
        capture, number = _split(folder)
        captures.setdefault(capture, {})[number] = folder
    found: dict[str, dict[str, str]] = {}
    for capture, models in sorted(captures.items()):
        if not any(capture != outer and capture.startswith(outer) for outer in found):
            numbers = sorted(models, key=lambda number: (len(number), number))
            found[capture] = {"": models[numbers[0]]} if not numbers[0] or len(numbers) == 1 else models
    return found


def find_incomplete(members: MemberIndex) -> dict[str, str]:
    """What folders of models lack: those in ``sparse``, or with points, that have one of the two lists."""
    lacks = {}
    for folder, lists in _model_lists(members):
        points = any(f"{folder}points3D.{end}" in members for end in _ENDINGS)
        if len(lists) == 1 and (points or "sparse" in folder.split("/")[-3:]):
            [(there, file)] = lists.items()
            lacking, content = ("images", "poses") if there == "cameras" else ("cameras", "cameras")
            lacks[folder] = (
                f"{folder or members.source} has {file}, but neither {lacking}.bin nor {lacking}.txt, which contains "
                f"the {content} of its images"
            )
    return lacks


def find_transforms(members: MemberIndex) -> dict[str, dict[str, str]]:
    """Files of cameras by capture, and in each by split, which is empty for ``transforms.json``.

    Where a capture has both, the files of splits count. Captures below another one are left out.
    """
    _, groups = members.matching(r"(?P<folder>(?:.*/)?)(?P<file>transforms(?:_train|_val|_test)?\.json)")
    captures: dict[str, dict[str, str]] = {}
    for folder, file in zip(groups["folder"].to_pylist(), groups["file"].to_pylist(), strict=True):
        captures.setdefault(folder, {})[_OF_SPLITS.get(file, "")] = folder + file
    found: dict[str, dict[str, str]] = {}
    for capture, files in sorted(captures.items()):
        if not any(capture != outer and capture.startswith(outer) for outer in found):
            splits = {split: files[split] for split in SPLITS if split in files}
            found[capture] = splits or files
    return found


def join(folder: str, name: str) -> str | None:
    """A path relative to a folder of an archive, without ``.`` and ``..``; None for one that leads out."""
    parts: list[str] = folder.split("/")[:-1]
    path = name.replace("\\", "/")
    if path.startswith("/") or path[1:2] == ":":
        return None
    for part in path.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _model_lists(members: MemberIndex) -> list[tuple[str, dict[str, str]]]:
    """Folders that have lists with the names of a model's, and the names of these files by kind."""
    _, groups = members.matching(_MODEL)
    return [
        (
            folder,
            {kind: f"{kind}.{end}" for kind in _LISTS for end in _ENDINGS[::-1] if f"{folder}{kind}.{end}" in members},
        )
        for folder in dict.fromkeys(groups["folder"].to_pylist())
    ]


def _split(folder: str) -> tuple[str, str]:
    """The capture of a model's folder, and the model's number, empty where it has none."""
    parts = folder.split("/")[:-1]
    number = parts.pop() if len(parts) > 1 and parts[-1].isdecimal() and parts[-2] == "sparse" else ""
    for name in ("sparse", "colmap"):
        if parts and parts[-1] == name:
            parts.pop()
        else:
            break
    return "".join(f"{part}/" for part in parts), number
