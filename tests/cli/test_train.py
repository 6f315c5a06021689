"""``setsup train``: presets are listed and explained, settings reach the run, and a run goes on where it stopped."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup as library
from setsup.experiments import preset_registry
from setsup.factors import FactorTable
from tests.cli.refusals import refused

Run = Callable[..., Any]

OWN = Path(__file__).parent / "own_method.py"
MEAN = f"{OWN}:own/mean"
ROOT = Path(__file__).resolve().parents[2]


def described(folder: Path | str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(folder) / "run.json").read_text())
    return found


def words_of(text: str) -> str:
    """A help without its frames and line breaks."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())


class TestListing:
    @pytest.fixture(autouse=True)
    def _wide(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "160")

    def test_every_preset_has_a_line(self, setsup: Run) -> None:
        listed = setsup("train", "--json").json
        assert {"abc/fig3a", "abc/mnist"} <= {entry["preset"] for entry in listed}
        for words in (["train"], ["train", "--help"]):
            found = setsup(*words)
            assert (found.code, found.err) == (0, "")
            shown = " ".join(found.out.split())
            for paper in {entry["preset"].partition("/")[0] for entry in listed}:
                count = sum(entry["preset"].partition("/")[0] == paper for entry in listed)
                assert f"{paper}: {count}" in shown
        for paper in ("abc", "orbits", "pixels", "cmc", "dcodr"):
            lines = [line.split() for line in setsup("train", paper).out.splitlines()]
            of_paper = [entry for entry in listed if entry["preset"].partition("/")[0] == paper]
            assert lines == [[entry["preset"], *entry["shows"].split()] for entry in of_paper]
            assert setsup("train", paper, "--json").json == of_paper

    def test_a_preset_explains_its_settings(self, setsup: Run) -> None:
        found = setsup("train", "abc/fig3a", "--help")
        assert (found.code, found.err) == (0, "")
        shown = words_of(found.out)
        assert "Usage: setsup train [PRESET] [OPTIONS]" in shown
        assert "two components of the embeddings" in shown
        assert "--steps -n N Optimiser steps. [default: 2000]" in shown
        assert "--sampler.inactive [TEXT ...] Factors fixed in each set. [default: wall_hue]" in shown
        assert "--method.similarity l2sq|l2|l1|linf|cosine Similarity of embeddings. [default: l2sq]" in shown
        halved = "--method.halve-every N|none Halve the learning rate every N steps; by default it is constant."
        assert f"{halved} [default: none]" in shown
        assert "10 seeds" in shown
        assert not re.search(r"--(name|shows|evaluations|shrunk)\b", shown)
        assert "Cannot be combined with --clip-norm. [default: none]" in shown  # the option, not the argument
        assert "on the data that --validation.split, --validation.where and --validation.dataset select." in shown
        assert "`" not in shown.partition("Data settings")[2]  # backticks are of Python's arguments

    def test_marks_of_settings_are_explained_and_options_have_their_whole_names(self, setsup: Run) -> None:
        shown = words_of(setsup("train", "cmc/imagenet-alexnet", "--help").out)
        assert "[our choice]: neither the paper nor its published code states this." in shown
        assert "instead of --method.schedule.every." in shown
        assert "[our choice]:" not in words_of(setsup("train", "abc/fig3a", "--help").out)

    def test_the_shrunk_preset_has_other_defaults(self, setsup: Run) -> None:
        assert "--steps -n N Optimiser steps. [default: 4]" in words_of(
            setsup("train", "--smoke", "abc/fig3a", "--help").out
        )

    def test_settings_of_a_file_are_explained_from_its_docstrings(self, setsup: Run) -> None:
        shown = words_of(setsup("train", MEAN, "--help").out)
        assert "Settings of Dense, and some that nothing reads." in shown
        assert "--method.width N Numbers of an embedding. [default: 3]" in shown
        assert "--method.flag true|false Truth. [default: true]" in shown
        assert "--method.betas NUMBER NUMBER [default: 0.9 0.99]" in shown
        assert "--method.note TEXT|none [default: some]" in shown
        assert "--method.pairs" not in shown


