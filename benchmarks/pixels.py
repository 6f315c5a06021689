"""Single-pixel contrast: the loss between pairs beside a loop, its memory, and pairs of views as a share of a step.

On one thread, in CPU time. The step is that of a small network: forward, loss within pairs, backward and AdamW on 64
pairs of views of 32 x 32 pixels. Images are random, which changes no time.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Side, Spread, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, at_most, duration

__all__ = ["memory", "rows"]

TOPIC = "pixels"
PAIRS, FEATURES, SIDE = sized((64, 32, 32), (4, 8, 16))
WIDTHS = sized((16, 32, 32), (8, 8, 8))
GIB = 2**30
STATUS = Path("/proc/self/status")
"""Has the most memory of this process alone; getrusage has that of its parent, where this was more."""


def rows(full: bool) -> Iterator[Row]:
    if peer("torch") is None:
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield _between()
        if STATUS.exists():
            yield _memory()
        yield _pairs()
    finally:
        torch.set_num_threads(threads)


def _between() -> Row:
    from setsup_papers.pixels import between_loss

    given = _features()
    sides = {
        "setsup": Side(lambda: between_loss(*given).backward()),
        "loop": Side(lambda: _loop(*given).backward()),
    }
    found = alternate(sides, blocks=5)
    what = f"loss between {PAIRS} pairs of {SIDE}² pixels with {FEATURES} features, forward and backward"
    share = ratio(found["loop"], found["setsup"])
    return Row(
        TOPIC, what, duration(found["setsup"]), "a loop over pairs", duration(found["loop"]), share, "×", at_least(2)
    )


def _memory() -> Row:
    done = subprocess.run(
        [sys.executable, "-c", "from benchmarks.pixels import memory; memory()"], capture_output=True, check=True
    )
    share = float(done.stdout) / GIB
    what = f"memory that the loss between {PAIRS} pairs takes, forward and backward"
    return Row(TOPIC, what, f"{1024 * share:.0f} MiB", "1 GiB", "1,024 MiB", Spread.of([share]), "×", at_most(1))


def memory() -> None:
    """Print by how many bytes the process grows at most."""
    from setsup_papers.pixels import between_loss

    given = _features()
    before = _peak()
    between_loss(*given).backward()
    print(_peak() - before)


def _peak() -> int:
    """The most bytes so far."""
    return next(1024 * int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))


def _features() -> tuple[Any, Any, Any]:
    """Features of both views, and partners."""
    import torch

    first, second = (torch.randn(PAIRS, FEATURES, SIDE**2, requires_grad=True) for _ in range(2))
    return first, second, torch.randint(SIDE**2, (PAIRS, SIDE**2))


def _loop(first: Any, second: Any, partner: Any) -> Any:
    """The same loss, combination by combination."""
    moved = second.gather(2, partner[:, None].expand_as(second))
    terms = [
        ((first[a] - moved[b]).abs().amax(0) / 2 - 0.5).square().mean()
        for a in range(PAIRS)
        for b in range(a + 1, PAIRS)
    ]
    return sum(terms) / len(terms)


def _pairs() -> Row:
    import torch

    from setsup.loading.views import PlanarPairs

    batch = {"image": torch.rand(1, PAIRS, 3, SIDE, SIDE), "step": 0}
    pairs = PlanarPairs(SIDE, 0.25)
    sides = {"step": Side(_step(pairs(batch))), "pairs": Side(lambda: pairs(batch))}
    found = alternate(sides, blocks=11)
    what = f"{PAIRS} pairs of views drawn and warped"
    share = ratio(100 * found["pairs"], found["step"])
    return Row(TOPIC, what, duration(found["pairs"]), "a step", duration(found["step"]), share, "%", at_most(5))


def _step(batch: Any) -> Callable[[], None]:
    """A step of training on pairs of views."""
    import torch

    from setsup_papers.pixels import PixelUNet, within_loss

    network = PixelUNet(WIDTHS, (1, 1, 1), FEATURES).to(memory_format=torch.channels_last)
    adam = torch.optim.AdamW(network.parameters(), lr=1e-3)
    partner, positive, valid = (batch[name][0] for name in ("partner", "positive", "valid"))

    def step() -> None:
        adam.zero_grad()
        first, second = network(torch.cat([batch["view_1"][0], batch["view_2"][0]])).flatten(2).chunk(2)
        within_loss(first, second, partner, positive, valid).backward()
        adam.step()

    return step
