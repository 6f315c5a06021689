"""``setsup embed``: embeddings and factors of the same rows in the same order."""

import errno
import gzip
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.factors import FactorTable  # noqa: E402
from setsup.files.atomic import beside  # noqa: E402
from tests.cli.refusals import refused  # noqa: E402

Run = Callable[..., Any]

OWN = Path(__file__).parent / "own_method.py"
RUN = "runs/own/mean/seed-0"
MEAN = ["--preset", f"{OWN}:own/mean"]


@pytest.fixture
def trained(setsup: Run, digits: Path) -> Path:
    assert setsup("train", f"{OWN}:own/mean", "--root", digits, "--steps", 3).code == 0
    return Path(RUN)


def check_embeddings(found: np.ndarray, run: Path, pictures: np.ndarray) -> None:
    """Compare with the one layer of the method, in float64, as far as sums in float32 can differ from it.

    A sum of n products is wrong by at most n units of rounding of the sum of their magnitudes, in whichever order it is
    taken; and n + 2 with the bias and the division of pixels by 255.
    """
    weights = torch.load(run / "last.ckpt", weights_only=True)["state_dict"]
    pixels = pictures / 255
    matrix, bias = (weights[f"layer.{name}"].double().numpy() for name in ("weight", "bias"))
    most = (len(matrix.T) + 2) * 2.0**-24 * (pixels @ np.abs(matrix).T + np.abs(bias))
    assert found.dtype == np.float32
    assert (np.abs(found - (pixels @ matrix.T + bias)) <= most).all()


def published(folder: Path, what: str, header: int) -> np.ndarray:
    parts = [gzip.decompress((folder / f"{part}-{what}-ubyte.gz").read_bytes()) for part in ("train", "t10k")]
    return np.concatenate([np.frombuffer(part, np.uint8, offset=header) for part in parts])


def check(folder: Path, run: Path, digits: Path, rows: slice) -> None:
    pictures = published(digits, "images-idx3", 16).reshape(400, 784)
    check_embeddings(np.load(folder / "embeddings.npy"), run, pictures[rows])
    table = FactorTable.from_parquet(folder / "factors.parquet")
    held = [table["digit"].levels[code] for code in table.codes("digit")]
    assert held == published(digits, "labels-idx1", 8)[rows].tolist()


@pytest.mark.long("trainings")
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
        files = ["embeddings.npy", "factors.parquet", "rows.npy"]
        assert found.out.splitlines()[-3:] == [str(folder / file) for file in files]
        assert sorted(path.name for path in folder.iterdir()) == files
        check(folder, trained, digits, rows)
        count = len(range(400)[rows])
        assert np.load(folder / "rows.npy").tolist() == list(range(count))
        assert f"mnist{f', split {split}' if split else ''}: {count} rows, 3 dimensions" in found.out
        data = setsup("embed", trained, *words, *MEAN, "--json").json
        assert (data["dataset"], data["split"], data["rows"], data["dimensions"]) == ("mnist", split, count, 3)
        assert data["files"]["embeddings"] == str(folder / "embeddings.npy")
        assert (data["run"], data["substitute"]) == (RUN, False)


@pytest.mark.long("trainings")
def test_some_rows(setsup: Run, trained: Path, digits: Path) -> None:
    pictures = published(digits, "images-idx3", 16).reshape(400, 784)
    labels = published(digits, "labels-idx1", 8)
    assert setsup("embed", trained, *MEAN).code == 0
    for words, kept, count in (
        (["--where", "digit == 3"], np.flatnonzero(labels[:200] == 3), None),
        (["--rows", 7], np.arange(200), 7),
        (["--rows", 900], np.arange(200), 200),
        (["--where", "digit in (3, 4)", "--rows", 5], np.flatnonzero(np.isin(labels[:200], (3, 4))), 5),
    ):
        found = setsup("embed", trained, *words, *MEAN)
        assert (found.code, found.err) == (0, "")
        folder = trained / "embeddings-mnist-train-part"
        kept_files = {path.name: path.read_bytes() for path in folder.iterdir()}
        other = setsup("embed", trained, "--where", "digit == 7", *MEAN)
        assert (other.code, other.out) == (2, "")
        assert (
            f"{folder} contains embeddings of other rows; choose another folder with --out FOLDER, or remove this one"
            in other.err
        )
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept_files
        rows = np.load(folder / "rows.npy")
        assert found.out.splitlines()[-1] == str(folder / "rows.npy")
        assert f"embedding mnist, split train: {len(rows)} of 200 rows" in found.out
        assert len(rows) == (len(kept) if count is None else count)
        assert np.isin(rows, kept).all()
        assert (np.diff(rows) > 0).all()
        check_embeddings(np.load(folder / "embeddings.npy"), trained, pictures[rows])
        table = FactorTable.from_parquet(folder / "factors.parquet")
        assert [table["digit"].levels[code] for code in table.codes("digit")] == labels[rows].tolist()
        again = setsup("embed", trained, *words, *MEAN, "--json").json
        assert (again["rows"], again["files"]["rows"]) == (len(rows), str(folder / "rows.npy"))
        assert np.array_equal(np.load(folder / "rows.npy"), rows)
        shutil.rmtree(folder)
    check(trained / "embeddings-mnist-train", trained, digits, slice(200))  # all of them are there still


