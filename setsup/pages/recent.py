"""The last results of what is costly to compute, by what was asked."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Recent"]

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Results by their keys, at most so many: those that were asked for last. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most, self._kept, self._lock = most, OrderedDict[Key, Value](), Lock()

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The result of a key, made where it is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = make()  # without the lock, so that other questions are answered meanwhile
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found
