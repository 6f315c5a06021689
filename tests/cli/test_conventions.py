"""What all subcommands share: short options, errors as JSON, help at any width, colours, advice, and safe output."""

import json
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from cyclopts import Parameter
from PIL import Image

from setsup_cli.commands import cache, sample
from setsup_cli.dispatch import find_module, subcommands
from setsup_cli.main import main
from setsup_cli.output_paths import write_image

Run = Callable[..., Any]
ONE = ["sample", "--inactive", "wall_hue", "--size", 2, "--sets", 1]


def spawned(words: list[str], **environment: str) -> str:
    """What a command prints into pipes."""
    command = [sys.executable, "-m", "setsup_cli.main"]
    code = f"import sys; from setsup_cli.main import main; sys.exit(main({words!r}))"
    done = subprocess.run(
        [command[0], "-c", code], capture_output=True, check=False, timeout=120, env={**os.environ, **environment}
    )
    return (done.stdout + done.stderr).decode()


def at_terminal(words: list[str], folder: Path, **environment: str) -> str:
    """What a command prints at a terminal of its own."""
    ours, its = pty.openpty()
    code = f"import sys; from setsup_cli.main import main; sys.exit(main({words!r}))"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=its, stdout=its, stderr=its, cwd=folder, env={**os.environ, "TERM": "xterm", **environment},
    ) as process:  # fmt: skip
        os.close(its)
        found = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # how Linux says that the terminal is closed
                break
            if not part:
                break
            found += part
    os.close(ours)
    assert process.returncode == 0, found.decode()
    return found.decode()


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["sample"], ["--out -o FOLDER", "--steps -n N"]),
        (["render"], ["--out -o FOLDER", "--rows -n N"]),
        (["pairs"], ["--out -o FILE", "--draws -n N"]),
        (["overlap"], ["--out -o FILE"]),
        (["shard"], ["--out -o URL"]),
        (["index"], ["--out -o FOLDER|URL"]),
        (["embed"], ["--out -o FOLDER", "--rows -n N"]),
        (["report"], ["--out -o FILE"]),
        (["report", "factors"], ["--out -o FILE.png", "--rows -n N"]),
        (["report", "orbits"], ["--out -o FILE.png", "--rows -n N"]),
        (["report", "dense"], ["--out -o FOLDER", "--pairs -n N"]),
        (["train"], ["--out -o FOLDER", "--seed --seeds N ..."]),
    ],
)
def test_outputs_and_counts_have_one_short_name_everywhere(setsup: Run, words: list[str], names: list[str]) -> None:
    shown = " ".join(setsup(*words, "--help").out.replace("│", " ").split())
    for name in [*names, "--quiet -q", "--verbose -v"]:
        assert name in shown


@pytest.mark.parametrize("name", subcommands())
def test_no_short_option_has_two_meanings(name: str) -> None:
    options = fields(find_module(name).Options)
    notes = [note for one in options for note in get_args(one.type)]
    short = [alias for note in notes if isinstance(note, Parameter) for alias in note.alias or ()]
    assert len(short) == len(set(short)), short


def test_short_options_are_the_long_ones(setsup: Run, tmp_path: Path) -> None:
    assert setsup(*ONE, "-n", 3, "-o", "short").code == 0
    assert setsup(*ONE, "--steps", 3, "--out", "long").code == 0
    for name in ("draws.jsonl", "draws.npz", "sheet.png"):
        assert (tmp_path / "short" / name).read_bytes() == (tmp_path / "long" / name).read_bytes()


def test_version_and_help(setsup: Run) -> None:
    assert setsup("-V").out == setsup("--version").out
    assert setsup("help", "sample").out == setsup("sample", "--help").out
    assert setsup("help", "render", "room").out == setsup("render", "room", "--help").out
    assert "did you mean 'sample'?" in setsup("help", "smaple").err


