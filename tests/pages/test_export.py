"""Pages as files: what they hold, and what they do not."""

import base64
import io
import json
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError
from setsup.files.atomic import beside
from setsup.pages import export, page_of
from setsup.pages.answers import digest, key_of
from setsup.pages.licences import withheld
from setsup.pages.places import Places
from setsup.pages.questions import questions
from setsup.pages.shell import FILES, SCRIPTS, script_text, static
from tests.pages.sources import HOSTILE, awkward, uneven

_PUT = re.compile(r'setsup\.put\("([0-9a-f]{16})",(.*)\);')


def read(text):
    return {name: json.loads(value) for name, value in _PUT.findall(text)}


@pytest.mark.parametrize("make", [uneven, awkward])
def test_every_question_has_the_answer_of_the_live_page(make, tmp_path):
    page = page_of({"data": make()})
    out = export(page, tmp_path / "page", rows=60, steps=3)
    assert out == tmp_path / "page" / "index.html"
    index = (out.parent / "data" / "index.js").read_text()
    names = json.loads(index.removeprefix("setsup.index(").removesuffix(");"))
    asked = {digest(key_of(question)): question for question in questions(page, 60, 3)}
    assert (
        sorted(asked)
        == names
        == sorted(path.stem for path in (out.parent / "data").glob("[0-9a-f]*.js") if path.stem != "index")
    )
    for name, question in asked.items():
        (found,) = read((out.parent / "data" / f"{name}.js").read_text()).values()
        answer = page.get(key_of(question))
        if question and answer.media == "application/json":
            assert found == json.loads(answer.content)
        elif question:
            assert found.startswith(f"data:{answer.media};base64,")
    assert {path.name for path in (out.parent / "static").iterdir()} == set(FILES)


def test_a_single_file_holds_the_same(tmp_path):
    page = page_of({"data": uneven()})
    folder = export(page, tmp_path / "page", rows=60, steps=3).parent
    text = export(page, tmp_path / "page.html", rows=60, steps=3).read_text()
    parts = "\n".join(path.read_text() for path in (folder / "data").glob("*.js") if path.stem != "index")
    assert read(text) == read(parts)
    assert "<script src" not in text
    assert '<link rel="stylesheet"' not in text


def test_hostile_names_end_no_script(tmp_path):
    text = export(page_of({"data": awkward()}), tmp_path / "page.html", rows=24, steps=2).read_text()
    assert text.count("<script>") == text.count("</script>") == len(SCRIPTS) + 1
    assert "onerror=alert(1)>" not in text.replace("\\u003cimg src=x onerror=alert(1)>", "")
    assert json.loads(script_text({"a": HOSTILE[0] + "\u2028"})) == {"a": HOSTILE[0] + "\u2028"}


def test_no_place_of_this_machine_is_passed_on(tmp_path):
    (tmp_path / "someone").mkdir()
    table = tmp_path / "someone" / "animals.csv"
    table.write_text("species,day\ncat,1\ncat,2\ndog,1\n")
    dataset = setsup.from_arrays({"number": [1.0, 2.0, 3.0]}, factors=setsup.FactorTable.from_csv(table))
    text = export(page_of({str(table): dataset}), tmp_path / "page.html").read_text()
    assert "someone" not in text
    assert str(tmp_path) not in text
    assert "setsup explore FOLDER/animals.csv" in text


def test_places_are_written_for_others(tmp_path, monkeypatch):
    home = tmp_path / "homes" / "someone"
    (home / "work" / "runs").mkdir(parents=True)
    (home / "big data").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    places = Places()
    assert places.path("runs/seed-0") == places.path(home / "work" / "runs" / "seed-0") == "runs/seed-0"
    assert places.path("~/big data/a.csv") == places.path("../big data/a.csv") == "FOLDER/a.csv"
    assert places.path("/elsewhere/a.csv") == "FOLDER2/a.csv"  # another file of that name
    assert places.path(home) == "FOLDER3"
    assert places.source("s3://me:secret@host/shards?token=1") == "s3://host/shards"
    assert places.source(f"file://{home}/work/shards") == "shards"
    assert places.source("mnist") == "mnist"
    assert "FOLDER, FOLDER2 and FOLDER3 stand for folders" in places.note
    for start in (tmp_path, tmp_path / "homes"):  # from here, paths go through a name
        assert Places(start).path(home / "work" / "a.csv") == "FOLDER/a.csv"
    text = f"0.02 of {home}/work/runs/seed-0, or 'runs/seed-0'; see . and runs/seed-01"
    assert (
        places.text(text, [Path("runs/seed-0"), Path()])
        == "0.02 of runs/seed-0, or 'runs/seed-0'; see . and runs/seed-01"
    )
    error = f"{home}/big data/7.png (row 7) is missing; give a/b, or /no/such/place.png, or ~/x/y.png"
    assert places.sentence(error) == "7.png (row 7) is missing; give a/b, or place.png, or y.png"


