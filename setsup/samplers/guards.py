"""What every sampler does around the methods of its subclass: it checks steps, and reports where memory runs out."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from setsup.arrays import Steps
from setsup.errors import SamplerError, advice
from setsup.factors.table import FactorTable
from setsup.samplers.draw import Draw
from setsup.samplers.spelling import spell_name
from setsup.samplers.steps import check_steps

__all__ = ["out_of_memory", "with_checked_steps", "within_memory"]


def with_checked_steps(draws: Callable[[Any, Steps], Draw]) -> Callable[[Any, Steps], Draw]:
    """Make a sampler's ``draws`` refuse what are no steps of it."""

    @wraps(draws)
    def checked(self: Any, steps: Steps) -> Draw:
        return draws(self, check_steps(steps))

    return checked


def within_memory(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of a sampler raise SamplerError where memory runs out."""

    @wraps(method)
    def within(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except MemoryError as error:
            table = next((value for value in (*args[:1], *vars(self).values()) if isinstance(value, FactorTable)), None)
            rows = "its table" if table is None else f"a table of {len(table):,} rows"
            how = advice(
                "draw from a smaller table, for example from dataset.where(…)", "restrict the rows with --where"
            )
            raise SamplerError(
                f"not enough memory for {type(self).__name__} on {rows} ({error}); {how}, or use fewer factors"
            ) from None

    return within


def out_of_memory(steps: int, error: MemoryError) -> SamplerError:
    """The error of a draw of so many steps for which memory ran out."""
    return SamplerError(
        f"not enough memory to draw {steps:,} steps ({error}); draw fewer steps, or lower {spell_name('size')} or "
        f"{spell_name('sets')}"
    )