@pytest.mark.long("trainings")
def test_a_given_folder_with_embeddings_of_other_rows_is_refused(setsup: Run, trained: Path, digits: Path) -> None:
    assert setsup("embed", trained, "--out", "here", "--rows", 7, *MEAN).code == 0
    kept = {path.name: path.read_bytes() for path in Path("here").iterdir()}
    other = setsup("embed", trained, "--out", "here", *MEAN)
    assert (other.code, other.out) == (2, "")
    assert "here contains embeddings of other rows; choose another folder with --out FOLDER, or remove this one" in (
        other.err
    )
    assert {path.name: path.read_bytes() for path in Path("here").iterdir()} == kept
    assert setsup("embed", trained, "--out", "here", "--rows", 7, *MEAN).code == 0  # the same rows are replaced
    shutil.rmtree("here")
    assert setsup("embed", trained, "--out", "here", *MEAN).code == 0
    check(Path("here"), trained, digits, slice(200))


def npy(descr: str, shape: str) -> bytes:
    """An array of 200 numbers with a header of one's own."""
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + np.arange(200).tobytes()


def test_what_does_not_tell_of_its_rows_is_not_replaced(setsup: Run, trained: Path) -> None:
    folder = trained / "embeddings-mnist-train"
    folder.mkdir()
    damaged = [npy("'<i8'", "(200"), npy("'<i8", "(200,)"), npy("'<M8[s]'", "(200,)"), npy("'<i8'", "(-1,)"), b""]
    for content in (b"my own", *damaged, npy("'<i8'", "(9999999999,)"), npy("[('a', '<i8')]", "(200,)")):
        (folder / "rows.npy").write_bytes(content)
        found = setsup("embed", trained, *MEAN)
        assert (found.code, f"{folder} contains embeddings of other rows" in found.err) == (2, True), content[:130]
    (folder / "rows.npy").write_bytes(npy("'<i8'", "(200,)"))
    assert setsup("embed", trained, *MEAN).code == 0
    (folder / "embeddings.npy").unlink()
    (folder / "factors.parquet").unlink()
    assert [path.name for path in folder.iterdir()] == ["rows.npy"]


@pytest.mark.long("trainings")
def test_several_embeddings_have_a_file_each(setsup: Run, trained: Path, digits: Path) -> None:
    views = Path(__file__).parent / "own_views.py"
    assert setsup("train", views, "--root", digits, "--steps", 1).code == 0
    run = Path("runs/own/views/seed-0")
    found = setsup("embed", run, "--preset", views, "--rows", 7)
    assert (found.code, found.err) == (0, "")
    folder = run / "embeddings-mnist-train-part"
    files = ["embeddings-vector.npy", "embeddings-map.npy", "factors.parquet", "rows.npy"]
    assert found.out.splitlines()[-6:] == [
        "mnist, split train: 7 rows, 3 dimensions of vector",
        "mnist, split train: 7 rows, 14 × 14 × 2 dimensions of map",
        *(str(folder / file) for file in files),
    ]
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)
    rows = np.load(folder / "rows.npy")
    pictures = published(digits, "images-idx3", 16).reshape(400, 28, 28)[rows]
    maps = np.load(folder / "embeddings-map.npy")
    assert maps.dtype == np.float32
    np.testing.assert_array_equal(maps, np.stack([pictures[:, ::2, ::2], pictures[:, 1::2, 1::2]], -1))
    check_embeddings(np.load(folder / "embeddings-vector.npy"), run, pictures.reshape(7, 784))
    data = setsup("embed", run, "--preset", views, "--rows", 7, "--json").json
    assert data["dimensions"] == {"vector": 3, "map": [14, 14, 2]}
    assert data["files"]["embeddings-map"] == str(folder / "embeddings-map.npy")
    said = setsup("eval", run, "--preset", views)
    assert said.code == 2
    assert "Views.embed returns several embeddings (vector, map); choose one" in said.err


