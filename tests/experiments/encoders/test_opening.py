"""Encoders in published layouts, which the tests write: the same vectors as the library of the layout gives."""

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from PIL import Image  # noqa: E402
from safetensors.torch import load, save_file  # noqa: E402
from torch import nn  # noqa: E402

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments.encoders import Preprocessing, open_encoder  # noqa: E402

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
DINOV2 = """{"crop_size": {"height": 224, "width": 224}, "do_center_crop": true, "do_convert_rgb": true,
"do_normalize": true, "do_rescale": true, "do_resize": true, "image_mean": [0.485, 0.456, 0.406],
"image_processor_type": "BitImageProcessor", "image_std": [0.229, 0.224, 0.225], "resample": 3,
"rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 256}}"""
VIT = """{"do_normalize": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
"feature_extractor_type": "ViTFeatureExtractor", "resample": 2, "size": 28}"""
CONVNEXT = """{"crop_pct": 0.875, "do_normalize": true, "do_resize": true, "image_mean": [0.485, 0.456, 0.406],
"image_processor_type": "ConvNextImageProcessor", "image_std": [0.229, 0.224, 0.225], "resample": 3,
"size": {"shortest_edge": 224}}"""


def images(count: int = 3, height: int = 64, width: int = 90) -> torch.Tensor:
    dice = np.random.default_rng(7)
    smooth = torch.from_numpy(dice.random((count, 3, 6, 8)))
    return nn.functional.interpolate(smooth, (height, width), mode="bicubic").mul(255).clamp(0, 255).to(torch.uint8)


def embedded(name: object, given: torch.Tensor, **options: object) -> torch.Tensor:
    found = open_encoder(str(name), "cpu", **options).embed({"image": given[None]})
    assert found.shape[:2] == (1, len(given))
    return found[0]


def repository(folder: Path, model: object, preprocessor: str) -> Path:
    """A repository as `hf download` leaves it."""
    torch.manual_seed(0)
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(preprocessor)
    return folder


def dinov2() -> object:
    torch.manual_seed(3)
    return transformers.Dinov2Model(transformers.Dinov2Config(mlp_ratio=2, **SIZES)).eval()


def pillows(given: torch.Tensor) -> list[Image.Image]:
    return [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in given]


def close(found: torch.Tensor, expected: torch.Tensor, most: float) -> None:
    assert found.shape == expected.shape
    assert float((found - expected).norm() / expected.norm()) < most


