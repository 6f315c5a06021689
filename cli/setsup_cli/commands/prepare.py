"""``setsup prepare``: convert a slow container once."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from setsup.files import load_manifest
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import Dataset, Json, Opening, Root
from setsup_cli.parsing.dataset_options import read_options
from setsup_cli.parsing.source import check_root

__all__ = ["HELP", "Options", "run"]

HELP = """\
What was converted or unpacked lies beside the published files, or in the cache where that folder is read-only; drawn
previews lie in the cache. Stopped and started again, the work goes on where it was. The paths of all that serves
afterwards are printed. A data set that needs no preparation is left as it is."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb."""

    dataset: Dataset
    root: Root = None
    option: Opening = None
    json: Json = False


def run(options: Options) -> int:
    """Convert and say where the arrays are."""
    name = options.dataset
    check_root(options.root)
    adapter = load_manifest(name).adapter
    prepare = getattr(import_module(adapter), "prepare", None) if adapter else None
    from setsup.datasets.registry import opener_options

    known = {} if prepare is None else opener_options(prepare)
    given = read_options(options.option or (), known, f"`setsup prepare {name}`")
    prepared = [] if prepare is None else prepare(options.root, **given)
    paths = [prepared] if isinstance(prepared, Path) else list(prepared)
    if options.json:
        show_json({"name": name, "arrays": [str(path) for path in paths]})
        return 0
    if not paths:
        say(f"{name} needs no preparation: its samples are read or drawn fast as they are")
    for path in paths:
        say(str(path))
    return 0
