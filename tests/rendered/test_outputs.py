"""What pixels show, against rays that are solved for one by one, and colours that are looked up texel by texel."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.factors import Factor, Kind
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.objects import pack
from setsup.rendered.outputs import COMPUTED, materials, pixel_outputs
from setsup.scenes import Camera, Material, Mesh, Placement, Scene
from setsup.scenes.color import encode, linear
from setsup.scenes.recipes import FunctionRecipe, ObjectFrames, ObjectView, Room, RoomFrames, Shapes3D

HEIGHT, WIDTH = 14, 18
WRAPS = ("repeat", "clamp", "mirror")


def turn(dice: np.random.Generator) -> np.ndarray:
    """A random rotation."""
    q, _ = np.linalg.qr(dice.normal(size=(3, 3)))
    return q * np.linalg.det(q)


def soup(dice: np.random.Generator, textured: bool, painted: bool) -> Mesh:
    """Loose triangles of three materials, with texture coordinates far outside 0 … 1."""
    vertices = dice.normal(size=(24, 3)) * 0.6
    sheets = [
        Material(
            tuple(dice.integers(60, 256, 3).tolist()),
            dice.integers(0, 256, (*dice.integers(1, 6, 2), 3)).astype(np.uint8) if textured and number else None,
            wrap=(WRAPS[dice.integers(3)], WRAPS[dice.integers(3)]),
        )
        for number in range(3)
    ]
    return Mesh(
        np.append(vertices, [[50, 50, 50]], axis=0),  # no corner of a triangle: not in the box
        dice.permutation(24).reshape(8, 3),
        uv=dice.uniform(-2, 3, (25, 2)) if textured else None,
        colors=dice.integers(0, 256, (25, 3)).astype(np.uint8) if painted else None,
        materials=sheets,
        material=dice.integers(0, 3, 8),
    )


def made_up(seed: int) -> tuple[Scene, Camera]:
    dice = np.random.default_rng(seed)
    meshes = [soup(dice, True, False), soup(dice, False, True), soup(dice, True, True)]
    placements = [
        Placement(meshes[part % 3], turn(dice), dice.normal(size=3) * 0.5, dice.uniform(0.4, 1.6, 3), instance=number)
        for part, number in enumerate((2, 9, 0, 9))
    ]
    camera = Camera.look_at(dice.normal(size=3) - [0, 4, 0], (0, 0, 0), height=HEIGHT, width=WIDTH, field_of_view=0.5)
    skewed = camera.k + np.array([[0, 0.3, 0.2], [0, 1.5, 0], [0, 0, 0]])
    return Scene(placements, background=None), Camera(HEIGHT, WIDTH, skewed, camera.rotation, camera.translation)


def cast(scene: Scene, camera: Camera) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each pixel's ray and each triangle: shares of the corners (n, t, 3), and depth (n, t), inf where it misses.

    Of w with w · corners = ray, in the camera's frame, the shares are w / Σw and the depth 1 / Σw.
    """
    y, x = np.divmod(np.arange(HEIGHT * WIDTH), WIDTH)
    rays = np.linalg.solve(camera.k, np.stack([x, y, np.ones_like(x)]))
    shares = []
    for corners in scene.triangles.corners:
        shares.append(np.linalg.solve((corners @ camera.rotation.T + camera.translation).T, rays).T)
    weights = np.stack(shares, axis=1)
    total = weights.sum(axis=2)
    depth = np.where((weights >= 0).all(axis=2) & (total > 0), 1 / total, np.inf)
    return weights / total[..., None], depth, np.abs(weights / total[..., None]).min(axis=2)


