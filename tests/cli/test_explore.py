"""``setsup explore``: what it opens, exports and refuses."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import setsup
from setsup_cli.main import main

pytest.importorskip("PIL", reason="Pillow is not installed")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A table of six small images in a folder with a telling name."""
    import numpy as np
    from PIL import Image

    folder = tmp_path / "home-of-someone"
    folder.mkdir()
    lines = ["path,subject,pose"]
    for number in range(6):
        Image.fromarray(np.full((8, 8, 3), 40 * number, np.uint8)).save(folder / f"{number}.png")
        lines.append(f"{number}.png,{'ann' if number < 4 else 'bob'},{number % 2}")
    (folder / "photos.csv").write_text("\n".join(lines))
    return folder / "photos.csv"


def test_it_exports_the_users_own_images(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert main(["explore", str(photos), "--export", str(out), "--steps", "2"]) == 0
    assert re.fullmatch(rf"{re.escape(str(out))}: 0\.\d MB\n", capsys.readouterr().out)
    text = out.read_text()
    assert "data:image/" in text
    assert "home-of-someone" not in text
    assert "setsup explore photos.csv" in text


def test_it_begins_with_a_sampler_of_a_file(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = setsup.open(photos).factors
    sampler = setsup.SetSampler(table, ["subject"], size=2, seed=77)
    (tmp_path / "sampler.json").write_text(json.dumps(sampler.to_dict()))
    out = tmp_path / "page"
    words = ["explore", str(photos), "--export", str(out), "--sampler", str(tmp_path / "sampler.json"), "--json"]
    assert main([*words, "--rows", "6", "--steps", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["page"] == str(out / "index.html")
    assert found["bytes"] == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert any('"seed":"77"' in path.read_text() for path in (out / "data").glob("*.js"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing-of-this-name"], "there is no dataset"),
        (["shapes3d-procedural", "mnist", "--split", "train"], "go with one source"),
        (["--sampler", "missing.json", "--export", "x.html"], "cannot be read"),
        (["--export", "x.html", "--steps", "0"], "steps must be an integer from 1"),
        (["--port", "70000"], "port must be an integer"),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explore", *words]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.long("a server of its own")
def test_it_serves_until_it_is_stopped() -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    code = "import sys; from setsup_cli.main import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "explore", "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert answer.status == 200
                cookie = answer.headers["set-cookie"].partition(";")[0]
            asked = urllib.request.Request(
                f"{address.partition('?')[0]}get?q=counts&s=d0&where=", headers={"cookie": cookie}
            )
            with urllib.request.urlopen(asked, timeout=60) as answer:
                assert json.load(answer)["rows"] == 480_000
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(address.partition("?")[0], timeout=60)
        finally:
            process.terminate()
            process.wait(30)
