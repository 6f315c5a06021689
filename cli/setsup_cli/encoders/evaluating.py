"""``setsup eval --encoder``: standard evaluations of a frozen encoder on any dataset."""

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from setsup.errors import require_modules
from setsup.files.expand_user import expanded
from setsup_cli.encoders.options import (
    EncoderOptions,
    check_named,
    describe_encoder,
    open_data,
    opened_encoder,
    results_folder,
)
from setsup_cli.output import say, say_prose, show_json
from setsup_cli.parsing.arguments import option
from setsup_cli.parsing.parser import Subcommand, parse_known
from setsup_cli.parsing.settings import nested, typed_settings
from setsup_cli.results import announced, say_results, with_settings
from setsup_cli.suggestions import advise_command

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.experiments import Data, Evaluation

__all__ = ["ByEncoder", "resolve_options", "run"]

HELP = """\
The encoder is evaluated with probes, retrieval, principal components and information estimates. Results are written to
evaluation.json in the output folder, and figures to the same folder. Settings of the evaluations are options."""

_MORE = "`setsup eval --encoder ENCODER DATASET --help` lists them."
_SUMMARY = "evaluate a frozen encoder on a dataset"
_ROWS = 10_000


@dataclass(frozen=True, kw_only=True)
class ByEncoder(EncoderOptions):
    """Options of the subcommand with ``--encoder``, without the settings of evaluations."""

    factors: Annotated[
        tuple[str, ...] | None,
        option("NAME ...", "Factors to measure.", "all varying factors with at least 5 rows per level"),
    ] = None
    seed: Annotated[int, option("N", "Random seed for drawing rows, for estimators and for random weights.")] = 0
    only: Annotated[tuple[str, ...] | None, option("NAME ...", "Run only these evaluations.")] = None
    out: Annotated[
        Path | None,
        option("FOLDER", "Output folder.", "encoders/ENCODER/DATASET or encoders/ENCODER/DATASET-SPLIT", alias="-o"),
    ] = None
    typed: ClassVar[frozenset[str]] = frozenset()
    opened: "ClassVar[_Opened | None]" = None


@dataclass(frozen=True, slots=True)
class _Opened:
    """The dataset, and its evaluations before settings are changed."""

    dataset: "Dataset"
    data: "Data"
    evaluations: "dict[str, Evaluation]"
    left_out: dict[str, str]


def resolve_options(words: Sequence[str]) -> Subcommand:
    """Options with the settings of the evaluations of the dataset that words name."""
    require_modules("eval needs", "torch", "lightning")
    subcommand = Subcommand("eval", ByEncoder, HELP, summary=_SUMMARY)
    given = parse_known(subcommand, words)
    if given.dataset is None and given.table is None and {"-h", "--help"} & set(words):
        return subcommand._replace(help=f"{HELP} {_MORE}")
    from setsup.experiments.encoders import standard_evaluations, suitable_factors
    from setsup.samplers import EpochSampler

    dataset, data = open_data(given)
    check_named(given.factors, dataset, given)
    table = dataset.factors
    rows = EpochSampler(table, min(_ROWS, len(table)), epochs=1, seed=given.seed)[0].indices[0]
    names, left_out = suitable_factors(table, rows, given.factors or ())
    evaluations = standard_evaluations(table, names, _ROWS)
    settings = [field for name, evaluation in evaluations.items() for field in nested(name, evaluation)]
    namespace = {"typed": typed_settings(words), "opened": _Opened(dataset, data, evaluations, left_out)}
    made = make_dataclass("Options", settings, bases=(ByEncoder,), frozen=True, kw_only=True, namespace=namespace)
    return subcommand._replace(options=made)


def run(options: Any) -> int:
    """Measure, write, print."""
    from setsup.experiments.encoders import evaluate_encoder
    from setsup.experiments.runs.results import EVALUATION, read_results

    source: _Opened = options.opened
    dataset = source.dataset
    folder = expanded(options.out or results_folder(options.encoder, dataset, options.split))
    trained = opened_encoder(options.encoder, options, dataset, source.data, folder)
    evaluations = with_settings(source.evaluations, options)
    if not options.json:
        say(describe_encoder(trained))
        say(f"{dataset.name}{f', split {options.split}' if options.split else ''}: {len(dataset):,} rows")
        for name, reason in source.left_out.items():
            say_prose(f"omitted {name}: {reason}")
    names = options.only or tuple(evaluations)
    about = {"source": source.data.name, "split": options.split}
    on_start = None if options.json else announced(names)["on_start"]
    measured = evaluate_encoder(trained, evaluations, about=about, only=options.only or (), on_start=on_start)
    results = read_results(folder / EVALUATION)
    kept = {name: results[name] for name in measured}
    if options.json:
        encoder: Any = trained.method
        show_json({"folder": str(folder), **about, **encoder.about, "left_out": source.left_out, "evaluations": kept})
    else:
        say_results(folder / EVALUATION, kept)
        if options.table is None:
            words = [options.dataset, "--encoder", options.encoder, "--encoder", "pixels", "--split", options.split]
            advise_command(options, ["setsup", "report", "factors", *(words if options.split else words[:-2])])
    return 0
