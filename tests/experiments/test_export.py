"""Exported methods: loaded without setsup they give what the method gives; what cannot be exported is refused."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import LightningModule  # noqa: E402
from torch import nn  # noqa: E402

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments import Run, RunConfig, export, load_trained, train  # noqa: E402
from tests.experiments.small import PLAIN, Pooled, Tiny  # noqa: E402

SHORT = replace(PLAIN, steps=2)

ALONE = """
import json, sys
import numpy as np
sys.modules["setsup"] = sys.modules["lightning"] = None  # importing them fails
import torch
extra = {"setsup.json": ""}
embed = torch.export.load(sys.argv[1], extra_files=extra).module()
inputs = np.load(sys.argv[2])
found = embed(*(torch.from_numpy(inputs[name]) for name in sorted(inputs)))
found = {"": found} if isinstance(found, torch.Tensor) else found
np.savez(sys.argv[3], **{f"out{name}": value.numpy() for name, value in found.items()})
print(extra["setsup.json"])
"""


def alone(program: Path, **inputs: Any) -> tuple[dict[str, Any], Any]:
    """What a program gives in a process without setsup, and what it says of itself."""
    given, out = program.with_suffix(".npz"), program.with_name("out.npz")
    np.savez(given, **{name: value.numpy() for name, value in inputs.items()})
    words = [sys.executable, "-c", ALONE, str(program), str(given), str(out)]
    done = subprocess.run(words, cwd=program.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with np.load(out) as found:
        return {name: torch.from_numpy(found[name]) for name in found}, json.loads(done.stdout)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(SHORT, tmp_path_factory.mktemp("run"), config=RunConfig(workers=0))


@pytest.mark.long("subprocesses")
def test_a_program_gives_what_the_method_gives_without_setsup(run: Run, tmp_path: Path) -> None:
    about = export(run, tmp_path / "encoder.pt2")
    images = torch.randint(0, 256, (7, 3, 64, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    found, said = alone(tmp_path / "encoder.pt2", images=images)
    method = load_trained(run, device="cpu").method.requires_grad_(False)
    assert torch.equal(found["out"], method.embed({"image": images[None]})[0])
    assert said == about
    assert about == {
        "preset": "small/plain",
        "seed": 0,
        "steps": 2,
        "inputs": [{"name": "image", "shape": ["n", 3, 64, 64], "dtype": "uint8"}],
        "outputs": [{"name": "", "shape": ["n", 4], "dtype": "float32"}],
    }
    program = torch.export.load(tmp_path / "encoder.pt2").module()
    for size in (1, 2, 64):
        some = images[:1].repeat(size, 1, 1, 1)
        assert torch.equal(program(some), method.embed({"image": some[None]})[0])


class Parts(LightningModule):
    """Embeds two views under two names, of which one has axes of its own."""

    def __init__(self, reads: str = "") -> None:
        super().__init__()
        self.network, self.reads = nn.Linear(192, 2), reads

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        return self.network(Pooled()(batch["image"])).square().mean()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)

    def embed(self, batch: Any) -> Any:
        if self.reads == "python":
            return self.network(Pooled()(batch["image"])) if batch["image"].float().mean() > 9 else batch["image"]
        if self.reads:
            return Pooled()(batch["image"]) + batch[self.reads][..., None]
        whole, part = self.network(Pooled()(batch["dark"])), Pooled()(batch["image"])
        return {"whole": whole, "part": part.unflatten(-1, (3, 64)), **({} if batch.get("none") is None else {"x": 1})}


@dataclass(frozen=True)
class PartsSettings:
    reads: str = ""

    def build(self, table: Any, generator: Any) -> Parts:
        return Parts(self.reads)


@dataclass(frozen=True)
class Dark:
    def build(self, dataset: Any, seed: int) -> Any:
        return lambda batch: {**batch, "dark": batch["image"] / 512}


@pytest.mark.long("trainings")
def test_a_method_of_several_views_and_embeddings(tmp_path: Path) -> None:
    preset = replace(SHORT, method=PartsSettings(), eval_transform=Dark())
    run = train(preset, tmp_path / "run", config=RunConfig(workers=0))
    about = export(run, tmp_path / "parts.pt2")
    assert [(one["name"], one["dtype"]) for one in about["inputs"]] == [("dark", "float32"), ("image", "uint8")]
    assert [(one["name"], one["shape"]) for one in about["outputs"]] == [("whole", ["n", 2]), ("part", ["n", 3, 64])]
    images = torch.randint(0, 256, (4, 3, 64, 64), dtype=torch.uint8)
    found, _ = alone(tmp_path / "parts.pt2", dark=images / 512, image=images)
    with torch.no_grad():
        expected = load_trained(run, device="cpu").method.embed({"dark": images[None] / 512, "image": images[None]})
    assert all(torch.equal(found[f"out{name}"], value[0]) for name, value in expected.items())


@pytest.mark.long("trainings")
@pytest.mark.parametrize(
    ("reads", "sentence"),
    [
        (
            "indices",
            r"^Parts.embed reads 'indices' from the batch, but an exported program receives images only; export",
        ),
        (
            "python",
            r"^torch.export could not export Parts.embed \(.*\); export its weights instead, for example to mine.pt$",
        ),
    ],
)
def test_a_method_that_cannot_be_exported(tmp_path: Path, reads: str, sentence: str) -> None:
    run = train(replace(SHORT, method=PartsSettings(reads)), tmp_path / "run", config=RunConfig(workers=0))
    with pytest.raises(SetsupError, match=sentence) as caught:
        export(run, tmp_path / "mine.pt2")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("*mine*"))


@pytest.mark.parametrize("name", ["weights.pt", "weights.safetensors"])
def test_weights_are_those_of_the_method_by_name(run: Run, tmp_path: Path, name: str) -> None:
    export(run, tmp_path / name)
    if name.endswith(".pt"):
        weights = torch.load(tmp_path / name, weights_only=True)
    else:
        weights = pytest.importorskip("safetensors.torch").load_file(tmp_path / name)
    method = load_trained(run, device="cpu").method
    assert weights.keys() == method.state_dict().keys()
    assert all(torch.equal(weights[key], value) for key, value in method.state_dict().items())
    # as the documentation does it: into a network of one's own
    encoder = Tiny().build(None, torch.Generator()).encoder
    encoder.load_state_dict({key.removeprefix("encoder."): value for key, value in weights.items()})


def test_what_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(SetsupError, match=r"must be .pt2 for a program, or .pt or .safetensors for"):
        export(run, tmp_path / "encoder.onnx")
    with pytest.raises(DataError, match=r"contains no checkpoint yet"):
        export(replace(run, folder=tmp_path), tmp_path / "encoder.pt2")
