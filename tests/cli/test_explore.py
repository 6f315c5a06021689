"""``setsup explore``: what it opens, exports and refuses."""

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

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
    assert "setsup explore FOLDER/photos.csv" in text


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


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ImageNet-100, and a list of two of its synsets."""
    from tests.true_files import imagenet_100

    folder = tmp_path_factory.mktemp("somewhere")
    imagenet_100.write(folder / "release")
    (folder / "two.txt").write_text("\n".join(sorted(imagenet_100.LIST)[:2]))
    return folder


@pytest.mark.parametrize("shown", ["live", "exported below", "exported elsewhere"])
def test_commands_on_a_page_open_what_it_shows(
    shown: str, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    from setsup.pages.answers import key_of

    monkeypatch.chdir(release if shown == "exported below" else tmp_path)
    given = ["imagenet-100", "--root", str(release / "release"), "--split", "train"]
    given += ["--option", "size=32,32", f"synsets={release / 'two.txt'}"]
    served: list[Any] = []
    monkeypatch.setattr("setsup.pages.serve", lambda page, **_: served.append(page))
    if shown == "live":
        assert main(["explore", *given, "--no-browser"]) == 0
        about = json.loads(served[0].get("").content)
        sampler = about["sources"]["s0"]["first"]
        arguments = {name: json.loads(value) for name, value in sampler["arguments"].items()}
        text = json.dumps({**sampler, "arguments": arguments})
        found = json.loads(served[0].get(key_of({"s": "s0", "q": "draw", "step": "2", "sampler": text})).content)
    else:
        out = tmp_path / "page.html"
        assert main(["explore", *given, "--export", str(out), "--steps", "3"]) == 0
        page = out.read_text()
        assert str(release) not in page
        if shown == "exported elsewhere":
            page = page.replace("FOLDER", str(release))
        answers = [json.loads(one) for one in re.findall(r'setsup\.put\("[0-9a-f]{16}",(.*)\);', page)]
        about = next(one for one in answers if isinstance(one, dict) and "sources" in one)
        found = next(one for one in answers if isinstance(one, dict) and one.get("step") == "2")
    capsys.readouterr()
    rows = [one["rows"] for one in found["sets"]]
    scope: dict[str, Any] = {}
    exec(found["python"], scope)  # noqa: S102 it is what a reader would run
    assert scope["draw"].indices.tolist() == rows
    assert scope["arrays"]["image"].shape[2:] == (32, 32, 3)
    assert len(scope["dataset"].factors) == 8
    assert main([*shlex.split(found["command"])[1:], "--json", "--out", str(tmp_path / "sheet")]) == 0
    assert json.loads(capsys.readouterr().out)["draws"][2]["indices"] == rows
    assert main([*shlex.split(about["command"])[1:], "--no-browser"]) == 0
    assert served[-1].about()["sources"]["d0"]["fingerprint"] == about["sources"]["d0"]["fingerprint"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing-of-this-name"], "no dataset has that name; pass a folder of images"),
        (["shapes3d-procedural", "mnist", "--split", "train"], "require a single source"),
        (["--sampler", "missing.json", "--export", "x.html"], "could not be read"),
        (["--export", "x.html", "--steps", "0"], "steps must be an integer of at least 1"),
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
    # a shell's background job has SIGINT ignored, and so have its children; and one answer takes an hour
    code = "import signal, sys, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "import setsup.pages.server as server\nanswered = server._answered\n"
    code += "server._answered = lambda page, key: time.sleep(3600) if key == 'slow' else answered(page, key)\n"
    code += "from setsup_cli.main import main; sys.exit(main())"
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
            host, port = "127.0.0.1", int(re.search(r":(\d+)/", address)[1])  # type: ignore[index]
            with socket.create_connection((host, port)) as waiting, socket.create_connection((host, port)):
                upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                waiting.sendall(f"GET /get?slow HTTP/1.1\r\nHost: {host}\r\n{upgrade}Cookie: {cookie}\r\n\r\n".encode())
                time.sleep(0.5)
                start = time.monotonic()
                process.send_signal(signal.SIGINT)
                assert process.communicate(timeout=30)[1] == "setsup: stopped\n"
            assert process.returncode == 130
            assert time.monotonic() - start < 5
        finally:
            process.kill()
