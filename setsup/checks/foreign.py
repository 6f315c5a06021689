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
    "batch_size": "the sampler says how many rows a batch has, with size= and, where it draws several sets, sets=",
    "shuffle": "samplers draw at random by seed=; EpochSampler passes over all rows, each time in another order",
    "num_workers": "setsup.loader takes workers=",
    "drop_last": 'EpochSampler takes partial="drop" or "pad"',
    "collate_fn": "setsup.loader takes transform=, a function of whole batches",
    "prefetch_factor": "setsup.loader takes prefetch=, a number of batches",
    "pin_memory": 'setsup.loader takes to="cuda", and gives batches on that device',
    "worker_init_fn": "draws depend on no state of a worker, so that there is nothing to seed",
    "generator": "samplers take seed=, and depend on it and the step alone",
    "batch_sampler": "setsup.loader takes the sampler as its second argument",
    "fixed": "factors that are fixed in each set are named by inactive=",
    "varying": "factors that vary are named by active=",
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
                raise UsageError(f"{called} takes no {name}=; {fix or _ELSEWHERE[name]}")
            raise UsageError(f"{called} takes no {name}={did_you_mean(name, known)}")


def explains_foreign(fix: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function say of arguments that it does not have what :func:`refuse_foreign` says."""

    def with_sentence(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def explained(*args: P.args, **given: P.kwargs) -> T:
            refuse_foreign(function, given, fix)
            return function(*args, **given)

        return explained

    return with_sentence
