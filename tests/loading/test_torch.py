"""The torch door: tensors that are views of the same memory, and torch's own DataLoader."""

import numpy as np
import pytest

import setsup
from setsup.loading.ring import Ring
from setsup.loading.torch import Door

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def shapes() -> setsup.datasets.dataset.Dataset:
    return setsup.load("shapes3d-procedural", where="scale == 1.25")


@pytest.fixture(scope="module")
def sets(shapes: setsup.datasets.dataset.Dataset) -> setsup.SetSampler:
    return setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=8, sets=2)


def test_pictures_are_channels_first_views_of_uint8(shapes, sets) -> None:
    batch = next(iter(setsup.loader(shapes, sets)))
    wanted = shapes.fetch(sets[0].indices)["image"]
    assert batch["image"].dtype == torch.uint8
    assert tuple(batch["image"].shape) == (2, 8, 3, 64, 64)
    np.testing.assert_array_equal(batch["image"].numpy(), np.moveaxis(wanted, -1, -3))
    assert batch["image"].movedim(-3, -1).is_contiguous()
    assert batch["factors"]["wall_hue"].dtype == torch.int64
    assert torch.equal(batch["indices"], torch.from_numpy(sets[0].indices.copy()))


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
    door = Door("torch")
    door.device = torch.device("cuda:0")
    ring = Ring((4, 2), "float32", door.allocate)
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
    for _ in range(2):  # an epoch of torch's loader asks its batch sampler anew
        assert next(iter(in_sets))["index"].tolist() == sets[0].indices.reshape(-1).tolist()


def test_set_batches_have_the_length_of_their_sampler(shapes, sets) -> None:
    epoch = setsup.EpochSampler(shapes.factors, size=1000)
    assert len(setsup.loading.set_batches(setsup.EpochSampler(shapes.factors, size=1000, epochs=1), start=3)) == 57
    with pytest.raises(TypeError, match="no length"):
        len(setsup.loading.set_batches(epoch))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device")
def test_a_device_that_is_not_there_is_one_sentence(shapes, sets) -> None:
    with pytest.raises(setsup.SetsupError, match="torch cannot use 'cuda:0' here"):
        setsup.loader(shapes, sets, to="cuda:0")


def test_an_unknown_device_is_one_sentence(shapes, sets) -> None:
    with pytest.raises(setsup.SetsupError, match="to must be"):
        next(iter(setsup.loader(shapes, sets, to="abacus")))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_torch_own_loader_may_use_worker_processes(shapes, sets, context) -> None:
    rows = setsup.loading.as_torch(shapes)
    loader = torch.utils.data.DataLoader(rows, batch_size=4, num_workers=1, multiprocessing_context=context)
    assert next(iter(loader))["index"].tolist() == [0, 1, 2, 3]
