"""``setsup overlap``: what it prints and refuses, and that it writes what the function measures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setsup import open as open_source
from setsup.correspondence import overlap, write_pairs
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import render
from setsup.samplers.overlap.table import OverlapTable
from setsup.scenes.recipes import Room
from tests.cli.refusals import refused
from tests.track_models import Model

Run = Callable[..., Any]
SENTENCE = (
    "rooms.overlap: 24 of 24 pairs of 8 views of 2 scenes measured from depth; {} overlap by 0.3 to 0.8, 0 unknown; "
    "0 excluded, 0 not tried\n"
)


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rooms, four views each."""
    pytest.importorskip("embreex")
    folder = tmp_path_factory.mktemp("rendered") / "rooms"
    render(RenderedDataset(Room(rooms=2, pairs=2, size=(48, 64)), renderer="embree"), folder, ["depth", "image"])
    return folder


@pytest.mark.long("renderings")
@pytest.mark.usefixtures("watched")
def test_one_line_and_a_next_step(setsup: Run, rooms: Path) -> None:
    found = setsup("overlap", rooms, "--scene", "room", "--tolerance", 0.02, "-o", "rooms.overlap")
    assert found.code == 0
    table = OverlapTable.open("rooms.overlap")
    assert table.digest == overlap(open_source(rooms), scene="room", tolerance=0.02).digest
    band = int(((table.overlap >= 0.3) & (table.overlap <= 0.8)).sum())
    assert band > 0
    assert found.out == SENTENCE.format(band)
    assert found.err.endswith(f"next: setsup sample {rooms} --overlap rooms.overlap:.3-.8\n")
    before = Path("rooms.overlap").read_bytes()
    again = setsup("overlap", rooms, "--scene", "room", "--tolerance", 0.02, "-o", "rooms.overlap")
    assert again.out == found.out
    assert Path("rooms.overlap").read_bytes() == before
    assert [one.name for one in Path().iterdir()] == ["rooms.overlap"]


def test_json_and_options(setsup: Run, rooms: Path) -> None:
    words = ["--where", "room == 0", "--pixels", 64, "--seed", 3, "--candidates", 5, "--absolute", 0.01]
    found = setsup("overlap", rooms, "--scene", "room", *words, "--out", "a.overlap", "--json")
    dataset = open_source(rooms)
    table = overlap(dataset, scene="room", rows=dataset.factors.rows("room == 0"), pixels=64, seed=3, candidates=5,
                    absolute=0.01)  # fmt: skip
    about = found.json
    assert about["digest"] == table.digest == OverlapTable.open("a.overlap").digest
    assert about["pairs"] == {"possible": 12, "excluded": 0, "measured": 12, "not_tried": 0}
    assert about["settings"] == {
        "scene": ["room"], "pixels": 64, "candidates": 5, "seed": 3, "tolerance": 0.01, "absolute": 0.01
    }  # fmt: skip
    assert (about["views"], about["scenes"], about["listed"], about["source"]) == (4, 1, 12, "depth")
    assert about["unknown"] == np.isnan(table.overlap).sum()


def test_pairs_in_the_layout_of_another_project(setsup: Run, rooms: Path) -> None:
    """The same files as the function writes; a table that is there is not measured again."""
    words = ["--scene", "room", "-o", "rooms.overlap", "--overlap", ".2-.9"]
    more = ["--export", "pairs", "--layout", "loftr", "--angle", "1-60", "--scale", ".5-2", "--direction", "both"]
    found = setsup("overlap", rooms, *words, *more)
    assert found.code == 0, found.err
    written = write_pairs(
        open_source(rooms), OverlapTable.open("rooms.overlap"), "expected", "loftr", overlap=(0.2, 0.9), angle=(1, 60),
        scale=(0.5, 2), direction="both",
    )  # fmt: skip
    assert found.out.splitlines()[1] == (
        f"pairs: {written.pairs} pairs of {written.views} views of 2 scenes, in the layout loftr"
    )
    names = sorted(path.relative_to("pairs") for path in Path("pairs").rglob("*") if path.is_file())
    assert len(names) > 10
    for name in names:
        assert Path("pairs", name).read_bytes() == Path("expected", name).read_bytes()
    again = setsup("overlap", rooms, *words, "--export", "list", "--layout", "hloc", "--json")
    assert again.json["band"] == [0.2, 0.9]
    assert again.json["next"].endswith("--overlap rooms.overlap:.2-.9")
    assert again.json["written"]["layout"] == "hloc"
    assert again.json["written"]["pairs"] == len(Path("list/pairs.txt").read_text().splitlines()) > 0
    refused(setsup("overlap", rooms, *words, *more), "pairs is not empty; pass a new folder")
    narrow = ["--scene", "room", "-o", "rooms.overlap", "--overlap", ".99999-1", "--export", "x", "--layout", "hloc"]
    refused(setsup("overlap", rooms, *narrow), "is in the bands; choose wider ones, such as --overlap 0-1")


