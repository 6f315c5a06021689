"""What travels between the process that asks for work and those that do it: a function, data, and what became of them.

All of it is pickled by one of our own processes and opened by another.
"""

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import cloudpickle

from setsup.errors import SetsupError

__all__ = ["answer", "function_of", "outcome", "packed", "portable", "said"]


def packed(thing: Any) -> bytes:
    """A function, or the data of a unit, as it is sent to other processes."""
    try:
        found: bytes = cloudpickle.dumps(thing)
    except Exception as error:
        raise SetsupError(
            f"the work cannot be sent to other processes ({said(error)}): leave out what it holds open (files, "
            "locks, generators), or use one process"
        ) from None
    return found


def function_of(sent: bytes) -> Callable[[Any], Any]:
    """Open a function that was sent; where that fails, one that says so whatever it is given."""
    try:
        found: Callable[[Any], Any] = pickle.loads(sent)  # noqa: S301 - who started this process wrote it
    except Exception as error:
        failed = SetsupError(f"a worker process cannot open what it was sent: {said(error)}")

        def fail(data: Any) -> Any:
            raise failed

        return fail
    return found


def answer(function: Callable[[Any], Any], data: bytes) -> bytes:
    """Do a unit: what it gives or raises, as it is sent back."""
    try:
        found: bytes = cloudpickle.dumps((False, function(pickle.loads(data))))  # noqa: S301
    except Exception as error:
        found = cloudpickle.dumps((True, portable(error, "a worker process")))
    return found


def outcome(sent: bytes, unit: str) -> Any:
    """What a unit gave; or raise what it raised, with a note that names the unit."""
    failed, found = pickle.loads(sent)  # noqa: S301 - our own process wrote it
    if not failed:
        return found
    if not isinstance(found, SetsupError):  # whose sentence says it all
        found.add_note(f"in {unit}, in a worker process")
    raise found


def said(error: BaseException) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {error}"


def portable(error: Exception, where: str) -> Exception:
    """The exception, or where that does not survive the journey one that says the same."""
    if not isinstance(error, SetsupError):
        error.add_note(f"in {where}:\n" + "".join(traceback.format_exception(error)).rstrip())
    try:
        pickle.loads(cloudpickle.dumps(error))  # noqa: S301
    except Exception:
        return SetsupError(f"{where} failed: {said(error)}")
    return error