class TestValidation:
    """A preset without validation gets one from its options."""

    @pytest.mark.long("trainings")
    def test_its_settings_are_options(self, setsup: Run, digits: Path) -> None:
        words = ["train", MEAN, "--root", digits, "--steps", 4, "--validation.draws", 0, "--validation.knn", "digit"]
        found = setsup(*words, "--validation.every", 2, "--validation.split", "test", "--validation.k", 1)
        assert (found.code, found.err) == (0, "")
        assert "validation/knn/digit" in found.out
        assert "validation.every 2 (not 0)" in found.out
        again = setsup(*words, "--json")
        assert again.code == 2
        again = setsup("train", MEAN, "--root", digits, "--steps", 4, "--json")
        assert (again.code, again.err) == (0, ""), "a run is the same without it"
        (run,) = again.json["runs"]
        assert run["metrics"].keys() == {"loss", "validation/knn/digit"}

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["--validation.knn", "digit"], "--validation.knn requires --validation.every N"),
            (["--validation.every", 2], "validation requires Dense.loss(batch)"),
            (["--validation.every", 2, "--validation.draws", 0], "validation has nothing to compute"),
        ],
    )
    def test_one_that_measures_nothing(self, setsup: Run, digits: Path, words: list[str | int], sentence: str) -> None:
        refused(setsup("train", MEAN, "--root", digits, *words), sentence)


