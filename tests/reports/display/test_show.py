import base64
import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets import BaseDataset, Modality
from setsup.errors import DataError, RowError
from setsup.reports import Sheet

SVG = "{http://www.w3.org/2000/svg}"


class Plain(BaseDataset):
    """Grey images whose pixels are their row; names and levels as a hostile user gives them."""

    name = "<script>alert('x')</script> & co"

    def __init__(self) -> None:
        self.modalities = {"image": Modality((6, 8, 1), "uint8", color="grey")}
        self.factors = setsup.FactorTable.from_values({"a<b>": ["x&y", "<i>"] * 6, "c": list(range(12))})

    def _read(self, name: str, rows: Any, out: Any) -> Any:
        out[...] = rows[:, None, None, None]
        return out


class Points(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.modalities = {"points": Modality((3,), "float32")}


@pytest.fixture(scope="module")
def shapes() -> Any:
    return setsup.load("shapes3d-procedural")


def texts(sheet: Sheet) -> list[str]:
    return [str(node.text) for node in ElementTree.fromstring(sheet.encode("svg")).iter(f"{SVG}text")]


def test_png_pdf_and_svg_open_again(shapes: Any, tmp_path: Path) -> None:
    sheet = setsup.show(shapes, np.arange(12).reshape(2, 6), title="Two sets\nof six")
    for suffix in ("png", "pdf", "svg"):
        sheet.save(tmp_path / f"sheet.{suffix.upper()}")
        content = (tmp_path / f"sheet.{suffix.upper()}").read_bytes()
        assert (
            content
            == sheet.encode(suffix)
            == setsup.show(shapes, np.arange(12).reshape(2, 6), title="Two sets\nof six").encode(suffix)
        )
    with Image.open(tmp_path / "sheet.PNG") as image:
        assert (image.size, image.mode) == (sheet.image.size, "RGB")
        assert np.array_equal(np.asarray(image), np.asarray(sheet.image))
    pdf = sheet.encode("pdf")
    assert pdf.startswith(b"%PDF-1.")
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
    assert box is not None
    assert [float(side) * 150 / 72 for side in box.groups()] == pytest.approx(sheet.image.size, abs=0.1)
    assert b"Date" not in pdf
    root = ElementTree.fromstring(sheet.encode("svg"))
    assert (int(root.attrib["width"]), int(root.attrib["height"])) == sheet.image.size
    assert len(list(root.iter(f"{SVG}image"))) == 12
    assert texts(sheet)[:2] == ["Two sets", "of six"]
    assert not list(tmp_path.glob(".*"))


def test_the_svg_has_the_images(tmp_path: Path) -> None:
    root = ElementTree.fromstring(setsup.show(Plain(), [3, 7], tile=16).encode("svg"))
    found = []
    for node in root.iter(f"{SVG}image"):
        kind, _, data = node.attrib["href"].partition(",")
        assert kind == "data:image/png;base64"
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            found.append(set(np.asarray(image).ravel().tolist()))
            assert image.size == (int(node.attrib["width"]), int(node.attrib["height"])) == (16, 12)
    assert found == [{3}, {7}]


def test_names_are_text(tmp_path: Path) -> None:
    lines = texts(setsup.show(Plain(), [0, 2]))
    assert " ".join(lines).startswith("<script>alert('x')</script> & co ")
    assert any("a<b> = x&y" in line.replace("\u00a0", " ") for line in lines)


def test_rows_without_a_draw(shapes: Any) -> None:
    assert texts(setsup.show(shapes))[1].startswith("24 of 480,000 rows")
    assert setsup.show(shapes).encode("png") == setsup.show(shapes).encode("png")
    assert texts(setsup.show(Plain()))[1] == "12 rows"
    assert texts(setsup.show(shapes, 5))[1:3] == ["row 5", "floor_hue = 0 turn, wall_hue = 0 turn,"]
    assert texts(setsup.show(shapes, [0, 1]))[1].startswith("2 rows · equal: floor_hue = 0 turn")
    blocks = texts(setsup.show(Plain(), np.arange(12).reshape(3, 2, 2), steps=2))
    assert [line[:13] for line in blocks if line.startswith("draw ")] == [
        f"draw {step}, set {number}" for step in range(2) for number in range(2)
    ]


def test_steps_have_their_numbers_where_these_are_known(shapes: Any) -> None:
    sets = setsup.SetSampler(shapes.factors, inactive=["shape"], size=4, seed=3)
    assert texts(setsup.show(shapes, sets.block(0, 2), sets))[1] == "seed 3, steps 0 to 1"
    assert texts(setsup.show(shapes, sets.block(5, 7), sets))[1] == "seed 3, draws 0 to 1"
    assert texts(setsup.show(shapes, sets[5], sets))[1] == "seed 3"


@pytest.mark.parametrize("shots", [1, 2])
def test_the_support_of_an_episode_is_framed(shots: int) -> None:
    dataset = Plain()
    episodes = setsup.EpisodeSampler(dataset.factors, "a<b>", ways=2, shots=shots, queries=3)
    sheet = setsup.show(dataset, episodes[0], episodes, tile=32)
    assert texts(sheet)[0].endswith(": 2 classes of " + str(shots + 3))
    assert texts(sheet)[1] == "seed 0, framed: support"
    assert [line[:7] for line in texts(sheet) if line.startswith("class")] == ["class 0", "class 1"]
    framed = 'stroke="#c2410c"'
    assert sheet.encode("svg").decode().count(framed) == 2 * shots
    sets = setsup.SetSampler(dataset.factors, ["a<b>"], size=4)
    assert framed not in setsup.show(dataset, sets[0], sets).encode("svg").decode()


def test_a_draw_of_a_derived_table_needs_its_sampler() -> None:
    dataset = Plain()
    table = dataset.factors.rename({"c": "number"})
    sets = setsup.SetSampler(table, inactive=["number"], size=1)
    with pytest.raises(DataError, match=r"fixes 'number', which is not a factor of .* show\(dataset, draw, sampler\)"):
        setsup.show(dataset, sets[0])
    assert any("number = " in line.replace("\u00a0", " ") for line in texts(setsup.show(dataset, sets[0], sets)))


@pytest.mark.parametrize(
    ("draws", "error", "words"),
    [
        ([12], RowError, "row 12 is out of range"),
        ([0.5], RowError, "row numbers must be integers"),
        ("ab", RowError, "row numbers must be integers"),
        ([[1], [1, 2]], DataError, "draws of show must be an array"),
        ([], DataError, "non-empty"),
        (np.zeros((1, 1, 1, 1), int), DataError, "must be a non-empty array of row numbers of shape"),
        (setsup.Draw(np.zeros(3, np.int64)), DataError, "a draw must have the shape (sets, size)"),
        (setsup.Draw(np.full((1, 2), 99)), RowError, "row 99 is out of range"),
        (setsup.Draw(np.zeros((1, 1), np.int64), {"c": np.array([50])}), DataError, "fixes c at level 50"),
    ],
)
def test_what_cannot_be_shown(draws: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        setsup.show(Plain(), draws)


def test_other_arguments_are_checked(tmp_path: Path) -> None:
    dataset = Plain()
    sets = setsup.SetSampler(dataset.factors, inactive=["c"], size=1)
    larger = setsup.load("shapes3d-procedural")
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: setsup.show(dataset, sets), "pass one step, for example sampler[0]"),
        (lambda: setsup.show(larger, sets[0], sets), "draws from 12 rows, but shapes3d-procedural has 480,000"),
        (lambda: setsup.show(dataset, sets[0], "sampler"), "must be a Sampler, not a str"),
        (lambda: setsup.show("photos", sets[0]), "must be a Dataset, such as setsup.load returns, not a str"),
        (lambda: setsup.show(Points(), [0]), "has no images to show (modalities: points)"),
        (lambda: setsup.show(dataset, [0], steps=0), "steps of show must be an integer of at least 1"),
        (lambda: setsup.show(dataset, [0], tile=1), "from 8 to 4,096"),
        (lambda: setsup.show(dataset, [0], title=3), "title of show must be a string"),
        (
            lambda: setsup.show(dataset, [0]).save(tmp_path / "x.gif"),
            "a sheet must be saved as .png, .pdf, .svg, not as",
        ),
        (lambda: setsup.show(dataset, [0]).save("/proc/x.png"), "cannot write /proc/x.png"),
        (lambda: setsup.show(dataset, [0]).encode("jpg"), "unknown format of a sheet: 'jpg'"),
    ]
    for call, words in calls:
        with pytest.raises(DataError, match=re.escape(words)):
            call()
