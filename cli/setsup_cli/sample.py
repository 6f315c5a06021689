"""``setsup sample``: draw sets, say what they hold, and write draws and a contact sheet."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional

from setsup.errors import SamplerError
from setsup_cli.arguments import Json, MaybeNumber, MaybePath, MaybeText, MaybeWords, option
from setsup_cli.output import say, show_json, show_table
from setsup_cli.sampling import build_sampler, chosen_sampler
from setsup_cli.source import DEFAULT, open_source

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.samplers import Draw, Sampler
    from setsup_cli.draws import Recorded

__all__ = ["HELP", "Options", "run"]

HELP = """\
To begin with: `setsup sample --inactive wall_hue`, which needs no download; `setsup sample mnist --root FOLDER
--inactive digit` for published files in a folder; `setsup sample --table photos.csv --inactive subject` for pictures of
your own. The last line printed is the path of the contact sheet."""

_STEPS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb."""

    dataset: Annotated[
        Positional[MaybeText], option("[DATASET]", "A name of `setsup datasets`.", f"(default: {DEFAULT})")
    ] = None

    table: Annotated[
        MaybePath,
        option("FILE", "CSV or Parquet file in place of a name: a column of image paths, and columns of factors."),
    ] = None
    image: Annotated[MaybeText, option("COLUMN", "The table's column of image paths or image bytes.")] = None
    kinds: Annotated[
        MaybeWords,
        option(
            "NAME=KIND ...",
            "Kinds of the table's factors, where those inferred do not suit: nominal, ordinal, cyclic, continuous.",
        ),
    ] = None
    root: Annotated[MaybePath, option("FOLDER", "Folder that holds the published files.")] = None

    inactive: Annotated[MaybeWords, option("FACTOR ...", "Sets that hold these factors.")] = None
    active: Annotated[MaybeWords, option("FACTOR ...", "Sets that hold all factors but these.")] = None
    domain: Annotated[
        MaybeWords, option("FACTOR ...", "Batches of several domains, each a combination of these factors.")
    ] = None
    orbit: Annotated[
        MaybeWords,
        option("FACTOR ...", "Orbits, each a combination of these factors; whole ones unless --size is given."),
    ] = None
    triplets: Annotated[
        MaybeWords, option("FACTOR ...", "Triplets: anchor and positive share these factors, the negative does not.")
    ] = None

    size: Annotated[MaybeNumber, option("N", "Rows a set.", "(default: 32)")] = None
    sets: Annotated[MaybeNumber, option("N", "Sets a step.", "(default: 2 sets, 4 domains, 8 orbits, 32 triplets)")] = (
        None
    )
    seed: Annotated[int, option("N", "Seed of all draws.", "(default: 0)")] = 0
    steps: Annotated[int, option("N", "Steps to draw, from step 0 on.", "(default: 1)")] = 1
    where: Annotated[
        MaybeText, option("EXPRESSION", "Rows to draw from, such as \"scale >= 1.0 and shape != 'cube'\".")
    ] = None
    unconstrained: Annotated[int, option("N", "The last so many sets of a step hold nothing.", "(default: 0)")] = 0
    random: Annotated[MaybeNumber, option("N", "Hold so many of the --inactive factors, chosen anew each step.")] = None
    choose: Annotated[
        MaybeText,
        option(
            "levels|groups|rows",
            "Which values a set holds: each factor's levels alike, combinations alike, or as often as rows have them.",
        ),
    ] = None
    values: Annotated[MaybeText, option("independent|equal|different", "How the values of a step's sets relate.")] = (
        None
    )
    small: Annotated[
        MaybeText,
        option("error|drop|short|replace", "What to do with groups of fewer rows than a set.", "(default: error)"),
    ] = None
    tolerance: Annotated[
        MaybeWords, option("FACTOR=NUMBER ...", "Hold a continuous factor to within so much of an anchor's value.")
    ] = None
    canonical: Annotated[
        MaybeWords, option("MEMBER ...", "Canonical member of each orbit: first, argmin:FACTOR, or FACTOR=LEVEL ...")
    ] = None

    replay: Annotated[
        MaybePath, option("DRAWS.JSONL", "Draw once more what this file recorded, and make sure that it is the same.")
    ] = None
    out: Annotated[
        Path, option("FOLDER", "Folder for draws.jsonl, draws.npz and sheet.png.", "(default: ./setsup-samples)")
    ] = Path("setsup-samples")
    json: Json = False


