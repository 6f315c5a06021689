"""Fine-tuning of transformers for features of pixels: what is trained, kept, resumed and exported."""

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("kornia")
pytest.importorskip("embreex")
transformers = pytest.importorskip("transformers")

from setsup.correspondence import RenderedPairs, pair_table  # noqa: E402
from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments import Preset, Run, RunConfig, export, find_preset, load_trained, smoke, train  # noqa: E402
from setsup.experiments.encoders.patch_features import at_pixels, patch_features  # noqa: E402
from setsup.experiments.settings import put  # noqa: E402
from setsup.loading import Loader  # noqa: E402
from setsup.rendered.writing import render  # noqa: E402
from setsup.scenes.recipes import Shapes3D  # noqa: E402
from setsup_cli.main import main  # noqa: E402
from setsup_papers.pixels import FinetuningSettings, PixelFinetuning, match_loss  # noqa: E402
from setsup_papers.pixels.low_rank import find_projections  # noqa: E402
from setsup_papers.pixels.patch_network import open_transformer, sampled_features  # noqa: E402
from tests.experiments.test_resume import checked_equal  # noqa: E402

HERE = RunConfig(workers=0)
SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32, "patch_size": 8}
PROCESSOR = (
    '{"image_processor_type": "BitImageProcessor", "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]}'
)
TINY = FinetuningSettings(encoder="tiny")


