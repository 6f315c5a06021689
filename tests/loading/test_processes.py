"""Worker processes: what they are sent, how they end, and that nothing of them is left behind."""

import contextlib
import ctypes
import functools
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setsup
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Dataset, Modality, fetch_request
from setsup.errors import DataError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.loading.postprocess import Finish
from setsup.loading.processes import _SIZES, WorkerPool, _Buffers
from setsup.loading.stream import BatchBuilder, requests
from tests.waiting import until

FACTORS = FactorTable([Factor("shape", Kind.NOMINAL, ("a", "b", "c")), Factor("size", Kind.ORDINAL, tuple(range(40)))])
SIDE = 96  # so large that a batch does not fit into a socket

linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="/proc tells about processes on Linux only")


class Pictures(Dataset):
    """Rows of an array, which every worker needs."""

    name = "pictures"

    def __init__(self) -> None:
        self.factors = FACTORS
        self.modalities = {"image": Modality((SIDE, SIDE, 3), "uint8", color="srgb")}
        self.images = np.random.default_rng(0).integers(0, 256, (120, SIDE, SIDE, 3), dtype=np.uint8)

    def fetch(self, indices: Any, modalities: Iterable[str] | None = None) -> dict[str, Any]:
        rows, names = fetch_request(self, indices, modalities)
        return {name: gather(self.images, rows) for name in names}


class Mortal(Pictures):
    """Kills the worker it is fetched in at a certain fetch."""

    def __init__(self, at: int, by: signal.Signals = signal.SIGKILL) -> None:
        super().__init__()
        self.home, self.at, self.by, self.fetched = os.getpid(), at, by, 0

    def fetch(self, indices: Any, modalities: Iterable[str] | None = None) -> dict[str, Any]:
        self.fetched += 1
        if self.fetched > self.at and os.getpid() != self.home:
            os.kill(os.getpid(), self.by)
        return super().fetch(indices, modalities)


def sets(**options: Any) -> setsup.SetSampler:
    return setsup.SetSampler(FACTORS, **({"inactive": ["shape"], "size": 6, "sets": 2} | options))


def children() -> list[int]:
    """Workers of loaders in this process, of whose children there may be others."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # of another test's thread, or process, that has just ended
            for pid in (task / "children").read_text().split():
                if b"setsup.loading.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(int(pid))
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    "workers", [2, *(pytest.param(workers, marks=pytest.mark.long("worker processes")) for workers in (1, 4))]
)
def test_batches_come_in_the_order_of_the_draws(workers: int) -> None:
    dataset = Pictures()
    loader = setsup.loader(dataset, sets(), workers=workers, start=5, to="numpy")
    for step, batch in zip(range(5, 18), loader, strict=False):
        assert batch["step"] == step
        np.testing.assert_array_equal(batch["image"], dataset.images[sets()[step].indices])


@pytest.mark.long("worker processes")
def test_a_short_stream_needs_not_all_workers() -> None:
    epoch = setsup.EpochSampler(FACTORS, size=60, epochs=1, shuffle=False)
    batches = list(setsup.loader(Pictures(), epoch, workers=4, to="numpy"))
    assert [batch["indices"][0, 0] for batch in batches] == [0, 60]


@pytest.mark.long("worker processes")
def test_batches_that_are_kept_stay_as_they_are() -> None:
    dataset = Pictures()
    batches = list(itertools.islice(setsup.loader(dataset, sets(), workers=2, to="numpy"), 40))
    for step, batch in enumerate(batches):
        np.testing.assert_array_equal(batch["image"], dataset.images[sets()[step].indices])


@pytest.mark.long("worker processes")
def test_a_request_larger_than_a_socket_takes() -> None:
    wide = setsup.SetSampler(FACTORS, inactive=[], size=100, sets=1_000)  # 800 kB of row numbers
    table = setsup.loader(Pictures(), wide, modalities=[], workers=1, to="numpy")
    for step, batch in enumerate(itertools.islice(table, 6)):
        np.testing.assert_array_equal(batch["indices"], wide[step].indices)


@pytest.mark.long("kills and interruptions")
@pytest.mark.parametrize("at", [0, 2])
def test_a_killed_worker_is_one_sentence_and_no_hang(at: int) -> None:
    def slowly() -> None:
        for _ in itertools.islice(setsup.loader(Mortal(at), sets(), workers=1, prefetch=1, to="numpy"), 6):
            time.sleep(0.05)

    with pytest.raises(
        DataError, match=r"worker process of the loader ended by SIGKILL .* because memory ran out; lower workers="
    ):
        slowly()


@pytest.mark.long("worker processes")
def test_a_worker_that_ended_by_a_bus_error_names_what_causes_it() -> None:
    batches = iter(setsup.loader(Mortal(0, signal.SIGBUS), sets(), workers=1, to="numpy"))
    with pytest.raises(DataError, match=r"ended by SIGBUS .* a memory-mapped file was truncated"):
        next(batches)


@pytest.mark.long("kills and interruptions")
@linux
def test_a_killed_worker_takes_the_others_with_it() -> None:
    batches = iter(setsup.loader(Pictures(), sets(), workers=3, to="numpy"))
    next(batches)
    pool = children()
    assert len(pool) == 3
    os.kill(pool[1], signal.SIGKILL)
    with pytest.raises(DataError, match="SIGKILL"):
        list(batches)
    assert not children()


@pytest.mark.parametrize("what", ["dataset", "transform"])
def test_what_cannot_be_pickled_is_refused_before_a_process_starts(what: str) -> None:
    lock, dataset = threading.Lock(), Pictures()

    def locked(batch: dict[str, Any]) -> dict[str, Any]:
        with lock:
            return batch

    if what == "dataset":
        dataset.lock = lock  # type: ignore[attr-defined]
    culprit = "the dataset" if what == "dataset" else "the transform"
    transform = locked if what == "transform" else None
    with pytest.raises(SetsupError, match=rf"{culprit} cannot be sent to worker processes.*workers='thread'"):
        next(iter(setsup.loader(dataset, sets(), transform=transform, workers=2, to="numpy")))
    if what == "transform":  # which no process need know when batches are made here
        assert next(iter(setsup.loader(dataset, sets(), transform=locked, to="numpy")))


class Sealed:
    """Goes into a pickle but does not come out of it."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return batch

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return int, ("no number",)


