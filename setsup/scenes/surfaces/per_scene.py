"""What is made of a scene once, however often it is asked for, and goes with the scene."""

import os
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from setsup.scenes.scene import Scene

__all__ = ["PerScene"]

Made = TypeVar("Made")

_NOTHING = object()  # None may have been made


class PerScene(Generic[Made]):
    """Makes something of a scene when it is first asked for it; scenes count by identity.

    Safe to use from several threads, and after fork.

    Examples
    --------
    >>> names = PerScene(lambda scene: dict(scene.names))
    >>> scene = Scene()
    >>> names(scene) is names(scene)
    True

    """

    def __init__(self, make: Callable[[Scene], Made]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Scene, Made] = WeakKeyDictionary()
        self._begin()
        if hasattr(os, "register_at_fork"):
            # the thread that held the lock has stayed in the parent
            os.register_at_fork(after_in_child=self._begin)

    def __call__(self, scene: Scene) -> Made:
        """Give what was made of a scene."""
        made = self._made.get(scene, _NOTHING)
        if made is _NOTHING:
            with self._lock:
                made = self._made.get(scene, _NOTHING)
                if made is _NOTHING:
                    made = self._made[scene] = self._make(scene)
        return made  # type: ignore[return-value]

    def _begin(self) -> None:
        self._lock = Lock()
