import inspect
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError, FactorError
from setsup.opening import KINDS, SourceKind, find_kind, options_of, path_options
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.folder import open_rendered
from setsup.rendered.writing import render
from setsup_cli.main import main
from tests.rendered_scenes import Crayon, Dots
from tests.true_files import mnist

ROWS = 6


def same(one: setsup.datasets.Dataset, other: setsup.datasets.Dataset) -> None:
    assert one.factors.fingerprint == other.factors.fingerprint
    for name, array in one.fetch(range(len(one))).items():
        np.testing.assert_array_equal(array, other.fetch(range(len(other)))[name])


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A source of each kind that lies on the disk; the benchmark is the folder of its files."""
    folder = tmp_path_factory.mktemp("sources")
    (folder / "mnist").mkdir()
    mnist.write(folder / "mnist", per_split=10)
    shapes = setsup.load("shapes3d-procedural").select(range(0, 480_000, 480_000 // ROWS))
    setsup.write_shards(shapes, folder / "shards")
    render(RenderedDataset(Dots(), renderer=Crayon()), folder / "rendered", ["image"])
    for row in range(ROWS):
        Image.new("L", (4, 3), 40 * row).save(folder / f"{row}.png")
    lines = [f"{row}.png,{'ab'[row % 2]},{['train', 'test'][row // 3]}" for row in range(ROWS)]
    (folder / "photos.csv").write_text("\n".join(["image,subject,split", *lines]) + "\n")
    shutil.copy(folder / "photos.csv", folder / "photos.xyz")
    return {path.stem: path for path in (*folder.glob("[m-z]*/"), folder / "photos.csv")} | {
        "text": folder / "photos.xyz"
    }


@pytest.fixture(scope="module")
def saved(sources: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Hugging Face datasets saved on disk."""
    hf = pytest.importorskip("datasets")
    hf.disable_progress_bars()
    folder = tmp_path_factory.mktemp("saved") / "photos"
    setsup.to_huggingface(setsup.open_table(sources["photos"]).where("subject == 'a'"), folder)
    return folder


# -- kinds -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [str, Path])
def test_what_lies_on_a_disk(sources: Mapping[str, Path], form: type) -> None:
    same(setsup.open(form(sources["shards"])), setsup.open_shards(sources["shards"]))
    same(setsup.open(form(sources["rendered"])), open_rendered(sources["rendered"]))
    same(setsup.open(form(sources["photos"])), setsup.open_table(sources["photos"]))
    kinds = {name: find_kind(form(sources[name])) for name in ("shards", "rendered", "photos")}
    assert kinds == {"shards": "shards", "rendered": "rendered", "photos": "table"}


def test_a_parquet_file(sources: Mapping[str, Path]) -> None:
    from pyarrow import csv, parquet

    file = sources["photos"].with_name("packed.parquet")
    parquet.write_table(csv.read_csv(sources["photos"]), file)
    same(setsup.open(file), setsup.open_table(sources["photos"]))


@pytest.mark.long("large or genuine files")
def test_a_saved_hugging_face_dataset(saved: Path, tmp_path: Path) -> None:
    import datasets

    assert find_kind(str(saved)) == find_kind(saved) == "huggingface"
    same(setsup.open(saved), setsup.from_huggingface(saved))
    assert setsup.open(str(saved), size=(2, 2)).fetch(0)["image"].shape == (2, 2, 1)
    datasets.DatasetDict(a=datasets.load_from_disk(str(saved))).save_to_disk(tmp_path / "parts")
    assert find_kind(tmp_path / "parts") == "huggingface"


def test_a_folder_of_images(sources: Mapping[str, Path], tmp_path: Path) -> None:
    for row, name in enumerate(["cats/a/1.png", "cats/a/2.PNG", "cats/b/1.jpg", "dogs/1.png", "top.png"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 3), 40 * row).save(tmp_path / name)
    (tmp_path / "notes.txt").touch()
    found = setsup.open(tmp_path)
    assert find_kind(str(tmp_path)) == "images"
    assert found.factors.values("folder").tolist() == ["cats/a", "cats/a", "cats/b", "dogs", "."]
    assert found.fetch(range(5))["image"][:, 0, 0, 0].tolist() == [0, 40, 80, 120, 160]
    assert setsup.open(tmp_path, size=(2, 2)).fetch(0)["image"].shape == (2, 2, 1)
    archive = shutil.make_archive(str(tmp_path / "pets"), "zip", tmp_path, "cats")
    assert set(setsup.open(archive, kind="images").factors.values("folder")) == {"cats/a", "cats/b"}
    with pytest.raises(
        DataError, match=r"all images of .*dogs are in one folder, so no factor can be derived from folders"
    ):
        setsup.open(tmp_path / "dogs")
    with pytest.raises(DataError, match=r"mnist contains no images: none of its .* files ends with"):
        setsup.open(sources["mnist"], kind="images")


