"""What a core install says of the libraries that it lacks: one list of them, one sentence, before anything is begun."""

import contextlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from setsup import RenderedDataset
from setsup.errors import LibraryError, imported
from setsup.factors import Factor, Kind
from setsup.optional import LIBRARIES
from setsup.scenes import Camera
from setsup.scenes.recipes import FunctionRecipe, Room

ROOT = Path(__file__).resolve().parents[1]

WITHOUT = """
import contextlib, importlib, io, json, os, pkgutil, sys

from importlib.machinery import PathFinder

asked = json.load(sys.stdin)

class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in asked["absent"] else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Installed  # as if the others were not installed

import setsup, setsup_papers
from setsup.errors import LibraryError
from setsup_cli.main import main

found = {"commands": {}, "names": {}, "modules": {}}
for command in asked["commands"]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(command.split())
        except Exception as error:
            code = repr(error)
    found["commands"][command] = [code, out.getvalue(), err.getvalue(), sorted(os.listdir())]
def walk():
    for top in (setsup, setsup_papers):
        yield from pkgutil.walk_packages(top.__path__, f"{top.__name__}.", onerror=lambda name: None)

packages = walk()
for path in ("setsup", *(one.name for one in packages if one.ispkg)):
    try:
        package = importlib.import_module(path)
        for name in getattr(package, "__all__", ()):
            try:
                getattr(package, name)
            except LibraryError as error:
                found["names"][f"{path}.{name}"] = str(error)
    except LibraryError as error:
        found["names"][path] = str(error)
for one in walk():
    if not one.ispkg:
        try:
            importlib.import_module(one.name)
        except (ImportError, LibraryError) as error:
            found["modules"][one.name] = getattr(error, "name", None) or str(error)
print(json.dumps(found))
"""
"""Runs commands and imports all public names and modules in an environment that lacks some libraries."""

COMMANDS = {
    "train abc/fig3a": "torch,train",
    "train abc/fig3a --substitute --smoke": "torch,train",
    "train mine.py": "torch,train",
    "embed runs/abc/fig3a/seed-0": "torch,train",
    "eval runs/abc/fig3a/seed-0 --json": "torch,train",
    "report abc/fig3a --out report.png": "train",
    "render shapes3d --out shapes --rows 4": "render",
    "render shapes3d --out shapes --rows 4 --renderer embree": "render",
    "render shapes3d --out shapes --rows 4 --renderer gl": "render",
    "render shapes3d --out shapes --rows 4 --renderer pyrender": "render",
    "render shapes3d --out shapes --rows 4 --on ray": "ray",
    "render room --out rooms": "render",
    "pairs room": "render",
    "pairs shapes3d": "render",
    "shard --out tars --on ray": "ray",
    "shard --out s3://bucket/tars": "shards",
    "sample s3://bucket/tars": "shards",
    "sample https://example.org/tars": "shards",
    "info gs://bucket/tars": "shards",
    "bench hf://datasets/me/tars": "shards",
    "index s3://bucket/tars": "shards",
    "sample ucf101": "video",
    "bench hmdb51": "video",
}
"""Commands that need an optional library, and the extras that bring it."""


EXTRAS: dict[str, list[str]] = {
    extra: lines
    for extra, lines in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ].items()
    if extra not in ("all", "dev", "docs")
}

METHODS = (
    {f"setsup_papers.dcodr.{name}" for name in ("DCoDR", "DRNET", "LORD", "AmortisedLORD", "MLVAE")}
    | {f"setsup_papers.cmc.{name}" for name in ("CMC", "CrossViewPrediction")}
    | {f"setsup_papers.abc.pose.{name}" for name in ("CCVAE", "ExclusiveInformation", "PretrainedFeatures")}
    | {f"setsup_papers.abc.pose.{name}" for name in ("SharedInformation", "SphericalRegression")}
    | {"setsup_papers.abc.ABC", "setsup_papers.orbits.OrbitJoint", "setsup_papers.pixels.PixelContrast"}
    | {"setsup_papers.pixels.PatchNetwork", "setsup_papers.pixels.PixelFinetuning"}
    | {"setsup_papers.multiview.BlockContrast"}
)
"""What a Trainer of Lightning trains; all other losses, networks and recipes need torch alone."""


