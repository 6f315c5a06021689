"""What is read from frames of trainers: the releases here have it, and where one does not, there is an error."""

import sys
from collections.abc import Callable
from importlib import import_module
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

import setsup
from setsup.errors import SamplerError, UsageError
from setsup.samplers.callers import (
    epoch_of_lightning,
    epoch_of_skipping,
    is_announced_by_accelerate,
    is_announced_by_lightning,
    processes_of_accelerate,
)

LABELS = [number % 7 for number in range(61)]


def call_from(module: str, function: str, owner: Any, find: Callable[[], Any]) -> Any:
    """Call something as if a function of that module did."""

    def call(self: Any, find: Callable[[], Any]) -> Any:
        return find()

    code = call.__code__.replace(co_name=function, co_qualname=f"{type(owner).__name__}.{function}")
    return FunctionType(code, {"__name__": module})(owner, find)


def from_accelerate(names: str, find: Callable[[], Any], function: str = "__iter__", **attributes: Any) -> Any:
    """Call something as a method of a class of accelerate does; `names`: the class and those it derives from."""
    kind: type = object
    for name in reversed(names.split()):
        kind = type(name, (kind,), {})
    owner = kind()
    vars(owner).update(attributes)
    return call_from("accelerate.data_loader", function, owner, find)


