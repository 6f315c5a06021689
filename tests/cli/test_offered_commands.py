"""Subcommands that packages offer by entry points."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = '''"""Count the rows of a dataset."""

from dataclasses import dataclass

from setsup_cli.output import say
from setsup_cli.parsing.arguments import Common

HELP = "Example: `setsup count`."


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""


def run(options):
    say("counted")
    return 0
'''


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with an installed package: one good subcommand, two that are broken, two with names that are taken."""
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    entries = {
        "count": "theirs_count",
        "absent": "theirs_absent.inner",
        "bad": "theirs_bad.inner",
        "sample": "theirs_count",
        "pose": "theirs_count",
    }
    lines = (f"{name} = {module}\n" for name, module in entries.items())
    (about / "entry_points.txt").write_text(f"[setsup.commands]\n{''.join(lines)}")
    (tmp_path / "theirs_count.py").write_text(MODULE)
    (tmp_path / "theirs_bad").mkdir()
    (tmp_path / "theirs_bad" / "__init__.py").write_text("1 / 0\n")
    return tmp_path


def command(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = [sys.executable, "-c", "import sys; from setsup_cli.main import main; sys.exit(main(sys.argv[1:]))", *words]
    return subprocess.run(run, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)


@pytest.mark.long("subprocesses")
def test_packages_offer_subcommands(site: Path) -> None:
    shown = command(site, "--help")
    assert shown.returncode == 0, shown.stderr
    assert "count      count the rows of a dataset" in " ".join(shown.stdout.split("\n"))
    assert shown.stdout.count("count the rows") == 1, "setsup's own subcommands stay"
    assert "find the pose of an object" in shown.stdout
    assert command(site, "count").stdout == "counted\n"
    assert "Example: `setsup count`" in command(site, "count", "--help").stdout
    refused = command(site, "absent")
    assert refused.returncode == 2
    assert "the subcommand 'absent' (theirs_absent.inner) cannot be loaded" in refused.stderr
