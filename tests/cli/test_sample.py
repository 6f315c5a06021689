import errno
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import setsup as library
from setsup.samplers.overlap.table import OverlapTable
from setsup_cli.parsing.own_samplers import find_class
from setsup_cli.suggestions import sampler_call
from tests.cli.refusals import refused
from tests.samplers.overlap_distributions import table_of

Run = Callable[..., Any]
FILES = ("draws.jsonl", "draws.npz", "sheet.png")


def contents(folder: Path) -> dict[str, bytes]:
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    return {name: (folder / name).read_bytes() for name in FILES}


_TOO_SMALL = "lower --size, or pass --small drop to leave them out, --small short or --small replace"


def test_two_sets_of_one_class_say_how_to_draw_two_classes(setsup: Run, photos: Path) -> None:
    """Values of sets are independent, so that with few classes they often coincide."""
    said, same = set(), set()
    for seed in range(8):
        printed = setsup("sample", photos, "--inactive", "light", "--seed", seed, "--force").out
        fixed = [line.split("light = ")[1].split()[0] for line in printed.splitlines() if "light = " in line]
        if len(set(fixed)) == 1:
            same.add(seed)
        if "--values different" in printed:
            said.add(seed)
    assert said == same
    assert 0 < len(same) < 8
    assert "by chance" not in setsup("sample", photos, "--inactive", "light", "--force", "--values", "equal").out


def test_the_only_class_is_not_drawn_by_chance(setsup: Run, photos: Path) -> None:
    found = setsup("sample", photos, "--inactive", "light", "--where", "light == 'day'", "--sets", 2)
    assert found.code == 0
    assert "by chance" not in found.out


def test_the_first_command_of_the_readme(setsup: Run, tmp_path: Path) -> None:
    found = setsup("sample", "--inactive", "wall_hue")
    assert (found.code, found.err) == (0, "")
    sheet = Path(found.out.splitlines()[-1])
    assert sheet == Path("setsup-samples/sheet.png")
    with Image.open(tmp_path / sheet) as image:
        assert image.format == "PNG"
        assert image.width <= 1400
    arrays = np.load(tmp_path / "setsup-samples" / "draws.npz")
    assert sorted(arrays) == ["inactive_wall_hue", "indices"]
    assert (arrays["indices"].dtype, arrays["indices"].shape) == (np.dtype(np.int64), (1, 2, 32))
    # row numbers of the published set: wall hue is the second of its factors, with stride 4,800 and ten levels
    hues = arrays["indices"] // 4800 % 10
    assert (hues == arrays["inactive_wall_hue"][..., None]).all()
    assert all(f"wall_hue = {hue / 10:.4g} turn" in found.out for hue in hues[0, :, 0].tolist())
    assert "shape 4 of 4" in found.out
    assert "groups of rows with equal values: 10, of 48,000 rows each; all can be drawn\n" in found.out


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("--inactive wall_hue --size 8 --steps 2", lambda table: library.SetSampler(table, ["wall_hue"], size=8)),
        ("--domain shape --size 5 --sets 3", lambda table: library.DomainSampler(table, "shape", size=5, sets=3)),
        ("--triplets shape --sets 7", lambda table: library.TripletSampler(table, "shape", triplets=7)),
        pytest.param(
            *("--triplets shape --sets 70", lambda table: library.TripletSampler(table, "shape", triplets=70)),
            marks=pytest.mark.long("large or genuine files"),
        ),
        ("--pairs 1-2 --sets 5", lambda table: library.FactorPairSampler(table, 5, k=(1, 2))),
        (
            "--episode object_hue shape --across scale --ways 3 --shots 2 --queries 4 --seed 3",
            lambda table: library.EpisodeSampler(table, ["object_hue", "shape"], 3, 2, 4, across="scale", seed=3),
        ),
        (
            "--sequence shape object_hue --time orientation --window 9 --sets 6 --where scale==1.25",
            lambda table: library.SequencePairSampler(
                table, ["shape", "object_hue"], "orientation", 9.0, 6, where="scale==1.25"
            ),
        ),
        (
            "--hierarchy shape=2 scale=3 --size 4 --seed 3",
            lambda table: library.HierarchicalSampler(table, ["shape", "scale"], [2, 3], 4, seed=3),
        ),
        (
            "--orbit shape --size 6 --sets 2 --canonical first --where scale>=1.0",
            lambda table: library.OrbitSampler(table, "shape", size=6, sets=2, canonical="first", where="scale>=1.0"),
        ),
    ],
)
def test_the_sheet_is_that_of_the_library(setsup: Run, words: str, make: Callable[..., Any], tmp_path: Path) -> None:
    assert setsup("sample", *words.split()).code == 0
    shapes = library.load("shapes3d-procedural")
    sampler = make(shapes.factors)
    sheet = library.show(shapes, sampler.block(0, 2 if "--steps" in words else 1), sampler)
    sheet.save(tmp_path / "mine.png")
    assert (tmp_path / "mine.png").read_bytes() == (tmp_path / "setsup-samples" / "sheet.png").read_bytes()


def test_the_draws_are_those_of_the_library(setsup: Run, tmp_path: Path) -> None:
    words = ["--inactive", "shape", "scale", "--size", 8, "--sets", 3, "--seed", 7, "--steps", 5]
    assert setsup("sample", *words, "--where", "floor_hue < 0.5", "--values", "different").code == 0
    table = library.load("shapes3d-procedural").factors
    sampler = library.SetSampler(
        table, ["shape", "scale"], size=8, sets=3, seed=7, where="floor_hue < 0.5", values="different"
    )
    arrays = np.load(tmp_path / "setsup-samples" / "draws.npz")
    assert np.array_equal(arrays["indices"], sampler.block(0, 5).indices)
    head, *steps = [json.loads(line) for line in (tmp_path / "setsup-samples" / "draws.jsonl").read_text().splitlines()]
    assert head["dataset"] == "shapes3d-procedural"
    assert head["fingerprint"] == table.fingerprint
    assert head["sampler"] == json.loads(json.dumps(sampler.to_dict()))
    assert head["steps"] == len(steps) == 5
    assert str(tmp_path) not in json.dumps(head)
    for step, line in enumerate(steps):
        assert line["step"] == step
        assert line["indices"] == sampler[step].indices.tolist()
        assert line["inactive"] == {name: codes.tolist() for name, codes in sampler[step].inactive.items()}


def test_the_same_words_give_the_same_bytes(setsup: Run, tmp_path: Path) -> None:
    for out in ("a", "b"):
        assert setsup("sample", "--inactive", "shape", "--size", 6, *FEW, "--out", out).code == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert setsup("sample", "--inactive", "shape", "--size", 6, "--seed", 1, *FEW, "--out", "c").code == 0
    assert contents(tmp_path / "a")["draws.npz"] != contents(tmp_path / "c")["draws.npz"]


