"""A thread ahead, and whoever waits for it: the same batches in the same order, whoever made which."""

import itertools
import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import setsup
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Dataset, Modality, fetch_request
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.loading import ring, stream
from setsup.loading.stream import prefetch

PICTURES = np.random.default_rng(5).integers(0, 256, (400, 6, 5, 3), dtype=np.uint8)
TABLE = FactorTable([Factor("shape", Kind.NOMINAL, ("a", "b", "c", "d")), Factor("size", Kind.ORDINAL, range(100))])
MODALITIES = {"image": Modality((6, 5, 3), "uint8", color="srgb")}


class Pictures(Dataset):
    """Rows of an array in memory, and which threads asked for them."""

    name = "pictures"
    factors = TABLE
    modalities = MODALITIES

    def __init__(self) -> None:
        self.asked: dict[str, int] = defaultdict(int)

    def fetch(self, indices: Any, modalities: Any = None) -> dict[str, Any]:
        rows, names = fetch_request(self, indices, modalities)
        return {name: gather(PICTURES, rows) for name in names}

    def fetch_into(self, indices: Any, out: Any) -> None:
        self.asked[threading.current_thread().name] += 1
        gather(PICTURES, np.asarray(indices), out["image"])


def sets() -> setsup.SetSampler:
    return setsup.SetSampler(TABLE, inactive=["shape"], size=7, sets=2)


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch counts as made quickly, however busy the machine is."""
    monkeypatch.setattr(stream, "_QUICK", float("inf"))


def numbers(count: int | None = None) -> Iterator[int]:
    yield from itertools.count() if count is None else range(count)


def together(made: dict[int, str], last: int) -> Any:
    """What makes numbers by pairs: after the first one, one is made only while another is."""
    pair = threading.Barrier(2, timeout=60)

    def make(number: int) -> int:
        made[number] = threading.current_thread().name
        if 0 < number <= last:
            pair.wait()
        return number

    return make


@pytest.mark.usefixtures("_quick")
def test_who_waits_makes_a_batch_meanwhile() -> None:
    made: dict[int, str] = {}
    batches = prefetch(numbers(), together(made, 40), 2, consumer_helps=True)
    assert list(itertools.islice(batches, 41)) == list(range(41))
    batches.close()
    assert set(made.values()) == {"setsup-loader", threading.current_thread().name}
    assert made[0] == "setsup-loader"  # before it is known how long a batch takes


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("count", range(7))
@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("helps", [False, True])
def test_all_batches_come_once_and_in_order(count: int, depth: int, helps: bool) -> None:
    for _ in range(8):
        assert list(prefetch(numbers(count), lambda job: job * job, depth, consumer_helps=helps)) == [
            number * number for number in range(count)
        ]


def test_who_waits_for_slow_batches_leaves_them_to_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_QUICK", 0.0)
    made: dict[int, str] = {}
    assert list(prefetch(numbers(30), together(made, 0), 2, consumer_helps=True)) == list(range(30))
    assert set(made.values()) == {"setsup-loader"}


@pytest.mark.usefixtures("_quick")
def test_an_error_is_raised_after_the_batches_before_it() -> None:
    begun, failed = threading.Event(), threading.Event()

    def make(number: int) -> int:
        if number == 1:
            begun.set()
            assert failed.wait(60)
        if number == 2:
            failed.set()
            raise DataError("number 2 is damaged")
        return number

    batches = prefetch(numbers(), make, 2, consumer_helps=True)
    assert next(batches) == 0
    assert begun.wait(60)
    assert next(batches) == 1
    assert failed.is_set()
    with pytest.raises(DataError, match="number 2 is damaged"):
        next(batches)
    assert "setsup-loader" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.usefixtures("_quick")
def test_an_error_in_drawing_is_raised_after_the_batches_before_it() -> None:
    """Who waits finds no third job while the thread is at the second."""
    begun, failed = threading.Event(), threading.Event()

    def jobs() -> Iterator[int]:
        yield 0
        yield 1
        failed.set()
        raise DataError("there is no draw 2")

    def make(number: int) -> int:
        if number == 1:
            begun.set()
            assert failed.wait(60)
        return number

    batches = prefetch(jobs(), make, 2, consumer_helps=True)
    assert next(batches) == 0
    assert begun.wait(60)
    assert next(batches) == 1
    with pytest.raises(DataError, match="there is no draw 2"):
        next(batches)
    assert "setsup-loader" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.usefixtures("_quick")
def test_an_interruption_of_who_waits_is_not_kept_for_later() -> None:
    home = threading.current_thread()
    interrupted = threading.Event()

    class Interrupted(Pictures):
        def fetch_into(self, indices: Any, out: Any) -> None:
            if threading.current_thread() is home:
                interrupted.set()
                raise KeyboardInterrupt
            if not first.is_set():
                first.set()
            else:
                assert interrupted.wait(60)  # so that the main thread has to wait, and helps
            super().fetch_into(indices, out)

    first = threading.Event()
    loader = setsup.loader(Interrupted(), sets(), workers="thread", to="numpy")
    steps = []
    with pytest.raises(KeyboardInterrupt):
        steps.extend(batch["step"] for batch in loader)
    assert "setsup-loader" not in {thread.name for thread in threading.enumerate()}
    assert loader.state_dict() == {"delivered": len(steps)}
    loader.dataset = Pictures()
    batch = next(iter(loader))
    np.testing.assert_array_equal(batch["image"], PICTURES[sets()[len(steps)].indices])


@pytest.mark.long("large or genuine files")
@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_batches_that_are_held_stay_as_they_were(to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if to == "torch":
        pytest.importorskip("torch")

    def holders(things: list[Any], place: int) -> int:
        count = sys.getrefcount(things[place])
        time.sleep(1e-5)  # long enough for another thread to find the same array free
        return count

    monkeypatch.setattr(ring, "_holders", holders)
    chance, draws = random.Random(3), sets()
    held: list[tuple[int, Any]] = []
    for batch, step in zip(setsup.loader(Pictures(), draws, workers="thread", to=to), range(1000), strict=False):
        assert batch["step"] == step
        held.append((step, batch["image"][1]))
        del batch
        while len(held) > chance.randrange(6):
            number, view = held.pop(chance.randrange(len(held)))
            array = np.asarray(view) if to == "numpy" else np.moveaxis(np.asarray(view), 1, -1)
            np.testing.assert_array_equal(array, PICTURES[draws[number].indices[1]])
            del array, view


class Fetched(Dataset):
    """Rows that are only fetched, by what two threads must not use at once, as a file and its position."""

    name = "fetched"
    factors = TABLE
    modalities = MODALITIES

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.rows: Any = None

    def fetch(self, indices: Any, modalities: Any = None) -> dict[str, Any]:
        self.rows, _ = fetch_request(self, indices, modalities)
        self.asked.add(threading.current_thread().name)
        time.sleep(1e-4)
        return {"image": gather(PICTURES, self.rows)}


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("selected", [0, 1, 2])
def test_what_only_fetches_is_asked_by_one_thread_as_a_selection_too(selected: int) -> None:
    source = Fetched()
    dataset: Any = source
    for _ in range(selected):
        dataset = dataset.select(np.arange(len(dataset)))
    batches = iter(setsup.loader(dataset, sets(), workers="thread", to="numpy"))
    for batch in itertools.islice(batches, 60):
        np.testing.assert_array_equal(batch["image"], PICTURES[batch["indices"]])
    batches.close()
    assert source.asked == {"setsup-loader"}


@pytest.mark.usefixtures("_quick")
def test_who_waits_copies_rows_of_a_selection_too() -> None:
    home, helped = threading.current_thread(), threading.Event()

    class Waited(Pictures):
        def fetch_into(self, indices: Any, out: Any) -> None:
            super().fetch_into(indices, out)
            if threading.current_thread() is home:
                helped.set()
            elif sum(self.asked.values()) > 1:
                assert helped.wait(60)  # so that the main thread has to wait, and helps

    source = Waited()
    batches = iter(setsup.loader(source.select(np.arange(len(source))), sets(), workers="thread", to="numpy"))
    for batch in itertools.islice(batches, 10):
        np.testing.assert_array_equal(batch["image"], PICTURES[batch["indices"]])
    batches.close()
    assert set(source.asked) == {"setsup-loader", home.name}


@pytest.mark.usefixtures("_quick")
def test_who_waits_leaves_transforms_and_decoding_to_the_thread() -> None:
    class Decoded(Pictures):
        cpu_bound = True

    for dataset, transform in ((Pictures(), lambda batch: batch), (Decoded(), None)):
        batches = iter(setsup.loader(dataset, sets(), workers="thread", to="numpy", transform=transform))
        for _ in range(50):
            next(batches)
        batches.close()
        assert set(dataset.asked) == {"setsup-loader"}
