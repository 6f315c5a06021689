import pickle

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import save_file  # noqa: E402
from torch import nn  # noqa: E402

from setsup.errors import DataError  # noqa: E402
from setsup.methods.networks import pretrained_resnet, read_weights, transformers_name  # noqa: E402
from tests.fuzzing import survives  # noqa: E402


def _tiny():
    return transformers.ResNetConfig(embedding_size=8, hidden_sizes=[16, 24, 32, 40], depths=[2, 1, 1, 2])


class Bottleneck(nn.Module):
    """A block of ResNet V1.5, named and written as torchvision's."""

    def __init__(self, inward, width, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inward, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample = None
        if stride > 1 or inward != out:
            self.downsample = nn.Sequential(nn.Conv2d(inward, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        found = self.bn1(self.conv1(x)).relu()
        found = self.bn2(self.conv2(found)).relu()
        found = self.bn3(self.conv3(found))
        return (found + (x if self.downsample is None else self.downsample(x))).relu()


class TorchvisionResNet(nn.Module):
    def __init__(self, stem=8, sizes=(16, 24, 32, 40), depths=(2, 1, 1, 2), classes=5):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, stem, 7, 2, 3, bias=False), nn.BatchNorm2d(stem)
        inward = stem
        for stage, (out, depth) in enumerate(zip(sizes, depths, strict=True), start=1):
            blocks = []
            for block in range(depth):
                blocks.append(Bottleneck(inward, out // 4, out, 2 if stage > 1 and block == 0 else 1))
                inward = out
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inward, classes)

    def features(self, x):
        x = nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return x


@pytest.fixture(scope="module")
def published():
    """A tiny network in torchvision's layout, no two of whose numbers are alike."""
    generator = torch.Generator().manual_seed(0)
    network = TorchvisionResNet().eval()
    for value in [*network.parameters(), *network.buffers()]:
        if value.is_floating_point():
            value.data.copy_(0.2 + 0.3 * torch.rand(value.shape, generator=generator))
    return network


def _saved(tmp_path, content, **options):
    path = tmp_path / "checkpoint.pth"
    torch.save(content, path, **options)
    return path


def _moco(state):
    """What MoCo-v2's training script saves."""
    saved = {f"module.encoder_q.{name}": value for name, value in state.items() if not name.startswith("fc.")}
    saved |= {f"module.encoder_k.{name}": value + 1 for name, value in state.items()}
    for layer in (0, 2):
        saved |= {
            f"module.encoder_q.fc.{layer}.weight": torch.eye(40),
            f"module.encoder_q.fc.{layer}.bias": torch.ones(40),
        }
    saved |= {"module.queue": torch.zeros(128, 64), "module.queue_ptr": torch.zeros(1, dtype=torch.long)}
    return {
        "epoch": 800,
        "arch": "resnet50",
        "state_dict": saved,
        "optimizer": {"state": {}, "param_groups": [{"lr": 0.03}]},
    }


def _without_counters(state):
    return {name: value for name, value in state.items() if "num_batches_tracked" not in name}


LAYOUTS = {
    "torchvision": lambda state: state,
    "before counters": _without_counters,
    "supervised run": lambda state: {
        "epoch": 90,
        "state_dict": {f"module.{name}": value for name, value in state.items()},
    },
    "moco": _moco,
    "transformers": lambda state: {
        transformers_name(name): value for name, value in state.items() if not name.startswith("fc.")
    },
    "transformers, classifier": lambda state: {
        "classifier.1.weight" if name == "fc.weight" else f"resnet.{transformers_name(name)}": value
        for name, value in state.items()
        if name != "fc.bias"
    },
}


@pytest.mark.long("trainings")
@pytest.mark.parametrize("old", [False, True], ids=["zip", "legacy"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_network_that_was_saved(tmp_path, published, layout, old):
    content = LAYOUTS[layout](published.state_dict())
    path = _saved(tmp_path, content, _use_new_zipfile_serialization=not old)
    network = pretrained_resnet(path, _tiny())
    assert not network.training
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected, found = published.features(images), network(images)
    assert expected.std() > 0
    torch.testing.assert_close(found.last_hidden_state, expected)
    torch.testing.assert_close(found.pooler_output[:, :, 0, 0], expected.mean((2, 3)))


def test_safetensors(tmp_path, published):
    path = tmp_path / "model.safetensors"
    save_file(LAYOUTS["transformers, classifier"](published.state_dict()), path)
    network = pretrained_resnet(path, _tiny())
    assert torch.equal(network.embedder.embedder.convolution.weight, published.conv1.weight)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(DataError, match="truncated or damaged"):
        pretrained_resnet(path, _tiny())


def _torchvision_names():
    """Names of torchvision's ResNet-50, spelled out without its code."""
    norm = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    names = ["conv1.weight", *(f"bn1.{leaf}" for leaf in norm)]
    for stage, depth in enumerate((3, 4, 6, 3), start=1):
        for block in range(depth):
            for k in (1, 2, 3):
                names.append(f"layer{stage}.{block}.conv{k}.weight")
                names += [f"layer{stage}.{block}.bn{k}.{leaf}" for leaf in norm]
            if block == 0:
                names.append(f"layer{stage}.0.downsample.0.weight")
                names += [f"layer{stage}.0.downsample.1.{leaf}" for leaf in norm]
    return names


def test_names_of_resnet50_map_one_to_one():
    names = _torchvision_names()
    assert len(names) == 318  # of torchvision's 320, less the two of fc
    with torch.device("meta"):
        expected = transformers.ResNetModel(transformers.ResNetConfig()).state_dict()
    assert {transformers_name(name) for name in names} == set(expected)
    assert len({transformers_name(name) for name in names}) == len(names)
    assert [transformers_name(name) for name in expected] == list(expected)
    assert TorchvisionResNet(64, (256, 512, 1024, 2048), (3, 4, 6, 3), 1000).state_dict().keys() == {
        *names,
        "fc.weight",
        "fc.bias",
    }


@pytest.mark.parametrize(
    "name", ["layer0.0.conv1.weight", "layer1.0.conv4.weight", "layer1.0.downsample.2.bias", "", "x"]
)
def test_other_names_stay(name):
    assert transformers_name(name) == name


@pytest.mark.long("trainings")
def test_the_default_is_resnet50(tmp_path):
    network = TorchvisionResNet(64, (256, 512, 1024, 2048), (3, 4, 6, 3), 1000)
    assert sum(value.numel() for value in network.parameters()) == 25_557_032  # as published
    found = pretrained_resnet(_saved(tmp_path, network.state_dict()))
    assert sum(value.numel() for value in found.parameters()) == 25_557_032 - 2_049_000
    assert torch.equal(found.encoder.stages[3].layers[2].layer[2].convolution.weight, network.layer4[2].conv3.weight)


def test_the_head_can_be_read(tmp_path, published):
    weights = read_weights(_saved(tmp_path, _moco(published.state_dict())))
    assert [name for name in weights if name.startswith("fc.")] == [
        "fc.0.weight",
        "fc.0.bias",
        "fc.2.weight",
        "fc.2.bias",
    ]
    assert torch.equal(weights["fc.0.weight"], torch.eye(40))
    assert not any("encoder_k" in name or "queue" in name for name in weights)


def test_weights_are_trainable_float32_of_their_own(tmp_path, published):
    state = {
        name: value.half() if value.is_floating_point() else value for name, value in published.state_dict().items()
    }
    state["bn1.bias"] = state["bn1.weight"]  # one memory, two names
    before = torch.random.get_rng_state()
    network = pretrained_resnet(_saved(tmp_path, state), _tiny())
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(value.requires_grad and value.dtype == torch.float32 for value in network.parameters())
    norm = network.embedder.embedder.normalization
    assert norm.bias.data_ptr() != norm.weight.data_ptr()


def test_weights_of_eight_bits(tmp_path, published):
    state = _changed(published, bn1__bias=torch.arange(8.0).to(torch.float8_e5m2))
    norm = pretrained_resnet(_saved(tmp_path, state), _tiny()).embedder.embedder.normalization
    assert norm.bias.tolist() == [*range(8)]


def _changed(published, **changes):
    state = dict(published.state_dict())
    for name, value in changes.items():
        name = name.replace("__", ".")
        if value is None:
            del state[name]
        else:
            state[name] = value
    return state


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"layer1__0__conv2__weight": None},
            r"does not contain the weight 'encoder\.stages\.0\.layers\.0\.layer",
        ),
        (
            {"layer1__0__conv2__weight": torch.zeros(4, 4, 1, 1)},
            r"'layer1\.0\.conv2\.weight' in .* has the shape \(4, 4, 1, 1\).*\(4, 4, 3, 3\)",
        ),
        (
            {"layer5__0__conv2__weight": torch.zeros(1)},
            r"'layer5\.0\.conv2\.weight', which the network does not have",
        ),
        ({"bn1__bias": torch.full((8,), torch.nan)}, r"'bn1\.bias' in .* has values that are not finite"),
        (
            {"bn1__bias": torch.zeros(8, dtype=torch.long)},
            r"'bn1\.bias' in .* the type int64, but float32 in the network",
        ),
        ({"bn1__bias": torch.zeros(8, dtype=torch.complex64)}, r"'bn1\.bias' in .* has the type complex64"),
        ({"bn1__bias": torch.zeros(8).to_sparse()}, r"'bn1\.bias' in .* must be a dense tensor, not a Tensor"),
        ({"bn1__bias": torch.zeros(8, device="meta")}, r"'bn1\.bias' in .* must be a dense tensor, not a Tensor"),
        ({"bn1__bias": [1.0]}, r"'bn1\.bias' in .* must be a dense tensor, not a list"),
        ({"module__bn1__bias": torch.zeros(8)}, r"twice, as 'bn1\.bias' and 'module\.bn1\.bias'"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, published, changes, words):
    path = _saved(tmp_path, _changed(published, **changes))
    with pytest.raises(DataError, match=words) as caught:
        pretrained_resnet(path, _tiny())
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [[torch.zeros(2)], torch.zeros(2), {0: torch.zeros(2)}, {}, {"state_dict": {}}, None]
)
def test_files_without_weights_by_name(tmp_path, content):
    with pytest.raises(DataError, match=r"contains no (named )?weights"):
        read_weights(_saved(tmp_path, content))


class Code:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        import os

        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("how", ["zip", "legacy", "plain pickle"])
def test_code_in_a_file_is_not_run(tmp_path, how):
    content, path = {"state_dict": {"bn1.bias": Code(tmp_path / "ran")}}, tmp_path / "checkpoint.pth"
    if how == "plain pickle":
        path.write_bytes(pickle.dumps(content, protocol=2))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=how == "zip")
    with pytest.raises(
        DataError, match=r"contains a posix\.mkdir, which could run|not a readable checkpoint"
    ) as caught:
        read_weights(path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()


def test_other_files_end_in_one_sentence(tmp_path):
    for content in (
        b"",
        b"PK",
        b"<html>quota exceeded</html>",
        b"\x80\x02}q\x00.",
        bytes(1000),
        b"\x08" + bytes(7) + b"{}      ",
    ):
        path = tmp_path / "checkpoint.pth"
        path.write_bytes(content)
        with pytest.raises(DataError) as caught:
            read_weights(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="is a folder"):
        read_weights(tmp_path)
    with pytest.raises(DataError, match="No such file"):
        read_weights(tmp_path / "none.pth")


@pytest.mark.parametrize("how", ["zip", "legacy", "safetensors"])
def test_damaged_files_end_in_one_sentence_or_the_weights(tmp_path, how):
    path = tmp_path / "checkpoint"
    state = {"bn1.bias": torch.arange(4.0), "module.conv1.weight": torch.ones(2, 3), "resnet.x": torch.ones(0)}
    if how == "safetensors":
        save_file(state, path)
    else:
        torch.save({"state_dict": state}, path, _use_new_zipfile_serialization=how == "zip")

    def read(content):
        path.write_bytes(content)
        return [value.sum() for value in read_weights(path).values()]

    assert survives(path.read_bytes(), read, rounds=75) > 15


def test_every_cut_is_refused(tmp_path):
    path = _saved(tmp_path, {"bn1.bias": torch.arange(4.0)})
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match="truncated or damaged"):
            read_weights(path)