def test_verbose_logs_details(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    monkeypatch.setattr(cache, "run", lambda options: logging.getLogger("setsup.files").debug("looked at 3") or 0)
    assert setsup("cache", "-v").err == "setsup: looked at 3\n"
    assert setsup("cache").err == ""
    assert "mutually exclusive" in setsup("cache", "-q", "-v").err


@pytest.mark.parametrize(
    "words", [["sample"], ["render", "room"], ["report", "factors", "mnist"], ["report", "orbits", "mnist"], ["shard"]]
)
def test_one_seed_where_one_makes_sense(setsup: Run, words: list[str]) -> None:
    found = setsup(*words, "--seed", 1, 2)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("setsup: --seed takes a single seed, but '2' is a second seed; run `setsup ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["sample", "-inactive", "shape"], "unknown option '-inactive'; did you mean '--inactive'? ("),
        (["sample", "-out", "there"], "unknown option '-out'; did you mean '--out'? ("),
        (["sample", "--Inactive", "shape"], "unknown option '--Inactive'; did you mean '--inactive'? ("),
        (["train", "--keep_best", "loss"], None),  # as it always was
        (["sample", "--inactive", "Wall_Hue"], "unknown factor 'Wall_Hue'; did you mean 'wall_hue'? ("),
        (["info", "MNIST"], "no dataset has that name; did you mean 'mnist'? ("),
        (["shard", "--format", "jpg"], "not 'jpg'; did you mean 'jpeg'?"),
        (["shard", "--format", "PNG"], "not 'PNG'; did you mean 'png'?"),
        (["render", "room", "-o", "x", "--renderer", "opengl"], "unknown renderer 'opengl'; did you mean 'gl'?"),
        (["render", "room", "-o", "x", "--on", "Ray"], "--on must be ray, not 'Ray'; did you mean 'ray'?"),
        (["download", "mnist"], "unknown subcommand 'download'; did you mean 'fetch'? ("),
        (["sample", "--inactive", "shape", "--out="], "--out requires a value: `--out FOLDER`"),
        (["sample", "--inactive", "shape", "--out", ""], "--out must be a path, not ''"),
        (["shard", "--out", ""], "--out must be a folder or an address, not ''"),
    ],
)
def test_what_is_nearly_right_gets_a_suggestion(setsup: Run, words: list[str], sentence: str | None) -> None:
    found = setsup(*words)
    if sentence is not None:
        assert (found.code, found.out) == (2, "")
        assert sentence in found.err
    else:
        assert "unknown option" not in found.err


# -- errors as JSON ----------------------------------------------------------------------------------------------------


def refused(setsup: Run, *words: object, code: int = 2) -> dict[str, Any]:
    """The error of a command with ``--json``: one object on one line, and no output."""
    found = setsup(*words, "--json")
    assert (found.code, found.out, found.err.count("\n")) == (code, "", 1)
    told: dict[str, Any] = json.loads(found.err)
    assert list(told) == ["error", "kind", "file", "hint"]
    plain = setsup(*words).err
    assert plain == f"setsup: {told['error']}\n"
    return told


def test_errors_are_objects_under_json(setsup: Run, tmp_path: Path) -> None:
    assert refused(setsup, "sample", "--size", "x") == {
        "error": "--size must be an integer, not 'x'",
        "kind": "SamplerError",
        "file": None,
        "hint": None,
    }
    told = refused(setsup, "sample", "--inactive", "wall_heu")
    assert told["kind"] == "FactorError"
    assert told["hint"] == "did you mean 'wall_hue'? (`setsup info shapes3d-procedural` lists the factors)"
    assert refused(setsup, "shard")["hint"] == "`setsup shard --out URL`"
    assert refused(setsup, "smaple")["hint"].startswith("did you mean 'sample'?")
    told = refused(setsup, "sample", "--replay", "nowhere.jsonl")
    assert (told["kind"], told["file"]) == ("DamagedFile", "nowhere.jsonl")
    assert told["hint"] == "check its path and permissions"
    (tmp_path / "empty.csv").write_text("")
    told = refused(setsup, "sample", "empty.csv", "--inactive", "a")
    assert (told["kind"], told["file"]) == ("DataError", "empty.csv")


@pytest.mark.parametrize(
    ("error", "code", "kind", "hint"),
    [
        (MemoryError(), 2, "MemoryError", "use fewer steps, sets or rows"),
        (KeyboardInterrupt(), 130, "KeyboardInterrupt", None),
        (KeyboardInterrupt("at 3 of 4; run it again"), 130, "KeyboardInterrupt", "run it again"),
    ],
)
def test_interruptions_are_objects_under_json(
    setsup: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, kind: str, hint: str | None
) -> None:
    def fail(options: object) -> int:
        raise error

    monkeypatch.setattr(sample, "run", fail)
    told = refused(setsup, "sample", code=code)
    assert (told["kind"], told["hint"], told["file"]) == (kind, hint, None)


# -- help and colours --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "width", [20, 80, *(pytest.param(width, marks=pytest.mark.long("pages of help")) for width in (40, 60, 200))]
)
def test_help_wraps_at_any_width(monkeypatch: pytest.MonkeyPatch, setsup: Run, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    whole = setsup("--help").out
    assert all(len(line) <= width or " " not in line.strip() for line in whole.splitlines())
    for name in subcommands():
        shown = setsup(name, "--help").out
        assert all(len(line) <= width or " " not in line.strip() for line in shown.splitlines())
        for one in fields(find_module(name).Options):
            if one.kw_only and one.name != "seeds":
                assert f"--{one.name.replace('_', '-')}" in shown.split()
        assert "…" not in shown.replace("https://…", "").replace("PLY …", "")


@pytest.mark.long("subprocesses")
def test_colors_are_for_terminals_and_by_request(tmp_path: Path) -> None:
    clean = dict.fromkeys(("NO_COLOR", "FORCE_COLOR"), "")
    for words in (["cache", "--help"], ["doctor"]):
        assert "\x1b[" in at_terminal(words, tmp_path, **clean)
        assert "\x1b[" not in spawned(words, **clean)
    assert "\x1b[" in spawned(["cache", "--help"], **clean | {"FORCE_COLOR": "1"})
    for asked in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):  # doctor, which looks at all libraries, takes seconds
        assert "\x1b[" not in at_terminal(["cache", "--help"], tmp_path, **clean | asked)


