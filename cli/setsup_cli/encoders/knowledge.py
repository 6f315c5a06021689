"""``setsup report factors``: what encoders and runs know about each factor of a dataset."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from setsup.errors import require_modules
from setsup.files.expand_user import expanded
from setsup_cli.encoders.options import (
    Batch,
    DatasetName,
    Embedding,
    Encoders,
    check_named,
    chosen_embedding,
    describe_encoder,
    explained,
    open_reported,
    opened_encoder,
)
from setsup_cli.output import say, say_prose, show_json, show_table
from setsup_cli.output_paths import Force, moved, write_image
from setsup_cli.parsing.arguments import Common, DatasetOptions, Device, OwnPreset, Root, Split
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.values import check_image
from setsup_cli.runs import describe_run, opened

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.experiments import TrainedRun

__all__ = ["NAME", "SHOWS", "SUBCOMMAND", "Options", "run", "trained_methods"]

NAME = "factors"
SHOWS = (
    "how well the embeddings of frozen encoders and runs predict each factor of a dataset: setsup report factors --help"
)

HELP = """\
For each factor and each encoder, the report shows the accuracy of a linear probe and of nearest neighbours (R² for
continuous factors), a lower bound on the mutual information with the factor in nats, the mean average precision of
retrieval, and the share of the embedding's variance within sets in which the factor is fixed (0 for an embedding
that depends only on this factor). The row "chance" shows the values of an uninformative embedding. Example: `setsup
report factors shapes3d-procedural --encoder pixels:16 --encoder random:resnet18`."""

_TITLES = {
    "linear probe": "linear probe: accuracy, or R² of continuous factors",
    "nearest neighbours": "nearest neighbours: accuracy, or R² of continuous factors",
    "information": "information: lower bound, nats",
    "average precision": "average precision of retrieval",
    "within-set variance": "variance within sets of one level: 0 is invariant to all other factors",
}
_CHANCE = "chance"


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the report."""

    report: Annotated[Literal["factors"], declared("factors", "Name of the report.")] = field(kw_only=False)
    dataset: DatasetName = field(kw_only=False)
    runs: Annotated[tuple[Path, ...] | None, declared("[RUNS ...]", "Folders of runs of `setsup train`.")] = field(
        default=None, kw_only=False
    )
    encoder: Encoders = None
    root: Root = None
    split: Split = None
    option: DatasetOptions = None
    factors: Annotated[
        tuple[str, ...] | None,
        declared("NAME ...", "Factors to measure.", "all varying factors with at least 5 rows per level"),
    ] = None
    rows: Annotated[int, declared("N", "Number of rows, drawn with the seed.", alias="-n")] = 5_000
    metric: Annotated[
        Literal["cosine", "l2sq"], declared("cosine|l2sq", "Distance for nearest neighbours and retrieval.")
    ] = "cosine"
    estimator: Annotated[
        Literal["linear", "probe", "mine"],
        declared(
            "linear|probe|mine",
            "Estimator of mutual information: the linear probe; or, on embeddings with added noise, a trained probe or "
            "MINE.",
        ),
    ] = "linear"
    embedding: Embedding = None
    preset: OwnPreset = None
    device: Device = None
    batch: Batch = 64
    seed: Annotated[int, declared("N", "Random seed for drawing rows, for estimators and for random weights.")] = 0
    out: Annotated[Path | None, declared("FILE.png", "Write a plot of the report to this file.", alias="-o")] = None
    force: Force = False


SUBCOMMAND = Subcommand("report", Options, HELP, NAME, summary=f"measure {SHOWS.partition(':')[0]}")


