"""What the pages and examples say must run as it stands, with the output that stands below it."""

import json
import re
import runpy
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from setsup.experiments import find_preset, load_trained, presets, train
from setsup.experiments.configs import build_method
from setsup.files import load_manifest, manifest_names
from setsup_cli.dispatch import subcommands
from setsup_cli.main import main

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
# test_first_hour.py runs the page that begins with an empty folder
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name != "first-hour.md")
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
OWN = ROOT / "examples" / "a_method_of_your_own.py"
TRIPLETS = ROOT / "tests" / "experiments" / "sketches" / "orbit_triplets.py"
PLAN = ROOT / "examples" / "plan_shards.py"  # tests/docs/test_planning.py runs it
END = "\x1e"
LONG = pytest.mark.long("documented pages and examples")

SHORTER = {
    "--rows 500": "--rows 8",
    "pairs room ": "pairs room --draws 1 ",
    "--export shapes.html": "--export shapes.html --rows 8",
    "object_hue == 0.5 and scale >= 1.2": "object_hue == 0.5 and scale >= 1.2 and floor_hue == 0 and wall_hue == 0",
}
"""What commands of the README say, and what they are told here: that they work, a few pictures show as well."""

BIRDS = """\
layout: {images: 'birds/(?P<species>[a-z]+)_[0-9]+[.]png'}
factors: [{name: species, kind: nominal}]
"""
"""A manifest of a user's own."""

FEW_PAIRS = re.compile(r"--matches [0-9]+ ")
"""How many pairs of views pages render, which would take hours."""

