"""``setsup report``: compares the results of runs with a paper's figure or table, and checks its claims."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from setsup.errors import DataError, SetsupError, require_modules
from setsup.files.disk import need_writable
from setsup.files.expand_user import expanded
from setsup_cli.encoders import dense, invariance, knowledge, orbits
from setsup_cli.output import say, show_json, show_table
from setsup_cli.output_paths import Force, moved, write_file, write_image
from setsup_cli.parsing.arguments import Common, flag, option
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.values import check_image
from setsup_cli.report_printing import print_report
from setsup_cli.run_paths import hint_report
from setsup_cli.suggestions import advise, advise_command
from setsup_cli.training.describing import is_paper, list_names, list_paper

if TYPE_CHECKING:
    from setsup.experiments import FilledReport

__all__ = ["HELP", "Options", "resolve_options", "run"]

HELP = """\
Examples: `setsup report` lists papers and groups; `setsup report abc` lists the reports of one paper; `setsup report
abc/fig4a` reads the runs in ./runs, and prints means and standard deviations over seeds, and the commands for missing
runs. Runs on a substitute dataset, in another precision or with other settings are listed on separate lines. `setsup
report --all` prints every table, of any paper, that has a measured value; `--out page.html` writes them as one page.

Four reports compare frozen encoders and runs, and have their own options (`setsup report factors --help`).
`setsup report factors DATASET --encoder A --encoder B RUNS ...` measures how well embeddings predict each
factor of a dataset; `setsup report orbits DATASET RUNS ... --orbit FACTOR ... --encoder A` measures whether members of
an orbit are close to each other; `setsup report invariance DATASET RUNS ... --domain FACTOR ...` measures how well
embeddings predict the domain; and `setsup report dense DATASET RUNS ... --encoder A` measures how well features of
pixels match two views of a scene."""

_ENCODERS = {module.NAME: module for module in (knowledge, orbits, invariance, dense)}
"""Reports on encoders, which have options of their own."""
_DEFAULT = Path("runs")
_LISTED = "Number of reports by paper and group; `setsup report abc` lists the reports of one paper."
_PAGES = (".html", ".htm")


def _reports(context: object) -> dict[str, str]:
    """Names for the shell, with what each shows."""
    from setsup.experiments.report.registry import reports

    shown = {name: module.SHOWS for name, module in _ENCODERS.items()}
    return shown | {name: report.shows for name, report in reports().items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    report: Annotated[
        str | None,
        option("[REPORT]", "Report listed by `setsup report`, or preset of `setsup train`.", completer=_reports),
    ] = field(default=None, kw_only=False)
    runs: Annotated[
        tuple[Path, ...] | None, option("[RUNS ...]", "Folders of runs, searched recursively.", "./runs")
    ] = field(default=None, kw_only=False)
    preset: Annotated[
        str | None,
        option("FILE", "File that defines REPORT, if the preset is your own and no run stores the path of its file."),
    ] = None
    all: Annotated[bool, flag("Print every report with a measured value; all arguments are folders of runs.")] = False
    out: Annotated[
        Path | None,
        option("FILE", "Write a page (FILE.html) or a chart (FILE.png); with --all only a page.", alias="-o"),
    ] = None
    force: Force = False


def resolve_options(subcommand: Subcommand, words: Sequence[str]) -> Subcommand:
    """Options of the reports on encoders, which have their own."""
    word = next((word for word in words if not word.startswith("-")), "")
    alone = {*words} <= {word, "--json", "--quiet", "-q", "--verbose", "-v"}
    if word not in _ENCODERS or (word == "orbits" and alone):  # which alone is the paper, whose reports are listed
        return subcommand
    chosen: Subcommand = _ENCODERS[word].SUBCOMMAND
    return chosen


def _list(options: Options, paper: str | None) -> int:
    """List the papers, or the reports of one; for machines all reports."""
    from setsup.experiments.report.registry import reports

    known = {name: report for name, report in reports().items() if paper in (None, name.partition("/")[0])}
    if options.json:
        show_json([{"name": name, "shows": report.shows, "source": report.source} for name, report in known.items()])
    elif paper is None:
        say(f"{list_names(known)}\n\n{_LISTED}\n")
        show_table(["report", "what it shows"], [[name, module.SHOWS] for name, module in _ENCODERS.items()])
        advise_command(options, ["setsup", "report", next(iter(known))])
    else:
        from setsup.experiments import presets

        say(list_paper(paper, {name: report.shows for name, report in known.items()}))
        # a preset for own data may be called as its paper: with a folder, the word is a report on its runs
        first = [paper, _DEFAULT] if paper in presets() else [next(iter(known))]
        advise_command(options, ["setsup", "report", *first])
    return 0


def run(options: "Options | knowledge.Options | orbits.Options | invariance.Options | dense.Options") -> int:
    """Read runs, and print and plot their results; or list the reports."""
    if isinstance(options, knowledge.Options):
        return knowledge.run(options)
    if isinstance(options, orbits.Options):
        return orbits.run(options)
    if isinstance(options, invariance.Options):
        return invariance.run(options)
    if isinstance(options, dense.Options):
        return dense.run(options)
    if options.all:
        return _run_all(options)
    from setsup.experiments.report.registry import find_report, report_on, reports

    if options.preset is None:
        if options.report is None:
            return _list(options, None)
        if options.runs is None and options.out is None and is_paper(options.report, reports()):
            return _list(options, options.report)
    out = None if options.out is None else expanded(options.out)
    page = out is not None and out.suffix.lower() in _PAGES
    if out is not None:
        require_modules("--out needs", "matplotlib")
        if page:
            need_writable(out)
        else:
            check_image(out)
    folders = options.runs or ((_DEFAULT,) if _DEFAULT.is_dir() else ())
    name = _name(options)
    with hint_report(name):
        report = find_report(name, folders)
    filled = report_on(report, folders)
    if out is not None:
        asked = out
        if page:
            out = _write_page([filled], report.name, asked, options.force)
        else:
            from setsup.experiments.report.picture import draw_report

            out = write_image(draw_report(filled), asked, force=options.force)
    if options.json:
        file = None if out is None else str(out)
        show_json({**filled.to_dict(), "picture": None if page else file, "page": file if page else None})
        return 0
    looked = "searched ./runs" if folders else "./runs does not exist"
    print_report(filled, "" if options.runs else f"{looked}; pass other folders: setsup report {quote(name)} FOLDER")
    if out is not None:
        say()
        for line in (*moved(asked, out), str(out)):
            say(line)
    needs = [*filled.commands.values(), *(command for line in filled.lines for command in line.needs)]
    if needs:
        advise(options, needs[0])
    elif out is None:
        named = [*(options.runs or ()), "--out", f"{report.name.replace('/', '-')}.html"]
        advise_command(options, ["setsup", "report", name, *named])
    return 0


def _name(options: Options) -> str:
    """The report that options name, as :func:`find_report` takes it."""
    from setsup.experiments.preset_registry import split_file_name

    if options.preset is None:
        return options.report or ""
    file = split_file_name(options.preset)
    if file is None:
        raise SetsupError(f"--preset must be a file of presets, such as my_method.py, not {options.preset!r}")
    return options.preset if file[1] or options.report is None else f"{file[0]}:{options.report}"


def _run_all(options: Options) -> int:
    """Print every report with a measured value, and write them as one page."""
    from setsup.experiments.report.registry import measured_reports

    out = None if options.out is None else expanded(options.out)
    if out is not None:
        if out.suffix.lower() not in _PAGES:
            raise DataError(f"--out must be a file with the suffix .html when used with --all, not {out}")
        need_writable(out)
    named = (*([] if options.report is None else [Path(options.report)]), *(options.runs or ()))
    if not named and not _DEFAULT.is_dir():
        raise SetsupError("./runs does not exist; pass folders of runs: `setsup report --all FOLDER`")
    reports = measured_reports(named or (_DEFAULT,))
    if out is not None:
        asked, out = out, _write_page(reports, "Measured results", out, options.force)
    if options.json:
        show_json({"reports": [report.to_dict() for report in reports], "page": None if out is None else str(out)})
        return 0
    for number, filled in enumerate(reports):
        if number:
            say()
        print_report(filled, None)
    if not reports:
        where = ", ".join(map(str, named or ("./runs",)))
        say(f"no report has a measured value in {where}; measure a run: setsup eval RUN")
    if out is not None:
        say()
        for line in (*moved(asked, out), str(out)):
            say(line)
    return 0


def _write_page(filled: "list[FilledReport]", title: str, asked: Path, force: bool) -> Path:
    from setsup.pages import report_page

    return write_file(report_page(filled, title).encode(), asked, force=force)
