"""What holds for every photometric operation: range, dtype, keys, neighbours, threads, pickles, refusals."""

import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from setsup import random
from setsup.errors import DataError

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading.transforms.operations.filters import Blur, Noise, SaltAndPepper, Sobel
from setsup.loading.transforms.operations.jitter import Jitter
from setsup.loading.transforms.operations.photometry import AddBrightness, Brightness, Contrast, Gray, Hue, Saturation
from setsup.loading.transforms.operations.regions import Background, Erase
from setsup.loading.transforms.operations.tones import AutoContrast, Equalize, Posterize
from setsup.loading.transforms.slots import Slots

POOL = random.randint_below(np.arange(2 * 200 * 200 * 3, dtype=np.uint64) << np.uint64(40), 256).astype(np.uint8)
OPERATIONS = [
    Brightness(0.2, 3.0),
    AddBrightness(-0.7, 0.7),
    Contrast(0.0, 3.0),
    Saturation(0.0, 3.0),
    Hue(-0.5, 0.5),
    Gray(),
    Jitter(0.6, 0.6, 0.6, 0.3),
    Blur(5, sigma=(0.5, 2.0)),
    Sobel(-2.0, 2.0),
    Noise(0.3),
    SaltAndPepper(0.2),
    Posterize(3),
    Equalize(),
    AutoContrast(),
    Erase(),
]


@pytest.fixture(params=OPERATIONS, ids=lambda operation: type(operation).__name__)
def operation(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def slots_for(n: int, eight_bit: bool = False, seed: int = 0) -> Slots:
    return Slots(random.fold(random.stream_key(seed, "operations"), np.arange(n, dtype=np.uint64)), eight_bit)


def pictures(n: int, channels: int, height: int, width: int) -> torch.Tensor:
    found = torch.rand(n, channels, height, width, generator=torch.Generator().manual_seed(8))
    return found.mul_(255).round_().div_(255)


@pytest.mark.parametrize("eight_bit", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_in_images_out(operation, channels: int, eight_bit: bool) -> None:
    images = pictures(5, channels, 11, 9)
    images[0], images[1] = 0, 1
    before = images.clone()
    found = operation(images, slots_for(5, eight_bit))
    assert found.shape == images.shape
    assert found.dtype == torch.float32
    assert 0 <= found.min() <= found.max() <= 1
    assert torch.equal(images, before)
    if eight_bit:
        assert torch.equal(found.mul(255).round() / 255, found)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("eight_bit", [False, True])
@pytest.mark.parametrize(("channels", "height", "width"), [(3, 65, 67), (1, 33, 35)])
def test_an_image_s_result_is_its_own_whatever_stands_beside_it(
    operation, channels: int, height: int, width: int, eight_bit: bool, threads: None
) -> None:
    images, slots = pictures(6, channels, height, width), slots_for(6, eight_bit)
    torch.set_num_threads(2)
    together = operation(images, slots)
    torch.set_num_threads(1)
    alone = torch.cat([operation(images[at : at + 1], slots.take(np.array([at]))) for at in range(6)])
    order = np.array([3, 1, 5])
    assert torch.equal(together, alone)
    assert torch.equal(together[order], operation(images[order], slots.take(order)))


@pytest.mark.parametrize(("height", "width"), [(600, 700), (333, 777)])
def test_a_large_grey_image_has_one_mean(height: int, width: int, threads: None) -> None:
    image = torch.rand(1, 1, height, width, generator=torch.Generator().manual_seed(9))
    slots = slots_for(1).take(np.zeros(2, dtype=int))
    found = []
    for count in (1, 2):
        torch.set_num_threads(count)
        found += [Contrast(2.0, 2.0)(image.repeat(n, 1, 1, 1), slots.take(np.arange(n)))[0] for n in (1, 2)]
    assert all(torch.equal(one, found[0]) for one in found)


def test_keys_decide(operation) -> None:
    images = pictures(1, 3, 24, 24).expand(6, -1, -1, -1).contiguous()
    found = operation(images, slots_for(6))
    keyless = isinstance(operation, Gray | Posterize | Equalize | AutoContrast)
    assert len({image.numpy().tobytes() for image in found}) == (1 if keyless else 6)
    assert torch.equal(operation(images, slots_for(6)), found)
    assert keyless or not torch.equal(operation(images, slots_for(6, seed=1)), found)


def test_the_order_of_axes_in_memory_does_not_matter(operation) -> None:
    images, slots = pictures(4, 3, 12, 10), slots_for(4)
    last = images.contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(operation(last, slots), operation(images, slots), atol=2e-6, rtol=0)


def test_operations_pickle_compare_and_show_their_arguments(operation) -> None:
    copy = pickle.loads(pickle.dumps(operation))
    assert copy == operation
    assert hash(copy) == hash(operation)
    shown = repr(operation)
    assert shown.startswith(type(operation).__name__ + "(")
    assert all(f"{name}={value!r}" in shown for name, value in vars(operation).items())


def test_a_background_pickles() -> None:
    background = Background(POOL.reshape(2, 200, 200, 3))
    images = pictures(3, 4, 16, 16)
    copy = pickle.loads(pickle.dumps(background))
    assert torch.equal(copy(images, slots_for(3)), background(images, slots_for(3)))


@pytest.mark.parametrize("eight_bit", [False, True])
def test_a_background_is_each_image_s_own(eight_bit: bool) -> None:
    background, images, slots = (
        Background(POOL.reshape(2, 200, 200, 3)),
        pictures(6, 4, 33, 35),
        slots_for(6, eight_bit),
    )
    together = background(images, slots)
    alone = torch.cat([background(images[at : at + 1], slots.take(np.array([at]))) for at in range(6)])
    assert torch.equal(together, alone)
    assert 0 <= together.min() <= together.max() <= 1


@pytest.mark.parametrize("channels", [2, 4])
def test_other_numbers_of_channels_are_refused(operation, channels: int) -> None:
    hint = "; apply Background first" if channels == 4 else ""
    with pytest.raises(
        DataError, match=f"{type(operation).__name__} requires images of 1 or 3 channels, not {channels}{hint}"
    ):
        operation(pictures(1, channels, 12, 12), slots_for(1))