# rows of few shapes, sizes and views: casting each of them for the first time is what takes time here
FEW = ["--where", "orientation == 0 and scale in (0.75, 1.25)"]

SAMPLERS = {
    "set": ["--inactive", "wall_hue", "--size", 6, "--unconstrained", 1, *FEW],
    "active": ["--active", "orientation", "--size", 5],
    "random": ["--inactive", "wall_hue", "floor_hue", "scale", "--random", 2, "--size", 4, "--steps", 3, *FEW],
    "domain": ["--domain", "shape", "--size", 7, "--sets", 3, "--steps", 2, *FEW],
    "orbit": [
        "--orbit",
        "floor_hue",
        "wall_hue",
        "object_hue",
        "scale",
        "shape",
        "--canonical",
        "orientation=0",
        "--sets",
        3,
    ],
    "argmin": ["--orbit", "shape", "scale", "--size", 4, "--canonical", "argmin:floor_hue", "--choose", "levels", *FEW],
    "triplets": ["--triplets", "shape", "scale", "--sets", 9, *FEW],
    "sizes": ["--inactive", "shape", "--size", "3,9", "--values", "equal", "--weights", "scale", *FEW],
    "schedules": [
        *("--inactive", "shape", "scale", "--size", "0:4,1:6,2:2", "--random", "0:2,2:1", "--steps", 3),
        *FEW,
    ],
    "episode": ["--episode", "shape", "--ways", 3, "--shots", 2, "--queries", 3, "--within", "scale", *FEW],
    "constraints": [
        *("--positive", "shape == anchor.shape and scale != anchor.scale", "--negative", "shape != anchor.shape"),
        *("--sets", 9, *FEW),
    ],
    "members": ["--orbit", "shape", "--size", 4, "--members", "scale != anchor.scale", *FEW],
    "pairs": ["--pairs", "any", "--sets", 9, "--radius", "floor_hue=2", "--differ", "no", *FEW],
    "ranked": ["--rank", "scale", "orientation", "--sets", 9, *FEW],
}


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("words", SAMPLERS.values(), ids=SAMPLERS.keys())
def test_a_replay_gives_the_same_files(setsup: Run, tmp_path: Path, words: list[object]) -> None:
    first = setsup("sample", *words, "--out", "a")
    assert (first.code, first.err) == (0, "")
    again = setsup("sample", "--replay", "a/draws.jsonl", "--out", "b")
    assert (again.code, again.err) == (0, "")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    # the header alone suffices, as does replaying in place
    head = (tmp_path / "a" / "draws.jsonl").read_text().splitlines()[0]
    (tmp_path / "head.jsonl").write_text(head + "\n")
    assert setsup("sample", "--replay", "head.jsonl", "--out", "b").code == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_canonical_member_by_an_expression_is_replayed(setsup: Run) -> None:
    asked = "scale >= 1.0 and orientation in (0.0, 30.0)"
    words = ["--orbit", "shape", "--size", 2, "--sets", 2, "--where", "floor_hue == 0.5 and wall_hue == 0.5"]
    found = setsup("sample", *words, "--canonical", asked, "--json")
    assert found.code == 0, found.err
    table = library.load("shapes3d-procedural").factors
    sampler = library.OrbitSampler(table, "shape", 2, 2, canonical=asked, where=words[-1])
    canonical = sampler[0].canonical
    assert canonical is not None
    assert found.json["draws"][0]["canonical"] == canonical.tolist()
    assert [table.row(row)["scale"] >= 1.0 for row in canonical.tolist()] == [True, True]
    again = setsup("sample", "--replay", "setsup-samples/draws.jsonl", "--out", "again", "--json")
    assert again.json["draws"] == found.json["draws"]


def test_sizes_and_weights_are_those_of_the_library(setsup: Run) -> None:
    words = ["--inactive", "shape", "scale", "--size", "0:2,1:3", "--random", "0:2,1:1", "--weights", "scale"]
    found = setsup("sample", *words, "--steps", 2, *FEW, "--json").json
    table = library.load("shapes3d-procedural").factors
    sampler = library.SetSampler(
        table, ["shape", "scale"], size={0: 2, 1: 3}, num_fixed={0: 2, 1: 1}, weights="scale", where=FEW[1]
    )
    draws = sampler.block(0, 2)
    assert [step["indices"] for step in found["draws"]] == draws.indices.tolist()
    assert found["draws"][0]["mask"] == [[True, True, False]] * 2
    assert "mask" not in found["draws"][1]
    pair = setsup("sample", "--inactive", "shape", "--size", "1,2", "--values", "equal", *FEW, "--json", "--out", "b")
    shared = library.SetSampler(table, ["shape"], size=[1, 2], values="equal", where=FEW[1])
    assert pair.json["draws"][0]["indices"] == shared[0].indices.tolist()
    words = ["--pairs", "1-2", "--sets", 5, "--weights", "scale", *FEW]
    found = setsup("sample", *words, "--json", "--out", "c").json
    weighted = library.FactorPairSampler(table, 5, k=(1, 2), weights="scale", where=FEW[1])
    assert found["draws"][0]["indices"] == weighted[0].indices.tolist()
    refused(setsup("sample", "--pairs", "1", "--weights", "scal"), "did you mean 'scale'?")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--size", "3,x"],
            "--size must be an integer, one for each set, such as 4,12, or one from each of some steps",
        ),
        (["--size", "0:3,4"], "--size must be an integer, one for each set, such as 4,12, or one from each"),
        (["--size", "0:3,0:4"], "--size 0:3,0:4 specifies two values for the same step"),
        (["--size", "3:4"], "size given by step must have a value for step 0 and must not list a step twice"),
        (["--size", "3,4,5"], "size has 3 items for --sets 2"),
        (["--random", "one"], "--random must be an integer, not 'one'"),
        (["--weights", "hue"], "unknown factor 'hue'"),
        (["--weights", "orientation"], "weights must be finite and non-negative"),
    ],
)
def test_wrong_sizes_and_weights(setsup: Run, words: list[str], sentence: str) -> None:
    found = setsup("sample", "--inactive", "shape", *words)
    refused(found, sentence)


