"""Labels of rendered images: the semantic class of what each pixel shows."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import setsup
from setsup.errors import DataError
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.folder import open_rendered
from setsup.rendered.writing import render
from setsup.scenes import load_mesh
from setsup.scenes.recipes import Room
from tests.rendered_scenes import SHAPES, Crayon, Dots

CLASSES = ("nothing", "round", "edged")


@dataclass(frozen=True)
class Classed(Dots):
    """Dots whose shapes are of two classes."""

    classes = CLASSES

    def label(self, name: str) -> int:
        return 2 if name == "cube" else 1


def expected(dataset: RenderedDataset, row: int) -> np.ndarray:
    """Class of each pixel, one after the other."""
    instances, names = dataset.fetch(row, ["instances"])["instances"], dataset.names(row)
    of = {"cone": 1, "ball": 1, "cube": 2}
    return np.array([[0 if one < 0 else of[names[one]] for one in line] for line in instances.tolist()])


def test_labels_are_the_classes_of_instances(tmp_path: Path) -> None:
    dataset = RenderedDataset(Classed(), renderer=Crayon())
    assert dataset.classes == {"labels": CLASSES}
    rows = np.arange(0, len(dataset), 17)
    found = dataset.fetch(rows, ["labels"])["labels"]
    assert found.dtype == np.uint8
    assert {SHAPES[code] for code in dataset.factors.codes("shape", rows)} == set(SHAPES)
    for label, row in zip(found, rows.tolist(), strict=True):
        np.testing.assert_array_equal(label, expected(dataset, row))
    stored = render(dataset, tmp_path / "dots", ["image", "labels"])
    assert stored.classes == {"labels": CLASSES}
    part = setsup.open(tmp_path / "dots", where="shape == 'cube'")
    assert part.classes == {"labels": CLASSES}  # type: ignore[attr-defined]
    np.testing.assert_array_equal(stored.fetch(rows)["labels"], found)


def test_a_folder_without_labels_has_no_classes(tmp_path: Path) -> None:
    assert render(RenderedDataset(Classed(), renderer=Crayon()), tmp_path / "a", ["depth"]).classes == {}
    assert render(RenderedDataset(Dots(), renderer=Crayon()), tmp_path / "b").classes == {}


@pytest.mark.parametrize("classes", [None, [], ["nothing"], ["nothing", 3], "nothing"])
def test_damaged_names_of_classes_are_refused(tmp_path: Path, classes: object) -> None:
    render(RenderedDataset(Classed(), renderer=Crayon()), tmp_path / "dots", ["labels"])
    about = tmp_path / "dots" / "rendered.json"
    content = json.loads(about.read_text())
    content.pop("classes")
    about.write_text(json.dumps(content | ({} if classes is None else {"classes": classes})))
    with pytest.raises(DataError, match="classes"):
        open_rendered(tmp_path / "dots")


def test_generated_rooms_have_the_classes_of_their_furniture() -> None:
    rooms = RenderedDataset(Room(rooms=2, pairs=1, size=(24, 32)), renderer="embree")
    classes = rooms.classes["labels"]
    assert classes[:4] == ("nothing", "wall", "floor", "ceiling")
    assert len(classes) == len(set(classes)) == 15
    found = rooms.fetch(0, ["labels", "instances"])
    told = {
        classes[label]: rooms.names(0).get(number, "")
        for label, number in zip(found["labels"].ravel(), found["instances"].ravel().tolist(), strict=True)
    }
    assert told["wall"] == "walls"
    assert told["floor"] == "floor"
    assert ("nothing" in told) == bool((found["instances"] < 0).any())
    named = Room(rooms=1, pairs=1)
    assert [classes[named.label(one)] for one in ("desk", "shelf", "plant", "ball 2")] == [
        "table", "cabinet", "lamp or plant", "object",
    ]  # fmt: skip


def test_rooms_of_meshes_have_no_classes(tmp_path: Path) -> None:
    mesh = tmp_path / "room.off"
    mesh.write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
    assert replace(Room(), meshes={"scan": load_mesh(mesh)}).classes == ()