# -- advice ------------------------------------------------------------------------------------------------------------


@pytest.mark.long("subprocesses")
def test_a_result_at_a_terminal_ends_with_a_command_that_works(tmp_path: Path) -> None:
    words = [*map(str, ONE), "-o", "it's here"]
    last = at_terminal(words, tmp_path).splitlines()[-1]
    assert last.startswith("next: python -i -c ")
    command = [sys.executable, *shlex.split(last.removeprefix("next: "))[1:]]
    asked = "print(draw.indices.tolist())"
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=120)
    drawn = np.load(tmp_path / "it's here" / "draws.npz")["indices"][0].tolist()
    assert str(drawn) in done.stdout
    for more in (["-q"], ["--json"]):
        assert "next: " not in at_terminal([*words, *more], tmp_path)
    assert "next: " not in spawned([*words[:-1], str(tmp_path / "piped")])


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize(
    ("words", "follows"),
    [
        (["datasets"], "setsup info shapes3d-procedural"),
        (["info"], "setsup sample shapes3d-procedural --inactive floor_hue"),
        (["info", "cars3d"], "setsup fetch cars3d"),
        (["render"], "setsup render shapes3d --rows 500 --out shapes"),
        pytest.param(["doctor"], "setsup sample --inactive wall_hue", marks=pytest.mark.long("subprocesses")),
    ],
)
def test_what_to_do_next(setsup: Run, words: list[str], follows: str) -> None:
    assert setsup(*words).err.splitlines()[-1] == f"next: {follows}"
    assert "next: " not in setsup(*words, "--quiet").err
    assert "next: " not in setsup(*words, "--json").err


@pytest.mark.usefixtures("watched")
def test_what_is_advised_for_a_table_can_be_run(setsup: Run, photos: Path) -> None:
    for words in ([photos], ["--table", photos], [photos, "--kinds", "age=continuous", "--image", "path"]):
        advised = setsup("info", *words).err.splitlines()[-1].removeprefix("next: ")
        assert main(shlex.split(advised)[1:]) == 0
        assert "--inactive subject" in advised


# -- safe output -------------------------------------------------------------------------------------------------------


