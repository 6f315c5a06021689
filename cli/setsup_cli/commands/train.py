"""``setsup train``: train a preset, with any of its settings changed, or go on where its runs were stopped."""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from tyro.conf import Positional

from setsup.errors import DataError, SetsupError, need
from setsup.files.expand_user import expanded
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import Json, MaybePath, MaybeText, Opening, Root
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.dataset_options import write_options
from setsup_cli.parsing.settings import changed, setting_fields, shown
from setsup_cli.parsing.source import check_root, read_source_options
from setsup_cli.parsing.usage import words_given
from setsup_cli.runs import CHANGED, number

if TYPE_CHECKING:
    from setsup.experiments import Preset, Run
    from setsup.experiments.run import Progress

__all__ = ["HELP", "Options", "asked", "run"]

MaybeNumbers = Union[None, tuple[int, ...]]  # noqa: UP007
MaybeLoggers = Union[None, tuple[Literal["tensorboard", "wandb"], ...]]  # noqa: UP007

HELP = """\
All settings of a preset are options: `setsup train abc/fig3a --help` explains them, and `setsup train abc/fig3a
--steps 100 --drawing.size 16` changes two. Ctrl-C stops after the step at work; the same command goes on from there."""

_NO_SETTINGS = ("name", "shows", "seeds", "evaluations", "shrunk", "digest")
_RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "SLURM_PROCID")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb, without the settings of a preset."""

    preset: Annotated[
        Positional[MaybeText],
        declared("[PRESET]", "A preset, or a file that holds some: my_method.py, my_method.py:NAME."),
    ] = None
    out: Annotated[
        MaybePath, declared("FOLDER", "Folder of the runs: that of seed N is FOLDER/seed-N.", "(default: runs/PRESET)")
    ] = None
    seeds: Annotated[MaybeNumbers, declared("N ...", "Seeds, one after the other.", "(default: 0)")] = None
    root: Root = None
    stand_in: Annotated[
        bool, declared(None, "Train on the data set that stands in for the published one; the results say so.")
    ] = False
    smoke: Annotated[
        bool, declared(None, "Shrink everything to seconds, to see that it runs: what it finds means nothing.")
    ] = False
    precision: Annotated[
        Literal["float32", "bf16"],
        declared("float32|bf16", "Of convolutions and products; weights stay float32.", "(default: float32)"),
    ] = "float32"
    devices: Annotated[
        int, declared("N", "GPUs, or processes where there is none; each has a draw a step.", "(default: 1)")
    ] = 1
    nodes: Annotated[int, declared("N", "Machines, of so many devices each.", "(default: 1)")] = 1
    accelerator: Annotated[
        Literal["auto", "cpu", "gpu"], declared("auto|cpu|gpu", "What trains.", "(default: auto)")
    ] = "auto"
    compile: Annotated[bool, declared(None, "Compile the networks with torch.compile.")] = False
    workers: Annotated[
        int | Literal["auto", "thread"],
        declared("auto|thread|N", "What prepares batches: a thread, or so many processes.", "(default: auto)"),
    ] = "auto"
    log: Annotated[
        MaybeLoggers,
        declared("tensorboard|wandb ...", "Where metrics go beside the run's folder."),
    ] = None
    allow_nonfinite: Annotated[
        bool,
        declared(None, "Train on where the loss or the weights are not finite; a run stops there otherwise."),
    ] = False
    option: Opening = None
    json: Json = False


def asked(words: Sequence[str]) -> tuple[type, str]:
    """Options of the preset that words name, and help; the verb's own and a list of the presets where none is named."""
    given = words_given(Options, words)
    if not given[""]:
        return Options, f"{HELP}\n\n{_listed()}"
    if not {"-h", "--help"} & set(words):
        need("train needs", "torch", "lightning")
    preset = _preset(given[""][0], "--smoke" in given)
    seeds = f"\nThe paper's numbers are taken over {preset.seeds} seeds." if preset.seeds > 1 else ""
    options = make_dataclass("Options", setting_fields(preset, _NO_SETTINGS), bases=(Options,), frozen=True)
    return options, f"{preset.name}: {preset.shows}.{seeds}"


def run(options: Any) -> int:
    """Train and print, or list the presets."""
    if options.preset is None:
        return _list(options.json)
    from setsup.experiments.loggers import need_logger
    from setsup.experiments.settings import put

    for name in options.log or ():
        need_logger(name)  # before torch is imported, and data are opened
    check_root(options.root)
    usual = _preset(options.preset, options.smoke)
    other = changed(options, usual, _NO_SETTINGS) | _opening(options, usual)
    preset = put(usual, other)
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
    """The setting of the preset that holds how its data set is opened, where that is asked for otherwise."""
    if not options.option:
        return {}
    if preset.data is None or options.stand_in:
        what = preset.name if preset.data is None else f"the stand-in of {preset.name}"
        raise SetsupError(f"--option is for published data sets; {what} opens none")
    from setsup.opening import KINDS, find_kind, path_options

    if (kind := find_kind(preset.data.name)) != "benchmark":
        raise SetsupError(f"--option is for benchmarks; {preset.data.name} is {KINDS[kind]}")
    given = read_source_options(options.option, preset.data.name)
    for name in given.keys() & path_options(preset.data.name):
        if isinstance(given[name], str | Path):  # the run goes on, and is opened, from other folders, too
            given[name] = type(given[name])(expanded(given[name]).absolute())
    asked = dict(preset.data.options) | given
    # sorted, since a run is the same in whatever order they were given
    return {} if asked == dict(preset.data.options) else {"data.options": tuple(sorted(asked.items()))}


