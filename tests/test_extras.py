"""Each extra in an environment that has just it: what the README and the pages say it is for runs there.

It installs from the package index, and takes minutes for each extra.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.smoke

CHECKOUT = Path(__file__).resolve().parents[1]

FEW = ["--where", "object_hue == 0.5 and scale == 1.25 and floor_hue == 0 and wall_hue == 0"]
TRAINED = "runs/abc/fig3a-substitute-smoke/seed-0"

RECIPE = """
import setsup
from setsup.methods import domain_contrast_loss
from setsup.methods.networks import shapes3d_encoder
from setsup.methods.recipes import recipe
shapes = setsup.load("shapes3d-procedural")
sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=32, sets=2, seed=0)
batch = next(iter(setsup.loader(shapes, sets, transform=recipe("dcodr"))))
assert batch["positive_image"].shape == (2, 32, 3, 64, 64)
"""
TABLE = """
import datasets, setsup
table = setsup.FactorTable.from_huggingface(datasets.Dataset.from_dict({"s": list("aabb")}))
assert len(table.to_huggingface()) == len(table) == 4
"""
FRAME = """
import pandas, setsup
table = setsup.FactorTable.from_pandas(pandas.DataFrame({"s": list("aabb")}))
assert list(table.to_pandas()["s"]) == list("aabb")
"""
MAP = """
import numpy as np
from setsup.evaluation import umap_map
assert umap_map(np.random.default_rng(0).normal(size=(60, 5)).astype("float32")).shape == (60, 2)
"""
STORES = "import fsspec; [fsspec.get_filesystem_class(one) for one in ('s3', 'gs', 'https', 'hf')]"
VIDEO = """
from setsup.datasets.benchmarks.video_orbits.cuts import ContentCuts
from setsup.datasets.benchmarks.video_orbits.faces import Cascades
import av, cv2, scenedetect
ContentCuts(), Cascades()
"""
MESH = """
import trimesh
from setsup.scenes import load_mesh
trimesh.creation.box().export("box.stl")
assert len(load_mesh("box.stl").faces) == 12
"""

_TORCH = ("torch_loop", "torchrun_gloo", "factor_pairs", "prototypical_networks", "hard_negatives", "train_from_shards")

RUNS: dict[str, list[list[str]]] = {
    "torch": [["python", "-c", RECIPE], *(["python", f"{CHECKOUT}/examples/{one}.py"] for one in _TORCH)],
    "opencv": [["python", "-c", "import cv2"]],
    "torch,opencv": [["python", "-c", RECIPE + "import cv2"]],
    "train": [
        ["python", f"{CHECKOUT}/examples/{one}.py"]
        for one in ("lightning_module", "huggingface_trainer", "accelerate_loop")
    ],
    "torch,train": [
        ["setsup", "train"],
        ["setsup", "train", "abc/fig3a", "--substitute", "--smoke"],
        ["setsup", "eval", TRAINED],
        ["setsup", "report", "abc/fig3a"],
        ["setsup", "train", f"{CHECKOUT}/examples/a_method_of_your_own.py", "--smoke"],
    ],
    "umap": [["python", "-c", MAP]],
    "hf": [["python", "-c", TABLE]],
    "render": [
        ["setsup", "render", "shapes3d", "--out", "shapes", "--rows", "8"],
        ["setsup", "sample", "shapes", "--inactive", "shape", "--size", "1"],
        ["setsup", "pairs", "room", "--draws", "1"],
    ],
    "meshes": [["python", "-c", MESH]],
    "video": [["python", "-c", VIDEO]],
    "shards": [
        ["setsup", "shard", "--out", "tars", *FEW],
        ["setsup", "sample", "tars", "--inactive", "shape", "--size", "2"],
        ["python", "-c", STORES],
    ],
    "ray": [["setsup", "shard", "--out", "tars", *FEW, "--on", "ray"]],
    "pandas": [["python", "-c", FRAME]],
    "explore": [["python", "-c", "from setsup.pages import serve"], ["setsup", "explore", "--export", "page.html"]],
}
"""What the README and the pages give with each line that installs an extra."""


def run(*command: str | Path, cwd: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    found = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=1800
    )
    assert found.returncode == 0, f"{command}: {found.stdout}{found.stderr}"
    return found.stdout


@pytest.mark.parametrize("extras", RUNS)
def test_what_an_extra_is_for_runs_with_it_alone(extras: str, tmp_path: Path) -> None:
    place, work = tmp_path / "bare", tmp_path / "work"
    work.mkdir()
    venv.create(place, with_pip=False)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", place / "bin" / "python")
    asked = ("--constraint", CHECKOUT / "constraints.txt", "--editable", f"{CHECKOUT}[{extras}]")
    run(*pip, "install", "--quiet", "--no-compile", *asked, cwd=work)
    json.loads(run(place / "bin" / "setsup", "doctor", "--json", cwd=work))
    for command, *words in RUNS[extras]:
        run(place / "bin" / command, *words, cwd=work)
