"""The GPU that topics measure on; shrunk, the processor, where the same code runs to see that it does."""

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.machine import USER_CACHE
from benchmarks.measure import Side, shrunk
from benchmarks.training import write_mnist

__all__ = ["attempt", "device", "mnist", "need_none", "published", "timed", "wait"]


def device() -> str:
    """Name of the device for torch; RuntimeError where there is no GPU and nothing is shrunk."""
    import torch

    if torch.cuda.is_available():
        return "cuda:0"
    if shrunk():
        return "cpu"
    raise RuntimeError("torch sees no GPU; setsup doctor --gpu says why")


def wait() -> None:
    """Let the GPU end what it was given."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(run: Callable[[], object], units: int = 1) -> Side:
    """A side whose calls end when the GPU has done them."""

    def whole() -> None:
        run()
        wait()

    return Side(whole, units)


@contextmanager
def attempt(what: str, failed: list[str]) -> Iterator[None]:
    """Keep why something fails, and go on with what comes after it, unless the time is up."""
    try:
        yield
    except TimeoutError:
        raise
    except Exception as error:
        traceback.print_exc()
        failed.append(f"{what}: {type(error).__name__}: {str(error)[:300]}")


def need_none(failed: list[str]) -> None:
    """Raise RuntimeError with all that failed."""
    if failed:
        raise RuntimeError("; ".join(failed))


def published(name: str) -> Path | None:
    """Folder of the published files of a dataset in ``SETSUP_DATA`` or the user's cache; None if it is in neither."""
    places = [Path(place) for place in (os.environ.get("SETSUP_DATA"),) if place]
    places.append(USER_CACHE)
    return next((place / name for place in places if (place / name).is_dir()), None)


def mnist(folder: Path) -> Path:
    """Folder with files of MNIST: random pictures where there are no published ones, which changes no time."""
    made = folder / "mnist"
    if not shrunk() and (found := published("mnist")) is not None:
        return found
    if not made.exists():
        made.mkdir(parents=True)
        write_mnist(made)
    return made
