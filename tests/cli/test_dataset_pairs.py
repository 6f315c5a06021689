"""``setsup pairs DATASET``: what it draws and counts is what the library does, whatever matches the pixels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import setsup as library
from setsup.correspondence import PixelPairSampler, from_depth, from_tracks, overlap
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import render
from setsup.scenes.recipes import Room
from tests.cli.refusals import refused
from tests.track_models import Model

Run = Callable[..., Any]
STATUSES = ("visible", "occluded", "outside", "no_surface", "unknown")


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rooms, four views each, without stored partners."""
    pytest.importorskip("embreex")
    folder = tmp_path_factory.mktemp("rendered") / "rooms"
    render(RenderedDataset(Room(rooms=2, pairs=2, size=(36, 48)), renderer="embree"), folder, ["depth", "image"])
    return folder


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures") / "cloud"
    Model(folder)
    return folder


def counted(pair: dict[str, Any]) -> list[int]:
    return [pair[name] for name in STATUSES]


def test_pairs_of_a_folder_by_depth(setsup: Run, rooms: Path) -> None:
    found = setsup("pairs", rooms, "--overlap", ".3-.8", "--scene", "room", "--draws", 4, "--seed", 2, "--json").json
    assert found["matched_by"] == "depth"
    dataset = library.open(rooms)
    table = overlap(dataset, scene="room")
    sampler = library.OverlapSampler(dataset.factors, table, overlap=(0.3, 0.8), sets=4, seed=2)
    assert [pair["rows"] for pair in found["pairs"]] == sampler[0].indices.tolist()
    for pair in found["pairs"]:
        first, second = pair["rows"]
        depths = dataset.fetch([first, second], ["depth"])["depth"]
        pairs = from_depth(depths[0], depths[1], dataset.camera(first), dataset.camera(second))
        assert counted(pair) == np.bincount(pairs.status, minlength=5).tolist()
        assert 0.3 <= pair["overlap"] <= 0.8
        assert pair["overlap"] == table.overlap[table.find(first, second)]
        assert pair["overlap_back"] == table.overlap[table.find(second, first)]
        assert pair["angle"] == table.angle[table.find(first, second)]
        assert pair["scale"] == table.scale[table.find(first, second)]
    with Image.open(found["file"]) as picture:
        assert picture.width > 600


def test_a_file_of_overlaps_draws_the_same(setsup: Run, rooms: Path) -> None:
    assert setsup("overlap", rooms, "--scene", "room", "--out", "rooms.overlap").code == 0
    words = ["--draws", 3, "--angle", "0-90", "--scale", ".2-5", "--direction", "both"]
    by_file = setsup("pairs", rooms, "--overlap", "rooms.overlap:.2-.9", *words, "-o", "a.png")
    measured = setsup("pairs", rooms, "--overlap", ".2-.9", "--scene", "room", *words, "-o", "b.png")
    assert by_file.code == measured.code == 0
    assert Path("a.png").read_bytes() == Path("b.png").read_bytes()
    told = " ".join(measured.out.split())
    assert "measured the overlap of 24 pairs from depth, in memory; `setsup overlap" in told
    assert "in memory" not in by_file.out
    assert by_file.out.count("overlap 0.") == 3
    first, last = (found.out.replace("a.png", "b.png").split("\n\n")[-2:] for found in (by_file, measured))
    assert first[-1] == last[-1]


def test_pairs_of_a_capture_by_tracks(setsup: Run, cloud: Path) -> None:
    found = setsup("pairs", cloud, "--overlap", ".2-.7", "-n", 3, "--json").json
    assert found["matched_by"] == "tracks of a COLMAP model"
    capture = library.open(cloud)
    for pair in found["pairs"]:
        assert counted(pair) == np.bincount(from_tracks(capture, *pair["rows"]).status, minlength=5).tolist()
        assert 0.2 <= pair["overlap"] <= 0.7
    drawn = setsup("pairs", cloud, "-n", 2, "--seed", 5, "-o", "c.png", "--json").json["pairs"]
    assert [pair["rows"] for pair in drawn] == PixelPairSampler(capture, pairs=2, seed=5)[0].indices.tolist()
    assert "overlap" not in drawn[0]
    some = setsup("pairs", cloud, "-n", 4, "--where", "frame < 3", "-o", "d.png", "--json").json["pairs"]
    assert {row for pair in some for row in pair["rows"]} <= {0, 1, 2}


def test_stored_partners_of_a_folder(setsup: Run, tmp_path: Path) -> None:
    pytest.importorskip("embreex")
    words = ["shapes3d", "--size", 32, 40, "--renderer", "embree", "--where", "shape == 'cube' and scale > 1.2"]
    assert setsup("render", *words, "--matches", 3, "--out", tmp_path / "kept").code == 0
    found = setsup("pairs", tmp_path / "kept", "-n", 2, "--json").json
    assert found["matched_by"] == "its stored partners"
    kept = library.open(tmp_path / "kept")
    for pair in found["pairs"]:
        status = kept.fetch(pair["rows"][0], ["status"])["status"]
        assert counted(pair) == np.bincount(status.ravel(), minlength=5).tolist()


def test_help_lists_the_options_of_a_dataset(setsup: Run, rooms: Path) -> None:
    shown = setsup("pairs", rooms, "--help").out
    assert "--overlap" in shown
    assert "shapes3d-procedural" not in shown  # no dataset is the default
    assert "--rooms" in setsup("pairs", "room", "--help").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rooms", "--angle", "5-45"], "--angle requires --overlap LOW-HIGH"),
        (["rooms", "--overlap", "half"], "--overlap must be the ends of a band, such as 5-45, not 'half'"),
        (["rooms", "--overlap", "rooms.overlap:half"], "--overlap must be a file of overlaps and a band"),
        (["rooms", "--overlap", "nothing.overlap:.3-.8"], "nothing.overlap"),
        (["rooms", "--overlap", ".3-.8", "--where", "room > 5"], "selects no rows"),
        (["rooms", "--overlap", ".999-1", "--scene", "room"], "none of the 24 measured pairs has overlap 0.999 to 1"),
        (["rooms", "--overlap", ".8-.3", "--scene", "room"], "--overlap is empty"),
        (["rooms", "--draws", "0"], "--draws must be 1 or more"),
        (["rooms", "--scene", "nowhere"], "nowhere"),
        (["shapes3d-procedural", "--overlap", ".3-.8"], "has no pixel correspondences"),
        (["rom"], "unknown recipe or dataset 'rom'; did you mean 'room'?"),
        (["rooms/nothing"], "rooms/nothing"),
    ],
)
def test_what_is_wrong_is_said(
    setsup: Run, rooms: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(rooms.parent)
    refused(setsup("pairs", *words, "-o", "none.png"), said)
    assert not Path("none.png").exists()


def test_too_many_pairs_to_measure(setsup: Run, rooms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup_cli.dataset_pairs._MOST", 20)
    found = setsup("pairs", rooms, "--overlap", ".3-.8", "--scene", "room")
    refused(found, "has 24 ordered pairs of views, more than the 20 that are measured in memory; run `setsup overlap")
    fewer = setsup("pairs", rooms, "--overlap", ".2-.9", "--scene", "room", "--where", "room == 0", "--json")
    assert len(fewer.json["pairs"]) == 5
