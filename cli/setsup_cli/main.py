"""The command ``setsup``: finds the verb, hands over, and turns what goes wrong into one sentence."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from setsup.errors import SetsupError, near
from setsup_cli.letters import replace_unencodable
from setsup_cli.output import output_errors, write
from setsup_cli.parsing.usage import check_words

__all__ = ["VERBS", "main"]

VERBS = {
    "datasets": "what there is: name, samples, factors, size, licence, present or not",
    "info": "a dataset card: factors with levels and counts, splits, citation, a sample",
    "fetch": "download a data set, check it, resume; what to do where a licence must be signed",
    "prepare": "convert once what is slow to read, so that it is mapped into memory",
    "sample": "draw sets; what is held and what varies, a contact sheet and replayable draws",
    "render": "draw scenes to a folder: pictures, depth, normals, instances; resumes",
    "pairs": "draw lines between pixels of two views that show the same point; what is hidden apart",
    "shard": "write a data set as WebDataset tars with an index of its factors; resumes",
    "index": "index WebDataset tars that others wrote, so that they are sampled by their factors",
    "train": "train one of the papers' methods, or yours; goes on where it was stopped",
    "embed": "embeddings of a data set by a trained method, and their factors",
    "eval": "what a paper measures, on trained methods",
    "report": "the paper's numbers beside those of your runs",
    "bench": "throughput here: draws and images a second",
    "doctor": "what works on this machine: packages, torch, GL, disk",
    "cache": "what is cached, and its size",
}
"""The verbs, each a module of this package, with the line that stands in the help."""

EXAMPLES = {
    "setsup sample --inactive wall_hue": "two sets of pictures, in each of them one wall hue",
    "setsup sample mnist --root data/mnist --inactive digit --size 64": "published files in a folder of yours",
    "setsup sample --table photos.csv --inactive subject": "your own pictures",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    words = list(sys.argv[1:] if argv is None else argv)
    with replace_unencodable():
        return _exit_code(words)


def _exit_code(words: list[str]) -> int:
    """Run the command to an exit code, with one sentence for what goes wrong."""
    try:
        code = _run(words)
        write("")  # tyro leaves its help unflushed
    except SetsupError as error:
        sys.stderr.write(f"setsup: {error}\n")
        return 2
    except MemoryError:
        sys.stderr.write("setsup: this needs more memory than there is; ask for fewer steps, sets or rows\n")
        return 2
    except KeyboardInterrupt as stop:
        sys.stderr.write(f"setsup: {' '.join(['stopped', *map(str, stop.args)])}\n")
        return 130
    except BrokenPipeError:
        return 141
    return code


def _run(words: list[str]) -> int:
    verb, rest = (words[0], words[1:]) if words else ("--help", [])
    if verb in ("--help", "-h", "help"):
        write(_help())
        return 0
    if verb == "--version":
        import setsup

        write(f"setsup {setsup.__version__}\n")
        return 0
    if verb.startswith("-"):
        example = f"setsup {rest[0] if rest and rest[0] in VERBS else 'sample'} {verb}"
        raise SetsupError(f"options stand after the verb, as in `{example}` (`setsup --help` lists the verbs)")
    if verb not in VERBS:
        raise SetsupError(f"there is no verb {verb!r}{near(verb, VERBS)} (`setsup --help` lists them)")
    return _run_verb(verb, rest)


def _run_verb(verb: str, rest: list[str]) -> int:
    # tyro and the verb's module alone: no other verb costs time
    import tyro

    quiet = not {"-q", "--quiet"}.isdisjoint(rest)
    rest = [word for word in rest if word not in ("-q", "--quiet")]
    module = import_module(f"setsup_cli.commands.{verb}")
    # options of some verbs depend on what is named
    kind, text = module.asked(rest) if hasattr(module, "asked") else (module.Options, module.HELP)
    check_words(verb, kind, rest)
    try:
        with output_errors():  # for --help
            options = tyro.cli(
                kind,
                prog=f"setsup {verb}",
                description=f"{VERBS[verb][0].upper()}{VERBS[verb][1:]}.\n\n{text}".strip(),
                # tyro leaves out of its help what stands before it
                args=["--help"] if {"-h", "--help"} & set(rest) else rest,
                config=(tyro.conf.FlagCreatePairsOff, tyro.conf.HelptextFromCommentsOff),
            )
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 2
    with _logged(quiet):
        code: int = module.run(options)
    return code


@contextmanager
def _logged(quiet: bool) -> Iterator[None]:
    """Show on standard error what the library logs, such as who waits for whom; quiet, warnings and no progress."""
    import logging

    log, handler = logging.getLogger("setsup"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("setsup: %(message)s"))
    level, propagate = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = propagate


def _help() -> str:
    verbs = "\n".join(f"  {verb:<10} {line}" for verb, line in VERBS.items())
    examples = "\n".join(f"  {command}\n      {line}" for command, line in EXAMPLES.items())
    return (
        "usage: setsup VERB [options]\n\n"
        "Sets, domains, orbits and triplets from image benchmarks, for weakly supervised representation learning.\n\n"
        f"verbs:\n{verbs}\n\n"
        "options:\n  --help     this text; `setsup VERB --help` explains a verb and its options\n"
        "  --version  the version\n  --json     after a verb: one JSON value on standard output, for machines\n"
        "  -q         after a verb: no progress on standard error\n\n"
        f"examples:\n{examples}\n"
    )
