"""Features of patches, for every pixel."""

import shutil
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from scipy.interpolate import RegularGridInterpolator  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments.encoders.patch_features import patch_features  # noqa: E402

SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
PROCESSOR = (
    """{"image_processor_type": "BitImageProcessor", "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]}"""
)


@pytest.mark.long("networks")
@pytest.mark.parametrize("registers", [0, 4])
def test_tokens_stand_in_the_middle_of_their_patches(registers: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    if registers:
        config = transformers.Dinov2WithRegistersConfig(mlp_ratio=2, num_register_tokens=registers, **SIZES)
        model = transformers.Dinov2WithRegistersModel(config).eval()
    else:
        model = transformers.Dinov2Model(transformers.Dinov2Config(mlp_ratio=2, **SIZES)).eval()
    model.save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(PROCESSOR)
    features, weights = patch_features(f"hf:{tmp_path}")
    assert weights.startswith("model.safetensors sha256 ")
    images = np.random.default_rng(0).integers(0, 256, (2, 42, 56, 3), dtype=np.uint8)
    found = features(images)
    assert found.shape == (2, 42, 56, 12)
    assert found.dtype == np.float32
    pixels = (images / 255 - [0.4, 0.5, 0.6]) / [0.2, 0.25, 0.3]
    with torch.no_grad():
        tokens = model(pixel_values=torch.from_numpy(pixels).float().permute(0, 3, 1, 2)).last_hidden_state
    patches = tokens[:, 1 + registers :].reshape(2, 3, 4, 12).numpy()
    centres = [np.arange(count) * 14 + 6.5 for count in (3, 4)]
    for number, y, x in ((0, 0, 0), (1, 20, 20), (0, 25, 40), (1, 41, 30), (0, 13, 55)):
        at = [np.clip(place, 6.5, middles[-1]) for place, middles in zip((y, x), centres, strict=True)]
        expected = RegularGridInterpolator(centres, patches[number])(at)[0]
        np.testing.assert_allclose(found[number, y, x], expected, atol=1e-4)
    assert features(images[:, :30, :51]).shape == (2, 30, 51, 12), "no whole number of patches"


def test_what_has_no_patches_is_refused() -> None:
    with pytest.raises(
        SetsupError, match="'pixels' is not the name of a model on the Hugging Face hub; pass hf:OWNER/NAME"
    ):
        patch_features("pixels")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformer of two blocks with random weights, in the layout of the hub."""
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(1)
    transformers.Dinov2Model(transformers.Dinov2Config(mlp_ratio=2, **SIZES)).eval().save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(PROCESSOR)
    return folder


@pytest.mark.long("networks")
def test_a_processor_that_does_not_normalise_leaves_colors_in_0_to_1(tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "plain")
    (tmp_path / "plain" / "preprocessor_config.json").write_text(PROCESSOR.replace("{", '{"do_normalize": false, ', 1))
    images = np.random.default_rng(0).integers(0, 256, (1, 28, 42, 3), dtype=np.uint8)
    pixels = torch.from_numpy(images / 255).float().permute(0, 3, 1, 2)
    with torch.no_grad():
        tokens = transformers.AutoModel.from_pretrained(tiny).eval()(pixel_values=pixels).last_hidden_state
    found = patch_features(f"hf:{tmp_path / 'plain'}", grid=True)[0](images)
    np.testing.assert_allclose(found.reshape(6, 12), tokens[0, 1:].numpy(), atol=1e-5)


@pytest.mark.long("networks")
def test_layers_are_outputs_of_blocks_at_their_patches(tiny: Path) -> None:
    model = transformers.AutoModel.from_pretrained(tiny).eval()
    images = np.random.default_rng(0).integers(0, 256, (2, 28, 42, 3), dtype=np.uint8)
    outputs: list[np.ndarray] = []
    for block in model.encoder.layer:
        block.register_forward_hook(lambda _, __, output: outputs.append(np.asarray(output)))
    pixels = (images / 255 - [0.4, 0.5, 0.6]) / [0.2, 0.25, 0.3]
    with torch.no_grad():
        last = model(pixel_values=torch.from_numpy(pixels).float().permute(0, 3, 1, 2)).last_hidden_state.numpy()
    first, second = (output[:, 1:].reshape(2, 2, 3, 12) for output in outputs)
    found = patch_features(f"hf:{tiny}", layers=(2, 1), grid=True)[0](images)
    np.testing.assert_allclose(found, np.concatenate([second, first], axis=3), atol=1e-5)
    found = patch_features(f"hf:{tiny}", grid=True)[0](images)
    np.testing.assert_allclose(found, last[:, 1:].reshape(2, 2, 3, 12), atol=1e-5)
    assert patch_features(f"hf:{tiny}", layers=(1, 2))[0](images).shape == (2, 28, 42, 24)


@pytest.mark.long("networks")
def test_a_block_that_is_not_there_is_refused(tiny: Path) -> None:
    for layer in (0, 3):
        with pytest.raises(SetsupError, match=f"has no block {layer}; pass numbers from 1 to 2"):
            patch_features(f"hf:{tiny}", layers=(1, layer))
