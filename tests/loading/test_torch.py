"""The torch integration: tensors that are views of the same memory, and torch's own DataLoader."""

import copy
import itertools
import multiprocessing
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import setsup
from setsup.datasets.dataset import Dataset, Modality, fetch_request
from setsup.errors import LibraryError, SamplerError
from setsup.factors import FactorTable
from setsup.loading.ring import Ring
from setsup.loading.torch import TensorConverter

torch = pytest.importorskip("torch", reason="torch is not installed")


CONTEXTS = ["fork", pytest.param("forkserver", marks=pytest.mark.long("worker processes"))]
"""Workers that inherit what they are given, and such as unpickle it: as with spawn, but that torch is imported once."""


@pytest.fixture(scope="module", autouse=True)
def imported_once() -> None:
    multiprocessing.set_forkserver_preload(["setsup", "torch"])


@pytest.fixture(scope="module")
def shapes() -> setsup.datasets.dataset.Dataset:
    return setsup.load("shapes3d-procedural", where="scale == 1.25")


@pytest.fixture(scope="module")
def sets(shapes: setsup.datasets.dataset.Dataset) -> setsup.SetSampler:
    return setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=8, sets=2)


def test_images_are_channels_first_views_of_uint8(shapes, sets) -> None:
    batch = next(iter(setsup.loader(shapes, sets)))
    wanted = shapes.fetch(sets[0].indices)["image"]
    assert batch["image"].dtype == torch.uint8
    assert tuple(batch["image"].shape) == (2, 8, 3, 64, 64)
    np.testing.assert_array_equal(batch["image"].numpy(), np.moveaxis(wanted, -1, -3))
    assert batch["image"].movedim(-3, -1).is_contiguous()
    assert batch["factors"]["wall_hue"].dtype == torch.int64
    assert torch.equal(batch["indices"], torch.from_numpy(sets[0].indices.copy()))


PIXELS = np.random.default_rng(8).integers(0, 256, (60, 5, 4, 1), dtype=np.uint8)
AGES = np.linspace(0.25, 80, 60)


class Grey(Dataset):
    """Pictures of one channel, the same pixels without a colour, and a continuous factor."""

    name = "grey"
    factors = FactorTable.from_values({"shape": np.arange(60) % 3, "age": AGES})

    def __init__(self) -> None:
        self.modalities = {"image": Modality((5, 4, 1), "uint8", color="grey"), "plain": Modality((5, 4, 1), "uint8")}

    def fetch(self, indices: Any, modalities: Any = None) -> dict[str, Any]:
        rows, names = fetch_request(self, indices, modalities)
        return {name: PIXELS[rows] for name in names}


def grey_sets() -> setsup.SetSampler:
    return setsup.SetSampler(Grey.factors, inactive=["shape"], size=4, sets=2)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("workers", [0, "thread"])
def test_grey_images_have_one_channel_and_continuous_factors_are_float32(workers: Any) -> None:
    batch = next(iter(setsup.loader(Grey(), grey_sets(), workers=workers)))
    rows = grey_sets()[0].indices
    assert batch["image"].dtype == torch.uint8
    assert tuple(batch["image"].shape) == (2, 4, 1, 5, 4)
    np.testing.assert_array_equal(batch["image"][:, :, 0], PIXELS[rows, ..., 0])
    assert tuple(batch["plain"].shape) == (2, 4, 5, 4, 1)  # no picture: it does not say that it is one
    assert batch["factors"]["age"].dtype == torch.float32
    np.testing.assert_array_equal(batch["factors"]["age"], AGES[rows].astype(np.float32))
    item = setsup.loading.as_torch(Grey())[7]
    assert tuple(item["image"].shape) == (1, 5, 4)
    assert item["factors"]["age"].dtype == torch.float32


@pytest.mark.parametrize("again", [copy.deepcopy, lambda loader: pickle.loads(pickle.dumps(loader))])
def test_a_loader_of_tensors_can_be_copied_and_pickled(again: Callable[[Any], Any], shapes, sets) -> None:
    loader = setsup.loader(shapes, sets)
    next(iter(loader))
    other = again(loader)
    assert other.state_dict() == {"delivered": 1}
    batch = next(iter(other))
    assert torch.equal(batch["indices"], torch.from_numpy(sets[1].indices.copy()))
    np.testing.assert_array_equal(batch["image"].movedim(-3, -1), shapes.fetch(sets[1].indices)["image"])


