"""Substitutes: photographs that libraries ship, and objects cut out of rooms."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import setsup
from setsup.errors import DataError, SetsupError
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import render
from setsup.scenes.recipes import Room
from setsup_papers.cmc.objects import cut_objects, write_objects
from setsup_papers.cmc.photographs import PHOTOGRAPHS, photograph_tiles, write_photographs


@pytest.mark.long("renderings")
def test_tiles_are_parts_of_the_photographs(tmp_path: Path) -> None:
    datasets, data = pytest.importorskip("sklearn.datasets"), pytest.importorskip("skimage.data")
    tiles, names = photograph_tiles(96, 96)
    assert tiles.shape == (len(names), 96, 96, 3)
    assert set(names) == set(PHOTOGRAPHS)
    for name, image in (("china", datasets.load_sample_image("china.jpg")), ("coffee", data.coffee())):
        found = [tile for tile, one in zip(tiles, names, strict=True) if one == name]
        places = product(range(0, image.shape[0] - 95, 96), range(0, image.shape[1] - 95, 96))
        whole = [image[y : y + 96, x : x + 96] for y, x in places]
        expected = [part for part in whole if part.std() > 2]
        np.testing.assert_array_equal(found[: len(expected)], expected)
        height, width = (side // 2 for side in image.shape[:2])
        half = [[image[2 * y : 2 * y + 2, 2 * x : 2 * x + 2, 1].mean() for x in range(96)] for y in range(96)]
        assert min(height, width) >= 96
        assert np.abs(found[len(expected)][..., 1] - np.array(half)).max() <= 0.5
    assert write_photographs(tmp_path / "photographs.npz", 96, 96) == len(names)
    dataset = setsup.open(tmp_path / "photographs.npz")
    np.testing.assert_array_equal(dataset.fetch(3)["image"], tiles[3])
    assert set(dataset.factors["photograph"].levels or ()) == set(PHOTOGRAPHS)
    with pytest.raises(SetsupError, match=r"to an .npz file"):
        write_photographs(tmp_path / "photographs.png")


@pytest.mark.long("renderings")
def test_objects_are_cut_where_they_are_seen(tmp_path: Path) -> None:
    pytest.importorskip("embreex")
    recipe = Room(rooms=3, pairs=1, size=(96, 128), count=(8, 12))
    rooms = render(RenderedDataset(recipe, renderer="embree"), tmp_path / "rooms", ["image", "instances"])
    images, shapes, numbers, visible = cut_objects(rooms, 24, 60)
    assert images.shape == (len(shapes), 24, 24, 3)
    assert min(visible) >= 60
    wanted = []
    for row in range(len(rooms)):
        instances = rooms.fetch(row)["instances"]
        inside = instances[1:-1, 1:-1]
        for number, name in sorted(rooms.names(row).items()):
            whole = (instances == number).sum() == (inside == number).sum()
            if name[-1].isdigit() and whole and (instances == number).sum() >= 60:
                wanted.append((name[:-2], int(rooms.factors.codes("room", row)), int((instances == number).sum())))
    assert list(zip(shapes, numbers, visible, strict=True)) == wanted
    assert write_objects(tmp_path / "rooms", tmp_path / "objects.npz", 24, 60) == len(shapes)
    objects = setsup.open(tmp_path / "objects.npz")
    assert {"shape", "room", "visible"} <= set(objects.factors.names)
    with pytest.raises(DataError, match="shows no object of at least 9000 pixels"):
        cut_objects(rooms, 24, 9000)


def test_rooms_without_instances_are_refused() -> None:
    shapes = setsup.load("shapes3d-procedural")
    with pytest.raises(DataError, match=r"lacks modalities \(instances\); render the rooms again"):
        cut_objects(shapes)
