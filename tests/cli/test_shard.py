import io
import json
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import setsup as library
from setsup.datasets.croissant.rai import REQUIRED_BY_TRACKS
from setsup.errors import DataError
from setsup.experiments.data import Data
from setsup.opening import find_kind
from setsup.shards.opening import open_shards
from setsup_cli.commands.shard import _there
from tests.cli.refusals import refused
from tests.stores import Bucket
from tests.true_files import mnist

Run = Callable[..., Any]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, digits: Path) -> Path:
    """The 400 digits in shards, by digit."""
    from setsup_cli.main import main

    out = tmp_path_factory.mktemp("shards") / "digits"
    assert main(["shard", "mnist", "--root", str(digits), "--out", str(out), "--order", "by:digit", "--json"]) == 0
    return out


# -- what is written ---------------------------------------------------------------------------------------------------


@pytest.mark.long("large or genuine files")
def test_what_is_written_is_what_the_data_set_holds(setsup: Run, digits: Path, tmp_path: Path) -> None:
    found = setsup("shard", "mnist", "--root", digits, "--out", "out", "--per-shard", 150)
    assert (found.code, found.err) == (0, "")
    size = sum(path.stat().st_size for path in (tmp_path / "out").glob("*.tar"))
    assert found.out.splitlines() == [
        # by hand: 400 pictures of 28 · 28 bytes
        f"mnist: 400 rows in 3 shards (image as png, 313.6 kB of arrays), to {tmp_path}/out",
        f"{size / 1000:.1f} kB, 400 rows written now",
        "factors: digit 10, split 2",
        "members: KEY.png, KEY.json",
        "croissant.json lacks dataLimitations, dataBiases, personalSensitiveInformation, dataUseCases, "
        "dataSocialImpact: add them with --rai FILE.yaml",
        f"setsup.open_shards('{tmp_path}/out')",
    ]
    whole, row = library.load("mnist", digits), 0
    for path in sorted((tmp_path / "out").glob("*.tar")):
        with tarfile.open(path) as tar:
            pairs = iter(tar.getmembers())
            for picture, values in zip(pairs, pairs, strict=True):
                assert (picture.name, values.name) == (f"{row:06}.png", f"{row:06}.json")
                pixels = np.asarray(Image.open(io.BytesIO(tar.extractfile(picture).read())))  # type: ignore[union-attr]
                np.testing.assert_array_equal(pixels, whole.fetch(row)["image"][..., 0])
                assert json.loads(tar.extractfile(values).read()) == whole.factors.row(row)  # type: ignore[union-attr]
                row += 1
    assert row == 400


