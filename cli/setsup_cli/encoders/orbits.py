"""``setsup report orbits``: whether encoders and runs have the members of an orbit together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from setsup.errors import require_modules
from setsup.files.expand_user import expanded
from setsup_cli.encoders.knowledge import trained_methods
from setsup_cli.encoders.options import (
    Batch,
    DatasetName,
    Embedding,
    Encoders,
    check_named,
    chosen_embedding,
    explained,
    open_reported,
)
from setsup_cli.output import say, say_prose, show_json, show_table
from setsup_cli.output_paths import Force, moved, write_image
from setsup_cli.parsing.arguments import Common, DatasetOptions, Device, OwnPreset, Root, Split
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.notations import NOTATIONS, find_levels
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.values import check_image

if TYPE_CHECKING:
    from setsup.experiments.evaluations.orbits import StudiedOrbits

__all__ = ["NAME", "SHOWS", "SUBCOMMAND", "Options", "run"]

NAME = "orbits"
SHOWS = "whether frozen encoders and runs give the members of an orbit similar embeddings: setsup report orbits --help"

HELP = """\
For each encoder and run, the report shows Euclidean distances between drawn rows, within and between orbits; the
probability that a pair from one orbit is closer than a pair from two orbits (AUC); the share of members whose nearest
canonical member belongs to their orbit; and, for methods that decode canonical images (method `rectify`), their error,
compared with two baselines. Example: `setsup report orbits shapes3d-procedural --orbit wall_hue shape --canonical
argmin:orientation --encoder pixels:16`."""

_MEMBER = NOTATIONS["str | Mapping[str, Level]"]
_NUMBERS = ("mean", "5 %", "25 %", "50 %", "75 %", "95 %")


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the report."""

    report: Annotated[Literal["orbits"], declared("orbits", "Name of the report.")] = field(kw_only=False)
    dataset: DatasetName = field(kw_only=False)
    runs: Annotated[tuple[Path, ...] | None, declared("[RUNS ...]", "Folders of runs of `setsup train`.")] = field(
        default=None, kw_only=False
    )
    orbit: Annotated[tuple[str, ...], declared("FACTOR ...", "Factors whose combinations are the orbits.")]
    canonical: Annotated[
        tuple[str, ...] | None,
        declared("MEMBER ...", f"Canonical member of each orbit. {_MEMBER.note}", "none, to measure only distances"),
    ] = None
    encoder: Encoders = None
    root: Root = None
    split: Split = None
    option: DatasetOptions = None
    rows: Annotated[int, declared("N", "Number of orbits, drawn with the seed.", alias="-n")] = 100
    members: Annotated[int, declared("N", "Maximum number of members drawn per orbit.")] = 64
    embedding: Embedding = None
    preset: OwnPreset = None
    device: Device = None
    batch: Batch = 64
    seed: Annotated[int, declared("N", "Random seed for drawing orbits and their members, and for random weights.")] = 0
    out: Annotated[Path | None, declared("FILE.png", "Write a sheet of the first orbits.", alias="-o")] = None
    force: Force = False


SUBCOMMAND = Subcommand("report", Options, HELP, NAME, summary=f"measure {SHOWS.partition(':')[0]}")


def run(options: Options) -> int:
    """Measure, print and draw."""
    require_modules("this report needs", "torch", "lightning")
    from setsup.experiments.data import image_modality
    from setsup.experiments.evaluations.drawn_orbits import draw_orbits
    from setsup.experiments.evaluations.orbits import draw_orbit_sheet, study_orbits

    out = None if options.out is None else expanded(options.out)
    if out is not None:
        check_image(out)
    dataset, data, source = open_reported(options)
    check_named(options.orbit, dataset, source)
    image_modality(dataset)  # raises its errors before anything is embedded
    canonical = None if options.canonical is None else _MEMBER.read(options.canonical, "--canonical")
    if isinstance(canonical, Mapping):
        check_named(list(canonical), dataset, source)
        canonical = find_levels(canonical, dataset.factors, "--canonical")
    opened = [*trained_methods(options, dataset, data)]
    drawn = draw_orbits(
        dataset.factors, options.orbit, canonical, count=options.rows, members=options.members, seed=options.seed
    )
    studies: dict[str, StudiedOrbits] = {}
    for label, lines, trained in opened:
        if not options.json:
            for line in lines:
                say(line)
        with explained(label, dataset):
            studies[label] = study_orbits(trained, drawn, chosen_embedding(options, trained))
    if out is not None:
        asked, out = out, write_image(draw_orbit_sheet(dataset, drawn, studies), out, force=options.force)
    notes = [drawn.note(), *(study.note and f"{label}: {study.note}" for label, study in studies.items())]
    notes = [note for note in notes if note]
    if options.json:
        about: dict[str, Any] = {"dataset": dataset.name, "split": options.split, "seed": options.seed}
        about |= {"orbit": options.orbit, "canonical": canonical, "notes": notes}
        sizes = {"members": drawn.sizes.tolist(), "canonical_row": drawn.canonical.tolist()}
        about["orbits"] = [
            {"orbit": name, **{key: values[index] for key, values in sizes.items()}}
            for index, name in enumerate(drawn.names)
        ]
        about["encoders"] = {label: study.values for label, study in studies.items()}
        about["by_orbit"] = {
            label: {key: values.tolist() for key, values in study.each.items()} for label, study in studies.items()
        }
        show_json({**about, "picture": None if out is None else str(out)})
        return 0
    for note in notes:
        say_prose(note)
    say()
    _print({label: study.values for label, study in studies.items()}, drawn.among)
    if out is not None:
        say()
        for line in (*moved(asked, out), str(out)):
            say(line)
    return 0


def _print(measured: Mapping[str, Mapping[str, float]], among: int) -> None:
    """What was drawn, distances, and what becomes of members."""
    first = next(iter(measured.values()))
    single = first["orbits of one member"]
    say_prose(
        f"{first['orbits']:,} of {among:,} orbits, {first['rows']:,} rows; all {first['pairs within']:,} pairs within "
        f"and {first['pairs between']:,} between orbits"
        + (f"; {single:,} orbits with a single drawn member have no pairs within" if single else "")
    )
    say_prose("Euclidean distances, divided by the root mean square of those between orbits:")
    rows = []
    for label, values in measured.items():
        for name in ("within", "between"):
            cells = [_number(values[f"{name}, scaled: {number}"]) for number in _NUMBERS]
            rows.append([label if name == "within" else "", name, *cells])
    show_table(["encoder", "pairs", *_NUMBERS], rows, right=_NUMBERS)
    say()
    names = ["within / between", "AUC", "nearest canonical"]
    names += [f"{what}: {name}" for what in ("error", "PSNR") for name in ("rectified", "input", "mean image")]
    heads = [name for name in names if any(name in values for values in measured.values())]
    rows = [[label, *(_number(values.get(name)) for name in heads)] for label, values in measured.items()]
    chance = {"AUC": 0.5, "nearest canonical": first.get("chance: nearest canonical")}
    rows.insert(0, ["chance", *(_number(chance.get(name)) for name in heads)])
    show_table(["encoder", *heads], rows, right=heads)
    if any(head.startswith("error") for head in heads):
        say_prose("error: mean squared error per pixel to the canonical image, of images in [0, 1]; PSNR in decibels")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if abs(value) >= 0.0995 else f"{value:.3g}"
