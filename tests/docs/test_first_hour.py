"""The first hour runs word for word: its files and commands, in their order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-hour.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?', re.MULTILINE | re.DOTALL)
INSTALLATION = "An environment"
"""Its commands are the README's, which tests of the wheel run."""


@pytest.mark.long("documented pages and examples")
def test_the_page_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    printed = []
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        if section.startswith(INSTALLATION):
            continue
        for language, title, code, shown in BLOCK.findall(section):
            if title:
                (tmp_path / title).write_text(code, encoding="utf-8")
                continue
            words = [sys.executable, "-c", code] if language == "python" else ["bash", "-ec", _script(code)]
            done = subprocess.run(
                words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
            )
            assert (done.returncode, done.stderr) == (0, ""), code
            if shown:
                assert done.stdout == shown, code
            printed += done.stdout.splitlines()
    right = {line.rpartition(" step ")[2]: int(line.partition("%")[0]) for line in printed if "% of held-out" in line}
    assert right["1"] < 50 < 80 < right["120"]
    assert "resumed after step 60" in printed
    assert printed[-1] == "True"
    assert (tmp_path / "setsup-samples" / "sheet.png").is_file()


def _script(console: str) -> str:
    return "\n".join(line.removeprefix("$ ") for line in console.splitlines())