FASTER = {
    "steps=100,": "steps=8,",
    "samples: int = 2_000": "samples: int = 100",
    'Data("shapes3d-procedural")': 'Data("shapes3d-procedural", where="scale == 0.75 and orientation == 0")',
}
"""The same of the method of one's own, which another test trains as it stands."""


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def fenced(text: str, language: str) -> Iterator[tuple[int, list[str], list[str] | None]]:
    """Line number, lines, and the lines of a text block right below, of every block in a language."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line != f"```{language}":
            continue
        end = lines.index("```", number)
        below = next((n for n in range(end + 1, len(lines)) if lines[n]), None)
        shown = None
        if below is not None and lines[below] == "```text":
            shown = lines[below + 1 : lines.index("```", below)]
        yield number + 1, lines[number + 1 : end], shown


def replaced(text: str, words: dict[str, str]) -> str:
    """A text with other words, all of which it has."""
    for old, new in words.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with the files and the method of one's own of which the pages speak; it trains but few steps here."""
    lights = ("left", "right", "front", "left", "right")
    lines = ["image,subject,light,age"]
    for subject, red in (("ann", 40), ("bob", 120), ("cem", 200)):
        for place, light in enumerate(lights):
            name = f"{subject}_{place}.png"
            Image.new("RGB", (48, 64), (red, 50 * place, 90)).save(tmp_path / name)
            lines.append(f"{name},{subject},{light},{38 + place / 2}")
        (tmp_path / "faces" / subject).mkdir(parents=True)
        for place, light in enumerate(("left", "right")):
            for yaw in (-30, 5, 100):
                Image.new("RGB", (48, 64), (red, 90 * place, yaw + 50)).save(
                    tmp_path / "faces" / subject / f"{light}_{yaw}.jpg"
                )
    shutil.make_archive(str(tmp_path / "faces"), "zip", tmp_path, "faces")
    (tmp_path / "photos.csv").write_text("\n".join(lines) + "\n")
    np.savez(tmp_path / "faces.npz", image=np.zeros((6, 8, 8, 3), np.uint8), identity=list("aabbcc"))
    (tmp_path / "birds.yaml").write_text(BIRDS)
    (tmp_path / "birds").mkdir()
    for species, red in (("tit", 40), ("wren", 200)):
        for number in range(4):
            Image.new("RGB", (72, 64), (red, 20 * number, 90)).save(tmp_path / "birds" / f"{species}_{number}.png")
    for split in ("train", "test"):
        (tmp_path / "swans" / split).mkdir(parents=True)
        rows = [f"{number:04}.jpg,{('mute', 'black')[number % 2]},{number / 2}" for number in range(8)]
        (tmp_path / "swans" / split / "metadata.csv").write_text("\n".join(["file_name,species,age", *rows]))
        for number in range(8):
            Image.new("RGB", (72, 64), (200, 20 * number, 90)).save(tmp_path / "swans" / split / f"{number:04}.jpg")
    for folder, red in (("cats", 40), ("dogs", 200)):
        (tmp_path / "pets" / folder).mkdir(parents=True)
        for number in range(8):
            Image.new("RGB", (72, 64), (red, 20 * number, 90)).save(tmp_path / "pets" / folder / f"{number}.jpg")
    for place in (tmp_path, tmp_path / "examples"):
        place.mkdir(exist_ok=True)
        (place / OWN.name).write_text(replaced(OWN.read_text(), FASTER))
    shutil.copy(TRIPLETS, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def needs_files(words: list[str]) -> bool:
    """Whether a command would download, or read what must be downloaded, or train for long."""
    verb, *rest = words
    fetched = {name for name in manifest_names() if load_manifest(name).files}
    if verb == "train":
        return bool({*presets(), "--config"} & set(rest)) and not {"--smoke", "--help"} & set(rest)
    if verb == "report":
        runs = [word for word in rest if word.startswith("runs/")] + ["runs"] * ("--all" in rest)
        return "--encoder" in rest or not all(Path(run).is_dir() for run in runs)  # minutes of fits; runs as below
    if verb in ("eval", "embed", "export") or "--run" in rest:
        return not any(Path(word).is_dir() for word in rest)  # of a run that another line trains
    if any(word.startswith("hf:") for word in rest):
        return True
    return verb in ("fetch", "prepare") or (verb == "sample" and bool(fetched & set(rest)))


# webdataset, on the page about shards, leaves the files that it opened to the garbage collector
@pytest.mark.filterwarnings("ignore:Exception ignored in.*:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(path, marks=[] if path == README else LONG, id=page_name(path))
        for path in [README, *PAGES]
        if "```python" in path.read_text(encoding="utf-8")
    ],
)
def test_python_blocks_run_and_print_what_stands_below(
    page: Path, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page.read_text()
    blocks = list(fenced(text, "python"))
    # the script keeps the line numbers of the page, so that a traceback names the line of the page
    script = [""] * len(text.splitlines())
    for start, lines, _ in blocks:
        script[start : start + len(lines)] = lines
        script[start + len(lines)] = f"print({END!r})"
    path = photos / f"{page.stem}.py"
    path.write_text("\n".join(script))
    runpy.run_path(str(path))
    printed = capsys.readouterr().out.split(f"{END}\n")
    for (start, _, shown), found in zip(blocks, printed, strict=False):
        if shown is not None:
            assert [line.rstrip() for line in found.splitlines()] == shown, f"{page_name(page)}, line {start}"


@LONG
@pytest.mark.parametrize("page", [path for path in PAGES if "$ setsup" in path.read_text()], ids=page_name)
def test_commands_run(page: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for start, lines, _ in fenced(page.read_text(), "console"):
        for line in lines:
            words = shlex.split(FEW_PAIRS.sub("--matches 2 ", line.removeprefix("$ ")))
            if words[0] == "setsup" and not needs_files(words[1:]):
                assert main(words[1:]) == 0, f"{page_name(page)}, line {start}: {line}: {capsys.readouterr().err}"


def test_shells_are_shown_in_one_form_with_prompts_that_no_button_copies() -> None:
    for page in PAGES:
        text = page.read_text()
        assert not re.findall(r"(?m)^\s*```(?:sh|bash|shell)$", text), f"{page_name(page)}: write shell-session"
        for start, lines, _ in fenced(text, "shell-session"):
            assert lines[0].startswith("$ "), f"{page_name(page)}, line {start}: {lines[0]}"


def test_console_blocks_hold_known_commands() -> None:
    for page in PAGES:
        for _, lines, _ in fenced(page.read_text(), "console"):
            for line in lines:
                assert re.match(r"\$ (setsup|make|pip|python|conda|uv|git|cd|apt) ", line), f"{page_name(page)}: {line}"


@LONG
def test_the_commands_of_the_readme_run(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = replaced(README.read_text(encoding="utf-8"), SHORTER).splitlines()
    commands = [line.strip().partition("#")[0] for line in lines if line.startswith("    .venv/bin/setsup ")]
    assert len(commands) > 5
    for command in commands:
        words = shlex.split(command)[1:]
        serves = words[0] == "explore" and "--export" not in words  # until Ctrl-C
        if not needs_files(words) and not serves:
            assert main(words) == 0, f"{command}: {capsys.readouterr().err}"


@LONG
@pytest.mark.parametrize("example", [path for path in EXAMPLES if path not in (OWN, PLAN)], ids=page_name)
def test_examples_run_and_leave_the_folder_as_it_is(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here, passing = tmp_path / "here", tmp_path / "passing"
    for folder in (here, passing):
        folder.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(passing))
    monkeypatch.setattr(sys, "argv", [str(example)])
    # a user's own file of the name that the README has
    (here / "photos.csv").write_text("path,subject\n", encoding="utf-8")
    assert sum(bool(line.strip()) for line in example.read_text(encoding="utf-8").splitlines()) <= 40
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
    assert [path.name for path in here.iterdir()] == ["photos.csv"]
    assert (here / "photos.csv").read_text(encoding="utf-8") == "path,subject\n"


@LONG
def test_a_method_of_ones_own_learns_what_sets_hold(tmp_path: Path) -> None:
    code = [line for line in OWN.read_text().splitlines() if line.strip()]
    assert len(code) <= 60
    preset = find_preset(str(OWN))
    trained = load_trained(train(preset, tmp_path / "run"))
    fresh = replace(trained, method=trained.untrained)
    before, after = (preset.evaluations["neighbours"].measure(method).values for method in (fresh, trained))
    assert min(after["wall_hue"], after["floor_hue"]) > 0.98 > max(before["wall_hue"], before["floor_hue"])
    assert after["object_hue"] < 0.3 < 0.5 < before["object_hue"]


def test_first_weights_of_layers_that_take_no_generator_follow_the_seed() -> None:
    preset, before = find_preset(str(OWN)), torch.get_rng_state()
    table = preset.data.open().factors
    one, again, other = (build_method(preset.method, table, seed).encoder.layers[2].weight for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.usefixtures("hooks")
def test_every_manifest_has_a_page_with_licence_citation_and_checksums() -> None:
    import cards
    import gallery

    shown = gallery.gallery()
    assert {*cards.names(), "table"} == set(manifest_names())
    for name in cards.names():
        manifest, page = load_manifest(name), cards.page(name)
        wanted = [manifest.licence.name, manifest.citation, f"`{manifest.factors[0].name}`"]
        for file in manifest.files:
            wanted += [file.path, file.sha256, f"{file.size:,}" if file.size else None]
        for part in filter(None, wanted):
            assert part.lower() in page.lower(), f"{name}: {part}"
        assert f"]({name}.md)" in shown
        assert (ROOT / "docs" / "images" / "datasets" / f"{name}.webp").is_file(), (
            f"docs/hooks/illustrations.py: {name}"
        )


@pytest.mark.usefixtures("hooks")
def test_every_subcommand_and_every_picture_is_shown() -> None:
    import pictures

    command = (ROOT / "docs" / "command.md").read_text()
    assert [subcommand for subcommand in subcommands() if f"<!-- setsup: help {subcommand} -->" not in command] == []
    used = set(re.findall(r"pictures/([\w-]+)\.png", "".join(page.read_text() for page in PAGES)))
    assert used | {pictures.NAME} == set(pictures.PICTURES)


@pytest.mark.usefixtures("hooks")
def test_every_preset_is_listed() -> None:
    import presets as listed

    table = listed.table().splitlines()
    assert [line.split("`")[1] for line in table[2:]] == list(presets())
    # figures 3a and 4a of ABC rest on one training, figure 4d on trainings of its own
    lines = [set(re.findall("`(.*?)`", line)) for line in listed.shared().splitlines()]
    assert any({"abc/fig3a", "abc/fig4a"} <= names for names in lines)
    assert not any("abc/fig4d-4" in names for names in lines)


@pytest.mark.usefixtures("hooks")
def test_the_page_shows_the_whole_of_the_method_of_ones_own() -> None:
    import listings

    page = (ROOT / "docs" / "experiments" / "own.md").read_text()
    parts = listings.parts(OWN)
    assert re.findall(r"<!-- setsup: part examples/a_method_of_your_own.py (\w+) -->", page) == list(parts)
    shown = "\n".join(parts.values()).split()
    assert " ".join(shown) in " ".join(OWN.read_text().split())


@pytest.mark.usefixtures("hooks")
def test_every_dependency_has_its_purpose_and_licence() -> None:
    import figures

    for extra in ("", "torch", "train", "hf", "pandas", "shards", "ray", "docs", "dev"):
        for line in figures.dependencies(ROOT / "pyproject.toml", extra).splitlines()[2:]:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert cells[2], line
            assert cells[-1] not in ("", "UNKNOWN", "not stated"), line


@pytest.mark.usefixtures("hooks")
def test_measurements_become_a_table(tmp_path: Path) -> None:
    import figures

    assert "make bench" in figures.benchmarks(tmp_path / "benchmarks.json")
    row = {
        **{"topic": "sets", "what": "a set of 32", "ours": "8 µs", "against": "a|b", "other": "24 µs"},
        **{"figure": {"median": 3.0, "low": 2.9, "high": 1234.5}, "unit": "×", "bound": "≥ 1", "verdict": "pass"},
    }
    (tmp_path / "benchmarks.json").write_text(json.dumps({"about": ["2 cores"], "rows": [row, {**row, "bound": None}]}))
    table = figures.benchmarks(tmp_path / "benchmarks.json").splitlines()
    assert table[2] == "| sets | a set of 32 | 8 µs | a\\|b | 24 µs | 3 × | 2.9 – 1,234 | ≥ 1 × | pass |"
    assert table[-1] == "- 2 cores"


@pytest.mark.usefixtures("hooks")
def test_the_matrix_of_resumed_runs_lists_what_its_cells_were_measured_with(tmp_path: Path) -> None:
    import resume

    kept = tmp_path / "resume.json"
    assert "python -m benchmarks.resume" in resume.table(kept)
    old = {"way": "a loop", "line": "rows", "lost": 0, "twice": 0, "evened": 8, "differ": 0, "with": 0}
    new = {**old, "moved": 2, "with": 1}
    described = [["commit a", "torch 1"], ["commit b", "torch 1"], ["commit c", "torch 2"]]
    kept.write_text(json.dumps({"with": described, "cells": {"1": old, "2": new, "3": new}}))
    assert resume.table(kept).splitlines()[2:] == [
        "| a loop | `setsup.batch_sampler` | 3 | 0 | 0 |  | 4 in 2 cells | 24 |",
        *("", "Measured with:", ""),
        *("- commit a; cells: 1", "- commit b; cells: 2", "- torch 1"),
    ]
    assert "python -m benchmarks.resume" in resume.peers(kept), "no cell of another library"


@pytest.mark.usefixtures("hooks")
def test_docstrings_become_markdown() -> None:
    import docstrings

    text = "See :class:`setsup.samplers.Draw` [1]_::\n\nReturns\n-------\nof the shape of ``rows``\n    ``rows``\n\n"
    text += "References\n----------\n.. [1] A. Author,\n   2017.\n"
    assert docstrings.rewritten(text) == (
        "See `samplers.Draw` [1]:\n\n**References**\n\n- [1] A. Author, 2017.\n\n"
        "Returns\n-------\nof the shape of rows\n    ``rows``\n"
    )


@pytest.mark.parametrize("path", [README, *PAGES], ids=page_name)
def test_rows_of_tables_have_as_many_cells_as_their_heads(path: Path) -> None:
    """A row with fewer is shown with an empty cell, and one with more loses the last."""
    lines = re.sub(r"^```.*?^```", lambda found: "\n" * found[0].count("\n"), path.read_text(), flags=re.M | re.S)
    cells = 0
    for number, line in enumerate(lines.splitlines(), 1):
        if not line.lstrip().startswith("|"):
            cells = 0
            continue
        # within code, a bar is escaped, too
        found = len(re.split(r"(?<!\\)\|", line.strip().strip("|")))
        if cells:
            assert found == cells, f"{path.name}, line {number}: {found} cells where the head has {cells}"
        cells = cells or found
