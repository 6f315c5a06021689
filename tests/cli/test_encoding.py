"""Output in locales that are not UTF-8: no subcommand fails on a character, and JSON is the same."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from setsup_cli.dispatch import subcommands
from setsup_cli.main import main

COMMANDS = [
    "datasets",
    "info multi-pie",
    "info shapes3d-procedural",
    "fetch mnist --check",
    "sample --inactive wall_hue --size 4",
    "sample --inactive wall_héu",
    "render",
    "pairs",
    "train",
    "report",
    "report abc/fig3a",
    "cache",
    *(f"{subcommand} --help" for subcommand in subcommands()),
    "--help",
    "train abc/fig3a --help",
]

# all subcommands print through one place, and so does their help
REPEATED = {f"{subcommand} --help" for subcommand in subcommands()} - {"sample --help", "report --help"}

WORD = re.compile(r"\w[\w/.]+", re.ASCII)


class Printed:
    """What a command writes where standard output and error have some encoding."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, words: list[str], encoding: str, errors: str = "strict"):
        self._out, self._err = io.BytesIO(), io.BytesIO()
        with monkeypatch.context() as patch:
            for name, file in (("stdout", self._out), ("stderr", self._err)):
                patch.setattr(sys, name, io.TextIOWrapper(file, encoding=encoding, errors=errors))
            self.code = main(words)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
                assert isinstance(stream, io.TextIOWrapper)
                assert stream.errors == errors, "as it was before"
                stream.detach()
        self.out, self.err = self._out.getvalue(), self._err.getvalue()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# LC_ALL=C has Python let bytes of names pass, and nothing else
@pytest.mark.parametrize(
    ("command", "encoding", "errors"),
    [
        *(
            pytest.param(
                *(command, "ascii", "surrogateescape"),
                marks=[pytest.mark.long("pages of help")] if command in REPEATED else [],
            )
            for command in COMMANDS
        ),
        *((command, "iso-8859-1", "strict") for command in COMMANDS[:3]),
    ],
)
def test_a_subcommand_prints_as_in_utf_8_but_for_letters(
    command: str, encoding: str, errors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Printed(monkeypatch, command.split(), "utf-8")
    found = Printed(monkeypatch, command.split(), encoding, errors)
    assert found.code == whole.code
    for some, wanted in ((found.out, whole.out), (found.err, whole.err)):
        if "--help" in command:  # whose frames differ
            assert WORD.findall(some.decode(encoding)) == WORD.findall(wanted.decode())
            continue
        lines, told = some.decode(encoding).splitlines(), wanted.decode().splitlines()
        assert len(lines) == len(told)
        for line, before in zip(lines, told, strict=True):
            assert line == before if before.isascii() else line


@pytest.mark.parametrize("encoding", ["iso-8859-1", "ascii", "utf-8", "utf-16"])
@pytest.mark.parametrize("command", ["datasets --json", "info multi-pie --json"])
def test_json_says_the_same(command: str, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Printed(monkeypatch, command.split(), "utf-8")
    found = Printed(monkeypatch, command.split(), encoding)
    assert json.loads(found.out.decode(encoding)) == json.loads(whole.out)


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("2 × 32 ± 5, ≥ 3 … “é”", b'2 x 32 +- 5, >= 3 ... "e"'),
        ("Łódź, 漢", b"Lodz, ?"),
        ("name \udcff.png", b"name \xff.png"),
        ("─ 3 µs → 4", b"- 3 us -> 4"),
    ],
)
def test_letters_are_spelled_with_those_that_are_there(
    said: str, printed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setsup_cli.dispatch._run", lambda words: sys.stdout.write(f"{said}\n") and 0)
    assert Printed(monkeypatch, [], "ascii").out == printed + b"\n"


def test_bytes_of_a_name_that_is_no_text_are_printed_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Printed(monkeypatch, ["info", "a\udcffb"], "utf-8")
    assert (found.code, found.out) == (2, b"")
    assert b"a\xffb" in found.err or b"a\\udcffb" in found.err
