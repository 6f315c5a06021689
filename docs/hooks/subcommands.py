"""Help texts and outputs of the command, generated while the site is built."""

import io
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout

from setsup_cli.dispatch import subcommands
from setsup_cli.main import main

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def table() -> str:
    """Table of the subcommands."""
    rows = [f"| [`setsup {name}`](#{name}) | {line} |" for name, line in subcommands().items()]
    return "\n".join(["| subcommand | what it does |", "|---|---|", *rows])


def help_text(subcommand: str) -> str:
    """Help of a subcommand."""
    return f"```text\n{_printed(f'setsup {subcommand} --help', 0)}\n```"


def output(command: str) -> str:
    """A command and what it prints in an empty folder."""
    return f"```console\n$ {command}\n```\n\n```text\n{_printed(command, 0)}\n```"


def refused(command: str) -> str:
    """A command that setsup refuses, and how."""
    return f"```console\n$ {command}\n```\n\n```text\n{_printed(command, 2)}\n```"


def _printed(command: str, expected: int) -> str:
    """Print of a command, which must end with the expected code; nothing in it depends on who builds the site."""
    stream = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        with _environment(COLUMNS="100", SETSUP_CACHE=folder, SETSUP_DATA=""), redirect_stdout(stream):
            with redirect_stderr(stream):
                code = main(shlex.split(command)[1:])
    text = _STYLE.sub("", stream.getvalue()).rstrip()
    if code != expected:
        raise SystemExit(f"`{command}` ended with {code} in place of {expected}: {text}")
    return "\n".join(line.rstrip() for line in text.splitlines())


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
