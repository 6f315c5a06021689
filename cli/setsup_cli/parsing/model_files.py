"""Models on the command line: files, or folders that are searched, and a table of those that are left out."""

import csv
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setsup.scenes import Mesh
    from setsup.scenes.recipes.model_folders import FoundModels
    from setsup.scenes.recipes.models import Model

__all__ = ["MODELS", "has_folder", "log_left_out", "model_files", "model_problems", "search_models", "write_models"]

MODELS = "models.csv"
"""File in a rendered folder that lists the models of searched folders."""

_log = logging.getLogger("setsup")


@dataclass(frozen=True)
class _MeshFile:
    """A mesh whose textures may lie anywhere below a folder."""

    path: Path
    top: Path

    def __call__(self) -> "Mesh":
        from setsup.scenes import load_mesh

        return load_mesh(self.path, top=self.top)

    @property
    def key(self) -> str:
        """Identity of the content of its files, as for a plain path."""
        from setsup.scenes.recipes.models import identity

        return f"{identity(self.path, self.top)} with all textures"


def model_files(models: Mapping[str, Path], top: Path | None) -> "dict[str, Model]":
    """Models by name, as recipes take them; with `top`, the folder that their textures lie below."""
    return {name: path if top is None else _MeshFile(path, top) for name, path in models.items()}


def has_folder(given: Mapping[str, Sequence[Path]]) -> bool:
    """Whether a folder is searched for models."""
    return any(path.is_dir() for paths in given.values() for path in paths)


def search_models(given: Mapping[str, Sequence[Path]]) -> "dict[str, FoundModels]":
    """Models of each setting, from the files and folders that an option gave."""
    from setsup.scenes.recipes import find_models

    return {name: find_models(paths) for name, paths in given.items()}


def log_left_out(found: "Mapping[str, FoundModels]") -> None:
    """Log what a search of folders left out, in a line."""
    left = [one for each in found.values() for one in each.left_out]
    if left:
        more = f", and {len(left) - 1:,} more" if len(left) > 1 else ""
        _log.warning("left out %s: %s%s", left[0].path, left[0].why, more)


def model_problems(found: "Mapping[str, FoundModels]", top: Path | None, failed: Path) -> list[dict[str, Any]]:
    """Models that are left out, or rendered without some of their files.

    `failed` is the list of rows that could not be rendered. Each entry has ``model``, ``file``, ``rendered`` and
    ``problem``.
    """
    from setsup.scenes.recipes.model_folders import missing_files

    entries = json.loads(failed.read_bytes()) if failed.exists() else []
    broken = {entry["scene"]["model"]: entry["error"] for entry in entries if "model" in entry["scene"]}
    problems = []
    for each in found.values():
        for path, why in each.left_out:
            problems.append({"model": None, "file": str(path), "rendered": False, "problem": why})
        for model, path in each.models.items():
            about: dict[str, Any] = {"model": model, "file": str(path), "rendered": model not in broken}
            if model in broken:
                problems.append({**about, "problem": broken[model].replace(str(path), path.name)})
            elif lost := missing_files(path, top):
                problems.append({**about, "problem": f"rendered without {', '.join(lost)}, which cannot be read"})
    return problems


def write_models(path: Path, found: "Mapping[str, FoundModels]", problems: Sequence[Mapping[str, Any]]) -> None:
    """Write a table of all models: name, file, whether it was rendered, and what is wrong with it."""
    from setsup.files import written

    with written(path) as part, part.open("w", encoding="utf-8", newline="", errors="backslashreplace") as file:
        table = csv.DictWriter(file, ("model", "file", "rendered", "problem"), lineterminator="\n")
        table.writeheader()
        table.writerows(_all_models(found, problems))


def _all_models(
    found: "Mapping[str, FoundModels]", problems: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Models in the order of the search, then those that it left out."""
    known = {problem["file"]: problem for problem in problems}
    for each in found.values():
        for model, path in each.models.items():
            fine = {"model": model, "file": str(path), "rendered": True, "problem": None}
            yield known.pop(str(path), fine)
    yield from known.values()