def test_other_draws_are_not_overwritten(setsup: Run, tmp_path: Path) -> None:
    def files(folder: str) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted((tmp_path / folder).iterdir())}

    def folders() -> list[str]:
        return sorted(path.name for path in tmp_path.iterdir())

    assert setsup(*ONE).code == 0
    first = files("setsup-samples")
    again = setsup(*ONE)
    assert (again.code, folders(), files("setsup-samples")) == (0, ["setsup-samples"], first)
    assert "another result" not in again.out + again.err
    other = setsup(*ONE, "--seed", 1)
    assert "setsup-samples contains another result; wrote setsup-samples-2 instead (use --force" in other.out
    assert other.out.splitlines()[-1] == "setsup-samples-2/sheet.png"
    assert files("setsup-samples") == first
    assert setsup(*ONE, "--seed", 1, "--json").json["files"]["sheet"] == "setsup-samples-2/sheet.png"
    assert setsup(*ONE, "--seed", 2).out.splitlines()[-1] == "setsup-samples-3/sheet.png"
    assert setsup(*ONE, "--seed", 1, "--force").code == 0
    assert files("setsup-samples") == files("setsup-samples-2") != first
    (tmp_path / "setsup-samples" / "draws.npz").write_bytes(b"of another program")
    (tmp_path / "setsup-samples" / "draws.jsonl").unlink()
    assert setsup(*ONE, "--seed", 1).out.splitlines()[-1] == "setsup-samples-2/sheet.png"
    assert folders() == ["setsup-samples", "setsup-samples-2", "setsup-samples-3"]


def test_here_is_not_numbered(setsup: Run, tmp_path: Path) -> None:
    assert setsup(*ONE, "-o", ".").code == 0
    found = setsup(*ONE, "-o", ".", "--seed", 1)
    assert (found.code, found.out) == (2, "")
    assert ". contains another result; choose a new folder, or use --force to replace it" in found.err
    assert setsup(*ONE, "-o", ".", "--seed", 1, "--force").code == 0


def test_results_written_at_once_get_places_of_their_own(tmp_path: Path) -> None:
    images = [Image.new("RGB", (300, 300), (shade, 0, 0)) for shade in range(8)]
    with ThreadPoolExecutor(8) as pool:
        places = list(pool.map(lambda image: write_image(image, tmp_path / "pairs.png", force=False), images))
    assert len(set(places)) == 8
    for image, place in zip(images, places, strict=True):
        assert Image.open(place).tobytes() == image.tobytes()


def test_an_image_is_not_overwritten_by_another(tmp_path: Path) -> None:
    def color(path: Path) -> object:
        with Image.open(path) as image:
            return image.getpixel((0, 0))

    red, blue = (Image.new("RGB", (3, 2), name) for name in ("red", "blue"))
    asked = tmp_path / "a.b.png"
    assert write_image(red, asked, force=False) == write_image(red, asked, force=False) == asked
    assert write_image(blue, asked, force=False) == tmp_path / "a.b-2.png"
    assert write_image(blue, asked, force=False) == tmp_path / "a.b-2.png"
    assert color(asked) == (255, 0, 0)
    assert write_image(blue, asked, force=True) == asked
    assert color(asked) == (0, 0, 255)


def test_sheets_have_a_format_a_heading_and_tiles(setsup: Run, tmp_path: Path) -> None:
    words = [*ONE, "-o", "one", "--title", "Walls & <hues>"]
    assert setsup(*words, "--format", "svg").code == 0
    assert "Walls &amp; &lt;hues&gt;" in (tmp_path / "one" / "sheet.svg").read_text()
    assert setsup(*words, "--format", "pdf").code == 0
    assert (tmp_path / "one" / "sheet.pdf").read_bytes().startswith(b"%PDF")
    large, small = (setsup(*ONE, "--tile", side, "--json").json["files"]["sheet"] for side in (200, 20))
    heights = []
    for path in (large, small):
        with Image.open(tmp_path / path) as sheet:
            heights.append(sheet.height)
    assert heights[0] > heights[1] + 100
    for side in (7, 1025, 0, -3):
        assert f"--tile must be 8 to 1,024, not {side}" in setsup(*ONE, "--tile", side).err
