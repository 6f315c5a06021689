"""What the options of ``setsup train`` ask for: the preset with all changes, how it is run, and where."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, fields, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from setsup.errors import DataError, SetsupError
from setsup.files.expand_user import expanded
from setsup_cli.parsing.settings import NOT_GIVEN, changed, short_names
from setsup_cli.parsing.source import assignments, check_root, read_source_options
from setsup_cli.run_paths import hint_train

if TYPE_CHECKING:
    from setsup.experiments import Preset, RunConfig
    from setsup.experiments.runs.config_file import TrainingFile

__all__ = ["NO_SETTINGS", "Asked", "Training", "find", "read_asked", "read_file", "unpack"]

NO_SETTINGS = ("name", "shows", "seeds", "evaluations", "missing", "shrunk", "digest", "file")
"""Fields of a preset that are no options."""

_OPENING = ("option", "image", "kinds")
"""Options that make up the setting ``data.options``."""


class Training(NamedTuple):
    """One training: a preset as :func:`find_preset` takes its name, with its changes, a seed and a folder."""

    name: str
    preset: "Preset"
    folder: Path
    seed: int
    root: Path | None
    substitute: bool
    config: "RunConfig"

    def pack(self) -> dict[str, Any]:
        """It as plain values for another process, which finds a preset in a file of the user's own there again."""
        from setsup.experiments.settings import flatten

        about = {"shrunk": self.preset.shrunk, "settings": flatten(self.preset), "config": asdict(self.config)}
        return {**self._asdict(), "preset": None, **about}


def unpack(packed: Mapping[str, Any]) -> Training:
    """The training of which :meth:`Training.pack` gave the values."""
    from setsup.experiments import RunConfig, find_preset, smoke
    from setsup.experiments.settings import put

    found = find_preset(packed["name"])
    preset = put(smoke(found) if packed["shrunk"] else found, packed["settings"])
    folder, config = Path(packed["folder"]), RunConfig(**packed["config"])
    return Training(packed["name"], preset, folder, packed["seed"], packed["root"], packed["substitute"], config)


class Asked(NamedTuple):
    """What a command asks for: `usual` is the preset without `changed`, which has dotted names; `out` has the runs."""

    name: str
    usual: "Preset"
    preset: "Preset"
    changed: Mapping[str, Any]
    config: "RunConfig"
    seeds: tuple[int, ...]
    root: Path | None
    substitute: bool
    out: Path
    file_changed: bool

    def training(self, seed: int) -> Training:
        """The training of a seed."""
        folder = self.out / f"seed-{seed}"
        return Training(self.name, self.preset, folder, seed, self.root, self.substitute, self.config)

    def change(self, settings: Mapping[str, Any], folder: str) -> "Asked":
        """The same with other values of settings, by dotted names; its runs are in a folder of the output folder."""
        from setsup.experiments.settings import put

        changed = {**self.changed, **settings}
        return self._replace(preset=put(self.preset, settings), changed=changed, out=self.out / folder)


def find(name: str, shrink: bool) -> "Preset":
    """The preset of a name, shrunk or not."""
    from setsup.experiments import find_preset, smoke

    with hint_train(name):
        preset = find_preset(name)
    return smoke(preset) if shrink else preset


def read_file(path: Path, name: str | None, shrink: bool) -> tuple["TrainingFile", "RunConfig"]:
    """A file of settings with its preset, and how that is run."""
    from setsup.experiments import RunConfig, smoke
    from setsup.experiments.runs.config_file import read_config
    from setsup.experiments.settings import fit, put

    file = read_config(expanded(path), name)
    if shrink and not file.smoke:
        file = file._replace(found=smoke(file.found), preset=smoke(file.preset), smoke=True)
    try:
        return file, put(RunConfig(), fit(RunConfig(), file.config))
    except SetsupError as error:
        raise DataError(f"{path}: config: {error}") from error


