import json
import logging
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from setsup_cli.commands import cache, sample
from setsup_cli.commands import eval as evaluate
from setsup_cli.dispatch import subcommands
from setsup_cli.main import main
from setsup_cli.parsing.parser import Subcommand, parse, parse_known
from tests.cli.refusals import refused

Run = Callable[..., Any]

PROBE = """
import sys
from setsup_cli.main import main
from setsup_cli.parsing.parser import Subcommand, parse, parse_known
code = main(sys.argv[1:])
heavy = {"numpy", "torch", "PIL", "pyarrow", "h5py", "pandas", "scipy", "OpenGL", "moderngl", "rich"}
if {"-h", "--help"} & set(sys.argv[2:]):
    heavy.remove("rich")  # prints the help of subcommands
sys.stderr.write(" ".join(sorted(heavy & set(sys.modules))))
sys.exit(code)
"""


def spawned(*words: str, probe: str = PROBE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", probe, *words], capture_output=True, text=True, check=False, timeout=120
    )


# modules stay once they are imported: one process tells of all subcommands, and names the first that is at fault
PROBE_HELP = """
import sys
from setsup_cli.main import main
heavy = {"numpy", "torch", "PIL", "pyarrow", "h5py", "pandas", "scipy", "OpenGL", "moderngl"}
for words in (["--help"], ["--version"], *([subcommand, "--help"] for subcommand in sys.argv[1:])):
    print("asked", *words)
    code = main(words)
    found = heavy & set(sys.modules) | ({"rich"} & set(sys.modules) if len(words) == 1 else set())
    if code or found:
        sys.exit(f"{words}: code {code}, imported {sorted(found)}")
"""


@pytest.mark.long("subprocesses")
def test_help_imports_nothing_heavy() -> None:
    done = spawned(*(subcommand for subcommand in subcommands() if subcommand != "train"), probe=PROBE_HELP)
    assert (done.returncode, done.stderr) == (0, "")
    shown = re.split("^asked ", done.stdout, flags=re.MULTILINE)[1:]
    assert len(shown) == 2 + len(subcommands()) - 1
    assert all(len(one.splitlines()) > 1 for one in shown)


PROBE_LISTS = """
import sys
from setsup_cli.main import main
for words in (["train"], ["train", "--help"], ["train", "abc/fig3a", "--help"], ["report"]):
    print("asked", *words)
    code = main(words)
    found = {"torch", "OpenGL", "moderngl", "pandas"} & set(sys.modules)
    if code or found:
        sys.exit(f"{words}: code {code}, imported {sorted(found)}")
"""


@pytest.mark.long("subprocesses")
def test_presets_and_reports_are_listed_without_torch() -> None:
    done = spawned(probe=PROBE_LISTS)
    assert (done.returncode, done.stderr) == (0, "")
    shown = re.split("^asked ", done.stdout, flags=re.MULTILINE)[1:]
    assert [len(one.splitlines()) > 1 for one in shown] == [True] * 4


def test_listing_imports_no_adapter() -> None:
    done = spawned("datasets", "--json")
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "level"), [([], logging.INFO), (["-q"], logging.WARNING), (["--json", "--quiet"], logging.WARNING)]
)
def test_quiet_silences_what_is_logged_below_warnings(
    monkeypatch: pytest.MonkeyPatch, words: list[str], level: int
) -> None:
    found = []

    def run(options: Any) -> int:
        found.append((options.json, logging.getLogger("setsup").level))
        return 0

    monkeypatch.setattr(cache, "run", run)
    assert main(["cache", *words]) == 0
    assert found == [("--json" in words, level)]


def test_help_lists_every_subcommand(setsup: Run) -> None:
    for words in (["--help"], ["-h"], ["help"]):
        found = setsup(*words)
        assert found.code == 0
        assert all(f"  {subcommand} " in found.out for subcommand in subcommands())


def test_every_subcommand_has_help(setsup: Run) -> None:
    for subcommand in subcommands():
        found = setsup(subcommand, "--help")
        assert found.code == 0
        assert f"Usage: setsup {subcommand}" in found.out


def test_version(setsup: Run) -> None:
    found = setsup("--version")
    assert found.code == 0
    assert found.out.startswith("setsup ")
    assert found.out.strip() != "setsup"


def test_an_unknown_subcommand_has_near_matches(setsup: Run) -> None:
    found = setsup("smaple")
    assert (found.code, found.out) == (2, "")
    assert found.err == "setsup: unknown subcommand 'smaple'; did you mean 'sample'? (`setsup --help` lists them)\n"


