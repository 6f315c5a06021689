"""The last results of what is costly to compute, by what was asked."""

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Recent"]

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Results by their keys, at most so many: those that were asked for last.

    Threads may share it: one makes the result of a key, and others that ask for it meanwhile wait for that one.
    """

    def __init__(self, most: int) -> None:
        self._most, self._kept, self._lock = most, OrderedDict[Key, Future[Value]](), Lock()

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The result of a key, made where it is not kept; an error is raised to all who wait for it, and not kept."""
        with self._lock:
            future = self._kept.get(key)
            mine = future is None
            if future is None:
                future = self._kept[key] = Future()
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        if mine:
            try:
                future.set_result(make())  # without the lock, so that other keys are answered meanwhile
            except BaseException as error:
                with self._lock:
                    if self._kept.get(key) is future:
                        del self._kept[key]
                future.set_exception(error)
        return future.result()
