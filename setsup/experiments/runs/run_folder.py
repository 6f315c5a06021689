"""Creating and opening run folders: ``run.json``, and the runs that may continue in a folder."""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from setsup.checks import check_arguments
from setsup.errors import DataError, SetsupError
from setsup.experiments.preset import Preset, smoke
from setsup.experiments.preset_registry import find_named, find_preset
from setsup.experiments.runs.checkpoint import kept_name
from setsup.experiments.runs.config_file import CONFIG, config_content, format_config
from setsup.experiments.runs.extension import need_continuable
from setsup.experiments.runs.json_files import read_json, write_json
from setsup.experiments.runs.run import DIGEST, FILE, FROM_DATA, Run, is_left_to_data, is_trained
from setsup.experiments.settings import difference, fill_defaults, flatten, put, training_settings
from setsup.files.atomic import written
from setsup.files.expand_user import expanded

__all__ = ["begin", "check_begin", "default_folder", "open_run", "read_description"]

_PACKAGES = ("setsup", "torch", "lightning", "numpy")
_DESCRIPTION = "run.json"
_INITIAL = "initial_weights_sha256"
_FORMER = {
    "how": "config",
    "stand_in": "substitute",
    "data.stand_in": "data.substitute",
    "drawing": "sampler",
    "learning": "method",
}
"""Names in ``run.json`` of earlier versions."""


def begin(
    folder: Path | str,
    preset: Preset,
    seed: int,
    *,
    root: Path | str | None = None,
    substitute: bool = False,
    config: Mapping[str, Any],
    initial: str | None = None,
    from_data: Mapping[str, Any] = {},
) -> Run:
    """Create a run folder, or open an existing one to resume it.

    A folder without a trained step is overwritten. In another, the root and the file of the preset that were given last
    are kept, and a session with another configuration, other versions or another file of presets is appended to
    ``later``: if the settings are equal, a corrected comment in that file is no reason to refuse. The number of steps
    may change where the result is that of a run that had it from the start. `initial` is the digest of the weights it
    starts from, None where that is not known: the weights of a run that has begun need not be there any more.
    `from_data` has, as they were asked for, the settings that were completed from the data.
    """
    run, changed = _describe(Path(folder), preset, seed, root, substitute, config, initial, from_data)
    if changed or not (run.folder / CONFIG).exists():
        with written(run.folder / CONFIG) as part:
            part.write_text(_format(run, config), encoding="utf-8")
    if changed:
        write_json(run.folder / _DESCRIPTION, run.description)
    return run


def check_begin(
    folder: Path | str,
    preset: Preset,
    seed: int,
    *,
    root: Path | str | None = None,
    substitute: bool = False,
    config: Mapping[str, Any],
    initial: str | None = None,
    from_data: Mapping[str, Any] = {},
) -> Run:
    """Raise what :func:`begin` raises, and write nothing.

    Settings that are completed from the data may be as they were asked for.
    """
    return _describe(Path(folder), preset, seed, root, substitute, config, initial, from_data)[0]


def _describe(
    folder: Path,
    preset: Preset,
    seed: int,
    root: Path | str | None,
    substitute: bool,
    config: Mapping[str, Any],
    initial: str | None,
    from_data: Mapping[str, Any],
) -> tuple[Run, bool]:
    """The run that may begin or continue in a folder, and whether its description changes."""
    description = {
        "preset": preset.name,
        "seed": seed,
        "substitute": substitute,
        "smoke": preset.shrunk,
        "root": None if root is None else str(expanded(root).absolute()),
        "settings": flatten(preset),
        "config": json.loads(json.dumps(dict(config))),
        "versions": {"python": platform.python_version(), **_versions()},
    }
    if preset.digest is not None:
        description[DIGEST] = preset.digest
    if preset.file is not None:
        description[FILE] = preset.file
    if initial is not None:
        description[_INITIAL] = initial
    if from_data:
        description[FROM_DATA] = dict(from_data)
    if not is_trained(folder):
        return Run(folder, preset, seed, description), True
    there = _read_description(folder / _DESCRIPTION)
    old = there | {"settings": fill_defaults(preset, there["settings"])}
    if initial is None and preset.initial_run is not None:
        description[_INITIAL] = there.get(_INITIAL, "those of another run")
    before = old["settings"].get("steps")
    differing = {
        name: (then, now)
        for name, (then, now) in difference(_identity(old), _identity(description)).items()
        if not is_left_to_data(there, name, now)
    }
    if differing and not (differing.keys() == {"steps"} and type(before) is int):
        listed = ", ".join(f"{name} is {old!r} in that run, not {new!r}" for name, (old, new) in differing.items())
        raise SetsupError(f"{folder} contains another run: {listed}; choose another --out, or use the same settings")
    resumed = Run(folder, preset, seed, there)
    if differing:
        need_continuable(resumed, before)
    steps = resumed.progress().steps
    now = {key: description[key] for key in ("config", "versions", DIGEST) if key in description}
    description = there | {key: description[key] for key in ("root", "settings", FILE) if key in description}
    later = list(there.get("later", ()))
    last = later[-1] if later else there
    if steps < preset.steps and any(last.get(key) != value for key, value in now.items()):
        description["later"] = [*later, {"from_step": steps, **now}]
    return Run(folder, preset, seed, description), description != there


