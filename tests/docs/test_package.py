"""The package that a page shows is built and installed as it stands, and the command finds its data set."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

pytestmark = pytest.mark.long("documented pages and examples")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "datasets" / "package.md").read_text()
FILES = {"toml": "pyproject.toml", "python": "my_rooms/__init__.py", "yaml": "my_rooms/my-rooms.yaml"}


def block(language: str) -> str:
    (found,) = (part.split("```")[0] for part in PAGE.split(f"```{language}\n")[1:])
    return found


def run(words: list[str], site: Path, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT), str(ROOT / "cli")])}
    found = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def setsup(line: str, site: Path, cwd: Path) -> str:
    code = "import sys; from setsup_cli.main import main; sys.exit(main(sys.argv[1:]))"
    return run([sys.executable, "-c", code, *line.split()[1:]], site, cwd)


def installed(folder: Path, files: dict[str, str]) -> Path:
    """Write a package, and install it without the network into a folder of its own."""
    for name, content in files.items():
        (folder / "rooms" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "rooms" / name).write_text(content)
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "--quiet"]
    run([sys.executable, "-m", "pip", "install", *options, "--target", "site", "./rooms"], folder / "site", folder)
    return folder / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("package"), {name: block(kind) for kind, name in FILES.items()})


def test_it_has_thirty_lines() -> None:
    lines = (block("toml") + block("python")).splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 30


def test_the_commands_of_the_page(site: Path, tmp_path: Path) -> None:
    install, *lines = [line.removeprefix("$ ") for line in block("shell-session").splitlines()]
    assert install == "pip install ./rooms"
    listed, card, first, second = (setsup(line, site, tmp_path) for line in lines)
    assert "my-rooms" in listed
    about = yaml.safe_load(block("yaml"))
    for part in (about["title"], about["description"], "CC-BY-4.0", "@misc{rooms", "27 rows", "split plain"):
        assert part in " ".join(card.split()), part
    assert "inactive: wall" in first
    assert "inactive: edge" in second
    with Image.open(tmp_path / "plain" / "sheet.png") as sheet:
        assert min(sheet.size) > 64


def test_the_list_says_where_it_comes_from(site: Path, tmp_path: Path) -> None:
    (found,) = (
        entry for entry in json.loads(setsup("setsup datasets --json", site, tmp_path)) if entry["name"] == "my-rooms"
    )
    assert found["package"] == "my-rooms"
    assert found["licence"] == "CC-BY-4.0"
    assert found["samples"] == 27
    assert found["factors"] == ["wall", "floor", "edge"]


def test_in_python(site: Path, tmp_path: Path) -> None:
    code = (
        "import setsup, numpy as np; from setsup.datasets.own.huggingface.card import dataset_info\n"
        "rooms = setsup.load('my-rooms', split='plain'); np.save('plain', rooms.fetch(range(9))['image'])\n"
        "print(rooms.factors.counts('wall').tolist(), dataset_info(rooms)['license'])"
    )
    assert run([sys.executable, "-c", code], site, tmp_path) == "[3, 3, 3] CC-BY-4.0\n"
    plain = np.load(tmp_path / "plain.npy")
    assert plain.shape == (9, 64, 64, 3)
    assert (plain == plain[:, :1, :1]).all(), "wall and floor have one colour"


def test_without_a_card_or_with_a_wrong_one(tmp_path: Path) -> None:
    files = {name: block(kind) for kind, name in FILES.items() if kind != "yaml"}
    bare = installed(tmp_path / "bare", files)
    card = setsup("setsup info my-rooms", bare, tmp_path)
    assert "27 rows" in card
    assert "licence" not in card
    wrong = installed(tmp_path / "wrong", {**files, FILES["yaml"]: "name: my-rooms\ntitel: Rooms\n"})
    assert "my-rooms" in setsup("setsup datasets", wrong, tmp_path)
    with pytest.raises(AssertionError, match=r"my-rooms\.yaml"):
        setsup("setsup info my-rooms", wrong, tmp_path)
