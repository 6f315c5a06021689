"""Lines and JSON about presets, trainings that begin, and their results."""

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from setsup_cli.parsing.settings import short_names
from setsup_cli.parsing.values import write_options, write_value
from setsup_cli.runs import CHANGED, number
from setsup_cli.training.train_args import NO_SETTINGS, Asked, Training

if TYPE_CHECKING:
    from setsup.experiments import Run, RunConfig
    from setsup.experiments.runs.run import Progress
    from setsup.experiments.training.dry_run import Plan

__all__ = [
    "describe",
    "describe_begin",
    "describe_plan",
    "describe_result",
    "is_paper",
    "list_names",
    "list_paper",
    "plan_json",
    "result_json",
    "speaks",
]

_NONE = "none of them"
_RANKS = ("RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "SLURM_PROCID")


def speaks() -> bool:
    """Whether this process is the first of a distributed training: the others print nothing."""
    return all(os.environ.get(name, "0") == "0" for name in _RANKS)


def list_names(names: Iterable[str]) -> str:
    """Papers with their groups, and how many of the names each has: ``cmc: 94``, and ``fig6 16`` in it."""
    groups = Counter((paper, rest.partition("-")[0]) for paper, _, rest in (name.partition("/") for name in names))
    papers = dict.fromkeys(paper for paper, _ in groups)
    lines = []
    for paper in papers:
        parts = {group: count for (of, group), count in groups.items() if of == paper}
        listed = ", ".join(f"{group} {count}" for group, count in parts.items() if group)
        lines.append(f"{paper}: {sum(parts.values())}" + (f" ({listed})" if listed else ""))
    return "\n\n".join(lines)


def list_paper(paper: str, shown: Mapping[str, str]) -> str:
    """The names of a paper with a line each."""
    lines = {name: line for name, line in shown.items() if name.partition("/")[0] == paper}
    width = max(map(len, lines))
    return "\n".join(f"{name:<{width}}  {line}" for name, line in lines.items())


def is_paper(word: str | None, names: Iterable[str]) -> bool:
    """Whether a word is what several names begin with, before a slash."""
    return any(name.startswith(f"{word}/") for name in names)


def describe(asked: Asked) -> Iterator[str]:
    """Lines with the preset, the dataset and the changed settings."""
    from setsup.experiments.settings import flatten

    usual, data = asked.usual, asked.preset.data
    yield f"{usual.name}: {usual.shows}"
    if usual.shrunk:
        yield "shrunk by --smoke to test that it runs; the results are meaningless"
    if asked.file_changed:
        yield "FILE CHANGED: the file of the preset has changed since the file of settings was written"
    if data is None:
        return
    parts = [f"{data.substitute}, a SUBSTITUTE for {data.name}" if asked.substitute else data.name]
    parts += [f"split {data.split}"] if data.split else []
    parts += [data.where] if data.where else []
    yield f"data: {', '.join(parts)}"
    if asked.changed:
        yield f"changed: {', '.join(_changes(asked, flatten(usual)))}"
    steps = "step" if asked.preset.steps == 1 else "steps"
    yield f"{asked.preset.steps:,} {steps}, {asked.config.precision}, {_devices(asked.config)}"


def _changes(asked: Asked, before: Mapping[str, Any]) -> Iterator[str]:
    """Changed settings with their values, before and after; under its short name where all that have it are equal."""
    left = {key: (value, before[key]) for key, value in asked.changed.items()}
    short = {names[0]: (setting, names) for setting, names in short_names(asked.preset, NO_SETTINGS).items()}
    for key, both in tuple(left.items()):
        name, names = short.get(key, (key, [key]))
        if any(left.get(setting) != both for setting in names):
            name, names = key, [key]
        if key in left:
            was = shown(key, both[1])
            yield f"{name} {shown(key, both[0])} ({'none before' if was == _NONE else f'not {was}'})"
        for setting in names:
            left.pop(setting, None)


def shown(key: str, value: Any) -> str:
    """A value of a setting, as the command line takes it."""
    if key != "data.options":
        return write_value(value) or _NONE
    options = dict(value)
    if "kinds" in options:
        options["kinds"] = tuple(f"{name}={kind}" for name, kind in options["kinds"])
    return write_value(write_options(options)) or _NONE


def _devices(config: "RunConfig") -> str:
    import torch

    name = "CPU"
    if config.accelerator != "cpu" and torch.cuda.is_available():
        name = torch.cuda.get_device_name()
    elif config.accelerator != "cpu" and torch.backends.mps.is_available():
        name = "GPU of this Mac"
    many = f"{config.devices} × {name}" if config.devices > 1 else name
    return f"{many} on each of {config.nodes} machines" if config.nodes > 1 else many


def describe_begin(run: "Run", before: "Progress") -> Iterator[str]:
    """Lines when a training begins: its folder, and whether it resumes."""
    if run.preset.method is None:
        yield f"seed {run.seed}: {run.folder}: nothing to train"
    elif before.steps >= run.preset.steps:
        yield f"seed {run.seed}: {run.folder} is finished"
    else:
        since = f", resuming from step {before.steps:,}" if before.steps else ""
        yield f"seed {run.seed}: {run.folder}{since}"
    if run.file_changed:
        yield f"FILE CHANGED: {CHANGED}"


def result_json(training: Training, run: "Run", before: "Progress") -> dict[str, Any]:
    """The results of a run."""
    now = run.progress()
    seconds, images = now.seconds - before.seconds, now.images - before.images
    words = ["setsup", "eval" if run.preset.evaluations else "embed", str(run.folder)]
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


def describe_result(result: dict[str, Any]) -> Iterator[str]:
    """Lines with the results of a run."""
    if result["steps"]:
        rate = result["images_per_second"]
        seconds = result["seconds"]
        all_of_them = f", of which {result['steps'] - result['from_step']:,} now" if result["from_step"] else ""
        spent = f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
        steps = "step" if result["steps"] == 1 else "steps"
        parts = [f"{result['steps']:,} {steps}{all_of_them}", f"{spent} in all" if all_of_them else spent]
        parts += [f"{rate:,.0f} images/s"] if rate is not None else []
        yield "  " + ", ".join([*parts, *(f"{name} {number(value)}" for name, value in result["metrics"].items())])


def plan_json(plan: "Plan") -> dict[str, Any]:
    """What would be trained."""
    images = {name: {"shape": list(shape), "dtype": dtype} for name, (shape, dtype) in (plan.images or {}).items()}
    return {**plan._asdict(), "folder": str(plan.folder), "draw": list(plan.draw), "images": images}


def describe_plan(training: Training, plan: "Plan") -> Iterator[str]:
    """Lines with what would be trained, and where."""
    if plan.dataset is None:
        yield f"seed {plan.seed}: {plan.folder}: nothing to train"
        return
    images = (
        f"{name} {' × '.join('any' if size is None else str(size) for size in shape)} {dtype}"
        for name, (shape, dtype) in (plan.images or {}).items()
    )
    yield f"  rows: {plan.rows:,} of {plan.dataset}, {', '.join(images)}"
    config = training.config
    draws = getattr(training.preset, "accumulate", 1) * config.devices * config.nodes
    sets, size = plan.draw[0], plan.draw[-1]
    each = f"{sets} {'set' if sets == 1 else 'sets'} of {size}"
    yield f"  a step: {each if draws == 1 else f'{draws} draws of {each}'}"
    part = "" if plan.trained == plan.parameters else f", of which {plan.trained:,} are trained"
    yield f"  networks: {plan.parameters:,} parameters{part}"
    if plan.fetches is not None:
        yield f"  initial weights: {plan.fetches}, to be downloaded first"
    since = f", from step {plan.from_step:,}" if plan.from_step else ""
    yield f"  seed {plan.seed}: {plan.folder}: {plan.steps:,} steps{since}"
