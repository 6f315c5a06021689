"""Functions, data and results on their way between processes, pickled by one of our own and opened by another."""

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import cloudpickle

from setsup.errors import SetsupError

__all__ = ["describe", "load_function", "open_result", "pack", "run_unit", "to_portable"]


def pack(thing: Any) -> bytes:
    """Pickle a function or the data of a unit."""
    try:
        packed: bytes = cloudpickle.dumps(thing)
    except Exception as error:
        raise SetsupError(
            f"the work cannot be sent to other processes ({describe(error)}); remove open files, locks and generators "
            "from it, or use one process"
        ) from None
    return packed


def load_function(sent: bytes) -> Callable[[Any], Any]:
    """Open a function that was sent; where that fails, a function that raises the error."""
    try:
        function: Callable[[Any], Any] = pickle.loads(sent)  # noqa: S301 - who started this process wrote it
    except Exception as error:
        failed = SetsupError(f"a worker process cannot unpickle the work: {describe(error)}")

        def fail(data: Any) -> Any:
            raise failed

        return fail
    return function


def run_unit(function: Callable[[Any], Any], data: bytes) -> bytes:
    """Run a unit, and pickle what it returns or raises."""
    try:
        packed: bytes = cloudpickle.dumps((False, function(pickle.loads(data))))  # noqa: S301
    except Exception as error:
        packed = cloudpickle.dumps((True, to_portable(error, "a worker process")))
    return packed


def open_result(sent: bytes, unit: str) -> Any:
    """Return what a unit returned, or raise what it raised, with a note that names the unit."""
    failed, result = pickle.loads(sent)  # noqa: S301 - our own process wrote it
    if not failed:
        return result
    if not isinstance(result, SetsupError):  # its message is complete
        result.add_note(f"in {unit}, in a worker process")
    raise result


def describe(error: BaseException) -> str:
    """Write an exception in one line."""
    return f"{type(error).__name__}: {error}"


def to_portable(error: Exception, where: str) -> Exception:
    """Return the exception, or where it cannot be pickled one with the same message."""
    if not isinstance(error, SetsupError):
        error.add_note(f"in {where}:\n" + "".join(traceback.format_exception(error)).rstrip())
    try:
        pickle.loads(cloudpickle.dumps(error))  # noqa: S301
    except Exception:
        return SetsupError(f"{where} failed: {describe(error)}")
    return error