@pytest.mark.long("statistics")
def test_other_samplers_write_their_roles(setsup: Run, tmp_path: Path) -> None:
    assert setsup("sample", *SAMPLERS["orbit"]).code == 0
    arrays = np.load(tmp_path / "setsup-samples" / "draws.npz")
    assert arrays["indices"].shape == (1, 3, 15)
    # orientation is the last of the six factors: 15 levels with stride 1, of which 0 degrees is the eighth
    assert (arrays["canonical"] % 15 == 7).all()
    assert (arrays["canonical"] // 15 == arrays["indices"][..., 0] // 15).all()
    found = setsup("sample", *SAMPLERS["triplets"])
    assert np.load(tmp_path / "setsup-samples-2" / "draws.npz")["indices"].shape == (1, 9, 3)
    assert "anchor and positive share" in found.out


def test_triplets_and_orbits_by_constraints(setsup: Run) -> None:
    found = setsup("sample", *SAMPLERS["constraints"], "--json")
    assert found.code == 0, found.err
    table = library.load("shapes3d-procedural").factors
    positive, negative, where = (SAMPLERS["constraints"][place] for place in (1, 3, -1))
    sampler = library.TripletSampler(table, triplets=9, positive=positive, negative=negative, where=where)
    assert found.json["draws"][0]["indices"] == sampler[0].indices.tolist()
    assert all(list(words["fixed"]) == ["shape"] for words in found.json["words"][0])
    assert found.json["report"]["entries"][0]["partners"]["positive"]["constraint"] == positive
    found = setsup("sample", *SAMPLERS["members"])
    assert found.code == 0, found.err
    assert "members: scale != anchor.scale" in found.out


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("--pairs 2", {"k": 2}),
        ("--pairs any --differ no", {"must_differ": False}),
        ("--pairs 1-2 --among shape scale --radius 1", {"k": [1, 2], "among": ["shape", "scale"], "radius": 1}),
        ("--change shape scale --radius scale=7", {"change": ["shape", "scale"], "radius": {"scale": 7}}),
        ("--share shape wall_hue", {"share": ["shape", "wall_hue"]}),
        ("--rank scale", {"rank": ["scale"]}),
    ],
)
def test_pairs_of_every_kind(setsup: Run, tmp_path: Path, words: str, arguments: dict[str, Any]) -> None:
    found = setsup("sample", *words.split(), "--sets", 3, *FEW, "--json")
    assert (found.code, found.err) == (0, "")
    table = library.load("shapes3d-procedural").factors
    draw = library.FactorPairSampler(table, 3, where=FEW[1], **arguments)[0]
    assert found.json["draws"][0]["indices"] == draw.indices.tolist()
    assert found.json["draws"][0]["pair_labels"] == {name: labels.tolist() for name, labels in draw.pair_labels.items()}
    arrays = np.load(tmp_path / found.json["files"]["npz"])
    assert all(np.array_equal(arrays[f"label_{name}"][0], labels) for name, labels in draw.pair_labels.items())
    changed = [set(words["changed"]) for words in found.json["words"][0]]
    if "rank" not in arguments:
        assert changed == [{name for name in draw.pair_labels if draw.pair_labels[name][pair]} for pair in range(3)]


def test_json_holds_everything(setsup: Run, tmp_path: Path) -> None:
    found = setsup("sample", "--inactive", "shape", "--size", 4, "--steps", 2, *FEW, "--json")
    assert (found.code, found.err) == (0, "")
    data = found.json
    assert len(data["draws"]) == 2
    assert np.load(tmp_path / data["files"]["npz"])["indices"].tolist() == [line["indices"] for line in data["draws"]]
    for step, line in zip(data["words"], data["draws"], strict=True):
        shapes = ["cube", "cylinder", "sphere", "capsule"]
        assert [words["fixed"]["shape"] for words in step] == [shapes[code] for code in line["inactive"]["shape"]]
        assert [words["varies"]["scale"]["levels"] for words in step] == [8, 8]
    assert data["report"]["entries"][0]["groups"] == 4
    assert (tmp_path / data["files"]["sheet"]).is_file()


@pytest.mark.long("large or genuine files")
def test_genuine_mnist(setsup: Run, genuine: Path, tmp_path: Path) -> None:
    root = genuine / "mnist"
    before = sorted(root.iterdir())
    found = setsup("sample", "mnist", "--root", root, "--inactive", "digit", "--size", 64)
    assert (found.code, found.err) == (0, "")
    assert sorted(root.iterdir()) == before, "opening writes nothing into the folder of the data"
    arrays = np.load(tmp_path / "setsup-samples" / "draws.npz")
    labels = library.load("mnist", root).factors.values("digit", arrays["indices"][0])
    assert (labels == labels[:, :1]).all()
    assert all(f"digit = {digit}" in found.out for digit in labels[:, 0])
    again = setsup("sample", "mnist", "--root", root, "--replay", "setsup-samples/draws.jsonl", "--out", "again")
    assert again.code == 0
    assert contents(tmp_path / "again") == contents(tmp_path / "setsup-samples")


