"""``setsup prepare``: converts slow files once."""

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from setsup.files import load_manifest
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import Common, Dataset, DatasetOptions, Root
from setsup_cli.parsing.source import check_benchmark, check_root
from setsup_cli.parsing.values import read_options
from setsup_cli.suggestions import advise_command

__all__ = ["HELP", "Options", "run"]

HELP = """\
Converted and unpacked files are written to the folder of the published files, or to the cache if that folder is
read-only; rendered previews are written to the cache. An interrupted run resumes. The paths of the prepared files are
printed. The command does nothing if the dataset needs no preparation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    dataset: Dataset = field(kw_only=False)
    root: Root = None
    option: DatasetOptions = None


def run(options: Options) -> int:
    """Convert and say where the arrays are."""
    name = options.dataset
    check_benchmark(name, "preparation")
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
        say(f"{name} needs no preparation")
    for path in paths:
        say(str(path))
    advise_command(options, ["setsup", "bench", name, *(["--root", options.root] if options.root else [])])
    return 0
