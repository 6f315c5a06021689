"""``--option``: options of a dataset, read by the types that its ``open`` declares; and paths without data."""

import json
import os
import shlex
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

import setsup as library
from setsup.errors import DataError
from setsup.opening import options_of, path_options
from setsup_cli.parsing.values import describe_options, read_options, write_options
from tests.cli.refusals import refused
from tests.true_files import imagenet_100

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def synsets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ImageNet-100 with pictures of several sizes, and a list of two of its synsets beside it."""
    folder = tmp_path_factory.mktemp("imagenet")
    imagenet_100.write(folder / "release")
    (folder / "two.txt").write_text("\n".join(sorted(imagenet_100.LIST)[:2]))
    return folder


def parameters(**types: Any) -> dict[str, Parameter]:
    return {name: Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in types.items()}


# -- words and types ---------------------------------------------------------------------------------------------------


def test_words_are_read_by_declared_types() -> None:
    known = parameters(
        whole=int,
        real=float,
        sure=bool,
        word=str,
        size=tuple[int, int],
        maybe=tuple[int, int] | None,
        kind=Literal["a"],
    )
    words = ["whole=-3", "real=1e-3", "sure=TRUE", "word=a=b", "size=64,32", "maybe=none", "kind=a"]
    found = read_options(words, known, "it")
    assert found == {
        "whole": -3, "real": 0.001, "sure": True, "word": "a=b", "size": (64, 32), "maybe": None, "kind": "a"
    }  # fmt: skip
    assert describe_options(known) == [
        "whole=N", "real=NUMBER", "sure=true|false", "word=TEXT", "size=N,N", "maybe=N,N|none", "kind=a"
    ]  # fmt: skip


@given(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.lists(st.integers(), min_size=1))
def test_numbers_come_back_as_they_were_written(whole: int, real: float, several: list[int]) -> None:
    known = parameters(whole=int, real=float, several=tuple[int, ...])
    words = [f"whole={whole}", f"real={real!r}", f"several={','.join(map(str, several))}"]
    assert read_options(words, known, "it") == {"whole": whole, "real": real, "several": tuple(several)}


@given(
    st.fixed_dictionaries(
        {
            "whole": st.integers(),
            "real": st.floats(allow_nan=False, allow_infinity=False),
            "sure": st.booleans(),
            "word": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
            "size": st.tuples(st.integers(), st.integers()),
            "maybe": st.none() | st.tuples(st.integers(), st.integers()),
        }
    )
)
def test_words_that_a_shell_reads_are_read_as_they_were(values: dict[str, Any]) -> None:
    known = parameters(whole=int, real=float, sure=bool, word=str, size=tuple[int, int], maybe=tuple[int, int] | None)
    words = shlex.split(" ".join(write_options(values)))
    assert read_options(words, known, "it") == values
    assert write_options({"size": [64, 64]}) == ["size=64,64"]


@pytest.mark.long("large or genuine files")
@given(st.text(max_size=20), st.sampled_from(["whole", "real", "sure", "size", "kind", "maybe"]))
def test_whatever_the_word_it_is_read_or_refused(text: str, name: str) -> None:
    known = parameters(
        whole=int, real=float, sure=bool, size=tuple[int, int], maybe=tuple[int, int] | None, kind=Literal["a", 3]
    )
    try:
        value = read_options([f"{name}={text}"], known, "it")[name]
    except DataError:
        return
    kinds = {"whole": int, "real": float, "sure": bool, "size": tuple, "maybe": tuple | None, "kind": str | int}
    assert isinstance(value, kinds[name])


@pytest.mark.long("large or genuine files")
def test_all_declared_options_can_be_given() -> None:
    """Of every benchmark: no type among them is unknown to the command line."""
    from setsup.files import load_manifest, manifest_names

    names = [name for name in manifest_names() if load_manifest(name).adapter]
    for name in names:
        for one, words in zip(options_of(name).values(), describe_options(options_of(name)), strict=True):
            usual = one.default
            if isinstance(usual, str | int | float) or (isinstance(usual, tuple) and usual):
                text = ",".join(map(str, usual)) if isinstance(usual, tuple) else str(usual)
                assert read_options([f"{one.name}={text}"], {one.name: one}, name) == {one.name: usual}, words
    assert path_options("edges2shoes") == {"zappos"}


# -- verbs -------------------------------------------------------------------------------------------------------------


@pytest.mark.long("large or genuine files")
def test_what_is_drawn_is_of_the_data_set_so_opened_and_is_replayed_so(setsup: Run, digits: Path) -> None:
    words = ["sample", "affine-mnist", "--root", digits, "--option", "copies=2", "seed=5", "--inactive", "digit"]
    found = setsup(*words, "--json")
    assert (found.code, found.err) == (0, "")
    whole = library.load("affine-mnist", digits, copies=2, seed=5)
    assert (found.json["rows"], found.json["fingerprint"]) == (len(whole), whole.factors.fingerprint)
    assert found.json["options"] == {"copies": "2", "seed": "5"}
    before = {path.name: path.read_bytes() for path in Path("setsup-samples").iterdir()}
    again = ["sample", "--root", digits, "--replay", "setsup-samples/draws.jsonl", "--out", "again"]
    assert setsup(*again).code == 0
    assert {path.name: path.read_bytes() for path in Path("again").iterdir()} == before
    refused(setsup(*again, "--option", "copies=2"), "records how the dataset was opened; omit --option copies=2")
    # shards were written with them
    assert setsup("shard", *words[1:-2], "--out", "shards").code == 0
    shards = setsup("sample", "shards", *again[3:])
    assert (shards.code, shards.err) == (0, "")
    assert Path("again/draws.jsonl").read_bytes() == before["draws.jsonl"]
    refused(
        setsup("sample", "shards", *again[3:], "--option", "copies=2"),
        "shards has no option 'copies'; its options: size=N,…|none, ",
    )
    for wrong, said in (({"copies": 2}, "options must map names to strings"), ({"copies": "x"}, "expects copies=N")):
        head, *steps = Path("setsup-samples/draws.jsonl").read_text().splitlines()
        Path("other.jsonl").write_text("\n".join([json.dumps(json.loads(head) | {"options": wrong}), *steps]))
        refused(setsup("sample", "--root", digits, "--replay", "other.jsonl"), said)


@pytest.mark.long("large or genuine files")
def test_what_says_where_data_lie_is_given_anew(setsup: Run, synsets: Path) -> None:
    root = ["--root", synsets / "release"]
    opened = ["--option", f"synsets={synsets / 'two.txt'}", "size=32,32"]
    assert setsup("sample", "imagenet-100", *root, *opened, "--inactive", "synset", "--size", 4).code == 0
    head = json.loads(Path("setsup-samples/draws.jsonl").read_text().splitlines()[0])
    assert head["options"] == {"synsets": None, "size": "32,32"}
    assert str(synsets) not in Path("setsup-samples/draws.jsonl").read_text()
    replay = ["sample", *root, "--replay", "setsup-samples/draws.jsonl", "--out", "again"]
    refused(setsup(*replay), "was drawn with a path as --option synsets=…; specify this option again")
    refused(setsup(*replay, *opened[:2], opened[1]), "--option synsets=… is specified twice")
    assert setsup(*replay, *opened[:2]).code == 0
    assert Path("again/sheet.png").read_bytes() == Path("setsup-samples/sheet.png").read_bytes()


def test_all_verbs_that_open_by_name_take_them(setsup: Run, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup_cli.commands.bench._SECONDS", 0.01)
    monkeypatch.setattr("setsup_cli.commands.bench._DRAWS", 1)
    opened = ["affine-mnist", "--root", digits, "--option", "copies=1"]
    rows = len(library.load("affine-mnist", digits, copies=1))
    found = setsup("info", *opened)
    assert f"{rows:,} rows" in found.out
    assert "options: copies=N, order=TEXT,…, seed=N, translation=NUMBER; as in setsup.open(" in found.out
    assert setsup("info", *opened, "--json").json["samples"] == rows
    assert setsup("info", *opened, "--json").json["options"] == [
        "copies=N",
        "order=TEXT,…",
        "seed=N",
        "translation=NUMBER",
    ]
    closed = setsup("info", "affine-mnist")  # which needs no file
    assert "not opened: " in closed.out
    assert "options: copies=N, order=TEXT,…, seed=N, translation=NUMBER; as in setsup.open(" in closed.out
    assert setsup("bench", *opened, "--json").code == 0
    assert setsup("shard", *opened, "--out", "out", "--json").json["rows"] == rows
    other = setsup("shard", *opened[:-1], "copies=2", "--out", "out")
    refused(other, "contains other shards")


@pytest.mark.long("large or genuine files")
def test_shards_of_pictures_of_several_sizes_as_one(setsup: Run, synsets: Path) -> None:
    words = ["shard", "imagenet-100", "--root", synsets / "release", "--where", "split == 'val'", "--size", 24, 40]
    found = setsup("shard", *words[1:], "--out", "out", "--json")
    assert (found.code, found.err) == (0, "")
    assert found.json["modalities"]["image"]["shape"] == [24, 40, 3]
    shards, whole = library.open_shards("out"), library.load("imagenet-100", synsets / "release")
    for row in range(0, len(shards), 17):
        picture = Image.fromarray(whole.fetch(int(shards.source_rows(row)))["image"])
        fitted = ImageOps.fit(picture, (40, 24), Image.Resampling.BICUBIC)
        np.testing.assert_array_equal(shards.fetch(row)["image"], np.asarray(fitted))
    # as what was written as it is, and is resized where it is read
    assert setsup("shard", *words[1:-3], "--out", "as-they-are").code == 0
    read = library.open_shards("as-they-are", size=(24, 40))
    np.testing.assert_array_equal(read.fetch(range(7))["image"], shards.fetch(range(7))["image"])
    assert read.catalogue.about == shards.catalogue.about
    again = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    assert setsup(*words, "--out", "two", "--processes", 2).code == 0
    assert {path.name: path.read_bytes() for path in Path("two").iterdir()} == again
    said = "the existing images have 24 × 40 pixels, not 24 × 41"
    refused(setsup(*words[:-1], 41, "--out", "out"), "contains other shards", said)
    assert "pictures there" not in setsup(*words, "--seed", 1, "--order", "shuffle", "--out", "out").err
    refused(setsup(*words[:-1], 0, "--out", "none"), "size must be (height, width), two integers of at least 1")
    refused(setsup(*words[:-1], "--out", "none"), "--size requires 2 values")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["info", "cars196", "--option", "sise=3"],
            "has no option 'sise'; its options: size=N,N, margin=NUMBER, jitter=",
        ),
        (["info", "mnist", "--option", "copies=2"], "mnist has no option 'copies'; its options: none"),
        (["sample", "--option", "seed=2"], "shapes3d-procedural has no option 'seed'; its options: none"),
        (["bench", "cars196", "--option", "size=64"], "--option size=64: cars196 expects size=N,N"),
        (["shard", "cars196", "--option", "margin=nan", "--out", "out"], "cars196 expects margin=NUMBER"),
        (["info", "cars196", "--option", "margin"], "--option must be NAME=VALUE, such as size=N,N, not 'margin'"),
        (["info", "cars196", "--option", "seed=1", "seed=1"], "--option seed=… is specified twice"),
        (["info", "cars196", "--option"], "--option requires a value: `--option NAME=VALUE ...`"),
        (["info", "nowhere", "--option", "a=1"], "'nowhere' does not exist: the working directory has no such file"),
        (
            ["info", "--table", "photos.csv", "--option", "a=1"],
            "photos.csv has no option 'a'; its options: size=N,N|none",
        ),
        (
            ["info", "photos.csv", "--option", "image=path"],
            "photos.csv has no option 'image'; its options: size=N,N|none",
        ),
        (["info", "photos.csv", "--option", "kind=film"], "--option kind must be one of benchmark, rendered, shards"),
        (["info", "photos.csv", "--option", "kind=shards"], "photos.csv is a file; pass the folder or the address"),
        (["prepare", "mnist", "--option", "a=1"], "`setsup prepare mnist` has no option 'a'; its options: none"),
    ],
)
def test_what_is_refused(setsup: Run, words: list[str], sentence: str) -> None:
    Path("photos.csv").write_text("path,subject\n")
    refused(setsup(*words), sentence)


def test_options_of_shards(setsup: Run) -> None:
    rows = "scale == 1.25 and shape == 'cube' and floor_hue == 0.0 and wall_hue == 0.0 and object_hue == 0.0"
    assert setsup("shard", "--where", rows, "--out", "out").code == 0
    refused(
        setsup("info", "out", "--option", "a=1"), "--option a=1: out has no option 'a'; its options: size=N,…|none, "
    )
    small = setsup("info", "out", "--option", "size=8,16", "--json")
    assert small.json["modalities"][0]["shape"] == [8, 16, 3]
    assert small.json["options"] == ["size=N,…|none", "upright=true|false", "cache=N"]


# -- where data lie ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["info", "~nobody-here/data"],
        ["info", "mnist", "--root", "~nobody-here/data"],
        ["sample", "~nobody-here/data", "--inactive", "digit"],
        ["sample", "--inactive", "shape", "--out", "~nobody-here/data"],
        ["sample", "--replay", "~nobody-here/data"],
        ["pairs", "room", "--out", "~nobody-here/data"],
        ["report", "abc/fig4a", "--out", "~nobody-here/data"],
        ["train", "abc/figS3", "--smoke", "--out", "~nobody-here/data"],
        ["shard", "--out", "~nobody-here/data"],
        ["render", "shapes3d", "--rows", "1", "--out", "~nobody-here/data"],
        ["index", "~nobody-here/data"],
        ["info", "--table", "~nobody-here/data"],
        ["train", "~nobody-here/data.py"],
    ],
)
def test_a_home_that_nobody_knows(setsup: Run, words: list[str]) -> None:
    refused(setsup(*words), "~nobody-here/data", "unknown home folder '~nobody-here'; write the full path")


def test_a_sample_in_the_home_folder(setsup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    found = setsup("sample", "--inactive", "shape", "--size", 2, "--out", "~/drawn")
    assert (found.code, found.out.splitlines()[-1]) == (0, str(tmp_path / "home" / "drawn" / "sheet.png"))
    assert not Path("~").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("name", ["shards.json", "index.parquet"])
def test_a_pipe_in_a_folder_of_shards_is_not_waited_for(setsup: Run, name: str) -> None:
    rows = "scale == 1.25 and shape == 'cube' and floor_hue == 0.0 and wall_hue == 0.0 and object_hue == 0.0"
    assert setsup("shard", "--where", rows, "--out", "out").code == 0
    Path("out", name).unlink()
    os.mkfifo(Path("out", name))
    refused(setsup("info", "out"), f"out/{name} is ")
    with pytest.raises(DataError):
        library.open_shards("out")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_the_place_of_a_render_is_not_waited_for(setsup: Run) -> None:
    Path("out").mkdir()
    os.mkfifo("out/rendered.json")
    refused(setsup("info", "out"), "expected a rendered dataset (rendered.json), shards (shards.json)")


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["report", "abc/fig4a", "--out", "/proc/x.png"], "/proc/x.png"),
        (["report", "abc/fig4a", "--out", "file/x.png"], "file/x.png"),
        (["report", "abc/fig4a", "--out", "folder.png"], "folder.png"),
        (["pairs", "room", "--out", "/proc/x.png"], "/proc/x.png"),
        (["sample", "--inactive", "shape", "--out", "/proc/x"], "/proc/x/sheet.png"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(setsup: Run, words: list[str], file: str) -> None:
    Path("file").write_text("")
    Path("folder.png").mkdir()
    refused(setsup(*words), f"cannot write {file}: ", "choose a writable folder")


def test_an_image_has_the_suffix_png(setsup: Run) -> None:
    refused(setsup("pairs", "room", "--out", "x.jpg"), "--out must be a file with the suffix .png, not x.jpg")
