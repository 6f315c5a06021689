"""A run remembers the file of the user's own that holds its preset: what reads the run needs no option."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import find_preset, open_run, preset_registry, train  # noqa: E402
from tests.cli.refusals import refused  # noqa: E402

Run = Callable[..., Any]

OWN = Path(__file__).parent / "own_method.py"
FOLDER = "runs/own/mean/seed-0"
CHANGED = "FILE CHANGED: the file of the preset has changed since the training"

READING = (
    ["eval", FOLDER],
    ["embed", FOLDER, "--rows", "9"],
    ["export", FOLDER, "weights.pt"],
    ["report", "own/mean"],
    ["explore", FOLDER, "--export", "page"],
)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The file of presets in the folder where the run is trained."""
    (tmp_path / "code").mkdir()
    return Path(shutil.copy(OWN, tmp_path / "code" / "mine.py"))


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is run once in a process, which is all that a command lasts."""
    found = preset_registry._run.__wrapped__
    monkeypatch.setattr(preset_registry, "_run", found)


@pytest.fixture
def trained(setsup: Run, digits: Path, mine: Path) -> Path:
    found = setsup("train", "code/mine.py:own/mean", "--root", digits, "--steps", 3)
    assert found.code == 0, found.err
    return Path(FOLDER)


@pytest.mark.long("trainings")
class TestARunRemembersItsFile:
    def test_no_subcommand_needs_an_option(
        self, setsup: Run, trained: Path, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = json.loads((trained / "run.json").read_text())
        assert kept["preset_file"] == str(mine.resolve())
        monkeypatch.chdir("code")  # the path that was typed leads nowhere from here
        shutil.move("../runs", "runs")
        for words in READING:
            found = setsup(*words)
            assert found.code == 0, found.err
        (printed,) = setsup("eval", FOLDER, "--json").json
        ((line,),) = (row["lines"] for row in setsup("report", "own/mean", "--json").json["rows"])
        value = printed["evaluations"]["spread"]["values"]["deviation"]
        assert line["values"]["spread: deviation"]["mean"] == pytest.approx(value)

    def test_a_file_that_was_moved_is_named_in_one_sentence(self, setsup: Run, trained: Path, mine: Path) -> None:
        before = mine.resolve()
        moved = mine.rename("moved.py")
        for words in READING:
            found = setsup(*words)
            assert (found.code, found.out, found.err.count("\n")) == (2, "", 1), words
            assert (
                f"{before}, which no longer exists; pass the file at its new path, as in --preset mine.py" in found.err
            )
        for words in READING:
            assert setsup(*words, "--preset", moved).code == 0, words

    def test_a_file_that_has_changed_is_said(self, setsup: Run, trained: Path, mine: Path) -> None:
        mine.write_text(mine.read_text() + "\n# changed\n")
        for words in (READING[0], READING[1], READING[2]):
            found = setsup(*words)
            assert (found.code, sum(line.startswith(CHANGED) for line in found.out.splitlines())) == (0, 1), words
        assert "the file of own/mean has changed since this run was trained" in setsup(*READING[3]).out
        mine.write_text(mine.read_text().replace("own/mean", "own/men"))
        assert "no longer defines that preset: " in setsup(*READING[0]).err

    def test_a_run_that_is_resumed_from_elsewhere_remembers_that_place(
        self, setsup: Run, trained: Path, mine: Path, digits: Path
    ) -> None:
        moved = mine.rename("moved.py")
        assert setsup("train", f"{moved}:own/mean", "--root", digits, "--steps", 3).code == 0
        assert json.loads((trained / "run.json").read_text())["preset_file"] == str(moved.resolve())
        assert setsup("eval", FOLDER).code == 0

    def test_what_is_printed_to_be_copied_runs(self, setsup: Run, trained: Path, watched: None, digits: Path) -> None:
        found = setsup("train", "code/mine.py:own/mean", "--root", digits, "--steps", 3)
        (told,) = (line for line in found.err.splitlines() if line.startswith("next: setsup "))
        assert told == f"next: setsup eval {FOLDER}"
        found = setsup(*told.removeprefix("next: setsup ").split())
        assert found.code == 0
        (told,) = (line for line in found.err.splitlines() if line.startswith("next: setsup "))
        assert setsup(*told.removeprefix("next: setsup ").split()).code == 0

    def test_no_file_is_run_for_the_report_of_another(self, setsup: Run, trained: Path, mine: Path) -> None:
        mine.write_text("raise SystemExit('it was run')")
        assert setsup("report", "abc/fig4a").code == 0
        assert setsup("report", "--all").code == 0


@pytest.mark.parametrize("name", ["own/men", "mean"])
def test_a_report_that_is_not_known_says_where_own_ones_are(setsup: Run, name: str) -> None:
    found = setsup("report", name)
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "for a report of your own, pass its file, as in --preset my_method.py" in found.err


def test_a_report_of_ones_own_names_no_paper(setsup: Run, mine: Path) -> None:
    told = setsup("report", "own/mean", "--preset", mine).out
    assert "paper" not in told
    assert f"not run with the preset's own settings:\n  setsup train {mine}:own/mean\n" in told


def test_the_preset_of_a_report_is_in_a_file(setsup: Run) -> None:
    assert "must be a file of presets" in setsup("report", "own/mean", "--preset", "abc/fig3a").err


class TestNamesOfPapers:
    @pytest.fixture
    def taken(self, tmp_path: Path) -> Path:
        path = tmp_path / "taken.py"
        path.write_text(OWN.read_text().replace("own/mean", "abc/fig3a"))
        return path

    @pytest.mark.parametrize("more", [[], ["--dry-run"], ["--print-config"], ["--smoke"]])
    def test_training_is_refused(self, setsup: Run, taken: Path, more: list[str]) -> None:
        found = setsup("train", f"{taken}:abc/fig3a", *more)
        refused(
            found,
            f"{taken} defines the preset 'abc/fig3a', but an installed preset has the same name",
            "rename yours, for example 'mine/fig3a'",
        )
        assert not Path("runs").exists()

    def test_so_it_is_in_python(self, taken: Path, tmp_path: Path) -> None:
        with pytest.raises(SetsupError, match="rename yours, for example 'mine/fig3a'"):
            train(find_preset(f"{taken}:abc/fig3a"), tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_runs_from_before_do_not_count_as_the_papers(self, setsup: Run, taken: Path, tmp_path: Path) -> None:
        from setsup.experiments.runs.run_folder import begin

        run = begin(tmp_path / "runs" / "abc", find_preset(f"{taken}:abc/fig3a"), 0, config={"precision": "float32"})
        path = run.folder / "run.json"
        kept = json.loads(path.read_text())
        for written in (kept, {key: value for key, value in kept.items() if key != "preset_file"}):
            path.write_text(json.dumps(written))
            found = setsup("report", "abc/fig3a")
            assert "is omitted: the preset 'abc/fig3a' of the run is defined in your own" in " ".join(found.out.split())
        with pytest.raises(SetsupError, match="if the preset is in a file of your own, pass the file"):
            open_run(run.folder)
