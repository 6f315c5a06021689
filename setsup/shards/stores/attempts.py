"""Requests to a store: many at once, repeated where the failure may be temporary, and refused in one sentence."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, NoReturn, TypeVar

from setsup.errors import DataError
from setsup.shards.stores.errors import CutShort, Failure, NotThere, classify, format_error
from setsup.shards.stores.file_system import SECONDS
from setsup.shards.stores.ranges import AT_ONCE
from setsup.shards.stores.store import join_address

__all__ = ["SILENCE", "WAITS", "Attempts", "Request"]

Result = TypeVar("Result")

WAITS = (0.5, 2.0, 6.0)
"""Seconds before the second, third and fourth attempt; only two attempts if the store has never answered."""

SILENCE = 10.0
"""Seconds without an answer until the log says so."""

_RATE = 50_000.0  # bytes per second: extra time that a request gets for its content
_ONCE = ("gs", "gcs", "hf", "memory")  # a single attempt: their libraries retry, or cannot fail temporarily
_log = logging.getLogger("setsup")


class Request(NamedTuple):
    """An asynchronous request: the name of the file, the bytes to come, and what starts an attempt."""

    name: str
    size: int
    start: Callable[[], Awaitable[Any]]


class Attempts:
    """Makes the requests to one store."""

    def __init__(self, url: str, scheme: str) -> None:
        self._url, self._scheme = url, scheme
        self._answered = 0  # requests so far

    def call(
        self,
        name: str,
        request: Callable[[], Result],
        turn: AbstractContextManager[Any] | None = None,
        *,
        missing: bool = False,
        exists: bool = False,
    ) -> Result | None:
        """Result of a synchronous request; with `missing` or `exists`, None if the file is missing or exists."""
        for wait in self._waits():
            try:
                with turn or nullcontext():
                    done = request()
                self._answered += 1
                return done
            except Exception as error:
                failure = classify(error, self._scheme)
                if (missing and failure.missing) or (exists and failure.exists):
                    return None
                seconds = self._retry_delay(name, failure, wait, error)
            time.sleep(seconds)
        raise AssertionError  # pragma: no cover - the last wait is None

    def gather(self, requests: Sequence[Request], loop: asyncio.AbstractEventLoop) -> list[Any]:
        """Results of requests, in order; at most :data:`AT_ONCE` run together, and the first failure ends all."""
        results: list[Any] = [None] * len(requests)
        waiting = iter(range(len(requests)))

        async def work() -> None:
            for index in waiting:
                results[index] = await self._call_async(requests[index])

        async def all_of_them() -> None:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(AT_ONCE, len(requests))):
                    group.create_task(work())

        running = asyncio.run_coroutine_threadsafe(all_of_them(), loop)
        try:
            self._wait(running)
        except BaseExceptionGroup as errors:  # any of them tells as much as all
            raise errors.exceptions[0] from errors.exceptions[0].__cause__
        except BaseException:
            running.cancel()
            raise
        return results

    def refuse(self, name: str, error: Exception) -> NoReturn:
        """Raise the DataError of an exception of the store's library."""
        self._refuse(name, classify(error, self._scheme), error)

    def _wait(self, running: Future[None]) -> None:
        """Wait for requests; log once if none is answered for a while."""
        warned = False
        while True:
            before = self._answered
            try:
                return running.result(None if warned else SILENCE)
            except TimeoutError:
                if running.done():
                    raise
            if self._answered == before:
                warned = True
                _log.warning(
                    "%s has not responded for %.0f s; giving up after about %.0f s",
                    *(self._url, SILENCE, (len(WAITS) + 1 if before else 2) * SECONDS),
                )

    async def _call_async(self, request: Request) -> Any:
        for wait in self._waits():
            try:
                async with asyncio.timeout(SECONDS + request.size / _RATE):
                    result = await request.start()
                self._answered += 1
                return result
            except Exception as error:
                seconds = self._retry_delay(request.name, classify(error, self._scheme), wait, error)
            await asyncio.sleep(seconds)
        raise AssertionError  # pragma: no cover - the last wait is None

    def _retry_delay(self, name: str, failure: Failure, wait: float | None, error: Exception) -> float:
        """Seconds until the next attempt; raises if another attempt is useless."""
        retry_once = failure.retry_once or (failure.timeout and not self._answered)
        if wait is None or not failure.retry or (retry_once and wait != WAITS[0]):
            self._refuse(name, failure, error)
        _log.info("%s %s; trying again in %.1f s", self._address(name), failure.text, wait)
        return wait

    def _waits(self) -> Iterator[float | None]:
        yield from () if self._scheme in _ONCE else WAITS
        yield None

    def _refuse(self, name: str, failure: Failure, error: Exception) -> NoReturn:
        if _log.isEnabledFor(logging.DEBUG):  # for those who look for a fault in a library
            _log.debug("%s: %s", self._address(name), format_error(error))
        kind = CutShort if failure.truncated else NotThere if failure.missing else DataError
        raise kind(f"{self._address(name)} {failure.text}") from (error if failure.unknown else None)

    def _address(self, name: str) -> str:
        return join_address(self._url, name) if name else self._url
