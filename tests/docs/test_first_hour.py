"""The first hour runs word for word: its files and commands, in their order, in an empty folder.

The first training is a process of its own, as on the page; the others run in this one, where torch is imported already.
"""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from setsup_cli.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-hour.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?', re.MULTILINE | re.DOTALL)
INSTALLATION = "An environment"
"""Its commands are the README's, which tests of the wheel run."""


@pytest.mark.long("documented pages and examples")
def test_the_page_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    printed: list[str] = []
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        if section.startswith(INSTALLATION):
            continue
        for language, title, code, shown in BLOCK.findall(section):
            if title:
                (tmp_path / title).write_text(code, encoding="utf-8")
                continue
            lines = [["python", "-c", code]] if language == "python" else map(shlex.split, _commands(code))
            for words in lines:
                _run(words, monkeypatch, first="learn.py" in words and not (tmp_path / "first.pt").exists())
            out, err = capfd.readouterr()
            assert err == "", code
            if shown:
                assert out == shown, code
            printed += out.splitlines()
    right = {line.rpartition(" step ")[2]: int(line.partition("%")[0]) for line in printed if "% of held-out" in line}
    assert right["1"] < 50 < 80 < right["120"]
    assert "resumed after step 60" in printed
    assert printed[-1] == "True"
    assert (tmp_path / "setsup-samples" / "sheet.png").is_file()


def _commands(console: str) -> list[str]:
    return [line.removeprefix("$ ") for line in console.splitlines()]


def _run(words: list[str], monkeypatch: pytest.MonkeyPatch, first: bool) -> None:
    program, *rest = words
    if first:
        subprocess.run([sys.executable, *rest], check=True, timeout=300)
    elif program == "setsup":
        assert main(rest) == 0, words
    elif rest[0] == "-c":
        assert program == "python"
        exec(compile(rest[1], "<page>", "exec"), {"__name__": "__main__"})  # noqa: S102
    else:
        assert program == "python"
        monkeypatch.setattr(sys, "argv", rest)
        runpy.run_path(rest[0], run_name="__main__")