@pytest.mark.long("large or genuine files")
def test_numpy_and_torch_streams_are_equal(shapes, sets) -> None:
    pairs = zip(setsup.loader(shapes, sets), setsup.loader(shapes, sets, to="numpy"), range(5), strict=False)
    for tensors, arrays, _ in pairs:
        np.testing.assert_array_equal(tensors["image"].movedim(-3, -1).numpy(), arrays["image"])


def test_a_tensor_keeps_its_buffer(tmp_path, shapes, sets) -> None:
    batches = iter(setsup.loader(shapes, sets))
    first = next(batches)["image"]
    before = first.clone()
    for _ in range(10):
        next(batches)
    assert torch.equal(first, before)


@pytest.mark.long("worker processes")
def test_tensors_of_any_kind_come_from_worker_processes(shapes, sets) -> None:
    def transform(batch):
        image = batch["image"]
        return batch | {
            "brain": image.bfloat16(),
            "sparse": image[0, 0].float().to_sparse(),
            "learnt": torch.nn.Parameter(torch.ones(3)),
            "flipped": image.flip(-1),
            "step": torch.tensor(batch["step"]),
        }

    one, other = (next(iter(setsup.loader(shapes, sets, transform=transform, workers=n))) for n in (1, 0))
    for name in ("image", "brain", "learnt", "flipped", "step"):
        assert torch.equal(one[name], other[name])
        assert one[name].dtype == other[name].dtype
        assert type(one[name]) is type(other[name])
    assert torch.equal(one["sparse"].to_dense(), other["sparse"].to_dense())
    assert one["image"].stride() == other["image"].stride()


def test_page_locked_arrays_are_kept_by_their_views(monkeypatch) -> None:
    monkeypatch.setattr(torch.Tensor, "pin_memory", torch.Tensor.clone)  # there may be no GPU
    converter = TensorConverter("torch")
    converter.device = torch.device("cuda:0")
    ring = Ring((4, 2), "float32", converter.allocate)
    first = ring.take()
    address, view = first.__array_interface__["data"][0], first[1:]
    del first
    assert ring.take().__array_interface__["data"][0] != address
    del view
    assert ring.take().__array_interface__["data"][0] == address


def test_torch_own_loader_reads_rows_and_sets(shapes, sets) -> None:
    rows = setsup.loading.as_torch(shapes)
    plain = torch.utils.data.DataLoader(rows, batch_size=4)
    batch = next(iter(plain))
    assert tuple(batch["image"].shape) == (4, 3, 64, 64)
    assert batch["index"].tolist() == [0, 1, 2, 3]
    in_sets = torch.utils.data.DataLoader(rows, batch_sampler=setsup.loading.set_batches(sets))
    for step in range(2):  # where one pass was left, the next goes on
        assert next(iter(in_sets))["index"].tolist() == sets[step].indices.reshape(-1).tolist()


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.long("worker processes"))])
def test_a_sampler_is_a_batch_sampler_of_torch(sets, workers) -> None:
    """Of rows, of a data set of torch's, and of one that wants lists."""
    found = iter(torch.utils.data.DataLoader(range(len(sets.table)), batch_sampler=sets, num_workers=workers))
    assert [next(found).tolist() for _ in range(70)] == flat(sets, range(70))  # more than are drawn at a time
    numbers = torch.utils.data.TensorDataset(torch.arange(len(sets.table)))
    share = torch.utils.data.DataLoader(numbers, batch_sampler=sets.shard(1, 3, start=4), num_workers=workers)
    assert [rows.tolist() for (rows,) in itertools.islice(share, 5)] == flat(sets, range(5, 5 + 15, 3))
    for endless in (sets, sets.shard(1, 3)):
        with pytest.raises(TypeError, match="no len"):
            len(torch.utils.data.DataLoader(numbers, batch_sampler=endless))
    padded = setsup.EpochSampler(Grey.factors, size=16, epochs=1, partial="pad")
    once = torch.utils.data.DataLoader(setsup.loading.as_torch(Grey()), batch_sampler=padded, num_workers=workers)
    assert len(once) == 4
    assert [batch["index"].tolist() for batch in once] == flat(padded, range(4))


