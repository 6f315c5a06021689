"""Passes over an endless stream of draws, shared by several processes: arithmetic only, no state.

A stream of draws has global steps 0, 1, 2, …; a pass is a stretch of it. In a pass that is at global step s, process r
of w takes the steps s + r, s + r + w, …; where the last of these rounds has fewer draws than processes, the others
repeat the last draw, so that all have equally many.
"""

from dataclasses import dataclass

import numpy as np

from setsup.arrays import Steps
from setsup.html import counted
from setsup.samplers.steps import LAST

__all__ = ["Passes", "Position", "count_repeats", "describe_pass", "rounds", "share"]


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the stream.

    Attributes
    ----------
    number : int
        The pass, from 0.
    draw : int
        The next global step; at the end of the pass, the first one behind it.
    done : int
        Batches that each process had in this pass.

    """

    number: int
    draw: int
    done: int = 0


@dataclass(frozen=True, slots=True)
class Passes:
    """The length of passes.

    Attributes
    ----------
    draws : int
        Draws of all processes together: pass p has the global steps p·draws to (p + 1)·draws − 1.
    steps : int or None
        Batches of each process, instead: a pass then has that many draws times the processes.

    """

    draws: int
    steps: int | None = None

    def length(self, processes: int) -> int:
        """Draws of a pass.

        Examples
        --------
        >>> Passes(10).length(4), Passes(10, steps=3).length(4)
        (10, 12)

        """
        return self.draws if self.steps is None else self.steps * processes

    def most(self, processes: int) -> int:
        """Last pass of which all global steps are below 2⁶³."""
        return max(LAST // self.length(processes) - 1, 0)

    def at(self, draw: int, processes: int) -> Position:
        """Place of a global step, counted from the start of pass 0.

        Examples
        --------
        >>> Passes(10).at(27, 2), Passes(10, steps=3).at(14, 4)
        (Position(number=2, draw=27, done=3), Position(number=1, draw=14, done=0))

        """
        length = self.length(processes)
        number, inside = divmod(draw, length)
        return Position(number, draw, rounds(length, processes) - rounds(length - inside, processes))

    def end(self, position: Position, processes: int) -> int:
        """The global step behind the pass that a place lies in.

        Examples
        --------
        >>> Passes(10).end(Position(2, 27), 2), Passes(10, steps=3).end(Position(0, 8, done=2), 5)
        (30, 13)

        """
        if self.steps is None:
            return (position.number + 1) * self.draws
        # wherever the pass began: with another number of processes, its rest has the steps that are left
        return position.draw + max(self.steps - position.done, 0) * processes

    def start(self, near: Position, number: int, processes: int) -> Position:
        """Start of a pass; `near` is a place in any pass.

        From the pass of `near` on, passes of so many steps follow its rest without a gap, whatever number of processes
        drew before. Where an earlier one began is not known, so it is taken for one of these processes from the first.

        Examples
        --------
        >>> Passes(10).start(Position(2, 27), 4, 2), Passes(10, steps=3).start(Position(0, 8, done=2), 1, 5)
        (Position(number=4, draw=40, done=0), Position(number=1, draw=13, done=0))
        >>> Passes(10, steps=3).start(Position(2, 24), 1, 3)
        Position(number=1, draw=9, done=0)

        """
        if self.steps is None or number < near.number or not number:
            return Position(number, number * self.length(processes))
        draw = near.draw + ((number - near.number) * self.steps - near.done) * processes
        return Position(number, draw if draw >= 0 else number * self.steps * processes)

    def after(self, position: Position, draws: int, processes: int) -> Position:
        """The place after some more draws of all processes together, at most the end of the pass.

        Examples
        --------
        >>> Passes(10).after(Position(2, 27, done=4), 2, 2), Passes(10).after(Position(2, 27, done=4), 9, 2)
        (Position(number=2, draw=29, done=5), Position(number=2, draw=30, done=6))

        """
        draws = min(draws, self.end(position, processes) - position.draw)
        return Position(position.number, position.draw + draws, position.done + rounds(draws, processes))


def rounds(draws: int, processes: int) -> int:
    """Batches of each process for so many draws: ⌈draws/processes⌉."""
    return -(-draws // processes)


def count_repeats(draws: int, processes: int) -> int:
    """Processes without a draw of their own in the last round.

    Examples
    --------
    >>> count_repeats(10, 4), count_repeats(8, 4)
    (2, 0)

    """
    return -draws % processes


def describe_pass(passes: Passes, processes: int) -> list[str]:
    """Length of a pass, and how it is divided, for a report.

    Examples
    --------
    >>> describe_pass(Passes(10), 3)[0]
    'a pass has 10 batches, 4 for each of 3 ranks'

    """
    draws = passes.length(processes)
    each = f", {rounds(draws, processes):,} for each of {processes:,} ranks" if processes > 1 else ""
    notes = [f"a pass has {counted(draws, 'batch', 'batches')}{each}"]
    if idle := count_repeats(draws, processes):
        last = "rank has" if idle == 1 else "ranks have"
        notes.append(
            f"{idle:,} {last} no batch left in the last round of a pass, and repeat{'s' * (idle == 1)} the last one"
        )
    return notes


def share(first: int, end: int, rank: int, world: int, begin: int, stop: int) -> Steps:
    """Global steps of a rank's batches begin … stop − 1, for a pass that is at ``first``: (stop − begin,) int64.

    Examples
    --------
    >>> [share(0, 5, rank, 2, 0, 3).tolist() for rank in range(2)]
    [[0, 2, 4], [1, 3, 4]]

    """
    return np.minimum(first + rank + np.arange(begin, stop, dtype=np.int64) * world, end - 1)
