"""A run of the benchmarks: what it keeps, that it goes on, what it says at the end, and what stands in the README."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import install_peers, readme
from benchmarks.measure import Spread, shrunk, sized
from benchmarks.rows import Row

Rows = Callable[[bool], Iterator[Row]]


def row(topic: str, what: str = "one") -> Row:
    return Row(topic, what, "1 s", "a peer", "2 s", Spread(2.0, 1.9, 2.1))


def fine(full: bool) -> Iterator[Row]:
    yield row("fine")
    yield row("fine", "two")


def failing(full: bool) -> Iterator[Row]:
    yield row("failing")
    raise ModuleNotFoundError("No module named 'av'")


def stopped(full: bool) -> Iterator[Row]:
    yield row("stopped")
    raise KeyboardInterrupt


def empty(full: bool) -> Iterator[Row]:
    yield from ()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Run topics of these tests, and give the exit code and what was kept."""
    monkeypatch.setattr(command, "report", list)
    monkeypatch.setattr(command, "missing", dict)
    monkeypatch.setenv("SETSUP_BENCH_SHRINK", "0")

    def run(*topics: Rows, words: tuple[str, ...] = ()) -> tuple[int, dict[str, Any]]:
        monkeypatch.setattr(command, "TOPICS", {topic.__name__: 60 for topic in topics})
        for topic in topics:
            module = ModuleType(f"benchmarks.{topic.__name__}")
            module.rows = topic  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, module.__name__, module)
        kept = tmp_path / "kept.json"
        code = command.main(["--json", str(kept), *words])
        return code, json.loads(kept.read_text(encoding="utf-8"))

    return run


def test_a_topic_that_fails_costs_only_its_own_rows(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, kept = run(failing, empty, fine)
    assert code == 1
    assert [one["topic"] for one in kept["rows"]] == ["failing", "fine", "fine"]
    assert kept["failed"].keys() == {"failing", "empty"}
    assert kept["seconds"].keys() == {"failing", "empty", "fine"}
    said = capsys.readouterr()
    assert "failing failed: ModuleNotFoundError: No module named 'av'" in said.err
    assert "empty failed: " in said.err
    assert said.out.count("a peer") == 3


def test_a_whole_run_says_how_long_it_takes_and_ends_well(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, kept = run(fine)
    assert (code, kept["failed"], len(kept["rows"])) == (0, {}, 2)
    assert "1 topic, about 1 minute on two cores" in capsys.readouterr().err.splitlines()[0]


def test_what_was_measured_before_ctrl_c_is_kept_and_shown(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, kept = run(fine, stopped)
    assert (code, len(kept["rows"])) == (130, 3)
    assert capsys.readouterr().out.count("a peer") == 3


def test_each_row_is_kept_before_the_next_is_measured(run: Any, tmp_path: Path) -> None:
    counts = []

    def looking(full: bool) -> Iterator[Row]:
        for _ in range(3):
            yield row("looking")
            counts.append(len(json.loads((tmp_path / "kept.json").read_text(encoding="utf-8"))["rows"]))

    run(looking)
    assert counts == [1, 2, 3]


def test_a_peer_that_is_missing_is_named_and_ends_badly(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "missing", lambda: {"disent": "No module named 'disent'"})
    code, kept = run(fine)
    assert (code, len(kept["rows"])) == (1, 2)
    assert "disent was not measured: No module named 'disent'" in capsys.readouterr().err


def test_topics_know_when_they_are_shrunk(run: Any) -> None:
    seen = []

    def sizes(full: bool) -> Iterator[Row]:
        seen.append((shrunk(), sized(10_000_000, 10)))
        yield row("sizes")

    run(sizes)
    code, kept = run(sizes, words=("--shrink",))
    assert seen == [(False, 10_000_000), (True, 10)]
    assert (code, kept["shrunk"]) == (0, True)


def test_the_readme_has_the_figures_that_are_kept() -> None:
    kept = json.loads(readme.KEPT.read_text(encoding="utf-8"))
    text = readme.README.read_text(encoding="utf-8")
    assert readme.filled(text, kept) == text, "run python -m benchmarks.readme"
    measured = {row["topic"] for row in kept["rows"]}
    for line in readme.LINES:
        if line.topic in measured:
            assert f"| {line.what} |" in text, f"no row of {line.topic} is called as this line has it"


@pytest.mark.parametrize("broken", [None, "disent", "numba"])
def test_peers_are_installed_over_the_environment_at_once_and_else_one_by_one(
    broken: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def pip(command: list[str], **how: Any) -> Any:
        if "venv" in command:
            (tmp_path / "lib" / f"python3.{sys.version_info.minor}" / "site-packages").mkdir(parents=True)
            return None
        names = command[command.index("--constraint") + 2 :]
        asked.append(names)
        return SimpleNamespace(returncode=int(broken in names), stderr=f"no wheel for {broken}\n")

    monkeypatch.setattr(subprocess, "run", pip)
    peers = {words[0]: words[1:] for words in install_peers.requirements()}
    assert install_peers.install(tmp_path) == (broken is not None)
    (layer,) = (tmp_path / "lib").glob("*/site-packages/*.pth")
    assert "site.addsitedir(" in layer.read_text(encoding="utf-8")
    one_by_one = sum(peers[name] == peers[broken] for name in peers) if broken else 0
    assert len(asked) == len({tuple(options) for options in peers.values()}) + one_by_one
    assert {name for names in asked for name in names if name in peers} == {*peers}
    for names in asked:
        options = [name.removeprefix(f"{tmp_path}/") for name in names if name not in peers]
        assert options == peers[names[0]], "an older release has its folder in that of the environment"
    assert (tmp_path / ".peers").exists() == (broken is None), "what lacks is tried again"
    assert (f"{broken} does not install, and is left out: no wheel" in capsys.readouterr().out) == (broken is not None)
