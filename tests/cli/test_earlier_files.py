"""Files that an earlier commit wrote still open, replay, resume and keep their cached evaluations."""

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup as library  # noqa: E402
from setsup.experiments import find_preset, load_trained, open_run, smoke, train  # noqa: E402

ARCHIVE = Path(__file__).parents[1] / "earlier" / "89ee21b1.tar.xz"
RUNS = (
    "abc/mnist-smoke",
    "cmc/digits-nce-m16-small-smoke",
    "dcodr/shapes3d-norec-small-substitute-smoke",
    "orbits/mnist-oj-small-smoke",
    "pixels/colors-inf-010-small-smoke",
)
DRAWS = (
    "active",
    "change",
    "constraints",
    "domains",
    "episode",
    "hierarchy",
    "orbits",
    "orbits-part",
    "pairs",
    "rank",
    "scheduled",
    "sets",
    "small",
    "triplets",
)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def equal_draws(first: Path, second: Path) -> bool:
    with np.load(first) as one, np.load(second) as other:
        assert sorted(one) == sorted(other)
        return all(np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f") for name in one)


@pytest.mark.parametrize("name", DRAWS)
def test_draws_replay(setsup, earlier: Path, tmp_path: Path, name: str) -> None:
    result = setsup("sample", "--replay", earlier / "draws" / name / "draws.jsonl", "--out", tmp_path / "again", "-q")
    assert result.code == 0, result.err
    assert equal_draws(earlier / "draws" / name / "draws.npz", tmp_path / "again" / "draws.npz")


def test_draws_from_shards_replay(setsup, earlier: Path, tmp_path: Path) -> None:
    draws = earlier / "draws" / "shards"
    result = setsup("sample", earlier / "shards", "--replay", draws / "draws.jsonl", "--out", tmp_path / "again", "-q")
    assert result.code == 0, result.err
    assert equal_draws(draws / "draws.npz", tmp_path / "again" / "draws.npz")


def test_shards_open(earlier: Path) -> None:
    shards = library.open(earlier / "shards")
    whole = library.load("shapes3d-procedural").where(
        "object_hue == 0.5 and scale >= 1.2 and wall_hue == 0.1 and floor_hue == 0.2"
    )
    rows = np.arange(len(shards))
    assert len(shards) == len(whole) == 60
    order = np.lexsort([whole.factors.codes(name, rows) for name in reversed(whole.factors.names)])
    stored = np.lexsort([shards.factors.codes(name, rows) for name in reversed(whole.factors.names)])
    assert np.array_equal(shards.fetch(stored)["image"], whole.fetch(order)["image"])


@pytest.mark.parametrize("name", RUNS)
def test_runs_embed_as_they_did(earlier: Path, name: str) -> None:
    run = open_run(earlier / "runs" / name / "seed-0")
    assert run.finished
    trained = load_trained(run, root=None if run.substitute else earlier / "mnist")
    for stored in run.folder.glob("embeddings-*/embeddings*.npy"):
        name = stored.stem.removeprefix("embeddings").removeprefix("-") or None
        embedded = trained.embed(rows=np.load(stored.with_name("rows.npy")), name=name)
        np.testing.assert_allclose(embedded, np.load(stored), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", RUNS)
def test_evaluations_are_not_measured_again(setsup, earlier: Path, name: str) -> None:
    folder = earlier / "runs" / name / "seed-0"
    before = (folder / "evaluation.json").read_bytes()
    root = () if "substitute" in name else ("--root", earlier / "mnist")
    result = setsup("eval", folder, *root)
    assert result.code == 0, result.err
    assert (folder / "evaluation.json").read_bytes() == before
    said = (result.out + result.err).splitlines()
    assert any(line.startswith("measured before") for line in said)
    assert not any(line.startswith("measuring") for line in said)


def test_a_stopped_run_resumes(earlier: Path) -> None:
    preset = smoke(find_preset("dcodr/shapes3d-norec-small"))
    train(preset, earlier / "stopped" / "begun", substitute=True)
    losses = [
        [json.loads(line)["loss"] for line in (earlier / "stopped" / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("begun", "whole")
    ]
    assert len(losses[0]) == 4
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
