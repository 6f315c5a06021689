"""``setsup sample``: draws sets, and writes the draws and a contact sheet."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from setsup.errors import SamplerError
from setsup.files.disk import need_writable
from setsup.files.expand_user import expanded
from setsup_cli.output import say, say_prose, show_json, show_table
from setsup_cli.output_paths import Force, moved
from setsup_cli.parsing.arguments import Common, Source, option
from setsup_cli.parsing.own_samplers import find_class
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.sampler_help import select_help
from setsup_cli.parsing.sampler_options import all_options, option_fields
from setsup_cli.parsing.sampling import (
    build_sampler,
    check_factor_lists,
    choose_family,
    fill_defaults,
    read_options,
)
from setsup_cli.parsing.source import assignments, card_command, find_source, open_call, open_source
from setsup_cli.suggestions import advise, python_command, sampler_call

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.reports import PairWords, SetWords
    from setsup.samplers import Draw, Sampler

__all__ = ["HELP", "Options", "resolve_options", "run"]

HELP = """\
Examples: `setsup sample --inactive wall_hue`, which needs no download; `setsup sample mnist --root FOLDER --inactive
digit` for published files in a folder; `setsup sample photos.csv --inactive subject` for your own images. The last line
printed is the path of the contact sheet."""

_STEPS_SHOWN = 4
_SETS_SHOWN = 16
_LOCATION = ("dataset", "table", "root", "index", "relist", "option")
"""Options with the location of the data, which a replay is given again."""

_TILES = (8, 1024)

_HEADS = {
    "set": ("rows", "fixed", "varies (distinct values of levels)"),
    "pair": ("first and second", "both have"),
    "triplet": ("rows", "anchor and positive share", "they have (values of levels)"),
}
"""Heads of the columns that say what is drawn, after the step and the number."""

_RECORDED = ("benchmark", "table", "images", "capture", "bop", "arrays", "huggingface", "hub", "manifest")
"""Kinds of sources whose options are recorded for replays."""


@dataclass(frozen=True, kw_only=True)
class OutputOptions(Common):
    """Options of what is drawn and written, whatever the sampler."""

    steps: Annotated[int, option("N", "Number of steps, starting at step 0.", alias="-n")] = 1
    replay: Annotated[
        Path | None,
        option("DRAWS.JSONL", "Repeat the draws recorded in this file, and verify that they are identical."),
    ] = None
    out: Annotated[Path, option("FOLDER", "Output folder for draws.jsonl, draws.npz and sheet.png.", alias="-o")] = (
        Path("setsup-samples")
    )
    force: Force = False
    format: Annotated[Literal["png", "pdf", "svg"], option("png|pdf|svg", "Format of the sheet.")] = "png"
    tile: Annotated[
        int | None, option("PIXELS", "Longer side of a thumbnail, 8 to 1,024.", "128 for few images, else 64")
    ] = None
    title: Annotated[str | None, option("TEXT", "Heading of the sheet.", "dataset, sets and seed")] = None


Options: Any = make_dataclass(
    "Options",
    option_fields(all_options()),
    bases=(OutputOptions, Source),
    frozen=True,
    slots=True,
    kw_only=True,
    namespace={"__module__": __name__, "__doc__": "Options of the subcommand."},
)


def resolve_options(subcommand: Subcommand, words: Sequence[str]) -> Subcommand:
    """For help, the options that it shows."""
    return select_help(subcommand, words, OutputOptions) if {"-h", "--help"} & {*words} else subcommand


def run(options: Any) -> int:
    """Draw, write, print."""
    if options.steps < 1:
        raise SamplerError(f"--steps must be 1 or more, not {options.steps}")
    folder = expanded(options.out)
    if options.tile is not None and not _TILES[0] <= options.tile <= _TILES[1]:
        raise SamplerError(f"--tile must be {_TILES[0]} to {_TILES[1]:,}, not {options.tile}")
    need_writable(folder / f"sheet.{options.format}")
    drawn = _draw(options) if options.replay is None else _replay(options, expanded(options.replay))
    from setsup.reports import show
    from setsup_cli.draws import header, lines, write_files

    # the sheet first: when an image cannot be read, no file is written
    sheet = show(drawn.dataset, drawn.draws, drawn.sampler, steps=_STEPS_SHOWN, title=options.title, tile=options.tile)
    head = header(drawn.dataset, drawn.sampler, len(drawn.draws.indices), drawn.table, drawn.split, drawn.opened)
    head |= _hint(drawn, folder)
    paths = write_files(folder, head, drawn.draws, sheet, options.format, force=options.force)
    if options.json:
        files = {name: str(path) for name, path in paths.items()}
        words = [[asdict(unit) for unit in step] for step in _words(drawn)]
        report = drawn.sampler.report().to_dict()
        show_json({**head, "draws": list(lines(drawn.draws)), "words": words, "report": report, "files": files})
    else:
        drawn.notes.extend(moved(folder, paths["sheet"].parent))
        _print(drawn, paths)
        opened = f"dataset = {open_call(drawn.opening)}"
        sampler = f"sampler = {sampler_call(drawn.sampler, 'dataset.factors')}"
        advise(options, python_command("import setsup", opened, sampler, "draw = sampler[0]"))
    return 0


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Draws and where they come from.

    ``table`` has how a user's table was read, ``split`` the part of the dataset, and ``opened`` the options of the
    dataset as words, None for a path: these are kept for replays. Each of the ``notes`` is a line for the user, and
    ``opening`` has the options by which the dataset was opened.
    """

    dataset: "Dataset"
    sampler: "Sampler"
    draws: "Draw"
    table: dict[str, Any] | None
    split: str | None
    opened: dict[str, str | None]
    notes: list[str]
    opening: Source


