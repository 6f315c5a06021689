"""``setsup embed``: embeddings and factors of the same rows in the same order."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.factors import FactorTable  # noqa: E402

Run = Callable[..., Any]

OWN = Path(__file__).parent / "own_method.py"
RUN = "runs/own/mean/seed-0"
MEAN = ["--preset", f"{OWN}:own/mean"]


@pytest.fixture
def trained(setsup: Run, digits: Path) -> Path:
    assert setsup("train", f"{OWN}:own/mean", "--root", digits, "--steps", 3).code == 0
    return Path(RUN)


def expected(run: Path, pictures: np.ndarray) -> np.ndarray:
    """The one layer of the method, by numpy."""
    weights = torch.load(run / "last.ckpt", weights_only=True)["state_dict"]
    pixels = pictures.astype(np.float32) / 255
    return pixels @ weights["layer.weight"].numpy().T + weights["layer.bias"].numpy()


def published(folder: Path, what: str, header: int) -> np.ndarray:
    parts = [gzip.decompress((folder / f"{part}-{what}-ubyte.gz").read_bytes()) for part in ("train", "t10k")]
    return np.concatenate([np.frombuffer(part, np.uint8, offset=header) for part in parts])


def check(folder: Path, run: Path, digits: Path, rows: slice) -> None:
    pictures = published(digits, "images-idx3", 16).reshape(400, 784)
    found = np.load(folder / "embeddings.npy")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(run, pictures[rows]), atol=1e-5)
    table = FactorTable.from_parquet(folder / "factors.parquet")
    held = [table["digit"].levels[code] for code in table.codes("digit")]
    assert held == published(digits, "labels-idx1", 8)[rows].tolist()


def test_what_was_trained_on_another_split_and_all_of_it(setsup: Run, trained: Path, digits: Path) -> None:
    for words, name, split, rows in (
        ([], "embeddings-mnist-train", "train", slice(200)),
        (["--split", "test"], "embeddings-mnist-test", "test", slice(200, None)),
        (["mnist"], "embeddings-mnist", None, slice(None)),
        (["mnist", "--split", "train", "--root", digits, "--out", "here"], "", "train", slice(200)),
    ):
        found = setsup("embed", trained, *words, *MEAN)
        assert (found.code, found.err) == (0, "")
        folder = trained / name if name else Path("here")
        assert found.out.splitlines()[-2:] == [str(folder / "embeddings.npy"), str(folder / "factors.parquet")]
        assert sorted(path.name for path in folder.iterdir()) == ["embeddings.npy", "factors.parquet"]
        check(folder, trained, digits, rows)
        count = len(range(400)[rows])
        assert f"mnist{f', split {split}' if split else ''}: {count} rows, 3 dimensions" in found.out
        data = setsup("embed", trained, *words, *MEAN, "--json").json
        assert (data["dataset"], data["split"], data["rows"], data["dimensions"]) == ("mnist", split, count, 3)
        assert data["files"]["embeddings"] == str(folder / "embeddings.npy")
        assert (data["run"], data["stand_in"]) == (RUN, False)


def test_a_stand_in_is_labelled(setsup: Run, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(digits, tmp_path / "data" / "mnist")
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path / "data"))
    preset = f"{OWN}:own/stand"
    assert setsup("train", preset, "--stand-in", "--steps", 2).code == 0
    run = "runs/own/stand-stand-in/seed-0"
    found = setsup("embed", run, "--preset", preset)
    assert found.code == 0
    assert "trained on mnist, a STAND-IN for shapes3d" in found.out
    assert found.out.splitlines()[-1] == f"{run}/embeddings-mnist-train/factors.parquet"
    assert setsup("embed", run, "--preset", preset, "--json").json["stand_in"] is True


def test_an_interrupted_writing_leaves_what_was_there(
    setsup: Run, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert setsup("embed", trained, *MEAN).code == 0
    folder = trained / "embeddings-mnist-train"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pyarrow.parquet.write_table", fail)
    assert setsup("embed", trained, *MEAN).code == 130
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "name a run, as in `setsup embed runs/abc/fig3a/seed-0`"),
        (["nowhere", *MEAN], "nowhere holds no run"),
        (["runs", *MEAN], f"below it are {RUN}"),
        ([RUN], "--preset"),
        ([RUN, "mnits", *MEAN], "there is no data set 'mnits'; did you mean 'mnist'?"),
        ([RUN, "mnist", "more", *MEAN], "'more' is one word too many"),
        ([RUN, "--split", "tset", *MEAN], "mnist has no split 'tset'; did you mean 'test'?"),
        ([RUN, "--device", "abacus", *MEAN], "--device abacus is not to be had here"),
        (
            [RUN, "shapes3d-procedural", "--split", "dcodr-test", *MEAN],
            f"the method of {RUN} cannot embed shapes3d-procedural, split dcodr-test",
        ),
    ],
)
def test_what_is_refused(setsup: Run, trained: Path, words: list[str], sentence: str) -> None:
    found = setsup("embed", *words)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("setsup: ")
    assert found.err.count("\n") == 1
    assert sentence in found.err
    assert not list(trained.glob("embeddings-*"))


def test_an_experiment_without_a_training(setsup: Run) -> None:
    assert setsup("train", "abc/figS3", "--smoke").code == 0
    assert "nothing to embed with" in setsup("embed", "runs/abc/figS3-smoke/seed-0").err


def test_an_error_without_words(setsup: Run, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("setsup.experiments.embed", fail)
    found = setsup("embed", trained, *MEAN)
    assert found.code == 2
    assert found.err == f"setsup: the method of {RUN} cannot embed mnist, split train: RuntimeError\n"
