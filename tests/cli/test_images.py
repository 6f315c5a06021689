"""Folders and archives of images on the command line: ``--pattern``, ``--relist``, ``--kinds`` and replays."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import setsup as library
from tests.cli.refusals import refused

Run = Callable[..., Any]
PATTERN = "{subject}/{light}_{yaw:d}.jpg"


@pytest.fixture
def faces(tmp_path: Path) -> Path:
    """2 subjects × 2 lights × 3 yaws, in folders, a zip and a tar."""
    for subject in ("ann", "bob"):
        (tmp_path / "faces" / subject).mkdir(parents=True)
        for light in ("left", "right"):
            for yaw in (-30, 0, 30):
                Image.new("L", (8, 6), 100 + yaw).save(tmp_path / "faces" / subject / f"{light}_{yaw}.JPG")
    shutil.make_archive(str(tmp_path / "faces"), "zip", tmp_path, "faces")
    shutil.make_archive(str(tmp_path / "faces"), "tar", tmp_path / "faces")
    return tmp_path / "faces"


@pytest.mark.long("subprocesses")
@pytest.mark.parametrize("source", ["faces", "faces.zip", "faces.tar"])
def test_every_subcommand_takes_them(setsup: Run, faces: Path, source: str) -> None:
    card = setsup("info", source, "--pattern", PATTERN, "--json").json
    assert [(one["name"], one["kind"], one["levels"]) for one in card["factors"]] == [
        ("subject", "nominal", ["ann", "bob"]),
        ("light", "nominal", ["left", "right"]),
        ("yaw", "ordinal", [-30, 0, 30]),
    ]
    drawn = setsup("sample", source, "--inactive", "folder", "--size", 2, "--json").json
    assert {one for step in drawn["draws"] for one in step["inactive"]} == {"folder"}
    assert setsup("bench", source, "--pattern", PATTERN, "--inactive", "yaw", "--json").code == 0
    made = setsup("shard", source, "--pattern", "{subject}/...", "--out", "shards")
    assert (made.code, library.open("shards").factors.names) == (0, ("subject",))


def test_draws_are_repeated_by_their_file(setsup: Run, faces: Path) -> None:
    words = ("--inactive", "yaw", "--size", 3, "--seed", 5, "--json")
    first = setsup("sample", "faces", "--pattern", PATTERN, "--kinds", "yaw=cyclic", "--relist", *words).json
    recorded = Path("setsup-samples/draws.jsonl")
    assert json.loads(recorded.read_text().split("\n")[0])["options"] == {"pattern": PATTERN}
    for number, source in enumerate(("faces", "faces.zip", "faces.tar")):
        again = setsup("sample", source, "--replay", recorded, "--relist", "--out", f"again-{number}", "--json").json
        assert (again["draws"], again["fingerprint"]) == (first["draws"], first["fingerprint"])
    # the file says where the images lie, and the repetition can be repeated
    assert setsup("sample", "--replay", recorded, "--out", "again-3", "--json").json["draws"] == first["draws"]
    assert setsup("sample", "faces", "--replay", "again-0/draws.jsonl", "--json").json["draws"] == first["draws"]
    refused = setsup("sample", "faces", "--replay", recorded, "--pattern", PATTERN)
    assert (refused.code, refused.out) == (2, "")
    assert "--replay reads all settings of the draws from its file; omit --pattern" in refused.err
    (faces / "ann" / "left_30.JPG").unlink()
    changed = setsup("sample", "faces", "--replay", recorded)
    assert "use the original files" in changed.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["faces", "--pattern", "{a/..."], "a { has no matching closing brace"),
        (
            ["faces", "--pattern", "{a}/x"],
            "none of the 12 images of faces matches the pattern '{a}/x'; the first image is ann/",
        ),
        (
            ["photos.csv", "--pattern", "{a}"],
            "--pattern requires a folder or archive of images, but photos.csv is a table",
        ),
        (["mnist", "--relist"], "--relist requires a folder or archive of images, but mnist is a benchmark"),
        (["faces", "--image", "path"], "--image requires a table (--table FILE), but faces is a folder or archive of"),
        (
            ["faces", "--pattern", "{a}/...", "--option", "pattern={b}/..."],
            "--pattern and --option pattern=… set the same option",
        ),
        (["faces", "--option", "patern={b}/..."], "has no option 'patern'; its options: pattern=TEXT"),
    ],
)
def test_wrong_options_are_one_sentence(setsup: Run, faces: Path, words: list[str], said: str) -> None:
    Path("photos.csv").write_text("image,a\nfaces/ann/left_0.JPG,1\n")
    refused(setsup("sample", *words, "--inactive", "a"), said)


def test_a_pattern_is_an_option_where_there_is_no_other_way(setsup: Run, faces: Path) -> None:
    listed = setsup("info", "faces", "--option", "pattern={subject}/...", "--json").json
    assert [one["name"] for one in listed["factors"]] == ["subject"]
