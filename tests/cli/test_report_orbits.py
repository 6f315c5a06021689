"""``setsup report orbits``: any encoder and run on orbits of any source."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from setsup import load
from tests.cli.refusals import refused

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

Run = Callable[..., Any]

SHAPES = ["report", "orbits", "shapes3d-procedural", "--orbit", "wall_hue", "object_hue", "-n", 4, "--members", 5]

METHOD = """
from dataclasses import dataclass
import torch
from lightning.pytorch import LightningModule
from setsup.experiments import Data, Preset, Sets

class Dark(LightningModule):
    def __init__(self):
        super().__init__()
        self.times = torch.nn.Parameter(torch.tensor(0.5))
    def embed(self, batch):
        return batch["image"].flatten(2).float() / 255 * self.times
    def rectify(self, batch):
        return (batch["image"].float() / 255 * self.times).clamp(0, 1)
    def training_step(self, batch, batch_idx):
        return self.embed(batch).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.0)

@dataclass(frozen=True)
class DarkSettings:
    def build(self, table, generator):
        return Dark()

PRESETS = [Preset(name="own/dark", shows="", data=Data("mnist", "train"), sampler=Sets(inactive=("digit",), size=4),
                  method=DarkSettings(), steps=1)]
"""


def test_the_report_compares_encoders_on_orbits(setsup: Run) -> None:
    words = [*SHAPES, "--encoder", "pixels:4", "--encoder", "pixels:1", "--canonical", "argmin:orientation"]
    found = setsup(*words, "--out", "sheet.png")
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines()[-1] == "sheet.png"
    with Image.open("sheet.png") as sheet:
        assert sheet.size[0] > 400
    data = setsup(*words, "--json").json
    assert list(data["encoders"]) == ["pixels:4", "pixels:1"]
    assert (data["orbit"], data["canonical"], data["notes"]) == (["wall_hue", "object_hue"], "argmin:orientation", [])
    assert (data["split"], data["seed"], data["picture"]) == (None, 0, None)
    assert [one["members"] for one in data["orbits"]] == [4_800] * 4
    assert all(len(values) == 4 for each in data["by_orbit"].values() for values in each.values())
    values = data["encoders"]["pixels:4"]
    assert (values["orbits"], values["rows"], values["pairs within"]) == (4, 20, 40)
    assert "4 of 100 orbits, 20 rows; all 40 pairs within and 150 between orbits" in found.out
    lines = [line.split() for line in found.out.splitlines()]
    for label, values in data["encoders"].items():
        cells = [f"{values[name]:.3f}" for name in ("within / between", "AUC", "nearest canonical")]
        assert [label, *cells] in lines
        assert [label, "within", f"{values['within, scaled: mean']:.3f}"] in [line[:3] for line in lines]
    assert ["chance", "0.500", "0.250"] in lines


@pytest.mark.long("a training")
def test_the_report_has_what_runs_rectify_beside_encoders(setsup: Run, digits: Path) -> None:
    Path("dark.py").write_text(METHOD)
    assert setsup("train", "dark.py:own/dark", "--root", digits).code == 0
    words = ["report", "orbits", "mnist", "runs/own/dark/seed-0", "--preset", "dark.py:own/dark", "--root", digits]
    words += ["--orbit", "digit", "--canonical", "first", "--members", 20, "--encoder", "pixels"]
    found = setsup(*words, "--out", "sheet.png")
    assert (found.code, found.err) == (0, "")
    assert "error: rectified" in found.out
    data = setsup(*words, "--json").json
    run, pixels = data["encoders"]["runs/own/dark/seed-0"], data["encoders"]["pixels"]
    assert run["AUC"] == pytest.approx(pixels["AUC"], abs=1e-6)  # half of the pixels
    assert run["error: rectified"] != run["error: input"] > run["error: mean image"]
    assert not [name for name in pixels if name.startswith("error")]
    named = setsup(*words[:3], "--orbit", "digit", "--encoder", "pixels", "--root", digits, "--members", 3)
    assert "nearest canonical" not in named.out


def test_canonical_members_are_written_as_for_samples(setsup: Run) -> None:
    words = [*SHAPES[:-4], "--encoder", "pixels:1", "--members", 2, "-n", 3, "--json"]
    levels = setsup(*words, "--canonical", "orientation=-30.0", "shape=sphere").json
    assert levels["canonical"] == {"orientation": -30.0, "shape": "sphere"}
    expression = setsup(*words, "--canonical", "orientation == -30.0 and shape == 'sphere'").json
    assert [one["canonical_row"] for one in levels["orbits"]] == [one["canonical_row"] for one in expression["orbits"]]
    table = load("shapes3d-procedural").factors
    for one in levels["orbits"]:
        row = table.row(one["canonical_row"])
        assert (row["orientation"], row["shape"]) == (-30.0, "sphere")
    refused(setsup(*words, "--canonical", "shape=ball"), "factor 'shape' has no level 'ball'")
    refused(setsup(*words, "--canonical", "form=ball"), "unknown factor 'form'")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (SHAPES, "pass folders of runs, or --encoder ENCODER"),
        (["report", "orbits", "shapes3d-procedural", "--encoder", "pixels"], "--orbit"),
        ([*SHAPES[:3], "--encoder", "pixels", "--orbit", "wal_hue"], "did you mean 'wall_hue'"),
        ([*SHAPES, "--encoder", "pixels", "--canonical", "argmin:angle"], "unknown factor 'angle'"),
        ([*SHAPES, "--encoder", "pixels", "--out", "a.jpg"], "must be a file with the suffix"),
        ([*SHAPES, "--encoder", "pixel"], "unknown encoder 'pixel'"),
        ([*SHAPES[:-4], "--encoder", "pixels", "-n", 1], "the number of orbits"),
        ([*SHAPES[:-4], "--encoder", "pixels", "--members", 500], "draw fewer orbits, or fewer members of each"),
        ([*SHAPES, "nothing", "--encoder", "pixels"], "nothing"),
    ],
)
def test_mistakes_are_one_sentence(setsup: Run, words: list[object], sentence: str) -> None:
    found = setsup(*words)
    refused(found, sentence)


def test_a_dataset_without_images_is_one_sentence(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from setsup.datasets import Modality
    from setsup_cli.encoders import options
    from setsup_cli.parsing.arguments import Source

    dataset, data = options.open_data(Source("shapes3d-procedural"))
    dataset.modalities = {"depth": Modality((64, 64, 1), "float32")}
    monkeypatch.setattr(options, "open_data", lambda source: (dataset, data))
    found = setsup(*SHAPES, "--encoder", "pixels")
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "shapes3d-procedural has no images" in found.err