class TestTable:
    def test_a_folder_of_pictures(self, setsup: Run, photos: Path, tmp_path: Path) -> None:
        found = setsup("sample", "--table", photos, "--inactive", "subject", "--size", 12)
        assert (found.code, found.err) == (0, "")
        rows = np.load(tmp_path / "setsup-samples" / "draws.npz")["indices"][0]
        assert (rows // 12 == rows[:, :1] // 12).all()
        assert "subject = " in found.out
        with Image.open(tmp_path / "setsup-samples" / "sheet.png") as sheet:
            pixels = np.asarray(sheet.convert("RGB"))
        reds = pixels[..., 0][(pixels[..., 2] == 0) & (pixels[..., 0] % 50 == 0)]
        assert set(reds.tolist()) == {50 * (int(row) // 12 + 1) for row in rows[:, 0]}

    def test_a_replay_finds_the_table_and_takes_its_kinds(self, setsup: Run, photos: Path, tmp_path: Path) -> None:
        words = ["--table", photos, "--image", "path", "--kinds", "age=continuous", "--inactive", "age"]
        words += ["--option", "size=30,20"]
        assert setsup("sample", *words, "--tolerance", "age=20", "--size", 5, "--out", "a").code == 0
        for named in ([], ["--table", photos]):
            assert setsup("sample", "--replay", "a/draws.jsonl", *named, "--out", "b").code == 0
            assert contents(tmp_path / "a") == contents(tmp_path / "b")
        head = json.loads((tmp_path / "a" / "draws.jsonl").read_text().splitlines()[0])
        assert head["source"] == {"kind": "table", "path": str(photos), "relative": "../album/photos.csv"}
        assert head["options"] == {"size": "30,20"}
        ages = 20 + 1.5 * np.load(tmp_path / "a" / "draws.npz")["indices"][0]
        assert np.ptp(ages, axis=1).max() <= 40

    def test_a_replay_follows_data_that_moved_together(self, setsup: Run, photos: Path, tmp_path: Path) -> None:
        assert setsup("sample", photos, "--inactive", "subject", "--out", "album/a").code == 0
        photos.parent.rename(tmp_path / "elsewhere")
        assert setsup("sample", "--replay", "elsewhere/a/draws.jsonl", "--out", "elsewhere/b").code == 0
        (tmp_path / "elsewhere" / "photos.csv").rename(tmp_path / "other.csv")
        found = setsup("sample", "--replay", "elsewhere/a/draws.jsonl", "--out", "c")
        refused(found, f"no longer at {photos} and ../photos.csv", "--table FILE")

    def test_a_replay_checks_what_the_hint_leads_to(self, setsup: Run, photos: Path, tmp_path: Path) -> None:
        assert setsup("sample", photos, "--inactive", "subject", "--out", "a").code == 0
        photos.write_text(photos.read_text(encoding="utf-8").replace(",Mei,", ",Kim,"), encoding="utf-8")
        refused(setsup("sample", "--replay", "a/draws.jsonl", "--out", "b"), "fingerprint", "use the original files")

    def test_draws_of_older_versions_have_no_hint(self, setsup: Run, photos: Path, tmp_path: Path) -> None:
        assert setsup("sample", photos, "--inactive", "subject", "--out", "a").code == 0
        path = tmp_path / "a" / "draws.jsonl"
        head, *rest = path.read_text().splitlines(keepends=True)
        plain = {name: value for name, value in json.loads(head).items() if name != "source"}
        path.write_text(json.dumps(plain) + "\n" + "".join(rest))
        refused(setsup("sample", "--replay", "a/draws.jsonl", "--out", "b"), "a/draws.jsonl", "--table FILE")
        assert setsup("sample", "--replay", "a/draws.jsonl", "--table", photos, "--out", "b").code == 0
        for wrong in (3, {"kind": "table"}, {"kind": "no", "path": "x"}, {"kind": "table", "path": 1}):
            path.write_text(json.dumps({**plain, "source": wrong}) + "\n")
            refused(setsup("sample", "--replay", "a/draws.jsonl", "--out", "b"), "line 1", "source must contain")

    def test_a_replay_finds_a_folder(self, setsup: Run, tmp_path: Path) -> None:
        for name in ("cats/1.png", "cats/2.png", "dogs/1.png", "dogs/2.png"):
            (tmp_path / "pets" / name).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 6), "green").save(tmp_path / "pets" / name)
        words = ["--inactive", "folder", "--option", "size=4,4", "--out", "a"]
        assert setsup("sample", "pets", *words).code == 0
        assert setsup("sample", "--replay", "a/draws.jsonl", "--out", "b").code == 0
        assert contents(tmp_path / "a") == contents(tmp_path / "b")

    def test_a_table_of_another_dialect(self, setsup: Run, photos: Path, tmp_path: Path) -> None:
        text = photos.read_text(encoding="utf-8")
        (photos.parent / "photos.tsv.gz").write_bytes(gzip.compress(text.replace(",", "\t").encode("utf-16")))
        words = ["--inactive", "subject", "--size", "4", "--json"]
        found = [setsup("sample", source, *words).json["draws"] for source in (photos, photos.parent / "photos.tsv.gz")]
        assert found[0] == found[1]
        (photos.parent / "photos.xlsx").write_bytes(b"PK\x03\x04")
        refused(setsup("sample", photos.parent / "photos.xlsx", *words), "is a spreadsheet; save it as CSV")

    def test_groups_of_one_row_are_too_small_for_sets_of_two(self, setsup: Run, photos: Path) -> None:
        words = ["--kinds", "age=ordinal", "--inactive", "age", "subject", "light"]
        refused(setsup("sample", "--table", photos, *words), "fewer than the 2 rows")

    def test_pictures_of_different_sizes(self, setsup: Run, photos: Path) -> None:
        Image.new("RGB", (900, 300), "green").save(photos.parent / "pictures" / "07.png")
        assert setsup("sample", "--table", photos, "--inactive", "light", "--size", 24).code == 0

    def test_a_damaged_picture_leaves_nothing(self, setsup: Run, photos: Path, tmp_path: Path) -> None:
        picture = photos.parent / "pictures" / "07.png"
        picture.write_bytes(picture.read_bytes()[:60])
        words = ["--inactive", "light", "--size", 24, "--values", "different"]
        refused(setsup("sample", "--table", photos, *words), "07.png")
        assert not (tmp_path / "setsup-samples").exists()

    def test_absent_pictures_are_counted(self, setsup: Run, photos: Path, tmp_path: Path) -> None:
        for row in (3, 17, 40):
            (photos.parent / "pictures" / f"{row:02}.png").unlink()
        refused(setsup("sample", "--table", photos, "--inactive", "subject"), "03.png", "3")
        assert not (tmp_path / "setsup-samples").exists()

    @pytest.mark.long("large or genuine files")
    @pytest.mark.parametrize(
        ("words", "note", "shape"),
        [
            (["--inactive", "subject"], "size 12: the number of rows of the smallest group", (1, 2, 12)),
            (
                ["--inactive", "subject", "--values", "equal"],
                "size 6: the number of rows of the smallest group, shared by 2 sets",
                (1, 2, 6),
            ),
            (["--inactive", "subject", "--where", "light == 'day'"], "size 6: ", (1, 2, 6)),
            (["--inactive", "subject", "light", "--random", "1"], "size 12: ", (1, 2, 12)),
            (["--active", "subject", "--where", "age < 29"], "size 6: ", (1, 2, 6)),
            (["--inactive", "age", "--kinds", "age=continuous", "--tolerance", "age=3"], "size 5: ", (1, 2, 5)),
            (["--inactive", "subject", "--where", "subject == 'Mei'", "--small", "short"], "", (1, 2, 32)),
            (["--inactive", "subject", "--size", "3"], "", (1, 2, 3)),
            (["--domain", "light"], "size 24: the number of rows of the smallest group", (1, 2, 24)),
            (["--domain", "light", "--domains", "all"], "size 24: ", (1, 2, 24)),
            (["--orbit", "subject"], "sets 4: the number of groups", (1, 4, 12)),
            (
                ["--episode", "subject"],
                "queries 11: the rows that the smallest class has besides the shots",
                (1, 4, 12),
            ),
            (["--episode", "subject", "--shots", "5", "--queries", "2"], "ways 4: the number of classes", (1, 4, 7)),
        ],
    )
    def test_without_a_size_every_group_suffices(
        self, setsup: Run, photos: Path, tmp_path: Path, words: list[str], note: str, shape: tuple[int, ...]
    ) -> None:
        found = setsup("sample", "--table", photos, *words)
        assert (found.code, found.err) == (0, "")
        notes = [line for line in found.out.splitlines() if line.startswith(("size ", "sets ", "ways ", "queries "))]
        assert any(line.startswith(note) for line in notes) if note else not notes
        assert np.load(tmp_path / "setsup-samples" / "draws.npz")["indices"].shape == shape
        again = setsup("sample", "--table", photos, "--replay", "setsup-samples/draws.jsonl", "--out", "again")
        assert "the same draws as setsup-samples/draws.jsonl" in again.out.splitlines()
        assert contents(tmp_path / "again") == contents(tmp_path / "setsup-samples")

    def test_large_groups_have_the_usual_size(self, setsup: Run, photos: Path, tmp_path: Path) -> None:
        lines = photos.read_text(encoding="utf-8").splitlines()
        photos.write_text("\n".join([*lines, *lines[1:], *lines[1:]]) + "\n", encoding="utf-8")
        assert "\nsize 32: the default, since " in setsup("sample", "--table", photos, "--inactive", "subject").out
        assert np.load(tmp_path / "setsup-samples" / "draws.npz")["indices"].shape == (1, 2, 32)

    def test_a_group_of_one_row(self, setsup: Run, photos: Path) -> None:
        text = photos.read_text(encoding="utf-8").replace("47.png,Mei", "47.png,Zoe")
        photos.write_text(text, encoding="utf-8")
        refused(setsup("sample", "--table", photos, "--inactive", "subject"), "subject = Zoe: 1", _TOO_SMALL)

    def test_a_table_needs_no_option(self, setsup: Run, photos: Path, tmp_path: Path) -> None:
        words = ["--inactive", "subject", "--kinds", "age=ordinal"]
        found = [setsup("sample", *table, *words, "--out", "a") for table in (["--table", photos], [photos])]
        assert [(one.code, one.err) for one in found] == [(0, "")] * 2
        assert found[0].out == found[1].out
        before = contents(tmp_path / "a")
        assert setsup("sample", photos, "--replay", "a/draws.jsonl", "--out", "b").code == 0
        assert contents(tmp_path / "b") == before
        assert setsup("info", photos, "--json").json == setsup("info", "--table", photos, "--json").json
        refused(setsup("sample", photos, "--inactive", "subjekt"), "'subject'", f"`setsup info {photos}`")
        refused(setsup("sample", "--inactive", "subject", "x.csv"), "`setsup sample x.csv --inactive subject`")
        refused(setsup("info", "album/photos.parquet"), "album/photos.parquet does not exist")

    def test_rows_of_a_split_and_images_of_a_size(self, setsup: Run, photos: Path, tmp_path: Path) -> None:
        refused(setsup("sample", photos, "--split", "day", "--inactive", "subject"), "photos has no splits")
        text = photos.read_text(encoding="utf-8").replace("path,subject,light,age", "path,subject,split,age")
        photos.write_text(text, encoding="utf-8")
        words = ["--split", "day", "--option", "size=8,8"]
        found = setsup("sample", photos, *words, "--inactive", "subject", "--out", "a", "--json")
        assert (found.code, found.json["rows"], found.json["options"]) == (0, 24, {"size": "8,8"})
        assert setsup("sample", photos, "--replay", "a/draws.jsonl", "--out", "b").code == 0
        assert contents(tmp_path / "b") == contents(tmp_path / "a")
        refused(setsup("sample", photos, "--root", "a", "--inactive", "subject"), "omit --root a")

    def test_factors_with_commas(self, setsup: Run, photos: Path) -> None:
        refused(
            setsup("sample", "--table", photos, "--inactive", "subject,light"), "spaces between factors: subject light"
        )

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["--inactive", "subjekt"], ["'subject'", "setsup info --table"]),
            (["--inactive", "subject", "--size", "13"], ["12"]),
            (["--inactive", "age", "--kinds", "age=continuous"], ["tolerance"]),
            (["--inactive", "age", "--kinds", "age"], ["--kinds", "'age'"]),
            (["--inactive", "age", "--kinds", "age=wavy"], ["wavy"]),
            (["--inactive", "age", "--image", "picture"], ["picture"]),
            (["--inactive", "subject", "--root", "."], ["omit --root ."]),
            (["--inactive", "subject", "--tolerance", "age=much"], ["--tolerance age=much", "a number"]),
        ],
    )
    def test_bad_words(self, setsup: Run, photos: Path, tmp_path: Path, words: list[str], sentence: list[str]) -> None:
        refused(setsup("sample", "--table", photos, *words), *sentence)
        assert not (tmp_path / "setsup-samples").exists()

    def test_an_empty_or_absent_table(self, setsup: Run, tmp_path: Path) -> None:
        (tmp_path / "empty.csv").write_text("path,subject\n")
        refused(setsup("sample", "--table", "empty.csv", "--inactive", "subject"), "empty.csv")
        refused(setsup("sample", "--table", "absent.csv", "--inactive", "subject"), "absent.csv")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], ["--inactive FACTOR", "floor_hue, wall_hue, object_hue, scale, shape, orientation"]),
        (["--inactive", "wall_heu"], ["did you mean 'wall_hue'?", "`setsup info shapes3d-procedural`"]),
        (["mnsit", "--inactive", "digit"], ["did you mean 'mnist'", "`setsup datasets`"]),
        (["mnist", "--inactive", "digit"], ["`setsup fetch mnist`"]),
        (["--inactive", "shape", "--size", "0"], ["size", "0"]),
        (["--inactive", "shape", "--sets", "0"], ["sets", "0"]),
        (["--inactive", "shape", "--steps", "0"], ["--steps", "0"]),
        (["--inactive", "shape", "--size", "999999"], ["999999", "shape = cube"]),
        (["--inactive", "shape", "--active", "scale"], ["--inactive", "--active"]),
        (["--inactive", "shape", "--orbit", "scale"], ["--inactive", "--orbit"]),
        (["--domain", "shape", "--values", "equal"], ["--values", "cannot be combined with --domain"]),
        (
            ["--inactive", "shape", "--canonical", "first"],
            ["--canonical cannot be combined with --inactive; --canonical is an option of --orbit"],
        ),
        (["--triplets", "shape", "--size", "3"], ["--size", "cannot be combined with --triplets"]),
        (
            ["--triplets", "shape", "--ways", "3"],
            ["--ways cannot be combined with --triplets; --ways is an option of --episode"],
        ),
        (["--episode", "shape", "--domain", "scale"], ["--domain", "--episode"]),
        (["--episode", "shape", "--ways", "9"], ["--ways 9", "4 classes", "lower --ways"]),
        (["--episode", "shape", "--across", "scal"], ["did you mean 'scale'?"]),
        (["--hierarchy", "shape=2"], ["two levels"]),
        (["--sequence", "shape"], ["--sequence requires --time FACTOR"]),
        (["--sequence", "shape", "--time", "scal"], ["did you mean 'scale'?"]),
        (["--sequence", "shape", "--time", "scale", "--window", "0.01"], ["the smallest gap is 0.07", "--window 0.01"]),
        (
            ["--domain", "shape", "--window", "3"],
            ["--window cannot be combined with --domain; --window is an option of --sequence"],
        ),
        (["--hierarchy", "shape=2", "scale"], ["--hierarchy must be FACTOR=INTEGER"]),
        (["--hierarchy", "shape=2", "scale=1.5"], ["scale=1.5", "an integer"]),
        (["--hierarchy", "shape=2", "scal=3"], ["did you mean 'scale'?"]),
        (
            ["--hierarchy", "shape=5", "scale=2"],
            ["5 groups of shape", "only 4", "lower --size or the numbers of --h"],
        ),
        (["--positive", "shape == anchor.shape"], ["both --positive and --negative"]),
        (["--positive", "shape == anchor.shap", "--negative", "shape != 'cube'"], ["did you mean 'shape'?", "^^^"]),
        (["--positive", "shape == anchor.shape", "--triplets", "shape"], ["pass either --triplets, or both"]),
        (
            [*("--positive", "scale == anchor.scale"), *("--negative", "scale != anchor.scale"), *("--small", "drop")],
            ["--small applies only to --triplets"],
        ),
        (
            ["--triplets", "shape", "--small", "short"],
            ["--small must be 'error' or 'drop'", "because an orbit of one row"],
        ),
        (
            ["--episode", "shape", "--small", "replace"],
            ["--small must be 'error' or 'drop'", "because a class needs all rows"],
        ),
        (["--negative", "shape == anchor.shape", "--size", "3"], ["--size", "cannot be combined with --negative"]),
        (["--orbit", "shape", "--members", "scale != anchor.scale"], ["--members requires --size to be at least 2"]),
        (["--pairs", "two"], ["--pairs must be a number of factors", "'two'"]),
        (["--pairs", "1-"], ["--pairs must be a number of factors", "'1-'"]),
        (["--pairs", "7"], ["from 1 to 6"]),
        (["--pairs", "1", "--share", "shape"], ["--share", "--pairs"]),
        (["--pairs", "1", "--among", "shap"], ["did you mean 'shape'?"]),
        (["--pairs", "1", "--radius", "shape=1"], ["'shape' is nominal"]),
        (["--pairs", "1", "--radius", "scale=1.5"], ["--radius scale=1.5: expected an integer"]),
        (["--pairs", "1", "--size", "3"], ["--size", "cannot be combined with --pairs"]),
        (
            ["--triplets", "shape", "--differ", "no"],
            ["--differ cannot be combined with --triplets; --differ is an option of --pairs"],
        ),
        (["--inactive", "shape", "--where", "shap == 'cube'"], ["shape"]),
        (["--inactive", "shape", "--where", "__import__('os')"], ["__import__"]),
        (["--inactive", "shape", "--choose", "any"], ["any", "levels"]),
        (["--inactive", "shape", "--seed", "-1"], ["seed"]),
        (["--inactive", "shape", "--tolerance", "shape=1"], ["shape", "tolerance"]),
        (["--orbit", "shape", "--size", "3", "--canonical", "orientation=1"], ["orientation", "'1'"]),
        (["--orbit", "shape", "--size", "3", "--canonical", "orient=1"], ["did you mean 'orientation'?"]),
        (["--orbit", "shape", "--size", "3", "--canonical", "orient == 0"], ["did you mean 'orientation'?"]),
        (["--orbit", "shape", "--size", "3", "--canonical", "scale > 9"], ["4 of 4 orbits", "--canonical 'scale > 9'"]),
        (["--inactive", "shape", "--kinds", "a=nominal"], ["--kinds", "--table"]),
        (["mnist", "--table", "x.csv", "--inactive", "a"], ["--table", "'mnist'"]),
        (["--inactive", "wall_hue,shape"], ["put spaces between factors: wall_hue shape"]),
        (["--inactive", "digit", "mnist", "--root", "."], ["`setsup sample mnist --inactive digit`"]),
        (["--orbit", "mnist"], ["`setsup sample mnist --orbit FACTOR ...`"]),
        (["--domain", "shape", "--domains", "some"], ["domains", "'some'"]),
        (
            ["--inactive", "shape", "--domains", "all"],
            ["--domains cannot be combined with --inactive; --domains is an option of --domain"],
        ),
        (["--replay", "absent.jsonl"], ["absent.jsonl"]),
        (["--replay", "absent.jsonl", "--seed", "3"], ["--replay", "omit --seed"]),
    ],
)
def test_bad_words_get_one_sentence(setsup: Run, tmp_path: Path, words: list[str], sentence: list[str]) -> None:
    refused(setsup("sample", *words), *sentence)
    assert list(tmp_path.iterdir()) == []


