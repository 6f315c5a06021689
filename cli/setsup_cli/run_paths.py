"""Paths of runs that stand where a preset or a report is named: one sentence with the command that takes them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import join, quote

from setsup.errors import SetsupError
from setsup.files.expand_user import expanded

__all__ = ["hint_report", "hint_train"]

_CONFIG = "config.yaml"
_YAML = (".yaml", ".yml")


@contextmanager
def hint_train(name: str) -> Iterator[None]:
    """Replace the error about a preset that is not there, where its name is the path of a run or of settings."""
    try:
        yield
    except SetsupError:
        path = expanded(name)
        if path.suffix.lower() in _YAML and path.is_file():
            raise SetsupError(
                f"{name} is a file of settings, not a preset; train with it: "
                f"`{join(['setsup', 'train', '--config', name])}`"
            ) from None
        from setsup.experiments.runs.json_files import read_preset_name

        if read_preset_name(path) is None:
            raise
        config = join(["setsup", "train", "--config", str(Path(name, _CONFIG))])
        raise SetsupError(
            f"{name} is the folder of a run, not a preset; `{config}` trains with its settings, and "
            f"`setsup eval {quote(name)}` evaluates it"
        ) from None


@contextmanager
def hint_report(name: str) -> Iterator[None]:
    """Replace the error about a report that is not there, where its name is a path of runs."""
    try:
        yield
    except SetsupError:
        from setsup.experiments.runs.json_files import read_preset_name

        path = expanded(name)
        is_config = path.name == _CONFIG and path.is_file()
        folder = Path(name).parent if is_config else Path(name)
        preset = read_preset_name(path.parent if is_config else path)
        if preset is not None:
            raise SetsupError(
                f"{name} is a run of {preset}, not a report; compare it with the paper: "
                f"`{join(['setsup', 'report', preset, str(folder)])}`"
            ) from None
        if not path.is_dir():
            raise
        raise SetsupError(
            f"{name} is a folder, not a report; pass the report first, `setsup report REPORT {quote(name)}`, or "
            f"print all reports on its runs, `setsup report --all {quote(name)}`"
        ) from None