class Noticing(Pictures):
    """Refuses to be fetched where torch is imported."""

    def fetch(self, indices: Any, modalities: Iterable[str] | None = None) -> dict[str, Any]:
        if "torch" in sys.modules:
            raise DataError("torch is here")
        return super().fetch(indices, modalities)


@pytest.mark.long("worker processes")
def test_torch_is_imported_by_workers_with_a_transform_of_tensors_only() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    batch = next(iter(setsup.loader(Noticing(), sets(), workers=1)))
    assert isinstance(batch["image"], torch.Tensor)
    with pytest.raises(DataError, match="torch is here"):
        next(iter(setsup.loader(Noticing(), sets(), workers=1, transform=lambda batch: batch)))


@pytest.mark.long("worker processes")
def test_what_a_worker_cannot_open_is_said() -> None:
    with pytest.raises(SetsupError, match=r"cannot unpickle the dataset and transform: ValueError: invalid literal"):
        next(iter(setsup.loader(Pictures(), sets(), transform=Sealed(), workers=1, to="numpy")))


@pytest.mark.long("worker processes")
def test_a_lambda_is_a_transform() -> None:
    dark = setsup.loader(Pictures(), sets(), transform=lambda batch: batch["image"].dark, workers=1, to="numpy")
    with pytest.raises(AttributeError, match="dark") as caught:
        next(iter(dark))
    assert "in a worker process of the loader" in caught.value.__notes__[0]


@pytest.mark.long("worker processes")
def test_an_exception_that_does_not_travel_is_named() -> None:
    class Odd(Exception):
        def __init__(self, first: str, second: str) -> None:
            super().__init__(f"{first} and {second}")

    def fail(batch: dict[str, Any]) -> dict[str, Any]:
        raise Odd("this", "that")

    with pytest.raises(SetsupError, match="Odd: this and that"):
        next(iter(setsup.loader(Pictures(), sets(), transform=fail, workers=1, to="numpy")))


@pytest.mark.long("worker processes")
def test_a_batch_that_does_not_pickle_says_so() -> None:
    odd = setsup.loader(Pictures(), sets(), transform=lambda batch: {"odd": threading.Lock()}, workers=1, to="numpy")
    with pytest.raises(TypeError, match=r"cannot pickle '_thread\.lock' object") as caught:
        next(iter(odd))
    assert "in a worker process of the loader" in caught.value.__notes__[0]