def test_an_option_before_the_subcommand(setsup: Run) -> None:
    refused(setsup("--json", "datasets"), "`setsup datasets --json`")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["sample", "--inactiv", "shape"], "unknown option '--inactiv'; did you mean '--inactive'?"),
        (
            ["info", "--jsno"],
            "unknown option '--jsno'; did you mean '--json'? (`setsup info --help` lists the options)",
        ),
        (["doctor", "-x"], "unknown option '-x'; choose from --json, --quiet"),
        (["sample", "--size", "abc"], "--size must be an integer, not 'abc'"),
        (["sample", "--size=3.5"], "--size must be an integer, not '3.5'"),
        (["sample", "--size", "None"], "--size must be an integer, not 'None'"),
        (["sample", "--seed"], "--seed requires a value: `--seed N`"),
        (["sample", "--inactive"], "--inactive requires a value: `--inactive FACTOR ...`"),
        (["sample", "--inactive", "--quiet"], "--inactive requires a value: `--inactive FACTOR ...`"),
        (["bench", "--inactive"], "--inactive requires a value"),
        (["sample", "--json=3"], "--json takes no value; remove '=3'"),
        (["datasets", "--json=true"], "--json takes no value; remove '=true'"),
        (["fetch", "mnist", "--check=false"], "--check takes no value; remove '=false'"),
        (["--install-completion", "extra"], "unexpected argument 'extra'"),
        (["train", "abcd"], "unknown preset 'abcd'; did you mean 'abc/fig3d'?"),
        (["sample", "--seed", "1", "--seed", "2"], "--seed is specified twice; specify it once"),
        (
            ["sample", "--active", "a", "--active", "b", "c"],
            "specify it once, with all its values: `--active FACTOR ...`",
        ),
        (["sample", "mnist", "--seed", "1", "shape"], "unexpected argument 'shape' (`setsup sample --help`"),
        (["datasets", "extra"], "unexpected argument 'extra'"),
        (["shard", "--size", "3"], "--size requires 2 values: `--size HEIGHT WIDTH`"),
        (["shard", "--format", "gif"], "--format must be one of png, webp, jpeg, npy, not 'gif'"),
        (["fetch"], "`setsup fetch` requires the argument DATASET: name listed by `setsup datasets`"),
    ],
)
def test_a_usage_error_is_one_sentence(setsup: Run, words: list[str], sentence: str) -> None:
    refused(setsup(*words), sentence)


def test_words_become_options() -> None:
    given = Subcommand("sample", sample.Options, "")
    words = ["shapes3d", "--seed", "-1", "--where", "scale < 1", "--inactive", "a", "b", "--size=4", "--json", "-q"]
    assert parse(given, words) == sample.Options(
        "shapes3d", seed=-1, where="scale < 1", inactive=("a", "b"), size="4", json=True, quiet=True
    )
    assert parse(given, ["--out", "x y", "mnist"]) == sample.Options("mnist", out=Path("x y"))
    assert parse(Subcommand("cache", cache.Options, ""), ["--clear"]) == cache.Options(clear=())


def test_words_before_an_option_of_unknown_values_are_arguments() -> None:
    """Which settings there are is known only when the preset or the runs are."""
    runs = Subcommand("eval", evaluate.Options, "")
    given = parse_known(runs, ["runs/a", "runs/b", "--components.maps", "pca", "tsne", "--device", "cpu", "--help"])
    assert given == evaluate.Options((Path("runs/a"), Path("runs/b")), device="cpu")
    assert parse_known(runs, ["--components.samples", "50", "runs/a"]) == evaluate.Options((Path("runs/a"),))
    assert parse_known(runs, ["--components.samples=50", "runs/a"]) == evaluate.Options((Path("runs/a"),))


