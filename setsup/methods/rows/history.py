"""Values of an array at an earlier moment, as long as something needs them."""

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from torch import Tensor

__all__ = ["History", "Moment"]


class Moment:
    """How many writes there had been."""

    def __init__(self, number: int) -> None:
        self.number = number


class History:
    """What was written over, while there are moments to go back to: backward passes that still need the values."""

    def __init__(self) -> None:
        self._log: list[tuple[Tensor, Tensor]] = []
        self._moments: WeakSet[Moment] = WeakSet()

    def now(self) -> Moment:
        """Moment to go back to, as long as the object is kept."""
        if not self._moments:
            self._log.clear()
        moment = Moment(len(self._log))
        self._moments.add(moment)
        return moment

    def record(self, values: Tensor, places: Tensor) -> None:
        """Keep what is at places, each named once, that are about to be written."""
        if self._moments:
            self._log.append((places, values[places]))

    def clear(self) -> None:
        """Forget all: the values are others now."""
        self._log.clear()

    @contextmanager
    def as_of(self, moment: Moment, values: Tensor) -> Iterator[None]:
        """Let an array have the values of a moment for a while."""
        since = self._log[moment.number :]
        now = [(places, values[places]) for places, _ in since]
        for places, before in reversed(since):
            values[places] = before
        try:
            yield
        finally:
            for places, value in now:
                values[places] = value
