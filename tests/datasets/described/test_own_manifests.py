"""A user's own manifest: rows equal to what names and tables say, errors that name file, line and key, hostile ones."""

import os
import random
import re
import socket
import time
import zipfile
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError, SetsupError
from setsup.files.manifests import packages
from setsup_cli.main import main

BIRDS = r"""# birds by species, view and photographer
layout:
  images: '(?P<species>[a-z]+)/(?P<view>[0-9]{3})_(?P<who>[a-z]+)\.png'
  types: {view: integer}
factors:
  - {name: species, kind: nominal}
  - {name: view, kind: cyclic, unit: deg, period: 360}
  - {name: photographer, kind: nominal, levels: [Ann, Bob, Cyd], from: who, codes: {ann: Ann, bob: Bob, cyd: Cyd, x: null}}
  - {name: initial, kind: nominal, from: who, match: '^(.)', role: key}
  - {name: split, kind: nominal, levels: [front, back], role: split, rules: [[view <= 90 or view >= 270, front], [view > 90, back]]}
splits:
  ann: {where: photographer == 'Ann'}
"""  # noqa: E501

LISTED = """layout:
  tables:
    - {file: images.txt, columns: {number: '[0-9]+', path: null}, key: number, what: a number and a path}
    - {file: labels.csv, columns: [number, kind, weight], key: number}
    - {file: more.csv, columns: [number, note], key: number, optional: true}
  path: pictures/{path}
  images: 'pictures/[^/]+[.]png'
  types: {number: integer, weight: number}
  checks: [number > 0]
  unique: true
factors:
  - {name: kind, kind: nominal}
  - {name: weight, kind: continuous, unit: kg}
  - {name: number, kind: ordinal, role: key}
  - {name: note, kind: nominal, within: kind}
"""


def image(path: Path, color: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (16, 12), (color, 0, 0)).save(path)


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    """A manifest with its images beside it."""
    folder = tmp_path / "birds"
    for number, (species, view, who) in enumerate(names()):
        image(folder / species / f"{view:03}_{who}.png", number)
    (folder / "birds.yaml").write_text(BIRDS)
    return folder / "birds.yaml"


