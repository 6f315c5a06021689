"""``--frames`` of ``setsup render`` and ``setsup pairs``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from setsup.correspondence import RenderedFrames, spatial
from setsup.rendered.folder import open_rendered
from setsup.scenes.recipes import RoomFrames
from tests.cli.refusals import refused

pytest.importorskip("embreex")

Run = Callable[..., Any]
SMALL = ["--size", 24, 32, "--moving", 1, "--count", 0, 1, "--renderer", "embree", "--rooms", 2]


def test_frames_of_rooms_have_flow(setsup: Run, tmp_path: Path) -> None:
    found = setsup("render", "room", "--frames", 2, *SMALL, "--seed", 4, "--out", tmp_path / "fr", "--json").json
    assert found["factors"] == {"room": 2, "frame": 2}
    assert {"image", "exact_flow", "exact_flow_back", "flow_status", "flow_back_status"} <= set(found["modalities"])
    folder = open_rendered(tmp_path / "fr")
    recipe = RoomFrames(rooms=2, frames=2, moving=1, count=(0, 1), size=(24, 32), seed=4)
    wanted = RenderedFrames(recipe, renderer="embree").fetch(3)
    for name, array in folder.fetch(3).items():
        assert np.array_equal(array, wanted[name], equal_nan=array.dtype.kind == "f"), name


def test_frames_of_objects(setsup: Run, tmp_path: Path) -> None:
    (tmp_path / "roof.obj").write_text("v 0 0 0\nv 4 0 0\nv 0 0 -2\nv 1 1 1\nf 1 2 3\nf 1 2 4\n")
    words = ["--models", tmp_path / "roof.obj", "--frames", 3, "--size", 16, 16, "--turn", 30, "--renderer", "embree"]
    found = setsup("render", "object", *words, "--out", tmp_path / "fr", "--json").json
    assert found["factors"] == {"model": 1, "frame": 3}
    assert np.isnan(open_rendered(tmp_path / "fr").fetch(0)["exact_flow"]).any()


def test_two_frames_are_matched(setsup: Run, tmp_path: Path) -> None:
    words = ["--frames", 0, 3, *SMALL, "--draws", 5, "--out", tmp_path / "a.png", "--json"]
    pairs = setsup("pairs", "room", *words).json["pairs"]
    assert {pair["scene"]["room"] for pair in pairs} == {0, 1}
    assert [view["frame"] for view in pairs[0]["views"]] == [0, 3]
    recipe = RoomFrames(rooms=2, moving=1, count=(0, 1), size=(24, 32))
    rows = [{**pairs[0]["scene"], **view} for view in pairs[0]["views"]]
    scenes = [recipe.scene(row) for row in rows]
    cameras = [recipe.camera(row, scene) for row, scene in zip(rows, scenes, strict=True)]
    counts = np.bincount(spatial(scenes[0], *cameras, scene2=scenes[1]).status, minlength=4).tolist()
    assert [pairs[0][name] for name in ("visible", "occluded", "outside", "no_surface")] == counts
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.width > 600


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["render", "shapes3d", "--frames", "3", "--out", "x"], "shapes3d has no frames"),
        (["render", "room", "--modalities", "image,exact_flow", "--out", "x"], "exact_flow requires --frames N"),
        (["render", "room", "--modalities", "scene_flow", "--out", "x"], "scene_flow requires --frames N"),
        (["pairs", "room", "--frames", "3", "3"], "two different frames"),
        (["pairs", "room", "--frames", "-1", "3"], "two different frames"),
        (["pairs", "room", "--frames", "0", "3", "--tracks", "0", *map(str, SMALL)], "--tracks must be 1 or more"),
        (
            ["pairs", "room", "--frames", "0", "2", "--tracks", "4", "--where", "frame != 1", *map(str, SMALL)],
            "no scene has the frames 0, 1, 2; change --where",
        ),
        (["pairs", "room", "--frames", "0", "2", "--rows", "1", *map(str, SMALL)], "no scene has the frames 0, 2"),
        (["render", "room", "--frames", "0", "--out", "x"], "frames"),
        (
            ["render", "room", "--frames", "3", *map(str, SMALL), "--matches", "2", "--overlap", ".3-.8", "--out", "x"],
            "overlap is measured in scenes that stand still",
        ),
    ],
)
def test_what_frames_cannot_do(setsup: Run, words: list[str], said: str) -> None:
    refused(setsup(*words), said)


def test_help_names_the_options_of_frames(setsup: Run) -> None:
    assert "--frames N" in setsup("render", "room", "--help").out
    assert "--moving" not in setsup("render", "room", "--help").out
    assert "--moving" in setsup("render", "room", "--frames", "3", "--help").out
    assert "With --frames" not in setsup("render", "shapes3d", "--help").out


def test_tracks_are_plotted(setsup: Run, tmp_path: Path) -> None:
    words = ["--frames", 1, 3, *SMALL, "--draws", 2, "--tracks", 20, "--out", tmp_path / "a.png"]
    videos = setsup("pairs", "room", *words, "--json").json["videos"]
    assert [video["frames"] for video in videos] == [[1, 2, 3]] * 2
    assert all(video["visible"][0] <= 20 for video in videos)
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.width > 600
    assert str(tmp_path / "a.png") in setsup("pairs", "room", *words, "--force").out
