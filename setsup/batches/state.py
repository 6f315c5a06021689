"""The position of batches: in their passes, and in the state of a checkpoint."""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Reals
from setsup.batches.differences import describe_labels, list_differences
from setsup.batches.passes import Passes, Position, rounds
from setsup.batches.trainers import Ranks
from setsup.batches.ways import NUMBERS, WAYS, Way
from setsup.checks import check_integer, is_integer
from setsup.errors import SamplerError, abbreviate, listed
from setsup.factors.table import FactorTable
from setsup.samplers.steps import LAST

__all__ = ["Pass", "Progress", "plain_arguments", "read_state"]

_log = logging.getLogger("setsup")
_DELIVERED = "delivered, the number of batches that arrived since the present loop began (0 again after a resume),"


@dataclass
class Pass:
    """A pass that runs, and the draws that were requested of it.

    Attributes
    ----------
    begin : Position
        Where it began.
    world, processes : int
        Shares that the batch sampler makes itself, and processes that draw: accelerate divides all draws of one share.
    epoch : int or None
        The epoch of Lightning for which it began, where worker processes requested it before Lightning announced it.
    requested : int
        Draws of this share so far.
    ended : bool
        Whether it was asked for more draws than there are.

    """

    begin: Position
    world: int
    processes: int
    epoch: int | None = None
    requested: int = 0
    ended: bool = False

    def place(self, passes: Passes, delivered: Any = None) -> Position:
        """The position: after so many batches of each process, or after those that were requested."""
        if delivered is not None:
            most = rounds(self.requested * self.world, self.processes)
            draws = check_integer(delivered, _DELIVERED, SamplerError, 0, most) * self.processes
            if self.ended and most and not draws:
                raise SamplerError(
                    "delivered=0 may mean the pass that has ended or the one that comes next; leave out delivered= "
                    "after a loop, or call set_epoch with the number of the next pass first"
                )
            # also where these are all: only the loop knows whether it went on to the next pass
            return passes.after(self.begin, draws, self.processes)
        place = passes.after(self.begin, self.requested * self.world, self.processes)
        return passes.start(place, place.number + 1, self.processes) if self.ended else place


class Progress:
    """The pass that runs, and the place where the next one begins.

    Attributes
    ----------
    live : Pass or None
        The pass that runs; None where none does, or another one was selected since.

    """

    def __init__(self, passes: Passes, start: int, epochs: int | None) -> None:
        self.passes, self.epochs = passes, epochs
        self.live: Pass | None = None
        self._start = start
        self._known: Position | None = None  # a place from which passes are counted; None: the start
        self._unused = True  # no pass has begun there, so its pass has only the rest
        self._selected: int | None = None  # the pass that comes next; None: that of the known place
        self._warned = False

    def next(self, processes: int) -> Position:
        """Where the next pass begins."""
        known = self._known_place(processes)
        if self._selected is None or (self._unused and self._selected == known.number):
            return known
        return self.passes.start(known, self._selected, processes)

    def _known_place(self, processes: int) -> Position:
        return self.passes.at(self._start, processes) if self._known is None else self._known

    def select(self, epoch: Any, processes: int) -> None:
        """Select the pass that comes next."""
        number = check_integer(epoch, "the number of a pass", SamplerError, 0, self.passes.most(processes))
        self._selected = number
        if self.live is not None and (self.live.ended or self.live.begin.number != number):
            self.live = None

    def begin(self, ranks: Ranks, epoch: int | None, skipping: int | None) -> Pass | None:
        """Begin the next pass, None where all are over; SamplerError where it does not fit into the stream.

        `epoch`, `skipping`: the number of the pass that Lightning requests, or accelerate skips the first batches of.
        """
        if epoch is not None and self.live is not None and self.live.epoch == epoch:  # Lightning makes two iterators
            self._known, self._unused, self._selected = self.live.begin, True, None
        else:
            for number in (epoch, skipping):
                if number is not None:
                    self.select(number, ranks.processes)
        begin = self.next(ranks.processes)
        if self.epochs is not None and begin.number >= self.epochs:
            self._warn_of_end()
            return None
        left = rounds(self.passes.end(begin, ranks.processes) - begin.draw, ranks.processes)
        if begin.draw + left * ranks.processes > LAST:
            raise SamplerError(
                f"pass {begin.number:,} would have draws beyond 2⁶³, where the stream ends; begin with an earlier one, "
                "by start= or set_epoch"
            )
        if self._unused:
            self._warn_of_position(begin.number, self._known_place(ranks.processes).number)
        self._known, self._unused, self._selected = begin, False, begin.number + 1
        self.live = Pass(begin, ranks.world, ranks.processes, epoch)
        return self.live

    @staticmethod
    def _warn_of_position(number: int, known: int) -> None:
        if number < known:
            _log.warning(
                "pass %d was selected, so the position in pass %d, which was loaded or given as start=, is ignored; "
                "begin the loop over epochs with epoch %d",
                number,
                known,
                known,
            )

    def _warn_of_end(self) -> None:
        if not self._warned:
            _log.warning(
                "all epochs=%d passes are over, so this loop has no batches; pass a larger epochs=, or None for passes "
                "without end",
                self.epochs,
            )
        self._warned = True

    def place(self, delivered: Any, processes: int) -> Position:
        """The position for a checkpoint."""
        if self.live is not None:
            return self.live.place(self.passes, delivered)
        if delivered is not None and not (is_integer(delivered) and delivered == 0):
            raise SamplerError(
                f"delivered={abbreviate(delivered)} is impossible, because no batches were requested since this pass "
                "was selected or loaded; count only the batches of the present loop"
            )
        return self.next(processes)

    def load(self, position: Position) -> None:
        """Go to the position of a checkpoint."""
        self.live = None
        self._known, self._unused, self._selected = position, True, None