def _draw(options: Any) -> _Drawn:
    values = read_options(options)
    key = choose_family(values)
    if options.dataset is None and options.table is None:
        check_factor_lists(values)
    source, of = find_source(options)
    dataset = open_source(options)
    if key is None:
        names = [factor.name for factor in dataset.factors.factors if factor.role != "key"]
        raise SamplerError(
            "choose a sampler, for example --inactive FACTOR or --active FACTOR (or --domain, --orbit, --triplets, "
            "--positive and --negative, --neighbours, --overlap, --episode, --hierarchy, --sequence, --pairs, "
            f"--sampler); factors of {dataset.name}: {', '.join(names)}"
        )
    card = card_command(options)
    values, notes = fill_defaults(key, values, dataset.factors, card, own=of != "benchmark")
    sampler = build_sampler(key, values, dataset.factors, card)
    table: dict[str, Any] | None = None
    if of == "table" or options.kinds:
        table = {"image": options.image, "kinds": assignments(options.kinds or (), "--kinds", "kind")}
    opened: dict[str, str | None] = {}
    if of in _RECORDED:
        from setsup.opening import path_options

        words = [*(options.option or ()), *([f"pattern={options.pattern}"] if options.pattern else [])]
        opened.update((name, value) for name, _, value in (word.partition("=") for word in words))
        opened.pop("relist", None)
        opened |= dict.fromkeys(opened.keys() & path_options(source, of))
    return _Drawn(dataset, sampler, sampler.block(0, options.steps), table, options.split, opened, notes, options)


def _hint(drawn: _Drawn, folder: Path) -> dict[str, Any]:
    """Where the data lie, for replays on this machine; nothing for a benchmark, which has a name."""
    from setsup_cli.source_location import source_hint

    source, of = find_source(drawn.opening)
    if of == "benchmark":
        return {}
    words = dict(word.split("=", 1) for word in drawn.opening.option or ())
    others = {name: words[name] for name, value in drawn.opened.items() if value is None and name in words}
    others |= {"index": drawn.opening.index} if drawn.opening.index is not None else {}
    return {"source": source_hint(source, of, folder, others)}


def _replay(options: Any, path: Path) -> _Drawn:
    from setsup_cli.draws import read_draws

    kept = {*_LOCATION, *(member.name for member in fields(OutputOptions) if member.name != "steps"), "sampler"}
    for member in fields(Options):
        if member.name not in kept and getattr(options, member.name) != member.default:
            raise SamplerError(f"--replay reads all settings of the draws from its file; omit --{member.name}")
    recorded = read_draws(path)
    named = options.dataset is not None or options.table is not None
    source, of = find_source(options) if named else (None, None)
    if not named and recorded.has_source:
        location, of = recorded.find_source()
        source = location
        options = replace(options, index=options.index or recorded.find_index())
        if of == "table":
            options = replace(options, table=Path(location))
        else:
            options = replace(options, dataset=location)
    else:
        recorded.check_source(source, of)
    table, split = recorded.table, recorded.head.get("split")
    if source is None:
        options = replace(options, dataset=recorded.head["dataset"])
    if of is None or of in _RECORDED:  # other sources were written with the options
        options = replace(options, option=tuple(recorded.opening(options.option or ())))
    if not named and of not in (None, "table"):  # not to be found out again: a folder may hold several
        options = replace(options, option=(*(options.option or ()), f"kind={of}"))
    if table is not None:
        kinds = tuple(f"{name}={kind}" for name, kind in table["kinds"].items())
        options = replace(options, image=table["image"], kinds=kinds)
    options = replace(options, split=split)
    dataset = open_source(options)
    if options.sampler is not None:
        find_class(options.sampler)  # which registers it
    sampler = recorded.sampler(dataset)
    draws = recorded.draws(sampler)
    notes = [f"the same draws as {path}"] if recorded.steps else []
    return _Drawn(dataset, sampler, draws, table, split, recorded.opened, notes, options)