class TestItsFile:
    """A method of the user's own, in a file that changes after the run was trained."""

    CHANGED = "FILE CHANGED: the file of the preset has changed since the training"
    RUN = "runs/own/mean/seed-0"

    @pytest.fixture
    def mine(self, tmp_path: Path) -> Path:
        return Path(shutil.copy(str(OWN), tmp_path / "mine.py"))

    def edit(self, mine: Path) -> None:
        """Another process runs the file anew."""
        mine.write_text(mine.read_text().replace("dropout(", "alpha_dropout("))
        preset_registry._run.cache_clear()

    @pytest.mark.long("trainings")
    def test_a_change_is_said_wherever_the_run_is_read(self, setsup: Run, digits: Path, mine: Path) -> None:
        preset = ["--preset", f"{mine}:own/mean"]
        assert setsup("train", f"{mine}:own/mean", "--root", digits, "--steps", 3).code == 0
        kept = json.loads(Path(self.RUN, "run.json").read_text())
        assert kept["preset_file_sha256"] == hashlib.sha256(mine.read_bytes()).hexdigest()
        reading = [
            ["eval", self.RUN, *preset],
            ["embed", self.RUN, *preset],
            ["report", f"{mine}:own/mean", "runs"],
            ["train", f"{mine}:own/mean", "--root", digits, "--steps", 3],
        ]
        for words in reading:
            found = setsup(*words)
            assert (found.code, "FILE CHANGED" in found.out, "has changed" in found.out) == (0, False, False), words
        self.edit(mine)
        for words in reading:
            found = setsup(*words)
            assert found.code == 0, found.err
            if words[0] == "report":
                assert f"{self.RUN}: the file of own/mean has changed since this run was trained" in found.out
                continue
            assert sum(line.startswith(self.CHANGED) for line in found.out.splitlines()) == 1
        assert setsup(*reading[0], "--json").json[0]["file_changed"] is True
        assert setsup(*reading[1], "--json").json["file_changed"] is True
        assert setsup(*reading[3], "--json").json["runs"][0]["file_changed"] is True

    @pytest.mark.long("trainings")
    def test_a_run_that_goes_on_with_another_file_says_so_from_then_on(
        self, setsup: Run, digits: Path, mine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        words = ["train", f"{mine}:own/mean", "--root", digits]
        monkeypatch.setenv("STOP", "SIGTERM 7")
        assert setsup(*words).code == 130
        monkeypatch.delenv("STOP")
        first = hashlib.sha256(mine.read_bytes()).hexdigest()
        self.edit(mine)
        found = setsup(*words)
        assert found.code == 0
        assert [line.startswith(self.CHANGED) for line in found.out.splitlines()].count(True) == 1
        kept = json.loads(Path(self.RUN, "run.json").read_text())
        assert kept["preset_file_sha256"] == first
        (later,) = kept["later"]
        assert (later["from_step"], later["preset_file_sha256"]) == (8, hashlib.sha256(mine.read_bytes()).hexdigest())
        assert self.CHANGED in setsup("eval", self.RUN, "--preset", mine).out

    def test_settings_that_the_file_has_otherwise_now_are_named(self, setsup: Run, digits: Path, mine: Path) -> None:
        assert setsup("train", f"{mine}:own/mean", "--root", digits, "--steps", 3, "--method.width", 4).code == 0
        self.edit(mine)
        lines = setsup("eval", self.RUN, "--preset", mine).out.splitlines()
        settings = "method.width 4 (the file has 3 now), steps 3 (the file has 20 now)"
        assert f"settings are the run's: {settings}" in lines

    def test_weights_that_do_not_fit_the_file_as_it_is_now(self, setsup: Run, digits: Path, mine: Path) -> None:
        assert setsup("train", f"{mine}:own/mean", "--root", digits, "--steps", 3).code == 0
        mine.write_text(mine.read_text().replace("settings.width", "settings.width + 1"))
        self.edit(mine)
        found = setsup("eval", self.RUN, "--preset", mine)
        assert found.code == 2
        (sentence,) = found.err.splitlines()
        assert (
            "do not fit the method of own/mean (layer.weight has the shape (3, 784) in the file, and (4, 784) in"
            in sentence
        )
        assert (
            "the file of the preset has changed since the training; restore the method that the weights were "
            "trained with" in sentence
        )

    def test_nothing_is_said_of_runs_that_kept_no_digest(self, setsup: Run, digits: Path, mine: Path) -> None:
        assert setsup("train", f"{mine}:own/mean", "--root", digits, "--steps", 3).code == 0
        kept = json.loads(Path(self.RUN, "run.json").read_text())
        del kept["preset_file_sha256"]
        Path(self.RUN, "run.json").write_text(json.dumps(kept))
        self.edit(mine)
        found = setsup("eval", self.RUN, "--preset", mine)
        assert (found.code, "CHANGED" in found.out) == (0, False)
        assert setsup("eval", self.RUN, "--preset", mine, "--json").json[0]["file_changed"] is None


@pytest.mark.long("trainings")
def test_a_preset_is_trained_on_a_table(setsup: Run, tmp_path: Path) -> None:
    rows = []
    for row in range(24):
        Image.new("RGB", (40 + row % 3, 32), (9 * row, 100, 50)).save(tmp_path / f"{row}.png")
        rows.append(f"{row}.png;s{row % 3};{20 + row / 8}".replace(".", ",").replace(",png", ".png"))
    (tmp_path / "photos.csv").write_text("\n".join(["which;subject;age", *rows]))
    words = ["train", "abc/fig3a", "--smoke", "--data.name", "photos.csv", "--sampler.inactive", "subject"]
    words += ["--image", "which", "--kinds", "age=nominal", "--option", "size=64,64", "--steps", "2"]
    printed = setsup(*words, "--print-config")
    assert printed.code == 0
    found = setsup(*words)
    assert found.code == 0
    assert "data.options image=which kinds=age=nominal size=64,64" in found.out
    run = Path("runs/abc/fig3a-smoke/seed-0")
    embedded = setsup("embed", run, "--json").json
    assert embedded["rows"] == 24
    age = FactorTable.from_parquet(embedded["files"]["factors"])["age"]
    assert (age.kind, age.levels[:2]) == ("nominal", ("20,0", "20,125"))
    (tmp_path / "again.yaml").write_text(printed.out)
    again = setsup("train", "--config", "again.yaml")
    assert (again.code, "is finished" in again.out) == (0, True)
    found = setsup("train", "abc/fig3a", "--smoke", "--image", "which")
    assert (found.code, "--image requires a table" in found.err) == (2, True)


@pytest.mark.long("trainings")
def test_options_of_the_data_set_are_settings_of_the_run(setsup: Run, digits: Path, tmp_path: Path) -> None:
    shutil.copy(str(OWN), tmp_path / "own_method.py")
    (tmp_path / "affine.py").write_text(
        "from dataclasses import replace\nimport torch\nfrom own_method import PRESETS as THEIRS\n"
        "from own_method import Dense, DenseSettings\nfrom setsup.experiments import Data\n"
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True)\nclass Wide(DenseSettings):\n"
        "    def build(self, table, generator):\n"
        "        found = Dense(self, generator)\n"
        "        found.layer = torch.nn.Linear(1600, 3)\n        return found\n"
        "PRESETS = [replace(THEIRS[0], name='own/affine', data=Data('affine-mnist', options=(('seed', 3),)),\n"
        "    method=Wide(), steps=2)]\n"
    )
    words = ["train", "affine.py", "--root", digits]
    found = setsup(*words, "--option", "copies=1")
    assert (found.code, found.err) == (0, "")
    assert "changed: data.options copies=1 seed=3 (not seed=3)" in found.out
    run = Path("runs/own/affine/seed-0")
    assert json.loads((run / "run.json").read_text())["settings"]["data.options"] == [["copies", 1], ["seed", 3]]
    found = setsup("embed", run, "--preset", "affine.py", "--json")
    rows = len(library.load("affine-mnist", digits, copies=1, seed=3))
    assert found.json["rows"] == rows != len(library.load("affine-mnist", digits))
    # the same data set by its name keeps the options of the run that are not given otherwise
    for given, copies, drawn in (([], 1, 3), (["copies=4"], 4, 3), (["seed=2"], 1, 2)):
        option = ["--option", *given] if given else []
        words_named = ["affine-mnist", *option, "--out", f"named-{copies}-{drawn}"]
        again = setsup("embed", run, *words_named, "--preset", "affine.py", "--json")
        factors = library.load("affine-mnist", digits, copies=copies, seed=drawn).factors
        assert again.json["rows"] == len(factors)
        assert FactorTable.from_parquet(again.json["files"]["factors"]).fingerprint == factors.fingerprint
    # in whatever order they are given
    orders = [
        setsup(*words, "--out", "ordered", "--option", *two) for two in (("copies=1", "seed=4"), ("seed=4", "copies=1"))
    ]
    assert [found.code for found in orders] == [0, 0]
    assert "is finished" in orders[1].out
    other = setsup(*words, "--option", "copies=2")
    assert (other.code, "contains another run: data.options " in other.err) == (2, True)
    for option, said in (
        ("copy=1", "affine-mnist has no option 'copy'; its options: copies=N"),
        ("copies=x", "copies=N"),
    ):
        refused(setsup(*words, "--option", option), said)
    found = setsup("train", "abc/figS3", "--smoke", "--option", "a=1")
    assert (found.code, "--option sets options of a preset's dataset, but abc/figS3 has no options" in found.err) == (
        2,
        True,
    )