@pytest.mark.parametrize("world", [1, 3])
def test_passes_of_so_many_steps(sets, world) -> None:
    ranks = [setsup.loading.set_batches(sets.shard(rank, world), steps=5) for rank in range(world)]
    for epoch in range(3):
        assert [len(batches) for batches in ranks] == [5] * world
        passes = [list(batches) for batches in ranks]
        together = [rows for step in zip(*passes, strict=True) for rows in step]
        assert together == flat(sets, range(epoch * 5 * world, (epoch + 1) * 5 * world))
    for batches in ranks:
        batches.set_epoch(1)
    assert [next(iter(batches)) for batches in ranks] == flat(sets, range(5 * world, 5 * world + world))
    resumed = setsup.loading.set_batches(sets, start=12, steps=5)
    assert (len(resumed), list(resumed)) == (3, flat(sets, range(12, 15)))
    for wrong in (0, -1, 1.5, True, "5", 2**63):
        with pytest.raises(SamplerError, match="steps must be an integer"):
            setsup.loading.set_batches(sets, steps=wrong)
    with pytest.raises(SamplerError, match="leave out steps"):
        setsup.loading.set_batches(setsup.EpochSampler(Grey.factors, size=16, epochs=1), steps=5)


def flat(sampler: Any, steps: Any) -> list[list[int]]:
    """Rows of draws at steps of an endless sampler, padding left out."""
    draws = [sampler[step] for step in steps]
    return [draw.indices[... if draw.mask is None else draw.mask].reshape(-1).tolist() for draw in draws]


@pytest.mark.parametrize("partial", ["drop", "pad"])
def test_passes_over_a_finite_sampler_resume_with_the_steps(partial) -> None:
    options = {"size": 8, "partial": partial, "seed": 3}
    endless = setsup.EpochSampler(Grey.factors, **options)
    once = setsup.loading.set_batches(setsup.EpochSampler(Grey.factors, epochs=1, **options))
    n = endless.steps_per_epoch
    loader = torch.utils.data.DataLoader(setsup.loading.as_torch(Grey()), batch_sampler=once)
    for epoch in range(3):
        assert len(loader) == n
        found = [batch["index"].tolist() for batch in loader]
        assert found == flat(endless, range(epoch * n, (epoch + 1) * n))
    next(iter(loader))  # a pass that is left is done
    assert list(once) == flat(endless, range(4 * n, 5 * n))
    twice = setsup.loading.set_batches(setsup.EpochSampler(Grey.factors, epochs=2, **options))
    assert len(twice) == 2 * n
    assert [*twice, *twice] == flat(endless, range(4 * n))
    ordered = setsup.loading.set_batches(setsup.EpochSampler(Grey.factors, epochs=1, shuffle=False, **options))
    assert list(ordered) == list(ordered)


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("persistent", [False, True])
def test_passes_with_workers_of_torch(persistent) -> None:
    endless = setsup.EpochSampler(Grey.factors, size=8)
    once = setsup.loading.set_batches(setsup.EpochSampler(Grey.factors, size=8, epochs=1), start=5)
    loader = torch.utils.data.DataLoader(
        setsup.loading.as_torch(Grey()), batch_sampler=once, num_workers=2, persistent_workers=persistent
    )
    for begin, end in ((5, 7), (7, 14), (14, 21)):
        assert len(loader) == end - begin
        assert [batch["index"].tolist() for batch in loader] == flat(endless, range(begin, end))