def run(options: Options) -> int:
    """Measure, print and plot."""
    require_modules("this report needs", "torch", "lightning", "sklearn")
    from setsup.experiments.encoders import FactorKnowledge, suitable_factors

    out = None if options.out is None else expanded(options.out)
    if out is not None:
        require_modules("--out needs", "matplotlib")
        check_image(out)
    dataset, data, source = open_reported(options)
    check_named(options.factors, dataset, source)
    measure = FactorKnowledge(
        factors=options.factors or (), samples=options.rows, metric=options.metric, estimator=options.estimator
    )
    measured: dict[str, Mapping[str, float]] = {}
    names: tuple[str, ...] = ()
    left_out: dict[str, str] = {}
    opened_first = [*trained_methods(options, dataset, data)]  # all, before anything is measured
    for label, lines, trained in opened_first:
        rows = trained.sample(options.rows)
        names, left_out = suitable_factors(dataset.factors, rows, options.factors or ())
        if not options.json:
            for line in lines:
                say(line)
        with explained(label, dataset):
            measured[label] = replace(measure, embedding=chosen_embedding(options, trained)).measure(trained).values
    if out is not None:
        asked, out = out, _plot(out, measured, names, dataset.name, options.force)
    if options.json:
        about: dict[str, Any] = {
            "dataset": dataset.name,
            "split": options.split,
            "rows": min(options.rows, len(dataset)),
        }
        about |= {"seed": options.seed, "factors": names, "left_out": left_out}
        show_json({**about, "encoders": measured, "picture": None if out is None else str(out)})
        return 0
    for name, reason in left_out.items():
        say_prose(f"omitted {name}: {reason}")
    say()
    _print(measured, names)
    if out is not None:
        say()
        for line in (*moved(asked, out), str(out)):
            say(line)
    return 0


def trained_methods(options: Any, dataset: "Dataset", data: Any) -> "Iterator[tuple[str, Sequence[str], TrainedRun]]":
    """Label, description and method of each encoder and run, all on the same dataset with the same seed."""
    from setsup.experiments import load_trained

    for name in dict.fromkeys(options.encoder or ()):
        trained = opened_encoder(name, options, dataset, data)
        yield trained.name, [describe_encoder(trained)], trained
    for folder in dict.fromkeys(options.runs or ()):
        run = opened(folder, options.preset)
        trained = load_trained(run, root=options.root, device=options.device)
        trained.seed, trained.dataset = options.seed, dataset
        yield f"{folder}{' (shrunk by --smoke)' if run.preset.shrunk else ''}", [*describe_run(run)], trained


def _print(measured: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> None:
    """A line for each factor and encoder, after one of chance."""
    from setsup.experiments.encoders.knowledge import MEASURES

    rows = []
    for name in names:
        chance = next(iter(measured.values()))
        cells = [_number(chance.get(f"chance: {measure}: {name}")) for measure in MEASURES]
        rows.append([name, _CHANCE, *cells])
        for label, values in measured.items():
            rows.append(["", label, *(_number(values.get(f"{measure}: {name}")) for measure in MEASURES)])
    show_table(["factor", "encoder", *MEASURES], rows, right=MEASURES)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _plot(
    out: Path, measured: Mapping[str, Mapping[str, float]], names: Sequence[str], dataset: str, force: bool
) -> Path:
    from setsup.reports import bar_panels

    def of(values: Mapping[str, float], measure: str) -> dict[str, float]:
        heights = {name: values.get(f"{measure}: {name}", float("nan")) for name in names}
        if measure == "information":  # a negative lower bound says no more than 0
            heights = {name: max(height, 0.0) for name, height in heights.items()}
        return {name: height for name, height in heights.items() if isfinite(height)}

    series = measured.items()
    panels = {title: {label: of(values, key) for label, values in series} for key, title in _TITLES.items()}
    panels = {title: panel for title, panel in panels.items() if any(panel.values())}
    chance = next(iter(measured.values()))
    references = {title: of(chance, f"chance: {measure}") for measure, title in _TITLES.items() if title in panels}
    picture = bar_panels(
        panels,
        references=references,
        reference="chance: an uninformative embedding",
        title=f"Factors of {dataset} predicted from embeddings",
    )
    return write_image(picture, out, force=force)
