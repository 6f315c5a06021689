"""``setsup report invariance``: whether the domain can be read from codes, and what else can."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from setsup.errors import require_modules
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
from setsup_cli.parsing.arguments import Common, DatasetOptions, Device, Image, Kinds, OwnPreset, Root, Split
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.parser import Subcommand

if TYPE_CHECKING:
    from setsup.experiments.evaluations.invariance import StudiedInvariance

__all__ = ["NAME", "SHOWS", "SUBCOMMAND", "Options", "run"]

NAME = "invariance"
SHOWS = "how well embeddings predict the domain and other factors: setsup report invariance --help"

HELP = """\
For each encoder and run, and for the initial weights of each run, a network is trained to predict the domain and every
other factor from embeddings. The table shows its accuracy on held-out rows (R² for continuous factors), the ideal value
(for the domain, the share of the most frequent domain), and the accuracy with permuted labels. Example: `setsup report
invariance shapes3d-procedural runs/dcodr/seed-0 --domain shape --encoder pixels:8`."""

_BEFORE = "before: "


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the report."""

    report: Annotated[Literal["invariance"], declared("invariance", "Name of the report.")] = field(kw_only=False)
    dataset: DatasetName = field(kw_only=False)
    runs: Annotated[tuple[Path, ...] | None, declared("[RUNS ...]", "Folders of runs of `setsup train`.")] = field(
        default=None, kw_only=False
    )
    domain: Annotated[tuple[str, ...], declared("FACTOR ...", "Factors whose combinations are the domains.")]
    encoder: Encoders = None
    root: Root = None
    split: Split = None
    option: DatasetOptions = None
    image: Image = None
    kinds: Kinds = None
    factors: Annotated[
        tuple[str, ...] | None,
        declared(
            "NAME ...",
            "Other factors to predict; elevation+azimuth predicts their combination.",
            "all varying factors with at least 5 rows per level",
        ),
    ] = None
    rows: Annotated[int, declared("N", "Number of rows, drawn with the seed.", alias="-n")] = 10_000
    embedding: Embedding = None
    preset: OwnPreset = None
    device: Device = None
    batch: Batch = 64
    seed: Annotated[int, declared("N", "Random seed for drawing rows, for estimators and for random weights.")] = 0


SUBCOMMAND = Subcommand("report", Options, HELP, NAME, summary=f"measure {SHOWS.partition(':')[0]}")


def run(options: Options) -> int:
    """Measure and print."""
    require_modules("this report needs", "torch", "lightning")
    from setsup.experiments.data import image_modality
    from setsup.experiments.evaluations.classes import split_attribute
    from setsup.experiments.evaluations.invariance import study_invariance

    dataset, data, source = open_reported(options)
    factors = [factor for name in options.factors or () for factor in split_attribute(name, dataset.factors)]
    check_named([*options.domain, *factors], dataset, source)
    image_modality(dataset)  # raises its errors before anything is embedded
    runs = {str(folder) for folder in options.runs or ()}
    studies: dict[str, StudiedInvariance] = {}
    for label, lines, trained in [*trained_methods(options, dataset, data)]:
        if not options.json:
            for line in lines:
                say(line)
        before = label.partition(" (")[0] in runs
        embedding, others = chosen_embedding(options, trained), options.factors or ()
        with explained(label, dataset):
            if before:
                studies[f"{_BEFORE}{label}"] = study_invariance(
                    trained, options.domain, others, samples=options.rows, untrained=True, embedding=embedding
                )
            studies[label] = study_invariance(
                trained, options.domain, others, samples=options.rows, embedding=embedding
            )
    first = next(iter(studies.values()))
    if options.json:
        about: dict[str, Any] = {"dataset": dataset.name, "split": options.split, "seed": options.seed}
        about |= {"domain": options.domain, "ideal": first.ideal, "left_out": first.left_out}
        encoders = {label: {"accuracy": study.accuracy, "permuted": study.permuted} for label, study in studies.items()}
        show_json({**about, "encoders": encoders})
        return 0
    for name, reason in first.left_out.items():
        say_prose(f"omitted {name}: {reason}")
    say()
    _print(studies, options.domain)
    return 0


def _print(studies: "Mapping[str, StudiedInvariance]", domain: Sequence[str]) -> None:
    """A line for each factor, a column for each code."""
    first = next(iter(studies.values()))
    heads = ["ideal", *studies, "permuted"]
    rows = [
        [
            f"domain: {', '.join(domain)}" if name == "domain" else name,
            _number(first.ideal[name]),
            *(_number(study.accuracy[name]) for study in studies.values()),
            _number(max(study.permuted[name] for study in studies.values())),
        ]
        for name in first.names
    ]
    show_table(["", *heads], rows, right=heads)
    say_prose(
        "accuracy on held-out rows, R² for continuous factors; for the domain, lower is more invariant; "
        "permuted: accuracy with shuffled labels, the largest of these columns"
    )


def _number(value: float) -> str:
    return f"{value:.3f}"