def default_folder(name: str, seed: int, substitute: bool, shrunk: bool) -> Path:
    """Where the run of a preset's name is, below the folder of all runs."""
    return Path(f"{name}{'-substitute' * substitute}{'-smoke' * shrunk}", f"seed-{seed}")


def _format(run: Run, config: Mapping[str, Any]) -> str:
    about = run.description
    content = config_content(
        run.preset,
        about["settings"] | about.get(FROM_DATA, {}),
        seeds=[run.seed],
        root=about["root"],
        substitute=about["substitute"],
        config=config,
    )
    return format_config(content)


def open_run(folder: Path | str, preset: Preset | None = None, *, checkpoint: str = "last") -> Run:
    """Open the run in a folder.

    Parameters
    ----------
    folder : Path or str
        Of the run.
    preset : Preset, optional
        Used if it has the name of the run's. By default it is found by its name, or in the user's own file that the run
        was trained from, which is run.
    checkpoint : str
        Whose weights are used: ``last``, ``best``, or ``step-500`` of one that was kept.

    Raises
    ------
    DataError
        When there is none, or it is damaged.
    SetsupError
        When its preset is not known here.

    """
    check_arguments(open_run, locals(), DataError)
    folder, chosen = Path(folder), kept_name(checkpoint)
    description = read_description(folder)
    name, seed, settings = description["preset"], description["seed"], description["settings"]
    if preset is None or preset.name != name:
        preset = _find_preset(folder, description)
    preset = smoke(preset) if description.get("smoke") else preset
    settings = _without_idle(settings, flatten(preset))
    return Run(folder, put(preset, fill_defaults(preset, settings)), seed, description, chosen)


def _find_preset(folder: Path, description: Mapping[str, Any]) -> Preset:
    """The preset of a run, by its name, or in the user's own file that the run was trained from."""
    name, file = description["preset"], description.get(FILE)
    if file is None:
        preset = find_named(name)
        if preset is None or DIGEST in description:  # an own one may have the name of another
            raise SetsupError(
                f"{folder} is a run of {name!r}, but no installed preset has that name; if the preset is in a file of "
                "your own, pass the file, as in --preset my_method.py"
            )
        return preset
    if not Path(file).is_file():
        raise SetsupError(
            f"{folder} is a run of {name!r} in {file}, which no longer exists; pass the file at its new path, as in "
            f"--preset {Path(file).name}"
        )
    try:
        return find_preset(f"{file}:{name}")
    except SetsupError as error:
        raise SetsupError(
            f"{folder} is a run of {name!r} in {file}, which no longer defines that preset: {error}"
        ) from error


def _identity(description: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal for a run to resume."""
    asked = {key: description[key] for key in ("preset", "seed", "substitute")}
    session = {"smoke": description.get("smoke", False), "precision": description["config"].get("precision")}
    initial = {"initial_weights": description.get(_INITIAL)}
    return asked | training_settings(description["settings"], description["substitute"]) | session | initial


def _without_idle(settings: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run, without those for evaluations that the file of its preset has removed or replaced since."""
    replaced = "eval_transform" in known and settings.get("eval_transform") != known["eval_transform"]
    return {
        key: value
        for key, value in settings.items()
        if not (key.startswith("datasets.") and key not in known)
        and not (replaced and key.partition(".")[0] == "eval_transform")
    }


def read_description(folder: Path) -> dict[str, Any]:
    """Read and check `run.json` of a folder that should hold a run, with names of earlier versions replaced."""
    path = folder / _DESCRIPTION
    if not path.exists():
        below = sorted(str(file.parent) for file in folder.glob(f"**/{_DESCRIPTION}"))
        hint = f"; it contains the runs {', '.join(below[:4])}" if below else "; `setsup train PRESET` starts one"
        raise DataError(f"no run found in {folder}: {_DESCRIPTION} is missing{hint}")
    return _read_description(path)


def _read_description(path: Path) -> dict[str, Any]:
    description = _rename(read_json(path))
    kinds = {"preset": str, "seed": int, "substitute": bool, "settings": dict, "config": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(description.get(name), kind)]
    if not wrong and not isinstance(description["config"].get("precision"), str):
        wrong = ["precision"]
    if not wrong:
        description["settings"] = _rename(description["settings"])
        later = description.get("later", [])
        sessions = (
            [_rename(session) if isinstance(session, dict) else {} for session in later]
            if isinstance(later, list)
            else [{}]
        )
        if not all(map(_is_config, (description["config"], *(session.get("config") for session in sessions)))):
            wrong = ["devices and nodes"]
        elif sessions:
            description["later"] = sessions
    if not wrong and not isinstance(description.get(FROM_DATA, {}), dict):
        wrong = [FROM_DATA]
    if not wrong and not isinstance(description.get(FILE, ""), str):
        wrong = [FILE]
    if wrong:
        raise DataError(f"{path} has no valid {wrong[0]!r}; restore the file, or train again in another folder")
    return description


def _rename(values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace names of earlier versions, of settings within settings too."""
    renamed = {}
    for name, value in values.items():
        head, dot, rest = name.partition(".")
        renamed[_FORMER.get(name) or _FORMER.get(head, head) + dot + rest] = value
    return renamed


def _is_config(config: Any) -> bool:
    return isinstance(config, dict) and all(type(config.get(name, 1)) is int for name in ("devices", "nodes"))


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