def write_transformer(folder: Path, seed: int = 1) -> Path:
    """A transformer of two blocks with random weights, in the layout of the hub."""
    torch.manual_seed(seed)
    transformers.Dinov2Model(transformers.Dinov2Config(mlp_ratio=2, **SIZES)).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(PROCESSOR)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_transformer(tmp_path_factory.mktemp("transformer"))


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight pairs of views with their partners."""
    place = tmp_path_factory.mktemp("scenes") / "views"
    recipe = Shapes3D(size=(48, 64))
    pairs = RenderedPairs(recipe, pair_table(recipe, 8, seed=0), "embree")
    render(pairs, place, ["image", "depth", "instances", "partners", "status"])
    return place


def preset_of(folder: Path, views: Path, name: str = "pixels/finetune", **more: Any) -> Preset:
    given = {
        "data.name": str(views),
        "sampler.pairs": 2,
        "augmentation.size": 32,
        "augmentation.keep": 0.25,
        "method.encoder": f"hf:{folder}",
        "steps": 5,
        "checkpoint_every": 2,
        **more,
    }
    preset: Preset = put(find_preset(name), given)
    return preset


@pytest.fixture(scope="module")
def run(folder: Path, views: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(preset_of(folder, views), tmp_path_factory.mktemp("run"), config=HERE)


def built(settings: FinetuningSettings, seed: int = 0) -> PixelFinetuning:
    method: Any = settings.build(None, torch.Generator().manual_seed(seed))  # type: ignore[arg-type]
    return method  # type: ignore[no-any-return]


def randomised(method: PixelFinetuning) -> PixelFinetuning:
    """Updates that are not 0."""
    with torch.no_grad():
        for update in method.network.updates:
            update.up.normal_(generator=torch.Generator().manual_seed(7))
    return method


@pytest.mark.long("networks")
def test_features_before_training_are_those_of_the_frozen_encoder(folder: Path) -> None:
    method = built(FinetuningSettings(encoder=f"hf:{folder}"))
    images = np.random.default_rng(0).integers(0, 256, (2, 30, 51, 3), dtype=np.uint8)  # no whole number of patches
    expected = patch_features(f"hf:{folder}")[0](images)
    with torch.no_grad():
        found = method.embed({"image": torch.from_numpy(images).movedim(-1, 1)[None]})
    np.testing.assert_allclose(found[0].numpy(), expected, atol=1e-5)


@pytest.mark.long("networks")
@pytest.mark.parametrize("projections", [("query", "value"), ("key", "output", "mlp")])
def test_updates_are_products_of_matrices_added_to_the_weights(folder: Path, projections: Any) -> None:
    method = randomised(built(FinetuningSettings(encoder=f"hf:{folder}", rank=3, alpha=6.0, projections=projections)))
    network = method.network
    plain = transformers.AutoModel.from_pretrained(folder).eval()
    assert len(network.updates) == 2 * {"query": 2, "key": 4}[projections[0]]
    for path, update in zip(network.layers, network.updates, strict=True):
        assert update.down.shape[0] == update.up.shape[1] == 3
        product = torch.from_numpy(update.up.detach().numpy() @ update.down.detach().numpy())
        with torch.no_grad():
            plain.get_submodule(path).weight.add_(2.0 * product)  # alpha / rank
    images = torch.rand(2, 3, 24, 32, generator=torch.Generator().manual_seed(0))
    pixels = (images - torch.tensor([0.4, 0.5, 0.6])[:, None, None]) / torch.tensor([0.2, 0.25, 0.3])[:, None, None]
    merged = network.merged()
    with torch.no_grad():
        expected = plain(pixel_values=pixels).last_hidden_state[:, 1:]
        found = network.maps(images).flatten(2).movedim(1, 2)
        again = merged(pixel_values=pixels).last_hidden_state[:, 1:]
        start = built(method.settings).network.maps(images).flatten(2).movedim(1, 2)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(again, expected, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(start, expected, atol=1e-2)


def test_the_state_is_what_is_trained() -> None:
    method = built(replace(TINY, rank=2, features=5))
    trained = {name for name, weight in method.named_parameters() if weight.requires_grad}
    assert set(method.state_dict()) == trained
    assert trained == {f"network.updates.{number}.{part}" for number in range(4) for part in ("down", "up")} | {
        "network.head.weight",
        "network.head.bias",
    }
    other = built(replace(TINY, rank=2, features=5), seed=1)
    assert not torch.equal(other.network.updates[0].down, method.network.updates[0].down)
    other.load_state_dict(randomised(method).state_dict())
    image = torch.rand(1, 3, 28, 28)
    assert torch.equal(method.network(image), other.network(image))
    state = method.state_dict()
    del state["network.updates.1.up"]
    with pytest.raises(RuntimeError, match=r"Missing key.*network\.updates\.1\.up"):
        other.load_state_dict(state)
    head = built(replace(TINY, rank=0, features=5))
    assert set(head.state_dict()) == {"network.head.weight", "network.head.bias"}
    head.train().network(image)
    assert not any(part.training for part in head.network.model.modules()), "the transformer has no dropout"


def test_sampled_features_are_the_interpolated_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    maps = torch.rand(1, 6, 3, 4, generator=generator)
    for height, width in ((24, 32), (25, 30), (3, 4), (2, 3)):
        pixels = torch.arange(height * width)
        expected = at_pixels(maps, height, width)[0].flatten(1).T
        torch.testing.assert_close(sampled_features(maps[0], pixels, height, width), expected)


def test_infonce_of_matches_against_loops() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        count, width = int(random.integers(2, 9)), int(random.integers(1, 6))
        first, second = random.normal(size=(2, count, width))
        places = random.integers(0, 6, count)
        temperature = float(random.uniform(0.05, 2))
        one, two = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, second))
        terms = []
        for a, b in ((one, two), (two, one)):
            for i in range(count):
                others = [j for j in range(count) if j == i or places[j] != places[i]]
                logits = np.array([a[i] @ b[j] / temperature for j in others])
                terms.append(np.log(np.exp(logits).sum()) - a[i] @ b[i] / temperature)
        found = match_loss(*map(torch.from_numpy, (first, second, places)), temperature)
        assert found.item() == pytest.approx(np.mean(terms), rel=1e-5, abs=1e-6)


def test_infonce_refuses_other_shapes() -> None:
    features, places = torch.ones(3, 2), torch.arange(3)
    for given in ((features, features[:2], places), (features, features, places[:2]), (features[:1],) * 2 + (places,)):
        with pytest.raises(DataError, match=r"must have the shape \(k, D\) in both views"):
            match_loss(*given)
    with pytest.raises(SetsupError, match="temperature must be a positive number, not 0"):
        match_loss(features, features, places, 0)


def test_what_cannot_be_trained_is_refused(tmp_path: Path) -> None:
    for changed, sentence in (
        ({"rank": 0}, "there is nothing to train: rank is 0"),
        ({"rank": -1}, "rank must be"),
        ({"alpha": 0.0}, "alpha must be a finite number above 0"),
        ({"temperature": 0.0}, "temperature must be a positive number"),
        ({"loss": "mean"}, "loss must be"),
        ({"projections": ("query", "gate")}, "projections must be among query, key, value, output, mlp, not 'gate'"),
        ({"projections": ()}, "projections must name one or more kinds of layers"),
        ({"encoder": "dinov2"}, "'dinov2' is not the name of a vision transformer; pass hf:OWNER/NAME"),
        ({"encoder": "hf:./gone", "weights": "0" * 64}, "the run was trained with hf:./gone: .*; restore the transfor"),
    ):
        with pytest.raises(SetsupError, match=sentence):
            built(replace(TINY, **changed))  # type: ignore[arg-type]
    layers = torch.nn.Sequential(torch.nn.Linear(2, 2))
    with pytest.raises(SetsupError, match=r"no linear layers known as 'query' \(its linear layers are named 0\)"):
        find_projections(layers, ["query"], "hf:other")


def test_projections_of_earlier_names() -> None:
    names = ("attention.attention.query", "attention.output.dense", "intermediate.dense", "output.dense", "other")
    tree = torch.nn.Module()
    for name in names:
        part = tree
        *above, last = name.split(".")
        for step in above:
            if not hasattr(part, step):
                part.add_module(step, torch.nn.Module())
            part = getattr(part, step)
        part.add_module(last, torch.nn.Linear(1, 1))
    found = {kind: find_projections(tree, [kind], "hf:vit") for kind in ("query", "output", "mlp")}
    assert found["query"] == ["attention.attention.query"]
    assert found["output"] == ["attention.output.dense"]
    assert found["mlp"] == ["intermediate.dense", "output.dense"]


@pytest.mark.long("trainings")
def test_checkpoints_contain_what_was_trained_and_need_the_same_transformer(
    run: Run, folder: Path, views: Path, tmp_path: Path
) -> None:
    state = torch.load(run.folder / "last.ckpt", weights_only=True)["state_dict"]
    assert all(name.startswith("network.updates.") for name in state)
    trained = load_trained(run, device="cpu")
    weights = transformers.AutoModel.from_pretrained(folder).state_dict()
    for name, weight in trained.method.network.model.state_dict().items():
        assert torch.equal(weight, weights[name]), "the transformer is frozen"
    assert any(update.up.abs().max() > 0 for update in trained.method.network.updates)
    other = tmp_path / "vit"
    write_transformer(other)
    again = train(preset_of(other, views), tmp_path / "run", config=HERE)
    write_transformer(other, seed=2)
    with pytest.raises(DataError, match=r"are not those that the run was trained with .* restore its files"):
        load_trained(again, device="cpu")
    with pytest.raises(SetsupError, match=r"contains another run: method\.weights is"):
        train(preset_of(other, views), tmp_path / "run", config=HERE)


@pytest.mark.long("networks")
def test_the_digest_covers_whatever_changes_the_features(folder: Path, tmp_path: Path) -> None:
    save = pytest.importorskip("safetensors.torch")

    def digest(config: Any = None, processor: Any = None, weights: Any = None) -> str:
        changed = Path(tempfile.mkdtemp(dir=tmp_path))
        shutil.copytree(folder, changed, dirs_exist_ok=True)
        for file, entries in (("config.json", config), ("preprocessor_config.json", processor)):
            read = json.loads((changed / file).read_text())
            (changed / file).write_text(json.dumps(read | (entries or {})))
        if weights is not None:
            content = save.load_file(changed / "model.safetensors")
            weights(content)
            save.save_file(content, changed / "model.safetensors", metadata={"format": "pt"})
        return open_transformer(f"hf:{changed}").digest

    def exchanged(content: dict[str, Any]) -> None:
        query = next(name for name in content if name.endswith("query.weight"))
        value = query.replace("query", "value")
        content[query], content[value] = content[value], content[query]

    def nudged(content: dict[str, Any]) -> None:
        content[next(name for name in content if name.endswith("key.bias"))][0] += 1e-3

    same = digest()
    assert digest(config={"_name_or_path": "elsewhere", "transformers_version": "5.0.0", "architectures": []}) == same
    assert digest(processor={"do_resize": False}) == same, "views are not resized by the processor"
    others = [
        digest(weights=exchanged),
        digest(weights=nudged),
        digest(config={"num_attention_heads": 4}),
        digest(config={"layer_norm_eps": 1e-3}),
        digest(config={"hidden_act": "relu"}),
        digest(processor={"image_mean": [0.1, 0.5, 0.6]}),
        digest(processor={"image_std": [0.2, 0.25, 0.4]}),
    ]
    assert len({same, *others}) == len(others) + 1
    settings = FinetuningSettings(encoder=f"hf:{folder}", weights=others[2])
    with pytest.raises(DataError, match=r"^the weights, configuration or preprocessing of hf:.* are not those"):
        built(settings)


@pytest.mark.long("networks")
def test_gated_layers_after_the_attention_are_updated() -> None:
    torch.manual_seed(0)
    config = transformers.Dinov2Config(mlp_ratio=2, use_swiglu_ffn=True, **SIZES)
    model = transformers.Dinov2Model(config)
    linear = [name for name, part in model.named_modules() if isinstance(part, torch.nn.Linear)]
    expected = [name for name in linear if ".mlp." in name]
    assert len(expected) in (4, 6)  # by version of transformers
    assert find_projections(model, ["mlp"], "hf:giant") == expected
    assert find_projections(model, ["query", "key", "value", "output", "mlp"], "hf:giant") == linear


@pytest.mark.long("trainings")
@pytest.mark.parametrize("loss", ["infonce", "within_between"])
def test_a_stopped_run_resumes_bit_for_bit(
    folder: Path, views: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    preset = preset_of(folder, views, **{"method.loss": loss, "method.features": 4})
    step = PixelFinetuning.training_step

    def stopping(self: PixelFinetuning, batch: Any, number: int) -> Any:
        if self.global_step == 3:
            raise MemoryError
        return step(self, batch, number)

    monkeypatch.setattr(PixelFinetuning, "training_step", stopping)
    with pytest.raises(MemoryError):
        train(preset, tmp_path / "run", config=HERE)
    monkeypatch.setattr(PixelFinetuning, "training_step", step)
    resumed = train(preset, tmp_path / "run", config=HERE)
    checked_equal(resumed.folder, train(preset, tmp_path / "whole", config=HERE))


@pytest.mark.long("trainings")
@pytest.mark.filterwarnings("ignore:You are trying to `self.log")
def test_steps_lower_the_loss_of_the_same_matches(folder: Path, views: Path) -> None:
    for name, rate in (("pixels/finetune", 1e-2), ("pixels/finetune-head", 3e-2)):
        preset = preset_of(folder, views, name)
        data = preset.open_training(0)
        loader = Loader(
            data.dataset, data.build_sampler(), transform=data.build_transform(), modalities=["image"], workers=0
        )
        batch = next(iter(loader))
        method = built(preset.method)
        optimiser = torch.optim.Adam([weight for weight in method.parameters() if weight.requires_grad], rate)
        losses = []
        for _ in range(20):
            loss = method.loss(batch)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] - 0.1


@pytest.mark.long("trainings")
def test_a_shrunk_preset_needs_no_weights(views: Path, tmp_path: Path) -> None:
    for name in ("pixels/finetune", "pixels/finetune-head"):
        preset = smoke(find_preset(name))
        preset = put(preset, {"data.name": str(views), "augmentation.size": 42})
        assert train(preset, tmp_path / name, config=HERE).finished


def test_without_weights_it_says_what_to_do(views: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    preset = put(preset_of(tmp_path, views), {"method.encoder": "hf:facebook/dinov2-small"})
    with pytest.raises(DataError, match="fetch the repository with `hf download facebook/dinov2-small`"):
        train(preset, tmp_path / "run", config=HERE)
    assert not (tmp_path / "run").exists()


@pytest.mark.long("networks")
def test_a_repository_in_the_cache_is_opened_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a connection"))
    home = tmp_path / "models--someone--small"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text("c0ffee")
    write_transformer(home / "snapshots" / "c0ffee")
    settings = FinetuningSettings(encoder="hf:someone/small").fit_to({})
    assert settings.encoder == "hf:someone/small"
    moved = replace(settings, encoder=f"hf:{home / 'snapshots' / 'c0ffee'}")
    for one in (settings, moved):  # the digest is that of the weights, wherever they are
        assert built(one).network.patch == 8


def test_views_are_of_whole_patches(folder: Path, views: Path, tmp_path: Path) -> None:
    preset = preset_of(folder, views, **{"augmentation.size": 30})
    with pytest.raises(SetsupError, match=r"not whole patches of 8 × 8; set --augmentation\.size .* such as 24 or 32"):
        train(preset, tmp_path / "run", config=HERE)


@pytest.mark.long("trainings")
def test_the_report_on_dense_features_measures_before_and_after(
    run: Run, folder: Path, views: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["report", "dense", str(views), str(run.folder), "--encoder", f"hf:{folder}", "-n", "2", "--json"]
    assert main(words) == 0
    before, after = json.loads(capsys.readouterr().out)["encoders"].values()
    assert before["by_pair"] != after["by_pair"]
    for encoder in (before, after):
        assert 0 < encoder["values"]["visible: within 25 px"]["mean"] <= 1


@pytest.mark.long("trainings")
def test_exported_programs_contain_the_transformer(run: Run, views: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "features.pt2")
    program = torch.export.load(tmp_path / "features.pt2").module()
    images = torch.randint(0, 256, (2, 3, 48, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = load_trained(run, device="cpu").method.embed({"image": images[None]})[0]
        torch.testing.assert_close(program(images), expected, atol=1e-4, rtol=1e-4)
    export(run, tmp_path / "updates.pt")
    assert set(torch.load(tmp_path / "updates.pt")) == set(load_trained(run, device="cpu").method.state_dict())