def _words(drawn: _Drawn) -> "list[Sequence[SetWords | PairWords]]":
    """What is fixed and what varies in each set of the first steps."""
    from setsup.reports import describe, describe_pairs, describe_triplets, orbit_names
    from setsup.samplers.row_arguments import weight_names

    table, without = drawn.dataset.factors, weight_names(drawn.sampler.arguments)
    kind = _find_unit(drawn)

    def put(draw: "Draw") -> "Sequence[SetWords | PairWords]":
        if kind == "triplet":
            return describe_triplets(table, draw, orbit_names(drawn.sampler), _SETS_SHOWN, without)
        return (describe_pairs if kind == "pair" else describe)(table, draw, _SETS_SHOWN, without)

    return [put(drawn.draws.at(step)) for step in range(min(len(drawn.draws.indices), _STEPS_SHOWN))]


def _find_unit(drawn: _Drawn) -> Literal["set", "pair", "triplet"]:
    """What is drawn: two rows that are compared; an anchor, a positive and a negative; or any other sets."""
    from setsup.samplers import FactorPairSampler, NeighbourSampler, OverlapSampler, TripletSampler

    if isinstance(drawn.sampler, NeighbourSampler):
        return "triplet" if drawn.draws.indices.shape[-1] == 3 else "pair"
    if isinstance(drawn.sampler, TripletSampler):
        return "triplet"
    if isinstance(drawn.sampler, OverlapSampler):
        return "pair" if drawn.draws.indices.shape[-1] == 2 else "set"
    return "pair" if isinstance(drawn.sampler, FactorPairSampler) else "set"


def _find_overlaps(drawn: _Drawn) -> list[str]:
    """What was measured of the sets of the first steps; empty where they are not drawn by overlap."""
    from setsup.samplers import OverlapSampler

    if not isinstance(drawn.sampler, OverlapSampler):
        return []
    from setsup.reports.overlap_words import describe_overlaps

    steps = range(min(len(drawn.draws.indices), _STEPS_SHOWN))
    return [text for step in steps for text in describe_overlaps(drawn.sampler, drawn.draws.at(step), _SETS_SHOWN)]


def _print(drawn: _Drawn, paths: dict[str, Path]) -> None:
    from setsup.reports import PairWords

    table, arguments = drawn.dataset.factors, drawn.sampler.arguments
    steps, sets = drawn.draws.indices.shape[:2]
    seed = f", seed {arguments['seed']}" if "seed" in arguments else ""
    say(f"{drawn.dataset.name}: {len(table):,} rows{seed}, {steps:,} step{'s' * (steps > 1)}")
    for note in drawn.notes:
        say(note)
    say()
    rows = []
    for step, units in enumerate(_words(drawn)):
        for number, words in enumerate(units):
            if isinstance(words, PairWords):
                rows.append([str(step), str(number), words.changed_words(table), words.fixed_words(table)])
                continue
            fixed, varies = words.fixed_words(table, arguments.get("tolerance")), words.varying_words(table)
            rows.append([str(step), str(number), f"{words.members:,}", fixed, varies])
    unit = _find_unit(drawn)
    overlaps = _find_overlaps(drawn)
    heads = ["step", unit, *_HEADS[unit]]
    if overlaps:
        heads.append("measured")
        rows = [[*row, text] for row, text in zip(rows, overlaps, strict=True)]
    show_table(heads, rows, right=[head for head in heads if head in ("step", unit, "rows")])
    if steps * sets > len(rows):
        say(f"… and {steps * sets - len(rows):,} more in {paths['jsonl']}")
    if arguments.get("values") == "independent" and unit == "set" and sets > 1:
        fixed_first = [fixed for step, _, _, fixed, _ in rows if step == "0"]
        alike = len(fixed_first) == sets and len(set(fixed_first)) == 1 and "=" in fixed_first[0]
        if alike and any(getattr(entry, "drawable", 2) > 1 for entry in drawn.sampler.report().entries):
            say("all sets of step 0 have the same values by chance; use --values different for different ones")
    say()
    for line in str(drawn.sampler.report()).splitlines():
        say_prose(line)
    say()
    for path in paths.values():
        say(str(path))