def test_benchmarks(sources: Mapping[str, Path]) -> None:
    same(setsup.open("mnist", sources["mnist"]), setsup.load("mnist", sources["mnist"]))
    found = setsup.open("mnist", sources["mnist"], "test", "digit > 4")
    same(found, setsup.load("mnist", sources["mnist"], "test", "digit > 4"))
    assert setsup.open("affine-mnist", sources["mnist"], copies=1).name == "affine-mnist"
    with pytest.raises(DataError, match="setsup fetch mnist"):
        setsup.open("mnist", sources["shards"])


def test_addresses(sources: Mapping[str, Path]) -> None:
    same(setsup.open(f"file://{sources['shards']}"), setsup.open_shards(sources["shards"]))
    for address in ("s3://bucket/shapes", "https://example.org/shapes", "hf://datasets/someone/shapes", "s3:/bucket/x"):
        assert find_kind(address) == "shards"
    api = "https://huggingface.co/api/datasets/mnist/croissant"
    for address in (
        api,
        f"{api}?full=1",
        "https://a.b/croissant.json?download=1",
        "https://a.b/x.JSON",
        "http://a.b/x.jsonld#top",
    ):
        assert find_kind(address) == "croissant"
    with pytest.raises(DataError, match="did you mean s3://bucket/x"):
        setsup.open("s3:/bucket/x")


def test_splits_and_rows_of_every_kind(sources: Mapping[str, Path]) -> None:
    assert setsup.open(sources["photos"], split="test", where="subject == 'a'").rows.tolist() == [4]
    assert set(setsup.open(sources["shards"], where="shape == 'cube'").factors.values("shape")) == {"cube"}
    assert set(setsup.open(sources["rendered"], where="hue == 20").factors.values("hue")) == {20}


# -- precedence --------------------------------------------------------------------------------------------------------


