"""What a user gets from a package index: the wheel, installed in a bare environment, run from another folder."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.long("wheels")


def run(*command: str | Path, cwd: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    found = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=600
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def pip(place: Path, *words: str | Path) -> str:
    """Run the pip of these tests on a bare environment."""
    start = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", place / "python")
    return run(*start, *words, cwd=place)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, CHECKOUT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare environment with the wheel and what it declares to need."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    wheel = next(built.glob("*.whl"))
    pip(folder / "bin", "install", "--quiet", "--no-compile", "--constraint", CHECKOUT / "constraints.txt", wheel)
    return folder / "bin"


def test_wheel_ships_the_three_packages_their_types_and_the_manifests(built: Path) -> None:
    names = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    for package in ("setsup", "setsup_renderers", "setsup_cli", "setsup_papers"):
        assert f"{package}/py.typed" in names
    manifests = {path.name for path in (CHECKOUT / "manifests").glob("*.yaml")}
    assert {Path(name).name for name in names if name.startswith("setsup/manifests/")} == manifests
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "setsup",
        "setsup_renderers",
        "setsup_cli",
        "setsup_papers",
    }


def test_sdist_holds_what_the_wheel_is_built_from(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    wanted = {"pyproject.toml", "LICENSE", "README.md", "setsup/__init__.py", "cli/setsup_cli/main.py"}
    assert wanted <= names
    assert "manifests/mnist.yaml" in names


def test_datasets_are_listed_from_another_folder(installed: Path, tmp_path: Path) -> None:
    found = json.loads(run(installed / "setsup", "datasets", "--json", cwd=tmp_path))
    assert "shapes3d-procedural" in {entry["name"] for entry in found}


def test_a_page_opens_that_the_bare_environment_wrote(installed: Path, tmp_path: Path) -> None:
    words = ("explore", "--export", "page", "--rows", "48", "--steps", "1")
    assert run(installed / "setsup", *words, cwd=tmp_path).startswith("page/index.html: ")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium is here: apt install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = opened.new_page()
        page.goto((tmp_path / "page" / "index.html").as_uri())
        page.get_by_text("480,000 of 480,000 rows").wait_for()
        page.get_by_role("tab", name="Sampler").click()
        page.locator(".set .thumb img").first.wait_for()
        opened.close()


def test_sets_are_sampled_from_another_folder(installed: Path, tmp_path: Path) -> None:
    shown = run(installed / "setsup", "sample", "--inactive", "wall_hue", "--size", "4", cwd=tmp_path)
    sheet = Path(shown.splitlines()[-1].strip())
    assert (tmp_path / sheet).is_file()
    assert {path.name for path in (tmp_path / "setsup-samples").iterdir()} == {"draws.jsonl", "draws.npz", "sheet.png"}


def test_the_core_needs_neither_torch_nor_gl(installed: Path) -> None:
    listed = json.loads(pip(installed, "list", "--format", "json"))
    names = {entry["name"].lower() for entry in listed}
    assert not names & {"torch", "moderngl", "pyopengl", "trimesh", "pandas", "datasets"}