def test_captures_need_no_option(setsup: Run, tmp_path: Path) -> None:
    Model(tmp_path / "cloud")
    found = setsup("overlap", "cloud", "--out", "cloud.overlap")
    assert found.code == 0, found.err
    assert found.out.startswith("cloud.overlap: 72 of 72 pairs of 9 views of 1 scene measured from tracks; ")
    few = setsup("overlap", "cloud", "--option", "size=48,40", "--out", "few.overlap", "--json").json
    assert few["next"] == "setsup sample cloud --option size=48,40 --overlap few.overlap:.3-.8"


@pytest.mark.long("worker processes")
def test_processes_do_not_matter(setsup: Run, rooms: Path) -> None:
    for count in (1, 2):
        words = ["--scene", "room", "--processes", count, "--out", f"{count}.overlap"]
        assert setsup("overlap", rooms, *words).code == 0
    assert Path("1.overlap").read_bytes() == Path("2.overlap").read_bytes()


def test_an_interruption_says_how_to_resume(setsup: Run, rooms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*item: object) -> None:
        raise KeyboardInterrupt

    words = ["overlap", rooms, "--scene", "room", "--out", "rooms.overlap"]
    with monkeypatch.context() as context:
        context.setattr("setsup.correspondence.overlaps.work._keep", stop)
        stopped = setsup(*words)
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err.endswith("setsup: stopped while measuring; run the same command to resume\n")
    assert not Path("rooms.overlap").exists()
    resumed = setsup(*words)
    assert (resumed.code, resumed.out.splitlines()[0]) == (0, "resuming from rooms.overlap.units")


@pytest.mark.parametrize(
    ("words", "sentences"),
    [
        ([], ["--out is required: `setsup overlap", " --out FILE`"]),
        (["--out", "x", "--where", "room == 0 and room == 1"], ["--where 'room == 0 and room == 1' selects no rows"]),
        (["--out", "x", "--pixels", 15], ["--pixels must be", "15"]),
        (["--out", "x", "--candidates", 0], ["--candidates must be", "0"]),
        (["--out", "x", "--tolerance", "nan"], ["--tolerance must be"]),
        (["--out", "x", "--processes", 0], ["--processes must be"]),
        (["--out", "x", "--seed", -1], ["seed"]),
        (["--out", "x", "--source", "tracks"], ["has no tracks of feature points"]),
        (["--out", "x", "--source", "rays"], ["--source must be one of scenes, depth, tracks"]),
        (["--out", "x", "--scene", "rooom"], ["did you mean 'room'?"]),
        (["--out", "x", "--scene", "room", "side", "pair"], ["choose fewer factors with --scene"]),
        (["--out", "x", "--ray-gpus", 1], ["--ray-address and --ray-gpus require --on ray"]),
        (["--out", "/proc/x"], ["/proc/x"]),
        (["--out", "x", "--overlap", ".8-.3"], ["--overlap is empty, because 0.8 is above 0.3"]),
        (["--out", "x", "--overlap", "half"], ["--overlap must be the ends of a band"]),
        (["--out", "x", "--overlap", "nan-1"], ["the lower end of --overlap must be a finite number"]),
        (["--out", "x", "--export", "y"], ["--export requires --layout"]),
        (["--out", "x", "--layout", "loftr", "--angle", "1-9"], ["--layout and --angle require --export FOLDER"]),
        (["--out", "x", "--direction", "both"], ["--direction requires --export FOLDER"]),
        (["--out", "x", "--export", "y", "--layout", "lofter"], ["did you mean 'loftr'?"]),
    ],
)
def test_refusals(setsup: Run, rooms: Path, words: list[object], sentences: list[str]) -> None:
    refused(setsup("overlap", rooms, *words), *sentences)
    assert not Path("x").exists()
    assert not Path("y").exists()


def test_a_dataset_without_depth(setsup: Run, photos: Path) -> None:
    refused(
        setsup("overlap", photos, "--scene", "subject", "--out", "x"), "lacks the modalities depth, intrinsics, pose"
    )
    refused(setsup("overlap", photos, "--out", "x"), "--scene is required for", "its factors are subject, light")