@pytest.mark.long("subprocesses")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_shown_and_installed_on_request(shell: str, tmp_path: Path) -> None:
    """The startup file ends as it was with the very lines that were shown, once, also where it is a link."""
    environment = {name: value for name, value in os.environ.items() if name not in ("ZSH", "ZSH_CUSTOM")}
    before = {"bash": "alias ll='ls -l'", "zsh": "autoload -Uz compinit && compinit\n", "fish": ""}[shell]
    home, dotfiles = tmp_path / "my home", tmp_path / "dotfiles"
    home.mkdir()
    dotfiles.write_text(before)
    start = home / f".{shell}rc"
    start.symlink_to(dotfiles)

    def install(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", PROBE, "--install-completion", "--shell", shell, *words],
            capture_output=True, text=True, check=False, timeout=120, env={**environment, "HOME": str(home)},
        )  # fmt: skip
        assert (done.returncode, "torch" in done.stderr) == (0, False), done.stderr
        return done.stdout

    shown = install()
    assert [path.name for path in home.rglob("*")] == [start.name]  # not even folders
    assert dotfiles.read_text() == before
    lines = [line.removeprefix("    ") for line in shown.splitlines() if line.startswith("    ")]
    assert len(lines) == (0 if shell == "fish" else 2)
    install("--yes")
    kept, added = before.splitlines(), start.read_text().splitlines()
    assert added == (lines + kept if shell == "zsh" else kept + lines)
    assert start.is_symlink()
    (script,) = (path for path in home.rglob("*") if path.is_file() and not path.is_symlink())
    assert "--unconstrained" in script.read_text()
    assert str(script) in shown
    install("--yes")
    assert start.read_text().splitlines() == added
    if shell == "bash":
        done = subprocess.run(
            ["bash", "-c", f". '{start}'; complete -p setsup"], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("subcommand", "name"),
    [
        ("fetch", "mnist"),
        ("explore", "mnist"),
        ("train", "dcodr/cars3d"),
        ("report", "factors"),
    ],
)
def test_names_are_completed(setsup: Run, subcommand: str, name: str) -> None:
    completed = setsup("__complete", subcommand, name[:2])
    assert completed.code == 0
    names = [line.split("\t")[0] for line in completed.out.splitlines()]
    assert name in names
    assert max(map(len, completed.out.splitlines())) < 200, "a line has a name and what it shows"


def test_without_arguments_three_commands_to_try(setsup: Run) -> None:
    screen = setsup()
    assert screen.code == 0
    commands = [line.strip() for line in screen.out.splitlines() if line.startswith("  setsup ")]
    assert len(commands) == 3
    for command in commands:
        assert setsup(*command.split()[1:2], "--help").code == 0
    assert "setsup --help" in screen.out


def test_ctrl_c_during_imports_is_no_traceback() -> None:
    code = (
        "import sys\n"
        "from setsup_cli.main import main\n"
        "assert {name for name in sys.modules if name.startswith('setsup')} == {'setsup_cli', 'setsup_cli.main'}\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'cyclopts': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "sys.exit(main(['info']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (130, "setsup: stopped\n")


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "setsup: stopped\n"),
        (MemoryError(), 2, "setsup: not enough memory"),
    ],
)
def test_interruptions(
    setsup: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, sentence: str
) -> None:
    def fail(options: object) -> int:
        raise error

    monkeypatch.setattr(sample, "run", fail)
    found = setsup("sample")
    assert (found.code, found.out) == (code, "")
    assert found.err.startswith(sentence)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_reader_that_leaves_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-c", "import sys; from setsup_cli.main import main; sys.exit(main(['datasets']))"]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, check=False, timeout=120)
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.long("kills and interruptions")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("words", [["datasets"], ["info", "--json"], ["--help"], ["fetch", "--help"]])
def test_a_full_disk_under_standard_output_gets_one_sentence(words: list[str]) -> None:
    command = f"import sys; from setsup_cli.main import main; sys.exit(main({words}))"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", command], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120
        )
    sentence = "cannot write to standard output: No space left on device"
    told = json.loads(done.stderr)["error"] if "--json" in words else done.stderr
    assert told == (sentence if "--json" in words else f"setsup: {sentence}\n")
    assert done.returncode == 2


@pytest.mark.long("kills and interruptions")
@pytest.mark.skipif(sys.platform == "win32", reason="descriptors of POSIX")
@pytest.mark.parametrize("words", ["datasets --json", "--help", "info mnist"])
def test_standard_output_that_is_closed_gets_one_sentence(words: str, tmp_path: Path) -> None:
    command = f"import sys; from setsup_cli.main import main; sys.exit(main({words.split()}))"
    code = shlex.join([sys.executable, "-c", command])
    done = subprocess.run(["sh", "-c", f"{code} >&-"], capture_output=True, text=True, timeout=120)
    assert "cannot write to standard output: Bad file descriptor" in done.stderr
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    # the others are missed by nobody
    done = subprocess.run(["sh", "-c", f"{code} 2>&- <&-"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_the_log_of_the_library_goes_to_standard_error(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    def log(options: object) -> int:
        logging.getLogger("setsup").info("process 1 waits")
        return 0

    monkeypatch.setattr(sample, "run", log)
    found = setsup("sample")
    assert (found.code, found.out, found.err) == (0, "", "setsup: process 1 waits\n")
    assert logging.getLogger("setsup").handlers == []


def test_words_of_the_process_are_the_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["setsup", "--version"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("setsup ")
