import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import setsup as library
from tests.cli.refusals import refused

pytest.importorskip("embreex")

Run = Callable[..., Any]
FEW = ["--size", 32, 40, "--renderer", "embree", "--where", "shape == 'cube' and scale > 1.2"]


def test_a_sheet_and_a_table_of_counts(setsup: Run, tmp_path: Path) -> None:
    found = setsup("pairs", "shapes3d", *FEW, "--draws", 3, "--out", tmp_path / "a.png")
    assert found.code == 0
    assert found.out.count("orientation") == 6
    assert str(tmp_path / "a.png") in found.out
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.width > 600
    again = setsup("pairs", "shapes3d", *FEW, "--draws", 3, "--out", tmp_path / "b.png")
    assert again.code == 0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_json_has_what_the_library_finds(setsup: Run, tmp_path: Path) -> None:
    found = setsup("pairs", "shapes3d", *FEW, "--draws", 2, "--seed", 5, "--out", tmp_path / "a.png", "--json").json
    from setsup.correspondence import spatial
    from setsup.scenes.recipes import Shapes3D

    assert len(found["pairs"]) == 2
    recipe = Shapes3D(size=(32, 40))
    for one in found["pairs"]:
        values = [{**one["scene"], **view} for view in one["views"]]
        scene = recipe.scene(values[0])
        pairs = spatial(scene, *(recipe.camera(row, scene) for row in values))
        counts = np.bincount(pairs.status, minlength=4).tolist()
        assert [one[name] for name in ("visible", "occluded", "outside", "no_surface")] == counts
        assert one["scene"]["shape"] == "cube"


def test_what_can_be_drawn_is_listed(setsup: Run) -> None:
    assert "room" in setsup("pairs").out
    assert {one["recipe"] for one in setsup("pairs", "--json").json} >= {"room", "object", "shapes3d"}
    assert "--draws" in setsup("pairs", "room", "--help").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "unknown recipe or dataset 'nothing'"),
        (["shapes3d", "--draws", "0"], "--draws must be 1 or more"),
        (["shapes3d", "--lines", "0"], "--lines must be 1 or more"),
        (["object"], "--models"),
        (["shapes3d", "--where", "orientation == 0"], "two views"),
    ],
)
def test_what_is_wrong_is_said(setsup: Run, words: list[str], said: str) -> None:
    found = setsup("pairs", *words, "--renderer", "embree") if words[0] != "nothing" else setsup("pairs", *words)
    refused(found, said)


def test_pairs_are_kept_by_render(setsup: Run, tmp_path: Path) -> None:
    out = tmp_path / "kept"
    found = setsup("render", "shapes3d", *FEW, "--matches", 3, "--modalities", "image", "partners", "--out", out)
    assert found.code == 0, found.err
    kept = library.open(out)
    assert list(kept.modalities) == ["image", "partners"]
    assert len(kept) == 6
    about = json.loads((out / "rendered.json").read_text())
    assert about["pair_factors"] == ["view_pair"]
