"""Keras' ResNet50V2: files in its layout, and what the network computes with their weights, against its definition."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
h5py = pytest.importorskip("h5py")

from torch.nn import functional  # noqa: E402

from setsup.errors import DamagedFile, DataError, SetsupError  # noqa: E402
from setsup.methods.networks import glorot_  # noqa: E402
from setsup.methods.networks.files import load_state  # noqa: E402
from setsup_papers.abc import ResNet50V2, pose_encoder, resnet50v2  # noqa: E402
from setsup_papers.abc.resnet_v2 import load_trunk  # noqa: E402
from tests.methods.networks import keras_weights as keras  # noqa: E402


@pytest.fixture(scope="module")
def weights():
    return keras.random_weights()


@pytest.fixture(scope="module")
def path(weights, tmp_path_factory):
    later = {"conv5_block1_preact_bn/gamma": np.ones(1024, np.float32), "post_bn/beta": np.zeros(2048, np.float32)}
    return keras.write(tmp_path_factory.mktemp("keras") / "notop.h5", weights | later)


def _definition(weights, images):
    """Keras' layers one after the other; images are (n, height, width, 3) as there, and so is the result."""
    tensors = {name: torch.from_numpy(array) for name, array in weights.items()}

    def convolve(x, name, stride=1, padding=0):
        kernel = torch.einsum("hwio->oihw", tensors[f"{name}/kernel"])
        return functional.conv2d(x, kernel, tensors.get(f"{name}/bias"), stride, padding)

    def active(x, name):
        gamma, beta, mean, variance = (
            tensors[f"{name}/{part}"][:, None, None] for part in ("gamma", "beta", "moving_mean", "moving_variance")
        )
        return (gamma * (x - mean) / (variance + 1.001e-5).sqrt() + beta).relu()

    x = torch.from_numpy(images).permute(0, 3, 1, 2)
    x = convolve(functional.pad(x, (3, 3, 3, 3)), "conv1_conv", 2)
    x = functional.max_pool2d(functional.pad(x, (1, 1, 1, 1)), 3, 2)
    for stage, _, depth in keras.STAGES:
        for number in range(1, depth + 1):
            name, stride = f"conv{stage}_block{number}", 2 if number == depth else 1
            before = active(x, f"{name}_preact_bn")
            skipped = convolve(before, f"{name}_0_conv") if number == 1 else x[:, :, ::stride, ::stride]
            inner = active(convolve(before, f"{name}_1_conv"), f"{name}_1_bn")
            inner = convolve(functional.pad(inner, (1, 1, 1, 1)), f"{name}_2_conv", stride)
            x = convolve(active(inner, f"{name}_2_bn"), f"{name}_3_conv") + skipped
    return x.permute(0, 2, 3, 1).numpy()


@pytest.mark.long("weights of a whole network")
@pytest.mark.parametrize("pixels", ["unit", "symmetric"])
def test_the_network_computes_what_keras_defines(weights, path, pixels):
    network = resnet50v2(pixels=pixels).eval()
    network.load_keras(load_state(path), path)
    images = np.random.default_rng(1).random((2, 64, 96, 3), np.float32)
    given = images if pixels == "unit" else images / np.float32(127.5 / 255) - 1  # its preprocess_input
    expected = _definition(weights, given)
    with torch.no_grad():
        found = network(torch.from_numpy(images).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).numpy()
    assert found.shape == (2, 2, 3, 1024)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.long("weights of a whole network")
def test_whole_models_are_read_too(weights, tmp_path):
    found = load_state(keras.write(tmp_path / "model.h5", weights, top="model_weights"))
    assert found.keys() == weights.keys()
    assert all(np.array_equal(found[name].numpy(), array) for name, array in weights.items())


@pytest.mark.long("weights of a whole network")
def test_a_method_starts_from_the_trunk_and_keeps_its_head(weights, path):
    encoder = pose_encoder(torch.Generator().manual_seed(0))
    head = {name: value.clone() for name, value in encoder.layers.head.state_dict().items()}
    load_trunk(encoder, load_state(path))
    assert all(torch.equal(encoder.layers.head.state_dict()[name], value) for name, value in head.items())
    kernel = weights["conv4_block6_2_conv/kernel"]
    assert torch.equal(
        encoder.layers.backbone.conv4_block6.layers[3].weight[5, 7], torch.from_numpy(kernel[:, :, 7, 5])
    )


