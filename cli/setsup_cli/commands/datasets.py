"""``setsup datasets``: lists the datasets. Reads manifests only; no adapter is imported."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setsup.errors import DataError
from setsup.files import Manifest, data_places, find_root, load_manifest, manifest_names
from setsup.files.manifests.packages import find_manifest, foreign_entries, foreign_manifests
from setsup_cli.output import show_json, show_table
from setsup_cli.parsing.arguments import DEFAULT, Common
from setsup_cli.suggestions import advise_command

__all__ = ["HELP", "Options", "foreign", "present", "run"]

HELP = """\
`setsup info NAME` shows one dataset in full. Other packages add datasets through the entry-point group
setsup.datasets."""

_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""


def run(options: Options) -> int:
    """List manifests and entry points."""
    entries = [_entry(load_manifest(name)) for name in manifest_names()]
    entries += [_foreign_entry(name, package) for name, package in foreign().items()]
    entries.sort(key=lambda entry: entry["name"])
    if options.json:
        show_json(entries)
        return 0
    heads = ["name", "rows", "factors", "licence", "here"]
    show_table(heads, map(_cells, entries), right=("rows",))
    advise_command(options, ["setsup", "info", DEFAULT])
    return 0


def foreign() -> dict[str, str]:
    """Datasets of other packages, with the name of the package; neither they nor numpy are imported."""
    packages = {name: entry.dist.name if entry.dist else entry.module for name, entry in foreign_entries().items()}
    return packages | {name: file.parent.parent.name for name, file in foreign_manifests().items()}


def present(manifest: Manifest, root: Path | None = None) -> bool | None:
    """Whether the files are where they are looked for; None where there are no files."""
    if not manifest.files:
        return None
    if not manifest.wanted:
        # none of its files is needed by itself: any will do
        names = [name for file in manifest.files for name in (file.path, *file.alternatives)]
        return any(os.path.exists(place / name) for place in data_places(manifest.name, root) for name in names)
    try:
        find_root(manifest.name, root, manifest.wanted)
    except DataError:
        return False
    return True


def _entry(manifest: Manifest) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "title": manifest.title,
        "samples": manifest.samples,
        "factors": [factor.name for factor in manifest.factors],
        "bytes": manifest.size,
        "licence": manifest.licence.name,
        "present": present(manifest),
        "package": "setsup",
    }


def _foreign_entry(name: str, package: str) -> dict[str, Any]:
    try:
        manifest = find_manifest(name)
    except DataError:
        manifest = None  # `setsup info NAME` says what is wrong with it
    if manifest is not None:
        return {**_entry(manifest), "package": package}
    unknown = dict.fromkeys(("samples", "factors", "bytes", "licence", "present"))
    return {"name": name, "title": name, **unknown, "package": package}


def _cells(entry: dict[str, Any]) -> list[str]:
    here = "no" if entry["present"] is False else "yes"
    if entry["package"] != "setsup":
        here = f"from {entry['package']}"
    factors = entry["factors"] or ()
    shown = factors if len(factors) <= _SHOWN + 1 else factors[:_SHOWN]
    return [
        entry["name"],
        "" if entry["samples"] is None else f"{entry['samples']:,}",
        ", ".join(shown) + (f" and {len(factors) - len(shown)} more" if len(factors) > len(shown) else ""),
        entry["licence"] or "",
        here,
    ]
