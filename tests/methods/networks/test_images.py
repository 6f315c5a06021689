import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setsup.errors import SetsupError  # noqa: E402
from setsup.methods.networks import OverImages, unit_range  # noqa: E402


def _linear():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bytes_become_the_nearest_floats(dtype):
    images = torch.arange(256, dtype=torch.uint8)
    exact = np.arange(256, dtype=np.float64) / 255
    assert unit_range(images, dtype).numpy().tolist() == exact.astype(str(dtype).removeprefix("torch.")).tolist()


def test_bfloat16_keeps_all_bytes_apart_as_far_as_it_can():
    images = torch.arange(256, dtype=torch.uint8)
    found = unit_range(images, torch.bfloat16)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, (images.double() / 255).to(torch.bfloat16))


def test_floats_stay_as_they_are():
    images = torch.rand(2, 3)
    assert unit_range(images) is images
    assert unit_range(images.half()).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_other_types_are_refused_by_name(dtype):
    with pytest.raises(SetsupError, match=str(dtype).removeprefix("torch.")):
        unit_range(torch.zeros(2, dtype=dtype))


def test_leading_axes_come_back_and_pictures_stay_apart():
    network = OverImages(3, 2, 2, _linear())
    images = torch.rand(2, 5, 4, 3, 2, 2)
    found = network(images)
    assert found.shape == (2, 5, 4, 2)
    for place in ((0, 0, 0), (1, 4, 3), (1, 0, 2)):
        torch.testing.assert_close(found[place], network(images[place]))


@pytest.mark.parametrize("lead", [(0,), (2, 0), ()])
def test_no_pictures_and_one_picture(lead):
    network = OverImages(3, 2, 2, _linear())
    assert network(torch.zeros(*lead, 3, 2, 2)).shape == (*lead, 2)


def test_bytes_and_floats_of_one_picture_agree_whatever_their_memory():
    network = OverImages(3, 2, 2, _linear())
    rows = torch.randint(256, (2, 4, 2, 2, 3), dtype=torch.uint8)  # channels last, as loaders deliver views
    found = network(rows.movedim(-1, -3))
    torch.testing.assert_close(found, network(rows.movedim(-1, -3).contiguous().double() / 255))


def test_pictures_take_the_type_of_the_weights():
    assert OverImages(3, 2, 2, _linear().double())(torch.zeros(1, 3, 2, 2)).dtype == torch.float64
    assert OverImages(3, 2, 2, _linear().bfloat16())(torch.zeros(1, 3, 2, 2)).dtype == torch.bfloat16


def test_other_sizes_are_refused_with_a_remedy():
    network = OverImages(3, 4, 4, _linear())
    with pytest.raises(SetsupError, match=r"\(\.\.\., 3, 4, 4\).*\(2, 4, 4, 3\).*movedim"):
        network(torch.zeros(2, 4, 4, 3))
    with pytest.raises(SetsupError, match="resize or crop"):
        network(torch.zeros(2, 3, 4, 5))
    with pytest.raises(SetsupError, match="resize or crop"):
        network(torch.zeros(4))


def test_pictures_whose_channels_lie_last_are_not_copied():
    images = torch.rand(2, 4, 5, 6, 3).movedim(-1, -3)
    seen = []
    network = OverImages(3, 5, 6, torch.nn.Identity())
    network.layers.register_forward_hook(lambda _layer, inputs, _result: seen.append(inputs[0].data_ptr()))
    network(images)
    assert seen == [images.data_ptr()]


@pytest.mark.long("trainings")
def test_it_compiles_whole():
    network = OverImages(3, 2, 2, _linear())
    images = torch.randint(256, (2, 4, 3, 2, 2), dtype=torch.uint8)
    compiled = torch.compile(network, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(images), network(images))