def test_sources_of_one_name_are_told_apart(tmp_path):
    page = page_of({"/data/one/animals.csv": uneven(), "/data/two/animals.csv": uneven()})
    assert page.title == "animals (/data/one/animals.csv), animals (/data/two/animals.csv)"
    text = export(page, tmp_path / "page.html", rows=9, steps=1).read_text()
    assert "<title>animals (FOLDER/animals.csv), animals (FOLDER2/animals.csv)</title>" in text
    assert '"command":"setsup explore FOLDER/animals.csv FOLDER2/animals.csv"' in text
    assert page_of({"a": uneven()}).title == "animals"
    # options go with one dataset: no command opens two with them
    assert page_of({"a": uneven(), "b": uneven()}, options={"b": {"split": "train"}}).command == ""


@pytest.fixture
def photos(tmp_path):
    """Twelve photographs, opened before three of them were damaged."""
    for number in range(12):
        Image.new("RGB", (32, 24), (20 * number,) * 3).save(tmp_path / f"{number}.png")
    lines = [f"{number}.png,{'ann' if number < 6 else 'bob'}" for number in range(12)]
    (tmp_path / "photos.csv").write_text("\n".join(["path,subject", *lines]))
    found = setsup.open(tmp_path / "photos.csv")
    (tmp_path / "5.png").unlink()
    (tmp_path / "7.png").write_bytes((tmp_path / "7.png").read_bytes()[:-40])
    (tmp_path / "8.png").write_text("<html>")
    return found


def test_images_that_cannot_be_read_are_told_and_left_out(photos, tmp_path, caplog):
    out = export(page_of({"photos": photos}), tmp_path / "page.html", rows=12, steps=1)
    (warning,) = (record.getMessage() for record in caplog.records if record.name.startswith("setsup"))
    assert warning == ("photos: 3 rows have no image (5, 7, 8); row 5: 5.png is missing; add it, or remove its row")
    text = out.read_text()
    assert str(tmp_path) not in text
    found, asked = read(text), {"s": "d0", "q": "thumbs"}
    error = found[digest(key_of({**asked, "rows": ",".join(map(str, range(12)))}))]
    assert error["rows"] == [5, 7, 8]
    rest = found[digest(key_of({**asked, "rows": "0,1,2,3,4,6,9,10,11"}))]
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(rest.partition(",")[2]))))
    assert sheet[32, 32 : 7 * 64 : 64, 0].tolist() == pytest.approx([0, 20, 40, 60, 80, 120, 180], abs=4)
    (told,) = found[digest(key_of({"s": "d0", "q": "row", "row": "7"}))]["modalities"]
    assert told["image"] is False
    assert told["words"].startswith("7.png could not be decoded: ")


def test_a_page_without_most_of_its_images_is_refused(photos, tmp_path):
    for number in range(7):
        (tmp_path / f"{number}.png").unlink(missing_ok=True)
    with pytest.raises(
        DataError, match=r"most images cannot be read: 9 rows have no image \(0, 1, 2.*\); row 0: 0\.png"
    ):
        export(page_of({"photos": photos}), tmp_path / "page.html", rows=12, steps=1)
    assert not (tmp_path / "page.html").exists()


def test_an_export_says_what_it_is_at(tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "setsup")
    monkeypatch.setattr("setsup.progress._EVERY", 0.0)
    export(page_of({"animals": uneven()}), tmp_path / "page.html", rows=9, steps=3)
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("exporting: ")]
    for about in (
        "counts of animals",
        "rows of animals",
        "row 8 of animals in full",
        "step 2 of the sampler of animals",
    ):
        assert any(about in one for one in said)
    done = [int(re.match(r"exporting: (\d+) of \d+ parts", one)[1]) for one in said]
    assert done == sorted(done)
    assert f"{done[-1]} of {done[-1]} parts" in said[-1]