def texel(texture: np.ndarray, wrap: tuple[str, str], u: float, v: float) -> np.ndarray:
    """Linear light of a texture, by the four texels around a point."""
    height, width = texture.shape[:2]
    x, y = u * width - 0.5, (1 - v) * height - 0.5
    found = np.zeros(3)
    for column in (math.floor(x), math.floor(x) + 1):
        for row in (math.floor(y), math.floor(y) + 1):
            at = []
            for place, length, mode in ((row, height, wrap[1]), (column, width, wrap[0])):
                inside = {
                    "repeat": place % length,
                    "clamp": min(max(place, 0), length - 1),
                    "mirror": min(place % (2 * length), 2 * length - 1 - place % (2 * length)),
                }
                at.append(inside[mode])
            found += (1 - abs(x - column)) * (1 - abs(y - row)) * linear(texture[at[0], at[1]] / 255)
    return found


def by_hand(scene: Scene, triangle: int, shares: np.ndarray) -> Mapping[str, Any]:
    """Outputs of a point on a triangle."""
    face, part = scene.triangles.face[triangle], scene.placements[scene.triangles.placement[triangle]]
    mesh, ends = part.mesh, part.mesh.faces[face]
    material = mesh.materials[mesh.material[face]]
    light = linear(np.array(material.color) / 255)
    uv = np.full(2, np.nan) if mesh.uv is None else shares @ mesh.uv[ends].astype(float)
    if mesh.uv is not None and material.texture is not None:
        light = light * texel(material.texture, material.wrap, *uv.tolist())
    if mesh.colors is not None:
        light = light * (shares @ linear(mesh.colors[ends] / 255))
    same = [other for other in scene.placements if other.instance == part.instance]
    used = []
    for other in same:  # in the world, and from there to the frame of the first
        world = other.mesh.corners.reshape(-1, 3) * other.scale @ other.rotation.T + other.translation
        used.append((world - same[0].translation) @ same[0].rotation)
    low, high = np.concatenate(used).min(axis=0), np.concatenate(used).max(axis=0)
    world = shares @ scene.triangles.corners[triangle]
    local = (world - same[0].translation) @ same[0].rotation
    return {
        "barycentrics": shares,
        "object_coordinates": local,
        "nocs": (local - (low + high) / 2) / math.dist(low, high) + 0.5,
        "uv": uv,
        "albedo": 255 * encode(light),
    }


@pytest.mark.parametrize("seed", range(3))
def test_they_are_those_of_rays_that_are_solved_for(seed: int) -> None:
    scene, camera = made_up(seed)
    shares, depth, _ = cast(scene, camera)
    triangle = np.where(np.isfinite(depth).any(axis=1), depth.argmin(axis=1), -1)
    names = ("barycentrics", "object_coordinates", "nocs", "uv", "albedo", "material")
    found = pixel_outputs(scene, camera, triangle.reshape(HEIGHT, WIDTH), names)
    assert list(found) == list(names)
    flat = {name: found[name].reshape(HEIGHT * WIDTH, -1) for name in names}
    numbers = materials(scene)
    seen = np.flatnonzero(triangle >= 0)
    assert 60 < len(seen) < HEIGHT * WIDTH
    for pixel in seen.tolist():
        wanted = by_hand(scene, triangle[pixel], shares[pixel, triangle[pixel]])
        assert np.abs(flat["albedo"][pixel] - wanted["albedo"]).max() < 0.501
        for name in names[:4]:
            np.testing.assert_allclose(flat[name][pixel], wanted[name], atol=2e-6, rtol=1e-6)
        part = scene.placements[scene.triangles.placement[triangle[pixel]]].mesh
        shown = part.materials[part.material[scene.triangles.face[triangle[pixel]]]]
        assert numbers[flat["material"][pixel, 0]].digest == shown.digest
    nothing = triangle < 0
    for name, value in zip(names, (0, np.nan, 0, np.nan, 0, -1), strict=True):
        assert np.array_equal(flat[name][nothing], np.full_like(flat[name][nothing], value), equal_nan=name != "albedo")
    assert ((flat["nocs"][seen] >= 0) & (flat["nocs"][seen] <= 1)).all()