def test_a_name_comes_before_a_path(
    sources: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "shapes3d-procedural"
    shutil.copytree(sources["shards"], tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert (find_kind(name), len(setsup.open(name))) == ("benchmark", 480_000)
    for path in (f"./{name}", Path(name), str(tmp_path / name)):
        assert (find_kind(path), len(setsup.open(path))) == ("shards", ROWS)
    assert len(setsup.open(name, kind="shards")) == ROWS


def test_an_address_comes_before_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s3:" / "photos.csv").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert find_kind("s3://photos.csv") == "shards"


def test_a_kind_overrides(sources: Mapping[str, Path]) -> None:
    same(setsup.open(sources["text"], kind="table"), setsup.open(sources["photos"]))
    with pytest.raises(DataError, match=r"photos\.xyz is a file, but not a table; "):
        setsup.open(sources["text"])
    with pytest.raises(DataError, match=r"photos\.csv is a path or URL, not the name of a benchmark"):
        setsup.open(sources["photos"], kind="benchmark")
    with pytest.raises(DataError, match="kind of open must be one of benchmark, rendered, shards, table"):
        setsup.open(sources["photos"], kind="film")


def test_what_could_be_two_kinds_is_chosen_by_the_user(
    sources: Mapping[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = tmp_path / "both"
    shutil.copytree(sources["rendered"], both)
    shutil.copytree(sources["shards"], both, dirs_exist_ok=True)
    sentence = (
        rf"^{both} contains a rendered dataset \(rendered\.json\) and a set of shards \(shards\.json\); "
        "choose one with kind='rendered' or kind='shards'$"
    )
    with pytest.raises(DataError, match=sentence):
        setsup.open(both)
    assert len(setsup.open(both, kind="shards")) == ROWS
    same(setsup.open(both, kind="rendered"), open_rendered(sources["rendered"]))
    assert main(["info", str(both)]) == 2
    assert "choose one with --option kind=rendered or --option kind=shards" in capsys.readouterr().err
    assert main(["info", str(both), "--option", "kind=shards", "upright=false", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == ROWS


def test_tars_within_a_render_are_its_own(sources: Mapping[str, Path], tmp_path: Path) -> None:
    """As where shards of a render were written into its folder."""
    shutil.copytree(sources["rendered"], tmp_path / "views")
    shutil.copytree(sources["shards"], tmp_path / "views" / "shards")
    assert find_kind(tmp_path / "views") == "rendered"
    assert find_kind(tmp_path / "views" / "shards") == "shards"


# -- options -----------------------------------------------------------------------------------------------------------


def test_the_options_of_a_source(sources: Mapping[str, Path]) -> None:
    assert list(options_of(sources["photos"])) == ["image", "factors", "kinds", "size"]
    assert list(options_of(sources["shards"])) == ["index", "size", "upright", "cache", "storage_options"]
    assert options_of(sources["rendered"]) == options_of("mnist") == {}
    assert list(options_of("affine-mnist")) == ["copies", "order", "seed", "translation"]
    assert list(options_of(sources["mnist"], "huggingface")) == ["image", "factors", "kinds", "size"]
    assert path_options("edges2shoes") == {"zappos"}
    assert path_options(sources["shards"]) == {"index"}


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("photos", {"sise": (2, 2)}, r"photos.csv has no option 'sise'; did you mean 'size'\?"),
        ("shards", {"copies": 2}, "shards has no option 'copies'; choose from index, size, upright"),
        ("rendered", {"size": (2, 2)}, "rendered has no option 'size'; it takes no options"),
        ("photos", {"root": "."}, "photos.csv is a table, which has no root; omit root='.'"),
        ("rendered", {"root": "."}, "rendered is a rendered dataset, which has no root; omit root='.'"),
        ("shards", {"split": "train"}, "has no splits; leave out split='train'"),
        ("photos", {"split": "trian"}, "photos has no split 'trian'; did you mean 'train'"),
        ("photos", {"size": "large"}, "size must be "),
    ],
)
def test_wrong_options_are_one_sentence(
    sources: Mapping[str, Path], name: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(DataError, match=sentence) as caught:
        setsup.open(sources[name], **options)
    assert "\n" not in str(caught.value)


def test_wrong_options_of_benchmarks(sources: Mapping[str, Path]) -> None:
    with pytest.raises(DataError, match="mnist has no option 'size'; it takes no options"):
        setsup.open("mnist", sources["mnist"], size=(2, 2))
    with pytest.raises(FactorError, match="digt"):
        setsup.open("mnist", sources["mnist"], where="digt == 3")


# -- what is none ------------------------------------------------------------------------------------------------------


def test_what_is_no_source_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tars" / "train").mkdir(parents=True)
    (tmp_path / "tars" / "train" / "0.tar").touch()
    (tmp_path / "begun" / ".setsup").mkdir(parents=True)
    (tmp_path / "begun" / ".setsup" / "plan.json").touch()
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "rendered.json").touch()
    (tmp_path / "none").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, said in {
        "tars": r"tars has no shards.json, so its tars are not indexed; .*`setsup index .*tars`",
        "tars/train/0.tar": r"0\.tar is a single tar, not a dataset; pass the folder that contains it, tars/train",
        "begun": "begun is not finished; run the same `setsup shard` command again",
        "none": r"no dataset found in the folder .*none: expected a rendered dataset \(rendered.json\), shards \(",
        "romos": "'romos' does not exist: the working directory has .*; did you mean 'rooms'",
        "./romos": "./romos does not exist; did you mean './rooms'?",
        "absent/x": "absent/x does not exist; pass a folder of images, a table such as photos.csv, or the name",
        "absent.csv": "absent.csv does not exist; expected a CSV, Parquet or JSON lines file",
        "mnits": "'mnits' does not exist: .*; did you mean 'mnist'",
        "~nobody-of-that-name/x": "unknown home folder '~nobody-of-that-name'",
    }.items():
        with pytest.raises(DataError, match=said) as caught:
            setsup.open(name)
        assert "\n" not in str(caught.value)
    for wrong in (None, 3, b"mnist", ["mnist"]):
        with pytest.raises(DataError, match="source of open must be a path or a string"):
            setsup.open(wrong)


def test_names_that_are_suggested_are_those_of_images_and_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, file in {"tests": "test_a.py", "papers": "a.pdf", "pest": "notes.txt", "parts": "a/b.png"}.items():
        (tmp_path / folder / file).parent.mkdir(parents=True)
        (tmp_path / folder / file).touch()
    (tmp_path / "photos.csv").touch()
    monkeypatch.chdir(tmp_path)
    everything = "; pass a folder of images, a table such as photos.csv, or the name of a dataset (`setsup datasets`"
    for name, end in {
        "pets": f"the working directory has no such file or folder, and no dataset has that name{everything}",
        "./pets": f"./pets does not exist{everything}",
        "prats": "; did you mean 'parts'? (`setsup datasets` lists all datasets)",
        "photos": "; did you mean 'photos.csv'? (`setsup datasets` lists all datasets)",
        "phtos.csv": "phtos.csv does not exist; did you mean 'photos.csv'?",
    }.items():
        with pytest.raises(DataError) as caught:
            setsup.open(name)
        assert end in str(caught.value)
    (tmp_path / "pest" / "a.jpg").touch()
    with pytest.raises(DataError, match="; did you mean 'pest'"):
        setsup.open("pets")


# -- names -------------------------------------------------------------------------------------------------------------


def test_a_star_import_keeps_the_open_of_python() -> None:
    assert "open" not in setsup.__all__
    assert "open" in dir(setsup)
    assert inspect.signature(setsup.open).parameters["kind"].default is None
    assert tuple(KINDS) == get_args(SourceKind)