@pytest.mark.parametrize("world", [1, 2, 3, 5])
@pytest.mark.parametrize("start", [0, 3, 7, 17])
def test_ranks_of_torch_share_the_draws_of_each_pass(world, start) -> None:
    endless, once = setsup.EpochSampler(Grey.factors, size=8), setsup.EpochSampler(Grey.factors, size=8, epochs=1)
    ranks = [setsup.loading.set_batches(once.shard(rank, world), start) for rank in range(world)]
    begin = start
    for _ in range(3):
        end = begin // 7 * 7 + 7
        passes = [list(batches) for batches in ranks if len(batches) == -(-(end - begin) // world)]
        assert len(passes) == world
        together = [rows for step in zip(*passes, strict=True) for rows in step]
        steps = [min(step, end - 1) for step in range(begin, begin + len(together))]
        assert together == flat(endless, steps)
        begin = end
    if start <= 7:  # the shard's own start is the same
        shards = [setsup.loading.set_batches(once.shard(rank, world, start)) for rank in range(world)]
        assert [next(iter(batches)) for batches in shards] == flat(
            endless, [min(start + rank, start // 7 * 7 + 6) for rank in range(world)]
        )


def test_ranks_of_an_endless_sampler_resume_together(sets) -> None:
    ranks = [setsup.loading.set_batches(sets.shard(rank, 2, start=3)) for rank in range(2)]
    for begin in (3, 3 + 2 * 70):  # more than are drawn at a time
        passes = [list(itertools.islice(batches, 70)) for batches in ranks]
        assert [rows for step in zip(*passes, strict=True) for rows in step] == flat(sets, range(begin, begin + 140))


def test_trainers_may_set_the_epoch(sets) -> None:
    endless = setsup.EpochSampler(Grey.factors, size=8)
    batches = setsup.loading.set_batches(setsup.EpochSampler(Grey.factors, size=8, epochs=1), start=9)
    batches.set_epoch(1)  # which a resumed pass is within
    assert list(batches) == flat(endless, range(9, 14))
    batches.set_epoch(5)
    assert list(batches) == flat(endless, range(35, 42))
    going_on = setsup.loading.set_batches(sets)
    next(iter(going_on))
    going_on.set_epoch(0)
    assert next(iter(going_on)) == sets[1].indices.reshape(-1).tolist()
    for wrong in (-1, 1.5, "1", None, True, 2**63):
        with pytest.raises(SamplerError, match="number of a pass must be an integer"):
            batches.set_epoch(wrong)


def test_lightning_finds_the_epoch_where_it_looks() -> None:
    """At ``batch_sampler.sampler``, and not at the batch sampler itself."""
    endless = setsup.EpochSampler(Grey.factors, size=8)
    for wrapped in (lambda batches: batches, copy.deepcopy, lambda batches: pickle.loads(pickle.dumps(batches))):
        once = wrapped(setsup.loading.set_batches(setsup.EpochSampler(Grey.factors, size=8, epochs=1)))
        loader = torch.utils.data.DataLoader(setsup.loading.as_torch(Grey()), batch_sampler=once)
        loader.batch_sampler.sampler.set_epoch(2)
        assert [batch["index"].tolist() for batch in loader] == flat(endless, range(14, 21))
        loader.batch_sampler.sampler.set_epoch(1)
        assert [batch["index"].tolist() for batch in loader] == flat(endless, range(7, 14))


def test_a_start_that_a_trainer_passes_over_is_said(caplog: pytest.LogCaptureFixture) -> None:
    batches = setsup.loading.set_batches(setsup.EpochSampler(Grey.factors, size=8, epochs=1), start=16)
    batches.set_epoch(2)
    assert not caplog.records
    batches.set_epoch(0)
    assert "start=16, which is in pass 2, is ignored" in caplog.text
    assert next(iter(batches)) == flat(setsup.EpochSampler(Grey.factors, size=8), [0])[0]


def test_a_pass_of_one_draw_that_ended_is_no_start_that_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    rows = len(Grey.factors)
    batches = setsup.loading.set_batches(setsup.EpochSampler(Grey.factors, size=rows, epochs=1))
    for number in (1, 2):
        batches.set_epoch(number)
        assert not caplog.records
    assert list(batches) == flat(setsup.EpochSampler(Grey.factors, size=rows), [2])


def test_mixtures_resume_with_their_schedule() -> None:
    both = setsup.factors.concat([Grey.factors, Grey.factors])
    schedule = setsup.samplers.Stepwise(1.0, every=3, levels=2)
    bases = [setsup.EpochSampler(both, size=20, epochs=epochs, where="part == 'a'") for epochs in (1, None)]
    once, endless = (setsup.Mixture(base, "part == 'b'", sets=[0], p=schedule) for base in bases)
    batches = setsup.loading.set_batches(once)
    assert [*batches, *batches] == flat(endless, range(6))


def test_set_batches_leave_padding_out() -> None:
    epoch = setsup.EpochSampler(Grey.factors, size=16, epochs=1, partial="pad")
    batches = list(setsup.loading.set_batches(epoch))
    assert [len(rows) for rows in batches] == [16, 16, 16, 60 - 3 * 16]
    assert sorted(itertools.chain(*batches)) == list(range(60))
    in_sets = setsup.loading.set_batches(epoch)
    loader = torch.utils.data.DataLoader(setsup.loading.as_torch(Grey()), batch_sampler=in_sets)
    assert sorted(torch.cat([batch["index"] for batch in loader]).tolist()) == list(range(60))


def test_a_dataset_and_a_sampler_in_each_others_place_are_one_sentence(shapes, sets) -> None:
    with pytest.raises(setsup.SetsupError, match=r"as_torch requires a dataset, .* not SetSampler"):
        setsup.loading.as_torch(sets)
    with pytest.raises(setsup.SetsupError, match=r"set_batches requires a sampler, .* not Selection"):
        setsup.loading.set_batches(shapes)
    with pytest.raises(setsup.SetsupError, match="start must be an integer from 0 to"):
        setsup.loading.set_batches(sets, start=-1)
    with pytest.raises(
        setsup.SetsupError, match="start=4 and the shard's start=3 are mutually exclusive; pass one of them"
    ):
        setsup.loading.set_batches(sets.shard(0, 2, 3), start=4)


class Endless(torch.utils.data.IterableDataset):
    """What torch's DataLoader makes of a loader."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Any:
        return iter(self.loader)


def first(loader: Any, count: int) -> list[Any]:
    """First batches; workers end with them, where an error's traceback would keep them, half closed, for seconds."""
    batches = iter(loader)
    try:
        return list(itertools.islice(batches, count))
    finally:
        if loader.num_workers:
            batches._shutdown_workers()


def test_several_workers_of_torch_do_not_repeat_draws(shapes, sets) -> None:
    def steps(count: int) -> list[int]:
        inner = Endless(setsup.loader(shapes, sets, workers=0))
        return [batch["step"] for batch in first(torch.utils.data.DataLoader(inner, None, num_workers=count), 6)]

    assert steps(0) == steps(1) == list(range(6))
    with pytest.raises(setsup.SetsupError, match="each of the 2 worker processes of torch's DataLoader would"):
        steps(2)


class Shared(torch.utils.data.IterableDataset):
    """A loader of its own in each worker process, of one share."""

    def __init__(self, dataset: Any, sampler: Any) -> None:
        self.dataset, self.sampler = dataset, sampler

    def __iter__(self) -> Any:
        info = torch.utils.data.get_worker_info()
        return iter(setsup.loader(self.dataset, self.sampler, rank=info.id, world=info.num_workers, workers=0))


def test_workers_of_torch_may_share_the_draws_by_loaders_of_their_own(shapes, sets) -> None:
    loader = torch.utils.data.DataLoader(Shared(shapes, sets), batch_size=None, num_workers=2)
    for step, batch in enumerate(first(loader, 6)):
        assert batch["step"] == step
        assert torch.equal(batch["indices"], torch.from_numpy(sets[step].indices.copy()))


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_loader_that_came_to_several_workers_is_refused_however_they_started(context, shapes, sets) -> None:
    inner = Endless(setsup.loader(shapes, sets, workers=0))
    loader = torch.utils.data.DataLoader(inner, batch_size=None, num_workers=2, multiprocessing_context=context)
    with pytest.raises(setsup.SetsupError, match="or create the loader in each worker, with its rank= and world="):
        first(loader, 1)


@pytest.mark.long("large or genuine files")
def test_a_loader_in_place_of_a_dataset_says_what_to_do(shapes, sets) -> None:
    with pytest.raises(TypeError, match="as an IterableDataset with batch_size=None and num_workers=0"):
        next(iter(torch.utils.data.DataLoader(setsup.loader(shapes, sets), batch_size=None)))


def test_set_batches_have_the_length_of_their_sampler(shapes, sets) -> None:
    epoch = setsup.EpochSampler(shapes.factors, size=1000)
    assert len(setsup.loading.set_batches(setsup.EpochSampler(shapes.factors, size=1000, epochs=1), start=3)) == 57
    with pytest.raises(TypeError, match="no len"):
        len(setsup.loading.set_batches(epoch))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device")
def test_without_torch_every_way_to_tensors_raises_the_error_of_missing_libraries(
    shapes, sets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    for call in (lambda: setsup.loader(shapes, sets), lambda: setsup.loading.as_torch(shapes)):
        with pytest.raises(LibraryError, match="requires torch, which is not installed: pip install") as caught:
            call()
        assert str(caught.value.hint).startswith("pip install ")
    assert next(iter(setsup.loader(shapes, sets, to="numpy")))["image"].dtype == np.uint8


def test_a_device_that_is_not_there_is_one_sentence(shapes, sets) -> None:
    with pytest.raises(setsup.SetsupError, match="device 'cuda:0' is not available"):
        setsup.loader(shapes, sets, to="cuda:0")


def test_an_unknown_device_is_one_sentence(shapes, sets) -> None:
    with pytest.raises(setsup.SetsupError, match="to must be"):
        next(iter(setsup.loader(shapes, sets, to="abacus")))


@pytest.mark.parametrize("context", CONTEXTS)
def test_torch_own_loader_may_use_worker_processes(shapes, sets, context) -> None:
    rows = setsup.loading.as_torch(shapes)
    loader = torch.utils.data.DataLoader(rows, batch_size=4, num_workers=1, multiprocessing_context=context)
    (batch,) = first(loader, 1)
    assert batch["index"].tolist() == [0, 1, 2, 3]