def plain_arguments(
    way: Way, names: tuple[Any, ...], options: Mapping[str, Any], steps: int | None, weights: Reals | None
) -> dict[str, Any]:
    """All that draws depend on but the labels, as plain data.

    Of weights, a digest of the numbers that draws are made with, so that 2 and 2.0 are the same.
    """
    kinds: dict[str, type[Any]] = {"shuffle": bool, "drop_last": bool, "seed": int}
    if way.option != "batch_size":
        kinds = {"on_small_group": str, "seed": int}
    found: dict[str, Any] = {**way.arguments, **({"columns": list(names)} if names else {})}
    found |= {name: kind(options[name]) for name, kind in kinds.items()}
    if steps is not None:
        found["steps"] = steps
    if weights is not None:
        numbers = np.ascontiguousarray(weights, np.float64)
        found["weights"] = hashlib.blake2b(numbers.tobytes(), digest_size=8).hexdigest()
    return found


def read_state(
    state: Any, table: FactorTable, names: tuple[str, ...], arguments: Mapping[str, Any], passes: Passes
) -> Position:
    """Position of a state; SamplerError if it is none, or of other labels or arguments."""
    keys = ("delivered", "pass", "steps")
    numbers = [state.get(key) for key in keys] if isinstance(state, Mapping) else []
    whole = [int(number) for number in numbers if is_integer(number) and 0 <= number < LAST]
    if len(whole) != len(keys) or "fingerprint" not in state or not isinstance(state.get("arguments"), Mapping):
        raise SamplerError(
            "the state of a batch sampler must have delivered, pass, steps, fingerprint and arguments, as "
            f"state_dict() returns them, not {abbreviate(state)}; to resume from a position of setsup.loader, pass "
            "its number of draws as start="
        )
    draw, number, done = whole
    saved = state["arguments"]
    then, now = _different_arguments(saved, arguments)
    others = f"{then}, but this batch sampler has {now}"
    if not table.has_fingerprint(state["fingerprint"]):
        how = _different_labels(state.get("labels"), table, names, arguments)
        if how or saved.get("weights") == arguments.get("weights"):  # else a column of weights makes other labels
            labels = ", ".join(how) or "the same values in another order"
            raise SamplerError(
                f"the state at draw {draw:,} was saved with other labels ({labels})"
                f"{f', and with {others}' if then else ''}; load it into a batch sampler of the same labels, in the "
                f"same order{', with the same arguments' if then else ''}"
            )
    if then:
        raise SamplerError(
            f"the state at draw {draw:,} was saved with {others}; create it with the same arguments, or pass "
            f"start={draw} to begin there"
        )
    if passes.steps is None and not number * passes.draws <= draw <= (number + 1) * passes.draws:
        raise SamplerError(
            f"the state is damaged: draw {draw:,} lies outside pass {number:,}, which has {passes.draws:,} draws; load "
            f"the state of another checkpoint, or pass start={draw}"
        )
    return Position(number, draw, done)


def _different_labels(
    saved: Any, table: FactorTable, names: tuple[str, ...], arguments: Mapping[str, Any]
) -> list[str]:
    """What differs between the labels of a state and a table, in words; none where these are the same in any order."""
    if saved is None:
        return ["which ones, a state of an earlier version does not say"]
    found = list_differences(saved, describe_labels(table, names), "domains" if "domains" in arguments else "classes")
    if not found and not names:
        return ["as many rows, but other values or another order"]
    if not found and len(table.names) > len(names) and "weights" not in arguments:
        return [f"the same values of {listed(names)} in another order, or other values of another column"]
    return found


def _different_arguments(saved: Mapping[str, Any], present: Mapping[str, Any]) -> tuple[str, str]:
    """What differs between arguments, as the caller writes them; where batches are drawn in another way, that alone."""
    other = [name for name in {**saved, **present} if saved.get(name) != present.get(name)]
    ways = [next((name for name in WAYS if name in one), None) for one in (saved, present)]
    if ways[0] != ways[1]:
        then, now = ([name for name in NUMBERS if name in one] for one in (saved, present))
        return _words(saved, then), _words(present, now)
    return _words(saved, other), _words(present, other)


def _words(arguments: Mapping[str, Any], names: list[str]) -> str:
    """Arguments as the caller writes them; of weights, the digest."""
    values = {name: arguments.get(name) for name in names}
    return ", ".join(
        f"weights with the digest {value}" if name == "weights" and value else f"{name}={abbreviate(value)}"
        for name, value in values.items()
    )
