"""What a core install says of the libraries that it lacks: one list of them, one sentence, before anything is begun."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from setsup import RenderedDataset
from setsup.errors import LibraryError, imported
from setsup.factors import Factor, Kind
from setsup.optional import LIBRARIES
from setsup.scenes import Camera
from setsup.scenes.recipes import FunctionRecipe

ROOT = Path(__file__).resolve().parents[1]

IN_THE_CORE = f"""
import contextlib, importlib, io, json, os, pkgutil, sys

from importlib.machinery import PathFinder

class Core(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {sorted(LIBRARIES)!r} else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Core  # as if they were not installed

import setsup
from setsup.errors import LibraryError
from setsup_cli.main import main

found = {{"commands": {{}}, "names": {{}}}}
for command in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(command.split())
        except Exception as error:
            code = repr(error)
    found["commands"][command] = [code, out.getvalue(), err.getvalue(), sorted(os.listdir())]
packages = pkgutil.walk_packages(setsup.__path__, "setsup.", onerror=lambda name: None)
for path in ("setsup", *(one.name for one in packages if one.ispkg)):
    try:
        package = importlib.import_module(path)
        for name in getattr(package, "__all__", ()):
            try:
                getattr(package, name)
            except LibraryError as error:
                found["names"][f"{{path}}.{{name}}"] = str(error)
    except LibraryError as error:
        found["names"][path] = str(error)
print(json.dumps(found))
"""

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


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What commands and public names do where no optional library is installed."""
    done = subprocess.run(
        [sys.executable, "-c", IN_THE_CORE],
        cwd=tmp_path_factory.mktemp("core"),
        input=json.dumps(list(COMMANDS)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_extras_bring_what_the_list_says() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    asked = set()
    for extra in extras.keys() - {"all", "dev", "docs"}:
        for line in extras[extra]:
            name, inner = re.match(r"([\w.-]+)(?:\[(\w+)\])?", line).groups()  # type: ignore[union-attr]
            asked |= {(name, extra), *([("aiohttp", extra)] if inner == "http" else [])}
    assert {(one.package, extra) for one in LIBRARIES.values() for extra in one.extras} == asked
    assert all(one.use for one in LIBRARIES.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_the_extra_before_anything_is_begun(core: dict[str, Any], command: str) -> None:
    code, out, err, files = core["commands"][command]
    assert (code, out, files) == (2, "", [])
    said = json.loads(err)["error"] if "--json" in command else err.removeprefix("setsup: ").rstrip("\n")
    assert re.fullmatch(r".+ needs? .+ installed: pip install '\.\[(.+)\]' in setsup's folder", said), err
    assert f"'.[{COMMANDS[command]}]'" in err


def test_a_public_name_that_lacks_a_library_says_so(core: dict[str, Any]) -> None:
    names = core["names"]
    assert {"setsup.loading.transforms", "setsup.methods", "setsup.evaluation.mine", "setsup.experiments.train"} <= {
        *names
    }
    for said in names.values():
        assert re.search(r" needs? .+, which (is|are) not installed: pip install '\.\[.+\]' in setsup's folder$", said)


def test_no_row_is_blamed_for_a_missing_library() -> None:
    def build(values: object) -> Any:
        return imported("no_such_library", "render")

    factors = [Factor("model", Kind.NOMINAL, ("a", "b"))]
    recipe = FunctionRecipe("missing", factors, build, lambda values, scene: Camera.look_at((0, -3, 0), (0, 0, 0)))
    with pytest.raises(LibraryError, match=r"^this needs no_such_library.*in setsup's folder$"):
        RenderedDataset(recipe).fetch([0])
