"""``setsup bench``: measures how fast this machine draws sets and fetches images."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from setsup.errors import SamplerError
from setsup.progress import progress
from setsup_cli.output import say, say_prose, show_json, show_table
from setsup_cli.parsing.arguments import DEFAULT, Source, option
from setsup_cli.parsing.source import card_command, check_factors, open_source, source_words
from setsup_cli.suggestions import advise_command

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.samplers import SetSampler

__all__ = ["HELP", "Options", "run"]

HELP = """\
The measurement takes about five seconds, or longer if images are slow to open the first time. It draws two
sets of 32 images in which the factors of --inactive are fixed (by default the first factor), in one process. All rates
except the one labelled "first time" are medians after a warm-up; rates vary with the load of the machine."""

_FIRST = "images, first time"
_NOTE = """\
The first time includes work that is done once and cached, such as placing a shape in a pose or unpacking a file; \
"afterwards" is the rate of a training that has run for a while."""

_SECONDS = 0.9
_BLOCK = 64
_DRAWS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Source):
    """Options of the subcommand."""

    inactive: Annotated[tuple[str, ...] | None, option("FACTOR ...", "Factors to fix within each set.")] = None


def run(options: Options) -> int:
    """Measure and print rates."""
    from setsup.samplers import SetSampler

    dataset = open_source(options)
    held = list(options.inactive) if options.inactive is not None else _first(dataset)
    check_factors(held, dataset.factors, card_command(options))
    size = min(32, int(dataset.factors.group_by(held).sizes.max(initial=1)))
    sampler = SetSampler(dataset.factors, inactive=held, size=size, sets=2, on_small_group="drop")
    rates = _measured(dataset, sampler)
    if options.json:
        measured = [{"what": what, "unit": unit, "rate": rate} for what, (unit, rate) in rates.items()]
        show_json({"dataset": dataset.name, "inactive": held, "size": size, "sets": 2, "rates": measured})
        return 0
    heads = [f"{dataset.name}, {', '.join(held) or 'nothing'} fixed", "rate", ""]
    show_table(heads, [[what, f"{rate:,.0f}", unit] for what, (unit, rate) in rates.items()], right=("rate",))
    say()
    say_prose(_NOTE, piped=100)
    if held:
        words = [options.dataset or DEFAULT, "--inactive", *held, "--small", "drop", "--size", size]
        advise_command(options, ["setsup", "sample", *words, *source_words(options)])
    return 0


def _measured(dataset: "Dataset", sampler: "SetSampler") -> dict[str, tuple[str, float]]:
    """Measure rates, each with its unit; the first time has a rate of its own."""
    draws = [sampler[step].indices for step in range(_DRAWS)]
    rates: dict[str, tuple[str, float]] = {}
    with progress(4, "measuring", "rates") as advance:
        first = _seconds(lambda: [dataset.fetch(draw) for draw in draws])
        rates[_FIRST] = ("rows/s", sum(draw.size for draw in draws) / first)
        advance()
        rates["images, afterwards"] = (
            "rows/s",
            draws[0].size * _rate(lambda step: dataset.fetch(draws[step % _DRAWS])),
        )
        advance()
        rates["single draws, sampler[k]"] = ("draws/s", _rate(lambda step: sampler[step * 7919 % 1_000_003]))
        advance()
        blocks = _rate(lambda step: sampler.block(step, step + _BLOCK))
        rates[f"draws in blocks of {_BLOCK}"] = ("draws/s", _BLOCK * blocks)
        advance()
    return rates


def _first(dataset: "Dataset") -> list[str]:
    names = [factor.name for factor in dataset.factors.factors if factor.role == "variation" and not factor.continuous]
    if not names:
        raise SamplerError(
            f"{dataset.name} has no discrete factor of variation to fix by default; choose another column, such "
            "as a key or a split, with --inactive"
        )
    return names[:1]


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _rate(work: Callable[[int], object]) -> float:
    """Calls a second, by the median of single calls: robust to what else the machine does."""
    work(0)
    times = []
    start = now = time.perf_counter()
    step = 1
    while now - start < _SECONDS:
        work(step)
        last, now = now, time.perf_counter()
        times.append(now - last)
        step += 1
    return 1 / sorted(times)[len(times) // 2]