def _preset(name: str, shrink: bool) -> "Preset":
    from setsup.experiments import find_preset, smoke

    return smoke(find_preset(name)) if shrink else find_preset(name)


def _speaks() -> bool:
    """Whether this process is the first of those that train together: the others print nothing."""
    return all(os.environ.get(name, "0") == "0" for name in _RANKS)


def _list(as_json: bool) -> int:
    if as_json:
        from setsup.experiments import presets

        show_json([{"preset": preset.name, "shows": preset.shows} for preset in presets().values()])
    else:
        say(f"{_listed()}\n\n{HELP}")
    return 0


def _listed() -> str:
    """Presets with a line each, a block for each paper."""
    from setsup.experiments import presets

    known = presets()
    width = max(map(len, known))
    papers: dict[str, list[str]] = {}
    for name, preset in known.items():
        papers.setdefault(name.partition("/")[0], []).append(f"  {name:<{width}}  {preset.shows}")
    return "\n\n".join("\n".join([f"{paper}:", *lines]) for paper, lines in papers.items())


def _what(options: Any, usual: "Preset", other: dict[str, Any]) -> Iterator[str]:
    """Say what is trained on what."""
    from setsup.experiments.settings import flat

    yield f"{usual.name}: {usual.shows}"
    if usual.shrunk:
        yield "shrunk by --smoke, to see that it runs: what it finds means nothing"
    if usual.data is None:
        return
    name, split = other.get("data.name", usual.data.name), other.get("data.split", usual.data.split)
    where = other.get("data.where", usual.data.where)
    stands = f"{other.get('data.stand_in', usual.data.stand_in)}, a STAND-IN for {name}"
    parts = [stands if options.stand_in else name, *([f"split {split}"] if split else []), *([where] if where else [])]
    yield f"data: {', '.join(parts)}"
    if other:
        before = flat(usual)
        words = [f"{key} {_shown(key, value)} (not {_shown(key, before[key])})" for key, value in other.items()]
        yield f"changed: {', '.join(words)}"
    yield f"{other.get('steps', usual.steps):,} steps, {options.precision}, {_devices(options)}"


def _shown(key: str, value: Any) -> str:
    return shown(write_options(dict(value)) if key == "data.options" else value)


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
    """Train one seed, and say where it begins and what came of it."""
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

    how = RunConfig(
        **{field.name: value for field in fields(RunConfig) if (value := getattr(options, field.name)) is not None}
    )
    folder = _folder(options, preset) / f"seed-{seed}"
    try:
        run = train(preset, folder, seed=seed, root=options.root, stand_in=options.stand_in, how=how, begun=begin)
    except DataError as error:
        other = None if begun or options.stand_in or preset.data is None else preset.data.stand_in
        if other is None:
            raise
        raise DataError(f"{error}; or --stand-in trains on {other}") from None
    except KeyboardInterrupt:
        if not begun:
            raise
        at = f"at step {begun[0][0].progress().steps:,} of {preset.steps:,}"
        raise KeyboardInterrupt(f"{at}; the same command goes on from there") from None
    found = _found(options, run, begun[0][1])
    if told:
        for line in _words(found):
            say(f"  {line}")
    return found


def _folder(options: Any, preset: "Preset") -> Path:
    if options.out is not None:
        return expanded(options.out)
    return Path("runs", f"{preset.name}{'-stand-in' * options.stand_in}{'-smoke' * options.smoke}")


def _place(run: "Run", before: "Progress") -> str:
    if run.preset.learning is None:
        return f"seed {run.seed}: {run.folder}: nothing is to be trained"
    if before.steps >= run.preset.steps:
        return f"seed {run.seed}: {run.folder} is finished"
    return f"seed {run.seed}: {run.folder}" + (f", going on from step {before.steps:,}" if before.steps else "")


def _found(options: Any, run: "Run", before: "Progress") -> dict[str, Any]:
    """What is said of a trained run, for machines."""
    now = run.progress()
    seconds, images = now.seconds - before.seconds, now.images - before.images
    words = ["setsup", "eval" if run.preset.evaluations else "embed", str(run.folder)]
    if ".py" in options.preset:
        words += ["--preset", options.preset]
    return {
        "folder": str(run.folder),
        "seed": run.seed,
        "stand_in": run.stand_in,
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
