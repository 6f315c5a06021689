"""Arguments that a function does not have, such as those of torch: what serves for them here."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from setsup.errors import UsageError, did_you_mean

__all__ = ["explains_foreign", "refuse_foreign"]

P = ParamSpec("P")
T = TypeVar("T")

_ELSEWHERE = {
    "batch_size": "pass the number of rows to the sampler as size= and, if it draws several sets, sets=",
    "shuffle": "samplers draw at random from seed=; for passes over all rows in a new order each time, use "
    "EpochSampler",
    "num_workers": "pass workers= to setsup.loader",
    "drop_last": 'pass partial="drop" or "pad" to EpochSampler',
    "collate_fn": "pass transform=, a function of whole batches, to setsup.loader",
    "prefetch_factor": "pass prefetch=, a number of batches, to setsup.loader",
    "pin_memory": 'pass to="cuda" to setsup.loader for batches on that device',
    "worker_init_fn": "workers have no random state to seed; leave it out",
    "generator": "pass seed= to the sampler; draws depend only on the seed and the step",
    "batch_sampler": "pass the sampler to setsup.loader as its second argument",
    "fixed": "pass factors that sets fix as inactive=",
    "varying": "pass factors that vary as active=",
}
"""What serves here for arguments that torch and others have."""


def refuse_foreign(function: Any, given: Mapping[str, Any], fix: str = "") -> None:
    """Refuse arguments that a function does not have: say what serves for those of torch, and what is close to others.

    Parameters
    ----------
    function : callable
        One without arguments of any name, or nothing is refused.
    given : mapping of str to object
        Keyword arguments.
    fix : str
        What is said of all of torch's arguments, in place of what serves for each.

    """
    parameters = inspect.signature(function).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    known = [name for name in parameters if name != "self"]
    for name in given:
        if name not in known:
            called = function.__qualname__.removesuffix(".__init__")
            if name in _ELSEWHERE:
                raise UsageError(f"{called} got an unexpected keyword argument {name!r}; {fix or _ELSEWHERE[name]}")
            raise UsageError(f"{called} got an unexpected keyword argument {name!r}{did_you_mean(name, known)}")


def explains_foreign(fix: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function say of arguments that it does not have what :func:`refuse_foreign` says."""

    def with_sentence(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def explained(*args: P.args, **given: P.kwargs) -> T:
            refuse_foreign(function, given, fix)
            return function(*args, **given)

        return explained

    return with_sentence
