"""Subcommands that packages offer: setsup's own papers', and those of others, which may be broken."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from setsup_cli import dispatch
from tests.cli.refusals import refused

Run = Callable[..., Any]

GREET = '''
"""Greet somebody."""

from dataclasses import dataclass

from setsup_cli.output import say
from setsup_cli.parsing.arguments import Common

HELP = "Example: `setsup greet`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Common):
    pass


def run(options):
    say("hello")
    return 0
'''
MODULES = {"offered_greet": GREET, "offered_broken": "1 / 0", "offered_empty": ""}
# one good, four that are broken, and three with names that are taken
ENTRIES = """
greet = offered_greet
boom = offered_broken
below = offered_broken.inner
absent = offered_absent.inner
hollow = offered_empty
sample = offered_broken
pose = offered_broken
train = offered_greet
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with an installed package."""
    for name, content in MODULES.items():
        (tmp_path / f"{name}.py").write_text(content)
    about = tmp_path / "offered-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[setsup.commands]\n{ENTRIES}\n")
    return tmp_path


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(site))
    for cached in (dispatch.subcommands, dispatch._offered):
        cached.cache_clear()
    yield
    for cached in (dispatch.subcommands, dispatch._offered):
        cached.cache_clear()


@pytest.mark.usefixtures("installed")
def test_a_package_offers_a_subcommand(setsup: Run) -> None:
    found = setsup("greet")
    assert (found.code, found.out) == (0, "hello\n")
    shown = setsup("--help").out
    assert "greet      greet somebody" in " ".join(shown.split("\n"))
    assert shown.count("greet somebody") == 1, "setsup's own subcommands stay"
    told = setsup("greet", "--help").out
    assert "Greet somebody." in told
    assert "Example: `setsup greet`" in told


@pytest.mark.usefixtures("installed")
def test_a_broken_package_hides_no_other_subcommand(setsup: Run) -> None:
    shown = setsup("--help")
    assert shown.code == 0
    assert "estimate the pose of an object" in shown.out
    for name in ("sample", "pose", "train"):
        assert setsup(name, "--help").code == 0
    found = setsup("boom")
    refused(found, "the subcommand 'boom' (offered_broken) cannot be imported: division by zero")
    for name, module in {"below": "offered_broken.inner", "absent": "offered_absent.inner"}.items():
        refused(setsup(name), f"the subcommand {name!r} ({module}) cannot be imported")
    assert "does not define Options" in setsup("hollow").err
    assert "unknown subcommand 'smaple'; did you mean 'sample'" in setsup("smaple").err


def start(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = [sys.executable, "-c", "import sys; from setsup_cli.main import main; sys.exit(main(sys.argv[1:]))", *words]
    return subprocess.run(run, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)


@pytest.mark.long("subprocesses")
def test_a_process_of_its_own_finds_them(site: Path) -> None:
    shown = start(site, "--help")
    assert shown.returncode == 0, shown.stderr
    assert "greet somebody" in shown.stdout
    assert "estimate the pose of an object" in shown.stdout
    assert start(site, "greet").stdout == "hello\n"
    refused = start(site, "absent")
    assert refused.returncode == 2
    assert "the subcommand 'absent' (offered_absent.inner) cannot be imported" in refused.stderr