def test_images_are_passed_on_where_the_licence_lets_them():
    def named(name):
        return type("Dataset", (), {"name": name, "fetch": None})()

    assert withheld("shapes3d-procedural", named("shapes3d-procedural")) is None
    assert withheld("photos.csv", named("photos")) is None
    assert withheld("celeba", named("celeba")) == "non-commercial research"
    selection = type("Selection", (), {"name": "mine", "fetch": None, "source": named("celeba")})()
    assert withheld("", selection) == "non-commercial research"
    joined = type("Joined", (), {"name": "joined", "fetch": None, "parts": (named("mine"), selection)})()
    assert withheld("", joined) == "non-commercial research"


def test_a_page_without_images_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("setsup.pages.exporting.withheld", lambda *_: "a licence")
    page = page_of(
        {"shapes3d-procedural": setsup.load("shapes3d-procedural").where("scale == 0.75 and floor_hue == 0")}
    )
    text = export(page, tmp_path / "page.html", rows=48, steps=1).read_text()
    assert "data:image" not in text
    about = read(text)[digest("")]
    assert about["sources"]["d0"]["withheld"] == "a licence"
    assert "are not included: the licence (a licence) does not permit" in caplog.text
    assert about["sources"]["d0"]["thumbs"] is None


def test_bytes_of_the_page(tmp_path):
    assert sum(len(static(name)) for name in FILES) < 150_000
    page = page_of({"shapes3d-procedural": setsup.load("shapes3d-procedural")})
    size = export(page, tmp_path / "page.html", rows=192, steps=1).stat().st_size
    assert size < 150_000 + 192 * 25e6 / 4096


def test_what_is_there_is_kept(tmp_path):
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="not empty"):
        export(page_of({"data": uneven()}), tmp_path / "page")
    assert (tmp_path / "page" / "mine.txt").read_text() == "mine"
    with pytest.raises(DataError, match="at least one"):
        page_of({})


def test_vendored_files_are_those_that_the_documentation_names(pytestconfig):
    import hashlib

    text = (pytestconfig.rootpath / "docs" / "dependencies.md").read_text()
    folder = files("setsup.pages").joinpath("static", "vendor")
    for path in folder.iterdir():
        if path.name.endswith(".js"):
            assert hashlib.sha256(path.read_bytes()).hexdigest() in text
        else:
            assert path.name.endswith(".LICENSE")


def test_scripts_of_the_page_share_no_names():
    """They are classic scripts in one scope: a second function of a name silently replaces the first."""
    declared = re.compile(r"^(?:const|let|class|(?:async )?function)\s+(?:\{([^}]*)\}|(\w+))", re.MULTILINE)
    found = [
        name.strip()
        for script in SCRIPTS
        for several, one in declared.findall(static(script).decode())
        for name in (several.split(",") if several else [one])
    ]
    assert sorted(set(found)) == sorted(found)


@pytest.mark.parametrize("name", ["page.html", "page"])
def test_an_interrupted_export_leaves_nothing_and_the_next_removes_what_a_killed_one_left(name, tmp_path, monkeypatch):
    out, page = tmp_path / name, page_of({"animals": uneven()})
    left = beside(out)
    left.write_text("killed before it was renamed")

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("setsup.pages.exporting._put", stop)  # while files are being written
        with pytest.raises(KeyboardInterrupt):
            export(page, out, rows=1, steps=1)
    assert not list(tmp_path.iterdir())
    export(page, out, rows=1, steps=1)
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("name", ["page.pdf", "page.PNG", "page.tar.gz", "page.zip"])
def test_a_page_is_not_exported_under_the_name_of_another_kind_of_file(name: str, tmp_path: Path) -> None:
    few = setsup.from_arrays({"number": [1, 2]}, factors={"kind": ["a", "b"]})
    with pytest.raises(DataError, match=r"pass a file that ends in \.html, or a new folder"):
        export(page_of({"few": few}), tmp_path / name, steps=1)
    assert not list(tmp_path.iterdir())
    assert export(page_of({"few": few}), tmp_path / "page-1.0", steps=1) == tmp_path / "page-1.0" / "index.html"
