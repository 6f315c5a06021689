"""Where the cameras of captures are: COLMAP models and ``transforms.json``, by the names of files.

Convention
----------
A *capture* is a folder of images with the cameras of one or more scenes. Its COLMAP models are in ``sparse/0``,
``sparse/1``, … or in ``sparse`` (or those of ``colmap/sparse``), or in the folder itself. Its other cameras are in
``transforms_train.json``, ``transforms_val.json`` and ``transforms_test.json``, or in ``transforms.json``.
"""

from setsup.files.archives.members import MemberIndex

__all__ = ["CAMERA_FILES", "CAPTURE_MARKS", "SPLITS", "TRANSFORMS", "find_models", "find_transforms", "join"]

SPLITS = ("train", "val", "test")
TRANSFORMS = "transforms.json"
CAMERA_FILES = "cameras.bin and images.bin (or .txt) of a COLMAP model, or transforms.json"
"""What messages ask for."""

CAPTURE_MARKS = tuple(
    f"{folder}{name}"
    for folder in ("", "*/")
    for name in (
        TRANSFORMS,
        *(f"transforms_{split}.json" for split in SPLITS),
        *(f"{model}cameras.{end}" for model in ("", "sparse/", "sparse/[0-9]*/") for end in ("bin", "txt")),
        *(f"colmap/sparse/{model}cameras.{end}" for model in ("", "[0-9]*/") for end in ("bin", "txt")),
    )
)
"""Patterns of files by which a capture is recognized, or a folder of captures; ``cameras`` has ``images`` beside it."""

_MODEL = r"(?P<folder>(?:.*/)?)images\.(?:bin|txt)"
_OF_SPLITS = {f"transforms_{split}.json": split for split in SPLITS}


def find_models(members: MemberIndex) -> dict[str, dict[str, str]]:
    """COLMAP models by capture, and in each by number: folders ``""`` or with ``/`` at their end.

    Numbers are empty for the only model of a capture. Models below another capture are left out, and so are those of
    ``sparse/0`` if ``sparse`` is a model itself, into which they were merged.
    """
    _, groups = members.matching(_MODEL)
    folders = [
        folder
        for folder in dict.fromkeys(groups["folder"].to_pylist())
        if any(f"{folder}cameras.{ending}" in members for ending in ("bin", "txt"))
    ]
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
