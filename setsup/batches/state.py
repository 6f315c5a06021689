"""The position of batches: in a pass that has begun, and in the state of a checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from setsup.batches.passes import Passes, Position, rounds
from setsup.checks import check_integer, is_integer
from setsup.errors import SamplerError, abbreviate
from setsup.samplers.steps import LAST

__all__ = ["BegunPass", "read_state"]

_DELIVERED = "delivered, the batches of the present loop that arrived, of those requested,"


@dataclass
class BegunPass:
    """A pass that has begun, and the draws that were requested of it.

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
            # also where these are all: only the loop knows whether it went on to the next pass
            return passes.after(self.begin, draws, self.processes)
        place = passes.after(self.begin, self.requested * self.world, self.processes)
        return passes.start(place, place.number + 1, self.processes) if self.ended else place


def read_state(state: Any) -> tuple[int, int, int]:
    """Draw, pass and steps of a state; SamplerError if it is none."""
    keys = ("delivered", "pass", "steps")
    numbers = [state.get(key) for key in keys] if isinstance(state, Mapping) else []
    whole = [int(number) for number in numbers if is_integer(number) and 0 <= number < LAST]
    if len(whole) != len(keys) or not {"fingerprint", "arguments"} <= set(state):
        raise SamplerError(
            "the state of a batch sampler must have delivered, pass, steps, fingerprint and arguments, as "
            f"state_dict() returns them, not {abbreviate(state)}; to resume from a position of setsup.loader, pass "
            "its number of draws as start="
        )
    draw, number, done = whole
    return draw, number, done
