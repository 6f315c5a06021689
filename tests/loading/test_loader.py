"""The loader gives a sampler's draws as batches: same stream however it is made, one position, clear refusals."""

import gc
import itertools
import json
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import h5py
import numpy as np
import pytest

import setsup
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Dataset, Modality, fetch_request
from setsup.errors import DataError, RowError, SamplerError, SetsupError, UsageError
from setsup.factors import Factor, FactorTable, Kind
from setsup.loading import Loader

FACTORS = FactorTable([Factor("shape", Kind.NOMINAL, ("a", "b", "c")), Factor("size", Kind.ORDINAL, tuple(range(40)))])
PICTURES = np.arange(120 * 4 * 5 * 3, dtype=np.uint8).reshape(120, 4, 5, 3)

MODALITIES = {"image": Modality((4, 5, 3), "uint8", color="srgb"), "depth": Modality((4, 5), "float32", unit="m")}


class Pictures(Dataset):
    """Rows of an array in memory."""

    name = "pictures"
    factors = FACTORS
    modalities = MODALITIES

    def fetch(self, indices: Any, modalities: Iterable[str] | None = None) -> dict[str, Any]:
        rows, names = fetch_request(self, indices, modalities)
        depth = PICTURES[..., 0].astype(np.float32)
        return {name: gather(PICTURES if name == "image" else depth, rows) for name in names}

    def fetch_into(self, indices: Any, out: Any) -> None:
        for name, array in out.items():
            gather(PICTURES if name == "image" else PICTURES[..., 0].astype(np.float32), np.asarray(indices), array)


class Damaged(Pictures):
    """A dataset with a damaged file."""

    def fetch(self, indices: Any, modalities: Iterable[str] | None = None) -> dict[str, Any]:
        raise DataError("picture 7 is damaged")

    fetch_into = Dataset.fetch_into


