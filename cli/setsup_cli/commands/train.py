"""``setsup train``: trains a preset, with any of its settings changed, and resumes its runs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from cyclopts import Parameter

from setsup.errors import SetsupError, require_modules
from setsup.files.expand_user import expanded
from setsup_cli.output import say, show_json, write
from setsup_cli.parsing.arguments import Common, DatasetOptions, Image, Kinds, Root, flag
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.parser import Subcommand, parse_known
from setsup_cli.parsing.settings import Setting, explain_marks, setting_fields, short_fields, typed_settings
from setsup_cli.training.describing import is_paper, list_names, list_paper, speaks
from setsup_cli.training.running import check_points, plan_points, train_points
from setsup_cli.training.sweep import read_points
from setsup_cli.training.train_args import NO_SETTINGS, Asked, find, read_asked, read_file

if TYPE_CHECKING:
    from setsup.experiments import Preset, RunConfig
    from setsup.experiments.runs.config_file import TrainingFile

__all__ = ["HELP", "Options", "resolve_options", "run", "short_options"]

HELP = """\
All settings of a preset are options: `setsup train abc/fig3a --help` lists them, and `setsup train abc/fig3a --steps
100 --sampler.size 16` changes two of them. Ctrl-C stops after the current step; run the same command to resume."""


_ALIASES = {"steps": "-n"}
_LISTED = "Number of presets by paper and group; `setsup train cmc` lists the presets of one paper."
_OUTPUT = ("--json", "--quiet", "-q", "--verbose", "-v")


def _presets(context: object) -> dict[str, str]:
    """Names for the shell, with what each shows."""
    from setsup.experiments import presets

    return {name: preset.shows for name, preset in presets().items()}


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the subcommand, without the settings of a preset."""

    preset: Annotated[
        str | None,
        declared(
            "[PRESET]", "Preset, or file of presets, such as my_method.py or my_method.py:NAME.", completer=_presets
        ),
    ] = field(default=None, kw_only=False)
    out: Annotated[
        Path | None,
        declared("FOLDER", "Output folder; the run of seed N is written to FOLDER/seed-N.", "runs/PRESET", alias="-o"),
    ] = None
    seeds: Annotated[
        tuple[int, ...] | None,
        declared("N ...", "Random seeds, with one run per seed.", "0", name="--seed", alias="--seeds"),
    ] = None
    config: Annotated[
        Path | None,
        declared("FILE", "YAML file of settings, from --print-config or a run; other options override it."),
    ] = None
    print_config: Annotated[bool, flag("Print all settings as a file for --config, without training.")] = False
    dry_run: Annotated[bool, flag("Check everything, print what would be trained, and write nothing.")] = False
    sweep: Annotated[
        tuple[str, ...] | None,
        declared(
            "SETTING=VALUE,... ...",
            "Train with each of these values; several sweeps form a grid, and each point has its own folder in the "
            "output folder.",
            allow_repeating=True,
        ),
    ] = None
    parallel: Annotated[
        int | None,
        declared("N", "Number of runs to train in parallel, each in its own process.", "1, or one per GPU"),
    ] = None
    root: Root = None
    substitute: Annotated[
        bool,
        flag("Train on the substitute for the published dataset; reports label these results."),
    ] = False
    smoke: Annotated[
        bool, flag("Shrink the training to seconds to test that it runs; the results are meaningless.")
    ] = False
    precision: Annotated[
        Literal["float32", "bf16", "fp16"],
        declared("float32|bf16|fp16", "Precision of convolutions and matrix products; weights are float32."),
    ] = "float32"
    devices: Annotated[
        int, declared("N", "Number of GPUs, or of CPU processes if there is no GPU; each gets its own draws.")
    ] = 1
    nodes: Annotated[int, declared("N", "Number of machines.")] = 1
    accelerator: Annotated[Literal["auto", "cpu", "gpu"], declared("auto|cpu|gpu", "Accelerator.")] = "auto"
    strategy: Annotated[
        Literal["auto", "ddp", "ddp-unused"],
        declared("auto|ddp|ddp-unused", "Distributed strategy; ddp-unused allows parameters without a gradient."),
    ] = "auto"
    sync_batchnorm: Annotated[bool, flag("Compute batch normalisation over all GPUs.")] = False
    compile: Annotated[bool, flag("Compile the networks with torch.compile.")] = False
    workers: Annotated[
        int | Literal["auto", "thread"],
        declared("auto|thread|N", "Workers that load batches: a thread, or N processes."),
    ] = "auto"
    log: Annotated[
        tuple[Literal["tensorboard", "wandb", "mlflow"], ...] | None,
        declared(
            "tensorboard|wandb|mlflow ...",
            "Also log metrics to these services. Metrics are always written to the run's folder.",
        ),
    ] = None
    profiler: Annotated[
        Literal["simple", "advanced", "pytorch"] | None,
        declared("simple|advanced|pytorch", "Profile the training, and write the profile to the run's folder."),
    ] = None
    allow_nonfinite: Annotated[
        bool,
        flag("Continue when the loss or the weights are not finite; by default the run stops."),
    ] = False
    checkpoint_minutes: Annotated[
        float | None,
        declared("N", "Also write a checkpoint when N minutes have passed, for a machine that may be taken away."),
    ] = None
    keep_every: Annotated[int | None, declared("N", "Keep a checkpoint every N steps, such as step-000500.ckpt.")] = (
        None
    )
    keep_best: Annotated[
        str | None,
        declared(
            "METRIC|METRIC:max",
            "Keep the checkpoint with the lowest value of a metric (:max, the highest) as best.ckpt; a metric that is "
            "recorded at every step is averaged over the steps since the previous checkpoint.",
        ),
    ] = None
    option: DatasetOptions = None
    image: Image = None
    kinds: Kinds = None
    file: ClassVar["TrainingFile | None"] = None
    """What --config names, whose settings are the defaults of the options."""
    usual_config: ClassVar["RunConfig | None"] = None
    """How it is run by that file."""
    named: ClassVar[str | None] = None
    """Preset that is named besides the file."""
    typed: ClassVar[frozenset[str]] = frozenset()
    """Dotted names of the settings that are given."""


