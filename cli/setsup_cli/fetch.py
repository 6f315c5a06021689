"""``setsup fetch``: download the files of a data set."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional

from setsup.errors import DataError, near
from setsup.files import fetch, load_manifest, manifest_names
from setsup_cli.arguments import Json, MaybePath, option
from setsup_cli.output import say, show_json

__all__ = ["HELP", "Options", "run"]

HELP = """\
Files that are there are checked, not fetched again; what was interrupted goes on where it stopped. Without --root they
lie in $SETSUP_DATA/NAME, else in the user's cache. The last line printed is the folder."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb."""

    dataset: Annotated[Positional[str], option("DATASET", "A name of `setsup datasets`.")]
    root: Annotated[MaybePath, option("FOLDER", "Folder for the published files.")] = None
    json: Json = False


def run(options: Options) -> int:
    """Fetch and say where the files are."""
    name = options.dataset
    if name not in manifest_names():
        from setsup_cli.datasets import foreign

        if name in foreign():
            raise DataError(f"{name} comes from the package {foreign()[name]}, which says how to get its files")
        raise DataError(f"there is no data set {name!r}{near(name, manifest_names())} (`setsup datasets` lists them)")
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
