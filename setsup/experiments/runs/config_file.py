"""Files of settings: what ``setsup train --print-config`` prints, a run keeps, and ``setsup train --config`` reads."""

import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from setsup.errors import DataError, SetsupError
from setsup.experiments.preset import Preset, smoke
from setsup.experiments.preset_registry import find_preset
from setsup.experiments.settings import fit, nest, put, unnest
from setsup.files.expand_user import expanded
from setsup.files.manifests.strict_yaml import read_yaml
from setsup.files.manifests.validators import yes

__all__ = ["CONFIG", "TrainingFile", "config_content", "format_config", "read_config"]

CONFIG = "config.yaml"

_HEADER = (
    "# `setsup train --config FILE` trains with the settings in this file; command-line options take precedence.\n"
)


class TrainingFile(NamedTuple):
    """Content of a file of settings.

    `name` is the preset as :func:`find_preset` takes it, `found` that preset, shrunk if `smoke`, and `preset` the same
    with the settings of the file; `config` holds the fields of :class:`RunConfig`, unchecked, and `changed` says
    whether the preset's own file has changed since.
    """

    path: Path
    name: str
    found: Preset
    preset: Preset
    smoke: bool
    seeds: tuple[int, ...] | None
    root: Path | None
    substitute: bool
    config: Mapping[str, Any]
    changed: bool


def config_content(
    preset: Preset,
    settings: Mapping[str, Any],
    *,
    seeds: Iterable[int],
    root: str | None,
    substitute: bool,
    config: Mapping[str, Any],
) -> dict[str, Any]:
    """What is trained: the preset, all settings, and how it is run."""
    content: dict[str, Any] = {"preset": preset.name}
    if preset.file is not None:
        content |= {"file": preset.file, "file_sha256": preset.digest}
    content |= {"seeds": list(seeds), "root": root, "substitute": substitute, "smoke": preset.shrunk}
    return content | {"settings": nest(settings), "config": {name: _plain(value) for name, value in config.items()}}


def format_config(content: Mapping[str, Any]) -> str:
    """YAML of what is trained."""
    import yaml

    text: str = yaml.dump(dict(content), Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=120)
    return _HEADER + text


def read_config(path: Path, name: str | None = None) -> TrainingFile:
    """Read a file of settings; a preset named besides is taken if it has the name of the file's.

    Raises
    ------
    DataError
        When a key is unknown or has another type; one sentence names the file and the key.

    """
    if not path.exists():
        raise DataError(f"{path} does not exist; `setsup train PRESET --print-config` prints a config")
    fields = read_yaml(path, "file of settings")
    title, own, digest = fields.need("preset", _text), fields.get("file", _text), fields.get("file_sha256", _text)
    if name is None:
        name = title if own is None else f"{path.parent / expanded(own)}:{title}"
    seeds, root = fields.get("seeds", _seeds), fields.get("root", _text)
    substitute, shrink = fields.get("substitute", yes), fields.get("smoke", yes)
    settings, config = fields.get("settings", _mapping), fields.get("config", _mapping)
    fields.done()
    try:
        declared = find_preset(name)
        if declared.name != title:
            raise SetsupError(
                f"the config is for the preset {title}, not {declared.name}; for a preset of your own, set `file` to "
                "its path"
            )
        declared = smoke(declared) if shrink else declared
        preset = put(declared, fit(declared, unnest(settings or {})))
    except SetsupError as error:
        raise DataError(f"{path}: {error}") from error
    return TrainingFile(
        path,
        name,
        declared,
        preset,
        bool(shrink),
        seeds,
        None if root is None else expanded(root),
        bool(substitute),
        config or {},
        digest is not None and declared.digest is not None and digest != declared.digest,
    )


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def _dumper() -> Any:
    """Make a dumper that writes lists in one line, and never refers from one value to another."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Lists of values in brackets."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def in_line(dumper: Any, data: Any) -> Any:
        return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)

    Dumper.add_representer(list, in_line)
    return Dumper


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a string")
    return value


def _seeds(value: Any) -> tuple[int, ...]:
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(type(seed) is int for seed in listed):
        raise ValueError("a list of integers")
    return tuple(listed)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("a mapping of names to values")
    _check_names(value)
    return value


def _check_names(value: Any) -> None:
    """Raise ValueError for a name that is no string, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                kind = type(name).__name__
                raise ValueError(f"a mapping whose keys are strings (the key {reprlib.repr(name)} is of type {kind})")
            _check_names(inner)
