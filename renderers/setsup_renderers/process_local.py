"""The contexts of OpenGL that a process has, of which none survives a fork."""

import os
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from setsup.errors import DataError, SetsupError

__all__ = ["OfProcess", "inherited", "refuse_forked"]

Context = TypeVar("Context")

_started: set[str] = set()  # renderers that have loaded a driver in this process
_inherited: set[str] = set()  # and those that had, in a process that this one was forked from


class OfProcess(Generic[Context]):
    """Holds the one context of a renderer that a process makes when it first draws.

    Attributes
    ----------
    made : Context or None
        What this process has made.

    """

    made: Context | None

    def __init__(self, name: str) -> None:
        self._name = name
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def get(self, make: Callable[[], Context]) -> Context:
        """Give what was made, or make it."""
        with self._lock:
            refuse_forked()
            if self.made is None:
                _started.add(self._name)  # from here on a fork would find half a driver
                try:
                    self.made = make()
                except SetsupError:
                    _started.discard(self._name)
                    raise
            return self.made

    def _begin(self) -> None:
        self._lock = Lock()
        self.made = None


def inherited() -> bool:
    """Whether this process was forked from one that had rendered with OpenGL, by whatever renderer."""
    return bool(_inherited)


def refuse_forked() -> None:
    """Refuse to draw in such a process."""
    if _inherited:
        raise DataError(
            f"this process was forked after rendering with {' and '.join(sorted(_inherited))}, and OpenGL does "
            "not work after a fork; start processes with multiprocessing.get_context('spawn')"
        )


def _forked() -> None:
    _inherited.update(_started)
    _started.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
