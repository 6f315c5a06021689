"""Files of settings: the file of every preset reads back as the same preset, field by field."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from setsup.errors import DataError
from setsup.experiments import Preset, find_preset, presets, smoke
from setsup.experiments.runs.config_file import config_content, format_config, read_config
from setsup.experiments.settings import flatten, put


def written(preset: Preset, path: Path) -> Path:
    """Write the file of a preset, as ``--print-config`` prints it and a run keeps it."""
    how = {"seeds": [0], "root": None, "substitute": False, "config": {}}
    path.write_text(format_config(config_content(preset, flatten(preset), **how)), encoding="utf-8")
    return path


def values(settings: Any, name: str) -> dict[str, str]:
    """All plain values within settings with their types, by names that this test makes itself."""
    if is_dataclass(settings):
        inner = {one.name: getattr(settings, one.name) for one in fields(settings)}
    elif isinstance(settings, dict):
        inner = settings
    else:
        return {name: f"{type(settings).__name__} {settings!r}"}
    found = {name: type(settings).__name__}
    for key, one in inner.items():
        found |= values(one, f"{name}.{key}")
    return found


_KINDS: dict[Any, str] = {}
for _name, _preset in presets().items():
    _KINDS.setdefault((type(_preset.method), tuple(_preset.datasets)), _name)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(sorted(_KINDS.values()), id="one of each kind"),
        pytest.param(sorted(presets()), id="all", marks=pytest.mark.long("exhaustive comparisons")),
    ],
)
def test_the_file_of_a_preset_is_that_preset(names: list[str], tmp_path: Path) -> None:
    for name in names:
        preset = find_preset(name)
        read = read_config(written(preset, tmp_path / "config.yaml"))
        assert read.preset == read.found == preset, name
        assert values(read.preset, name) == values(preset, name)


def test_the_file_of_a_shrunk_preset_is_that_preset(tmp_path: Path) -> None:
    for name in sorted(_KINDS.values())[::4]:
        preset = smoke(find_preset(name))
        read = read_config(written(preset, tmp_path / "config.yaml"))
        assert (read.preset, read.smoke) == (preset, True)
        assert values(read.preset, name) == values(preset, name)


def test_settings_of_further_datasets_are_read_from_a_file(tmp_path: Path) -> None:
    preset = find_preset("abc/table1-cars-features")
    assert len(preset.datasets) > 1
    changed = put(preset, {"datasets.test.where": "azimuth < 90", "datasets.test.modalities": ("image",)})
    path = written(changed, tmp_path / "config.yaml")
    content = yaml.safe_load(path.read_text())
    assert content["settings"]["datasets"]["test"]["where"] == "azimuth < 90"
    read = read_config(path).preset
    assert (read.datasets["test"].where, read.datasets["test"].modalities) == ("azimuth < 90", ("image",))
    assert read.datasets["codebook"] == preset.datasets["codebook"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("{datasets: {test: {split: 3}}}", "setting datasets.test.split must be str | None, not 3"),
        ("{datasets: {tset: {split: a}}}", "unknown setting 'datasets.tset.split'; did you mean"),
        ("{datasets: {test: Other}}", "setting datasets.test must be a Data, not 'Other'"),
        ("{datasets: a}", "unknown setting 'datasets'"),
    ],
)
def test_wrong_settings_of_further_datasets_are_named(tmp_path: Path, settings: str, sentence: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"preset: abc/table1-cars-features\nsettings: {settings}\n")
    with pytest.raises(DataError) as found:
        read_config(path)
    assert f"{path}: {sentence}" in str(found.value)
