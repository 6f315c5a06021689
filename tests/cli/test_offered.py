"""Subcommands that packages offer: setsup's own papers', and those of others, which may be broken."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from setsup_cli import dispatch

Run = Callable[..., Any]

GREET = '''
"""Greet somebody."""

from dataclasses import dataclass

from setsup_cli.output import say
from setsup_cli.parsing.arguments import Common

HELP = "Says hello."


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Common):
    pass


def run(options):
    say("hello")
    return 0
'''
MODULES = {"offered_greet": GREET, "offered_broken": "1 / 0", "offered_empty": ""}
ENTRIES = """
greet = offered_greet
boom = offered_broken
hollow = offered_empty
sample = offered_broken
pose = offered_broken
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, content in MODULES.items():
        (tmp_path / f"{name}.py").write_text(content)
    about = tmp_path / "offered-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[setsup.commands]\n{ENTRIES}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for cached in (dispatch.subcommands, dispatch._offered):
        cached.cache_clear()
    yield
    for cached in (dispatch.subcommands, dispatch._offered):
        cached.cache_clear()


@pytest.mark.usefixtures("installed")
def test_a_package_offers_a_subcommand(setsup: Run) -> None:
    found = setsup("greet")
    assert (found.code, found.out) == (0, "hello\n")
    assert "greet somebody" in setsup("--help").out
    assert "Greet somebody." in setsup("greet", "--help").out


@pytest.mark.usefixtures("installed")
def test_a_broken_package_hides_no_other_subcommand(setsup: Run) -> None:
    shown = setsup("--help")
    assert shown.code == 0
    assert "find the pose of an object" in shown.out
    for name in ("sample", "pose"):
        assert setsup(name, "--help").code == 0
    found = setsup("boom")
    assert found.code == 2
    assert "the subcommand 'boom' (offered_broken) cannot be loaded: division by zero" in found.err
    assert "has no Options" in setsup("hollow").err
    assert "unknown subcommand 'smaple'; did you mean 'sample'" in setsup("smaple").err
