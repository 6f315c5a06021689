"""``setsup explore``: a page on which datasets and draws are looked at, live or exported."""

import json
import webbrowser
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from setsup.errors import DataError, SetsupError, require_modules
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import (
    DEFAULT,
    Common,
    DatasetOptions,
    OwnPreset,
    Root,
    Source,
    Split,
    flag,
    names_and_paths,
)
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.source import open_arguments, open_source
from setsup_cli.runs import opened
from setsup_cli.stopping import sigterm_as_interrupt
from setsup_cli.suggestions import is_watched

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.pages import EmbeddingSource
    from setsup.samplers import Sampler

__all__ = ["HELP", "Options", "run"]

_LARGE = 25_000_000

HELP = """\
Examples: `setsup explore`, which needs no download; `setsup explore photos.csv mnist`; `setsup explore photos.csv
--export photos.html` for a single file that opens in any browser. The page is served to this machine only; to view it
from another machine, forward its port: `ssh -L 8000:127.0.0.1:PORT MACHINE`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    sources: Annotated[
        tuple[str, ...] | None,
        declared(
            "[SOURCES ...]",
            "Sources that `setsup sample` accepts (dataset names, files, folders), runs of `setsup train`, or folders "
            "written by `setsup embed`.",
            DEFAULT,
            completer=names_and_paths,
        ),
    ] = field(default=None, kw_only=False)
    root: Root = None
    split: Split = None
    option: DatasetOptions = None
    sampler: Annotated[
        Path | None,
        declared("FILE", "JSON file of the initial sampler, from `sampler.to_dict()`."),
    ] = None
    preset: OwnPreset = None
    port: Annotated[int, declared("N", "Port of the page on 127.0.0.1.", "a free one")] = 0
    no_browser: Annotated[bool, flag("Print the address of the page instead of opening a browser.", negative=())] = (
        False
    )
    export: Annotated[
        Path | None,
        declared("FOLDER|FILE.html", "Write the page for use without a server: to a new folder, or as one file."),
    ] = None
    rows: Annotated[
        int,
        declared("N", "Number of rows to export in each order: the first N in table order, and N in random order."),
    ] = 4096
    steps: Annotated[int, declared("N", "Number of steps of the sampler in an exported page.")] = 64


def run(options: Options) -> int:
    """Open the sources, and serve or export the page."""
    from setsup.pages import export, page_of
    from setsup.pages.embedding_page import has_embeddings

    given = list(dict.fromkeys(options.sources or (DEFAULT,)))
    runs = [opened(Path(path), options.preset) for path in given if _is_run(Path(path))]
    folders = [Path(path) for path in given if has_embeddings(Path(path))]
    sources = [path for path in given if not _is_run(Path(path)) and Path(path) not in folders]
    if options.export is None:
        require_modules("a live page needs", "starlette", "uvicorn")
    if len(sources) > 1 and (options.root or options.split or options.option or options.sampler):
        raise DataError(
            "--root, --split, --option and --sampler require a single source; explore the others separately"
        )
    datasets = {source: _opened(options, source) for source in sources}
    opened_with = {source: open_arguments(_named(options, source)) for source in sources}
    samplers = {}
    if options.sampler is not None:
        if not sources:
            raise DataError("--sampler requires a dataset; pass one, as in `setsup explore photos.csv --sampler FILE`")
        samplers = {sources[0]: _sampler(options.sampler, datasets[sources[0]])}
    embeddings = [
        embedding for folder in folders for embedding in _embeddings(folder, list(datasets.values()), options.preset)
    ]
    files = {"--sampler": options.sampler, "--preset": None if options.preset is None else Path(options.preset)}
    more = tuple(word for name, file in files.items() if file is not None for word in (name, file))
    page = replace(page_of(datasets, samplers, runs, embeddings, options=opened_with), options=more)
    if options.export is not None:
        try:
            with sigterm_as_interrupt():
                written = export(page, options.export, rows=options.rows, steps=options.steps)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"before {options.export} was written; run the same command again") from None
        size = written.stat().st_size if written == options.export else _size(written.parent)
        if options.json:
            show_json({"page": str(written), "bytes": size})
            return 0
        say(f"{written}: {size / 1e6:,.1f} MB")
        if size > _LARGE:
            say(f"pages of more than {_LARGE / 1e6:,.0f} MB open slowly; lower --rows or --steps for a smaller page")
        return 0

    def ready(address: str) -> None:
        if options.json:
            show_json({"address": address})
        else:
            say(address)
        if not options.no_browser and is_watched():
            webbrowser.open(address)

    from setsup.pages import serve

    serve(page, port=options.port, ready=ready)
    return 0


def _is_run(folder: Path) -> bool:
    return (folder / "run.json").is_file()


def _embeddings(folder: Path, datasets: "list[Dataset]", preset: str | None) -> "list[EmbeddingSource]":
    """Embeddings in a folder, with images of one of the datasets, or of what the run around it was trained on."""
    from setsup.pages import open_embeddings

    if not datasets and _is_run(folder.parent):
        from setsup.pages.run_page import open_run_data

        datasets = open_run_data(opened(folder.parent, preset))
    return open_embeddings(folder, datasets)


def _named(options: Options, source: str) -> Source:
    return Source(source, root=options.root, split=options.split, option=options.option)


def _opened(options: Options, source: str) -> "Dataset":
    from setsup.files.manifests.packages import find_manifest

    try:
        return open_source(_named(options, source))
    except SetsupError as error:
        folder = Path(source).expanduser()
        if folder.is_file() or find_manifest(source) is not None or str(error).endswith("?"):
            raise
        runs = [str(path.parent) for path in sorted(folder.glob("*/run.json"))[:3]]
        hint = f"; {' and '.join(runs)} are runs" if len(runs) > 1 else f"; {runs[0]} is a run" if runs else ""
        raise DataError(
            f"{error}; {source} is not a run of `setsup train` either (run.json is missing){hint}"
        ) from None


def _sampler(path: Path, dataset: "Dataset") -> "Sampler":
    from setsup.samplers import from_dict

    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} could not be read as the JSON of a sampler: {error}; write it with json.dumps(sampler.to_dict())"
        ) from None
    return from_dict(description, dataset.factors)


def _size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
