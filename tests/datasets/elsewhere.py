"""What every dataset promises in other processes and in threads: the same arrays, which stay where they are."""

import multiprocessing
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest

Arrays = dict[str, np.ndarray]
Fetch = Callable[[Any, Sequence[int]], Arrays]

# from Python 3.12 on: libraries that were imported hold threads, which a forked process does not have
FORKS = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def fetch_stacked(dataset: Any, rows: Sequence[int]) -> Arrays:
    """Every modality of rows, but those whose lengths differ between rows, which cannot be stacked."""
    names = [name for name, modality in dataset.modalities.items() if None not in modality.shape]
    return {name: dataset.fetch(rows, [name])[name] for name in names}


def same_arrays(one: Arrays, other: Arrays) -> bool:
    return all(np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f") for name in one)


def _answer(end: Connection) -> None:
    while (asked := end.recv()) is not None:
        end.send(fetch_stacked(*asked))


@pytest.fixture(scope="module")
def spawned() -> Iterator[Fetch]:
    """Fetch in a process that has none of what this one has; it is started once, which takes longer than to fetch."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_answer, args=(there,))
    process.start()
    there.close()

    def fetch(dataset: Any, rows: Sequence[int]) -> Arrays:
        here.send((dataset, rows))
        return here.recv()

    yield fetch
    here.send(None)
    process.join()
    here.close()


def check_elsewhere(dataset: Any, spawned: Fetch) -> None:
    """Rows that are the same here, after pickling, in a spawned process, in a forked one, and in threads of a copy."""
    rows = [len(dataset) - 1, 0]
    here = fetch_stacked(dataset, rows)  # and now files are open here
    carried = pickle.dumps(dataset)
    most = 2 * len(pickle.dumps(dataset.factors)) + 60_000  # the table, and names of files, but no array
    assert len(carried) < most, f"{len(carried)} bytes of {len(dataset)} rows"
    copy = pickle.loads(carried)
    assert copy.factors.fingerprint == dataset.factors.fingerprint
    with ThreadPoolExecutor(4) as threads:  # a copy has opened nothing yet
        assert all(same_arrays(here, found) for found in threads.map(fetch_stacked, [copy] * 8, [rows] * 8))
    assert same_arrays(here, spawned(dataset, rows))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert same_arrays(here, pool.apply(fetch_stacked, (dataset, rows)))
