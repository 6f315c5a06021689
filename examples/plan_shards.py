"""What a large set of shards costs: requests, bytes, seconds and cache, as formulas and as a simulation has them.

The simulation draws with setsup's samplers, joins ranges as a store's reader does, and lets a simple queue stand for
the store. Change PLAN to what you have. Needs: pip install .
"""

import heapq
import tempfile
from dataclasses import dataclass
from math import exp, lgamma
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from setsup import Factor, FactorTable, Kind, SetSampler
from setsup.factors.column_storage import code_dtype
from setsup.random import fold, permute, randint_below, stream_key, uniform
from setsup.shards.index import GROUP, Spans, part, write_index
from setsup.shards.stores.ranges import AT_ONCE, GAP, MOST, merge_ranges

KEY = stream_key(0, "plan")


@dataclass(frozen=True)
class Plan:
    """A large set, the batches that are drawn from it, and the store where it lies."""

    rows: int = 10**9
    member: int = 100_000  # bytes of a picture
    shard: int = 10**9  # bytes
    size: int = 128  # rows of a set
    sets: int = 2  # of a batch
    ranks: int = 1024
    images: int = 500  # that a rank trains on in a second
    latency: float = 0.15  # seconds before the first byte
    line: float = 90e6  # bytes a second of one connection
    link: float = 1.5e9  # bytes a second of a rank's share of the network
    limit: int = 5500  # requests a second of one prefix

    @property
    def stride(self) -> int:
        """Bytes from one sample to the next: a header and whole blocks of 512 for the picture, and two for the json."""
        return 512 + -(-self.member // 512) * 512 + 1024


PLAN = Plan()


# -- requests and bytes of a set ---------------------------------------------------------------------------------------


def requests(plan: Plan, group: int) -> tuple[float, float]:
    """Reads and bytes of one set whose group lies in so many neighbouring rows."""
    together = (GAP + plan.member) // plan.stride  # rows that two neighbours in a read may lie apart
    edge = plan.stride / plan.shard  # chance that a shard ends between one row and the next
    apart = np.arange(1, min(together, group - plan.size + 1) + 1)
    joined = np.array([chance(plan, group, int(d)) for d in apart]) * (1 - apart * edge)
    parts = 1 + (plan.size - 1) * (1 - joined.sum())  # stretches of rows that lie near each other
    read = plan.size * plan.member + (plan.size - 1) * (joined @ (apart * plan.stride - plan.member))
    # stretches are cut at MOST, as if their lengths varied exponentially; a little too many of one stretch
    return float(parts / (1 - exp(-MOST * parts / read))), float(read)


def chance(plan: Plan, group: int, apart: int) -> float:
    """Of two neighbours among the rows drawn from a group, that they lie so many rows apart."""
    return exp(log_binomial(group - apart, plan.size - 1) - log_binomial(group, plan.size))


def log_binomial(n: int, k: int) -> float:
    """Logarithm of the ways to choose k of n."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def simulated_requests(plan: Plan, group: int, steps: int = 64) -> tuple[float, float]:
    """The same, drawn: mean reads and bytes of a set; a group of no rows stands for one whose rows are scattered.

    A grid of the plan's rows needs no memory. What is held are its first factors, so that groups are contiguous, or
    its last, so that the rows of a group lie a million rows apart.
    """
    contiguous = {"one": 1000, "two": plan.rows // 1000 // max(group, 1), "free": group}
    sizes = contiguous if group else {"free": 1000, "one": 1000, "two": plan.rows // 10**6}
    table = FactorTable([Factor(name, Kind.NOMINAL, tuple(range(size))) for name, size in sizes.items()])
    sets = SetSampler(table, active=["free"], size=plan.size, sets=1).block(0, steps).indices[:, 0]
    shard, place = np.divmod(sets, plan.shard // plan.stride)
    begin = place * plan.stride + 512
    reads = [merge_ranges(shard[k], begin[k], begin[k] + plan.member) for k in range(steps)]
    return sum(len(one.start) for one in reads) / steps, sum(int((one.stop - one.start).sum()) for one in reads) / steps


# -- seconds of a batch ------------------------------------------------------------------------------------------------


def seconds(plan: Plan, reads: float, read: float) -> float:
    """Until all reads of a batch are there, with AT_ONCE under way; half of the latency is constant, half varies."""
    wave, tail = min(reads, AT_ONCE), 0.5 * plan.latency
    one = plan.latency + read / reads / plan.line
    return max((reads - wave) / AT_ONCE * one + one - tail + tail * harmonic(wave), read / plan.link)


def harmonic(n: float) -> float:
    """1 + 1/2 + … + 1/n: how many times the mean the slowest of n waits, where waits vary exponentially."""
    return float(np.log(n) + 0.5772 + 0.5 / n)


def simulated_seconds(plan: Plan, reads: int, read: float, steps: int = 64) -> float:
    """The same by a queue: connections that take the next read when they have brought one."""
    total = 0.0
    for step in range(steps):
        free = [0.0] * min(reads, AT_ONCE)
        for wait in latencies(plan, fold(KEY, 2 + step), reads):
            heapq.heapreplace(free, free[0] + wait + read / reads / plan.line)
        total += max(max(free), read / plan.link)
    return total / steps


def latencies(plan: Plan, key: np.ndarray, count: int) -> list[float]:
    """Seconds before the first byte of so many requests."""
    bits = fold(int(key), np.arange(count, dtype=np.uint64))
    return (0.5 * plan.latency * (1 - np.log1p(-uniform(bits)))).tolist()


# -- what the store gives, and what the cache keeps --------------------------------------------------------------------


def rate(plan: Plan, ranks: int, batch: float, reads: float, limit: float) -> float:
    """Requests a second of all ranks: what they ask for, and at most what the store gives."""
    return min(ranks * reads / batch, limit)


def simulated_rate(plan: Plan, ranks: int, reads: int, read: float, limit: float, batches: int = 6) -> float:
    """The same: ranks that wait for each of their batches, and a store that begins a request every 1/limit seconds."""
    waits = [latencies(plan, fold(KEY, 100 + rank), batches * reads) for rank in range(ranks)]
    left, busy = [0] * ranks, [0] * ranks
    queue, ready, now = [(0.0, rank) for rank in range(ranks)], 0.0, 0.0
    while queue:
        now, rank = heapq.heappop(queue)  # a connection of this rank comes free
        busy[rank] = max(busy[rank] - 1, 0)
        free = 1
        if not left[rank] and not busy[rank] and waits[rank]:  # the whole batch is there: the next one
            left[rank], free = reads, AT_ONCE
        for _ in range(min(free, left[rank])):
            ready = max(ready + 1 / limit, now)
            heapq.heappush(queue, (ready + waits[rank].pop() + read / reads / plan.line, rank))
            left[rank], busy[rank] = left[rank] - 1, busy[rank] + 1
    return ranks * batches * reads / now


def hits(cache: float, drawn: float) -> float:
    """Share of what is drawn that a cache holds once it is full, where all rows are drawn equally often."""
    return min(1.0, cache / drawn)


def simulated_hits(share: float, scattered: bool, shards: int = 400, rows: int = 250, steps: int = 12_000) -> float:
    """The same for sets of 25 of 50 rows: a cache that lets go of whole shards, the one used longest ago first."""
    keys = fold(fold(KEY, 3), np.arange(steps, dtype=np.uint64))
    slots = np.broadcast_to(np.arange(25), (steps, 25))
    if scattered:
        sets = permute(keys, shards * rows, slots)
    else:
        sets = permute(keys, 50, slots) + 50 * randint_below(fold(keys, 1), shards * rows // 50)[:, None]
    kept: dict[int, set[int]] = {}
    held, found = 0, 0
    for step, drawn in enumerate(sets.tolist()):
        for row in drawn:
            there = kept.pop(row // rows, set())
            found += row in there and step >= steps // 2  # the cache is full by then
            held += row not in there
            there.add(row)
            kept[row // rows] = there  # now the last
        while held > share * shards * rows:
            held -= len(kept.pop(next(iter(kept))))
    return found / sets[steps // 2 :].size


# -- tables ------------------------------------------------------------------------------------------------------------

ORDERS = {
    "`by:`, groups of 150": 150,
    "`by:`, of 500": 500,
    "`by:`, of 2,000": 2000,
    "`by:`, of 20,000": 20_000,
    "scattered": 0,
}


def index_table(plan: Plan = PLAN) -> list[list[str]]:
    """Bytes of the index, a row by column: of a real one with one row group, written as `write_index` does."""
    count = GROUP
    row = np.arange(count)
    bits = [fold(fold(KEY, 5), np.uint64(k)) for k in range(4)]
    noise = [uniform(fold(int(one), row.astype(np.uint64))) for one in bits]
    levels = {"identity": 10_000, "camera": 16, "light": 32}
    factors = [Factor(name, Kind.NOMINAL, tuple(range(most))) for name, most in levels.items()]
    columns = {"identity": row // 100, "camera": (noise[0] * 16).astype(int), "light": (noise[1] * 32).astype(int)}
    table = FactorTable(
        [*factors, Factor("azimuth", Kind.CONTINUOUS, unit="deg")], {**columns, "azimuth": noise[2] * 360}
    )
    size = (plan.member * (0.5 + noise[3])).astype(np.int64)
    ends = np.cumsum(1536 + -(-size // 512) * 512)
    spans = {"image": Spans(ends % plan.shard, size, fold(KEY, row.astype(np.uint64)).astype(np.uint32))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.parquet"
        keys = [f"{one:010d}" for one in row.tolist()]
        write_index(path, [part(table, keys, ends // plan.shard, spans, source_rows=row)])
        group = pq.ParquetFile(path).metadata.row_group(0)
    stored = {
        one.path_in_schema: one.total_compressed_size / count for one in map(group.column, range(group.num_columns))
    }
    mapped = {one.name: 4 if one.continuous else code_dtype(len(one)).itemsize for one in table.factors}
    mapped |= {"__shard__": 4, "image.offset": 8, "image.size": 8, "image.check": 4}
    lines = [[f"`{name}`", stored[name], mapped.get(name, 0)] for name in stored]
    lines += [
        ["groups of a sampler, each list of factors", 0, 4],
        ["together", sum(stored.values()), sum(mapped.values()) + 4],
    ]
    return [
        ["column", "Parquet, bytes a row", "mapped, bytes a row", f"of {plan.rows:,} rows"],
        *(
            [name, f"{one:.2f}", str(two), f"{one * plan.rows / 1e9:.1f} GB, {two * plan.rows / 1e9:.0f} GB"]
            for name, one, two in lines
        ),
    ]


def requests_table(plan: Plan = PLAN) -> list[list[str]]:
    """Reads and bytes of a set."""
    lines = [["order of the shards", "reads a set", "drawn", "MB a set", "drawn", "MB wanted"]]
    for member in (plan.member, plan.member // 10):
        one = Plan(member=member)
        for order, group in ORDERS.items():
            said, seen = requests(one, group or one.rows), simulated_requests(one, group)
            numbers = [f"{said[0]:.1f}", f"{seen[0]:.1f}", f"{said[1] / 1e6:.1f}", f"{seen[1] / 1e6:.1f}"]
            lines.append([f"{order}, {member // 1000} kB", *numbers, f"{one.size * member / 1e6:.1f}"])
    return lines


def seconds_table(plan: Plan = PLAN) -> list[list[str]]:
    """Time of a batch, and what follows from it for a rank and for all."""
    heads = [
        "order of the shards",
        "reads a batch",
        "s a batch",
        "queue",
        "images/s",
        "workers",
        "reads/s of all",
        "prefixes",
    ]
    lines = [heads]
    for order, group in ORDERS.items():
        reads, read = (plan.sets * one for one in requests(plan, group or plan.rows))
        batch = seconds(plan, reads, read)
        images, wanted = plan.sets * plan.size / batch, plan.ranks * plan.images * reads / (plan.sets * plan.size)
        seen = simulated_seconds(plan, round(reads), read)
        about = [
            f"{images:,.0f}",
            f"{np.ceil(plan.images / images):.0f}",
            f"{wanted:,.0f}",
            f"{np.ceil(wanted / plan.limit):.0f}",
        ]
        lines.append([order, f"{reads:.0f}", f"{batch:.2f}", f"{seen:.2f}", *about])
    return lines


def store_table(plan: Plan = PLAN) -> list[list[str]]:
    """Requests a second of one prefix, by the number of ranks that draw from it."""
    lines = [["ranks, each with one thread", "reads/s asked for", "given", "queue"]]
    reads, read = 2 * plan.size, 2.0 * plan.size * plan.member
    batch = seconds(plan, reads, read)
    for ranks in (4, 16, 32, 64):
        said = rate(plan, ranks, batch, reads, plan.limit)
        seen = simulated_rate(plan, ranks, reads, read, plan.limit)
        lines.append([f"{ranks}", f"{ranks * reads / batch:,.0f}", f"{said:,.0f}", f"{seen:,.0f}"])
    return lines


def hits_table() -> list[list[str]]:
    """Share of what is drawn that the cache holds."""
    lines = [["cache, of what is drawn", "hits", "drawn, `by:`", "drawn, scattered"]]
    for share in (0.01, 0.1, 0.5):
        seen = [simulated_hits(share, scattered) for scattered in (False, True)]
        lines.append([f"{share:.0%}", f"{hits(share, 1.0):.0%}", *(f"{one:.1%}" for one in seen)])
    return lines


TABLES = {
    "index": index_table,
    "requests": requests_table,
    "seconds": seconds_table,
    "store": store_table,
    "hits": hits_table,
}


def markdown(lines: list[list[str]]) -> str:
    """Table for a page."""
    heads, *rest = lines
    return "\n".join(
        "| " + " | ".join(map(str, line)) + " |" for line in [heads, ["---"] + ["--:"] * (len(heads) - 1), *rest]
    )


if __name__ == "__main__":
    for name, table in TABLES.items():
        print(f"\n{name}\n{markdown(table())}")