@pytest.mark.parametrize("file", ["embeddings.npy", "factors.parquet", "rows.npy"])
def test_each_file_can_be_written_before_the_work(
    setsup: Run, trained: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("here", file).mkdir(parents=True)
    monkeypatch.setattr("setsup.experiments.embedding.embed_all", None)
    refused(setsup("embed", trained, "--out", "here", *MEAN), f"cannot write here/{file}: a folder of this name exists")


def test_options_without_a_data_set_are_refused_before_the_run_is_loaded(setsup: Run, trained: Path) -> None:
    (trained / "last.ckpt").unlink()
    assert "--option requires the argument DATASET" in setsup("embed", trained, "--option", "a=1", *MEAN).err


def test_a_substitute_is_labelled(setsup: Run, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(digits, tmp_path / "data" / "mnist")
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path / "data"))
    preset = f"{OWN}:own/stand"
    assert setsup("train", preset, "--substitute", "--steps", 2).code == 0
    run = "runs/own/stand-substitute/seed-0"
    found = setsup("embed", run, "--preset", preset)
    assert found.code == 0
    assert "trained on mnist, a SUBSTITUTE for shapes3d" in found.out
    assert found.out.splitlines()[-1] == f"{run}/embeddings-mnist-train/rows.npy"
    assert setsup("embed", run, "--preset", preset, "--json").json["substitute"] is True


@pytest.mark.long("trainings")
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


def test_a_full_disk_is_an_error_before_a_row_is_embedded(
    setsup: Run, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    found = setsup("embed", trained, *MEAN, "--out", "full")
    assert found.code == 2
    assert "embeddings.npy: the disk is full; free some space there" in found.err
    assert not list(Path("full").iterdir())


@pytest.mark.long("trainings")
def test_what_a_killed_embedding_left_goes_away(setsup: Run, trained: Path) -> None:
    folder = Path("again")
    folder.mkdir()
    left = beside(folder / "embeddings.npy")
    left.write_bytes(bytes(1000))
    assert setsup("embed", trained, *MEAN, "--out", folder).code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["embeddings.npy", "factors.parquet", "rows.npy"]


@pytest.mark.long("trainings")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "`setsup embed` requires the argument RUN"),
        (["nowhere", *MEAN], "no run found in nowhere"),
        (["runs", *MEAN], f"it contains the runs {RUN}"),
        ([RUN, "mnits", *MEAN], "no dataset has that name; did you mean 'mnist'"),
        ([RUN, "mnist", "more", *MEAN], "unexpected argument 'more'"),
        ([RUN, "--split", "tset", *MEAN], "mnist has no split 'tset'; did you mean 'test'?"),
        ([RUN, "--device", "abacus", *MEAN], "--device abacus is not available"),
        ([RUN, "--option", "copies=2", *MEAN], "--option requires the argument DATASET"),
        ([RUN, "mnist", "--option", "copies=2", *MEAN], "mnist has no option 'copies'; its options: none"),
        ([RUN, "--where", "digit == 3 and digit == 4", *MEAN], "--where 'digit == 3 and digit == 4' selects no rows"),
        ([RUN, "--rows", "0", *MEAN], "--rows must be 1 or more, not 0"),
        ([RUN, "--out", "/proc/here", *MEAN], "cannot write /proc/here/embeddings.npy: "),
    ],
)
def test_what_is_refused(setsup: Run, trained: Path, words: list[str], sentence: str) -> None:
    found = setsup("embed", *words)
    refused(found, sentence)
    assert not list(trained.glob("embeddings-*"))


