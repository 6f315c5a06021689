"""``setsup report dense`` on photographs with homographies and on videos with tracks of points."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.refusals import refused
from tests.true_files import hpatches, tapvid_davis

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")
pytest.importorskip("cv2", reason="OpenCV is not installed")

Run = Callable[..., Any]

RELEASES = {"hpatches": hpatches, "tapvid-davis": tapvid_davis}


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name, release in RELEASES.items():
        found[name] = tmp_path_factory.mktemp(name)
        release.write(found[name])
    return found


@pytest.fixture(scope="module")
def patches(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of an encoder: mean colours of 12 × 16 cells."""
    file = tmp_path_factory.mktemp("encoder") / "patches.py"
    file.write_text("import torch\n\ndef build():\n    return torch.nn.AdaptiveAvgPool2d((12, 16))\n")
    return f"{file}:build"


@pytest.mark.long("networks")
@pytest.mark.parametrize(
    ("name", "words", "lines", "kind", "count"),
    [
        (
            "hpatches",
            ["--split", "usual", "--pairs", 3],
            ["3 (drawn by --seed) of 10 pairs of images", "every 24 pixels", "MMA: 3 px, by change"],
            "planes",
            {"pairs": 3},
        ),
        (
            "tapvid-davis",
            ["--pairs", 2],
            ["2 (drawn by --seed) of 3 videos", "every 24 pixels", "queries first: AJ, by video"],
            "tracks",
            {"videos": 2},
        ),
    ],
)
def test_encoders_and_their_files(
    setsup: Run,
    roots: dict[str, Path],
    patches: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    words: list[object],
    lines: list[str],
    kind: str,
    count: dict[str, int],
) -> None:
    out = tmp_path / "out"
    command = ("report", "dense", name, "--root", roots[name], "--out", out, *words, "--encoder", patches)
    found = setsup(*command, "--step", 24, "--encoder", "colors")
    assert found.code == 0, found.err
    assert all(line in found.out for line in lines)
    files = {path.name for path in out.iterdir() if path.is_file()}
    assert files >= {"index.html", "results.csv", "results.json", "sheet-colors.png"}
    plain = json.loads((out / "results.json").read_text())
    assert plain.items() >= {"benchmark": kind, "dataset": name, **count}.items()
    monkeypatch.setattr("setsup.experiments.evaluations.homography_matching.measure", None)
    monkeypatch.setattr("setsup.experiments.evaluations.point_tracking.measure", None)
    again = setsup(*command, "--step", 24, "--force", "--json")  # without being measured again
    assert again.code == 0, again.err
    assert again.json["encoders"] == {patches: plain["encoders"][patches]}
    with pytest.raises(TypeError, match="not callable"):
        setsup(*command, "--step", 32, "--force")


@pytest.mark.long("networks")
def test_patches(setsup: Run, roots: dict[str, Path], patches: str) -> None:
    for name, value in (("hpatches", "matches: per pair"), ("tapvid-davis", "queries strided: OA")):
        found = {}
        for features in ("pixels", "grid"):
            one = setsup(
                *("report", "dense", name, "--root", roots[name], "--encoder", patches, "--features", features),
                *("--pairs", 1, "--step", 16, "--json"),
            )
            assert one.code == 0, one.err
            (measured,) = one.json["encoders"].values()
            found[features] = {each["value"]: each["number"] for each in measured["values"] if each["group"] == "all"}
        assert found["pixels"] != found["grid"]
        assert all(found[features][value] > 0 for features in found)
        if name == "hpatches":
            assert found["grid"][value] <= 12 * 16


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        ("hpatches", ["--queries", 5], "--queries does not apply to hpatches, which is measured by its own protocol"),
        ("hpatches", ["--where", "view == 1"], "no pair of views of a scene of hpatches is left"),
        ("tapvid-davis", ["--where", "frame == 1"], "no video of two frames or more of tapvid-davis is left"),
        ("tapvid-davis", ["--step", 0], "--step must be 1 or more, not 0"),
    ],
)
def test_mistakes_are_one_sentence(
    setsup: Run, roots: dict[str, Path], name: str, words: list[object], sentence: str
) -> None:
    refused(setsup("report", "dense", name, "--root", roots[name], "--encoder", "colors", *words), sentence)


def test_pairs_of_points_are_drawn(setsup: Run, roots: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "pairs.png"
    words = ("--draws", 6, "--out", out, "--json")
    found = setsup("pairs", "tapvid-davis", "--root", roots["tapvid-davis"], *words)
    assert found.code == 0, found.err
    assert all(pair["visible"] > 0 for pair in found.json["pairs"])
    assert sum(pair["occluded"] for pair in found.json["pairs"]) > 0
    assert out.stat().st_size > 5000
