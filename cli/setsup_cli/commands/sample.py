"""``setsup sample``: draws sets, and writes the draws and a contact sheet."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.errors import SamplerError
from setsup.files.disk import need_writable
from setsup.files.expand_user import expanded
from setsup_cli.output import say, say_prose, show_json, show_table
from setsup_cli.parsing.arguments import DEFAULT
from setsup_cli.parsing.sample_options import Options
from setsup_cli.parsing.sampling import build_sampler, check_places, chosen_sampler
from setsup_cli.parsing.source import assignments, is_place, open_named, open_source

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.reports import SetWords
    from setsup.samplers import Draw, Sampler

__all__ = ["HELP", "Options", "run"]

HELP = """\
Examples: `setsup sample --inactive wall_hue`, which needs no download; `setsup sample mnist --root FOLDER --inactive
digit` for published files in a folder; `setsup sample --table photos.csv --inactive subject` for your own images. The
last line printed is the path of the contact sheet."""

_STEPS_SHOWN = 4
_SETS_SHOWN = 16
_PLACES = ("dataset", "table", "root", "index", "option")
"""Options with the location of the data, which a replay is given again."""


def run(options: Options) -> int:
    """Draw, write, print."""
    if options.steps < 1:
        raise SamplerError(f"--steps must be 1 or more, not {options.steps}")
    folder = expanded(options.out)
    need_writable(folder / "sheet.png")
    drawn = _asked(options) if options.replay is None else _replayed(options, expanded(options.replay))
    from setsup_cli.draws import header, lines, write_files
    from setsup_cli.sheets import draw_sheet

    # the sheet first: if an image cannot be read, no file is written
    sheet = draw_sheet(drawn.dataset, drawn.sampler, drawn.draws, _STEPS_SHOWN)
    head = header(drawn.dataset, drawn.sampler, len(drawn.draws.indices), drawn.table, drawn.split, drawn.opened)
    paths = write_files(folder, head, drawn.draws, sheet)
    if options.json:
        files = {name: str(path) for name, path in paths.items()}
        words = [[asdict(found) for found in step] for step in _words(drawn)]
        report = drawn.sampler.report().to_dict()
        show_json({**head, "draws": list(lines(drawn.draws)), "words": words, "report": report, "files": files})
    else:
        _print(drawn, paths)
    return 0


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Draws and their source; ``table`` is how a user's table was read, without its path.

    ``split`` is the split whose rows were drawn, and ``opened`` the dataset options as they were given; None for a
    path. Each of the ``notes`` is a line for the user.
    """

    dataset: "Dataset"
    sampler: "Sampler"
    draws: "Draw"
    table: dict[str, Any] | None
    split: str | None
    opened: dict[str, str | None]
    notes: list[str]


def _asked(options: Options) -> _Drawn:
    kind = chosen_sampler(options)
    check_places(options)
    dataset = open_named(options)
    if kind is None:
        names = [factor.name for factor in dataset.factors.factors if factor.role != "key"]
        raise SamplerError(
            "name the factors: --inactive FACTOR ... or --active FACTOR ... (or --domain, --orbit, --triplets); "
            f"factors of {dataset.name}: {', '.join(names)}"
        )
    named = options.dataset if options.dataset is not None and is_place(options.dataset) else dataset.name
    card = f"`setsup info {f'--table {options.table}' if options.table else named}`"
    table: dict[str, Any] | None = None
    from setsup_cli.parsing.defaults import suited

    options, notes = suited(kind, options, dataset.factors, card)
    if options.table is not None:
        table = {"image": options.image, "kinds": assignments(options.kinds or (), "--kinds", "kind")}
    sampler = build_sampler(kind, options, dataset.factors, card)
    return _Drawn(dataset, sampler, sampler.block(0, options.steps), table, options.split, _opened_with(options), notes)


def _opened_with(options: Options) -> dict[str, str | None]:
    if not options.option:
        return {}
    from setsup.datasets.registry import options_of
    from setsup_cli.parsing.dataset_options import path_options

    given = {name: value for name, _, value in (word.partition("=") for word in options.option)}
    return dict(given) | dict.fromkeys(given.keys() & path_options(options_of(options.dataset or DEFAULT)))


def _replayed(options: Options, path: Path) -> _Drawn:
    from setsup_cli.draws import read_draws

    for field in fields(Options):
        given = getattr(options, field.name) != field.default
        if given and field.name not in (*_PLACES, "replay", "out", "json", "quiet"):
            raise SamplerError(f"--replay takes everything about the draws from its file; leave out --{field.name}")
    recorded = read_draws(path)
    recorded.check_source(options.dataset, options.table)
    table = recorded.table
    image = None if table is None else table["image"]
    kinds = () if table is None else [f"{name}={kind}" for name, kind in table["kinds"].items()]
    name = recorded.head["dataset"] if table is None else None
    option: Sequence[str] = options.option or ()
    if options.dataset is not None and is_place(options.dataset):
        name = options.dataset  # which was written with the options
    else:
        option = recorded.opening(option)
    split = recorded.head.get("split")
    dataset = open_source(
        name,
        options.root,
        table=options.table,
        image=image,
        kinds=kinds,
        split=split,
        index=options.index,
        option=option,
    )
    sampler = recorded.sampler(dataset)
    draws = recorded.draws(sampler)
    notes = [f"the same draws as {path}"] if recorded.steps else []
    return _Drawn(dataset, sampler, draws, table, split, recorded.opened, notes)


def _words(drawn: _Drawn) -> "list[list[SetWords]]":
    """Describe the fixed and varying factors of each set of the first steps."""
    from setsup.reports import describe, describe_triplets
    from setsup.samplers import TripletSampler
    from setsup_cli.sheets import orbit

    table, found = drawn.dataset.factors, []
    for step in range(min(len(drawn.draws.indices), _STEPS_SHOWN)):
        draw = drawn.draws.at(step)
        if isinstance(drawn.sampler, TripletSampler):
            found.append(describe_triplets(table, draw, orbit(drawn.sampler), _SETS_SHOWN))
        else:
            found.append(describe(table, draw, _SETS_SHOWN))
    return found


def _print(drawn: _Drawn, paths: dict[str, Path]) -> None:
    from setsup.samplers import TripletSampler

    table, arguments = drawn.dataset.factors, drawn.sampler.arguments
    steps, sets = drawn.draws.indices.shape[:2]
    say(f"{drawn.dataset.name}: {len(table):,} rows, seed {arguments['seed']}, {steps:,} step{'s' * (steps > 1)}")
    for note in drawn.notes:
        say(note)
    say()
    rows = []
    for step, found in enumerate(_words(drawn)):
        for number, words in enumerate(found):
            fixed, varies = words.held_words(table, arguments.get("tolerance")), words.varying_words(table)
            rows.append([str(step), str(number), f"{words.members:,}", fixed, varies])
    if isinstance(drawn.sampler, TripletSampler):
        heads = ["step", "triplet", "rows", "anchor and positive share", "they have (values of levels)"]
    else:
        heads = ["step", "set", "rows", "fixed", "varies (distinct values of levels)"]
    show_table(heads, rows, right=heads[:3])
    if steps * sets > len(rows):
        say(f"… and {steps * sets - len(rows):,} more in {paths['jsonl']}")
    say()
    for line in str(drawn.sampler.report()).splitlines():
        say_prose(line)
    say()
    for path in paths.values():
        say(str(path))
