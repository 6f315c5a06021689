import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from setsup_cli.commands import cache, sample
from setsup_cli.main import VERBS, main
from setsup_cli.parsing.usage import check_words

Run = Callable[..., Any]

PROBE = """
import sys
from setsup_cli.main import main
code = main(sys.argv[1:])
heavy = {"numpy", "torch", "PIL", "pyarrow", "h5py", "pandas", "scipy", "OpenGL", "moderngl", "typeguard", "rich"}
sys.stderr.write(" ".join(sorted(heavy & set(sys.modules))))
sys.exit(code)
"""


def spawned(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("words", [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS if verb != "train")])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    done = spawned(*words)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("words", [["train"], ["train", "--help"], ["train", "abc/fig3a", "--help"], ["report"]])
def test_presets_and_reports_are_listed_without_torch(words: list[str]) -> None:
    done = spawned(*words)
    assert done.returncode == 0
    assert not {"torch", "OpenGL", "moderngl", "pandas"} & set(done.stderr.split())
    assert done.stdout


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


def test_help_names_every_verb(setsup: Run) -> None:
    for words in (["--help"], ["-h"], ["help"], []):
        found = setsup(*words)
        assert found.code == 0
        assert all(f"  {verb} " in found.out for verb in VERBS)


def test_every_verb_explains_itself(setsup: Run) -> None:
    for verb in VERBS:
        found = setsup(verb, "--help")
        assert found.code == 0
        assert f"usage: setsup {verb}" in found.out


def test_version(setsup: Run) -> None:
    found = setsup("--version")
    assert found.code == 0
    assert found.out.startswith("setsup ")
    assert found.out.strip() != "setsup"


def test_an_unknown_verb_has_near_matches(setsup: Run) -> None:
    found = setsup("smaple")
    assert (found.code, found.out) == (2, "")
    assert found.err == "setsup: there is no verb 'smaple'; did you mean 'sample'? (`setsup --help` lists them)\n"


def test_an_option_before_the_verb(setsup: Run) -> None:
    found = setsup("--json", "datasets")
    assert found.code == 2
    assert "`setsup datasets --json`" in found.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["sample", "--inactiv", "shape"], "unknown option '--inactiv'; did you mean '--inactive' or '--active'?"),
        (["info", "--jsno"], "unknown option '--jsno'; did you mean '--json'? (`setsup info --help` explains them)"),
        (["doctor", "-v"], "unknown option '-v'; known: --json"),
        (["sample", "--size", "abc"], "--size must be a whole number, not 'abc'"),
        (["sample", "--size=3.5"], "--size must be a whole number, not '3.5'"),
        (["sample", "--size", "None"], "--size must be a whole number, not 'None'"),
        (["sample", "--seed"], "nothing stands behind --seed: give it as `--seed N`"),
        (["sample", "--inactive"], "nothing stands behind --inactive: give it as `--inactive FACTOR ...`"),
        (["sample", "--inactive", "--json"], "nothing stands behind --inactive: give it as `--inactive FACTOR ...`"),
        (["bench", "--inactive"], "nothing stands behind --inactive"),
        (["sample", "--json=3"], "--json takes no value, so leave out '=3'"),
        (["sample", "--seed", "1", "--seed", "2"], "--seed is given twice; give it once, as in `--seed 2`"),
        (["sample", "--active", "a", "--active", "b", "c"], "give it once, as in `--active a b c`"),
        (["sample", "mnist", "--seed", "1", "shape"], "'shape' is one word too many: 'mnist' was taken for the data"),
        (["datasets", "extra"], "`setsup datasets` takes no 'extra'"),
        (["fetch"], "name a data set, as in `setsup fetch mnist` (`setsup datasets` lists them)"),
    ],
)
def test_ill_formed_words_get_one_plain_sentence(setsup: Run, words: list[str], sentence: str) -> None:
    found = setsup(*words)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("setsup: ")
    assert found.err.count("\n") == 1
    assert sentence in found.err


def test_words_that_are_well_formed_are_let_through() -> None:
    for words in (
        ["shapes3d", "--seed", "-1", "--where", "scale < 1", "--inactive", "a", "b", "--size=4", "--json"],
        ["--inactive=a", "--out", "x y", "mnist"],
        ["--kinds", "a=nominal", "b=cyclic", "--help", "--whatever"],
    ):
        check_words("sample", sample.Options, words)
    check_words("cache", cache.Options, ["--clear"])


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "setsup: stopped\n"),
        (MemoryError(), 2, "setsup: this needs more memory"),
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
    assert done.stderr == "setsup: standard output cannot be written: No space left on device\n"
    assert done.returncode == 2


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
