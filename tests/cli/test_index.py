import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import webdataset
from PIL import Image

import setsup.shards as shards
from tests.cli.refusals import refused

Run = Callable[..., Any]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Twenty-four samples in two tars that webdataset wrote."""
    folder = tmp_path / "photos"
    folder.mkdir()
    with webdataset.ShardWriter(str(folder / "data-%06d.tar"), maxcount=12, verbose=0) as sink:
        for row in range(24):
            pixels = np.full((8, 10, 3), 10 * row, np.uint8)
            told = {"subject": ["Ada", "Mei", "Łucja"][row % 3], "angle": row / 3, "boxes": [[row]]}
            sink.write({"__key__": f"{row:04}", "png": Image.fromarray(pixels), "json": told, "txt": "a photo"})
    return folder


@pytest.mark.usefixtures("watched")
def test_words(setsup: Run, photos: Path) -> None:
    found = setsup("index", "photos")
    assert (found.code, found.err) == (0, "next: setsup sample photos --inactive subject\n")
    lines = found.out.splitlines()
    assert lines[0].startswith("photos: 24 samples in 2 tars, ")
    assert lines[1:3] == ["factors: subject 3, angle ~", "modalities: image (8 × 10 × 3 uint8, .png)"]
    assert lines[3].startswith("omitted: boxes: it contains lists, such as [[0]] of 0000 in ")
    assert lines[4:] == ["not read: .txt", "setsup.open_shards('photos')"]
    assert sorted(path.name for path in photos.iterdir())[2:] == ["index.parquet", "shards.json"]


def test_what_it_says_to_do_next_works(setsup: Run, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = setsup("index", photos, "--out", "elsewhere", "--json").json
    assert about["samples"] == 24
    assert about["factors"] == {"subject": 3, "angle": None}
    assert about["modalities"] == {"image": {"extension": "png", "shape": [8, 10, 3], "dtype": "uint8"}}
    assert about["not_read"] == ["txt"]
    assert list(about["left_out"]) == ["boxes"]
    assert not (photos / "shards.json").exists()
    dataset = eval(about["open"], {"setsup": shards})  # noqa: S307 - what the command printed just now
    assert dataset.fetch([23])["image"][0, 0, 0].tolist() == [230] * 3
    words = about["next"].split()
    assert words[:2] == ["setsup", "sample"]
    assert setsup(*words[1:]).code == 0


def test_what_is_refused_is_one_sentence(setsup: Run, photos: Path) -> None:
    refused(setsup("index", "nothing"), "nothing", "no tars")
    refused(setsup("index", "photos/data-{1..x}.tar"), "braces")
    refused(setsup("index", "photos/data-{000000..000002}.tar", "--out", "new"), "data-000002.tar does not exist")
    assert not Path("new").exists()
    with tarfile.open(photos / "data-000002.tar", "w") as tar:
        member = tarfile.TarInfo("bad.json")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"{a}"))
    refused(setsup("index", "photos"), "data-000002.tar", "bad", "damaged")
    assert not (photos / "shards.json").exists()
    content = (photos / "data-000001.tar").read_bytes()
    (photos / "data-000002.tar").write_bytes(content[: len(content) // 2 - 1])
    refused(setsup("index", "photos"), "data-000002.tar", "truncated")


def test_help_names_what_is_read(setsup: Run) -> None:
    text = " ".join(setsup("index", "--help").out.replace("│", " ").split())
    for word in ("URL", "--out -o FOLDER|URL", "--json", "KEY.json", "KEY.cls", "data-{000000..000099}.tar"):
        assert word in text


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from setsup_cli.main import main; main(['index', '--help']);"
        "print([name for name in ('numpy', 'pyarrow', 'torch', 'fsspec') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_numbers_are_those_of_the_catalogue(setsup: Run, photos: Path) -> None:
    about = setsup("index", photos, "--json").json
    told = json.loads((photos / "shards.json").read_text("utf-8"))
    assert about["bytes"] == sum(path.stat().st_size for path in photos.glob("*.tar"))
    assert [name for name, *_ in told["shards"]] == ["data-000000.tar", "data-000001.tar"]
    assert about["tars"] == 2