def test_shares_are_those_of_trimesh() -> None:
    triangles = pytest.importorskip("trimesh").triangles
    scene, camera = made_up(4)
    _, depth, _ = cast(scene, camera)
    triangle = np.where(np.isfinite(depth).any(axis=1), depth.argmin(axis=1), -1)
    seen = np.flatnonzero(triangle >= 0)
    points = camera.centre + depth.min(axis=1)[seen, None] * camera.rays()[seen]
    wanted = triangles.points_to_barycentric(scene.triangles.corners[triangle[seen]], points)
    found = pixel_outputs(scene, camera, triangle.reshape(HEIGHT, WIDTH), ["barycentrics"])["barycentrics"]
    np.testing.assert_allclose(found.reshape(-1, 3)[seen], wanted, atol=1e-6)


def test_a_point_beside_its_triangle_is_moved_onto_it() -> None:
    """As where a renderer in float32 sees an edge elsewhere; of triangles seen edge on the plane may be far away."""
    scene, camera = made_up(1)
    dice = np.random.default_rng(5)
    triangle = dice.integers(-1, len(scene.triangles.face), (HEIGHT, WIDTH))
    found = pixel_outputs(scene, camera, triangle, ["barycentrics", "nocs"])
    shares = found["barycentrics"][triangle >= 0]
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    assert ((found["nocs"] >= 0) & (found["nocs"] <= 1)).all()
    flat = Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 0, 1], [0, 4, 1]], [[0, 1, 2], [0, 3, 4]])
    edge_on = Camera(1, 2, np.eye(3), np.eye(3), [0, 0, 2])
    on = pixel_outputs(Scene((Placement(flat),)), edge_on, [[0, 1]], ["barycentrics", "object_coordinates"])
    assert np.isfinite(on["object_coordinates"]).all()
    np.testing.assert_allclose(on["barycentrics"].sum(axis=2), 1)


@pytest.mark.parametrize("seed", range(2))
def test_masks_are_what_each_object_covers_alone(seed: int) -> None:
    pytest.importorskip("embreex")
    scene, camera = made_up(seed)
    _, depth, margin = cast(scene, camera)
    triangle = np.where(np.isfinite(depth).any(axis=1), depth.argmin(axis=1), -1).reshape(HEIGHT, WIDTH)
    mask = pixel_outputs(scene, camera, triangle, ["mask"], 12)["mask"]
    assert mask.shape == (HEIGHT, WIDTH, 2)
    covered = np.unpackbits(mask, axis=-1, bitorder="little").reshape(-1, 16)
    instance = scene.triangles.instance
    hidden = 0
    for number in range(16):
        own = instance == number
        wanted = np.isfinite(depth[:, own]).any(axis=1)
        sure = (margin[:, own] > 1e-5).all(axis=1)
        assert (covered[sure, number] == wanted[sure]).all()
        seen = (triangle.ravel() >= 0) & (instance[triangle.ravel()] == number)
        assert covered[seen, number].all()
        hidden += (covered[:, number] & ~seen).sum()
    assert hidden > 20
    np.testing.assert_array_equal(pack(covered.astype(bool)), mask.reshape(-1, 2))