def resolve_options(subcommand: Subcommand, words: Sequence[str]) -> Subcommand:
    """Add the settings of the preset that words name, or a list of the presets."""
    given = parse_known(subcommand, words)
    if given.preset is None and given.config is None:
        return subcommand._replace(help=f"{HELP}\n\n{_LISTED}\n\n{list_names(_presets(None))}")
    if given.config is None and {*words} <= {given.preset, *_OUTPUT} and is_paper(given.preset, _presets(None)):
        if given.preset not in _presets(None) or _is_without_data(find(given.preset, shrink=False)):
            return subcommand  # its presets are listed
    if not {"-h", "--help"} & set(words):
        require_modules("train needs", "torch", "lightning")
    namespace: dict[str, Any] = {}
    usual: list[Any] = []
    if given.config is None:
        preset = find(given.preset, given.smoke)
    else:
        named = given.preset if words[0] == given.preset else None  # further words may be values of settings
        file, config = read_file(given.config, named, given.smoke)
        namespace, preset = {"file": file, "usual_config": config, "named": named}, file.preset
        usual = _defaults(file, config)
    seeds = f"\nResults are reported over {preset.seeds} seeds." if preset.seeds > 1 else ""
    declared = [*short_options(preset), *setting_fields(preset, NO_SETTINGS, aliases=_ALIASES)]
    marks = explain_marks(declared)
    options = make_dataclass(
        "Options",
        [*usual, *declared],
        bases=(Options,),
        frozen=True,
        kw_only=True,
        namespace=namespace | {"typed": typed_settings(words)},
    )
    about = "\n\n".join(filter(None, [f"{preset.name}: {preset.shows}.{seeds}", marks]))
    return Subcommand("train", options, about, given.preset or "")


def _is_without_data(preset: "Preset") -> bool:
    """Whether a preset is for data of the user's own, and trains nothing without their name."""
    from setsup.experiments.data import YOURS

    return preset.data is not None and preset.data.name == YOURS


def short_options(preset: "Preset") -> list["Setting"]:
    """Options for the short names of a preset's settings; SetsupError for one that another option has."""
    names = [member.name for member in (*fields(Options), *fields(preset))]
    declared = [note for member in fields(Options) for note in get_args(member.type) if isinstance(note, Parameter)]
    words = [word for note in declared for word in (*(note.name or ()), *(note.alias or ()))]
    words += _ALIASES.values()
    taken = {*names, "help", *(word.lstrip("-").replace("-", "_") for word in words)}
    return short_fields(preset, NO_SETTINGS, taken)


def _defaults(file: "TrainingFile", config: "RunConfig") -> list[tuple[str, Any, Any]]:
    """Options with the values of a file as defaults, as :func:`dataclasses.make_dataclass` takes them."""
    values = {member.name: getattr(config, member.name) for member in fields(config)}
    values |= {"seeds": file.seeds, "root": file.root, "substitute": file.substitute, "smoke": file.smoke}
    return [
        (member.name, member.type, field(default=values[member.name]))
        for member in fields(Options)
        if values.get(member.name)
    ]


def run(options: Any) -> int:
    """Train and print, or list the presets."""
    if type(options) is Options:
        return _list(options.preset, options.json)
    from setsup.experiments.training.monitoring.loggers import need_logger

    for name in options.log or ():
        need_logger(name)  # before torch is imported, and data are opened
    asked = read_asked(options)
    if options.print_config:
        return _print_config(asked, options)
    points = read_points(asked, options)
    check_points(points, asked.seeds[0])
    try:
        if options.dry_run:
            return plan_points(asked, points, options.json)
        return train_points(asked, points, options)
    except KeyboardInterrupt:
        if speaks():
            raise
        return 0  # Lightning kills the run where one of its processes fails


def _list(paper: str | None, as_json: bool) -> int:
    """List the papers, or the presets of one; for machines all presets."""
    from setsup.experiments import presets

    shown = {name: preset.shows for name, preset in presets().items()}
    if as_json:
        names = [name for name in shown if paper in (None, name.partition("/")[0])]
        show_json([{"preset": name, "shows": shown[name]} for name in names])
    elif paper is None:
        say(f"{list_names(shown)}\n\n{_LISTED}\n\n{HELP}")
    else:
        say(list_paper(paper, shown))
    return 0


def _print_config(asked: Asked, options: Any) -> int:
    from setsup.experiments.runs.config_file import config_content, format_config
    from setsup.experiments.settings import flatten

    if options.sweep:
        raise SetsupError("--print-config prints the settings of a single run; omit --sweep")
    root = None if asked.root is None else str(expanded(asked.root).absolute())
    content = config_content(
        asked.preset,
        flatten(asked.preset),
        seeds=asked.seeds,
        root=root,
        substitute=asked.substitute,
        config=asdict(asked.config),
    )
    if options.json:
        show_json(content)
    else:
        write(format_config(content))
    return 0