def _small(kernel=np.ones((7, 7, 3, 64), np.float32)):  # noqa: B008  it is not changed
    return {"conv1_conv/kernel": kernel, "conv1_conv/bias": np.ones(64, np.float32)}


def test_weights_that_do_not_fit_are_named(tmp_path):
    network = glorot_(resnet50v2(), torch.Generator().manual_seed(0))
    with pytest.raises(DataError, match=r"small.h5 does not contain the weight 'conv2_block1_preact_bn/gamma'"):
        network.load_keras(load_state(keras.write(tmp_path / "small.h5", _small())), "small.h5")
    for wrong in (np.ones((7, 7, 1, 64), np.float32), np.full((7, 7, 3, 64), np.nan, np.float32)):
        with pytest.raises(DataError, match=r"'conv1_conv/kernel' of .* must be finite and have the shape"):
            network.load_keras({name: torch.from_numpy(one) for name, one in _small(wrong).items()})
    with pytest.raises(SetsupError, match=r"Linear has no ResNet50-V2"):
        load_trunk(torch.nn.Linear(2, 2), {"conv1_conv/kernel": torch.ones(1)})
    with pytest.raises(RuntimeError, match=r"Missing key\(s\) in state_dict"):
        load_trunk(torch.nn.Linear(2, 2), {"weight": torch.ones(2, 2)})


def test_files_that_hold_no_plain_weights(tmp_path):
    packed = keras.write(tmp_path / "packed.h5", _small(), compression="gzip")
    with pytest.raises(DataError, match=r"conv1_conv/.*without compression"):
        load_state(packed)
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file.create_dataset("images", data=np.zeros(4, np.uint8))
    with pytest.raises(DataError, match="contains no weights of Keras"):
        load_state(tmp_path / "empty.h5")
    with h5py.File(tmp_path / "huge.h5", "w") as file:  # declared, and not there
        file.create_dataset("a/kernel:0", (1 << 40,), "float32")
    with pytest.raises(DataError, match="must be stored as uncompressed floats"):
        load_state(tmp_path / "huge.h5")
    with h5py.File(tmp_path / "twice.h5", "w") as file:
        file["x/a/kernel:0"] = file["y/a/kernel:0"] = np.zeros(2, np.float32)
    with pytest.raises(DataError, match="'a/kernel' twice"):
        load_state(tmp_path / "twice.h5")


@pytest.mark.long("fuzzing")
def test_damaged_files(tmp_path):
    whole = keras.write(tmp_path / "whole.h5", {"a/kernel": np.arange(8, dtype=np.float32)}).read_bytes()
    rng = np.random.default_rng(0)
    for number in range(60):
        body = bytearray(whole)
        if number % 2:
            body = body[: rng.integers(8, len(body))]
        else:
            body[rng.integers(8, len(body))] ^= 1 << rng.integers(8)
        (tmp_path / "damaged.h5").write_bytes(body)
        try:
            found = load_state(tmp_path / "damaged.h5")
        except (DamagedFile, DataError):
            continue
        assert all(weight.numel() <= len(body) for weight in found.values())


@pytest.mark.long("two whole networks")
def test_frozen_norms_do_not_move():
    generator = torch.Generator().manual_seed(0)
    frozen, free = (glorot_(ResNet50V2(frozen_norm=one), generator).train() for one in (True, False))
    before = frozen.conv2_block1.preact[0].running_mean.clone()
    images = torch.rand(2, 3, 32, 32, generator=generator)
    for network in (frozen, free):
        network(images)
    assert torch.equal(frozen.conv2_block1.preact[0].running_mean, before)
    assert not torch.equal(free.conv2_block1.preact[0].running_mean, before)
    assert frozen.conv2_block1.training, "only norms"


def test_other_ranges_are_refused():
    with pytest.raises(SetsupError, match="unit, symmetric, not 'imagenet'"):
        resnet50v2(pixels="imagenet")
