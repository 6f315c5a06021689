"""``setsup train``: trains a preset, with any of its settings changed, and resumes its runs."""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from setsup.errors import DataError, SetsupError, need
from setsup.files.expand_user import expanded
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import Common, DatasetOptions, Root, flag
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.parser import Subcommand, parse_known
from setsup_cli.parsing.settings import changed, setting_fields
from setsup_cli.parsing.source import check_root, read_source_options
from setsup_cli.parsing.values import write_options, write_value
from setsup_cli.runs import CHANGED, number

if TYPE_CHECKING:
    from setsup.experiments import Preset, Run
    from setsup.experiments.run import Progress

__all__ = ["HELP", "Options", "resolve_options", "run"]

HELP = """\
All settings of a preset are options: `setsup train abc/fig3a --help` lists them, and `setsup train abc/fig3a --steps
100 --sampler.size 16` changes two. Ctrl-C stops after the current step; run the same command to resume."""

_NO_SETTINGS = ("name", "shows", "seeds", "evaluations", "shrunk", "digest")
_RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "SLURM_PROCID")


def _presets(context: object) -> Iterable[str]:
    from setsup.experiments import presets

    return presets()


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the subcommand, without the settings of a preset."""

    preset: Annotated[
        str | None,
        declared("[PRESET]", "A preset, or a file of presets: my_method.py, my_method.py:NAME.", completer=_presets),
    ] = field(default=None, kw_only=False)
    out: Annotated[
        Path | None, declared("FOLDER", "Folder of the runs; seed N is written to FOLDER/seed-N.", "runs/PRESET")
    ] = None
    seeds: Annotated[tuple[int, ...] | None, declared("N ...", "Random seeds, trained in sequence.", "0")] = None
    root: Root = None
    substitute: Annotated[bool, flag("Train on the substitute of the published dataset; the results say so.")] = False
    smoke: Annotated[bool, flag("Shrink the training to seconds, to test that it runs; its results mean nothing.")] = (
        False
    )
    precision: Annotated[
        Literal["float32", "bf16", "fp16"],
        declared("float32|bf16|fp16", "Precision of convolutions and products; weights are float32."),
    ] = "float32"
    devices: Annotated[int, declared("N", "Number of GPUs, or of processes without a GPU; each has its own draws.")] = 1
    nodes: Annotated[int, declared("N", "Number of machines.")] = 1
    accelerator: Annotated[Literal["auto", "cpu", "gpu"], declared("auto|cpu|gpu", "Accelerator.")] = "auto"
    strategy: Annotated[
        Literal["auto", "ddp", "ddp-unused"],
        declared("auto|ddp|ddp-unused", "How devices train together; ddp-unused allows parameters without a gradient."),
    ] = "auto"
    sync_batchnorm: Annotated[bool, flag("Normalise batches over all GPUs together.")] = False
    compile: Annotated[bool, flag("Compile the networks with torch.compile.")] = False
    workers: Annotated[
        int | Literal["auto", "thread"],
        declared("auto|thread|N", "Workers that load batches: a thread, or N processes."),
    ] = "auto"
    log: Annotated[
        tuple[Literal["tensorboard", "wandb", "mlflow"], ...] | None,
        declared("tensorboard|wandb|mlflow ...", "Loggers of metrics, in addition to the run's folder."),
    ] = None
    profiler: Annotated[
        Literal["simple", "advanced", "pytorch"] | None,
        declared("simple|advanced|pytorch", "Profile the training into the run's folder."),
    ] = None
    allow_nonfinite: Annotated[
        bool,
        flag("Continue when the loss or the weights are not finite; by default the run stops."),
    ] = False
    option: DatasetOptions = None


def resolve_options(subcommand: Subcommand, words: Sequence[str]) -> Subcommand:
    """Add the settings of the preset that words name, or a list of the presets."""
    given = parse_known(subcommand, words)
    if given.preset is None:
        return subcommand._replace(help=f"{HELP}\n\n{_list_presets()}")
    if not {"-h", "--help"} & set(words):
        need("train needs", "torch", "lightning")
    preset = _preset(given.preset, given.smoke)
    seeds = f"\nThe paper's numbers are taken over {preset.seeds} seeds." if preset.seeds > 1 else ""
    options = make_dataclass(
        "Options", setting_fields(preset, _NO_SETTINGS), bases=(Options,), frozen=True, kw_only=True
    )
    return Subcommand("train", options, f"{preset.name}: {preset.shows}.{seeds}", given.preset)


def run(options: Any) -> int:
    """Train and print, or list the presets."""
    if options.preset is None:
        return _list(options.json)
    from setsup.experiments.settings import put
    from setsup.experiments.training.loggers import need_logger

    for name in options.log or ():
        need_logger(name)  # before torch is imported, and data are opened
    check_root(options.root)
    usual = _preset(options.preset, options.smoke)
    other = changed(options, usual, _NO_SETTINGS) | _opening(options, usual)
    preset = put(usual, other)
    _check_validation(preset, other)
    found: list[dict[str, Any]] = []
    try:
        for seed in dict.fromkeys(options.seeds or (0,)):
            heading = [] if found else [*_what(options, usual, other), ""]
            found.append(_trained(options, preset, seed, heading))
    except KeyboardInterrupt:
        if _speaks():
            raise
        return 0  # Lightning kills the run where one of its processes fails
    if options.json and _speaks():
        show_json({"preset": preset.name, "shows": preset.shows, "changed": other, "runs": found})
    return 0


def _opening(options: Any, preset: "Preset") -> dict[str, Any]:
    """The setting of the preset with its dataset options, if other ones are given."""
    if not options.option:
        return {}
    if preset.data is None or options.substitute:
        what = preset.name if preset.data is None else f"the substitute of {preset.name}"
        raise SetsupError(f"--option is for benchmarks; {what} has no options")
    from setsup.opening import KINDS, find_kind, path_options

    if (kind := find_kind(preset.data.name)) != "benchmark":
        raise SetsupError(f"--option is for benchmarks; {preset.data.name} is {KINDS[kind]}")
    given = read_source_options(options.option, preset.data.name)
    for name in given.keys() & path_options(preset.data.name):
        if isinstance(given[name], str | Path):  # the run may be resumed from another folder
            given[name] = type(given[name])(expanded(given[name]).absolute())
    asked = dict(preset.data.options) | given
    # sorted, since their order does not matter
    return {} if asked == dict(preset.data.options) else {"data.options": tuple(sorted(asked.items()))}


def _check_validation(preset: "Preset", other: dict[str, Any]) -> None:
    """Refuse settings of a validation that never takes place."""
    given = [name for name in other if name.startswith("validation.") and name != "validation.every"]
    if given and not preset.validation.every and "validation.every" not in other:
        raise SetsupError(
            f"--{given[0]} has no effect without --validation.every N, the steps from one validation to the next"
        )


def _preset(name: str, shrink: bool) -> "Preset":
    from setsup.experiments import find_preset, smoke

    return smoke(find_preset(name)) if shrink else find_preset(name)


def _speaks() -> bool:
    """Whether this process is the first of a distributed training: the others print nothing."""
    return all(os.environ.get(name, "0") == "0" for name in _RANKS)


def _list(as_json: bool) -> int:
    if as_json:
        from setsup.experiments import presets

        show_json([{"preset": preset.name, "shows": preset.shows} for preset in presets().values()])
    else:
        say(f"{_list_presets()}\n\n{HELP}")
    return 0


def _list_presets() -> str:
    """Presets with a line each, a block for each paper."""
    from setsup.experiments import presets

    known = presets()
    width = max(map(len, known))
    papers: dict[str, list[str]] = {}
    for name, preset in known.items():
        papers.setdefault(name.partition("/")[0], []).append(f"  {name:<{width}}  {preset.shows}")
    return "\n\n".join("\n".join([f"{paper}:", *lines]) for paper, lines in papers.items())


def _what(options: Any, usual: "Preset", other: dict[str, Any]) -> Iterator[str]:
    """Lines with the preset, the dataset and the changed settings."""
    from setsup.experiments.settings import flatten

    yield f"{usual.name}: {usual.shows}"
    if usual.shrunk:
        yield "shrunk by --smoke, to test that it runs; its results mean nothing"
    if usual.data is None:
        return
    name, split = other.get("data.name", usual.data.name), other.get("data.split", usual.data.split)
    where = other.get("data.where", usual.data.where)
    stands = f"{other.get('data.substitute', usual.data.substitute)}, a SUBSTITUTE for {name}"
    parts = [
        stands if options.substitute else name,
        *([f"split {split}"] if split else []),
        *([where] if where else []),
    ]
    yield f"data: {', '.join(parts)}"
    if other:
        before = flatten(usual)
        words = [f"{key} {_shown(key, value)} (not {_shown(key, before[key])})" for key, value in other.items()]
        yield f"changed: {', '.join(words)}"
    yield f"{other.get('steps', usual.steps):,} steps, {options.precision}, {_devices(options)}"


def _shown(key: str, value: Any) -> str:
    return write_value(write_options(dict(value)) if key == "data.options" else value)


def _devices(options: Any) -> str:
    import torch

    name = "CPU"
    if options.accelerator != "cpu" and torch.cuda.is_available():
        name = torch.cuda.get_device_name()
    elif options.accelerator != "cpu" and torch.backends.mps.is_available():
        name = "GPU of this Mac"
    many = f"{options.devices} × {name}" if options.devices > 1 else name
    return f"{many} on each of {options.nodes} machines" if options.nodes > 1 else many


def _trained(options: Any, preset: "Preset", seed: int, heading: Sequence[str]) -> dict[str, Any]:
    """Train one seed, and print its folder and results."""
    from setsup.experiments import RunConfig, train

    told = _speaks() and not options.json
    begun: list[tuple[Run, Progress]] = []

    def begin(run: "Run") -> None:
        begun.append((run, run.progress()))  # before it is trained
        if told:
            for line in (*heading, _place(*begun[0])):
                say(line)
            if run.file_changed:
                say(f"FILE CHANGED: {CHANGED}")

    config = RunConfig(
        **{field.name: value for field in fields(RunConfig) if (value := getattr(options, field.name)) is not None}
    )
    from setsup.experiments.run_folder import default_folder

    usual = default_folder(preset.name, seed, options.substitute, options.smoke)
    folder = Path("runs", usual) if options.out is None else expanded(options.out) / usual.name
    try:
        run = train(
            preset, folder, seed=seed, root=options.root, substitute=options.substitute, config=config, on_start=begin
        )
    except DataError as error:
        other = None if begun or options.substitute or preset.data is None else preset.data.substitute
        if other is None:
            raise
        raise DataError(f"{error}; or --substitute trains on {other}") from None
    except KeyboardInterrupt:
        if not begun:
            raise
        at = f"at step {begun[0][0].progress().steps:,} of {preset.steps:,}"
        raise KeyboardInterrupt(f"{at}; run the same command to resume") from None
    found = _found(options, run, begun[0][1])
    if told:
        for line in _words(found):
            say(f"  {line}")
    return found


def _place(run: "Run", before: "Progress") -> str:
    if run.preset.method is None:
        return f"seed {run.seed}: {run.folder}: nothing to train"
    if before.steps >= run.preset.steps:
        return f"seed {run.seed}: {run.folder} is finished"
    return f"seed {run.seed}: {run.folder}" + (f", resuming from step {before.steps:,}" if before.steps else "")


def _found(options: Any, run: "Run", before: "Progress") -> dict[str, Any]:
    """The results of a run, for JSON."""
    now = run.progress()
    seconds, images = now.seconds - before.seconds, now.images - before.images
    words = ["setsup", "eval" if run.preset.evaluations else "embed", str(run.folder)]
    if ".py" in options.preset:
        words += ["--preset", options.preset]
    return {
        "folder": str(run.folder),
        "seed": run.seed,
        "substitute": run.substitute,
        "file_changed": run.file_changed,
        "steps": now.steps,
        "from_step": before.steps,
        "seconds": now.seconds,
        "images_per_second": images / seconds if seconds > 0 else None,
        "metrics": run.metrics(),
        "next": shlex.join(words),
    }


def _words(found: dict[str, Any]) -> Iterator[str]:
    if found["steps"]:
        rate = found["images_per_second"]
        seconds = found["seconds"]
        parts = [f"{found['steps']:,} steps", f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.1f} s"]
        parts += [f"{rate:,.0f} images/s"] if rate is not None else []
        yield ", ".join([*parts, *(f"{name} {number(value)}" for name, value in found["metrics"].items())])
    yield found["next"]