def test_json(setsup: Run, digits: Path, tmp_path: Path) -> None:
    words = ["shard", "mnist", "--root", digits, "--out", "out", "--where", "digit < 2", "--format", "npy", "--json"]
    found = setsup(*words, "--order", "shuffle", "--seed", 3, "--per-shard", 32)
    assert (found.code, found.err) == (0, "")
    rows = int((library.load("mnist", digits).factors.column("digit") < 2).sum())
    tars = sorted((tmp_path / "out").glob("*.tar"))
    assert found.json == {
        "url": f"{tmp_path}/out",
        "dataset": "mnist",
        "rows": rows,
        "written_now": rows,
        "shards": -(-rows // 32),
        "bytes": sum(path.stat().st_size for path in tars),
        "order": "shuffle",
        "factors": {"digit": 10, "split": 2},
        "modalities": {"image": {"shape": [28, 28, 1], "dtype": "uint8", "unit": "", "member": "KEY.npy"}},
        "left_out": [],
        "croissant": {"file": "croissant.json", "missing": list(REQUIRED_BY_TRACKS)},
        "open": f"setsup.open_shards('{tmp_path}/out')",
        "next": f"setsup sample {tmp_path}/out --inactive digit",
    }
    again = setsup(*words, "--order", "shuffle", "--seed", 3, "--per-shard", 32)
    assert again.json == {**found.json, "written_now": 0}
    refused(setsup(*words, "--order", "shuffle", "--seed", 4, "--per-shard", 32), f"{tmp_path}/out", "other shards")
    tars[0].unlink()
    again = setsup(*words, "--order", "shuffle", "--seed", 3, "--per-shard", 32)
    assert again.json == {**found.json, "written_now": 32}


@pytest.mark.long("worker processes")
def test_the_same_bytes_anywhere_and_by_any_number_of_processes(setsup: Run, digits: Path, tmp_path: Path) -> None:
    words = ["shard", "mnist", "--root", digits, "--per-shard", 50]
    assert setsup(*words, "--out", "one").code == 0
    assert setsup(*words, "--out", tmp_path / "deep" / "er" / "two", "--processes", 2).code == 0
    shutil.copytree(digits, tmp_path / "elsewhere")
    assert setsup("shard", "mnist", "--root", "elsewhere", "--per-shard", 50, "--out", "three").code == 0
    assert contents(tmp_path / "one") == contents(tmp_path / "deep" / "er" / "two") == contents(tmp_path / "three")
    assert sorted(path.name for path in tmp_path.glob("*")) == ["deep", "elsewhere", "one", "three"]
    text = b"".join(content for name, content in contents(tmp_path / "one").items())
    for word in (str(tmp_path), time.strftime("%Y-%m-%d")):
        assert word.encode() not in text


def test_a_table_of_ones_own(setsup: Run, photos: Path) -> None:
    words = ["--table", photos, "--kinds", "age=continuous", "--order", "by:subject", "--format", "jpeg"]
    found = setsup("shard", *words, "--out", "out", "--json")
    assert (found.code, found.err) == (0, "")
    assert found.json["factors"] == {"subject": 4, "light": 2, "age": None}
    assert found.json["modalities"]["image"]["member"] == "KEY.jpg"
    assert found.json["next"].endswith("--inactive subject")
    shards = open_shards("out")
    names = [shards.factors.row(row)["subject"] for row in range(48)]
    assert sum(one != other for one, other in pairwise(names)) == 3  # 4 subjects, each in a row
    red = shards.fetch(np.arange(48))["image"][..., 0].mean((1, 2))
    wanted = [50 * (["Ada", "Łucja", "Chidi", "Mei"].index(str(name)) + 1) for name in names]
    assert np.abs(red - wanted).max() < 3


def test_shards_of_shards(setsup: Run, folder: Path, tmp_path: Path) -> None:
    """What was written is a data set as any other: its rows can be chosen, ordered and stored anew."""
    words = ["shard", folder, "--where", "digit in (3, 5)", "--format", "npy", "--out", "few"]
    found = setsup(*words)
    assert (found.code, found.err) == (0, "")
    few, whole = open_shards("few"), open_shards(folder)
    rows = np.flatnonzero(np.isin(whole.factors.column("digit"), (3, 5)))
    np.testing.assert_array_equal(few.fetch(np.arange(len(few)))["image"], whole.fetch(rows)["image"])
    np.testing.assert_array_equal(few.source_rows(np.arange(len(few))), rows)


@pytest.mark.long("large or genuine files")
def test_a_folder_of_renderings(setsup: Run, tmp_path: Path) -> None:
    pytest.importorskip("embreex")
    words = ["render", "shapes3d", "--out", "drawn", "--rows", 12, "--size", 8, 8, "--renderer", "embree"]
    assert setsup(*words, "--modalities", "image", "depth").code == 0
    found = setsup("shard", "drawn", "--out", "out", "--json")
    assert (found.code, found.err) == (0, "")
    assert [one["member"] for one in found.json["modalities"].values()] == ["KEY.png", "KEY.depth.npy"]
    assert (found.json["cameras"], found.json["left_out"]) == ("KEY.camera.json", [])
    few = setsup("shard", "drawn", "--where", "shape != 'cube'", "--out", "few")
    assert "members: KEY.png, KEY.depth.npy, KEY.camera.json, KEY.json" in few.out.splitlines()
    said = "omitted, because --size changes the images: cameras, names of instances"
    assert said in setsup("shard", "drawn", "--size", 4, 4, "--out", "small").out.splitlines()
    shards, drawn = open_shards("out"), library.open("drawn")
    for name, array in drawn.fetch(np.arange(12)).items():
        np.testing.assert_array_equal(shards.fetch(np.arange(12))[name], array)
    assert [shards.camera(row) for row in range(12)] == [drawn.camera(row) for row in range(12)]
    assert setsup("shard", "drawn", "--out", "depths", "--modalities", "depth", "--json").json["modalities"].keys() == {
        "depth"
    }


# -- the other verbs ---------------------------------------------------------------------------------------------------


def test_sets_are_drawn_from_shards(setsup: Run, folder: Path, tmp_path: Path) -> None:
    found = setsup("sample", folder, "--inactive", "digit", "--out", "drawn")
    assert (found.code, found.err) == (0, "")
    assert "mnist: 400 rows" in found.out
    assert "the number of rows of the smallest group" in found.out or "every group has enough rows" in found.out
    indices = np.load("drawn/draws.npz")["indices"]
    assert np.ptp(open_shards(folder).factors.column("digit")[indices], axis=-1).max() == 0
    again = setsup("sample", folder, "--replay", "drawn/draws.jsonl", "--out", "again")
    assert (again.code, again.err) == (0, "")
    assert contents(tmp_path / "again") == contents(tmp_path / "drawn")
    refused(setsup("sample", folder, "--inactive", "digits"), "did you mean 'digit'?", f"`setsup info {folder}`")
    refused(setsup("sample", folder, "--root", "drawn", "--inactive", "digit"), "omit --root drawn")
    part = setsup("sample", folder, "--split", "test", "--inactive", "digit", "--json").json
    assert (part["rows"], part["split"]) == (200, "test")


def test_draws_of_shards_of_a_table_name_no_data_set(setsup: Run, photos: Path) -> None:
    assert setsup("shard", "--table", photos, "--out", "out").code == 0
    assert setsup("sample", "out", "--inactive", "subject", "--out", "drawn").code == 0
    assert setsup("sample", "--replay", "drawn/draws.jsonl", "--out", "found").code == 0
    Path("out").rename("moved")
    refused(setsup("sample", "--replay", "drawn/draws.jsonl"), "setsup sample")
    assert setsup("sample", "moved", "--replay", "drawn/draws.jsonl", "--out", "again").code == 0


def test_a_card_of_shards(setsup: Run, folder: Path) -> None:
    found = setsup("info", folder)
    assert (found.code, found.err) == (0, "")
    size = sum(path.stat().st_size for path in folder.glob("*.tar"))
    for word in (
        "400 rows; image 28 × 28 × 1 uint8 grey",
        f"1 shard of .png, {size / 1000:.1f} kB, order by:digit: {folder}",
        "lecun1998gradient",
    ):
        assert word in found.out
    published, data = setsup("info", "mnist", "--json").json, setsup("info", folder, "--json").json
    assert data["shards"] == {
        "url": str(folder),
        "number": 1,
        "bytes": size,
        "order": "by:digit",
        "setsup": library.__version__,
        "members": {"image": "png"},
    }
    for name in ("title", "citation", "homepage"):
        assert data[name].split() == published[name].split()
    assert data["licence"]["name"] == published["licence"]["name"]
    counts = next(factor for factor in data["factors"] if factor["name"] == "digit")["counts"]
    assert counts == [40] * 10
    assert data["opened"] is True
    train = setsup("info", folder, "--split", "train", "--json").json
    assert (train["samples"], train["shards"]) == (200, data["shards"])


def test_rates_of_shards(setsup: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup_cli.commands.bench._SECONDS", 0.01)
    found = setsup("bench", folder, "--json")
    assert (found.code, found.err) == (0, "")
    assert (found.json["dataset"], found.json["inactive"]) == ("mnist", ["digit"])
    assert all(rate["rate"] > 0 for rate in found.json["rates"])


def test_experiments_train_on_shards(folder: Path, digits: Path) -> None:
    """As `setsup train PRESET --data.name FOLDER` does."""
    data = Data(str(folder), split="train", where="digit > 4", substitute="mnist")
    rows = library.load("mnist", digits, "train", "digit > 4")
    found = data.open()
    assert (len(found), found.factors["split"].levels) == (len(rows), rows.factors["split"].levels)
    order = np.argsort(rows.factors.column("digit"), kind="stable")
    np.testing.assert_array_equal(found.fetch(np.arange(len(rows)))["image"], rows.fetch(order)["image"])
    with pytest.raises(DataError, match="has no root; omit root="):
        data.open(digits)


def test_an_index_elsewhere(setsup: Run, folder: Path, tmp_path: Path) -> None:
    """Of shards whose place cannot be written."""
    (tmp_path / "index").mkdir()
    (tmp_path / "tars").mkdir()
    for path in folder.iterdir():
        shutil.copy(path, tmp_path / ("tars" if path.suffix == ".tar" else "index"))
    refused(setsup("sample", "tars", "--inactive", "digit"), "`setsup index")
    for words in (["sample", "--inactive", "digit"], ["info"]):
        found = setsup(words[0], "tars", "--index", "index", *words[1:])
        assert (found.code, found.err) == (0, "")
    refused(setsup("info", "mnist", "--index", "index"), "folder or address, but mnist is a benchmark")
    refused(setsup("info", "tars/data-00000.tar", "--index", "index"), "shards, given by their folder or address")
    (tmp_path / "deep").mkdir()
    (tmp_path / "tars").rename(tmp_path / "deep" / "train")
    (tmp_path / "deep" / "mine").mkdir()
    refused(setsup("info", "deep", "--index", "deep/mine"), "mine has no shards.json")


@pytest.mark.parametrize("verb", [["sample"], ["info"], ["shard", "--out", "x"]])
def test_folders_and_words_that_are_no_set(setsup: Run, folder: Path, tmp_path: Path, verb: list[str]) -> None:
    for name in ("my", "begun/.setsup", "deep/train"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copytree(folder, tmp_path / "shapes")
    tar = next(folder.glob("*.tar"))
    shutil.copy(tar, tmp_path / "deep" / "train" / "0.tar")
    for word, said in {
        "my": ["no dataset found in the folder my: expected a rendered dataset (rendered.json), shards (shards.json)"],
        "begun": ["`setsup shard`"],
        "deep": ["not indexed", "`setsup index "],
        "deep/train/0.tar": ["single tar", "pass the folder that contains it, deep/train (`setsup index deep/train`"],
        f"shapes/{tar.name}": ["single tar", "pass the folder that contains it, shapes ("],
        "s3://bucket/set/0.tar": ["single tar", "pass the folder that contains it, s3://bucket/set ("],
        "shpes": ["did you mean 'shapes' or"],
        "./shpes": ["./shpes does not exist; did you mean './shapes'?"],
        "shapes/README.md": ["shapes/README.md is a file, but not a table; pass a folder"],
        "s3:/bucket/set": ["did you mean s3://bucket/set?"],
    }.items():
        refused(setsup(verb[0], word, *verb[1:]), *said)
    assert not (tmp_path / "x").exists()


def test_a_folder_of_sets_names_them(setsup: Run, folder: Path, tmp_path: Path) -> None:
    for name in "ab":
        shutil.copytree(folder, tmp_path / "sets" / name)
    refused(setsup("info", "sets"), "sets of shards (a, b)", f"open one: {tmp_path / 'sets' / 'a'}")


def test_a_set_that_cannot_be_drawn_is_not_proposed(setsup: Run, photos: Path, tmp_path: Path) -> None:
    for ages, words in {
        (20, 29, 38, 47): ["sample", "--inactive", "subject"],  # light and subject together would be in one row each
        (20, 47): ["info"],
    }.items():
        where = " or ".join(f"age == {age}" for age in ages)
        url = tmp_path / f"shards-{len(ages)}"
        found = setsup(
            "shard", "--table", photos, "--order", "by:light,subject", "--where", where, "--out", url, "--json"
        )
        expected = ["setsup", words[0], str(url), *words[1:]]
        assert found.json["next"].split() == expected
        assert setsup(*expected[1:]).code == 0


@pytest.mark.long("stores")
def test_a_store(setsup: Run, digits: Path, folder: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same shards, and all verbs that read, at an address."""
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket.options["endpoint_url"])
    url = bucket.url
    found = setsup("shard", "mnist", "--root", digits, "--out", url, "--order", "by:digit")
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines()[-1] == f"setsup.open_shards('{url}')"
    store = fsspec.filesystem("s3", **bucket.options)
    there = {name.rpartition("/")[2]: store.cat(name) for name in store.find(url)}
    assert there == contents(folder)
    card = setsup("info", url)
    assert (card.code, card.err) == (0, "")
    assert f"order by:digit: {url}" in card.out
    assert setsup("sample", url, "--inactive", "digit", "--out", "far").code == 0
    assert setsup("sample", folder, "--inactive", "digit", "--out", "near").code == 0
    assert Path("far", "sheet.png").read_bytes() == Path("near", "sheet.png").read_bytes()
    far, near = (
        [json.loads(line) for line in Path(name, "draws.jsonl").read_text().splitlines()] for name in ("far", "near")
    )
    assert far[0].pop("source") != near[0].pop("source")
    assert far == near
    refused(setsup("info", f"{url}/nothing"), f"{url}/nothing")


def test_the_library_says_what_opens_shards(setsup: Run, folder: Path) -> None:
    for url in (str(folder), "s3://bucket/digits"):
        with pytest.raises(
            DataError, match=r"is a path or URL, not the name of a benchmark; open it with setsup\.open\('"
        ):
            library.load(url)


def test_a_name_is_a_name(setsup: Run, digits: Path, tmp_path: Path) -> None:
    """Even where a folder of that name holds tars."""
    assert setsup("shard", "mnist", "--root", digits, "--out", "mnist").code == 0
    assert find_kind("mnist") == "benchmark"
    assert find_kind("./mnist") == find_kind(Path("mnist")) == "shards"
    assert setsup("info", "mnist", "--json").json["samples"] == 70_000
    assert setsup("info", "./mnist", "--json").json["samples"] == 400


# -- stopped -----------------------------------------------------------------------------------------------------------


def test_ctrl_c_before_anything_was_written(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from setsup.shards.writing import writer

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "write_shards", stopped)
    found = setsup("shard", "--out", "out")
    assert found.code == 130
    assert found.err == "setsup: stopped before anything was written\n"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_place_that_can_hold_no_file_is_an_error_at_once(setsup: Run) -> None:
    rows = "shape == 'cube' and scale == 0.75"
    refused(setsup("shard", "--where", rows, "--out", "/proc/x"), "/proc/x", "choose a writable folder")


@pytest.mark.long("kills and interruptions")
@pytest.mark.parametrize(("processes", "number"), [(1, signal.SIGINT), (2, signal.SIGINT), (1, signal.SIGTERM)])
def test_ctrl_c_says_how_far_it_was(setsup: Run, tmp_path: Path, processes: int, number: signal.Signals) -> None:
    mnist.write(tmp_path / "release", per_split=2000)
    words = ["shard", "mnist", "--root", "release", "--out", "out", "--per-shard", 4, "--processes", processes]
    # a shell's background job has SIGINT ignored, and so have its children
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from setsup_cli.main import main; sys.exit(main())"
    child = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    end = time.monotonic() + 60
    while time.monotonic() < end and not list((tmp_path / "out").glob("data-*.tar")):
        time.sleep(0.01)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert out == f"mnist: 4,000 rows in 1,000 shards (image as png, 3.1 MB of arrays), to {tmp_path}/out\n"
    done = len(list((tmp_path / "out").glob("data-*.tar")))
    assert 0 < done < 1000
    assert err.splitlines()[-1] == f"setsup: stopped at {done:,} of 1,000 shards; run the same command to resume"
    assert "Traceback" not in err
    refused(
        setsup("sample", "out", "--inactive", "digit"), "is not finished; run the same `setsup shard` command again"
    )


def test_sigterm_is_given_back(setsup: Run, digits: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert setsup("shard", "mnist", "--root", digits, "--where", "digit == 3", "--out", "out").code == 0
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_place_that_is_gone_holds_no_shards(tmp_path: Path) -> None:
    assert _there(str(tmp_path / "gone")) == 0
    assert _there("nonsense://x") == 0


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mnist"], ["--out is required: `setsup shard mnist --out URL`"]),
        (["--table", "my photos.csv"], ["`setsup shard --table 'my photos.csv' --out URL`"]),
        (["--out", "x", "--order", "by:"], ["by:", "factors"]),
        (["--out", "x", "--order", "by:shap"], ["did you mean 'shape'?", "`setsup info shapes3d-procedural`"]),
        (["--out", "x", "--order", "sorted"], ["'sorted'", "shuffle"]),
        (["--out", "x", "--where", "scale > 3"], ["--where 'scale > 3' selects no rows"]),
        (["--out", "x", "--where", "sale > 3"], ["sale"]),
        (["--out", "x", "--format", "gif"], ["--format", "png"]),
        (["--out", "x", "--per-shard", "0"], ["at least 1, not 0"]),
        (["--out", "x", "--processes", "0"], ["processes must be an integer of at least 1"]),
        (["--out", "x", "--modalities", "depth"], ["no modality 'depth'"]),
        (["--out", "x", "--on", "slurm"], ["--on must be ray, not 'slurm'"]),
        (["--out", "x", "--ray-gpus", "1"], ["require --on ray"]),
        (["--out", "nonsense://x"], ["nonsense://x"]),
        (["--out", "memory://x"], ["memory://x is in the memory of this process, which ends"]),
        (["--out", "x", "--on", "ray", "--ray-address", "127.0.0.1:1"], ["no response from 127.0.0.1:1"]),
        (["nothing-such", "--out", "x"], ["'nothing-such' does not exist: "]),
        (["set/data-00000.tar", "--out", "x"], ["is a single tar, not a dataset; pass the folder"]),
        (["mnist", "--out", "x"], ["`setsup fetch mnist`"]),
    ],
)
def test_what_is_refused(setsup: Run, tmp_path: Path, words: list[str], said: list[str]) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "data-00000.tar").touch()
    refused(setsup("shard", *words), *said)
    assert not (tmp_path / "x").exists()
    assert not list(tmp_path.glob("*.lock"))


def test_other_files_are_not_touched(setsup: Run, digits: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("x")
    refused(setsup("shard", "mnist", "--root", digits, "--out", "out"), "thesis.tex", "choose a new place")
    assert contents(tmp_path) == {"out/thesis.tex": b"x"}


def test_help(setsup: Run) -> None:
    found = " ".join(setsup("shard", "--help").out.replace("│", " ").split())
    for word in ("--order", "--per-shard N", "--ray-address", "--on ray", "keep|shuffle|by:FACTOR,..."):
        assert word in found


def test_what_a_person_adds_is_written_and_told_no_more(setsup: Run, tmp_path: Path) -> None:
    (tmp_path / "rai.yaml").write_text("".join(f"{name}: None known.\n" for name in REQUIRED_BY_TRACKS))
    words = ["shard", "--out", "out", "--where", "scale == 1.25 and object_hue == wall_hue == floor_hue == 0"]
    found = setsup(*words)
    assert f"croissant.json lacks {', '.join(REQUIRED_BY_TRACKS)}: add them with --rai FILE.yaml" in found.out
    again = setsup(*words, "--rai", "rai.yaml")
    assert (again.code, "croissant.json describes the dataset" in again.out) == (0, True)
    described = setsup("info", "out", "--croissant").json
    assert described["rai:dataBiases"] == "None known."
    path = tmp_path / "out" / "croissant.json"
    described["distribution"][0]["contentUrl"] = "https://example.org/0.tar"
    path.write_text(json.dumps(described), "utf-8")
    (tmp_path / "rai.yaml").write_text("dataBiases: [A few.]\nversion: 1.0.1\n")
    assert setsup(*words, "--rai", "rai.yaml").code == 0
    assert json.loads(path.read_text("utf-8")) == {**described, "rai:dataBiases": ["A few."], "version": "1.0.1"}
    path.unlink()
    assert "no croissant.json: write it with --rai FILE.yaml" in setsup(*words).out
    assert setsup(*words, "--rai", "rai.yaml").code == 0
    assert json.loads(path.read_text("utf-8"))["recordSet"] == described["recordSet"]
    refused(setsup("info", "out", "--rai", "rai.yaml"), "--rai is an option of --croissant")
    refused(setsup("info", "mnist", "--croissant", "--split", "train"), "--croissant describes the whole dataset")


def test_a_benchmark_is_described_without_its_files(setsup: Run) -> None:
    found = setsup("info", "cub200", "--croissant").json
    assert (found["@type"], found["name"]) == ("sc:Dataset", "cub200")
    assert found["distribution"]


def test_other_sources_are_described_by_writing_them(setsup: Run, photos: Path) -> None:
    refused(
        setsup("info", photos, "--croissant"),
        "photos.csv cannot be described in Croissant",
        "setsup shard",
    )