def test_a_split_is_sampled_and_replayed(setsup):
    words = ("--split", "dcodr-test", "--inactive", "shape", "--size", 4)
    found = setsup("sample", *words, "--json")
    assert found.code == 0, found.err
    assert found.json["rows"] == 48_000
    assert found.json["split"] == "dcodr-test"
    again = setsup("sample", "--replay", "setsup-samples/draws.jsonl", "--out", "again", "--json")
    assert again.json["draws"] == found.json["draws"]
    assert setsup("sample", "--split", "dcord", "--inactive", "shape").err.count("did you mean 'dcodr'") == 1


def test_the_card_of_a_split(setsup):
    found = setsup("info", "shapes3d-procedural", "--split", "dcodr", "--json")
    assert found.json["samples"] == 98_000
    assert found.json["factors"][-1]["counts"] == [50_000, 48_000]


@pytest.mark.parametrize("verb", ["sample", "info", "fetch", "prepare"])
def test_a_root_that_is_a_file(setsup: Run, tmp_path: Path, verb: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "3dshapes.h5").write_text("")
    words = ["--inactive", "shape"] if verb == "sample" else []
    refused(
        setsup(verb, "shapes3d", "--root", "data/3dshapes.h5", *words),
        "archive",
        "not the file data/3dshapes.h5; pass the folder of the file: `--root data`",
    )


