"""Python and command lines that give what the page shows."""

import shlex
from collections.abc import Mapping
from inspect import signature
from typing import Any

from setsup.samplers import Sampler

__all__ = ["command_line", "opened_by", "python_code"]

_STEPS = 64  # up to which a command draws all steps before the one that is shown

_MAIN = {
    "SetSampler": {"inactive": "inactive"},
    "DomainSampler": {"domain": "domain"},
    "OrbitSampler": {"orbit": "orbit"},
    "TripletSampler": {"orbit": "triplets"},
    "EpisodeSampler": {"label": "episode"},
}
_SAME = {
    "SetSampler": ("active", "size", "sets", "unconstrained", "random", "choose", "values", "small", "where", "seed"),
    "DomainSampler": ("sets", "size", "domains", "small", "where", "seed"),
    "OrbitSampler": ("sets", "size", "values", "choose", "small", "where", "seed"),
    "TripletSampler": ("choose", "small", "where", "seed"),
    "EpisodeSampler": ("ways", "shots", "queries", "small", "where", "seed"),
}
"""Options of ``setsup sample`` by the names of arguments that mean the same there."""


def opened_by(source: str) -> str:
    """An expression that opens a dataset."""
    return f"setsup.open({source!r})" if source else "setsup.open(…)  # the data that this page shows"


def python_code(source: str, sampler: Sampler, step: int, plain: Mapping[str, Any] | None = None) -> str:
    """Statements that make the sampler and draw a step; `plain` is what `to_dict` gives, without places on disk."""
    lines = ["import setsup", "", f"dataset = {opened_by(source)}"]
    given = _given(sampler)
    if {"base", "samplers", "neighbours"} & set(sampler.arguments):
        lines += [
            f"described = {dict(plain or sampler.to_dict())!r}",
            "sampler = setsup.samplers.from_dict(described, dataset.factors)",
        ]
    else:
        words = ", ".join(["dataset.factors", *(f"{name}={value!r}" for name, value in given.items())])
        lines.append(f"sampler = setsup.samplers.{type(sampler).__name__}({words})")
    return "\n".join([*lines, f"draw = sampler[{step}]", "arrays = dataset.fetch(draw.indices)"])


def command_line(source: str, sampler: Sampler, step: int) -> str | None:
    """A command whose last step is this one; None where no option says what the sampler was given."""
    kind = type(sampler).__name__
    if kind not in _MAIN or not source or step >= _STEPS:
        return None
    words = ["setsup", "sample", source]
    usual = {name: one.default for name, one in signature(type(sampler)).parameters.items()}
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
            words += [f"--{_MAIN[kind].get(name, name)}", *(map(str, value) if _is_list(value) else [str(value)])]
    others = {name for name in _given(sampler) if name not in _SAME[kind] and name not in _MAIN[kind]}
    return None if others else shlex.join([*words, "--steps", str(step + 1)])


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _given(sampler: Sampler) -> Mapping[str, Any]:
    """Arguments without those that have their defaults."""
    kind = type(sampler)
    usual = {name: one.default for name, one in signature(kind).parameters.items()}
    given = {name: value for name, value in sampler.to_dict()["arguments"].items() if value != usual.get(name)}
    if given.get("stream") == kind.__name__:
        del given["stream"]
    return given