@pytest.mark.long("trainings")
def test_what_the_method_cannot_embed(setsup: Run, trained: Path) -> None:
    found = setsup("embed", trained, "shapes3d-procedural", "--split", "dcodr-test", *MEAN)
    assert found.code == 2
    assert f"the method of {RUN} cannot embed shapes3d-procedural, split dcodr-test" in found.err
    assert not list(trained.glob("embeddings-*"))


def test_it_says_what_it_does_before_it_does_it(
    setsup: Run, trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from setsup.experiments.embedding import embed_all as real

    said = []

    def embed(*words: Any, **options: Any) -> Any:
        said.append(capsys.readouterr().out)
        return real(*words, **options)

    monkeypatch.setattr("setsup.experiments.embedding.embed_all", embed)
    assert setsup("embed", trained, *MEAN, "--device", "cpu").code == 0
    assert said[0].splitlines() == [
        f"{RUN}: own/mean, seed 0, 3 steps",
        "embedding mnist, split train: 200 rows, on cpu",
    ]
    assert setsup("embed", trained, *MEAN, "--json").code == 0
    assert said[1] == ""


def test_an_experiment_without_a_training(setsup: Run) -> None:
    assert setsup("train", "abc/figS3", "--smoke").code == 0
    assert "so its runs have no embeddings" in setsup("embed", "runs/abc/figS3-smoke/seed-0").err


@pytest.mark.long("trainings")
@pytest.mark.parametrize("error", [RuntimeError, IndexError])
def test_an_error_without_words(
    setsup: Run, trained: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("setsup.experiments.embedding.embed_all", fail)
    found = setsup("embed", trained, *MEAN)
    assert found.code == 2
    assert found.err == f"setsup: the method of {RUN} cannot embed mnist, split train: {error.__name__}\n"


@pytest.mark.long("kills and interruptions")
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_what_is_stopped_leaves_no_file_and_what_is_large_is_said_before(
    setsup: Run, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(method: object, dataset: object, rows: object, allocate: Callable[..., Any], **_: object) -> None:
        allocate(None, (3, 4, 5, 2))
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("setsup.experiments.embedding.embed_all", stopped)
    monkeypatch.setattr("setsup_cli.commands.embed._LARGE", 400)
    before = sorted(trained.rglob("*"))
    found = setsup("embed", trained, *MEAN)
    assert (found.code, found.err) == (130, "setsup: stopped\n")
    assert found.out.splitlines()[-1] == "writing 480 bytes: float32 3 × 4 × 5 × 2"
    assert [path for path in sorted(trained.rglob("*")) if path.is_file()] == [one for one in before if one.is_file()]


@pytest.mark.long("trainings")
def test_an_export_makes_no_folder(setsup: Run, trained: Path) -> None:
    found = setsup("export", trained, "nowhere/weights.pt", *MEAN)
    refused(found, "folder nowhere does not exist; create it, or choose another FILE")
    assert not Path("nowhere").exists()


@pytest.mark.long("trainings")
def test_neighbours_of_all_rows_and_of_some(setsup: Run, trained: Path, digits: Path) -> None:
    folder = trained / "embeddings-mnist-train"
    found = setsup("embed", trained, *MEAN, "--neighbours", 5)
    assert (found.code, found.err) == (0, "")
    points = np.load(folder / "embeddings.npy").astype(np.float64)
    distances = ((points[:, None] - points) ** 2).sum(-1)
    np.fill_diagonal(distances, np.inf)
    assert found.out.splitlines()[-1] == str(folder / "neighbours.npy")
    assert np.load(folder / "neighbours.npy").tolist() == np.argsort(distances, axis=1, kind="stable")[:, :5].tolist()
    assert setsup("embed", trained, *MEAN, "--where", "digit < 3", "--neighbours", 5, "--out", "some").code == 0
    rows, table = np.load("some/rows.npy"), np.load("some/neighbours.npy")
    assert table.shape == (200, 5)
    near = rows[np.argsort(distances[np.ix_(rows, rows)], axis=1, kind="stable")[:, :5]]
    assert table[rows].tolist() == near.tolist()
    assert (np.delete(table, rows, axis=0) == -1).all()
    refused = setsup("embed", trained, *MEAN, "--neighbours", 0, "--out", "none")
    assert refused.code == 2
    assert "--neighbours must be an integer of at least 1" in refused.err
