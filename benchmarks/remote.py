"""Shards in a store that answers 20 ms late: time against bare clients that ask for the same ranges, and requests.

The store is a server on this machine (``remote_server.py``), on another core. Ranges are those that it saw of ours; the
bare clients ask for them with as many requests under way, and throw away what they get.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import setsup
from benchmarks.fetch import SIZE
from benchmarks.measure import Side, Spread, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.remote_server import BUCKET, Request, Served, served
from benchmarks.rows import Row, at_least, rate
from benchmarks.shards import PER_SHARD, pictures
from setsup.datasets import Dataset
from setsup.files import cache_folder
from setsup.shards.opening import open_shards
from setsup.shards.stores.ranges import AT_ONCE
from setsup.shards.stores.reader import FOLDER
from setsup.shards.writing.writer import write_shards

__all__ = ["rows"]

TOPIC = "remote"
LATENCY = 0.02
HELD = sized(("wall_hue", "shape"), ("shape",))
ORDERS = {"scattered": "shuffle", "by group": f"by:{','.join(HELD)}"}
SCHEMES = ("s3", "http")
SETS = sized(12, 2)
CLOCK: dict[str, Any] = {"clock": time.perf_counter, "blocks": 9, "seconds": 0.5}
KEYS = {"key": "bench", "secret": "bench"}

Sets = npt.NDArray[np.int64]
Clients = dict[str, Callable[[Sequence[Request]], Any]]


def rows(full: bool) -> Iterator[Row]:
    drawn = pictures()
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        for order, option in ORDERS.items():
            write_shards(drawn, Path(name) / order.replace(" ", "-"), order=option, format="npy", per_shard=PER_SHARD)
        with served(Path(name), LATENCY) as store:
            # all are held to the end: s3fs closes connections of what is let go in whatever event loop runs then
            opened = {(scheme, order): _opened(store, scheme, order, cache=0) for scheme in SCHEMES for order in ORDERS}
            yield from _requests(store, {order: opened["s3", order] for order in ORDERS})
            for (scheme, order), dataset in opened.items():
                yield from _against_bare(store, dataset, scheme, order)
            for order in ORDERS:
                yield from _cached(store, opened["s3", order], order)


def _opened(store: Served, scheme: str, order: str, **options: Any) -> Dataset:
    folder = order.replace(" ", "-")
    if scheme == "http":
        return open_shards(f"{store.endpoint}/{BUCKET}/{folder}", **options)
    given = {**KEYS, "client_kwargs": {"endpoint_url": store.endpoint, "region_name": "us-east-1"}}
    return open_shards(f"s3://{BUCKET}/{folder}", storage_options=given, **options)


def _drawn(dataset: Dataset) -> Sets:
    """Sets that hold two factors, (SETS, SIZE)."""
    sampler = setsup.SetSampler(dataset.factors, inactive=list(HELD), size=SIZE, sets=1, on_small_group="drop")
    return np.concatenate([sampler[step].indices for step in range(SETS)])


def _ranges(store: Served, dataset: Dataset, sets: Sets) -> list[list[Request]]:
    """What the server sees of each set; the first of all goes ahead uncounted."""
    dataset.fetch(sets[0])
    store.log()
    found = []
    for rows in sets:
        dataset.fetch(rows)
        found.append([request for request in store.log() if request.path.endswith(".tar")])
    return found


def _requests(store: Served, opened: dict[str, Dataset]) -> Iterator[Row]:
    """Requests and bytes for a set, as the server counts them, without a cache."""
    counts, sizes = {}, {}
    for order, dataset in opened.items():
        found = _ranges(store, dataset, _drawn(dataset))
        counts[order] = np.array([len(ranges) for ranges in found], np.float64)
        sizes[order] = np.array([sum(one.stop - one.start for one in ranges) for ranges in found]) / 1e6
    what = f"requests for a set of {SIZE} that holds {' and '.join(HELD)}"
    for name, found, unit, bound in (
        (what, counts, "requests", at_least(5)),
        (what.replace("requests", "bytes"), sizes, "MB", None),
    ):
        said = (
            f"by group {found['by group'].mean():.3g} {unit}",
            "scattered",
            f"{found['scattered'].mean():.3g} {unit}",
        )
        yield Row(TOPIC, name, *said, Spread.of(found["scattered"] / found["by group"]), "×", bound)


def _against_bare(store: Served, dataset: Dataset, scheme: str, order: str) -> Iterator[Row]:
    """Share of what a bare client does, in per cent."""
    sets = _drawn(dataset)
    ranges = _ranges(store, dataset, sets)
    turns = cycle(sets)
    with asyncio.Runner() as runner:
        stack = runner.run(_entered())
        try:
            clients = runner.run(_clients(stack, store, scheme))
            sides = {"ours": Side(lambda: dataset.fetch(next(turns)), SIZE)}
            for name, ask in clients.items():
                sides[name] = Side(_replay(runner, ask, ranges), SIZE)
            if scheme == "s3" and (s3fs := peer("s3fs")) is not None:
                sides["s3fs, cat_ranges"] = Side(_by_s3fs(s3fs, store, ranges), SIZE)
            found = alternate(sides, **CLOCK)
        finally:
            runner.run(stack.aclose())
    mean = np.mean([len(one) for one in ranges])
    what = f"sets of {SIZE} over {scheme}, {order}, {mean:.3g} requests each, {LATENCY * 1e3:.0f} ms late, no cache"
    for name in list(sides)[1:]:
        share = ratio(100 * found[name], found["ours"])
        said = rate(found["ours"], "images"), f"{name}, the same ranges", rate(found[name], "images")
        yield Row(TOPIC, what, *said, share, "%", at_least(80) if name in clients else None)


async def _entered() -> AsyncExitStack:
    return await AsyncExitStack().__aenter__()


async def _clients(stack: AsyncExitStack, store: Served, scheme: str) -> Clients:
    """Bare clients, each with connections of its own that stay open."""
    import aiohttp

    session = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=AT_ONCE)))

    async def by_aiohttp(request: Request) -> int:
        wanted = {"Range": f"bytes={request.start}-{request.stop - 1}"}
        async with session.get(f"{store.endpoint}{request.path}", headers=wanted) as answer:
            return len(await answer.read())

    found: Clients = {"aiohttp": by_aiohttp}
    if scheme == "s3":
        from aiobotocore.config import AioConfig
        from aiobotocore.session import get_session

        given = {
            "endpoint_url": store.endpoint,
            "region_name": "us-east-1",
            "config": AioConfig(max_pool_connections=AT_ONCE),
        }
        keys = {"aws_access_key_id": KEYS["key"], "aws_secret_access_key": KEYS["secret"]}
        client = await stack.enter_async_context(get_session().create_client("s3", **given, **keys))

        async def by_aiobotocore(request: Request) -> int:
            wanted = f"bytes={request.start}-{request.stop - 1}"
            key = request.path.removeprefix(f"/{BUCKET}/")
            answer = await client.get_object(Bucket=BUCKET, Key=key, Range=wanted)
            return len(await answer["Body"].read())

        found["aiobotocore"] = by_aiobotocore
    return found


def _replay(
    runner: asyncio.Runner, ask: Callable[[Request], Any], ranges: Sequence[list[Request]]
) -> Callable[[], Any]:
    """Ask for the ranges of one set after the other, as many at once as ours does."""
    turns = cycle(ranges)

    async def all_of(requests: list[Request]) -> None:
        waiting = iter(requests)

        async def work() -> None:
            for request in waiting:
                if await ask(request) != request.stop - request.start:
                    raise RuntimeError(f"the server gave another number of bytes for {request}")

        await asyncio.gather(*(work() for _ in range(min(AT_ONCE, len(requests)))))

    return lambda: runner.run(all_of(next(turns)))


def _by_s3fs(s3fs: Any, store: Served, ranges: Sequence[list[Request]]) -> Callable[[], Any]:
    given = {"client_kwargs": {"endpoint_url": store.endpoint, "region_name": "us-east-1"}}
    system = s3fs.S3FileSystem(**KEYS, **given, config_kwargs={"max_pool_connections": AT_ONCE})
    turns = cycle(ranges)

    def ask() -> Any:
        paths, starts, stops = zip(*((one.path[1:], one.start, one.stop) for one in next(turns)), strict=True)
        return system.cat_ranges(list(paths), list(starts), list(stops), batch_size=AT_ONCE)

    return ask


def _cached(store: Served, bare: Dataset, order: str) -> Iterator[Row]:
    """Sets for the first time, and again, with a cache that is large enough; against no cache."""
    sets = _drawn(bare)
    opened: list[Dataset] = []

    def anew() -> None:
        shutil.rmtree(cache_folder() / FOLDER, ignore_errors=True)
        opened.append(_opened(store, "s3", order))
        opened[-1].source_rows(0)  # the index is there; and connections are
        store.log()

    def over(dataset: Dataset) -> None:
        for rows in sets:
            dataset.fetch(rows)

    anew()
    sides = {
        "none": Side(lambda: over(bare), sets.size, before=lambda: None),
        "cold": Side(lambda: over(opened[-1]), sets.size, before=anew),
        "warm": Side(lambda: over(opened[-1]), sets.size, before=store.log),  # the turn before has read all of it
    }
    found = alternate(sides, **{**CLOCK, "blocks": 5, "warm": False})
    again = len([request for request in store.log() if request.path.endswith(".tar")])
    for name, what in (("cold", "for the first time"), ("warm", f"again: {again} requests")):
        said = rate(found[name], "images"), "the same without a cache", rate(found["none"], "images")
        what = f"sets of {SIZE} over s3, {order}, with a cache, {what}"
        yield Row(TOPIC, what, *said, ratio(found["none"], found[name]))