def test_a_folder_that_cannot_be_written(setsup: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(
        setsup("sample", "--inactive", "shape", "--size", 2, "--out", "file/samples"), "file/samples", "cannot write"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("writer", ["numpy.savez", "pathlib.Path.write_bytes"])
def test_a_disk_that_fills_up_leaves_all_or_nothing(
    setsup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    words = ["sample", "--inactive", "shape", "--size", 2]
    assert setsup(*words).code == 0
    before = contents(tmp_path / "setsup-samples")
    monkeypatch.setattr(writer, full)
    refused(setsup(*words, "--seed", 1), "the disk is full")
    assert contents(tmp_path / "setsup-samples") == before


class TestReplay:
    @pytest.fixture
    def recorded(self, setsup: Run, tmp_path: Path) -> list[str]:
        assert setsup("sample", "--inactive", "shape", "--size", 4, "--steps", 3, *FEW, "--out", "a").code == 0
        lines: list[str] = (tmp_path / "a" / "draws.jsonl").read_text().splitlines()
        return lines

    def changed(self, setsup: Run, tmp_path: Path, lines: list[str], *words: str) -> None:
        (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
        refused(setsup("sample", "--replay", "x.jsonl", "--out", "b"), "x.jsonl", *words)
        assert not (tmp_path / "b").exists()

    def test_other_indices(self, setsup: Run, tmp_path: Path, recorded: list[str]) -> None:
        step = json.loads(recorded[2])
        step["indices"][0][0] ^= 1
        self.changed(setsup, tmp_path, [*recorded[:2], json.dumps(step), recorded[3]], "step 1")

    def test_a_file_that_is_cut_off(self, setsup: Run, tmp_path: Path, recorded: list[str]) -> None:
        self.changed(setsup, tmp_path, recorded[:-1], "truncated", "2 of 3")
        self.changed(setsup, tmp_path, [*recorded[:-1], recorded[-1][:20]], "truncated")

    def test_another_table(self, setsup: Run, tmp_path: Path, recorded: list[str]) -> None:
        head = {**json.loads(recorded[0]), "fingerprint": "00" * 16}
        self.changed(setsup, tmp_path, [json.dumps(head), *recorded[1:]], "00" * 16, "480,000 rows")

    def test_another_data_set(self, setsup: Run, recorded: list[str]) -> None:
        refused(setsup("sample", "mnist", "--replay", "a/draws.jsonl"), "shapes3d-procedural", "mnist")
        refused(setsup("sample", "--table", "x.csv", "--replay", "a/draws.jsonl"), "shapes3d-procedural", "x.csv")

    @pytest.mark.long("large or genuine files")
    @pytest.mark.parametrize("key", ["setsup", "format", "dataset", "rows", "fingerprint", "sampler", "steps"])
    def test_a_header_that_lacks_something(self, setsup: Run, tmp_path: Path, recorded: list[str], key: str) -> None:
        head = json.loads(recorded[0])
        del head[key]
        self.changed(setsup, tmp_path, [json.dumps(head), *recorded[1:]], "line 1", key)

    @pytest.mark.parametrize("text", ["", "[]", "nonsense", "[" * 100_000, "{}", "\x00", '{"table": 3}'])
    def test_what_is_no_file_of_draws(self, setsup: Run, tmp_path: Path, text: str) -> None:
        (tmp_path / "x.jsonl").write_text(text)
        refused(setsup("sample", "--replay", "x.jsonl"), "x.jsonl")

    @pytest.mark.parametrize("change", [{"image": 5}, {"image": ["path"]}, {"kinds": {"subject": 5}}])
    def test_a_table_that_was_read_in_no_way_there_is(
        self, setsup: Run, photos: Path, tmp_path: Path, change: dict[str, Any]
    ) -> None:
        assert setsup("sample", "--table", photos, "--inactive", "subject", "--size", 4, "--out", "a").code == 0
        head = json.loads((tmp_path / "a" / "draws.jsonl").read_text().splitlines()[0])
        (tmp_path / "x.jsonl").write_text(json.dumps({**head, "table": {**head["table"], **change}}))
        refused(setsup("sample", "--replay", "x.jsonl", "--table", photos), "photos.csv")

    def test_a_newer_format(self, setsup: Run, tmp_path: Path, recorded: list[str]) -> None:
        head = {**json.loads(recorded[0]), "format": 99, "setsup": "9.9"}
        self.changed(setsup, tmp_path, [json.dumps(head)], "99", "setsup 9.9")

    def test_an_unknown_sampler(self, setsup: Run, tmp_path: Path, recorded: list[str]) -> None:
        head = json.loads(recorded[0])
        head["sampler"]["sampler"] = "Sampler"
        (tmp_path / "x.jsonl").write_text(json.dumps(head))
        refused(setsup("sample", "--replay", "x.jsonl"), "'Sampler'")


@pytest.mark.long("large or genuine files")
def test_neighbours_are_those_of_the_library(setsup: Run, tmp_path: Path) -> None:
    table = library.load("shapes3d-procedural").factors
    rows = np.flatnonzero(table.mask("orientation == 0.0 and floor_hue == 0.5 and wall_hue == 0.5"))
    neighbours = np.full((len(table), 6), -1)
    neighbours[rows] = rows[(np.arange(len(rows))[:, None] + np.array([1, -1, 2, -2, 3, -3])) % len(rows)]
    for name, found in (("first", neighbours), ("second", neighbours[:, ::-1])):
        np.save(tmp_path / f"{name}.npy", found.astype(np.int32))
    words = ["sample", "--neighbours", "0:first.npy", "1:second.npy", "--positive", "scale == anchor.scale"]
    words += ["--negative", "shape != anchor.shape", "--ranks", "negative=2-5", "--sets", 5, "--steps", 2, "--seed", 4]
    words += ["--weights", "scale"]
    found = setsup(*words, "--json")
    sampler = library.NeighbourSampler(
        table,
        {0: neighbours, 1: neighbours[:, ::-1]},
        "scale == anchor.scale",
        "shape != anchor.shape",
        5,
        ranks={"negative": (2, 5)},
        weights="scale",
        seed=4,
    )
    assert [step["indices"] for step in found.json["draws"]] == sampler.block(0, 2).indices.tolist()
    assert found.json["report"]["entries"] == json.loads(json.dumps(sampler.report().to_dict()["entries"]))
    again = setsup("sample", "--replay", "setsup-samples/draws.jsonl", "--out", "again", "--json")
    assert again.json["draws"] == found.json["draws"]
    pairs = setsup("sample", "--neighbours", "first.npy", "--ranks", "1-2", "--sets", 3)
    assert pairs.code == 0
    assert "pairs of anchor and neighbour" in pairs.out
    assert "first and second" in pairs.out  # what differs, not that nothing is fixed
    np.save(tmp_path / "first.npy", neighbours[:, ::-1])
    refused(setsup("sample", "--replay", "setsup-samples/draws.jsonl", "--out", "b"), "first.npy had the digest")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--neighbours", "none.npy"], "none.npy"),
        (["--neighbours", "a.npy", "b.npy"], "--neighbours 0:a.npy,0:b.npy specifies two values for the same step"),
        (["--neighbours", "a.npy", "--ranks", "3"], "--ranks must be the first and the last rank, such as 1-20"),
        (["--neighbours", "a.npy", "--size", 3], "cannot be combined with --neighbours"),
        (
            ["--inactive", "shape", "--ranks", "1-3"],
            "--ranks cannot be combined with --inactive; --ranks is an option of --neighbours",
        ),
    ],
)
def test_neighbours_that_cannot_be_drawn_from(setsup: Run, words: list[object], sentence: str) -> None:
    refused(setsup("sample", *words), sentence)


@pytest.fixture
def overlaps(photos: Path, tmp_path: Path) -> OverlapTable:
    """An overlap table of the first photos of each subject, in the file views.overlap."""
    found = table_of(library.open(photos).factors, (8, 7, 6, 5), by="subject", zero=0.1)
    found.save(tmp_path / "views.overlap")
    return found


def test_views_by_overlap_are_those_of_the_library(
    setsup: Run, photos: Path, overlaps: OverlapTable, tmp_path: Path
) -> None:
    table = library.open(photos).factors
    found = setsup("sample", photos, "--overlap", "views.overlap:.2-.9", "--sets", 5, "--steps", 2, "--json")
    sampler = library.OverlapSampler(table, tmp_path / "views.overlap", overlap=(0.2, 0.9), sets=5)
    assert [step["indices"] for step in found.json["draws"]] == sampler.block(0, 2).indices.tolist()
    assert found.json["report"]["entries"] == json.loads(json.dumps(sampler.report().to_dict()["entries"]))
    again = setsup("sample", "--replay", "setsup-samples/draws.jsonl", "--out", "again")
    first, second = sampler[0].indices[0]
    there, back = (float(overlaps.overlap[overlaps.find(*ends)]) for ends in ((first, second), (second, first)))
    assert again.code == 0
    assert "first and second" in again.out
    assert f"overlap {there:.2f} (" in again.out
    assert f"({back:.2f}), angle " in again.out or overlaps.find(second, first) < 0 or np.isnan(back)
    words = "--size 4 --form clique --direction either --choose angle --bins 3 --angle 0-89 --negatives 2"
    found = setsup("sample", photos, "--overlap", "views.overlap:.1-1", *words.split(), "--scale", ".2-5", "--out", "b")
    assert (found.code, found.err) == (0, "")
    assert "8 cliques of 4 views, each with 2 negatives" in found.out
    sampler = library.OverlapSampler(
        *(table, overlaps), overlap=(0.1, 1), size=4, form="clique", direction="either", choose="angle", bins=3,
        angle=(0, 89), scale=(0.2, 5), negatives=2,
    )  # fmt: skip
    assert np.array_equal(np.load("b/draws.npz")["indices"][0], sampler[0].indices)
    library.show(library.open(photos), sampler.block(0, 1), sampler).save(tmp_path / "mine.png")
    assert (tmp_path / "mine.png").read_bytes() == (tmp_path / "b" / "sheet.png").read_bytes()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--overlap none.overlap:.3-.8", "none.overlap does not exist"),
        (
            "--overlap views.overlap",
            "--overlap must be a file of overlaps and a band, such as views.overlap:.3-.8, not",
        ),
        ("--overlap views.overlap:.3", "--overlap must be a file of overlaps and a band"),
        ("--overlap views.overlap:.8-.3", "--overlap is empty, because 0.8 is above 0.3"),
        ("--overlap views.overlap:.31-.32", "measured pairs has overlap 0.31 to 0.32"),
        ("--overlap views.overlap:.3-.8 --angle 5", "--angle must be the ends of a band, such as 5-45, not '5'"),
        ("--overlap views.overlap:.3-.8 --form clique", "pass --direction both or --direction either"),
        ("--overlap views.overlap:.3-.8 --size 3,4", "--size must be an integer from 2"),
        ("--overlap views.overlap:.3-.8 --inactive subject", "mutually exclusive"),
        ("--inactive subject --angle 3-5", "--angle is an option of --overlap"),
    ],
)
@pytest.mark.usefixtures("overlaps")
def test_views_that_cannot_be_drawn_by_overlap(setsup: Run, photos: Path, words: str, sentence: str) -> None:
    refused(setsup("sample", photos, *words.split()), sentence)