def run(options: Options) -> int:
    """Draw, write, print."""
    if options.steps < 1:
        raise SamplerError(f"--steps must be 1 or more, not {options.steps}")
    recorded = None
    if options.replay is not None:
        recorded = _recorded(options)
        dataset, sampler, draws = _replayed(recorded, options)
    else:
        dataset, sampler = _asked(options)
        draws = sampler.block(0, options.steps)
    from setsup_cli.draws import header, write_draws
    from setsup_cli.sheets import draw_sheet, write_sheet

    # the picture first: when an image cannot be read, no file is written
    sheet = draw_sheet(dataset, sampler, draws, _STEPS_SHOWN)
    head = header(dataset, sampler, len(draws.indices), _table_words(options, recorded))
    paths = write_draws(options.out, head, draws)
    paths["sheet"] = write_sheet(options.out, sheet)
    if options.json:
        show_json(
            {**head, **_summary(dataset, sampler, draws), "files": {name: str(path) for name, path in paths.items()}}
        )
    else:
        _print(dataset, sampler, draws, paths)
    return 0


def _asked(options: Options) -> "tuple[Dataset, Sampler]":
    kind = chosen_sampler(options)
    dataset = open_source(options.dataset, options.root, options.table, options.image, options.kinds or ())
    if kind is None:
        names = [factor.name for factor in dataset.factors.factors if factor.role != "key"]
        raise SamplerError(
            "say what a set holds: --inactive FACTOR ... or --active FACTOR ... (or --domain, --orbit, --triplets); "
            f"factors of {dataset.name}: {', '.join(names)}"
        )
    card = f"`setsup info {f'--table {options.table}' if options.table else dataset.name}`"
    return dataset, build_sampler(kind, options, dataset.factors, card)


def _recorded(options: Options) -> "Recorded":
    from setsup_cli.draws import read_draws

    kept = ("dataset", "table", "image", "kinds", "root", "replay", "out", "json")
    for field in fields(Options):
        if field.name not in kept and getattr(options, field.name) != field.default:
            raise SamplerError(f"--replay takes everything about the draws from its file; leave out --{field.name}")
    return read_draws(Path(options.replay or ""))


def _replayed(recorded: "Recorded", options: Options) -> "tuple[Dataset, Sampler, Draw]":
    table = recorded.head.get("table")
    image, kinds = options.image, options.kinds or ()
    if table is not None and options.table is not None:
        image = image or table["image"]
        kinds = kinds or tuple(f"{name}={kind}" for name, kind in table["kinds"].items())
    recorded.check_source(options.dataset, options.table)
    name = None if options.table is not None else recorded.head["dataset"]
    dataset = open_source(name, options.root, options.table, image, kinds)
    sampler = recorded.sampler(dataset)
    return dataset, sampler, recorded.draws(sampler)


def _table_words(options: Options, recorded: "Recorded | None") -> dict[str, Any] | None:
    """Tell a later replay how a table was read; not where it lies."""
    if options.table is None:
        return None
    if recorded is not None and not options.image and not options.kinds:
        found: dict[str, Any] | None = recorded.head.get("table")
        return found
    from setsup_cli.source import assignments

    return {"image": options.image, "kinds": assignments(options.kinds or (), "--kinds", "kind")}


def _summary(dataset: "Dataset", sampler: "Sampler", draws: "Draw") -> dict[str, Any]:
    from dataclasses import asdict

    from setsup.reports import describe

    steps = [
        {"step": step, "sets": [asdict(words) for words in describe(dataset.factors, draws.at(step))]}
        for step in range(min(len(draws.indices), _STEPS_SHOWN))
    ]
    return {"shown": steps, "report": sampler.report().to_dict()}


def _print(dataset: "Dataset", sampler: "Sampler", draws: "Draw", paths: dict[str, Path]) -> None:
    from setsup.reports import describe

    table, steps = dataset.factors, len(draws.indices)
    say(f"{dataset.name}: {len(table):,} rows, seed {sampler.arguments['seed']}, {steps:,} step{'s' * (steps > 1)}")
    say()
    shown = min(steps, _STEPS_SHOWN)
    tolerance = sampler.arguments.get("tolerance")
    rows = []
    for step in range(shown):
        for number, words in enumerate(describe(table, draws.at(step))[:16]):
            held, varies = words.held_words(table, tolerance), words.varying_words(table)
            rows.append([str(step), str(number), str(words.members), held, varies])
    show_table(
        ["step", "set", "rows", "held", "varies (distinct values of levels)"], rows, right=("step", "set", "rows")
    )
    left = draws.indices.shape[0] * draws.indices.shape[1] - len(rows)
    if left:
        say(f"… and {left:,} more in {paths['jsonl']}")
    say()
    say(str(sampler.report()))
    say()
    for path in paths.values():
        say(str(path))