def test_options_are_kept_so_that_they_can_be_given_again() -> None:
    """Paths are those of any working folder; what is said of the others can be pasted."""
    from setsup.experiments import Data, find_preset
    from setsup_cli.commands.train import Options
    from setsup_cli.training.describing import shown
    from setsup_cli.training.train_args import _opening

    preset = replace(find_preset(f"{OWN}:own/mean"), data=Data("imagenet-100"))
    found = _opening(Options(option=("synsets=lists/two.txt", "size=64,32")), preset)
    there = os.path.join(os.getcwd(), "lists", "two.txt")
    assert found == {"data.options": (("size", (64, 32)), ("synsets", there))}
    assert shown("data.options", found["data.options"]) == f"size=64,32 synsets={there}"
    assert _opening(Options(option=("synsets=~/two.txt",)), preset) == {
        "data.options": (("synsets", os.path.expanduser("~/two.txt")),)
    }
    assert _opening(Options(option=("synsets=none",)), preset) == {"data.options": (("synsets", None),)}
    names = ("n01440764", "n01443537")
    assert _opening(Options(option=(f"synsets={','.join(names)}",)), preset) == {"data.options": (("synsets", names),)}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["abc/fig3z"], "unknown preset 'abc/fig3z'; did you mean"),
        (["nowhere.py"], "nowhere.py does not exist"),
        ([OWN], "choose one, for example "),
        (["abc/fig3a", "--sampler.sise", "3"], "unknown option '--sampler.sise'; did you mean '--sampler.size'"),
        (["--sampler.sise", "3", "abc/fig3a"], "(`setsup train abc/fig3a --help` lists the options)"),
        (["--steps", "3"], "unknown option '--steps'"),
        (["abc/fig3a", "abc/fig3b"], "unexpected argument 'abc/fig3b' (`setsup train --help`"),
        (["abc/fig3a", "--sampler.size", "many"], "--sampler.size must be an integer, not 'many'"),
        (["abc/fig3a", "--sampler.size", "None"], "--sampler.size must be an integer, not 'None'"),
        (["abc/fig3a", "--method.halve_every", "x"], "--method.halve-every must be an integer or none, not"),
        (["abc/fig3a", "--method.rate", "nan"], "--method.rate must be a number, not 'nan'"),
        (["abc/fig3a", "--method.similarity", "l3"], "must be one of l2sq, l2, l1, linf, cosine, not 'l3'"),
        (
            ["abc/fig3a", "--method.rate"],
            "--method.rate requires a value: `--method.rate NUMBER`",
        ),
        (["abc/fig3a", "--seeds", "1", "two"], "--seed must be an integer, not 'two'"),
        (["abc/fig3a", "--workers", "few"], "--workers must be an integer or one of auto, thread, not 'few'"),
        ([MEAN, "--method.betas", "1"], "--method.betas requires 2 values"),
        ([MEAN, "--method.flag", "yes"], "--method.flag must be one of true, false, not 'yes'"),
        ([MEAN, "--method.pairs", "1"], "unknown option '--method.pairs'"),
        (["abc/fig3a", "--substitute", "--sampler.inactive", "wall"], "unknown factor 'wall'"),
        (["abc/mnist", "--substitute"], "mnist has no substitute"),
        (["abc/fig3a", "--substitute", "--seeds", "-1"], "the seed must be an integer from 0"),
        (["abc/fig3a", "--substitute", "--smoke", "--sampler.sets", "3"], "an even number of sets"),
        (
            ["abc/fig3a", "--substitute", "--sampler.size", "50000", "--sampler.small", "error"],
            "; lower --sampler.size, or pass --sampler.small short or --sampler.small replace",
        ),
        (
            ["abc/fig3a", "--substitute", "--smoke", "--method.objective", "double"],
            "with an even number of sets and two copies of each image",
        ),
        (["abc/fig3a", "--substitute", "--smoke", "--method.encoder", "mnist"], "for this network"),
        (["abc/fig3a", "--substitute", "--smoke", "--method.temperature", "-1"], "temperature"),
    ],
)
def test_what_is_refused_is_one_sentence_and_leaves_nothing(
    setsup: Run, tmp_path: Path, words: list[object], sentence: str
) -> None:
    refused(setsup("train", *words), sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long("trainings")
def test_a_logger_that_is_not_installed_is_said_before_torch_is_imported(tmp_path: Path) -> None:
    script = (
        "import sys; from setsup_cli.main import main\n"
        "sys.modules['tensorboard'] = None\n"
        "code = main('train abc/fig3a --substitute --log tensorboard'.split())\n"
        "sys.exit('imported' if 'torch' in sys.modules else code)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "setsup: --log tensorboard needs tensorboard, which is not installed: pip install tensorboard\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("orbit-joint --orbit nope", "unknown factor 'nope'; choose from subject, light, age"),
        ("orbit-joint --sampler.orbit subject --sampler.sets 2 --method.orbit ligth", "did you mean 'light'?"),
        ("dcodr --domain nope", "unknown factor 'nope'"),
        ("abc/fig3a --sampler.inactive nope", "unknown factor 'nope'"),
        ("abc/fig3a --sweep sampler.inactive=subject,nope", "unknown factor 'nope'"),
        (
            "pixels/pairs",
            "has no pixel correspondences; pass a folder of `setsup render --match",
        ),
    ],
)
def test_names_of_factors_are_checked_first(
    setsup: Run, photos: Path, monkeypatch: pytest.MonkeyPatch, words: str, sentence: str
) -> None:
    monkeypatch.setattr("setsup_cli.commands.train.train_points", lambda *_: pytest.fail("training began"))
    refused(setsup("train", *words.split(), "--data.name", photos), sentence)
    assert not Path("runs").exists()