def names() -> list[tuple[str, int, str]]:
    return [
        (species, view, who)
        for species in ("crow", "wren")
        for view, who in ((0, "ann"), (90, "bob"), (120, "x"), (300, "ann"))
    ]


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A manifest with a list, a table, and the images that they name."""
    folder = tmp_path / "listed"
    for number in range(1, 5):
        image(folder / "pictures" / f"an image {number}.png", number)
    (folder / "images.txt").write_text("".join(f"{n} an image {n}.png\n" for n in (3, 1, 2, 4)))
    (folder / "labels.csv").write_text("weight,number,kind\n1.5,1,mug\n2,2,cup\n.5,3,mug\n4e1,4,\n")
    (folder / "listed.yaml").write_text(LISTED)
    return folder / "listed.yaml"


def test_rows_are_what_names_say(birds: Path) -> None:
    found = setsup.open(birds)
    table = found.factors
    assert table.values("species").tolist() == [species for species, *_ in names()]
    assert table.values("view").tolist() == [view for _, view, _ in names()]
    assert table["view"].period == 360
    people = {"ann": "Ann", "bob": "Bob", "x": None}
    assert table.values("photographer").tolist() == [people[who] for *_, who in names()]
    assert table["photographer"].levels == ("Ann", "Bob", "Cyd")
    assert table.values("initial").tolist() == [who[0] for *_, who in names()]
    assert table.values("split").tolist() == ["back" if view == 120 else "front" for _, view, _ in names()]
    assert found.fetch(range(8))["image"][:, 0, 0, 0].tolist() == list(range(8))
    assert setsup.open(birds, split="ann", size=(4, 4)).fetch(0)["image"].shape == (4, 4, 3)
    assert len(setsup.open(str(birds), split="back", where="species == 'wren'")) == 1


def test_rows_are_what_tables_say(listed: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = setsup.open(listed)
    table = found.factors
    assert table.names == ("kind", "weight", "number")
    assert table.values("number").tolist() == [3, 1, 2, 4]
    assert table.values("kind").tolist() == ["mug", "mug", "cup", None]
    assert table.values("weight").tolist() == [0.5, 1.5, 2.0, 40.0]
    assert found.fetch(range(4))["image"][:, 0, 0, 0].tolist() == [3, 1, 2, 4]
    (listed.parent / "more.csv").write_text("number,note\n1,a\n2,b\n3,a\n4,b\n")
    (listed.parent / "pictures" / "an image 2.png").rename(listed.parent / "pictures" / "another.png")
    found = setsup.open(listed)
    assert found.factors.values("note").tolist() == ["a", "a", "b"]
    assert found.factors.values("number").tolist() == [3, 1, 4]
    assert "1 of the 4 listed images are missing (pictures/an image 2.png)" in caplog.text
    assert "images.txt does not list 1 image (pictures/another.png)" in caplog.text


def test_order_is_of_texts_also_of_columns_with_a_type(birds: Path) -> None:
    birds.write_text(BIRDS.replace("{view: integer}", "{view: number}\n  order: {view: ['300', '000', '120', '090']}"))
    views = setsup.open(birds).factors.values("view").tolist()
    assert views == [300, 300, 0, 0, 120, 120, 90, 90]


@pytest.mark.parametrize("there", [False, True])
def test_rules_and_checks_of_an_optional_table(listed: Path, there: bool) -> None:
    rule = "  - {name: noted, kind: nominal, levels: [a, other], rules: [[note == 'a', a], [note != 'a', other]]}\n"
    text = LISTED.replace("checks: [number > 0]", "checks: [number > 0, note != 'z']")
    listed.write_text("\n".join(line for line in text.splitlines() if "name: note," not in line) + "\n" + rule)
    if there:
        (listed.parent / "more.csv").write_text("number,note\n1,a\n2,b\n3,a\n4,b\n")
    table = setsup.open(listed).factors
    assert ("noted" in table.names) == there
    if there:
        assert table.values("noted").tolist() == ["a", "a", "other", "other"]
        (listed.parent / "more.csv").write_text("number,note\n1,a\n2,b\n3,z\n4,b\n")
        with pytest.raises(DataError, match=r"expected note != 'z'"):
            setsup.open(listed)


def test_the_root(birds: Path, tmp_path: Path) -> None:
    expected = setsup.open(birds).factors.fingerprint
    alone = tmp_path / "alone" / "birds.yaml"
    alone.parent.mkdir()
    alone.write_text(BIRDS)
    with pytest.raises(
        DataError, match=r"not found; looked in .*alone.*; pass the folder that contains the files"
    ) as error:
        setsup.open(alone)
    assert "setsup fetch" not in str(error.value)
    assert setsup.open(alone, root=birds.parent).factors.fingerprint == expected
    alone.write_text(BIRDS + "root: ../birds\n")
    assert setsup.open(alone).factors.fingerprint == expected
    with zipfile.ZipFile(alone.parent / "birds.zip", "w") as archive:
        for path in birds.parent.rglob("*.png"):
            archive.write(path, path.relative_to(tmp_path))
    alone.write_text(BIRDS)
    assert setsup.open(alone).factors.fingerprint == expected
    assert setsup.open(alone, root=alone.parent / "birds.zip").factors.fingerprint == expected


def test_opening_fetches_nothing(birds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    files = "files: [{path: birds.zip, urls: ['https://example.org/birds.zip']}]\n"
    birds.write_text(BIRDS + files)
    assert len(setsup.open(birds)) == len(names())
    (birds.parent / "alone").mkdir()
    (birds.parent / "alone" / "birds.yaml").write_text(BIRDS + files)
    with pytest.raises(DataError, match="not found"):
        setsup.open(birds.parent / "alone" / "birds.yaml")


def test_the_command_draws_and_replays(birds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(birds.parent)
    assert main(["sample", "birds.yaml", "--inactive", "species", "--size", "3", "--out", str(tmp_path / "a")]) == 0
    assert main(["sample", "--replay", str(tmp_path / "a" / "draws.jsonl"), "--out", str(tmp_path / "b")]) == 0
    assert (tmp_path / "a" / "sheet.png").read_bytes() == (tmp_path / "b" / "sheet.png").read_bytes()
    assert main(["info", "birds.yaml"]) == 0


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("types:", "typs:", 4, r"unknown key 'layout\.typs'; did you mean 'types'"),
        (r"[a-z]+)\.png", r"[a-z+)\.png", 3, r"layout\.images must be a valid RE2 regular expression \(missing \]"),
        ("[0-9]{3}", "[0-9]{1001}", 3, r"layout\.images must be .*\(invalid repetition size"),
        ("(?P<who>", r"(?:\pL?){400}(?P<who>", 3, r"layout\.images must be .*pattern too large"),
        ("(?P<who>", "(?=x)(?P<who>", 3, r"layout\.images must be .*\(invalid perl operator"),
        ("(?P<who>", "(?P<view>", 3, r"layout\.images must be .*two groups have the same name"),
        ("(?P<who>", "(?P<who>(x?)", 3, r"layout\.images must be .*unnamed groups"),
        (
            "{view: integer}",
            "{view: int}",
            4,
            r"layout\.types must be a mapping of column names to 'integer' or 'number'",
        ),
        (
            "{view: integer}",
            "{vew: integer}",
            4,
            r"layout\.types must be columns, not \{'vew': 'integer'\}; did you mean 'view'\?$",
        ),
        (
            "from: who, codes",
            "from: whom, codes",
            8,
            r"factors\[2\]\.from must be the name of a column, not 'whom'; did you mean 'who'\?$",
        ),
        (
            "ann: Ann, bob",
            "ann: An, bob",
            8,
            r"factors\[2\]\.codes must be a mapping to levels of the factor, not .*; did you mean 'Ann'\?$",
        ),
        ("'^(.)'", "'^.'", 9, r"factors\[3\]\.match must be .* with a group in parentheses"),
        ("view <= 90", "vew <= 90", 10, r"factors\[4\]\.rules\[0\] must be a valid condition .*did you mean 'view'"),
        ("view <= 90", "view <= 'x'", 10, r"factors\[4\]\.rules\[0\] must be a valid condition on columns"),
        ("view <= 90", "__import__(1)", 10, r"factors\[4\]\.rules\[0\] must be a valid condition on columns"),
        (
            "period: 360",
            "period: 360, within: speces",
            7,
            r"factors\[1\]\.within must be the name of another factor, not 'speces'; did you mean 'species'\?$",
        ),
        (
            "name: initial, kind: nominal",
            "name: initial, kind: continuous",
            9,
            r"factors\[3\]\.from must be a single column listed in types",
        ),
        ("layout:\n", "adapter: os\nlayout:\n", 2, r"adapter is not allowed in a manifest of your own"),
        ("layout:\n", "shares: mnist\nlayout:\n", 2, r"shares is not allowed in a manifest of your own"),
        ("layout:\n", "lay:\n", 2, r"unknown key 'lay'; did you mean 'layout'"),
        ("layout:\n", "name: ../x\nlayout:\n", 2, r"name must be a name of letters"),
    ],
)
def test_what_is_wrong_is_named_with_file_line_and_key(birds: Path, old: str, new: str, line: int, said: str) -> None:
    assert old in BIRDS
    birds.write_text(BIRDS.replace(old, new, 1))
    with pytest.raises(DataError, match=said) as error:
        setsup.open(birds)
    assert str(error.value).startswith(f"{birds}, line {line}: ")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("path: pictures/{path}", "path: ../{path}", r"line 6: layout\.path must be a path inside"),
        ("path: pictures/{path}", "path: /{path}", r"line 6: layout\.path must be a path inside"),
        (
            "path: pictures/{path}",
            "path: '{path.__class__}'",
            r"line 6: layout\.path must be a path with columns",
        ),
        ("path: pictures/{path}", "path: '{0}/{path}'", r"line 6: layout\.path must be a path with columns"),
        ("file: images.txt", "file: /etc/passwd", r"line 3: layout\.tables\[0\]\.file must be a path inside"),
        ("file: labels.csv", "file: ../labels.csv", r"line 4: layout\.tables\[1\]\.file must be a path inside"),
        ("key: number, what", "key: numbr, what", r"line 3: layout\.tables\[0\]\.key must be one of the columns"),
        (
            "[number, note]",
            "[number, kind]",
            r"line 5: layout\.tables\[2\]\.columns repeats 'kind', a column of a table above",
        ),
        ("  path: pictures/{path}\n", "", r"layout\.path is missing; add the paths"),
        ("[number > 0]", "[numbr > 0]", r"line 9: layout\.checks\[0\] must be a valid condition on columns"),
        (
            "number: '[0-9]+'",
            "number: '[1-3]'",
            r"images\.txt: line 4 is '4 an image 4\.png'; expected a number and a path",
        ),
        ("[number > 0]", "[number > 1]", r"images\.txt: number of number 1 is 1; expected number > 1"),
        (
            "[number, note]",
            "[number, nose]",
            r"line 15: factors\[3\]\.name must be the name of a column .*, not 'note'; did you mean 'nose'\?$",
        ),
        ("weight: number", "weight: integer", r"labels\.csv: weight of row 0 is '\.5'; expected an integer"),
    ],
)
def test_layouts_of_tables_are_checked(listed: Path, old: str, new: str, said: str) -> None:
    assert old in LISTED
    listed.write_text(LISTED.replace(old, new, 1))
    with pytest.raises(DataError, match=said):
        setsup.open(listed)


def test_factors_of_missing_tables_alone_are_refused(listed: Path) -> None:
    head = LISTED[: LISTED.index("factors:")]
    listed.write_text(head + "factors:\n  - {name: note, kind: nominal}\n")
    with pytest.raises(
        DataError, match=r"no factor can be read, because the tables of all factors are missing \(more\.csv\)"
    ):
        setsup.open(listed)


def test_a_factor_or_a_column_that_is_there_twice_is_refused(listed: Path) -> None:
    listed.write_text(LISTED + "  - {name: kind, kind: nominal}\n")
    with pytest.raises(DataError, match=r"line 16: factors\[4\]\.name must be different from the names of the"):
        setsup.open(listed)
    listed.write_text(LISTED)
    (listed.parent / "labels.csv").write_text("weight,number,kind,kind\n1.5,1,mug,a\n2,2,cup,b\n.5,3,mug,c\n4e1,4,,d\n")
    with pytest.raises(DataError, match=r"labels\.csv has more than one column 'kind'"):
        setsup.open(listed)


def test_values_with_line_ends_in_a_table_of_several_blocks(listed: Path) -> None:
    rows = "".join(f'1,{n},"{"a" * 50}\n1,{n},b"\n' for n in range(1, 30_001))
    (listed.parent / "labels.csv").write_text("weight,number,kind\n" + rows)
    (listed.parent / "images.txt").write_text("".join(f"{n} an image {n % 4 + 1}.png\n" for n in range(1, 30_001)))
    listed.write_text(LISTED.replace("  unique: true\n", ""))
    table = setsup.open(listed).factors
    assert len(table["kind"].levels) == len(table) == 30_000


def test_only_benchmarks_are_fetched_and_prepared(birds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["fetch", str(birds)], ["fetch", str(birds), "--check"], ["prepare", str(birds)]):
        assert main(command) == 2
        assert f"{birds} is your own file and requires no" in capsys.readouterr().err


def test_tables_that_contradict_each_other(listed: Path) -> None:
    labels = listed.parent / "labels.csv"
    text = labels.read_text()
    for changed, said in (
        (text.replace("1.5,1,mug\n", ""), "has no entry for number 1"),
        (text + "1,5,mug\n", r"images\.txt has no entry for number 5"),
        (text + "1,3,mug\n", "row 4 repeats the number 3"),
        (text.replace("4e1", "4e99"), "expected a number"),
    ):
        labels.write_text(changed)
        with pytest.raises(DataError, match=said):
            setsup.open(listed)
    labels.write_text(text)
    images = listed.parent / "images.txt"
    images.write_text(images.read_text().replace("4 an image 4", "4 an image 3"))
    with pytest.raises(DataError, match="2 times"):
        setsup.open(listed)


def test_files_of_ones_own_are_corrected_and_not_fetched(listed: Path) -> None:
    for name, damaged in (
        ("labels.csv", "weight,number,kind\n"),
        ("images.txt", "1 a.png\n2\n"),
        ("images.txt", "1 a.png\n"),
    ):
        before = (listed.parent / name).read_text()
        (listed.parent / name).write_text(damaged)
        with pytest.raises(DataError, match=r"; correct the data or the manifest$"):
            setsup.open(listed)
        (listed.parent / name).write_text(before)
    for number in range(1, 5):
        (listed.parent / "pictures" / f"an image {number}.png").unlink()
    image(listed.parent / "pictures" / "another.png", 1)
    with pytest.raises(DataError, match=r"contains none of the 4 listed images.*; correct the data or the manifest$"):
        setsup.open(listed)


SHOTS = """layout:
  tables:
    - {file: shots.csv, columns: [kind, place, taken], number: shot, constants: {elsewhere: nowhere}}
    - {file: places.csv, columns: {code: '(?P<place>.*)', region: null}, key: place, incomplete: true}
  path: shots/{shot}.png
  images: 'shots/[0-9]+[.]png'
  without: kind == 'blurred'
  times: {taken: [year, month, day, hour]}