@pytest.mark.long("worker processes")
def test_views_arrive_as_they_were_made() -> None:
    def views(batch: dict[str, Any]) -> dict[str, Any]:
        image = batch["image"]
        return batch | {"image": image.swapaxes(2, 4), "odd": image[:, :, ::-2, 5:, ::-1], "flat": image[..., 0].T}

    for one, other in zip(
        itertools.islice(setsup.loader(Pictures(), sets(), transform=views, workers=1, to="numpy"), 8),
        setsup.loader(Pictures(), sets(), transform=views, workers=0, to="numpy"),
        strict=False,
    ):
        for name in ("image", "odd", "flat"):
            np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.long("worker processes")
def test_paths_that_are_no_strings_do_no_harm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
    assert next(iter(setsup.loader(Pictures(), sets(), workers=1, to="numpy")))["step"] == 0


def test_buffers_of_ever_new_sizes_are_not_all_kept() -> None:
    buffers = _Buffers(np.empty)
    often = buffers((1,), np.dtype(np.uint8)).__array_interface__["data"][0]
    for size in range(2, 5 * _SIZES):
        buffers((size,), np.dtype(np.uint8))
        assert buffers((1,), np.dtype(np.uint8)).__array_interface__["data"][0] == often
    assert len(buffers._rings) == _SIZES


@pytest.mark.long("worker processes")
def test_a_pool_shut_down_before_its_start_makes_nothing() -> None:
    maker = BatchBuilder(Pictures(), ("image",))
    pool = WorkerPool(maker, Finish(None, None, maker.dataset.modalities, ("image",)), 2, np.empty)
    pool.shutdown()
    assert list(pool.batches(requests(sets().shard(0, 1)))) == []
    assert all(worker._process.returncode is not None for worker in pool._workers)


@pytest.mark.long("worker processes")
def test_transforms_run_where_batches_are_made() -> None:
    def where(batch: dict[str, Any]) -> dict[str, Any]:
        return batch | {"pid": os.getpid(), "thread": threading.current_thread().name}

    made = {
        workers: next(iter(setsup.loader(Pictures(), sets(), transform=where, workers=workers, to="numpy")))
        for workers in (0, "thread", 1)
    }
    assert made[0]["pid"] == made["thread"]["pid"] == os.getpid() != made[1]["pid"]
    assert made["thread"]["thread"] == "setsup-loader"


SCRIPT = """
    import os, sys, time
    import numpy as np
    import setsup
    from setsup.datasets.dataset import Dataset, Modality, fetch_request

    class Mine(Dataset):
        name = "mine"
        factors = setsup.FactorTable([setsup.Factor("a", setsup.Kind.ORDINAL, tuple(range(50)))])
        modalities = {"image": Modality((64, 64, 3), "uint8", color="srgb")}
        def fetch(self, indices, modalities=None):
            rows, names = fetch_request(self, indices, modalities)
            time.sleep(SLOW)
            images = np.zeros((*rows.shape, 64, 64, 3), np.uint8) + rows[..., None, None, None].astype(np.uint8)
            return {name: images for name in names}

    mine = Mine()
    sampler = setsup.SetSampler(mine.factors, inactive=[], size=8)
    for step, batch in enumerate(setsup.loader(mine, sampler, workers=2, to="numpy")):
        assert (batch["image"][0, :, 0, 0, 0] == batch["indices"][0]).all()
        print(step, flush=True)
        if step == LAST:
            break
"""


def script(slow: float = 0.0, last: int = 3) -> list[str]:
    return [sys.executable, "-c", f"SLOW, LAST = {slow}, {last}\n" + textwrap.dedent(SCRIPT)]


@pytest.mark.long("worker processes")
def test_a_script_needs_no_guard_and_may_define_the_dataset(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(script()[-1])
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["0", "1", "2", "3"], "")


