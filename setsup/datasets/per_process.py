"""Values that each process makes for itself: open files, their locks, caches."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, TypeVar, overload

__all__ = ["per_process"]

T = TypeVar("T")


class per_process(Generic[T]):
    """A property that each process computes once, on first use and under a lock; it is not pickled.

    A forked child must not use its parent's HDF5 handles, nor locks that another thread of the parent held. ``del``
    forgets the value of this process.

    Examples
    --------
    >>> class Reader:
    ...     @per_process
    ...     def values(self):
    ...         print("opened")
    ...         return [1, 2]
    >>> reader = Reader()
    >>> reader.values, reader.values
    opened
    ([1, 2], [1, 2])

    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__
        self._name = make.__name__

    @overload
    def __get__(self, instance: None, owner: type) -> "per_process[T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> "per_process[T] | T":
        """Give the value of this process, made on first use."""
        if instance is None:
            return self
        slot = self._slot(instance)
        if not slot.made:
            with slot.lock:
                if not slot.made:  # another thread may have been faster
                    slot.value = self._make(instance)
                    slot.made = True
        value: T = slot.value
        return value

    def __delete__(self, instance: object) -> None:
        """Forget the value of this process."""
        instance.__dict__.pop(self._name, None)

    def _slot(self, instance: object) -> "_Slot":
        # dict.setdefault is atomic, so that two threads have one slot
        slots: _Slots = instance.__dict__.get(self._name) or instance.__dict__.setdefault(self._name, _Slots())
        return slots.get(os.getpid()) or slots.setdefault(os.getpid(), _Slot())


@dataclass(slots=True)
class _Slot:
    lock: Lock = field(default_factory=Lock)
    made: bool = False
    value: Any = None


class _Slots(dict[int, _Slot]):
    """Slots by process, which pickle as none."""

    def __reduce__(self) -> tuple[type["_Slots"], tuple[()]]:
        return _Slots, ()