factors:
  - {name: kind, kind: nominal}
  - {name: region, kind: nominal, from: [region, elsewhere]}
  - {name: year, kind: ordinal, levels: &years [2019, 2020, 2021], codes: *years}
  - {name: hour, kind: ordinal}
  - {name: part, kind: nominal, levels: [early, late], rules: [[year < 2020, early], [year >= 2020 and hour > 3, late]]}
"""


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """A manifest with a numbered image for each line of a table, some of which do not count."""
    folder = tmp_path / "shots"
    for number in range(5):
        image(folder / "shots" / f"{number}.png", number)
    times = ("2019-12-31T23:30:00Z", "no time", "2019-12-31T23:30:00-02:00", "2020-02-29 03:00:00.5", "2020-01-01")
    kinds = ("cup", "blurred", "mug", "", "cup")
    lines = [f"{kind},{place},{time}\n" for kind, place, time in zip(kinds, "abxba", times, strict=True)]
    (folder / "shots.csv").write_text("kind,place,taken\n" + "".join(lines))
    (folder / "places.csv").write_text("region,code\nnorth,a\n,b\nsouth,z\neast,z\n")
    (folder / "shots.yaml").write_text(SHOTS)
    return folder / "shots.yaml"


def test_numbered_rows_by_a_condition_their_times_and_an_incomplete_table(
    shots: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = setsup.open(shots)
    table = found.factors
    assert found.fetch(range(4))["image"][:, 0, 0, 0].tolist() == [0, 2, 3, 4]
    assert table.values("kind").tolist() == ["cup", "mug", None, "cup"]
    assert table.values("region").tolist() == ["north", "nowhere", "nowhere", "north"]
    assert table["region"].levels == ("north", "nowhere")
    assert table.values("year").tolist() == [2019, 2020, 2020, 2020]
    assert table["year"].levels == (2019, 2020, 2021)
    assert table.values("hour").tolist() == [23, 1, 3, 0]
    assert table.values("part").tolist() == ["early", None, None, None]
    assert not caplog.text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("without: kind", "without: kin", r"line 7: layout\.without must be a valid condition on columns"),
        (
            "without: kind == 'blurred'",
            "without: year > 2000",
            r"line 7: layout\.without must be a valid condition on columns",
        ),
        ("without: kind", "without: place", r"shots\.csv: taken of row 1 is 'no time'; expected a time such as"),
        ("{taken: [", "{take: [", r"line 8: layout\.times must be columns, not .*; did you mean 'taken'"),
        ("[year, month", "[yeer, month", r"line 8: layout\.times must be .*; did you mean 'year'"),
        ("[year, month", "[year, year", r"line 8: layout\.times must be a mapping of column names to distinct parts"),
        (
            "number: shot,",
            "number: kind,",
            r"line 3: layout\.tables\[0\]\.columns must be columns .* with distinct names",
        ),
        ("number: shot,", "incomplete: true,", r"line 3: layout\.tables\[0\]\.incomplete requires key"),
        ("elsewhere]}", "elsewhere], match: '(.)'}", r"line 11: factors\[1\]\.from must be a single column if"),
        ("2019, 2020, 2021", "2019, 2021", r"shots\.csv: year of row 2 is '2020'; expected one of 2019, 2021"),
        ("incomplete: true", "incomplete: false", r"places\.csv: row 3 repeats the place z"),
        (
            "kind == 'blurred'",
            "place != 'q'",
            r"shots\.csv: the condition .* of layout\.without excludes every row; correct",
        ),
        ("codes: *years", "codes: [2019, 2020, 2021.5]", r"line 12: factors\[2\]\.codes must be a mapping of strings"),
    ],
)
def test_numbers_times_and_conditions_are_checked(shots: Path, old: str, new: str, said: str) -> None:
    assert old in SHOTS
    shots.write_text(SHOTS.replace(old, new, 1))
    with pytest.raises(DataError, match=said):
        setsup.open(shots)


COUNTED = """layout:
  tables:
    - {file: shots.csv, columns: [shot, place]}
    - {file: places.csv, columns: [place, birds, weight, since, side], key: place, incomplete: true}
  path: shots/{shot}.png
  types: {shot: integer, birds: integer, weight: number}
  times: {since: [year]}