def read_asked(options: Any) -> Asked:
    """What options ask for, with those of their file."""
    from setsup.experiments import RunConfig
    from setsup.experiments.preset_registry import need_own_name
    from setsup.experiments.settings import difference, flatten, put

    file: TrainingFile | None = options.file
    if file is not None and options.preset not in (None, options.named):
        raise SetsupError(f"unexpected argument {options.preset!r}; with --config, a preset must be the first argument")
    check_root(options.root)
    name = options.preset if file is None else file.name
    usual = find(name, options.smoke) if file is None else file.found
    need_own_name(usual)
    before = usual if file is None else file.preset
    asked = changed(options, before, NO_SETTINGS) | _by_short_names(options, before)
    preset = put(before, asked | _opening(options, before, asked.get("data.name")))
    _check_validation(before, preset)
    _check_place(options, preset)
    differing = difference(*(_without(flatten(settings), NO_SETTINGS) for settings in (usual, preset)))
    given = {
        member.name: value for member in fields(RunConfig) if (value := getattr(options, member.name, None)) is not None
    }
    return Asked(
        name,
        usual,
        preset,
        {setting: now for setting, (_, now) in differing.items()},
        replace(options.usual_config or RunConfig(), **given),
        tuple(dict.fromkeys(options.seeds or (0,))),
        options.root,
        options.substitute,
        _folder(options, preset),
        file is not None and file.changed,
    )


def _by_short_names(options: Any, preset: "Preset") -> dict[str, Any]:
    """Settings that are given by their short names, by dotted names."""
    settings: dict[str, Any] = {}
    for short, names in short_names(preset, NO_SETTINGS).items():
        value = getattr(options, short)
        if value is NOT_GIVEN:
            continue
        for name in names:
            if name in options.typed and reduce(getattr, name.split("."), options) != value:
                words = f"--{short} and --{name}".replace("_", "-")
                raise SetsupError(f"{words} have different values; use only one of them")
            settings[name] = value
    return settings


def _without(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _folder(options: Any, preset: "Preset") -> Path:
    from setsup.experiments.runs.run_folder import default_folder

    if options.out is not None:
        return expanded(options.out)
    return Path("runs", default_folder(preset.name, 0, options.substitute, preset.shrunk)).parent


def _check_validation(before: "Preset", preset: "Preset") -> None:
    """Refuse settings of a validation that never takes place."""
    if preset.validation.every or before.validation.every:
        return
    given = [
        member.name
        for member in fields(preset.validation)
        if _differ(before.validation, preset.validation, member.name)
    ]
    if given:
        raise SetsupError(
            f"--validation.{given[0]} requires --validation.every N, the number of steps from one validation to the "
            "next"
        )


def _check_place(options: Any, preset: "Preset") -> None:
    """Refuse data that a file of settings names by a path from another folder."""
    from setsup.experiments.data import is_lost

    data = preset.data
    if data is None or options.config is None or options.substitute or "data.name" in options.typed:
        return
    if data.name not in preset.missing and is_lost(data.name):
        raise DataError(
            f"{data.name}, the data.name of {options.config}, does not exist: the path is relative to the folder "
            "where the run was started; run the command there, or pass the path with --data.name FILE"
        )


def _differ(before: Any, after: Any, name: str) -> bool:
    return bool(getattr(before, name) != getattr(after, name))


def _opening(options: Any, preset: "Preset", name: str | None = None) -> dict[str, Any]:
    """The setting of the preset with its dataset options, if other ones are given; ``name`` is another dataset."""
    words = {option: value for option in _OPENING if (value := getattr(options, option, None))}
    if not words:
        return {}
    first = next(iter(words))
    if preset.data is None or options.substitute:
        what = preset.name if preset.data is None else f"the substitute of {preset.name}"
        raise SetsupError(f"--{first} sets options of a preset's dataset, but {what} has no options; omit --{first}")
    from setsup.experiments.data import explain_missing
    from setsup.opening import KINDS, find_kind, options_of, path_options

    name = name or preset.data.name
    with explain_missing(preset.name, name, preset.missing):
        kind = find_kind(name)
    if kind in ("rendered", "shards"):
        raise SetsupError(
            f"--{first} requires a dataset that takes options, but {name} is {KINDS[kind]}; omit --{first}"
        )
    given = read_source_options(words.pop("option", ()), name, kind)
    for option, value in words.items():
        if option not in options_of(name, kind):
            raise SetsupError(
                f"--{option} requires a table (--data.name photos.csv), but {name} is {KINDS[kind]}; omit --{option}"
            )
        given[option] = tuple(assignments(value, "--kinds", "kind").items()) if option == "kinds" else value
    for option in given.keys() & path_options(name, kind):
        if isinstance(given[option], str | Path):  # the run may be resumed from another folder
            given[option] = type(given[option])(expanded(given[option]).absolute())
    asked = dict(preset.data.options) | given
    # sorted, since their order does not matter
    return {} if asked == dict(preset.data.options) else {"data.options": tuple(sorted(asked.items()))}
