"""Samplers of the user's own: ``--sampler FILE.py:CLASS`` or ``--sampler MODULE:CLASS``."""

import inspect
import json
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from setsup.errors import SamplerError, did_you_mean
from setsup_cli.parsing.source import assignments

if TYPE_CHECKING:
    from setsup.factors import FactorTable
    from setsup.samplers import Sampler

__all__ = ["build_own", "find_class"]


def find_class(word: str) -> "type[Sampler]":
    """The class of a sampler in a Python file, or in a module that can be imported."""
    from setsup.experiments.preset_registry import import_file, split_file_name
    from setsup.samplers import Sampler

    if (file := split_file_name(word)) is not None:
        where, name = str(file[0]), file[1]
        module = import_file(file[0])
    else:
        where, _, name = word.partition(":")
        try:
            module = import_module(where)
        except (ImportError, ValueError) as error:
            raise SamplerError(f"--sampler {word}: {error}; pass FILE.py:CLASS or MODULE:CLASS") from error
    own = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Sampler)]
    names = [kind.__name__ for kind in own if kind.__module__ == module.__name__]
    name = names[0] if not name and len(names) == 1 else name
    sampler = getattr(module, name, None) if name else None
    if not isinstance(sampler, type) or not issubclass(sampler, Sampler):
        if not (name or names):
            raise SamplerError(f"--sampler {word}: {where} does not define a subclass of setsup.samplers.Sampler")
        if not name:
            raise SamplerError(
                f"--sampler {word}: {where} defines several samplers ({', '.join(names)}); choose one with "
                f"{where}:CLASS"
            )
        others = names or [kind.__name__ for kind in own if kind is not Sampler]
        listed = did_you_mean(name, others) if others else "; a sampler must derive from setsup.samplers.Sampler"
        raise SamplerError(f"--sampler {word}: {where} does not define a sampler {name!r}{listed}")
    return sampler


def build_own(options: Mapping[str, Any], table: "FactorTable") -> "Sampler":
    """Build a sampler of the user's own from the options that its constructor has, and from ``--argument``."""
    kind = find_class(options["sampler"])
    takes = list(inspect.signature(kind).parameters)[1:]
    arguments = {name: value for name, value in options.items() if name not in ("argument", "sampler")}
    arguments |= {
        name: _value(word) for name, word in assignments(options.get("argument", ()), "--argument", "value").items()
    }
    for name in arguments:
        if name not in takes:
            raise SamplerError(f"{kind.__name__} has no argument {name!r}{did_you_mean(name, takes)}")
    try:
        return kind(table, **arguments)
    except TypeError as error:
        raise SamplerError(
            f"{kind.__name__} cannot be constructed from these options: {error}; set arguments with --argument "
            "NAME=VALUE"
        ) from error


def _value(word: str) -> Any:
    """Read a number, a list or another value as JSON has it; any other word is a string."""
    try:
        return json.loads(word)
    except ValueError:
        return word
