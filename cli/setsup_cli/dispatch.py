"""Finds the subcommand, parses its words, runs it, and turns what goes wrong into one sentence."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from setsup.errors import SetsupError, near
from setsup_cli.failures import say_error
from setsup_cli.letters import replace_unencodable
from setsup_cli.output import output_errors, write

__all__ = ["SUBCOMMANDS", "run"]

SUBCOMMANDS = {
    "datasets": "list the datasets: name, samples, factors, size, licence, whether the files are here",
    "info": "show a dataset: factors with levels and counts, splits, citation, a sample",
    "fetch": "download a dataset, verify it, resume; or show how to get it where a licence must be signed",
    "prepare": "convert slow files once, so that they are mapped into memory",
    "sample": "draw sets; print what is fixed and what varies; write a contact sheet and replayable draws",
    "render": "render scenes to a folder: images, depth, normals, instances; resumes",
    "pairs": "render pairs of views and plot pixel correspondences, occluded pixels apart",
    "shard": "write a dataset as WebDataset tars with a factor index; resumes",
    "index": "index existing WebDataset tars, so that they can be sampled by their factors",
    "train": "train one of the papers' methods, or your own; resumes",
    "embed": "compute embeddings of a dataset with a trained method, and save them with the factors",
    "eval": "run a paper's evaluations on trained methods",
    "pose": "find the pose of an object in photographs by the nearest of its renderings",
    "export": "write a trained method to a file that needs no setsup: a program of torch.export, or its weights",
    "report": "compare the results of your runs with the paper's",
    "explore": "look at datasets and draws on a page in the browser, or export the page as files",
    "bench": "measure throughput on this machine: draws and images per second",
    "doctor": "check what works on this machine: packages, torch, GL, disk",
    "cache": "list the cache and its size, or clear it",
}
"""Subcommands, each a module of :mod:`setsup_cli.commands`, with their lines of help."""

EXAMPLES = {
    "setsup sample --inactive wall_hue": "two sets of images with one wall hue in each",
    "setsup sample mnist --root data/mnist --inactive digit --size 64": "published files in a folder of yours",
    "setsup sample --table photos.csv --inactive subject": "your own images",
}

_OPTIONS = {
    "--help, -h": "show this help; `setsup help SUBCOMMAND` shows that of a subcommand",
    "--version, -V": "show the version",
    "--install-completion": "show what installing completion for your shell writes; --yes writes it",
}
_COMMON = (
    "All subcommands have --json (output JSON), --quiet, -q (no progress and no advice on standard error) and "
    "--verbose, -v (log details to standard error)."
)
_BESIDE = 60
"""Columns from which a description stands beside its name."""


def run(words: list[str]) -> int:
    """Run the command to an exit code, with one sentence for what goes wrong."""
    with replace_unencodable():
        try:
            code = _run(words)
            write("")  # flush
        except (SetsupError, MemoryError) as error:
            say_error(error, as_json="--json" in words)
            return 2
        except BrokenPipeError:
            return 141
        return code


def _run(words: list[str]) -> int:
    name, rest = (words[0], words[1:]) if words else ("--help", [])
    if name == "help" and rest and not rest[0].startswith("-"):
        return _run([*rest, "--help"])
    if name in ("--help", "-h", "help"):
        write(_help())
    elif name in ("--version", "-V"):
        import setsup

        write(f"setsup {setsup.__version__}\n")
    elif name in ("--install-completion", "__complete"):
        return _complete(words)
    elif name.startswith("-"):
        example = f"setsup {rest[0] if rest and rest[0] in SUBCOMMANDS else 'sample'} {name}"
        raise SetsupError(f"options follow the subcommand, as in `{example}` (`setsup --help` lists the subcommands)")
    elif name not in SUBCOMMANDS:
        raise SetsupError(f"unknown subcommand {name!r}{near(name, SUBCOMMANDS)} (`setsup --help` lists them)")
    else:
        return _run_subcommand(name, rest)
    return 0


def _run_subcommand(name: str, words: list[str]) -> int:
    # only the module of the subcommand is imported
    from setsup_cli.parsing.parser import Subcommand, parse, print_help

    module = import_module(f"setsup_cli.commands.{name}")
    subcommand = Subcommand(name, module.Options, module.HELP)
    if hasattr(module, "resolve_options"):
        subcommand = module.resolve_options(subcommand, words)
    if {"-h", "--help"} & set(words):
        with output_errors():
            print_help(subcommand, f"{SUBCOMMANDS[name][0].upper()}{SUBCOMMANDS[name][1:]}.")
        return 0
    parsed = parse(subcommand, words)
    if parsed.quiet and parsed.verbose:
        raise SetsupError("--quiet and --verbose exclude each other; leave out one of them")
    with _log_to_stderr("DEBUG" if parsed.verbose else "WARNING" if parsed.quiet else "INFO"):
        code: int = module.run(parsed)
    return code


def _complete(words: list[str]) -> int:
    """Install shell completion, or complete words for an installed one."""
    from setsup_cli.parsing.parser import Subcommand, complete

    modules = {name: import_module(f"setsup_cli.commands.{name}") for name in SUBCOMMANDS}
    complete([Subcommand(name, module.Options, SUBCOMMANDS[name]) for name, module in modules.items()], words)
    return 0


@contextmanager
def _log_to_stderr(least: str) -> Iterator[None]:
    """Show on standard error what the library logs from a level on; a level above INFO turns off progress."""
    import logging

    log, handler = logging.getLogger("setsup"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("setsup: %(message)s"))
    level, propagate = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(least)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = propagate


def _help() -> str:
    import shutil
    import textwrap

    width = shutil.get_terminal_size((120, 24)).columns - 1

    def wrap(text: str, first: str = "", indent: int = 0) -> str:
        return textwrap.fill(
            text,
            max(width, indent + 1),
            initial_indent=first,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def entry(name: str, line: str, least: int) -> str:
        if width < _BESIDE:
            return f"  {name}\n{wrap(line, ' ' * 6, 6)}"
        return wrap(line, f"  {name:<{least}} ", least + 3)

    parts = [
        wrap("Usage: setsup SUBCOMMAND [OPTIONS]"),
        wrap(
            "Sets, domains, orbits and triplets from image benchmarks, for weakly supervised representation learning."
        ),
        "\n".join(["Subcommands:", *(entry(name, line, 10) for name, line in SUBCOMMANDS.items())]),
        "\n".join(["Options:", *(entry(name, line, 21) for name, line in _OPTIONS.items())]),
        wrap(_COMMON),
        "\n".join(
            ["Examples:", *(f"{wrap(one, '  ', 6)}\n{wrap(line, ' ' * 6, 6)}" for one, line in EXAMPLES.items())]
        ),
    ]
    return "\n\n".join(parts) + "\n"