def said_by(script: str, *shell: str) -> tuple[int, list[str], str]:
    """Exit code, words and errors of a script."""
    command = [*shell, sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.split(), done.stderr


@pytest.mark.long("worker processes")
def test_what_a_script_defines_comes_back_as_the_same_class() -> None:
    script = """
        import setsup
        class Mine(Exception): pass
        class Box: pass
        def transform(batch):
            if batch["step"]:
                raise Mine("mine")
            return batch | {"box": Box()}
        shapes = setsup.load("shapes3d-procedural")
        sampler = setsup.SetSampler(shapes.factors, inactive=[], size=2)
        batches = iter(setsup.loader(shapes, sampler, transform=transform, workers=1, to="numpy"))
        print(type(next(batches)["box"]) is Box)
        try:
            next(batches)
        except Mine as error:
            print(error)
    """
    assert said_by(script) == (0, ["True", "mine"], "")


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("closed", ["<&-", "<&- >&-"])
def test_closed_standard_streams_do_no_harm(closed: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *script()], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert closed != "<&-" or done.stdout.split() == ["0", "1", "2", "3"]


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("workers", ["thread", 1])
def test_a_stream_that_is_held_to_the_end_ends_before_the_interpreter(workers: Any) -> None:
    script = f"""
        import atexit, threading
        import setsup
        atexit.register(lambda: print("threads", threading.active_count()))
        shapes = setsup.load("shapes3d-procedural")
        sampler = setsup.SetSampler(shapes.factors, inactive=[], size=2)
        batches = iter(setsup.loader(shapes, sampler, workers={workers!r}, to="numpy"))
        next(batches)
        print("threads", threading.active_count())
    """
    assert said_by(script) == (0, ["threads", "2", "threads", "1"], "")


@pytest.mark.long("worker processes")
def test_a_fork_leaves_the_stream_to_its_parent() -> None:
    script = """
        import os
        import setsup
        shapes = setsup.load("shapes3d-procedural")
        sampler = setsup.SetSampler(shapes.factors, inactive=[], size=2)
        batches = iter(setsup.loader(shapes, sampler, workers=2, to="numpy"))
        next(batches)
        for what in ("drops", "asks"):
            if os.fork() == 0:
                if what == "asks":
                    try:
                        next(batches)
                    except setsup.SetsupError as error:
                        print("forked" in str(error), flush=True)
                del batches
                os._exit(0)
            os.wait()
        print([next(batches)["step"] for _ in range(8)][-1])
    """
    returncode, words, _ = said_by(script)  # newer versions of Python warn of any fork beside threads
    assert (returncode, words) == (0, ["True", "8"])


def orphaned(names: set[str]) -> set[str]:
    """Those of shared memory that no process uses: other tests, which run at the same time, use some as well."""
    used = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):  # of a process that has ended meanwhile
            used |= {name for name in names if f"/dev/shm/{name}" in maps.read_text()}
    return names & set(os.listdir("/dev/shm")) - used


def started(slow: float) -> Iterator[Any]:
    """A running script and its workers, of which nothing may be left afterwards."""
    before = set(os.listdir("/dev/shm"))
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # whoever started the tests may ignore it
    process = subprocess.Popen(script(slow, 10**9), preexec_fn=heed, **pipes)
    assert process.stdout is not None
    process.stdout.readline()
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    pool = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    assert len(pool) == 2
    yield process, pool
    assert until(lambda: not any(alive(pid) for pid in pool))
    assert until(lambda: not orphaned(set(os.listdir("/dev/shm")) - before))


@pytest.mark.long("kills and interruptions")
@linux
@pytest.mark.parametrize("slow", [0.0, 0.3])
def test_an_interrupt_ends_all_and_leaves_nothing(slow: float) -> None:
    for process, _ in started(slow):
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode != 0
        assert said.rstrip().endswith("KeyboardInterrupt")
        assert said.count("Traceback") == 1  # none of a worker


@pytest.mark.long("kills and interruptions")
@linux
def test_a_killed_parent_leaves_no_orphans() -> None:
    for process, _ in started(0.05):
        process.kill()
        process.communicate(timeout=60)


@pytest.mark.long("worker processes")
@linux
def test_a_worker_ends_with_the_loader_even_amid_a_slow_fetch() -> None:
    class Slow(Pictures):
        def fetch(self, indices: Any, modalities: Iterable[str] | None = None) -> dict[str, Any]:
            if getattr(self, "once", False):
                time.sleep(600)
            self.once = True
            return super().fetch(indices, modalities)

    batches = iter(setsup.loader(Slow(), sets(), workers=2, to="numpy"))
    next(batches)
    pool = children()
    begun = time.monotonic()
    batches.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begun < 300
    assert not any(alive(pid) for pid in pool)


@pytest.mark.long("worker processes")
def test_a_worker_that_lets_nothing_else_run_does_not_keep_the_loader() -> None:
    def seize(batch: dict[str, Any]) -> dict[str, Any]:
        if batch["step"]:
            ctypes.PyDLL(None).sleep(100)  # without letting other threads of the worker run
        return batch

    batches = iter(setsup.loader(Pictures(), sets(), transform=seize, workers=1, to="numpy"))
    next(batches)
    time.sleep(0.3)
    begun = time.monotonic()
    batches.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begun < 50
