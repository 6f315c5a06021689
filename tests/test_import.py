import json
import subprocess
import sys

import pytest

import setsup

HEAVY = (
    "torch",
    "OpenGL",
    "moderngl",
    "pandas",
    "pyarrow",
    "scipy",
    "h5py",
    "PIL",
    "requests",
    "yaml",
    "rich",
    "datasets",
)


def _loaded(code):
    """Top-level modules that a fresh interpreter has after running some code."""
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


def _loaded_by_each(parts):
    """The same of each of several codes, in forks of an interpreter that has imported setsup and numpy."""
    script = """
import json, os, sys
import numpy, setsup
for part in json.loads(sys.argv[1]):
    if not os.fork():
        exec(part)
        print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
    words = [sys.executable, "-c", script, json.dumps(parts)]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    return [set(json.loads(line)) for line in run.stdout.splitlines()]


def test_importing_setsup_loads_nothing_heavy():
    loaded = _loaded("import setsup")
    assert not loaded & {*HEAVY, "numpy"}


@pytest.mark.long("large or genuine files")
def test_no_name_needs_anything_heavy():
    names = [name for name in setsup.__all__ if name != "__version__"]
    for name, loaded in zip(names, _loaded_by_each([f"from setsup import {name}" for name in names]), strict=True):
        needed = {"PIL", "scipy"} if name == "show" else set()  # it makes images
        assert not loaded & set(HEAVY) - needed, name


def test_packages_are_there_without_an_import_of_their_own():
    parts = ["datasets", "factors", "files", "loading", "random", "reports", "samplers"]
    for part, loaded in zip(parts, _loaded_by_each([f"setsup.{part}" for part in parts]), strict=True):
        assert not loaded & {"torch", "OpenGL", "moderngl"}, part


def test_all_names_are_there():
    for name in setsup.__all__:
        assert getattr(setsup, name) is not None
    assert set(setsup.__all__) <= set(dir(setsup))
    assert setsup.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        setsup.nothing  # noqa: B018