def test_functions_that_are_looked_for_are_there() -> None:
    for module in ("accelerate", "lightning"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    data = import_module("accelerate.data_loader")
    for kind in ("BatchSamplerShard", "IterableDatasetShard", "DataLoaderShard", "DataLoaderDispatcher"):
        assert "__iter__" in vars(getattr(data, kind))
    assert {"split_batches", "dispatch_batches", "num_processes"} <= set(data.prepare_data_loader.__code__.co_varnames)
    loops = "lightning.pytorch.loops"
    assert hasattr(import_module(f"{loops}.fit_loop")._FitLoop, "setup_data")
    assert hasattr(import_module(f"{loops}.training_epoch_loop")._TrainingEpochLoop, "on_run_start")
    assert callable(import_module("lightning.fabric.utilities.data")._set_sampler_epoch)
    for package in ("lightning.fabric", "lightning.pytorch"):
        utilities = import_module(f"{package}.utilities.data")
        assert callable(utilities._dataloader_init_kwargs_resolve_sampler)


# torch


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata
@pytest.mark.parametrize("library", ["torch.utils.data", "torchdata.stateful_dataloader"])
@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}], ids=str)
def test_batches_are_not_the_sampler_of_single_rows(library: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    load = getattr(module, "DataLoader" if library.startswith("torch.") else "StatefulDataLoader")
    rows = torch.utils.data.TensorDataset(torch.arange(len(LABELS)))
    table = setsup.FactorTable.from_values({"label": LABELS})
    once = setsup.EpochSampler(table, 4, epochs=1)
    for batches in (
        setsup.batch_sampler(LABELS, classes=3, per_class=2),
        setsup.loading.set_batches(once),
        once,
        once.shard(0, 2),
    ):
        name = type(batches).__name__
        with pytest.raises(UsageError, match=f"of this {name} is a batch of rows; pass it as batch_sampler=, without"):
            next(iter(load(rows, sampler=batches, **options)))
        assert len(next(iter(load(rows, batch_sampler=batches)))[0]) in (4, 6)
    labeled, drawn = setsup.batch_sampler(LABELS, classes=3, per_class=2), setsup.loading.set_batches(once)
    for batches, first in ((labeled, labeled.rows(0)), (drawn, list(once[0]))):
        with pytest.raises(UsageError, match="pass it as batch_sampler="):
            len(load(rows, sampler=batches, **options))
        # a DataLoader that collects nothing takes lists of rows, as torch documents
        assert next(iter(load(rows, sampler=batches, batch_size=None)))[0].tolist() == first


# accelerate


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes, as accelerate counts them."""
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    import_module("accelerate.data_loader")
    monkeypatch.setattr(accelerate.state.PartialState(cpu=True), "num_processes", 2)


@pytest.mark.usefixtures("processes")
def test_without_accelerate_among_the_callers_nobody_divides() -> None:
    assert processes_of_accelerate() is None
    assert not is_announced_by_accelerate()
    assert epoch_of_skipping() is None


def test_a_shard_gives_the_number_of_processes_and_so_does_a_class_derived_from_it(processes: None) -> None:
    for names in ("BatchSamplerShard", "Longer BatchSamplerShard", "IterableDatasetShard"):
        assert from_accelerate(names, processes_of_accelerate, num_processes=3) == 3
    for names in ("DataLoaderShard", "Stateful DataLoaderShard"):
        assert from_accelerate(names, processes_of_accelerate) == 1
    assert from_accelerate("DataLoaderDispatcher", processes_of_accelerate) == 2
    assert from_accelerate("SkipBatchSampler", processes_of_accelerate) is None
    assert from_accelerate("DataLoaderShard", is_announced_by_accelerate)
    assert not from_accelerate("DataLoaderShard", is_announced_by_accelerate, "set_epoch")


def test_a_class_that_is_not_known_is_an_error_where_several_processes_share(
    processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = setsup.batch_sampler(LABELS, classes=3, per_class=2)
    for find in (processes_of_accelerate, lambda: next(iter(batches)), lambda: len(batches)):
        with pytest.raises(
            SamplerError, match=r"^accelerate [\d.]+ divides draws by its class Divider, .*; do not pass"
        ):
            from_accelerate("Divider", find)
    assert from_accelerate("Divider", lambda: repr(batches)) == f"BatchSampler({batches.sampler!r})"
    monkeypatch.setattr(sys.modules["accelerate.state"].PartialState(), "num_processes", 1)
    assert from_accelerate("Divider", processes_of_accelerate) is None


@pytest.mark.parametrize(
    ("name", "find", "missing"),
    [
        ("BatchSamplerShard", processes_of_accelerate, "num_processes"),
        ("BatchSamplerShard", lambda: processes_of_accelerate(batches=True), "split_batches"),
        ("DataLoaderShard", lambda: from_accelerate("SkipBatchSampler", epoch_of_skipping), "iteration"),
    ],
)
def test_an_attribute_that_is_missing_is_an_error(
    name: str, find: Callable[[], Any], missing: str, processes: None
) -> None:
    there = {} if missing == "num_processes" else {"num_processes": 2}
    message = (
        rf"^accelerate [\d.]+ has no self.{missing} in accelerate.data_loader.{name}.__iter__, .*; install an earl"
    )
    with pytest.raises(SamplerError, match=message):
        from_accelerate(name, find, **there)


# Lightning


@pytest.fixture
def lightning() -> None:
    pytest.importorskip("lightning", reason="lightning is not installed")
    for name in ("lightning.pytorch.loops.fit_loop", "lightning.fabric.utilities.data"):
        import_module(name)


def requested(self: Any, find: Callable[[], Any], function: str = "setup_data") -> Any:
    return call_from("lightning.pytorch.loops.fit_loop", function, self, find)


def announced(find: Callable[[], Any]) -> Any:
    return call_from("lightning.fabric.utilities.data", "_set_sampler_epoch", None, find)


def loop(**path: Any) -> Any:
    current = SimpleNamespace(**path)
    fit_loop = SimpleNamespace(epoch_progress=SimpleNamespace(current=current))
    return SimpleNamespace(trainer=SimpleNamespace(fit_loop=fit_loop))


@pytest.mark.usefixtures("lightning")
def test_a_loop_of_lightning_gives_its_epoch() -> None:
    assert requested(loop(processed=4), epoch_of_lightning) == 4
    assert requested(loop(processed=4), epoch_of_lightning, "advance") is None
    assert epoch_of_lightning() is None
    with pytest.raises(
        SamplerError, match=r"^lightning [\d.]+ has no self.trainer.*processed in lightning.*setup_data, "
    ):
        requested(loop(finished=4), epoch_of_lightning)
    assert announced(is_announced_by_lightning)
    assert not is_announced_by_lightning()


@pytest.mark.usefixtures("lightning")
def test_after_a_fit_of_lightning_a_loop_selects_the_last_epoch_again() -> None:
    batches = setsup.batch_sampler(LABELS, classes=3, per_class=2)
    wanted = [batches.rows(step) for step in range(40)]
    taken = iter(batches)
    seen = [requested(loop(processed=2), lambda: next(taken))]  # as worker processes do, before the announcement
    announced(lambda: batches.sampler.set_epoch(2))
    assert batches.state_dict()["delivered"] == 21
    assert [*seen, *taken] == wanted[20:30]
    batches.set_epoch(2)
    assert list(batches) == wanted[20:30]
    assert list(batches) == wanted[30:40]
