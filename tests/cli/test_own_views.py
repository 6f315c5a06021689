"""Views of one's own through the command: `setsup train cmc`, what measures its runs, and what their errors say."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("sklearn")

from setsup_cli.main import main

Run = Callable[..., Any]
ROWS = 24
TRAINING = ["train", "cmc", "--data.name", "mine.npz", "--smoke"]


def write(path: Path, *names: str) -> None:
    """Images, and depth or flow, of 20 × 20 pixels."""
    draws = np.random.default_rng(0)
    arrays = {
        "image": draws.integers(0, 256, (ROWS, 20, 20, 3), np.uint8),
        "depth": draws.random((ROWS, 20, 20), np.float32),
        "flow": draws.random((ROWS, 20, 20, 2), np.float32),
    }
    np.savez(path, object=np.arange(ROWS) % 3, **{name: arrays[name] for name in names})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data of three views, and a run on them that is validated by a probe."""
    folder = tmp_path_factory.mktemp("own")
    write(folder / "mine.npz", "image", "depth", "flow")
    write(folder / "noflow.npz", "image", "depth")
    words = [*TRAINING, "--views", "image,depth,flow", "--method.width", "0.25", "--steps", "1", "--out", "runs"]
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        assert main([*words, "--validation.every", "1", "--validation.probe", "object"]) == 0
    return folder


@pytest.fixture
def own(trained: Path, tmp_path: Path, setsup: Run) -> Run:
    """The command in a folder with a copy of these."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return setsup


def refused(found: Any, *sentences: str) -> None:
    assert (found.code, found.err.count("\n")) == (2, 1)
    for sentence in sentences:
        assert sentence in found.err


@pytest.mark.long("trainings")
def test_a_run_is_measured_by_all_views_or_one(own: Run) -> None:
    run = "runs/seed-0"
    words = ["report", "factors", "mine.npz", run, "--encoder", "pixels:4", "--rows", ROWS, "--json"]
    views = own(*words).json["encoders"]
    one = own(*words, "--embedding", "depth").json["encoders"]
    label = next(name for name in views if run in name)
    assert views[label] != one[label]
    assert views["pixels:4"] == one["pixels:4"]  # which has no views
    assert views[label] == own(*words, "--embedding", "all").json["encoders"][label]
    refused(own(*words[:-1], "--embedding", "dept"), "returns no embedding named 'dept'; did you mean 'depth'?")
    refused(own("eval", run), f"measure them with `setsup report factors DATASET {run}`")


def test_validation_of_no_embedding_leaves_no_folder(own: Run) -> None:
    words = [*TRAINING, "--out", "other", "--validation.every", "1", "--validation.probe", "object"]
    refused(own(*words, "--validation.embedding", "dept"), "returns no embedding named 'dept'")
    assert not Path("other").exists()


def test_embedding_data_that_lack_a_view_says_so(own: Run) -> None:
    found = own("embed", "runs/seed-0", "noflow.npz")
    assert found.code == 0
    assert (
        "noflow has no flow, which the run was trained on; embeddings are computed from image and depth only"
        in found.err
    )
    sizes = [np.load(f"runs/seed-0/embeddings-noflow/embeddings-{name}.npy").shape[1] for name in ("depth", "all")]
    assert sizes[1] == 2 * sizes[0]


def test_data_that_are_not_here_are_named_again(own: Run) -> None:
    Path("elsewhere").mkdir()
    Path("mine.npz").rename("elsewhere/mine.npz")
    told = "relative to the folder where the run was started; "
    refused(own("embed", "runs/seed-0"), told, "`setsup embed runs/seed-0 FILE`")
    refused(own("train", "--config", "runs/seed-0/config.yaml", "--out", "again"), told, "with --data.name FILE")
    assert own("embed", "runs/seed-0", "elsewhere/mine.npz").code == 0


@pytest.mark.parametrize(
    ("words", "sentences"),
    [
        (["cmc", "--views", "image,depth"], ["cmc has no data: ", "as in `setsup train cmc --data.name mine.npz"]),
        (
            ["dcodr", "--seed", "1"],
            ["dcodr has no data: it requires your own data; name them and their domain, as in"],
        ),
        (["dcodr", "--dry-run"], ["dcodr has no data: it requires your own data"]),
        (["dcodr", "--option", "size=32,32"], ["dcodr has no data: it requires your own data"]),
        (["orbit-joint"], ["orbit-joint has no data: it requires your own data; name them and their orbits"]),
        (["pixels/pairs"], ["pixels/pairs has no data: it requires your own data; name pairs of views"]),
        (["pixels/rooms"], ["rooms-train does not exist; render it by `setsup render room --rooms 34 --pairs 1600"]),
        (["pixels/rooms-small"], ["rooms-train does not exist; render it by `setsup render room", "or name such"]),
        (["cmc/rooms-2-views-small"], ["rooms-train does not exist", "docs/experiments/cmc_data.py FOLDER"]),
        (["cmc/colors-lab-small"], ["objects-train.npz does not exist", "docs/experiments/cmc_data.py FOLDER"]),
        (["cmc/patches-d64-small"], ["images-2k does not exist", "docs/experiments/cmc_data.py FOLDER"]),
        (
            [*TRAINING[1:], "--views", "image,deph"],
            ["no view 'deph' (it contains depth, image)", "; did you mean 'depth'?\n"],
        ),
        (
            [*TRAINING[1:], "--views", "image,touch"],
            ["no view 'touch' (it contains depth, image)", "a table has one column"],
        ),
        (
            [*TRAINING[1:], "--space", "luv"],
            ["--space luv splits images into L and uv, but --views image,depth contains"],
        ),
        ([*TRAINING[1:], "--batch-size", "16"], ["unknown option '--batch-size'; did you mean '--sampler.size'? ("]),
        ([*TRAINING[1:], "--view", "image"], ["unknown option '--view'; did you mean '--views'? ("]),
    ],
)
def test_mistakes_are_one_sentence(setsup: Run, words: list[str], sentences: list[str]) -> None:
    write(Path("mine.npz"), "image", "depth")
    refused(setsup("train", *words), *sentences)
    assert not Path("runs").exists()


def test_reports_without_results(setsup: Run) -> None:
    assert setsup("report", "cmc").out.startswith("cmc/table1 ")  # without runs, the paper's reports
    Path("runs").mkdir()
    assert setsup("report", "cmc").out.startswith("cmc/table1 ")
    assert "\nnot run:\n  setsup train cmc\n" in setsup("report", "cmc", "runs").out
    assert setsup("report", "--all", "--out", "page.html").code == 0
    assert "<p>No report has a measured value.</p>" in Path("page.html").read_text(encoding="utf-8")
    refused(setsup("report", "cmc/fig5"), "did you mean 'cmc/fig5-colors'")