@pytest.mark.long("trainings")
def test_names_of_factors_are_checked_before_torch_is_imported(photos: Path) -> None:
    script = (
        "import sys; from setsup_cli.main import main\n"
        "code = main('train orbit-joint --data.name photos.csv --orbit nope'.split())\n"
        "sys.exit('imported' if {'torch', 'lightning'} & {*sys.modules} else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=photos.parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "setsup: unknown factor 'nope'; choose from subject, light, age\n"


class TestMissingData:
    def test_the_sentence_says_how_to_get_it(self, setsup: Run, tmp_path: Path) -> None:
        found = setsup("train", "abc/mnist")
        refused(found, "`setsup fetch mnist`")
        assert "--substitute" not in found.err
        assert list(tmp_path.iterdir()) == []

    def test_a_stand_in_is_named_and_not_taken(self, setsup: Run, tmp_path: Path) -> None:
        found = setsup("train", "abc/fig3a")
        refused(found, "`setsup fetch shapes3d`")
        assert found.err.endswith("; or train on shapes3d-procedural with --substitute\n")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.long("trainings")
@pytest.mark.usefixtures("watched")
def test_a_shrunk_preset_on_its_stand_in_says_both_and_is_measured_shrunk(setsup: Run) -> None:
    found = setsup("train", "abc/fig3a", "--substitute", "--smoke")
    folder = "runs/abc/fig3a-substitute-smoke/seed-0"
    assert (found.code, found.err) == (0, f"next: setsup eval {folder}\n")
    assert "data: shapes3d-procedural, a SUBSTITUTE for shapes3d" in found.out
    assert "shrunk by --smoke" in found.out
    about = described(folder)
    assert (about["substitute"], about["smoke"], about["settings"]["steps"]) == (True, True, 4)
    assert len((Path(folder) / "metrics.jsonl").read_text().splitlines()) == 4

    measured = setsup("eval", folder)
    assert measured.code == 0
    assert "trained on shapes3d-procedural, a SUBSTITUTE for shapes3d" in measured.out
    assert "shrunk by --smoke" in measured.out
    kept = json.loads((Path(folder) / "evaluation.json").read_text())["components"]
    assert kept["about"]["samples"] < 1000
    assert f"{folder}/{kept['pictures'][0]}" in measured.out.splitlines()
    assert Path(folder, kept["pictures"][0]).is_file()

    # figure S1a of the paper rests on the same training, figure 4c does not
    words = ["--accuracy.steps", 3, "--accuracy.factors", "shape", "--json"]
    (other,) = setsup("eval", folder, "--preset", "abc/figS1a", *words).json
    assert (other["preset"], other["smoke"], other["substitute"]) == ("abc/figS1a", True, True)
    assert list(other["evaluations"]["accuracy"]["values"]) == ["shape"]
    refused = setsup("eval", folder, "--preset", "abc/fig4c")
    assert (refused.code, refused.out) == (2, "")
    assert "sampler.inactive" in refused.err


@pytest.mark.long("trainings")
def test_published_files(setsup: Run, digits: Path) -> None:
    found = setsup("train", "abc/mnist", "--root", digits, "--smoke", "--json")
    assert (found.code, found.err) == (0, "")
    assert found.json["preset"] == "abc/mnist"
    (run,) = found.json["runs"]
    assert (run["folder"], run["seed"], run["substitute"]) == ("runs/abc/mnist-smoke/seed-0", 0, False)
    assert (run["steps"], run["from_step"], list(run["metrics"])) == (4, 0, ["loss"])
    assert run["seconds"] > 0
    assert run["images_per_second"] > 0
    about = described(run["folder"])
    assert about["root"] == str(digits)
    assert about["settings"]["data.split"] == "train"


@pytest.mark.usefixtures("watched")
def test_settings_reach_the_run(setsup: Run, digits: Path) -> None:
    asked = "--steps 3 --sampler.size=5 --sampler.inactive digit split --sampler.where None --method.rate 0.5"
    asked += " --method.flag False --method.betas 0.1 1 --method.words --method.note None"
    found = setsup("train", MEAN, "--root", digits, *asked.split(), "--precision", "bf16", "--out", "changed")
    assert found.code == 0
    assert setsup("train", MEAN, "--root", digits, "--out", "usual").code == 0
    changed, usual = described("changed/seed-0"), described("usual/seed-0")
    settings = {name: value for name, value in changed["settings"].items() if value != usual["settings"][name]}
    assert settings == {
        "steps": 3,
        "sampler.size": 5,
        "sampler.inactive": ["digit", "split"],
        "method.rate": 0.5,
        "method.flag": False,
        "method.betas": [0.1, 1.0],
        "method.words": [],
        "method.note": None,
    }
    assert (changed["config"]["precision"], usual["config"]["precision"]) == ("bf16", "float32")
    line = next(line for line in found.out.splitlines() if line.startswith("changed: "))
    assert "steps 3 (not 20)" in line
    assert "sampler.inactive digit split (not digit)" in line
    assert "3 steps, bf16, " in found.out
    assert found.err.splitlines()[-1] == "next: setsup eval changed/seed-0"


def test_another_run_in_the_folder_is_refused(setsup: Run, digits: Path) -> None:
    common = ["train", MEAN, "--root", digits, "--steps", 3]
    assert setsup(*common).code == 0
    before = (Path("runs/own/mean/seed-0") / "metrics.jsonl").read_bytes()
    found = setsup(*common, "--method.rate", "0.2")
    refused(found, "runs/own/mean/seed-0 contains another run: method.rate is 0.1 in that run, not 0.2")
    assert setsup(*common, "--precision", "bf16").code == 2
    assert (Path("runs/own/mean/seed-0") / "metrics.jsonl").read_bytes() == before


@pytest.mark.long("trainings")
def test_wrong_settings_are_said_before_what_the_folder_holds(setsup: Run) -> None:
    common = ["train", "abc/fig3a", "--substitute", "--smoke", "--out", "run"]
    assert setsup(*common).code == 0
    for words, sentence in (
        (("--sampler.size", "1"), "sets must contain at least two images"),
        (("--sampler.sets", "3"), "an even number of sets"),
        (("--sampler.size", "4"), "run/seed-0 contains another run: sampler.size is 8 in that run, not 4"),
    ):
        found = setsup(*common, *words)
        assert (found.code, sentence in found.err) == (2, True), found.err
    assert "is finished" in setsup(*common).out


@pytest.mark.long("trainings")
def test_seeds_are_trained_one_after_the_other_and_finished_ones_are_left(setsup: Run, digits: Path) -> None:
    common = ["train", MEAN, "--root", digits, "--steps", 3]
    assert setsup(*common, "--seeds", 2).code == 0
    stamp = Path("runs/own/mean/seed-2/last.ckpt").stat().st_mtime_ns
    found = setsup(*common, "--seeds", 0, 2, 0)
    assert (found.code, found.err) == (0, "")
    assert [line for line in found.out.splitlines() if line.startswith("seed ")] == [
        "seed 0: runs/own/mean/seed-0",
        "seed 2: runs/own/mean/seed-2 is finished",
    ]
    assert found.out.count("what one layer learns") == 1
    assert Path("runs/own/mean/seed-2/last.ckpt").stat().st_mtime_ns == stamp
    first, second = (Path(f"runs/own/mean/seed-{seed}/metrics.jsonl").read_text() for seed in (0, 2))
    assert first != second
    data = setsup(*common, "--seeds", 0, 2, "--json").json
    assert [(run["seed"], run["from_step"], run["steps"]) for run in data["runs"]] == [(0, 3, 3), (2, 3, 3)]


@pytest.mark.long("trainings")
def test_a_run_that_was_asked_to_stop_goes_on(setsup: Run, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOP", "SIGINT 7")
    stopped = setsup("train", MEAN, "--root", digits, "--seeds", 0, 1)
    assert stopped.code == 130
    assert stopped.err == "setsup: stopped at step 8 of 20; run the same command to resume\n"
    assert not Path("runs/own/mean/seed-1").exists()
    monkeypatch.delenv("STOP")
    found = setsup("train", MEAN, "--root", digits)
    assert found.code == 0
    assert "seed 0: runs/own/mean/seed-0, resuming from step 8" in found.out
    assert setsup("train", MEAN, "--root", digits, "--out", "whole").code == 0
    resumed, whole = (Path(folder, "metrics.jsonl").read_text() for folder in ("runs/own/mean/seed-0", "whole/seed-0"))
    assert resumed == whole
    assert len(whole.splitlines()) == 20


def test_a_loss_that_is_not_finite(setsup: Run, digits: Path) -> None:
    common = ["train", MEAN, "--root", digits, "--steps", 3, "--method.rate", "1e30"]
    stopped = setsup(*common)
    assert stopped.code == 2
    assert re.match(r"^setsup: the loss of step 2 of own/mean is not finite: .*--allow-nonfinite\n$", stopped.err)
    found = setsup(*common, "--allow-nonfinite", "--out", "on")
    assert (found.code, found.err) == (0, "")
    assert "3 steps" in found.out
    assert described("on/seed-0")["config"]["allow_nonfinite"] is True


@pytest.mark.long("kills and interruptions")
def test_a_killed_command_goes_on(setsup: Run, digits: Path, tmp_path: Path) -> None:
    script = "import sys; from setsup_cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", script, "train", MEAN, "--root", str(digits)]
    environment = {**os.environ, "STOP": "SIGKILL 15", "PYTHONPATH": str(ROOT)}
    killed = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    assert "seed 0: runs/own/mean/seed-0\n" in killed.stdout
    found = setsup("train", MEAN, "--root", digits)
    assert found.code == 0
    assert "resuming from step 12" in found.out
    assert setsup("train", MEAN, "--root", digits, "--out", "whole").code == 0
    resumed, whole = (Path(folder, "metrics.jsonl").read_text() for folder in ("runs/own/mean/seed-0", "whole/seed-0"))
    assert resumed == whole


def test_only_the_first_of_many_processes_speaks(setsup: Run, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert setsup("train", MEAN, "--root", digits, "--steps", 3).code == 0
    monkeypatch.setenv("LOCAL_RANK", "1")
    for words in ([], ["--json"]):
        found = setsup("train", MEAN, "--root", digits, "--steps", 3, *words)
        assert (found.code, found.out, found.err) == (0, "", "")


@pytest.mark.usefixtures("watched")
def test_an_experiment_without_a_training(setsup: Run) -> None:
    found = setsup("train", "abc/figS3", "--smoke")
    assert found.code == 0
    assert "nothing to train" in found.out
    assert found.err.splitlines()[-1] == "next: setsup eval runs/abc/figS3-smoke/seed-0"


def test_settings_of_an_augmentation_are_options(setsup: Run, digits: Path) -> None:
    preset = f"{OWN}:own/moved"
    assert "--augmentation.times NUMBER [default: 0.5]" in words_of(setsup("train", preset, "--help").out)
    common = ["train", preset, "--root", digits, "--steps", 2]
    assert setsup(*common).code == 0
    assert setsup(*common, "--augmentation.times", "0", "--out", "dark").code == 0
    assert described("dark/seed-0")["settings"]["augmentation.times"] == 0
    first, dark = (Path(at, "seed-0", "metrics.jsonl").read_text() for at in ("runs/own/moved", "dark"))
    assert [json.loads(line)["loss"] for line in dark.splitlines()] == [0, 0]
    assert first != dark
    assert "--augmentation TEXT|none" in words_of(setsup("train", MEAN, "--help").out)


def test_rows_that_are_trained_on(setsup: Run, digits: Path) -> None:
    found = setsup("train", MEAN, "--root", digits, "--steps", 2, "--data.where", "digit == 3")
    assert (found.code, found.err) == (0, "")
    assert "data: mnist, split train, digit == 3\n" in found.out


def test_a_finished_run_whose_metrics_were_cut_off(setsup: Run, digits: Path) -> None:
    common = ["train", MEAN, "--root", digits, "--steps", 3, "--json"]
    (first,) = setsup(*common).json["runs"]
    path = Path("runs/own/mean/seed-0/metrics.jsonl")
    path.write_text(path.read_text()[:-5])
    found = setsup(*common)
    assert (found.code, found.err) == (0, "")
    (again,) = found.json["runs"]
    lines = path.read_text().splitlines()
    assert again["metrics"] == {"loss": json.loads(lines[1])["loss"]} != first["metrics"]
