"""``setsup bench``: how fast this machine draws sets and fetches pictures."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from setsup.errors import SamplerError
from setsup_cli.arguments import Json, MaybeDataset, MaybeWords, Root, option
from setsup_cli.output import show_json, show_table
from setsup_cli.source import check_factors, open_source

if TYPE_CHECKING:
    from setsup.datasets import Dataset

__all__ = ["HELP", "Options", "run"]

HELP = """\
A quick look of about three seconds, one process: medians vary with what else runs. Two sets of 32, one factor held
(the first one unless --inactive is given)."""

_SECONDS = 0.9
_BLOCK = 64
_DRAWS = 4


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb."""

    dataset: MaybeDataset = None
    root: Root = None
    inactive: Annotated[MaybeWords, option("FACTOR ...", "Factors that the sets hold.")] = None
    json: Json = False


def run(options: Options) -> int:
    """Measure and print rates."""
    from setsup.samplers import SetSampler

    dataset = open_source(options.dataset, options.root)
    held = list(options.inactive) if options.inactive is not None else _first(dataset)
    check_factors(held, dataset.factors, f"`setsup info {dataset.name}`")
    sampler = SetSampler(dataset.factors, inactive=held, size=32, sets=2, small="drop")
    draws = [sampler[step].indices for step in range(_DRAWS)]
    rows = sum(draw.size for draw in draws)
    first = _seconds(lambda: [dataset.fetch(draw) for draw in draws])
    rates = {
        "single draws, sampler[k]": ("draws/s", _rate(lambda step: sampler[step * 7919 % 1_000_003])),
        f"draws in blocks of {_BLOCK}": ("draws/s", _BLOCK * _rate(lambda step: sampler.block(step, step + _BLOCK))),
        "rows fetched for the first time": ("rows/s", rows / first),
        "rows fetched again": ("rows/s", draws[0].size * _rate(lambda step: dataset.fetch(draws[step % _DRAWS]))),
    }
    if options.json:
        measured = [{"what": what, "unit": unit, "rate": rate} for what, (unit, rate) in rates.items()]
        show_json({"dataset": dataset.name, "inactive": held, "size": 32, "sets": 2, "rates": measured})
        return 0
    heads = [f"{dataset.name}, {', '.join(held) or 'nothing'} held", "rate", ""]
    show_table(heads, [[what, f"{rate:,.0f}", unit] for what, (unit, rate) in rates.items()], right=("rate",))
    return 0


def _first(dataset: "Dataset") -> list[str]:
    found = [factor.name for factor in dataset.factors.factors if factor.role == "variation" and not factor.continuous]
    if not found:
        raise SamplerError(f"{dataset.name} has no factor with levels that sets could hold; say which with --inactive")
    return found[:1]


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
