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


def test_importing_setsup_loads_nothing_heavy():
    loaded = _loaded("import setsup")
    assert not loaded & {*HEAVY, "numpy"}


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("name", [name for name in setsup.__all__ if name != "__version__"])
def test_no_name_needs_anything_heavy(name):
    needed = {"PIL", "scipy"} if name == "show" else set()  # it makes images
    assert not _loaded(f"from setsup import {name}") & set(HEAVY) - needed


@pytest.mark.parametrize("part", ["datasets", "factors", "files", "loading", "random", "reports", "samplers"])
def test_packages_are_there_without_an_import_of_their_own(part):
    assert not _loaded(f"import setsup; setsup.{part}") & {"torch", "OpenGL", "moderngl"}


def test_all_names_are_there():
    for name in setsup.__all__:
        assert getattr(setsup, name) is not None
    assert set(setsup.__all__) <= set(dir(setsup))
    assert setsup.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        setsup.nothing  # noqa: B018