@pytest.mark.long("networks")
def test_dinov2_gives_the_normalised_cls_token_of_what_its_processor_makes(tmp_path: Path) -> None:
    model, given = dinov2(), images()
    folder = repository(tmp_path / "dinov2", model, DINOV2)
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    pixels = processor(pillows(given), return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        expected = model(pixels).last_hidden_state[:, 0]
    encoder = open_encoder(f"hf:{folder}", "cpu", batch=2)
    assert isinstance(encoder.preprocess, Preprocessing), "in batches of tensors"
    # of 8-bit images, resizing differs by a level at most
    assert (encoder.preprocess(given) - pixels).abs().max() < 1.01 / 255 / 0.224
    close(encoder.embed({"image": given[None]})[0], expected, 0.01)
    assert encoder.weights.startswith("model.safetensors sha256 ")


@pytest.mark.long("networks")
def test_a_vit_without_a_pooler_gives_its_cls_token_and_one_with_it_the_pooled(tmp_path: Path) -> None:
    torch.manual_seed(1)
    given, config = images(), transformers.ViTConfig(intermediate_size=32, **SIZES)
    model = transformers.ViTModel(config).eval()
    bare = transformers.ViTModel(config, add_pooling_layer=False).eval()
    bare.load_state_dict(model.state_dict(), strict=False)
    pixels = None
    for name, one in (("pooled", model), ("bare", bare)):
        folder = repository(tmp_path / name, one, VIT)
        processor = transformers.AutoImageProcessor.from_pretrained(folder)
        pixels = processor(pillows(given), return_tensors="pt")["pixel_values"]
        assert pixels.shape == (3, 3, 28, 28), "a square, not the shorter edge"
        with torch.no_grad():
            output = one(pixels)
        expected = output.pooler_output if name == "pooled" else output.last_hidden_state[:, 0]
        close(embedded(f"hf:{folder}", given), expected, 0.02)


@pytest.mark.long("networks")
def test_a_processor_of_other_operations_does_the_work_itself(tmp_path: Path) -> None:
    """ConvNeXt's enlarges to 224 / 0.875 and crops, which its settings do not say."""
    torch.manual_seed(2)
    config = transformers.ConvNextConfig(depths=[1, 1, 1, 1], hidden_sizes=[8, 8, 8, 12])
    model, given = transformers.ConvNextModel(config).eval(), images(2)
    folder = repository(tmp_path / "convnext", model, CONVNEXT)
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    with torch.no_grad():
        expected = model(**processor(pillows(given), return_tensors="pt")).pooler_output
    close(embedded(f"hf:{folder}", given), expected, 1e-5)
    close(embedded(f"hf:{folder}", given.float() / 255), expected, 1e-5)


@pytest.mark.long("networks")
def test_clip_gives_its_image_features(tmp_path: Path) -> None:
    torch.manual_seed(4)
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.CLIPConfig(
        text_config=small | {"vocab_size": 20}, vision_config=small | {"image_size": 28, "patch_size": 14},
        projection_dim=6,
    )  # fmt: skip
    model, given = transformers.CLIPModel(config).eval(), images()
    folder = repository(tmp_path / "clip", model, VIT)
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    with torch.no_grad():
        vision = model.vision_model(processor(pillows(given), return_tensors="pt")["pixel_values"])
        expected = model.visual_projection(vision.pooler_output)
    close(embedded(f"hf:{folder}", given), expected, 0.02)


@pytest.mark.long("networks")
def test_repositories_are_read_from_the_cache_and_never_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a connection"))
    home = tmp_path / "models--someone--small"
    with pytest.raises(DataError, match=r"fetch the repository with `hf download someone/small`$") as caught:
        open_encoder("hf:someone/small")
    assert "\n" not in str(caught.value)
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text("c0ffee")
    repository(home / "snapshots" / "c0ffee", dinov2(), DINOV2)
    encoder = open_encoder("hf:someone/small", "cpu")
    assert (encoder.label, encoder.weights) == ("hf:someone/small", "revision c0ffee")


@pytest.mark.long("networks")
def test_broken_repositories_are_one_sentence(tmp_path: Path) -> None:
    folder = repository(tmp_path / "dinov2", dinov2(), DINOV2)
    whole = (folder / "model.safetensors").read_bytes()
    weights = load(whole)
    for content, sentence in (
        (whole[:100], "transformers could not read"),
        (None, "transformers could not read"),
        ({name: value for name, value in weights.items() if name != "layernorm.weight"}, "'layernorm.weight'"),
    ):
        (folder / "model.safetensors").unlink(missing_ok=True)
        if isinstance(content, dict):
            save_file(content, folder / "model.safetensors", metadata={"format": "pt"})
        elif content is not None:
            (folder / "model.safetensors").write_bytes(content)
        with pytest.raises(DataError, match=sentence) as caught:
            open_encoder(f"hf:{folder}", "cpu")
        assert "\n" not in str(caught.value)
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(DataError, match=r"preprocessor_config\.json is missing"):
        open_encoder(f"hf:{folder}", "cpu")


class Basic(nn.Module):
    """A block of ResNet-18, named and written as torchvision's."""

    def __init__(self, inward: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inward, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample = None
        if stride > 1 or inward != out:
            self.downsample = nn.Sequential(nn.Conv2d(inward, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (found + (x if self.downsample is None else self.downsample(x))).relu()


class Small(nn.Module):
    """A small ResNet with torchvision's names."""

    def __init__(self, depths: tuple[int, ...] = (2, 1, 1, 2), sizes: tuple[int, ...] = (8, 8, 12, 16)) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
        inward = 8
        for stage, (depth, out) in enumerate(zip(depths, sizes, strict=True), 1):
            blocks = [Basic(inward if not at else out, out, 2 if stage > 1 and not at else 1) for at in range(depth)]
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))
            inward = out
        self.fc = nn.Linear(inward, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
        return self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3))


@pytest.mark.long("networks")
@pytest.mark.parametrize("layout", ["torchvision", "moco"])
def test_the_depth_of_a_resnet_is_told_by_its_weights(tmp_path: Path, layout: str) -> None:
    torch.manual_seed(0)
    network, given = Small().eval(), images(2)
    for value in [*network.parameters(), *network.buffers()]:
        if value.is_floating_point():
            value.data.uniform_(0.2, 0.5)
    state = network.state_dict()
    if layout == "moco":
        queried = {f"module.encoder_q.{name}": value for name, value in state.items() if not name.startswith("fc.")}
        state = {"state_dict": queried | {"module.queue": torch.zeros(2, 2)}}
    torch.save(state, tmp_path / "small.pth")
    encoder = open_encoder(str(tmp_path / "small.pth"), "cpu")
    with torch.no_grad():
        expected = network(encoder.preprocess(given))
    close(encoder.embed({"image": given[None]})[0], expected, 1e-5)
    assert encoder.preprocess == Preprocessing(resize=256, crop=(224, 224), interpolation="bilinear")


@pytest.mark.long("networks")
@pytest.mark.parametrize(
    ("name", "parameters", "width"),
    # those of torchvision's documentation, 11,689,512 … 60,192,808, without the 1,000 classes
    [("resnet18", 11_689_512, 512), ("resnet34", 21_797_672, 512), ("resnet50", 25_557_032, 2048),
     ("resnet101", 44_549_160, 2048), ("resnet152", 60_192_808, 2048)],
)  # fmt: skip
def test_random_networks_have_the_published_sizes(name: str, parameters: int, width: int) -> None:
    encoder = open_encoder(f"random:{name}", "cpu")
    assert sum(value.numel() for value in encoder.parameters()) == parameters - 1000 * (width + 1)
    assert encoder.label == f"random:{name} (RANDOM WEIGHTS)"


@pytest.mark.long("networks")
def test_random_weights_are_those_of_the_seed() -> None:
    before = torch.random.get_rng_state()
    first, same, other = (open_encoder("random:resnet18", "cpu", seed=seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not torch.equal(*(of["network.backbone.embedder.embedder.convolution.weight"] for of in (first, other)))


def own(tmp_path: Path, text: str, name: str = "build") -> str:
    path = tmp_path / f"own_{abs(hash(text))}.py"
    path.write_text(f"import torch\nfrom torch import nn\n\n\ndef build():\n{text}\n")
    return f"{path}:{name}"


def test_a_function_of_ones_own_gives_a_module_or_a_module_and_its_preprocessing(tmp_path: Path) -> None:
    given = images()
    found = embedded(own(tmp_path, "    return nn.Flatten()"), given)
    assert torch.equal(found, given.flatten(1).float() / 255)
    found = embedded(own(tmp_path, "    return nn.Flatten(), lambda images: images[..., ::2, ::2] - 1"), given, batch=2)
    assert torch.allclose(found, given[..., ::2, ::2].flatten(1).float() / 255 - 1)


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("    return nn.Linear(2)", "build", r"^.*own_\d+\.py:build failed in line 6 with TypeError: "),
        ("    return 3", "build", r"must return a torch\.nn\.Module, or \(module, preprocess\), not 'int'$"),
        ("    return nn.Flatten()", "built", r"has no function 'built'; did you mean 'build'\?$"),
        ("    return nn.Linear(7, 7)", "build", "the network of .*:build failed with RuntimeError: "),
        (
            "    return nn.Flatten(), lambda x: x.nothing",
            "build",
            "the preprocessing of .* failed in line 6 with A",
        ),
        (
            "    return nn.Identity()",
            "build",
            r"must return one vector per image, of shape \(n, d\), not \(3, 3, 64, 90\) for 3 images",
        ),
        ("    raise KeyError('a\\nb')", "build", "failed in line 6 with KeyError"),
    ],
)
def test_errors_of_ones_own_function_are_one_sentence(tmp_path: Path, text: str, name: str, sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        embedded(own(tmp_path, text, name), images())
    assert "\n" not in str(caught.value)


def test_pixels_are_the_image() -> None:
    given = images()
    assert torch.equal(embedded("pixels", given), given.flatten(1).float() / 255)
    assert embedded("pixels:5", given).shape == (3, 75)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("dinov2", "unknown encoder 'dinov2'; pass one of hf:NAME"),
        ("pixels:0", "unknown encoder"),
        ("hf:", "unknown encoder"),
        ("hf:a b", "is not the name of a repository"),
        ("hf:./nothing", "nothing does not exist"),
        ("random:resnet51", "unknown encoder random:resnet51; did you mean 'resnet50'"),
        ("nothing.pth", "cannot read nothing.pth"),
        ("nothing.py:build", "nothing.py does not exist"),
    ],
)
def test_what_names_no_encoder_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        open_encoder(name, "cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif("timm" in sys.modules, reason="timm is installed")
def test_timm_is_asked_for_where_it_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup.errors.installed", lambda module: module != "timm")
    with pytest.raises(SetsupError, match=r"needs timm, which is not installed: pip install timm$"):
        open_encoder("timm:resnet18.a1_in1k", "cpu")


def test_a_file_that_holds_no_resnet_is_refused(tmp_path: Path) -> None:
    torch.save({"blocks.0.weight": torch.zeros(2)}, tmp_path / "vit.pth")
    with pytest.raises(DataError, match=r"does not contain the weights of a ResNet \(it contains blocks.0.weight, …\)"):
        open_encoder(str(tmp_path / "vit.pth"), "cpu")
