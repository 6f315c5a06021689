"""CLEVR: images and objects equal to what the scenes say."""

import json

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError
from tests.true_files import clevr

KNOWN = [clevr.scene(part, number) for part in ("train", "val") for number in range(len(clevr.COUNTS[part]))]
LEVELS = {"shape": ("cube", "sphere", "cylinder"), "size": ("large", "small"), "color": tuple(clevr.COLORS)}
LEVELS["material"] = ("rubber", "metal")


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clevr")
    clevr.write(folder)
    return folder


def test_images_with_their_objects(release):
    found = setsup.load("clevr", release)
    table, unknown = found.factors, [None] * len(clevr.COUNTS["test"])
    assert table.values("split").tolist() == [part for part, counts in clevr.COUNTS.items() for _ in counts]
    assert table.values("objects").tolist() == [len(said["objects"]) for said in KNOWN] + unknown
    for name, levels in LEVELS.items():
        for level in levels:
            counts = [sum(thing[name] == level for thing in said["objects"]) for said in KNOWN]
            assert table.values(level).tolist() == counts + unknown, level
    whole = found.fetch(range(len(found)))
    assert whole["position"].shape == (13, 5, 3)
    for row, said in enumerate(KNOWN):
        things, count = said["objects"], len(said["objects"])
        picture = Image.open(release / "CLEVR_v1.0" / "images" / said["split"] / said["image_filename"])
        assert np.array_equal(whole["image"][row], np.asarray(picture.convert("RGB")))
        for name, levels in LEVELS.items():
            assert whole[name][row].tolist() == [levels.index(each[name]) for each in things] + [-1] * (5 - count)
        for name, key in (("position", "3d_coords"), ("rotation", "rotation")):
            assert np.array_equal(whole[name][row, :count], np.float32([each[key] for each in things]))
            assert np.isnan(whole[name][row, count:]).all()
        pixels = np.float32([each["pixel_coords"] for each in things])
        assert np.array_equal(whole["pixel"][row, :count], pixels[:, :2])
        assert np.array_equal(whole["depth"][row, :count], pixels[:, 2])
    assert (whole["color"][11:] == -1).all()
    assert np.isnan(whole["position"][11:]).all()


def test_sets_of_images_with_the_same_number_of_cubes(release):
    found = setsup.load("clevr", release, split="train")
    sets = setsup.SetSampler(found.factors, inactive=["cube"], size=3, on_small_group="drop", seed=0)
    cubes = found.factors.codes("cube")[sets.block(0, 20).indices]
    assert (cubes == cubes[..., :1]).all()


def test_objects(release):
    found = setsup.load("clevr-objects", release)
    things = [(said, number, thing) for said in KNOWN for number, thing in enumerate(said["objects"])]
    table = found.factors
    for name in LEVELS:
        assert table.values(name).tolist() == [thing[name] for *_, thing in things]
    for axis, name in enumerate("xy"):
        assert np.array_equal(table.values(name), np.float32([thing["3d_coords"][axis] for *_, thing in things]))
    for name in ("right", "front"):
        along = [np.dot(thing["3d_coords"], said["directions"][name]) for said, _, thing in things]
        assert np.allclose(table.values(name), along, atol=1e-6)
    assert table.values("scene").tolist() == [said["image_filename"].removesuffix(".png") for said, *_ in things]
    assert table.values("object").tolist() == [number for _, number, _ in things]
    assert table.values("split").tolist() == [said["split"] for said, *_ in things]
    rows = [0, 3, 20, len(things) - 1]
    here = found.fetch(rows)
    assert np.array_equal(here["position"], np.float32([things[row][2]["3d_coords"] for row in rows]))
    assert np.array_equal(here["pixel"], np.float32([things[row][2]["pixel_coords"][:2] for row in rows]))
    images = setsup.load("clevr", release)
    names = [path.rpartition("/")[2] for path in images.paths(range(len(images)))]
    for row, image in zip(rows, here["image"], strict=True):
        place = names.index(things[row][0]["image_filename"])
        assert np.array_equal(image, images.fetch(place, ["image"])["image"])
        assert found.paths([row]) == images.paths([place])


def test_scenes_in_another_order_and_images_that_are_not_there(tmp_path, caplog):
    clevr.write(tmp_path)
    place = tmp_path / "CLEVR_v1.0" / "scenes" / "CLEVR_train_scenes.json"
    said = json.loads(place.read_text())
    said["scenes"].reverse()
    place.write_text(json.dumps(said))
    (tmp_path / "CLEVR_v1.0" / "images" / "train" / "CLEVR_train_000001.png").unlink()
    found = setsup.load("clevr", tmp_path)
    assert "1 of the 11 listed images are missing (CLEVR_train_000001.png)" in caplog.text
    left = [said for said in KNOWN if said["image_filename"] != "CLEVR_train_000001.png"]
    assert found.factors.values("objects").tolist()[:10] == [len(said["objects"]) for said in left]
    colors = [LEVELS["color"].index(thing["color"]) for thing in left[1]["objects"]]
    assert found.fetch(1, ["color"])["color"].tolist() == colors + [-1] * (5 - len(colors))
    assert len(setsup.load("clevr-objects", tmp_path)) == sum(len(said["objects"]) for said in left)


def test_damaged_scenes(tmp_path):
    clevr.write(tmp_path)
    for path in tmp_path.rglob("*_scenes.json"):
        path.unlink()
    assert setsup.load("clevr", tmp_path).factors.values("objects").tolist() == [None] * 13
    with pytest.raises(DataError, match="contains neither scenes/CLEVR_train_scenes"):
        setsup.load("clevr-objects", tmp_path)
    place = tmp_path / "CLEVR_v1.0" / "scenes" / "CLEVR_train_scenes.json"
    healthy = clevr.scene("train", 0)
    odd = [{**healthy["objects"][0], "color": "grey"}]
    for said, words in (
        ([], "lacks the list 'scenes'"),
        ({"scenes": []}, "lacks the list 'scenes'"),
        (
            {"scenes": [{**healthy, "objects": odd}]},
            "scene 0 does not match the published format: .*has the unknown color 'grey'",
        ),
        ({"scenes": [{**healthy, "objects": [{**healthy["objects"][0], "rotation": 10**400}]}]}, "of 401 digits"),
        ({"scenes": [{**healthy, "directions": {"right": [10**400, 0, 0], "front": [0] * 3}}]}, "of 401 digits"),
        ({"scenes": [healthy, {}]}, "scene 1 does not match the published format: 'objects' is missing"),
        ({"scenes": [{**healthy, "directions": {"right": [1, 0, 0]}}]}, "'front' is missing"),
        ({"scenes": [healthy, healthy]}, "two scenes for the image CLEVR_train_000000"),
    ):
        place.write_text(json.dumps(said))
        with pytest.raises(DataError, match=words):
            setsup.load("clevr", tmp_path)