def children() -> list[int]:
    """Workers of loaders in this process, of whose children there may be others."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        return []
    found = []
    for task in tasks.iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # of a thread that has ended meanwhile
            found += [int(pid) for pid in (task / "children").read_text().split()]
    return [pid for pid in found if b"setsup.loading.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def sets(**options: Any) -> setsup.SetSampler:
    return setsup.SetSampler(FACTORS, inactive=["shape"], size=6, sets=2, **options)


def head(loader: Any, count: int) -> list[dict[str, Any]]:
    return [
        {name: value if isinstance(value, dict) else np.array(value) for name, value in batch.items()}
        for batch in itertools.islice(iter(loader), count)
    ]


def assert_draws(batches: list[dict[str, Any]], steps: Iterable[int], sampler: Any = None) -> None:
    sampler = sampler or sets()
    for batch, step in zip(batches, steps, strict=True):
        np.testing.assert_array_equal(batch["indices"], sampler[step].indices)
        np.testing.assert_array_equal(batch["image"], PICTURES[sampler[step].indices])


def test_processes_are_started_for_a_dataset_that_computes_and_no_more_than_there_are_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Rendered(Pictures):
        cpu_bound = True

    started: list[int] = []

    class Pool:
        def __init__(self, maker: Any, finish: Any, workers: int, allocate: Any) -> None:
            started.append(workers)

        def batches(self, asked: Any) -> Any:
            yield from ()

        def shutdown(self) -> None:
            pass

    module = import_module("setsup.loading.loader")
    monkeypatch.setattr(module, "WorkerPool", Pool)
    monkeypatch.setattr(module, "_processes", lambda: 4)
    for dataset, workers, size, expected in (
        (Rendered(), "auto", 10, 4),  # twelve batches
        (Rendered(), "auto", 40, 3),
        (Rendered(), "auto", 120, None),
        (Pictures(), "auto", 10, None),
        (Pictures(), 2, 120, 1),
        (Pictures(), 2, 10, 2),
    ):
        started.clear()
        epoch = setsup.EpochSampler(FACTORS, size=size, epochs=1, shuffle=False)
        list(Loader(dataset, epoch, workers=workers, to="numpy"))
        assert started == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    "use",
    [
        lambda dataset: setsup.loader(dataset, setsup.EpochSampler(FACTORS, size=10), to="numpy"),
        lambda dataset: dataset.select([0, 1]),
        lambda dataset: setsup.datasets.concat(dataset, Pictures()),
    ],
    ids=["loader", "select", "concat"],
)
def test_a_dataset_with_the_former_name_of_cpu_bound_is_told_the_present_one(use: Any) -> None:
    class Rendered(Pictures):
        computes = True

    with pytest.raises(
        UsageError,
        match=r"^pictures has the attribute computes, which was renamed to cpu_bound; set cpu_bound = True instead",
    ):
        use(Rendered())
    Rendered.cpu_bound = True  # type: ignore[attr-defined]
    use(Rendered())  # where it has both, the other may mean anything
    Rendered.cpu_bound, Rendered.computes = False, lambda self: None  # type: ignore[attr-defined,assignment]
    use(Rendered())


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("workers", [0, "thread", 1, 2])
def test_every_way_to_make_batches_gives_the_same_stream(workers: Any) -> None:
    loader = setsup.loader(Pictures(), sets(), workers=workers, to="numpy")
    batches = head(loader, 9)
    assert_draws(batches, range(9))
    assert loader.state_dict() == {"delivered": 9}


def test_a_batch_has_modalities_roles_and_factors() -> None:
    sampler = setsup.OrbitSampler(FACTORS, "shape", sets=2, size=3, canonical="first")
    batch = next(iter(setsup.loader(Pictures(), sampler, workers=0, to="numpy")))
    draw = sampler[0]
    np.testing.assert_array_equal(batch["canonical_image"], PICTURES[draw.canonical])
    np.testing.assert_array_equal(batch["canonical"], draw.canonical)
    np.testing.assert_array_equal(batch["factors"]["size"], FACTORS.codes("size", draw.indices))
    np.testing.assert_array_equal(batch["inactive"]["shape"], draw.inactive["shape"])
    assert batch["mask"].all()
    assert batch["depth"].dtype == np.float32
    assert set(batch) == {
        *("image", "depth", "canonical_image", "canonical_depth"),
        *("step", "indices", "mask", "inactive", "factors", "canonical"),
    }


@pytest.mark.parametrize("workers", [0, 1])
def test_labels_of_a_draw_are_in_its_batch(workers: int) -> None:
    grid = FactorTable([Factor(name, Kind.ORDINAL, (0, 1, 2)) for name in "ab"])
    shapes = setsup.from_arrays({"image": np.zeros((9, 4, 4, 3), np.uint8)}, grid)
    pairs = setsup.FactorPairSampler(shapes.factors, 5)
    batch = next(iter(Loader(shapes, pairs, workers=workers, to="numpy")))
    assert {name: labels.tolist() for name, labels in batch["pair_labels"].items()} == {
        name: labels.tolist() for name, labels in pairs[0].pair_labels.items()
    }
    last = pairs.shard(1, 2)[3]
    assert all(np.array_equal(last.pair_labels[name], labels) for name, labels in pairs[7].pair_labels.items())


@pytest.mark.parametrize("name", ["mask", "pair_labels", "indices", "factors", "canonical_image"])
def test_a_modality_never_hides_behind_a_role(name):
    class Masked(Dataset):
        name = "masked"
        factors = FactorTable.from_values({"digit": [0, 0, 1, 1]})

        def __init__(self, other):
            self.modalities = {"image": Modality((2,), "uint8"), other: Modality((2,), "uint8")}

        def fetch(self, indices, modalities=None):
            rows, names = fetch_request(self, indices, modalities)
            return {each: np.zeros((*rows.shape, 2), np.uint8) for each in names}

    dataset = Masked(name)
    sets = setsup.SetSampler(dataset.factors, inactive=["digit"], size=2)
    with pytest.raises(DataError, match=f"the modality name '{name}' of masked is reserved"):
        setsup.loader(dataset, sets, to="numpy")
    assert next(iter(setsup.loader(dataset, sets, to="numpy", modalities=["image"])))["mask"].all()


def test_only_the_named_modalities_are_fetched() -> None:
    batch = next(iter(setsup.loader(Pictures(), sets(), modalities=["depth"], workers=0, to="numpy")))
    assert "image" not in batch
    with pytest.raises(DataError, match=r"no modality 'dept'.*'depth'"):
        setsup.loader(Pictures(), sets(), modalities=["dept"])


@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize("workers", [0, "thread"])
def test_ranks_share_the_draws(world: int, workers: Any) -> None:
    streams = [
        head(setsup.loader(Pictures(), sets(), rank=rank, world=world, start=3, workers=workers, to="numpy"), 5)
        for rank in range(world)
    ]
    assert_draws([batch for step in zip(*streams, strict=True) for batch in step], range(3, 3 + 5 * world))


@pytest.mark.parametrize("step", [step * step * 37 % 10_007 for step in range(1, 21)])
def test_a_resumed_stream_resumes_where_it_was(step: int) -> None:
    loader = setsup.loader(Pictures(), sets(), workers="thread", to="numpy")
    loader.load_state_dict({"delivered": step})
    assert_draws(head(loader, 2), range(step, step + 2))
    assert_draws(head(loader, 2), range(step + 2, step + 4))
    assert loader.state_dict() == {"delivered": step + 4}


@pytest.mark.parametrize("transform", [[], "dcodr", 5])
def test_what_is_no_transform_is_refused_at_once(transform: Any) -> None:
    with pytest.raises(SetsupError, match=r"must be a callable that takes and returns a batch.*Augment"):
        setsup.loader(Pictures(), sets(), transform=transform)


def test_an_operation_is_no_transform() -> None:
    pytest.importorskip("torch")
    from setsup.loading.transforms import Flip

    with pytest.raises(SetsupError, match=r"Flip\(p=0.5\) is an operation on images"):
        setsup.loader(Pictures(), sets(), transform=Flip())


def test_arguments_that_are_swapped_are_refused() -> None:
    with pytest.raises(
        SamplerError, match=r"argument of the loader must be a sampler, such as setsup\.SetSampler, not Pictures"
    ):
        setsup.loader(sets(), Pictures())  # type: ignore[arg-type]


def test_an_endless_loader_says_that_it_has_no_length_and_what_it_is() -> None:
    loader = setsup.loader(Pictures(), sets(), rank=1, world=2, start=6, to="numpy")
    with pytest.raises(TypeError, match="choose the number of steps"):
        len(loader)
    assert repr(loader).startswith("Loader(")
    assert repr(loader).endswith("6 delivered, rank 1 of 2)")


def test_the_loader_thread_takes_no_cores_from_training() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen = setsup.loader(
            Pictures(), sets(), transform=lambda batch: batch | {"threads": torch.get_num_threads()}, workers="thread"
        )
        assert next(iter(seen))["threads"] == 1
        assert torch.get_num_threads() == 2
        found: list[int] = []
        later = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        later.start()
        later.join()
        assert found == [2]
    finally:
        torch.set_num_threads(before)


def test_loaders_that_start_together_leave_torch_its_threads() -> None:
    torch = pytest.importorskip("torch")
    before, interval = torch.get_num_threads(), sys.getswitchinterval()
    torch.set_num_threads(2)
    sys.setswitchinterval(1e-6)
    found: list[int] = []

    def load(together: threading.Barrier) -> None:
        batches = iter(setsup.loader(Pictures(), sets(), workers="thread"))
        together.wait()
        next(batches)

    try:
        for _ in range(60):
            together = threading.Barrier(2)
            both = [threading.Thread(target=load, args=(together,)) for _ in range(2)]
            both.append(threading.Thread(target=lambda: found.append(torch.get_num_threads())))
            for thread in both[:2]:
                thread.start()
            for thread in both[:2]:
                thread.join()
            both[2].start()
            both[2].join()
    finally:
        sys.setswitchinterval(interval)
        torch.set_num_threads(before)
    assert set(found) == {2}


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("workers", [0, "thread", 2])
def test_a_second_iterator_resumes_and_the_first_one_says_so(workers: Any) -> None:
    loader = setsup.loader(Pictures(), sets(), workers=workers, to="numpy")
    threads = threading.active_count()
    first = iter(loader)
    steps = [next(first)["step"], next(first)["step"]]
    second = iter(loader)
    assert [*steps, next(second)["step"]] == [0, 1, 2]
    with pytest.raises(SetsupError, match=r"create a second loader"):
        next(first)
    loader.load_state_dict({"delivered": 7})
    with pytest.raises(SetsupError, match=r"to another position") as held:
        next(second)
    assert held.traceback  # whose frames keep no stream alive
    assert threading.active_count() <= threads
    assert next(iter(loader))["step"] == 7


def test_prefetched_batches_are_not_delivered() -> None:
    loader = setsup.loader(Pictures(), sets(), workers="thread", prefetch=8, to="numpy")
    batches = iter(loader)
    next(batches)
    time.sleep(0.05)
    assert loader.state_dict() == {"delivered": 1}


def test_another_world_size_resumes() -> None:
    first = [setsup.loader(Pictures(), sets(), rank=rank, world=4, workers=0, to="numpy") for rank in range(4)]
    for loader in first:
        head(loader, 3)
    states = {loader.state_dict()["delivered"] for loader in first}
    assert states == {12}
    later = setsup.loader(Pictures(), sets(), rank=1, world=2, workers=0, to="numpy")
    later.load_state_dict(first[2].state_dict())
    assert_draws(head(later, 2), [13, 15])


def test_a_finite_sampler_ends_alike_on_every_rank() -> None:
    once = setsup.EpochSampler(FACTORS, size=16, epochs=1, partial="pad")
    loaders = [setsup.loader(Pictures(), once, rank=rank, world=3, workers="thread", to="numpy") for rank in range(3)]
    assert [len(loader) for loader in loaders] == [3, 3, 3]
    batches = [head(loader, 100) for loader in loaders]
    assert [len(found) for found in batches] == [3, 3, 3]
    seen = np.concatenate([batch["indices"][batch["mask"]] for found in batches for batch in found])
    assert sorted(seen.tolist()) == list(range(120))
    assert [loader.state_dict()["delivered"] for loader in loaders] == [8, 8, 8]
    assert [len(loader) for loader in loaders] == [3, 3, 3]  # of the next pass
    assert head(loaders[0], 1)[0]["step"] == 8


# -- passes ------------------------------------------------------------------------------------------------------------


def passes(partial: str = "drop", epochs: int | None = 1) -> setsup.EpochSampler:
    """Seven or eight draws of 16 of the 120 rows."""
    return setsup.EpochSampler(FACTORS, size=16, epochs=epochs, partial=partial, seed=2)


@pytest.mark.parametrize("workers", [0, "thread", pytest.param(2, marks=pytest.mark.long("worker processes"))])
@pytest.mark.parametrize("world", [1, 3])
def test_each_loop_over_a_finite_sampler_is_a_pass_with_its_own_order(world: int, workers: Any) -> None:
    endless = passes("pad", None)
    ranks = [
        setsup.loader(Pictures(), passes("pad"), rank=rank, world=world, workers=workers, to="numpy")
        for rank in range(world)
    ]
    for epoch in range(3):
        assert [len(loader) for loader in ranks] == [-(-8 // world)] * world
        found = [list(loader) for loader in ranks]
        together = [batch for step in zip(*found, strict=True) for batch in step]
        assert_draws(together[:8], range(8 * epoch, 8 * epoch + 8), endless)
        assert not any(batch["mask"].any() for batch in together[8:])
        seen = np.concatenate([batch["indices"][batch["mask"]] for batch in together])
        assert sorted(seen.tolist()) == list(range(120))
        assert {loader.state_dict()["delivered"] for loader in ranks} == {8 * epoch + 8}


def test_a_pass_is_all_draws_of_the_sampler() -> None:
    endless = passes(epochs=None)
    loader = setsup.loader(Pictures(), passes(epochs=2), workers=0, to="numpy")
    for begin in (0, 14):
        assert_draws(list(loader), range(begin, begin + 14), endless)


@pytest.mark.parametrize("stop", [0, 1, 7, 8, 12, 14])
def test_a_loop_resumes_within_any_pass_on_any_number_of_ranks(stop: int) -> None:
    endless = passes(epochs=None)
    first = setsup.loader(Pictures(), passes(), workers="thread", to="numpy")
    steps = (batch["step"] for loop in (first, first) for batch in loop)
    assert list(itertools.islice(steps, stop)) == list(range(stop))
    assert first.state_dict() == {"delivered": stop}
    end = stop // 7 * 7 + 7
    given = setsup.loader(Pictures(), passes(), start=stop, workers=0, to="numpy")
    assert len(given) == end - stop
    assert_draws(list(given), range(stop, end), endless)
    assert_draws(list(given), range(end, end + 7), endless)
    ranks = [setsup.loader(Pictures(), passes(), rank=rank, world=2, workers=0, to="numpy") for rank in range(2)]
    for loader in ranks:
        loader.load_state_dict(first.state_dict())
    found = [batch for step in zip(*map(list, ranks), strict=True) for batch in step]
    assert_draws(found[: end - stop], range(stop, end), endless)
    assert {loader.state_dict()["delivered"] for loader in ranks} == {end}


def test_a_loop_that_was_left_goes_on_where_it_was() -> None:
    loader = setsup.loader(Pictures(), passes(), workers="thread", to="numpy")
    assert_draws(head(loader, 3), range(3), passes(epochs=None))
    assert_draws(list(loader), range(3, 7), passes(epochs=None))


def test_the_state_of_a_finished_loop_begins_the_next_pass() -> None:
    """Such a state was written before loops were passes, too."""
    loader = setsup.loader(Pictures(), passes(), workers=0, to="numpy")
    loader.load_state_dict({"delivered": 7})
    assert_draws(list(loader), range(7, 14), passes(epochs=None))
    for wrong in (-1, 2**63):
        with pytest.raises(SetsupError, match="counted over all passes"):
            loader.load_state_dict({"delivered": wrong})


def test_a_finite_sampler_of_ones_own_goes_on_in_a_second_loop() -> None:
    table = setsup.FactorTable.from_values({"c": np.arange(40) % 4})
    data = setsup.from_arrays({"image": np.zeros((40, 4, 4, 3), np.uint8)}, table)
    loader = setsup.loader(data, setsup.EpochSampler(table, size=8, epochs=1), to="numpy")
    assert [sum(1 for batch in loader) for epoch in range(3)] == [5, 5, 5]


def test_a_loop_without_end_says_so_once_where_its_first_pass_ends(caplog: pytest.LogCaptureFixture) -> None:
    endless = passes(epochs=None)  # seven steps
    for begin, loop in (
        (0, setsup.loader(Pictures(), endless, to="numpy")),
        (3, setsup.loader(Pictures(), endless, start=3, rank=1, world=2, workers=0, to="numpy")),
        (0, endless),
        (3, endless.shard(1, 2, start=3)),
        (0, setsup.loading.set_batches(endless)),
        (3, setsup.loading.set_batches(endless.shard(1, 2), start=3)),
    ):
        caplog.clear()
        batches, left = iter(loop), 7 if begin == 0 else 2
        for _ in range(left):
            next(batches)
        assert not caplog.records
        for _ in range(15):
            next(batches)
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert "pass epochs=1 for one pass per loop" in record.getMessage()
    again = setsup.loader(Pictures(), endless, workers=0, to="numpy")
    caplog.clear()
    for _ in range(4):
        head(again, 7)  # loops that end with a pass
    assert not caplog.records
    for _ in range(5):
        head(again, 5)
    assert len(caplog.records) == 1
    with pytest.raises(TypeError):
        len(again)
    caplog.clear()
    assert len(list(passes(epochs=2))) == 14
    assert len(list(setsup.loader(Pictures(), passes(epochs=2), workers=0, to="numpy"))) == 14
    head(setsup.loader(Pictures(), sets(), workers=0, to="numpy"), 20)
    assert not caplog.records


def test_a_buffer_is_used_again_only_when_nobody_holds_its_batch() -> None:
    batches = iter(setsup.loader(Pictures(), sets(), modalities=["image"], workers="thread", to="numpy"))
    held = [next(batches)["image"][0] for _ in range(6)]  # views keep their buffers
    assert_held = [PICTURES[sets()[step].indices[0]] for step in range(6)]
    addresses = set()
    for _ in range(40):
        batch = next(batches)
        addresses.add(batch["image"].__array_interface__["data"][0])
        del batch
    for view, wanted in zip(held, assert_held, strict=True):
        np.testing.assert_array_equal(view, wanted)
    assert len(addresses) <= 6
    assert not addresses & {view.__array_interface__["data"][0] for view in held}


def test_a_sampler_of_another_table_is_refused() -> None:
    other = setsup.SetSampler(FACTORS.where("shape != 'c'"), inactive=["shape"], size=6)
    with pytest.raises(SamplerError, match=r"create the sampler from dataset\.factors"):
        setsup.loader(Pictures(), other)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("workers", [0, "thread", 1])
def test_an_error_in_fetch_is_raised_where_the_batch_is_asked_for(workers: Any) -> None:
    with pytest.raises(DataError, match="picture 7 is damaged"):
        next(iter(setsup.loader(Damaged(), sets(), workers=workers, to="numpy")))


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("workers", ["thread", 2])
def test_an_abandoned_stream_leaves_nothing_behind(workers: Any) -> None:
    threads = threading.active_count()
    batches = iter(setsup.loader(Pictures(), sets(), workers=workers, to="numpy"))
    next(batches)
    batches.close()
    assert threading.active_count() <= threads
    assert not children()


def test_a_stream_may_be_found_by_the_garbage_collector_in_its_own_thread() -> None:
    collected, begun = threading.Event(), threading.Event()

    def collecting(batch: dict[str, Any]) -> dict[str, Any]:
        if batch["step"] == 1:
            begun.wait()
            gc.collect()
            collected.set()
        return batch

    threads = threading.active_count()
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    cycle["batches"] = iter(setsup.loader(Pictures(), sets(), transform=collecting, workers="thread", to="numpy"))
    next(cycle["batches"])
    gc.disable()
    try:
        del cycle
        begun.set()
        assert collected.wait(20)
    finally:
        gc.enable()
    end = time.monotonic() + 20
    while threading.active_count() > threads and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() <= threads


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("workers", [0, "thread", 1])
def test_a_draw_that_failed_is_not_delivered(workers: Any) -> None:
    def failing(batch: dict[str, Any]) -> dict[str, Any]:
        if batch["step"] == 2:
            raise DataError("this draw is damaged")
        return batch

    loader = setsup.loader(Pictures(), sets(), transform=failing, workers=workers, to="numpy")
    for _ in range(2):  # the same draw fails again
        with pytest.raises(DataError, match="this draw is damaged"):
            list(loader)
        assert loader.state_dict() == {"delivered": 2}


def test_a_transform_changes_batches_and_keeps_their_slots() -> None:
    def darker(batch: dict[str, Any]) -> dict[str, Any]:
        return batch | {"image": batch["image"] // 2}

    batch = next(iter(setsup.loader(Pictures(), sets(), transform=darker, workers=0, to="numpy")))
    np.testing.assert_array_equal(batch["image"], PICTURES[sets()[0].indices] // 2)

    def halved(batch: dict[str, Any]) -> dict[str, Any]:
        return batch | {"image": batch["image"][:, :3]}

    with pytest.raises(SetsupError, match=r"changed 'image' from 2 sets of 6 to \(2, 3\)"):
        next(iter(setsup.loader(Pictures(), sets(), transform=halved, workers=0, to="numpy")))


@pytest.mark.long("kills and interruptions")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a timer that interrupts is of POSIX systems")
@pytest.mark.parametrize("workers", [0, "thread", 2])
def test_who_interrupts_a_stream_and_resumes_misses_no_draw(workers: Any) -> None:
    class Slow(Pictures):
        def fetch_into(self, indices: Any, out: Any) -> None:
            time.sleep(0.02)
            super().fetch_into(indices, out)

    armed = False

    def interrupt(_: int, frame: FrameType | None) -> None:
        nonlocal armed
        # while a batch is waited for: anywhere else it would be this test that loses one
        outer = None if frame is None else frame.f_back
        while outer is not None and outer.f_code is not Loader._batches.__code__:
            outer = outer.f_back
        if armed and outer is not None:
            armed = False
            raise KeyboardInterrupt

    loader, steps = setsup.loader(Slow(), sets(), workers=workers, to="numpy"), []
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    try:
        for goal in (1, 3, 6, 8):
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the stream has no end
                for batch in loader:
                    assert_draws([batch], [batch["step"]])
                    steps.append(batch["step"])
                    armed = len(steps) >= goal
            assert loader.state_dict() == {"delivered": len(steps)}
            assert "setsup-loader" not in {thread.name for thread in threading.enumerate()}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(steps) >= 8
    assert steps == list(range(len(steps)))
    assert not children()


def test_a_transform_may_drop_add_and_copy() -> None:
    def changed(batch: dict[str, Any]) -> dict[str, Any]:
        del batch["depth"]
        copies = np.stack([batch["image"]] * 3, axis=2)
        return batch | {
            "image": copies,
            "rows": batch["image"][0],
            "count": 3,
            "factors": {"new": batch["indices"] % 2},
        }

    batch = next(iter(setsup.loader(Pictures(), sets(), transform=changed, workers=0, to="numpy")))
    assert batch["image"].shape == (2, 6, 3, 4, 5, 3)
    assert batch["rows"].shape == (6, 4, 5, 3)
    np.testing.assert_array_equal(batch["factors"]["new"], sets()[0].indices % 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda batch: {"depth": batch["depth"].reshape(-1, 4, 5)}, r"'depth' from 2 sets of 3 to \(6, 4\)"),
        (lambda batch: {"indices": batch["indices"][:1]}, r"'indices' from 2 sets of 3 to \(1, 3\)"),
        (lambda batch: {"mask": batch["mask"][:, 0]}, r"'mask' from 2 sets of 3 to \(2,\)"),
        (lambda batch: {"canonical": batch["canonical"][:1]}, r"'canonical' from 2 sets to \(1,\)"),
        (lambda batch: {"canonical_image": batch["canonical_image"][:1]}, r"'canonical_image' from 2 sets to \(1,\)"),
        (
            lambda batch: {"factors": {"size": batch["indices"][:, :2]}},
            r"'factors: size' from 2 sets of 3 to \(2, 2\)",
        ),
        (lambda batch: {"inactive": {"shape": np.zeros(3)}}, r"'inactive: shape' from 2 sets to \(3,\)"),
        (lambda batch: {"image": None}, r"'image' with a NoneType; return an array with one entry per position"),
    ],
)
def test_a_transform_that_drops_slots_is_one_sentence(change: Any, words: str) -> None:
    sampler = setsup.OrbitSampler(FACTORS, "shape", sets=2, size=3, canonical="first")
    loader = setsup.loader(Pictures(), sampler, transform=lambda batch: batch | change(batch), workers=0, to="numpy")
    with pytest.raises(SetsupError, match=f"the transform (changed|replaced) {words}"):
        next(iter(loader))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": -1}, "workers must be"),
        ({"workers": "many"}, "workers must be"),
        ({"prefetch": 0}, "prefetch must be"),
        ({"rank": 2, "world": 2}, "rank"),
        ({"start": -1}, "start"),
    ],
)
def test_wrong_options_are_one_sentence(options: dict[str, Any], words: str) -> None:
    with pytest.raises(SetsupError, match=words):
        setsup.loader(Pictures(), sets(), to="numpy", **options)


def test_one_batch_ahead_is_enough() -> None:
    loader = setsup.loader(Pictures(), sets(), workers="thread", prefetch=1, to="numpy")
    assert_draws(head(loader, 3), range(3))


@pytest.mark.parametrize("returned", [None, [1], "batch"])
def test_a_transform_that_returns_no_batch_is_one_sentence(returned: Any) -> None:
    loader = setsup.loader(Pictures(), sets(), transform=lambda batch: returned, workers=0, to="numpy")
    with pytest.raises(
        SetsupError, match=f"the transform must return the batch, a dict, not {type(returned).__name__}"
    ):
        next(iter(loader))


@pytest.mark.parametrize("state", [{}, {"delivered": "x"}, {"delivered": -1}, None])
def test_wrong_states_are_refused(state: Any) -> None:
    with pytest.raises(SetsupError):
        setsup.loader(Pictures(), sets(), to="numpy").load_state_dict(state)


@pytest.mark.parametrize("number", [np.int64, np.uint8, np.int32])
def test_numbers_of_numpy_are_pythons_in_a_state(number: Any) -> None:
    loader = setsup.loader(
        Pictures(), sets(), start=number(3), rank=number(1), world=number(2), workers=number(0), prefetch=number(2)
    )
    assert next(iter(loader))["step"] == 4
    assert json.dumps(loader.state_dict()) == '{"delivered": 5}'
    loader.load_state_dict({"delivered": number(7)})
    assert json.dumps(loader.state_dict()) == '{"delivered": 7}'
    assert type(loader.rank) is type(loader.world) is int


def test_a_dataset_of_another_base_is_loaded() -> None:
    class Bare:
        name, factors, modalities, fetch = "bare", FACTORS, MODALITIES, Pictures.fetch

        def __len__(self) -> int:
            return len(FACTORS)

    dataset: Any = Bare()
    for workers in (0, "thread"):
        assert_draws(head(setsup.loader(dataset, sets(), workers=workers, to="numpy"), 3), range(3))


@pytest.mark.parametrize("name", ["procedural", "mapped", "selection", "digits"])
def test_what_is_written_into_buffers_is_what_a_fetch_gives(name: str, tmp_path: Path) -> None:
    if name == "digits":
        dataset: Dataset = digits(tmp_path)
    elif name == "mapped":
        dataset = published(tmp_path)
    else:
        dataset = setsup.load("shapes3d-procedural")
        dataset = dataset.where("scale == 0.75 and shape == 'cube'") if name == "selection" else dataset
    rows = np.array([[3, 0, 5], [5, 1, 2]])
    wanted = dataset.fetch(rows)["image"]
    out = np.empty_like(wanted)
    dataset.fetch_into(rows, {"image": out})
    np.testing.assert_array_equal(out, wanted)
    with pytest.raises(RowError):
        dataset.fetch_into([len(dataset)], {"image": out[:1, 0]})


def digits(folder: Path) -> Dataset:
    pixels = np.arange(8 * 784, dtype=np.uint8)
    for prefix, count in (("train", 4), ("t10k", 4)):
        images = pixels[: count * 784] + np.uint8(len(prefix))
        header = struct.pack(">4I", 2051, count, 28, 28)
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(header + images.tobytes())
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 2049, count) + bytes(range(count)))
    return setsup.load("mnist", root=folder)


def published(folder: Path) -> Dataset:
    with h5py.File(folder / "3dshapes.h5", "w") as file:
        file["images"] = np.arange(6 * 64 * 64 * 3, dtype=np.uint8).reshape(6, 64, 64, 3)
        file["labels"] = np.tile([0.1, 0.2, 0.3, 0.75, 2.0, -30.0], (6, 1))
    return setsup.load("shapes3d", root=folder)
