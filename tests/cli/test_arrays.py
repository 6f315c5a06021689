"""Files of arrays on the command line: files that numpy wrote."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.refusals import refused

ROWS = 24


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    images = np.random.default_rng(0).integers(0, 256, (ROWS, 8, 6, 3), np.uint8)
    who = np.repeat(["ann", "bob"], ROWS // 2)
    for save, name in ((np.savez, "faces.npz"), (np.savez_compressed, "packed.npz")):
        save(tmp_path / name, image=images, identity=who, light=np.arange(ROWS) % 3)
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "turned.npy", images.transpose(0, 3, 1, 2))
    lines = ["identity,light", *(f"{one},{row % 3}" for row, one in enumerate(who))]
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    return tmp_path


def test_sets_of_an_npz(setsup: Callable[..., Any], folder: Path) -> None:
    for name in ("faces.npz", "packed.npz"):
        found = setsup("sample", name, "--inactive", "identity", "--size", 4, "--out", name[:4])
        assert (found.code, "identity = " in found.out) == (0, True)
        assert (folder / name[:4] / "sheet.png").stat().st_size > 500
    again = setsup("sample", "faces.npz", "--replay", "face/draws.jsonl", "--out", "again")
    assert (again.code, "the same draws as face/draws.jsonl" in again.out) == (0, True)
    found = setsup("info", "faces.npz", "--kinds", "light=nominal", "--json").json
    assert [(one["name"], one["kind"]) for one in found["factors"]] == [("identity", "nominal"), ("light", "nominal")]


def test_arrays_that_are_left_out_are_named_once(setsup: Callable[..., Any], folder: Path) -> None:
    with np.load(folder / "faces.npz") as arrays:
        np.savez(folder / "more.npz", **arrays, boxes=np.zeros((3, 4)))
    found = setsup("info", "more.npz")
    assert found.err.count("boxes (float64 (3, 4))") == 1
    assert "also has" not in found.out
    assert "skipped" not in found.out


def test_a_table_beside_a_npy(setsup: Callable[..., Any], folder: Path) -> None:
    words = ("images.npy", "--option", "factors=labels.csv")
    assert setsup("sample", *words, "--inactive", "identity", "--size", 4, "--out", "sets").code == 0
    again = setsup("sample", "images.npy", "--replay", "sets/draws.jsonl", "--out", "again")
    assert (again.code, "the same draws as sets/draws.jsonl" in again.out) == (0, True)
    assert setsup("sample", *words, "--replay", "sets/draws.jsonl", "--out", "given").code == 0
    turned = setsup("info", "turned.npy", "--option", "factors=labels.csv", "channels_first=true", "--json").json
    assert turned["modalities"][0]["shape"] == [8, 6, 3]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("info", "images.npy"), "but no factors; pass a table with one row per image: --option"),
        (("info", "turned.npy", "--option", "factors=labels.csv"), "pass --option channels_first=true"),
        (("info", "faces.npz", "--option", "size=2,2"), "faces.npz has no option 'size'; its options: factors=PATH"),
        (("info", "faces.npz", "--root", "."), "faces.npz is a file of arrays, which has no root"),
        (("info", "labels.npz"), "labels.npz does not exist; did you mean 'labels.csv' or 'faces.npz'?"),
        (("sample", "faces.npz", "--inactive", "identiy"), "unknown factor 'identiy'; did you mean 'identity'?"),
        (
            ("sample", "faces.npz", "--image", "image"),
            "--image requires a table (--table FILE), but faces.npz is a file",
        ),
    ],
)
def test_mistakes_are_one_sentence(setsup: Callable[..., Any], folder: Path, words: Any, sentence: str) -> None:
    refused(setsup(*words), sentence)


@pytest.mark.long("large or genuine files")
def test_shards_of_an_npz(setsup: Callable[..., Any], folder: Path) -> None:
    assert setsup("shard", "packed.npz", "--out", "shards").code == 0
    assert setsup("info", "shards", "--json").json["samples"] == ROWS
