"""Completion in shells: what installing it would write, shown first, and written on request."""

import os
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from cyclopts import App, Parameter
from cyclopts.completion.detect import detect_shell

from setsup.errors import SetsupError
from setsup.files.atomic import written
from setsup.files.disk import disk_errors, read_errors
from setsup_cli.output import say

__all__ = ["Start", "find_start", "install", "script_path"]

Shell = Literal["bash", "zsh", "fish"]


class Start(NamedTuple):
    """Lines of a shell's startup file that load the script, and what shows that it has them.

    zsh needs them before all others.
    """

    file: Path
    lines: tuple[str, ...]
    known: str
    first: bool

    def content(self, before: bytes) -> bytes:
        """The content of the file with the lines, or as it is where it has them."""
        lines = os.fsencode("".join(f"{line}\n" for line in self.lines))
        if os.fsencode(self.known) in before and (not self.first or b"fpath=" in before):
            return before
        if self.first:
            return lines + before
        return before + (b"\n" if before and not before.endswith(b"\n") else b"") + lines


def script_path(shell: Shell) -> Path:
    """The file of the script where the shell looks for such files."""
    home = Path.home()
    if shell == "bash":
        return home / ".local/share/bash-completion/completions/setsup"
    if shell == "fish":
        return home / ".config/fish/completions/setsup.fish"
    return (_oh_my_zsh() or home / ".zsh") / "completions/_cyclopts_setsup"


def find_start(shell: Shell, script: Path) -> Start | None:
    """What the startup file needs, or None where the shell finds the script by itself."""
    if shell == "bash":
        load = f'[ -f "{script}" ] && . "{script}"'
        return Start(Path.home() / ".bashrc", ("# Load setsup completion", load), load, first=False)
    custom = _oh_my_zsh()
    if shell == "zsh" and (custom is None or script.parent != custom / "completions"):
        load = f'fpath=("{script.parent}" $fpath)'
        return Start(Path.home() / ".zshrc", ("# setsup completions", load), str(script.parent), first=True)
    return None


def install(
    app: App,
    *,
    shell: Shell | None = None,
    output: Annotated[Path | None, Parameter(name=["-o", "--output"])] = None,
    yes: bool = False,
) -> None:
    """Print what installing completion of a shell writes, by default of the shell in which this runs; or write it."""
    name = shell or detect_shell()
    if name not in ("bash", "zsh", "fish"):
        raise SetsupError(f"completion for {name} is not supported; choose another shell: --shell bash, zsh or fish")
    script = (output or script_path(name)).absolute()
    start = find_start(name, script)
    if start is not None:
        file = start.file.resolve()  # startup files are often links into a folder of their own
        with read_errors(file):
            before = file.read_bytes() if file.exists() else b""
        after = start.content(before)
        if after == before:
            start = None
    if not yes:
        say(f"would write {script}")
        if start is not None:
            say(f"would add to the {'beginning' if start.first else 'end'} of {start.file}:\n")
            say("".join(f"    {line}\n" for line in start.lines))
        say("nothing was written; --yes writes it")
        return
    with disk_errors(script), written(script) as part:
        part.write_text(app.generate_completion(shell=name), encoding="utf-8")
    say(f"wrote {script}")
    if start is not None:
        with disk_errors(file):
            file.write_bytes(after)
        say(f"added to {start.file}: {start.lines[-1]}")
    say("completion is available in new shells")


def _oh_my_zsh() -> Path | None:
    """The folder of the user's own files of oh-my-zsh, which looks for completions in it."""
    for name, below in (("ZSH_CUSTOM", ""), ("ZSH", "custom")):
        folder = os.environ.get(name)
        if folder and Path(folder).is_dir():
            return Path(folder) / below
    return None