def brought(extra: str) -> set[str]:
    """Distributions that an extra installs, with all that these need; those of the core alone for no extra."""
    found: set[str] = set()
    left = ["setsup"] if not extra else [requirement.name for requirement in map(Requirement, EXTRAS[extra])]
    while left:
        name = canonicalize_name(left.pop())
        if name not in found:
            found.add(name)
            with contextlib.suppress(PackageNotFoundError):
                asked = map(Requirement, requires(name) or ())
                left += [one.name for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


def in_an_environment(extra: str, folder: Path, commands: Iterable[str] = ()) -> dict[str, Any]:
    """What commands, public names and modules do where the core and an extra are installed."""
    here = {*brought(""), *(brought(extra) if extra else ())}
    absent = [one.module for one in LIBRARIES.values() if canonicalize_name(one.package) not in here]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=folder,
        input=json.dumps({"absent": absent, "commands": list(commands)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"absent": absent}


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What commands and public names do where no optional library is installed."""
    return in_an_environment("", tmp_path_factory.mktemp("core"), COMMANDS)


def test_the_extras_bring_what_the_list_says() -> None:
    asked = set()
    for extra, lines in EXTRAS.items():
        for line in lines:
            name, inner = re.match(r"([\w.-]+)(?:\[(\w+)\])?", line).groups()  # type: ignore[union-attr]
            asked |= {(name, extra), *([("aiohttp", extra)] if inner == "http" else [])}
    assert {(one.package, extra) for one in LIBRARIES.values() for extra in one.extras} == asked
    assert all(one.use for one in LIBRARIES.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_the_extra_before_anything_is_begun(core: dict[str, Any], command: str) -> None:
    code, out, err, files = core["commands"][command]
    assert (code, out, files) == (2, "", [])
    said = json.loads(err)["error"] if "--json" in command else err.removeprefix("setsup: ").rstrip("\n")
    assert re.fullmatch(r".+ (?:needs?|requires?) .+ installed: pip install '\.\[(.+)\]' in setsup's folder", said), err
    assert f"'.[{COMMANDS[command]}]'" in err


def test_a_public_name_that_lacks_a_library_says_so(core: dict[str, Any]) -> None:
    names = core["names"]
    assert {"setsup.loading.transforms", "setsup.methods", "setsup.evaluation.mine", "setsup.experiments.train"} <= {
        *names
    }
    for said in names.values():
        assert re.search(
            r" (?:needs?|requires?) .+, which (is|are) not installed: pip install '\.\[.+\]' in setsup's folder$", said
        )


@pytest.fixture(scope="module", params=EXTRAS)
def with_one(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """An extra, and what public names and modules do where nothing else is installed."""
    return request.param, in_an_environment(request.param, tmp_path_factory.mktemp(request.param))


@pytest.mark.long("subprocesses")
def test_with_one_extra_a_public_name_works_or_names_another(with_one: tuple[str, dict[str, Any]]) -> None:
    extra, found = with_one
    for name, said in found["names"].items():
        sentence = (
            r" (?:needs?|requires?) .+, which (is|are) not installed: pip install '\.\[(.+)\]' in setsup's folder$"
        )
        asked = re.search(sentence, said)
        assert asked is not None, f"{name}: {said}"
        assert extra not in asked[2].split(","), f"{name}: {said}"
    for name, said in found["modules"].items():  # none lacks what the extra brings
        assert {*re.findall(r"\w+", said)} & {*found["absent"]}, f"{name}: {said}"
    if extra == "torch":  # losses, networks, recipes, transforms, scores
        parts = ("setsup.methods", "setsup.loading", "setsup.evaluation", "setsup_papers")
        assert {name for name in found["names"] if name.startswith(parts)} == METHODS
        lacking = {said for name, said in found["modules"].items() if name.startswith(parts) and " need" not in said}
        assert lacking == {"lightning"}


def test_no_row_and_no_room_is_blamed_for_a_missing_library() -> None:
    def build(*values: object) -> Any:
        return imported("no_such_library", "render")

    factors = [Factor("model", Kind.NOMINAL, ("a", "b"))]
    recipe = FunctionRecipe("missing", factors, build, lambda values, scene: Camera.look_at((0, -3, 0), (0, 0, 0)))
    for one in (recipe, Room(meshes={"mine": build}, rooms=1, pairs=1)):
        with pytest.raises(LibraryError, match=r"^no_such_library is required .*in setsup's folder$"):
            RenderedDataset(one).fetch([0])
