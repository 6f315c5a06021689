"""Presets of the orbit papers on toys, faces and videos, from files of the true formats to the report of the preset."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.experiments import find_preset
from setsup_papers.orbits.presets import PRESETS
from tests.true_files import smallnorb

Run = Callable[..., Any]

ENDS = ("oj", "ot", "oe", "ex", "st")
KINDS = ("norb", "multi-pie", "video")


def test_each_method_has_a_preset_of_the_papers_size_and_a_small_one() -> None:
    expected = {f"orbits/{kind}-{end}{small}" for kind in KINDS for end in ENDS for small in ("", "-small")}
    found = [preset for preset in PRESETS if preset.name.startswith(tuple(f"orbits/{kind}-" for kind in KINDS))]
    assert {preset.name for preset in found} == expected
    assert len(found) == len(expected)
    for preset in found:
        assert find_preset(preset.name) == preset


@pytest.mark.parametrize(
    ("kind", "images", "side", "channels"),
    [
        ("norb", 256, 96, (32, 64, 128, 256)),
        ("multi-pie", 72, 128, (64, 128, 256, 512)),
        ("video", 128, 96, (64, 128, 256, 512)),
    ],
)
def test_batches_and_networks_have_the_papers_sizes(kind: str, images: int, side: int, channels: Any) -> None:
    for end in ENDS:
        preset = find_preset(f"orbits/{kind}-{end}")
        sampler: Any = preset.sampler
        method: Any = preset.method
        assert sampler.sets * sampler.size == images
        assert sampler.size == (8 if end in ("oj", "ot", "st") else 1)
        assert method.channels == channels
        assert method.image[1:] == (side, side)
        small: Any = find_preset(f"{preset.name}-small")
        assert [2 * width for width in small.method.channels] == list(channels)
        words = f"images of {small.method.image[1]} x {small.method.image[2]}"
        assert (words in small.shows) == (small.method.image != method.image)


def trained(setsup: Run, name: str, *words: object, root: Path | None = None) -> dict[str, Any]:
    """Train, measure and report, and give what was measured."""
    where = [] if root is None else ["--root", root]
    for command in (
        ["train", name, "--smoke", "--out", "runs/r", "--accelerator", "cpu", *where, *words],
        ["eval", "runs/r/seed-0", "--device", "cpu", *where],
    ):
        found = setsup(*command)
        assert found.code == 0, found.err
    report = setsup("report", name, "runs")
    assert report.code == 0, report.err
    assert name in report.out
    measured: dict[str, Any] = json.loads(Path("runs/r/seed-0/evaluation.json").read_text(encoding="utf-8"))
    return measured


def numbers(found: Any) -> Iterator[tuple[str, float]]:
    """All numbers in the results, by their keys."""
    for key, value in found.items():
        if isinstance(value, dict):
            yield from numbers(value)
        elif isinstance(value, float):
            yield key, value


@pytest.mark.long("trainings")
@pytest.mark.parametrize("end", ["oj", "st"])
def test_toys(setsup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setattr(smallnorb, "AZIMUTHS", (0, 16))  # one of them canonical
    monkeypatch.setattr(smallnorb, "LIGHTINGS", (0,))
    smallnorb.write(tmp_path / "smallnorb", end="")
    found = dict(numbers(trained(setsup, f"orbits/norb-{end}-small", root=tmp_path / "smallnorb")))
    assert 0 <= found["any member"] <= 1


@pytest.mark.smoke
@pytest.mark.parametrize("end", ["oe", "ex"])
def test_made_up_faces(setsup: Run, tmp_path: Path, end: str) -> None:
    pytest.importorskip("embreex")
    from setsup.datasets.benchmarks.multi_pie import write_substitute

    tree = write_substitute(tmp_path / "tree", 3, cameras=["19_0", "05_1", "13_0"], shots=[0, 7])
    found = dict(numbers(trained(setsup, f"orbits/multi-pie-{end}-small", root=tree)))
    assert 0 <= found["AUC"] <= 1
    assert 0 <= found["top-1"] <= 1


@pytest.mark.long("trainings")
def test_videos_of_people(setsup: Run, tmp_path: Path) -> None:
    pytest.importorskip("av")
    from tests.people_in_videos import write

    folder, persons = write(tmp_path / "made", people=3, tracks=4, frames=6)
    orbits = list(csv.DictReader((folder / "orbits.csv").read_text(encoding="utf-8").splitlines()))
    tracks = sorted(persons, key=lambda track: (persons[track], track))  # four of each person
    table = folder / "people.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["file", "track", "canonical", "person", "part"])
        for row in orbits:
            part = "train" if tracks.index(row["track"]) % 4 < 2 else "test"
            out.writerow([row["file"], row["track"], row["canonical"], persons[row["track"]], part])
    words: list[object] = ["--data.name", table, "--data.where", "part == 'train'"]
    words += ["--datasets.people.name", table, "--datasets.people.where", "part == 'test'"]
    found = dict(numbers(trained(setsup, "orbits/video-ot-small", *words)))
    assert 0 <= found["2 labels"] <= 1


@pytest.mark.long("trainings")
def test_videos_without_persons_are_trained_on_and_not_measured(setsup: Run, tmp_path: Path) -> None:
    pytest.importorskip("av")
    from tests.people_in_videos import write

    folder, _ = write(tmp_path / "made", people=2, tracks=2, frames=4)
    words = ["orbits/video-oj-small", "--smoke", "--out", "runs/r", "--accelerator", "cpu", "--root", folder]
    assert setsup("train", *words).code == 0
    found = setsup("eval", "runs/r/seed-0", "--root", folder)
    assert found.code != 0
    assert "person" in found.err
