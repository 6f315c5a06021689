"""Settings of DCoDR: its batches, what is built of them, and trainings in the frame."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import SamplerError  # noqa: E402
from setsup.experiments import Data, Preset, RunConfig, load_trained, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.preset import smoke  # noqa: E402
from setsup.factors import Factor, FactorTable, Kind  # noqa: E402
from setsup_papers.dcodr.settings import DCoDRSettings, DomainBatches  # noqa: E402

SHAPES = Data("shapes3d-procedural", where="scale == 0.75 and floor_hue == 0 and wall_hue == 0")
SMALL = DCoDRSettings(
    domain=("shape",), encoder="small", channels=(4, 4, 4, 4), dimensions=8, generator_width=8, style=4
)
PRESET = Preset(
    name="small/dcodr",
    shows="DCoDR on few images",
    data=SHAPES,
    sampler=DomainBatches(domain=("shape",), sets=4, size=2),
    augmentation="dcodr",
    method=replace(SMALL, perceptual="pyramid"),
    steps=2,
)
HERE = RunConfig(workers=0)


def toys(sizes: dict[str, int]) -> Any:
    """A dataset whose factor table has so many rows of each toy."""
    codes = [code for code, size in enumerate(sizes.values()) for _ in range(size)]
    table = FactorTable([Factor("toy", Kind.NOMINAL, tuple(sizes))], {"toy": codes})
    return type("Toys", (), {"factors": table})


def test_batches_have_the_domains_that_there_are() -> None:
    two = toys({"photo": 40, "edge": 50})
    for domains in ("independent", "balanced"):
        draw = DomainBatches(domain=("toy",), domains=domains).build(two, 0)[0]  # type: ignore[arg-type]
        assert draw.indices.shape == (2, 32)
        assert sorted(draw.inactive["toy"].tolist()) == [0, 1]


def test_short_domains_are_masked_or_left_out() -> None:
    short = toys({"a": 3, "b": 40, "c": 40})
    draw = DomainBatches(domain=("toy",), sets=3).build(short, 0)[0]
    assert draw.mask is not None
    assert sorted(draw.mask.sum(1).tolist()) == [3, 32, 32]
    dropped = DomainBatches(domain=("toy",), sets=3, small="drop").build(short, 0)[0]
    assert dropped.indices.shape == (2, 32)
    with pytest.raises(SamplerError, match="toy = a: 3"):
        DomainBatches(domain=("toy",), small="error").build(short, 0)


def test_networks_are_those_that_are_named() -> None:
    table = SHAPES.open().factors
    whole = build_method(replace(SMALL, head=True), table, 0)
    assert type(whole.distance).__name__ == "PerceptualDistance"
    assert whole.styles.weight.shape == (4, 4)
    assert len(list(whole.head.parameters())) == 6
    norec = build_method(replace(SMALL, reconstruction=0.0), table, 0)
    assert norec.generator is norec.styles is norec.distance is norec.head is None
    names = {name: one for name, one in norec.state_dict().items() if name.startswith("encoder")}
    assert names.keys() == norec.state_dict().keys()
    same = build_method(replace(SMALL, reconstruction=0.0), table, 0).state_dict()
    assert all(torch.equal(one, same[name]) for name, one in names.items())


def test_the_size_of_images_is_that_of_the_data() -> None:
    batch = {"image": torch.zeros(2, 3, 1, 32, 48)}
    assert SMALL.fit_to(batch).image == (1, 32, 48)
    fixed = replace(SMALL, image=(1, 32, 48))
    assert fixed.fit_to(batch) is fixed


@pytest.mark.long("trainings")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"reconstruction": 0.0, "head": True},
        {"negatives": "batch", "positives": False, "decoupled": True, "decay_every": 1},
    ],
)
def test_trainings_end_and_are_opened_with_embeddings_of_length_1(tmp_path: Path, changes: dict[str, Any]) -> None:
    run = train(replace(PRESET, method=replace(PRESET.method, **changes)), tmp_path / "run", config=HERE)  # type: ignore[type-var]
    metrics = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert {"loss", "contrast"} <= metrics[-1].keys()
    assert ("reconstruction" in metrics[-1]) is (changes.get("reconstruction", 0.3) > 0)
    found = load_trained(run).embed(rows=[0, 5, 9])
    assert found.shape == (3, 8)
    assert (found**2).sum(1) == pytest.approx([1, 1, 1], rel=1e-4)


@pytest.mark.long("trainings")
def test_a_run_is_opened_without_the_file_of_vgg16(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from setsup_papers.dcodr import vgg16_features

    path = tmp_path / "vgg16.pth"
    torch.save({f"features.{name}": one for name, one in vgg16_features().state_dict().items()}, path)
    method = replace(PRESET.method, perceptual="vgg16", vgg_weights=str(path))  # type: ignore[type-var]
    run = train(replace(PRESET, method=method), tmp_path / "run", config=HERE)
    assert not any("distance" in name for name in torch.load(run.folder / "last.ckpt", weights_only=True)["state_dict"])
    path.unlink()
    assert load_trained(run).embed(rows=[0]).shape == (1, 8)
    with caplog.at_level(logging.WARNING, "setsup"):
        train(replace(PRESET, method=replace(method, vgg_weights="random")), tmp_path / "random", config=HERE)
    assert "RANDOM WEIGHTS" in caplog.text


@pytest.mark.long("trainings")
def test_a_smoke_run_needs_no_published_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    paper = replace(PRESET, method=DCoDRSettings(domain=("shape",)), initial_run="resnet50-mocov2-800")
    run = train(smoke(paper), tmp_path / "run", config=HERE)
    assert load_trained(run).method.generator is not None
    assert "initial_weights_sha256" not in json.loads((run.folder / "run.json").read_text())


@pytest.mark.smoke
@pytest.mark.long("trainings")
def test_two_exact_steps_start_from_the_published_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's networks, on four images; files have the layouts of the published ones, and digests of their own."""
    from setsup.files import content_digest
    from setsup.methods.networks import published
    from setsup_papers.dcodr import ResNetEncoder, vgg16_features

    torch.manual_seed(3)
    source = ResNetEncoder(128)
    state = {f"module.encoder_q.{name}": one for name, one in source.backbone.state_dict().items()}
    state |= {f"module.encoder_q.fc.0.{name}": one for name, one in source.first.state_dict().items()}
    state |= {"module.queue": torch.zeros(4, 4)}
    features = {f"features.{name}": one for name, one in vgg16_features().state_dict().items()}
    folder = tmp_path / "cache" / "pretrained"
    folder.mkdir(parents=True)
    for name, file, algorithm, content in (
        ("resnet50-mocov2-800", "moco_v2_800ep_pretrain.pth.tar", "md5", {"epoch": 800, "state_dict": state}),
        ("vgg16-imagenet", "vgg16-397923af.pth", "sha256", features),
    ):
        torch.save(content, folder / file)
        known = published._PUBLISHED[name]
        digits = content_digest(folder / file, algorithm)[:8]
        monkeypatch.setitem(published._PUBLISHED, name, known._replace(digits=digits))
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    paper = replace(
        PRESET,
        method=DCoDRSettings(domain=("shape",), rate=1e-30),  # so that weights of the encoder stay what they begin as
        sampler=DomainBatches(domain=("shape",), sets=2, size=2),
        initial_run="resnet50-mocov2-800",
    )
    run = train(paper, tmp_path / "run", config=HERE)
    trained: Any = load_trained(run).method
    assert torch.equal(trained.encoder.first.weight, source.first.weight)
    first = "embedder.embedder.convolution.weight"
    assert torch.equal(trained.encoder.backbone.state_dict()[first], source.backbone.state_dict()[first])
    assert len(json.loads((run.folder / "run.json").read_text())["initial_weights_sha256"]) == 64
    begun: Any = build_method(paper.method, run.factors(), 0)  # type: ignore[arg-type]
    for part in ("generator", "styles"):
        moved = zip(getattr(trained, part).parameters(), getattr(begun, part).parameters(), strict=True)
        assert not all(torch.equal(one, other) for one, other in moved)