def test_masks_of_objects_beside_and_behind_the_camera() -> None:
    pytest.importorskip("embreex")
    sheet = Mesh([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    wall = Mesh([[-1, -1, -1], [0, 0, 9], [1, 1, -1]], [[0, 1, 2]])  # from behind the camera to before it
    places = ((0, 0, 4), (0, 0, -4), (30, 0, 4), (0.01, 0, 0))
    scene = Scene([Placement(wall if z == 0 else sheet, translation=(x, y, z)) for x, y, z in places])
    camera = Camera(9, 9, [[8, 0, 4.1], [0, 8, 4.2], [0, 0, 1]], np.eye(3), np.zeros(3))
    empty = np.full((9, 9), -1)
    mask = pixel_outputs(scene, camera, empty, ["mask"])["mask"]
    counts = np.unpackbits(mask, axis=-1, bitorder="little").sum(axis=(0, 1))
    assert counts[0] == 4 * 4  # pixels within ±2 of (4.1, 4.2): 3 to 6
    assert counts[1] == counts[2] == counts[4:].sum() == 0
    assert counts[3] > 3


def test_poses_bring_object_coordinates_to_their_pixels() -> None:
    scene, camera = made_up(2)
    _, depth, _ = cast(scene, camera)
    triangle = np.where(np.isfinite(depth).any(axis=1), depth.argmin(axis=1), -1).reshape(HEIGHT, WIDTH)
    found = pixel_outputs(scene, camera, triangle, ["object_poses", "object_coordinates", "pose", "intrinsics"], 11)
    poses = found["object_poses"]
    assert np.flatnonzero(np.isfinite(poses).all(axis=(1, 2))).tolist() == [0, 2, 9]
    y, x = np.nonzero(triangle >= 0)
    own = poses[scene.triangles.instance[triangle[y, x]]]
    seen = np.einsum("nij,nj->ni", own[:, :3, :3], found["object_coordinates"][y, x]) + own[:, :3, 3]
    pixels = seen @ found["intrinsics"].T
    np.testing.assert_allclose(pixels[:, :2] / pixels[:, 2:], np.stack([x, y], axis=1), atol=1e-4)
    np.testing.assert_allclose(seen[:, 2], depth.min(axis=1).reshape(HEIGHT, WIDTH)[y, x], rtol=1e-6)
    for rotation in own[:, :3, :3]:
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(found["pose"] @ [*(camera.rotation @ [1, 2, 3] + camera.translation), 1], [1, 2, 3, 1])


def test_what_does_not_fit_is_refused() -> None:
    scene, camera = made_up(0)
    triangle = np.zeros((HEIGHT, WIDTH), int)
    for wrong, said in (
        (triangle[1:], r"14 × 18 pixels must be integers of that shape, not int64 of shape \(13, 18\)"),
        (triangle.astype(float), "must be integers"),
        (triangle + 32, r"triangles must be from -1 to 31, but the image has 32 to 32"),
    ):
        with pytest.raises(DataError, match=said):
            pixel_outputs(scene, camera, wrong, ["uv"])
    with pytest.raises(DataError, match=r"'albdo' is not an output of pixels; did you mean 'albedo'"):
        pixel_outputs(scene, camera, triangle, ["albdo"])
    for name in ("mask", "object_poses"):
        with pytest.raises(DataError, match=r"number 9, but arrays of instances have room for 0 to 8; give the recipe"):
            pixel_outputs(scene, camera, triangle, [name], 9)


def test_an_empty_scene_has_nothing() -> None:
    camera = Camera(2, 3, np.eye(3), np.eye(3), np.zeros(3))
    found = pixel_outputs(Scene(), camera, np.full((2, 3), -1), COMPUTED, 2)
    assert not found["mask"].any()
    assert not found["albedo"].any()
    assert np.isnan(found["uv"]).all()
    assert np.isnan(found["object_poses"]).all()


@pytest.mark.parametrize(("number", "said"), [(None, "not 0"), (1 << 20, "not 1,048,577")])
def test_masks_of_recipes_without_a_number_of_instances(number: int | None, said: str) -> None:
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 0, 1]], [[0, 1, 2]])
    scene = Scene() if number is None else Scene((Placement(mesh, instance=number),))
    recipe = FunctionRecipe("own", [Factor("x", Kind.ORDINAL, (0, 1))], lambda _: scene, lambda *_: None, version="1")
    with pytest.raises(DataError, match=f"cannot have mask, which need .*, {said}; give the recipe an attribute insta"):
        RenderedDataset(recipe, modalities=["image", "mask"])


def test_recipes_know_how_many_instances_there_are() -> None:
    assert (ObjectView({"a": "a.obj"}).instances, Shapes3D.instances) == (1, 3)
    room = Room(rooms=1, pairs=1, size=(8, 8), count=(2, 4))
    assert max(room.scene({"room": 0}).names) < room.instances == 76 + 4
    assert Room(meshes={"a": "a.obj"}, count=(0, 9)).instances == 10
    assert RoomFrames(count=(2, 4), moving=3).instances == 76 + 4 + 3
    assert ObjectFrames({"a": "a.obj"}).instances == 1
