"""Results of evaluations that subcommands announce, change the settings of, and print."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup_cli.output import say, say_prose, show_table
from setsup_cli.parsing.values import write_value
from setsup_cli.runs import number

if TYPE_CHECKING:
    from setsup.experiments import Evaluation

__all__ = ["announced", "say_results", "with_settings"]


def announced(names: Sequence[str]) -> "dict[str, Callable[[str, Evaluation], None]]":
    """Print each evaluation when it starts, since some take many minutes; and those that were measured before."""
    numbers = count(1)

    def say_one(word: str, name: str, evaluation: "Evaluation") -> None:
        from setsup.experiments.settings import describe

        (_, kind), *settings = describe(evaluation).items()
        said = ", ".join([kind, *(f"{setting} {write_value(value)}" for setting, value in settings)])
        say_prose(f"{word} {name}, {next(numbers)} of {len(set(names))}: {said}")

    return {"on_start": partial(say_one, "measuring"), "on_stored": partial(say_one, "measured before:")}


def with_settings(evaluations: "Mapping[str, Evaluation]", options: Any) -> "dict[str, Evaluation]":
    """Evaluations with the settings that ``options.typed`` names."""
    from setsup.experiments.settings import put

    asked: dict[str, dict[str, Any]] = {name: {} for name in evaluations}
    for word in options.typed:
        name, *path = word.split(".")
        if name in asked:
            asked[name][".".join(path)] = reduce(getattr, path, getattr(options, name))
    return {name: put(evaluation, asked[name]) for name, evaluation in evaluations.items()}


def say_results(file: Path, kept: Mapping[str, Mapping[str, Any]]) -> None:
    """Print results, as a file ``evaluation.json`` has them, and the paths of all files."""
    rows = [row for name, entry in kept.items() for row in _rows(name, entry)]
    if rows:
        say()
        show_table(["evaluation", "what", "value"], rows, right=("value",))
    say()
    for picture in (picture for entry in kept.values() for picture in entry["pictures"]):
        say(str(file.with_name(picture)))
    say(str(file))


def _rows(name: str, entry: Mapping[str, Any]) -> Iterator[list[str]]:
    for what, value in entry["values"].items():
        yield [name, what, number(value)]
    for what, (x, _) in entry["curves"].items():
        yield [name, what, f"curve of {len(x)} points"]
