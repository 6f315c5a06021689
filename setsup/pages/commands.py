"""Python and command lines that give what the page shows."""

import shlex
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

from setsup.datasets.dataset import Modality
from setsup.pages.opened import Opening
from setsup.samplers import Sampler
from setsup.samplers.spelling import OPTION_NAMES, python_arguments

__all__ = ["command_line", "explore_command", "python_code"]

_STEPS = 64  # up to which a command draws all steps before the one that is shown

_MAIN = {
    "SetSampler": {"inactive": "inactive"},
    "DomainSampler": {"domain": "domain"},
    "OrbitSampler": {"orbit": "orbit"},
    "TripletSampler": {"orbit": "triplets"},
    "EpisodeSampler": {"label": "episode"},
}
_SAME = {
    "SetSampler": (
        "active",
        "size",
        "sets",
        "unconstrained",
        "num_fixed",
        "choose",
        "values",
        "on_small_group",
        "where",
        "seed",
    ),
    "DomainSampler": ("sets", "size", "domains", "on_small_group", "where", "seed"),
    "OrbitSampler": ("sets", "size", "values", "choose", "on_small_group", "where", "seed"),
    "TripletSampler": ("choose", "on_small_group", "where", "seed"),
    "EpisodeSampler": ("ways", "shots", "queries", "on_small_group", "where", "seed"),
}
"""Arguments that are options of ``setsup sample``."""


def explore_command(openings: Sequence[Opening], places: Sequence[str], options: Sequence[str] = ()) -> str:
    """The command that shows datasets, and what is in other places, live; empty where none does."""
    opened = [opening.words() for opening in openings]
    if any(words is None or (len(words) > 1 and len(opened) > 1) for words in opened):
        return ""  # options go with one dataset
    named = [words[0] for words in opened if words]
    more = [word for words in opened if words for word in words[1:]]
    return shlex.join(["setsup", "explore", *dict.fromkeys([*named, *places]), *more, *options])


def python_code(
    opening: Opening,
    sampler: Sampler,
    step: int,
    plain: Mapping[str, Any] | None = None,
    modalities: Mapping[str, Modality] = {},
) -> str:
    """Statements that make the sampler, and draw and fetch a step.

    `plain` is what `to_dict` gives, without places on disk; `modalities` are those of the dataset.
    """
    lines = ["import setsup", "", f"dataset = {opening.python}"]
    given = _given(sampler)
    if {"base", "samplers", "neighbours", "overlaps"} & set(sampler.arguments):
        whole = sampler.to_dict()
        named = plain is not None and dict(plain) != whole
        table = "overlaps" if "overlaps" in sampler.arguments else "neighbours"
        lines += [
            *([f"# {table} has the name of a table: put the path of its file, or its content, there"] if named else []),
            f"described = {dict(plain or whole)!r}",
            "sampler = setsup.samplers.from_dict(described, dataset.factors)",
        ]
    else:
        given_options = ", ".join(["dataset.factors", *(f"{name}={value!r}" for name, value in given.items())])
        lines.append(f"sampler = setsup.samplers.{type(sampler).__name__}({given_options})")
    fetched = "dataset.fetch(draw.indices)"
    if any(None in modality.shape for modality in modalities.values()):  # images of several sizes make no array
        fetched = "[dataset.fetch(row) for row in draw.indices.ravel().tolist()]"
    return "\n".join([*lines, f"draw = sampler[{step}]", f"arrays = {fetched}"])


def command_line(opening: Opening, sampler: Sampler, step: int) -> str | None:
    """A command whose last step is this one; None where no option says what the sampler was given."""
    kind, opened = type(sampler).__name__, opening.words()
    if kind not in _MAIN or opened is None or step >= _STEPS:
        return None
    line = ["setsup", "sample", *opened]
    usual = {name: parameter.default for name, parameter in signature(type(sampler)).parameters.items()}
    for name in (*_MAIN[kind], *_SAME[kind]):
        # the command's own defaults of sizes differ, so these are always said
        if name in sampler.arguments and (
            name in ("size", "sets", "ways", "shots", "queries") or sampler.arguments[name] != usual.get(name)
        ):
            value = sampler.arguments[name]
            if value is None:
                continue
            if not isinstance(value, str | int) and not _is_list(value):
                return None
            arguments = [str(argument) for argument in (value if _is_list(value) else [value])]
            if any(argument.startswith("-") for argument in arguments):
                return None  # it would be read as an option
            line += [f"--{_MAIN[kind].get(name) or OPTION_NAMES.get(name, name)}", *arguments]
    others = {name for name in _given(sampler) if name not in _SAME[kind] and name not in _MAIN[kind]}
    return None if others else shlex.join([*line, "--steps", str(step + 1)])


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _given(sampler: Sampler) -> Mapping[str, Any]:
    """Arguments without those that have their defaults."""
    kind = type(sampler)
    usual = {name: parameter.default for name, parameter in signature(kind).parameters.items()}
    stored = python_arguments(sampler.to_dict()["arguments"], usual)
    given = {name: value for name, value in stored.items() if value != usual.get(name)}
    if given.get("stream") == kind.__name__:
        del given["stream"]
    return given