factors:
  - {name: birds, kind: ordinal}
  - {name: weight, kind: continuous, unit: kg}
  - {name: year, kind: ordinal}
  - {name: side, kind: nominal, levels: [left, right], codes: {l: left, r: right}}
  - {name: letter, kind: nominal, from: side, match: '(.)'}
  - {name: digit, kind: nominal, from: birds, match: '(.)$'}
  - {name: many, kind: nominal, levels: [few, many], rules: [[birds < 3, few], [birds >= 3, many]]}
"""


def test_rows_that_an_incomplete_table_lacks_are_unknown(tmp_path: Path) -> None:
    """Whatever is made of its columns: numbers, times, codes, parts and rules."""
    for number in range(4):
        image(tmp_path / "shots" / f"{number}.png", number)
    (tmp_path / "shots.csv").write_text("shot,place\n3,x\n0,a\n1,b\n2,y\n")
    (tmp_path / "places.csv").write_text("place,birds,weight,since,side\na,12,.5,2020-01-01,l\nb,2,7,2021-01-01,r\n")
    (tmp_path / "shots.yaml").write_text(COUNTED)
    table = setsup.open(tmp_path / "shots.yaml").factors
    assert table.values("birds").tolist() == [None, 12, 2, None]
    assert table["birds"].levels == (2, 12)
    np.testing.assert_array_equal(table.values("weight"), np.array([np.nan, 0.5, 7, np.nan], np.float32))
    assert table.values("year").tolist() == [None, 2020, 2021, None]
    assert table.values("side").tolist() == [None, "left", "right", None]
    assert table.values("letter").tolist() == [None, "l", "r", None]
    assert table.values("digit").tolist() == [None, "2", "2", None]
    assert table.values("many").tolist() == [None, "many", "few", None]
    for old, new, said in (
        (",12,", ",,", r"places\.csv: birds of row 1 is ''; expected an integer"),
        ("2020-01-01", "", r"places\.csv: since of row 1 is ''; expected a time"),
        ("-01,l", "-01,", r"places\.csv: side of row 1 is ''; expected one of l, r"),
    ):
        text = (tmp_path / "places.csv").read_text()
        (tmp_path / "places.csv").write_text(text.replace(old, new, 1))
        with pytest.raises(DataError, match=said):  # a row that is there needs its values
            setsup.open(tmp_path / "shots.yaml")
        (tmp_path / "places.csv").write_text(text)
    (tmp_path / "places.csv").write_text("place,birds,weight,since,side\nz,12,.5,2020-01-01,l\n")
    table = setsup.open(tmp_path / "shots.yaml").factors
    assert table["side"].levels == ("left", "right")
    assert all((table.codes(name) < 0).all() for name in ("birds", "year", "side", "many"))
    assert np.isnan(table.values("weight")).all()


def test_the_second_row_of_a_key_is_named_by_its_number_in_the_table(shots: Path) -> None:
    table = shots.parent / "places.csv"
    table.write_text(table.read_text() + "west,b\n")
    with pytest.raises(DataError, match=r"places\.csv: row 4 repeats the place b"):
        setsup.open(shots)


def test_a_condition_on_an_optional_table_that_is_not_there_leaves_no_row_out(shots: Path) -> None:
    text = SHOTS.replace("incomplete: true", "incomplete: true, optional: true")
    text = text.replace("without: kind == 'blurred'", "without: region == 'north'")
    shots.with_name("shots.csv").write_text("kind,place,taken\ncup,a,2020-01-01\nmug,b,2020-01-01\n")
    shots.write_text(text)
    assert setsup.open(shots).factors.values("kind").tolist() == ["mug"]
    shots.with_name("places.csv").unlink()
    found = setsup.open(shots).factors
    assert found.values("kind").tolist() == ["cup", "mug"]
    assert found.values("region").tolist() == ["nowhere", "nowhere"]


def test_names_in_tables_lead_nowhere_else(listed: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret = listed.parent.parent / "secret.png"
    image(secret, 99)
    images = listed.parent / "images.txt"
    for name in ("../../secret.png", str(secret), "x/../../../secret.png"):
        images.write_text(f"1 an image 1.png\n2 {name}\n3 an image 3.png\n4 an image 4.png\n")
        caplog.clear()
        assert len(setsup.open(listed)) == 3
        assert "1 of the 4 listed images are missing" in caplog.text


def test_links_that_lead_out_are_left_out(birds: Path, caplog: pytest.LogCaptureFixture) -> None:
    outside = birds.parent.parent / "outside"
    image(outside / "swan" / "000_ann.png", 9)
    os.symlink(outside / "swan", birds.parent / "swan")
    os.symlink(outside / "swan" / "000_ann.png", birds.parent / "crow" / "001_ann.png")
    os.symlink("000_ann.png", birds.parent / "wren" / "002_ann.png")
    found = setsup.open(birds)
    assert set(found.factors.values("species")) == {"crow", "wren"}
    assert len(found) == len(names()) + 1  # one link stays inside
    assert caplog.text.count("to a path outside") == 2
    assert "swan" in setsup.open(birds, root=outside).factors["species"].levels


@pytest.mark.parametrize("link", ["birds", "birds.zip", "named.zip"])
def test_folders_and_archives_by_links_that_lead_out_are_refused(birds: Path, tmp_path: Path, link: str) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for path in birds.parent.rglob("*.png"):
            archive.write(path, path.relative_to(birds.parent))
    alone = tmp_path / "alone" / "birds.yaml"
    alone.parent.mkdir()
    alone.write_text(BIRDS.replace("  types:", "  archives: [named.zip]\n  types:"))
    os.symlink(birds.parent if link == "birds" else tmp_path / "packed.zip", alone.parent / link)
    with pytest.raises(DataError, match="to a path outside"):
        setsup.open(alone)
    os.symlink(alone.parent, tmp_path / "link")  # the root itself may be one
    (alone.parent / link).unlink()
    (tmp_path / "packed.zip").rename(alone.parent / "packed.zip")
    assert len(setsup.open(tmp_path / "link" / "birds.yaml")) == len(names())


def test_expressions_take_time_in_proportion(birds: Path) -> None:
    image(birds.parent / ("a" * 200) / "000_ann.png", 1)
    for pattern in (
        r"(?P<species>(?:a+)+)b/x",
        r"(?P<species>(?:a|aa|a?)+)/(?:.*.*)*=",
        r"(?P<species>(?:(?:a*)*)*)$!",
    ):
        birds.write_text(f"layout: {{images: '{pattern}'}}\nfactors: [{{name: species, kind: nominal}}]\n")
        begin = time.process_time()
        with pytest.raises(DataError, match="not found"):
            setsup.open(birds)
        assert time.process_time() - begin < 5  # a backtracking engine takes years


@pytest.mark.parametrize(
    "text",
    [
        "",
        "layout: 3",
        "layout: {}",
        "layout: {images: x}",
        "layout: {images: [x]}\nfactors: [{name: a, kind: nominal}]",
        "layout: {images: '(?P<a>x)'}\nfactors: {}",
        "a: &a [x]\nlayout: {tables: [" + ", ".join(["*a"] * 100) + "]}",
        "layout: !!python/object/apply:os.system ['true']",
        "layout: {images: '" + "x" * 5000 + "'}\nfactors: [{name: a, kind: nominal}]",
        "layout: {tables: ["
        + "{file: a, columns: [b]}, " * 40
        + "], path: '{b}'}\nfactors: [{name: b, kind: nominal}]",
        "layout: " + "[" * 100 + "]" * 100,
    ],
)
def test_hostile_texts(birds: Path, text: str) -> None:
    birds.write_text(text)
    with pytest.raises(DataError, match=r"birds\.yaml") as error:
        setsup.open(birds)
    assert len(str(error.value)) < 1500


def test_a_manifest_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"birds\.yaml cannot be read"):
        setsup.open(tmp_path / "birds.yaml")


PIECES = [
    "'",
    "{",
    "}",
    "[",
    "]",
    ": ",
    ", ",
    "null",
    "-1",
    "..",
    "/",
    "(",
    ")",
    "\\Q",
    "*a",
    "&a ",
    "x",
    "é",
    "true",
    "{path}",
]
WORDS = re.compile(r"[\w.]+|[^\w\s]")


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("seed", range(150))
def test_mutants_open_or_say_what_is_wrong(birds: Path, listed: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = chance.choice([birds, listed])
    text = path.read_text()
    words = WORDS.findall(text)
    for _ in range(chance.choice((1, 1, 2, 4))):
        spots = [match.span() for match in WORDS.finditer(text)]
        start, stop = chance.choice(spots)
        text = text[:start] + chance.choice([*PIECES, chance.choice(words), ""]) + text[stop:]
    path.write_text(text)
    try:
        found = setsup.open(path)
    except SetsupError as error:
        assert len(str(error)) < 2500  # noqa: PT017  it may as well open
        return
    assert len(found) <= 8
    assert all(not name.startswith(("/", "..")) for name in found.paths(np.arange(len(found))))


# -- packages ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, birds: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose module may not be imported, with manifests of its own."""
    folder = tmp_path / "package_of_birds" / "manifests"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise RuntimeError('imported')\n")
    head = "name: {}\ntitle: Birds\ndescription: Some birds.\nlicence: {{name: MIT}}\n"
    (folder / "some-birds.yaml").write_text(head.format("some-birds") + BIRDS)
    (folder / "mnist.yaml").write_text(head.format("mnist") + BIRDS)
    (folder / "bare.yaml").write_text(head.format("bare"))
    (folder / "coded.yaml").write_text(head.format("coded") + "adapter: os\n" + BIRDS)
    monkeypatch.syspath_prepend(str(tmp_path))
    entries = [
        EntryPoint("birds", "package_of_birds", "setsup.manifests"),
        EntryPoint("gone", "no_such_package_anywhere", "setsup.manifests"),
    ]
    monkeypatch.setattr(packages, "other_entries", lambda group: [one for one in entries if one.group == group])
    return birds.parent


def test_a_package_offers_manifests(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "some-birds" in setsup.names()
    assert setsup.load("some-birds", package).factors.values("species").tolist()[0] == "crow"
    assert len(setsup.open("some-birds", package, split="ann")) == 4
    with pytest.raises(DataError, match="setsup fetch some-birds"):
        setsup.load("some-birds", package.parent / "nowhere")
    with pytest.raises(
        DataError, match=r"bare\.yaml: the key layout, which a manifest without code requires, is missing"
    ):
        setsup.load("bare", package)
    with pytest.raises(DataError, match=r"coded\.yaml: the key adapter is not allowed in a manifest without code"):
        setsup.load("coded", package)
    assert packages.find_manifest("mnist") == packages.load_manifest("mnist")
    assert main(["datasets"]) == 0
    assert "from package_of_birds" in capsys.readouterr().out
