"""``setsup eval``: runs a paper's evaluations on trained methods, and standard ones on any encoder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from setsup.errors import SetsupError, require_modules
from setsup_cli.encoders import evaluating
from setsup_cli.encoders.options import MODE, names_encoder
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import Checkpoint, Common, Device, Root, flag, option
from setsup_cli.parsing.parser import Subcommand, parse_known
from setsup_cli.parsing.settings import nested, typed_settings
from setsup_cli.parsing.source import check_root
from setsup_cli.results import announced, say_results, with_settings
from setsup_cli.runs import check_device, describe_run, evaluated, opened
from setsup_cli.suggestions import advise_command

if TYPE_CHECKING:
    from setsup.experiments import Evaluation, Preset, Run

__all__ = ["HELP", "Options", "resolve_options", "run"]

HELP = """\
Results are written to RUN/evaluation.json (RUN/evaluation-best.json with --checkpoint best), and figures to the same
folder. Settings of the evaluations are options: `setsup eval RUN --help` lists them, and `setsup eval RUN
--information.steps 5000` changes one. Existing results for the same weights and settings are printed again; an
interrupted evaluation resumes.

`setsup eval --encoder ENCODER DATASET` evaluates any frozen encoder with probes, retrieval, principal components and
information estimates."""


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the subcommand, without the settings of evaluations."""

    runs: Annotated[tuple[Path, ...] | None, option("RUNS ...", "Folders of runs of `setsup train`.")] = field(
        default=None, kw_only=False
    )
    preset: Annotated[
        str | None,
        option(
            "NAME",
            "Preset whose evaluations are run; its training settings must equal those of the runs. If the runs used a "
            "preset of your own and you moved its file, pass the new path of that file.",
        ),
    ] = None
    only: Annotated[tuple[str, ...] | None, option("NAME ...", "Run only these evaluations.")] = None
    checkpoint: Checkpoint = "last"
    again: Annotated[bool, flag("Repeat evaluations that have results for the same weights.")] = False
    root: Root = None
    device: Device = None
    encoder: MODE = None
    typed: ClassVar[frozenset[str]] = frozenset()
    """Settings that were given, such as ``information.steps``, even with their default values."""


def resolve_options(subcommand: Subcommand, words: Sequence[str]) -> Subcommand:
    """Add the settings of the evaluations of the runs, or the encoder, that words name."""
    if names_encoder(words):
        return evaluating.resolve_options(words)
    given = parse_known(subcommand, words)
    if not given.runs:
        return subcommand
    require_modules("eval needs", "torch", "lightning")
    evaluations = _evaluations([opened(folder, given.preset, given.checkpoint) for folder in given.runs], given.preset)
    settings = [field for name, evaluation in evaluations.items() for field in nested(name, evaluation)]
    namespace = {"typed": typed_settings(words)}
    made = make_dataclass("Options", settings, bases=(Options,), frozen=True, kw_only=True, namespace=namespace)
    return Subcommand("eval", made, HELP, str(given.runs[0]))


def run(options: Any) -> int:
    """Measure and print."""
    if isinstance(options, evaluating.ByEncoder):
        return evaluating.run(options)
    from setsup.experiments import evaluate
    from setsup.experiments.evaluating import check_evaluations

    if not options.runs:
        raise SetsupError("`setsup eval` requires the argument RUNS: folders of runs of `setsup train`")
    check_root(options.root)
    check_device(options.device)
    runs = [opened(folder, options.preset, options.checkpoint) for folder in options.runs]
    presets = [_changed(evaluated(opened_run, options.preset), options) for opened_run in runs]
    for opened_run, preset in zip(runs, presets, strict=True):
        check_evaluations(opened_run, preset, options.only or (), options.root)
    measured = []
    for opened_run, preset in zip(runs, presets, strict=True):
        if not options.json:
            for line in (*describe_run(opened_run), *_settings_kept(opened_run)):
                say(line)
        said: dict[str, Any] = {} if options.json else announced(options.only or list(preset.evaluations))
        how = {"only": options.only or (), "root": options.root, "device": options.device, "again": options.again}
        names = list(evaluate(opened_run, preset, **how, **said))
        kept = {name: opened_run.results()[name] for name in names}
        measured.append({**_about(opened_run), "preset": preset.name, "evaluations": kept})
        if not options.json:
            say_results(opened_run.results_path, kept)
    if options.json:
        show_json(measured)
    else:
        advise_command(options, _next(presets[0], options))
    return 0


def _next(preset: "Preset", options: Options) -> list[object]:
    """Words of the command that compares the results with the paper's, or embeds where no paper has them."""
    from setsup.experiments import presets

    if preset.name in presets():
        return ["setsup", "report", preset.name, *(options.runs or ())]
    return ["setsup", "embed", *(options.runs or ())[:1]]


def _settings_kept(run: "Run") -> Iterator[str]:
    """A line with the settings of the run that differ from the file of its preset, which has changed since."""
    from setsup.experiments import find_preset, smoke

    if not run.file_changed:
        return
    now = find_preset(f"{run.preset.file}:{run.preset.name}")
    differing = run.difference(smoke(now) if run.preset.shrunk else now)
    listed = ", ".join(f"{setting} {has!r} (the file has {had!r} now)" for setting, (had, has) in differing.items())
    yield f"settings are the run's{f': {listed}' if listed else ', and those of the file'}"


def _evaluations(runs: "Sequence[Run]", name: str | None) -> "dict[str, Evaluation]":
    """All evaluations of some runs, with the settings of the first run that has them."""
    evaluations: dict[str, Evaluation] = {}
    for run in runs:
        evaluations = {**evaluated(run, name).evaluations, **evaluations}
    return evaluations


def _changed(preset: "Preset", options: Any) -> "Preset":
    """The preset with the given settings of its evaluations; other settings may differ between runs."""
    return replace(preset, evaluations=with_settings(preset.evaluations, options))


def _about(run: "Run") -> dict[str, Any]:
    return {
        "folder": str(run.folder),
        "seed": run.seed,
        "checkpoint": run.chosen or "last",
        "substitute": run.substitute,
        "file_changed": run.file_changed,
        "smoke": run.preset.shrunk,
        "steps": run.progress().steps,
        "finished": run.finished,
    }
