"""Outputs of pixels in folders, shards, pages and Croissant."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("embreex", reason="embreex is not installed")

import setsup
from setsup.correspondence.rendered_frames import RenderedFrames
from setsup.errors import DataError
from setsup.pages.images import whole
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.folder import RenderedFolder
from setsup.rendered.writing import render
from setsup.scenes import Camera, Placement, Scene
from setsup.scenes.meshes.primitives import box, plane
from setsup.scenes.recipes import FunctionRecipe, RoomFrames, Shapes3D
from setsup.shards.writing.writer import write_shards

SOME = "floor_hue == wall_hue == object_hue == 0.1 and scale == 1.25 and shape in ('cube', 'sphere')"


@pytest.fixture(scope="module")
def shapes() -> RenderedDataset:
    recipe = Shapes3D(size=(12, 16))
    available = RenderedDataset(recipe, renderer="embree").available
    return RenderedDataset(recipe, renderer="embree", modalities=list(available))


@pytest.fixture(scope="module")
def folder(shapes: RenderedDataset, tmp_path_factory: pytest.TempPathFactory) -> RenderedFolder:
    """30 rows with all modalities."""
    return render(shapes.where(SOME), tmp_path_factory.mktemp("outputs") / "shapes")


def test_a_folder_has_what_the_dataset_has(shapes: RenderedDataset, folder: RenderedFolder) -> None:
    assert folder.modalities == shapes.available
    assert (folder.modalities["mask"].shape, folder.modalities["object_poses"].shape) == ((12, 16, 1), (3, 4, 4))
    rows = [0, 17]
    found, wanted = setsup.open(folder.folder).fetch(rows), shapes.where(SOME).fetch(rows)
    assert found.keys() == wanted.keys() == set(shapes.available)
    for name, array in found.items():
        assert array.dtype == wanted[name].dtype == shapes.available[name].dtype
        np.testing.assert_array_equal(array, wanted[name])
    said = json.loads((folder.folder / "rendered.json").read_text())["files"]
    assert {f"{name}.npy" for name in folder.modalities} <= set(said)
    described = json.loads((folder.folder / "croissant.json").read_text())
    listed = {one["name"]: one for one in described["recordSet"][0]["setsup:arrays"]}
    assert listed["object_poses"]["shape"] == [3, 4, 4]
    assert listed["nocs"]["dtype"] == "float32"


def test_shards_have_them_too(folder: RenderedFolder, tmp_path: Path) -> None:
    write_shards(folder.select([3, 20]), tmp_path / "set")
    found, wanted = setsup.open(tmp_path / "set").fetch([0, 1]), folder.fetch([3, 20])
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def test_pages_show_them(folder: RenderedFolder) -> None:
    texts = {}
    for name in ("nocs", "uv", "mask", "albedo", "object_poses"):
        answer, texts[name] = whole(folder, 2, name)
        if name == "object_poses":
            assert answer is None
            continue
        assert answer is not None
        shown = np.asarray(Image.open(io.BytesIO(answer.content)))
        assert shown.shape == (12, 16, 3)
        if name == "albedo":
            np.testing.assert_array_equal(shown, folder.fetch(2)["albedo"])
        if name == "uv":
            assert not shown[..., 2].any()
        if name == "mask":  # object, wall, floor and nothing
            numbers = folder.fetch(2)["instances"]
            assert len(np.unique(shown.reshape(-1, 3), axis=0)) == len(np.unique(numbers)) == 4
    assert texts["nocs"].startswith("float32 12 × 16 × 3, 0")
    assert texts["mask"] == "uint8 12 × 16 × 1, bits of objects, with a color for each"


def test_a_recipe_says_how_many_instances_it_has() -> None:
    def build(values: dict[str, int]) -> Scene:
        boxes = [Placement(box((1, 1, 1)), translation=(0, 0, 1 + n)) for n in range(values["boxes"])]
        return Scene((Placement(plane((6, 6))), *boxes))

    def look(values: dict[str, int], scene: Scene) -> Camera:
        return Camera.look_at((0, -5, 2), (0, 0, 1), height=8, width=8, focal_length=8)

    counts = [setsup.Factor("boxes", setsup.Kind.ORDINAL, (1, 9))]
    few = RenderedDataset(
        FunctionRecipe("boxes", counts, build, look, size=(8, 8)), renderer="embree", modalities=["mask"]
    )
    assert few.modalities["mask"].shape == (8, 8, 1)
    with pytest.raises(DataError, match=r"row 1: its scene has an instance with the number 9, but .* 0 to 1; give the"):
        few.fetch(1)
    enough = FunctionRecipe("boxes", counts, build, look, size=(8, 8), instances=10)
    found = RenderedDataset(enough, renderer="embree", modalities=["mask", "object_poses"]).fetch([0, 1])
    assert found["mask"].shape == (2, 8, 8, 2)
    assert np.isfinite(found["object_poses"]).all(axis=(2, 3)).sum(axis=1).tolist() == [2, 10]


@pytest.mark.long("renderings")
def test_poses_of_the_next_frame_carry_points_along_the_flow() -> None:
    recipe = RoomFrames(rooms=1, frames=2, moving=2, size=(48, 64))
    names = ["instances", "object_coordinates", "object_poses", "exact_flow", "intrinsics"]
    found = RenderedFrames(recipe, renderer="embree", modalities=names).fetch([0, 1])
    flow, numbers = found["exact_flow"][0], found["instances"][0]
    y, x = np.nonzero((numbers >= 0) & np.isfinite(flow).all(axis=2))
    poses = found["object_poses"][1][numbers[y, x]]
    moved = np.einsum("nij,nj->ni", poses[:, :3, :3], found["object_coordinates"][0][y, x]) + poses[:, :3, 3]
    seen = moved @ found["intrinsics"][1].T
    assert len(x) > 2000
    np.testing.assert_allclose(seen[:, :2] / seen[:, 2:] - np.stack([x, y], axis=1), flow[y, x], atol=1e-4)