OWN = Path(__file__).parent / "own_sampler.py"


@pytest.mark.parametrize("name", [f"{OWN}:Followers", str(OWN), "own_sampler:Followers"])
def test_a_sampler_of_ones_own(setsup: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.syspath_prepend(OWN.parent)
    found = setsup("sample", "--sampler", name, "--argument", "apart=3", "--sets", 5, "--seed", 2)
    assert (found.code, found.err) == (0, "")
    lines = Path("setsup-samples/draws.jsonl").read_text().splitlines()
    rows = np.array(json.loads(lines[1])["indices"])
    assert rows.shape == (5, 2)
    assert (rows[:, 1] - rows[:, 0] == 3).all()
    assert json.loads(lines[0])["sampler"]["arguments"] == {"sets": 5, "apart": 3, "seed": 2}
    again = setsup("sample", "--sampler", name, "--replay", "setsup-samples/draws.jsonl", "--out", "b", "--json")
    assert again.json["draws"][0]["indices"] == rows.tolist()


def test_a_file_with_several_samplers_requires_the_name_of_one(setsup: Run, tmp_path: Path) -> None:
    (tmp_path / "my.py").write_text(
        "from setsup.samplers import Sampler\nclass A(Sampler): pass\nclass B(Sampler): pass\n"
    )
    refused(
        setsup("sample", "--sampler", "my.py"), "my.py defines several samplers (A, B); choose one with my.py:CLASS"
    )


@pytest.mark.parametrize("name", [f"{OWN}:Followers", "own_sampler:Followers"])
def test_the_python_of_a_sampler_of_ones_own_makes_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.syspath_prepend(OWN.parent)
    table = library.load("shapes3d-procedural").factors
    sampler = find_class(name)(table, sets=5, apart=3)
    again = eval(sampler_call(sampler, "table"), {"table": table})  # noqa: S307
    assert again.to_dict() == sampler.to_dict()
    assert (again[7].indices == sampler[7].indices).all()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sampler", f"{OWN}:Follower"], "does not define a sampler 'Follower'; did you mean 'Followers'?"),
        (["--sampler", "setsup.samplers"], "setsup.samplers does not define a subclass of setsup.samplers.Sampler"),
        (["--sampler", "setsup.samplers:SetSampl"], "does not define a sampler 'SetSampl'; did you mean 'SetSampler'"),
        (["--sampler", "none.py:A"], "does not exist"),
        (["--sampler", "no_such_module:A"], "No module named 'no_such_module'; pass FILE.py:CLASS or MODULE:CLASS"),
        (["--sampler", f"{OWN}:Followers", "--size", 3], "Followers has no argument 'size'"),
        (["--sampler", f"{OWN}:Followers", "--argument", "sets"], "--argument must be NAME=VALUE"),
        (["--sampler", f"{OWN}:Followers", "--inactive", "shape"], "use only one of"),
        (
            ["--sampler", "setsup.samplers:SetSampler", "--argument", 'inactive=["shape"]', "--size", 999999],
            "lower --size, or pass on_small_group='short'",
        ),
    ],
)
def test_a_sampler_of_ones_own_that_cannot_be_made(setsup: Run, words: list[object], sentence: str) -> None:
    refused(setsup("sample", *words), sentence)


def test_k_by_step(setsup: Run) -> None:
    found = setsup("sample", "--pairs", "0:1,1:2-3", "--sets", 6, "--steps", 2, "--json")
    changed = [np.array(list(step["pair_labels"].values())).sum(0) for step in found.json["draws"]]
    assert set(changed[0].tolist()) == {1}
    assert set(changed[1].tolist()) <= {2, 3}
    refused(setsup("sample", "--pairs", "0:1,0:2"), "--pairs 0:1,0:2 specifies two values for the same step")
