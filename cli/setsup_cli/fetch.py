"""``setsup fetch``: download the files of a data set."""

from dataclasses import dataclass

from setsup.errors import DataError
from setsup.files import fetch, load_manifest
from setsup_cli.arguments import Dataset, Json, Root
from setsup_cli.datasets import foreign
from setsup_cli.output import say, show_json
from setsup_cli.source import check_root

__all__ = ["HELP", "Options", "run"]

HELP = """\
Files that are there are checked, not fetched again; what was interrupted goes on where it stopped. Without --root they
lie in $SETSUP_DATA/NAME, else in the user's cache. The last line printed is the folder."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb."""

    dataset: Dataset
    root: Root = None
    json: Json = False


def run(options: Options) -> int:
    """Fetch and say where the files are."""
    name = options.dataset
    check_root(options.root)
    package = foreign().get(name)
    if package is not None:
        raise DataError(f"{name} comes from the package {package}, which says how to get its files")
    manifest = load_manifest(name)
    if not manifest.files:
        raise DataError(f"{name} has no files to fetch; use it as it is (`setsup info {name}`)")
    folder = fetch(manifest, options.root)
    if options.json:
        show_json({"name": name, "folder": str(folder), "files": [file.path for file in manifest.files]})
        return 0
    licence = manifest.licence
    say(f"licence: {licence.name}" + (f" ({licence.note})" if licence.note else ""))
    say(str(folder))
    return 0
