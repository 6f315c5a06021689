"""Results of evaluations in a folder: the numbers of all of them in one JSON file, images next to it."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from setsup.experiments.evaluation import Measured
from setsup.experiments.runs.json_files import finite, read_json, write_json
from setsup.files.atomic import written
from setsup.files.locks import locked
from setsup.files.outputs import marked_png

__all__ = ["EVALUATION", "drop_keys", "read_results", "save_result"]

EVALUATION = "evaluation.json"


def read_results(path: Path) -> dict[str, Any]:
    """Results by the names of evaluations; none before the first."""
    return read_json(path, "remove the file, and evaluate again") if path.exists() else {}


def save_result(path: Path, name: str, found: Measured, about: Mapping[str, Any], suffix: str = "") -> None:
    """Write the result of an evaluation, with what `about` says of it; images of an earlier one are removed."""
    files = {f"{name}-{title}{suffix}.png": picture for title, picture in found.pictures.items()}
    for file, picture in files.items():
        with written(path.with_name(file)) as part:
            part.write_bytes(marked_png(picture))
    entry = {
        **about,
        "values": {key: finite(value) for key, value in found.values.items()},
        "curves": {key: [list(map(finite, axis)) for axis in curve] for key, curve in found.curves.items()},
        "pictures": list(files),
    }
    with locked(path):
        before = read_results(path)
        after = before | {name: entry}
        write_json(path, after)
        for stale in _pictures(before.get(name)) - _pictures(*after.values()):
            path.with_name(stale).unlink(missing_ok=True)


def drop_keys(path: Path, names: Collection[str]) -> None:
    """Remove the keys of evaluations, so that they are measured again."""
    with locked(path):
        before = read_results(path)
        after = {
            name: {key: value for key, value in entry.items() if key != "key"}
            if name in names and isinstance(entry, dict)
            else entry
            for name, entry in before.items()
        }
        if after != before:
            write_json(path, after)


def _pictures(*entries: Any) -> set[str]:
    """Names of images of evaluations, as far as these are entries that :func:`save_result` wrote."""
    lists = [entry.get("pictures") for entry in entries if isinstance(entry, dict)]
    names = [name for listed in lists if isinstance(listed, list) for name in listed]
    return {name for name in names if isinstance(name, str) and Path(name).name == name}
