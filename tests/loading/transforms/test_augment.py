"""Augment on whole batches: keys, copies, shared geometry, choices, modalities, 8 bits, and what it refuses."""

import math
import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import setsup
from setsup.correspondence import planar
from setsup.errors import DataError, SetsupError

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading.transforms import (
    Affine,
    Augment,
    CenterCrop,
    Compose,
    Crop,
    Flip,
    ForLevels,
    Gray,
    OneOf,
    Perspective,
    RandomApply,
    Resize,
    ResizedCrop,
    Rotate,
    Shift,
    VerticalFlip,
)

RARE = 1e-4  # every statistic below is a fixed number, for its seed is; so none of them can flicker
CLOSE = 1e-3  # pixels
ROUNDED = 1 / 32  # pixels: OpenCV moves images by coordinates that are rounded


@dataclass(frozen=True)
class Add:
    """A photometric operation: adds a keyed amount, an integer of 1/255 where images are of 8 bits."""

    most: float = 0.2

    def __call__(self, images: torch.Tensor, slots: Any) -> torch.Tensor:
        amounts = slots.uniform(0, self.most)
        if slots.eight_bit:
            amounts = np.floor(amounts * 255) / 255
        return (images + torch.from_numpy(amounts.astype(np.float32)).to(images.device)[:, None, None, None]).clamp(
            0, 1
        )


@dataclass(frozen=True)
class Count:
    """A photometric operation that does nothing but keep book of how many images it was given."""

    seen: list[int]

    def __call__(self, images: torch.Tensor, slots: Any) -> torch.Tensor:
        assert len(slots) == len(images)
        self.seen.append(len(images))
        return images


def batch(
    sets: int = 3, size: int = 5, height: int = 20, width: int = 24, step: int = 7, **more: Any
) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, (sets, size, height, width, 3), dtype=np.uint8)).movedim(-1, -3)
    return {"image": images, "step": step, "indices": torch.arange(sets * size).reshape(sets, size), **more}


def coordinate_batch(sets: int = 2, size: int = 3, height: int = 60, width: int = 70) -> dict[str, Any]:
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    lead = (sets, size)
    rng = np.random.default_rng(1)
    return {
        "step": 3,
        "image": torch.stack([x, y]).float().expand(*lead, 2, height, width),
        "labels": (y * width + x).to(torch.int32).expand(*lead, height, width),
        "depth": (torch.stack([x, y], dim=-1) + 1.0).expand(*lead, height, width, 2),
        "normal": torch.tensor([0.6, 0.0, -0.8]).expand(*lead, height, width, 3),
        "partners": torch.from_numpy(rng.uniform(5, 50, (*lead, 40, 2))),
    }


KINDS = {"image": "color", "labels": "label", "depth": "depth", "normal": "normal", "partners": "points"}
MIXED = [
    ResizedCrop((64, 60), (0.5, 0.9)),
    Add(),
    OneOf([Flip(1.0), Add(0.1), Rotate((-30, 30))]),
    RandomApply(Shift(0.1), 0.5),
    Add(0.05),
    Perspective(0.2),
]


# one place for all that lies on a pixel


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("copies", [None, 3])
@pytest.mark.parametrize("geometry", ["independent", "copies", "sets"])
@pytest.mark.parametrize(
    "operations",
    [
        [Crop((50, 40)), Flip()],
        [ResizedCrop((64, 80), (0.3, 0.6)), VerticalFlip()],
        [Affine((-90, 90), (-0.3, 0.3), (1.0, 1.3), (-5, 5))],
        [Resize((90, 95)), Rotate((-40, 40)), CenterCrop(70)],
        [Perspective(0.4), OneOf([Flip(1.0), Shift(0.1)]), RandomApply(Rotate((0, 90)), 0.4)],
    ],
    ids=str,
)
def test_everything_on_a_pixel_lands_in_one_place(operations, geometry, copies) -> None:
    given = coordinate_batch()
    found = Augment(operations, modalities=KINDS, copies=copies, geometry=geometry, fill={"labels": -1})(given)
    lead = (2, 3) if copies is None else (2, 3, 3)
    matrices = found["homography"].numpy()
    assert matrices.shape == (*lead, 3, 3)
    size = tuple(found["labels"].shape[-2:])
    y, x = np.mgrid[: size[0], : size[1]]
    at = planar.carried(np.stack([x, y], -1).reshape(-1, 2), np.linalg.inv(matrices)).reshape(*lead, *size, 2)
    inner = ((at > 1) & (at < [68, 58])).all(axis=-1)
    assert inner.any()
    assert tuple(found["image"].shape) == (*lead, 2, *size)
    rim = np.zeros(size, dtype=bool)
    rim[2:-2, 2:-2] = True  # a crop that is resized repeats its own edge
    pictures = found["image"].movedim(-3, -1).numpy()
    assert np.abs(pictures - at)[inner & rim].max() < ROUNDED
    assert np.abs(found["depth"].numpy() - 1 - at)[inner].max() < CLOSE
    ids = found["labels"].numpy()
    assert np.abs(np.stack([ids % 70, ids // 70], -1) - at)[inner].max() <= 0.5 + 1e-6
    partners = given["partners"].numpy() if copies is None else given["partners"].numpy()[:, :, None]
    wanted = planar.carried(np.broadcast_to(partners, (*lead, 40, 2)), matrices)
    np.testing.assert_allclose(found["partners"].numpy(), wanted, atol=1e-9)
    np.testing.assert_array_equal(found["partners_inside"].numpy(), planar.inside(wanted, *size))
    # where a point lands, the picture shows the point
    near = np.rint(wanted)
    whole = planar.inside(near, *size) & ((near > 2) & (near < [size[1] - 3, size[0] - 3])).all(-1)
    for place in np.argwhere(whole)[::11]:
        column, row = near[tuple(place)].astype(int)
        shown = pictures[tuple(place[:-1])][row, column]
        back = planar.carried([[column, row]], np.linalg.inv(matrices[tuple(place[:-1])]))[0]
        if ((back > 1) & (back < [68, 58])).all():
            np.testing.assert_allclose(shown, back, atol=ROUNDED)
    turn = planar.turning(matrices, 34.5, 29.5)
    towards = np.concatenate([turn @ [0.6, 0.0], np.full((*lead, 1), -0.8)], axis=-1)
    normals = found["normal"].numpy()
    assert np.abs(normals - towards[..., None, None, :])[inner].max() < 1e-5


def test_the_two_views_of_a_pixel_are_partners() -> None:
    given = coordinate_batch(1, 1)
    found = Augment([Affine((-90, 90), scale=(1.0, 1.2))], copies=2)(given)
    first, second = found["homography"][0, 0].numpy()
    pictures = found["image"][0, 0].numpy()
    pixels = np.argwhere(np.ones((60, 70), dtype=bool))[:, ::-1]
    partners = planar.carried(pixels, second @ np.linalg.inv(first))
    source = planar.carried(pixels, np.linalg.inv(first))
    good = planar.inside(partners, 60, 70) & ((source > 1) & (source < [68, 58])).all(-1)
    from scipy.ndimage import map_coordinates

    for channel in range(2):
        seen = map_coordinates(pictures[1, channel], partners[good][:, ::-1].T, order=1)
        mine = pictures[0, channel][pixels[good][:, 1], pixels[good][:, 0]]
        assert np.median(np.abs(seen - mine)) < ROUNDED


@pytest.mark.parametrize("copies", [None, 2])
@pytest.mark.parametrize("shape", ["stack", "fields"])
@pytest.mark.parametrize(
    "operations",
    [
        [Flip(1.0)],
        [VerticalFlip(1.0), Crop((50, 40))],
        [Resize((90, 35))],
        [Affine((-90, 90), (-0.3, 0.3), (0.8, 1.3), (-5, 5)), RandomApply(Flip(1.0))],
        [Perspective(0.4), Rotate((-40, 40))],
    ],
    ids=str,
)
def test_flow_leads_where_the_moved_images_lead(operations, shape, copies) -> None:
    """Between two pictures of which one is moved by M, and both by H, lies the motion H M H⁻¹."""
    motions = [
        planar.about_centre(planar.compose(planar.rotation(4), planar.scaling(1.05, 0.9)), 60, 70),
        planar.compose(planar.shear(0.1), planar.translate(-2, 3)),
    ]
    y, x = np.mgrid[:60, :70].astype(np.float64)
    pixels = np.stack([x, y], axis=-1).reshape(-1, 2)
    fields = np.stack([planar.carried(pixels, motion) - pixels for motion in motions])  # linear in x and y
    stack_of = torch.from_numpy(fields.reshape(2, 60, 70, 2)).movedim(-1, 1).float()  # (k, 2, H, W)
    flow = (stack_of if shape == "fields" else stack_of.flatten(0, 1)).expand(2, 3, *[-1] * (4 - (shape != "fields")))
    given = {**coordinate_batch(), "flow": flow}
    found = Augment(operations, modalities={"image": "color", "flow": "flow"}, copies=copies)(given)
    lead = (2, 3) if copies is None else (2, 3, 2)
    size = tuple(found["image"].shape[-2:])
    assert tuple(found["flow"].shape) == (*lead, *([2, 2] if shape == "fields" else [4]), *size)
    result = found["flow"].reshape(*lead, 2, 2, *size).movedim(-3, -1).double().numpy()  # (…, k, h, w, 2)
    matrices = found["homography"].numpy()
    y, x = np.mgrid[: size[0], : size[1]].astype(np.float64)
    pixels = np.stack([x, y], axis=-1).reshape(-1, 2)
    at = planar.carried(pixels, np.linalg.inv(matrices)).reshape(*lead, *size, 2)
    inner = ((at > 1) & (at < [68, 58])).all(axis=-1)
    assert inner.any()
    for number, motion in enumerate(motions):
        wanted = planar.carried(pixels, matrices @ motion @ np.linalg.inv(matrices)) - pixels
        apart = np.abs(result[..., number, :, :, :] - wanted.reshape(*lead, *size, 2))
        assert np.nanmax(apart[inner]) < CLOSE
        assert np.isfinite(apart[inner]).mean() > 0.99  # the rest leads beyond a horizon
    outside = ((at < -0.5) | (at >= [69.5, 59.5])).any(axis=-1)
    assert (result.transpose(*range(len(lead)), -3, -2, -1, -4)[outside] == 0).all()


def test_no_motion_is_a_motion_and_what_is_unknown_is_not_mixed() -> None:
    flow = torch.zeros(1, 1, 2, 4, 6)
    flow[..., :, 3] = 4.0  # bilinear between 0 and 4
    flow[..., 0, 5] = math.nan
    found = Augment([Affine(translate=(0, 0)), Resize((4, 12))], modalities={"f": "flow"})({"f": flow, "step": 0})["f"]
    assert found[0, 0, 0, 1, 4:8].tolist() == [0.0, 2.0, 6.0, 6.0]  # x twice as far
    assert found[0, 0, 1, 1, 4:8].tolist() == [0.0, 1.0, 3.0, 3.0]
    assert torch.isnan(found[0, 0, 0, 0]).tolist() == [False] * 10 + [True] * 2
    for wrong in (
        torch.zeros(1, 1, 3, 4, 6),
        torch.zeros(1, 1, 0, 4, 6),
        torch.zeros(1, 1, 5, 4, 4, 6),
        torch.zeros(1, 1, 2, 1, 4, 6),
        torch.zeros(1, 1, 2, 4, 6, dtype=torch.uint8),
    ):
        with pytest.raises(DataError, match=r"'f' of kind flow must (have shape|be floating point)"):
            Augment([Flip()], modalities={"f": "flow"})({"f": wrong, "step": 0})


@pytest.mark.parametrize("copies", [None, 2])
@pytest.mark.parametrize("eight_bit", [False, True])
def test_frames_of_a_clip_change_alike(copies, eight_bit) -> None:
    rng = np.random.default_rng(4)
    clip = torch.from_numpy(rng.integers(0, 256, (2, 3, 4, 3, 20, 24), dtype=np.uint8))
    augment = Augment(MIXED, copies=copies, eight_bit=eight_bit)
    found = Augment(MIXED, modalities={"clip": "clip"}, copies=copies, eight_bit=eight_bit)({"clip": clip, "step": 7})
    lead = (2, 3) if copies is None else (2, 3, 2)
    assert tuple(found["clip"].shape) == (*lead, 4, 3, 64, 60)
    for frame in range(4):
        alone = augment({"image": clip[:, :, frame], "step": 7})
        assert torch.equal(found["clip"][..., frame, :, :, :], alone["image"])
    assert torch.equal(found["homography"], alone["homography"])


# what has one image a set


@pytest.mark.parametrize("size", [1, 3, 4])
def test_images_of_sets_may_have_as_many_channels_as_a_set_has_slots(size) -> None:
    given = batch(3, size)
    mean = given["image"][:, 0, :1].expand(3, size, 20, 24)
    found = Augment([Flip(1.0)], modalities={"mean": "color"})({**given, "mean": mean})
    assert torch.equal((found["mean"] * 255).round().to(torch.uint8), mean.flip(-1))
    assert tuple(found["homography"].shape) == (3, 3, 3)


def test_canonical_images_are_augmented_by_numbers_of_their_own() -> None:
    given = coordinate_batch(6, 2)
    indices = torch.arange(12).reshape(6, 2)
    one_each = {f"canonical_{name}": value[:, 0] for name, value in given.items() if name != "step"}
    kinds = {f"canonical_{name}": kind for name, kind in KINDS.items()}
    operations = [Affine((-90, 90), scale=(1.0, 1.3), translate=(-5, 5))]
    for geometry in ("independent", "copies", "sets"):
        augment = Augment(operations, modalities=kinds, copies=2, geometry=geometry)
        found = augment({**given, **one_each, "indices": indices})
        matrices = found["homography"].numpy()
        assert matrices.shape == (6, 2, 3, 3)
        assert (matrices[:, 0] == matrices[:, 1]).all() == (geometry != "independent")
        assert len(np.unique(matrices[:, 0].reshape(-1, 9), axis=0)) == 6
        slots = Augment(operations, modalities=KINDS, copies=2, geometry=geometry)(given)["homography"].numpy()
        assert not (matrices == slots[:, 0]).all(axis=(-2, -1)).any()
        y, x = np.mgrid[:60, :70]
        at = planar.carried(np.stack([x, y], -1).reshape(-1, 2), np.linalg.inv(matrices)).reshape(6, 2, 60, 70, 2)
        inner = ((at > 1) & (at < [68, 58])).all(axis=-1)
        assert np.abs(found["canonical_image"].movedim(-3, -1).numpy() - at)[inner].max() < ROUNDED
        assert np.abs(found["canonical_depth"].numpy() - 1 - at)[inner].max() < CLOSE
        wanted = planar.carried(one_each["canonical_partners"].numpy()[:, None], matrices)
        np.testing.assert_allclose(found["canonical_partners"].numpy(), wanted, atol=1e-9)
        assert tuple(found["canonical_labels"].shape) == (6, 2, 60, 70)
        assert tuple(found["canonical_normal"].shape) == (6, 2, 60, 70, 3)
        assert found["image"] is given["image"]


def test_canonical_images_come_from_a_loader() -> None:
    shapes = setsup.load("shapes3d-procedural", where="scale == 1.25")
    orbits = setsup.OrbitSampler(shapes.factors, "shape", sets=2, size=3, canonical="first")  # 3 slots, 3 channels
    both = Compose([Augment([Resize(32)]), Augment([Resize(32)], modalities={"canonical_image": "color"}, stream="c")])
    batch = next(iter(setsup.loader(shapes, orbits, transform=both, workers=0)))
    assert tuple(batch["image"].shape) == (2, 3, 3, 32, 32)
    assert tuple(batch["canonical_image"].shape) == (2, 3, 32, 32)
    rows = shapes.fetch(batch["canonical"].numpy())["image"]
    wanted = Augment([Resize(32)])({"image": torch.from_numpy(rows).movedim(-1, -3)[None], "step": 0})["image"][0]
    assert torch.equal(batch["canonical_image"], wanted)


# matrices through several


def test_homographies_lead_from_what_was_loaded_through_all_that_followed() -> None:
    given = coordinate_batch()
    found = Compose(
        [
            Augment([Crop((50, 60)), Flip()], modalities=KINDS),
            Augment([Rotate((-20, 20))], modalities={"image": "color", "depth": "depth"}, stream="second"),
            Augment([], copies=2, into="more", stream="third"),
            Augment([Shift(0.1)], copies=2, into="moved", stream="fourth"),
        ]
    )(given)
    by = found["homographies"]
    assert set(by) == {"image", "labels", "depth", "normal", "partners", "more_image", "moved_image"}
    assert torch.equal(by["image"], by["depth"])
    assert torch.equal(by["more_image"], by["image"][:, :, None].expand(2, 3, 2, 3, 3))
    for name in ("image", "moved_image"):
        matrices, pictures = by[name].numpy(), found[name].movedim(-3, -1).numpy()
        size = pictures.shape[-3:-1]
        y, x = np.mgrid[: size[0], : size[1]]
        at = planar.carried(np.stack([x, y], -1).reshape(-1, 2), np.linalg.inv(matrices))
        apart = np.abs(pictures - at.reshape(pictures.shape)).max(axis=-1)
        # what a later move uncovers is no longer there
        shown = (pictures != 0).all(axis=-1)[..., 3:-3, 3:-3]
        assert np.median(apart[..., 3:-3, 3:-3][shown]) < ROUNDED
        assert np.quantile(apart[..., 3:-3, 3:-3][shown], 0.9) < ROUNDED
    points = planar.carried(given["partners"].numpy(), by["partners"].numpy())
    np.testing.assert_allclose(found["partners"].numpy(), points, atol=1e-9)
    assert "homographies" not in Augment([])(given)


@pytest.mark.parametrize("copies", [None, 2])
def test_matrices_of_one_modality_are_in_memory_of_their_own(copies) -> None:
    given = coordinate_batch()
    wanted = Augment([Flip(1.0)], modalities=KINDS, copies=copies)(given)["homography"]
    first = Augment([Flip(1.0)], modalities=KINDS, copies=copies)(given)
    first["homographies"]["image"].zero_()
    for matrices in (first["homography"], first["homographies"]["depth"]):
        assert torch.equal(matrices, wanted)
    moved = Augment([Flip(1.0)])(batch())
    again = Augment([Add(0.1)], copies=copies, stream="second")(moved)
    assert torch.equal(again["homography"], moved["homography"])  # what only colours changed has none of its own
    again["homographies"]["image"].zero_()
    assert torch.equal(moved["homographies"]["image"], moved["homography"])


def test_one_of_several_copies_resumes_with_its_matrices() -> None:
    copied = Augment([Flip(), Crop((50, 60))], copies=2)(coordinate_batch())
    chosen = {**copied, "image": copied["image"][:, :, 1]}
    more = Augment([Shift(0.1)], stream="second")
    with pytest.raises(DataError, match=r"or select the same copy of homographies\['image'\]"):
        more(chosen)
    matrices = copied["homographies"]["image"][:, :, 1]
    found = more({**chosen, "homographies": {"image": matrices}})
    assert torch.equal(found["homographies"]["image"], found["homography"] @ matrices)


# keys


def test_a_batch_depends_on_its_step_and_nothing_else() -> None:
    augment, plain = Augment(MIXED, copies=2), batch()
    first = augment(plain)["image"]
    assert torch.equal(first, augment(plain)["image"])
    assert torch.equal(first, pickle.loads(pickle.dumps(augment))(plain)["image"])
    assert torch.equal(first, Augment(MIXED, copies=2)(batch())["image"])
    for other in (
        augment({**plain, "step": 8}),
        Augment(MIXED, copies=2, seed=1)(plain),
        Augment(MIXED, copies=2, stream="other")(plain),
    ):
        same = (other["image"] == first).flatten(2).float().mean(-1)
        assert same.max() < 0.9


def test_slots_draw_from_their_own_place() -> None:
    """The first sets of a batch, or its first slots and copies, are what they are in a smaller batch."""
    whole = batch(4, 6)
    found = Augment(MIXED, copies=3)(whole)["image"]
    fewer = Augment(MIXED, copies=2)({"image": whole["image"][:2, :3], "step": 7})["image"]
    assert torch.equal(fewer, found[:2, :3, :2])


def test_threads_change_no_bits() -> None:
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            found.append(Augment(MIXED)(batch(4, 8, 64, 64))["image"])
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)


def test_memory_layout_changes_no_bits() -> None:
    given = batch()
    packed = {**given, "image": given["image"].contiguous()}
    wide = torch.zeros(3, 5, 3, 20, 48, dtype=torch.uint8)
    wide[..., ::2] = given["image"]
    found = [
        Augment(MIXED)({**given, "image": image})["image"]
        for image in (given["image"], packed["image"], wide[..., ::2])
    ]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert torch.equal(found[0], Augment(MIXED)({**given, "image": given["image"].float() / 255})["image"])


@pytest.mark.parametrize("shape", [(0, 5), (3, 0)])
def test_a_batch_of_no_images_has_the_shapes_and_types_of_any(shape) -> None:
    kinds = {"image": "color", "d": "depth", "l": "label", "n": "normal", "p": "points"}
    maps = {"d": (), "l": (), "n": (3,)}
    some = {name: torch.ones(3, 5, 20, 24, *more) for name, more in maps.items()} | {"p": torch.ones(3, 5, 2, 2)}
    some["l"] = some["l"].to(torch.uint16)
    given = {**batch(), **some}
    none = {**given, **{name: given[name][: shape[0], : shape[1]] for name in kinds}}
    for eight_bit in (False, True):
        augment = Augment([Rotate((-9, 9)), Add(), Resize(8)], modalities=kinds, copies=2, eight_bit=eight_bit)
        full, found = augment(given), augment(none)
        for name in (*kinds, "p_inside", "homography"):
            assert found[name].shape == (*shape, *full[name].shape[2:]), name
            assert found[name].dtype == full[name].dtype, name


def test_the_default_type_of_tensors_changes_nothing() -> None:
    wanted = Augment(MIXED)(batch())["image"]
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(Augment(MIXED)(batch())["image"], wanted)
    finally:
        torch.set_default_dtype(torch.float32)


# copies and shared geometry


def geometry_of(geometry: str, operations: list[Any] | None = None) -> np.ndarray:
    operations = operations or [Affine((-90, 90), translate=(-3, 3))]
    found = Augment(operations, copies=2, geometry=geometry)(batch(6, 7))
    return found["homography"].numpy()


def test_copies_are_independent() -> None:
    matrices = geometry_of("independent")
    flat = matrices.reshape(-1, 9)
    assert len(np.unique(flat.round(9), axis=0)) == 6 * 7 * 2
    found = Augment([Shift(0.5)], copies=2)(batch(40, 50, 2, 2))["homography"][..., 0, 2].numpy().reshape(-1, 2)
    assert abs(np.corrcoef(found.T)[0, 1]) < 4.5 / math.sqrt(len(found))
    assert stats.kstest(found.ravel(), stats.uniform(-1, 2).cdf).pvalue > RARE


def test_copies_share_geometry_when_asked() -> None:
    matrices = geometry_of("copies")
    np.testing.assert_array_equal(matrices[:, :, 0], matrices[:, :, 1])
    assert len(np.unique(matrices[:, :, 0].reshape(-1, 9).round(9), axis=0)) == 6 * 7
    found = Augment([Flip(), Add()], copies=2, geometry="copies")(batch())["image"]
    assert (found[:, :, 0] != found[:, :, 1]).flatten(2).any(-1).all()  # what is no geometry is still its own


def test_sets_share_geometry_when_asked() -> None:
    matrices = geometry_of("sets")
    assert (matrices == matrices[:, :1, :1]).all()
    assert len(np.unique(matrices[:, 0, 0].reshape(-1, 9).round(9), axis=0)) == 6


@pytest.mark.parametrize("operation", [OneOf([Flip(1.0), VerticalFlip(1.0), Add()]), RandomApply(Flip(1.0), 0.5)])
def test_choices_of_geometry_are_shared_too(operation) -> None:
    matrices = geometry_of("copies", [operation])
    np.testing.assert_array_equal(matrices[:, :, 0], matrices[:, :, 1])
    assert len(np.unique(matrices.reshape(-1, 9), axis=0)) > 1


def test_shared_geometry_is_drawn_as_widely_as_any() -> None:
    found = Augment([Shift(0.5)], geometry="sets")(batch(2000, 2, 2, 2))["homography"][:, 0, 0, 2].numpy()
    assert stats.kstest(found, stats.uniform(-1, 2).cdf).pvalue > RARE


# choices


def test_one_of_falls_evenly_and_only_the_chosen_pay() -> None:
    books: list[list[int]] = [[], []]
    shapes = batch(20, 40, 8, 8)
    one = OneOf([Count(books[0]), Count(books[1]), Flip(1.0), ResizedCrop(8, (0.3, 0.5))])
    found = Augment([one])(shapes)
    matrices = found["homography"].numpy().reshape(-1, 3, 3)
    flipped, untouched = matrices[:, 0, 0] == -1, (matrices == np.eye(3)).all(axis=(1, 2))
    counts = [sum(books[0]), sum(books[1]), flipped.sum(), (~flipped & ~untouched).sum()]
    assert sum(counts) == 800
    assert stats.chisquare(counts).pvalue > RARE
    plain = shapes["image"].flatten(0, 1).float() / 255
    assert torch.equal(found["image"].flatten(0, 1)[untouched], plain[untouched])
    assert torch.equal(found["image"].flatten(0, 1)[flipped], plain[flipped].flip(-1))


def test_one_of_may_change_sizes_when_all_agree() -> None:
    found = Augment([OneOf([Resize(16), CenterCrop(16), OneOf([Crop(16), ResizedCrop(16)])])])(batch(3, 30))
    assert tuple(found["image"].shape) == (3, 30, 3, 16, 16)


def test_one_of_gives_each_image_what_the_operation_alone_would() -> None:
    """A mixed choice equals each operation on its own images, drawn from the same keys."""
    given = coordinate_batch(4, 6)
    operations = [Shift(0.2), Flip(1.0), Add(0.1)]
    found = Augment([OneOf(operations)], modalities=KINDS)(given)
    matrices = found["homography"].numpy()
    moved = matrices[..., 0, 2] != 0
    mirrored = matrices[..., 0, 0] == -1
    assert moved.any()
    assert mirrored.any()
    assert (~moved & ~mirrored).any()
    still = torch.from_numpy(~moved & ~mirrored)
    for name in ("labels", "depth", "normal"):
        assert torch.equal(found[name][still], given[name][still])


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_maybe_happens_with_its_probability(p) -> None:
    book: list[int] = []
    found = Augment([RandomApply(VerticalFlip(1.0), p), RandomApply(Count(book), p)])(batch(20, 50, 4, 4))
    flipped = (found["homography"][..., 1, 1] == -1).float().mean().item()
    assert abs(flipped - p) < 4 * math.sqrt(p * (1 - p) / 1000) + 1e-12
    assert abs(sum(book) / 1000 - p) < 4 * math.sqrt(p * (1 - p) / 1000) + 1e-12


def test_maybe_leaves_its_operation_as_wide_as_it_is() -> None:
    found = Augment([RandomApply(Shift(0.5), 0.5)])(batch(60, 60, 2, 2))["homography"][..., 0, 2].numpy()
    assert stats.kstest(found[found != 0], stats.uniform(-1, 2).cdf).pvalue > RARE


def test_only_touches_images_of_its_levels() -> None:
    part = torch.arange(15).reshape(3, 5) % 3
    given = batch(factors={"part": part, "hue": part})
    book: list[int] = []
    found = Augment(
        [
            ForLevels(Flip(1.0), "part", [0, 2]),
            ForLevels(Count(book), "part", 1),
            RandomApply(ForLevels(Add(), "hue", 9), 1.0),
        ]
    )(given)
    flipped = found["homography"][..., 0, 0] == -1
    assert torch.equal(flipped, part != 1)
    assert sum(book) == 5
    twice = Augment([ForLevels(Flip(1.0), "part", 1)], copies=2)(given)["homography"][..., 0, 0]
    assert torch.equal(twice == -1, (part == 1)[..., None].expand(3, 5, 2))


def test_operations_after_a_choice_still_happen_in_order() -> None:
    marks: list[str] = []

    @dataclass(frozen=True)
    class Mark:
        name: str

        def __call__(self, images, slots):
            marks.append(f"{self.name}{tuple(images.shape[-2:])}")
            return images

    Augment([Mark("a"), Resize(10), Mark("b"), RandomApply(Mark("c"), 1.0), Crop(6), Mark("d")])(batch())
    assert marks == ["a(20, 24)", "b(10, 10)", "c(10, 10)", "d(6, 6)"]


def test_matrices_are_multiplied_in_the_order_of_operations() -> None:
    operations = [Resize((40, 60)), Rotate((30, 30)), Affine(translate=(5, 5)), Flip(1.0), CenterCrop((30, 50))]
    wanted = planar.compose(
        planar.resize(20, 24, 40, 60),
        planar.about_centre(planar.rotation(30), 40, 60),
        planar.translate(5, 5),
        planar.flip_x(60),
        planar.crop(5, 5),
    )
    for some in (operations, [*operations[:2], Add(), *operations[2:]]):
        found = Augment(some)(batch())["homography"].numpy()
        np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), atol=1e-12)


def test_operations_draw_independently_of_each_other() -> None:
    four = [
        Flip(),
        VerticalFlip(),
        RandomApply(Affine(translate=(100, 100))),
        OneOf([Shift(0.0), Affine(translate=(1000, 1000))]),
    ]
    matrices = Augment(four)(batch(40, 40, 4, 4))["homography"].numpy().reshape(-1, 3, 3)
    hundreds, thousands = np.divmod(np.rint(np.abs(matrices[:, 0, 2]) // 100), 10)[::-1]
    bits = [matrices[:, 0, 0] < 0, matrices[:, 1, 1] < 0, hundreds > 0, thousands > 0]
    cells = np.bincount(sum(bit.astype(int) << place for place, bit in enumerate(bits)), minlength=16)
    assert len(cells) == 16
    assert stats.chisquare(cells).pvalue > RARE
    shifts = Augment([Shift(0.5), Shift(0.5)])(batch(40, 40, 2, 2))["homography"][..., 0, 2].numpy().ravel()
    triangle = stats.triang(0.5, -2, 4)  # the law of a sum of two that are uniform and independent
    assert stats.kstest(shifts, triangle.cdf).pvalue > RARE


def test_choices_within_choices_all_count() -> None:
    part = torch.arange(4000).reshape(20, 200) % 2
    given = batch(20, 200, 2, 2, factors={"part": part})
    book: list[int] = []
    found = Augment([RandomApply(RandomApply(Flip(1.0), 0.5), 0.5), RandomApply(OneOf([Count(book), Count([])]), 0.5)])(
        given
    )
    for share in ((found["homography"][..., 0, 0] < 0).float().mean().item(), sum(book) / 4000):
        assert abs(share - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 4000)
    book.clear()
    flipped = Augment(
        [ForLevels(RandomApply(Flip(1.0), 0.5), "part", 1), ForLevels(ForLevels(Count(book), "part", 1), "part", 0)]
    )(given)
    mirrored = flipped["homography"][..., 0, 0] < 0
    assert not mirrored[part == 0].any()
    assert abs(mirrored[part == 1].float().mean().item() - 0.5) < 4 * math.sqrt(0.25 / 2000)
    assert book == []


def test_consecutive_geometry_is_resampled_once() -> None:
    """Four quarter turns and back are no turns at all: not one pixel is interpolated."""
    turns = [Affine(translate=(0.25, 0.25)), Affine(translate=(0.75, 0.75)), Crop(20), Resize(40), Resize(20)]
    found = Augment(turns)(batch(1, 4, 21, 21))
    given = batch(1, 4, 21, 21)["image"].float() / 255
    matrices = found["homography"][0].numpy()
    for n in range(4):
        left, top = np.rint(1 - matrices[n, :2, 2]).astype(int) - 1
        wanted = torch.zeros(3, 20, 20)
        for row in range(20):
            for column in range(20):
                if 0 <= row + top < 21 and 0 <= column + left < 21:
                    wanted[:, row, column] = given[0, n, :, row + top, column + left]
        assert (found["image"][0, n] - wanted).abs().max() < 1e-5


# 8 bits, and where results go


def test_eight_bits_stay_whole() -> None:
    seen: list[torch.Tensor] = []

    @dataclass(frozen=True)
    class Look:
        def __call__(self, images, slots):
            seen.append(images.clone())
            return images

    operations = [Look(), Rotate((-40, 40)), Look(), Add(), ResizedCrop(16), Look()]
    rough = {**batch(), "image": torch.rand(3, 5, 3, 20, 24)}
    for given in (batch(), rough):
        assert Augment(operations, eight_bit=True)(given)["image"].dtype == torch.uint8
    for images in seen:
        assert images.dtype == torch.float32
        assert torch.equal(images, images.mul(255).round().div(255))
    nothing = Augment([], eight_bit=True)(rough)["image"]
    assert torch.equal(nothing, rough["image"].mul(255).round().to(torch.uint8))


def test_results_go_beside_or_in_place() -> None:
    given = coordinate_batch()
    found = Augment([Flip(1.0)], modalities=KINDS, into="positive", copies=2)(given)
    for name in KINDS:
        assert found[name] is given[name]
        assert found[f"positive_{name}"].shape[:3] == (2, 3, 2)
    assert {"positive_partners_inside", "positive_homography"} <= set(found)
    assert "homography" not in found
    inplace = Augment([Flip(1.0)], copies=1)(given)
    assert tuple(inplace["image"].shape) == (2, 3, 1, 2, 60, 70)
    assert inplace["step"] == 3


def test_nothing_given_is_written_to() -> None:
    given = coordinate_batch()
    given["image"] = given["image"].contiguous() / 100
    before = {name: value.clone() for name, value in given.items() if name != "step"}
    for operations in (MIXED, [], [Flip(0.0)], [RandomApply(Add(), 0.5)], [Flip(0.5)]):
        found = Augment(operations, modalities=KINDS)(given)
        for name in KINDS:
            found[name].fill_(1)
            assert torch.equal(given[name], before[name]), (operations, name)


def test_grey_images_stay_grey() -> None:
    given = batch()
    found = Augment([Rotate((0, 90)), Add()])({**given, "image": given["image"][:, :, :1]})
    assert tuple(found["image"].shape) == (3, 5, 1, 20, 24)


def test_compose_calls_one_after_the_other() -> None:
    both = Compose([Augment([Resize(12)]), Augment([Crop(8)], into="small", stream="second")])
    found = pickle.loads(pickle.dumps(both))(batch())
    assert tuple(found["image"].shape[-2:]) == (12, 12)
    assert tuple(found["small_image"].shape[-2:]) == (8, 8)
    assert "Resize(size=(12, 12))" in repr(both)


def test_it_is_the_transform_of_a_loader() -> None:
    shapes = setsup.load("shapes3d-procedural", where="scale == 1.25")
    sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2)
    augment = Augment([ResizedCrop(32), ForLevels(Flip(1.0), "shape", 0)], copies=2)
    loader = setsup.loader(shapes, sets, transform=augment, workers=0)
    first, second = (found for found, _ in zip(loader, range(2), strict=False))
    assert tuple(first["image"].shape) == (2, 4, 2, 3, 32, 32)
    flipped = first["homography"][..., 0, 0] < 0
    assert torch.equal(flipped, (first["factors"]["shape"] == 0)[..., None].expand(2, 4, 2))
    again = next(iter(setsup.loader(shapes, sets, transform=augment, workers=0, start=1)))
    assert torch.equal(again["image"], second["image"])


# what is refused


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("missing", ["torch", "kornia"])
def test_a_missing_library_is_one_sentence(missing) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import setsup.loading.transforms"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"LibraryError: transforms need {missing}, which is not installed: pip install" in found.stderr


@dataclass(frozen=True)
class Wrong:
    to: Any

    def __call__(self, images, slots):
        return self.to(images)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Augment(Flip()), "list of operations"),
        (lambda: Augment([Flip]), "requires operations such as"),
        (lambda: Augment(["flip"]), "requires operations such as .*, not 'flip'"),
        (lambda: Augment([], modalities={"image": "colour"}), "unknown kind 'colour' of 'image'; did you mean 'color'"),
        (lambda: Augment([], modalities={}), "modalities must map"),
        (lambda: Augment([], copies=0), "copies must be"),
        (lambda: Augment([], copies=True), "copies must be"),
        (lambda: Augment([], geometry="shared"), "geometry must be one of"),
        (lambda: Augment([], into=""), "into must be"),
        (lambda: Augment([], fill=2), "from 0 to 1"),
        (lambda: Augment([], fill={"label": 3}), "fill contains 'label'"),
        (lambda: Augment([], fill="white"), "fill must be a number"),
        (lambda: Augment([], seed=-1), "seed"),
        (lambda: Augment([], stream=3), "stream"),
        (lambda: OneOf([]), "at least one"),
        (lambda: OneOf(Flip()), "list of operations"),
        (lambda: RandomApply(Flip, 0.5), "requires operations such as"),
        (lambda: RandomApply(Flip(), 2), "RandomApply: p"),
        (lambda: ForLevels(Flip(), "part", []), "codes of its levels"),
        (lambda: ForLevels(Flip(), "part", "real"), "codes of its levels"),
        (lambda: Augment([Flip(), Augment([Flip()])]), "with Compose"),
        (lambda: Augment([Compose([])]), "with Compose"),
        (lambda: RandomApply(lambda images: images), r"callables of \(images, slots\)"),
        (lambda: Compose(Augment([])), "list of transforms"),
        (lambda: Compose([3]), "list of transforms"),
    ],
)
def test_wrong_arguments_are_one_sentence_at_construction(make, said) -> None:
    with pytest.raises(SetsupError, match=said):
        make()


@pytest.mark.parametrize(
    ("change", "augment", "said"),
    [
        ({"step": None}, Augment([Flip()]), r"load batches with setsup\.loader"),
        ({}, Augment([Flip()], modalities={"imgae": "color"}), "'imgae' not found in the batch; did you mean 'image'"),
        ({"image": np.zeros((3, 5, 3, 20, 24))}, Augment([]), "must be a tensor"),
        ({"image": torch.zeros(3, 5, 20, 24)}, Augment([]), r"\(sets, size, channels, height, width\)"),
        ({"image": torch.zeros(3, 5, 3, 20, 24, dtype=torch.int64)}, Augment([]), "uint8 or float32"),
        ({"d": torch.zeros(3, 5, 20, 24).int()}, Augment([], modalities={"d": "depth"}), "must be floating"),
        ({"n": torch.zeros(3, 5, 20, 24, 4)}, Augment([], modalities={"n": "normal"}), r"height, width, 3\)"),
        ({"p": torch.zeros(3, 5, 9, 2)}, Augment([], modalities={"p": "points"}), "points alone"),
        ({"p": torch.zeros(3, 5, 9, 3)}, Augment([], modalities={"p": "points"}), r"n, 2\)"),
        (
            {"d": torch.zeros(3, 5, 10, 12)},
            Augment([], modalities={"image": "color", "d": "depth"}),
            r"have the same \(height, width\)",
        ),
        (
            {"d": torch.zeros(3, 4, 20, 24)},
            Augment([], modalities={"image": "color", "d": "depth"}),
            "must (all )?have the same",
        ),
        (
            {"l": torch.zeros(3, 5, 20, 24, dtype=torch.uint8)},
            Augment([], modalities={"l": "label"}, fill={"l": -1}),
            "cannot be filled with -1",
        ),
        (
            {"l": torch.zeros(3, 5, 20, 24, dtype=torch.uint8)},
            Augment([], modalities={"l": "label"}, fill={"l": math.nan}),
            "cannot be filled with nan",
        ),
        ({"positive_image": 0}, Augment([], into="positive"), "already contains 'positive_image'"),
        ({}, Augment([ForLevels(Flip(), "part", 1)]), "no factor 'part'"),
        (
            {"canonical_image": torch.zeros(3, 3, 20, 24), "factors": {"part": torch.zeros(3, 5)}},
            Augment([ForLevels(Flip(), "part", 1)], modalities={"canonical_image": "color"}),
            "apply ForLevels to images with positions",
        ),
        (
            {"canonical_image": torch.zeros(3, 3, 20, 24)},
            Augment([], modalities={"image": "color", "canonical_image": "color"}),
            "the same leading axes",
        ),
        ({"c": torch.zeros(3, 5, 3, 20, 24)}, Augment([], modalities={"c": "clip"}), r"frames, channels, height"),
        (
            {"l": torch.zeros(3, 5, 2, 20, 24), "homographies": {"l": torch.eye(3).expand(3, 5, 2, 3, 3)}},
            Augment([Flip()], modalities={"l": "label"}),
            "into the same Augment",
        ),
        ({"factors": {"prat": 0}}, Augment([ForLevels(Flip(), "part", 1)]), "did you mean 'prat'"),
        ({}, Augment([RandomApply(Crop(8), 0.5)]), "different sizes, 20 × 24 and 8 × 8"),
        ({}, Augment([OneOf([Crop(8), Crop(9)])]), "different sizes, 8 × 8 and 9 × 9"),
        ({}, Augment([OneOf([Crop(8), Add()])]), "different sizes"),
        ({}, Augment([Crop(21)]), "Crop of 21 × 21 pixels is larger"),
        ({}, Augment([Wrong(lambda x: x[:-1])]), "keep the number and size"),
        ({}, Augment([Wrong(lambda x: x.double())]), "must return a float32 tensor"),
        ({}, Augment([RandomApply(Wrong(lambda x: x[:, :1]), 0.5)]), "apply the operation to all"),
    ],
)
def test_batches_that_do_not_fit_are_one_sentence(change, augment, said) -> None:
    with pytest.raises(SetsupError, match=said):
        augment({**batch(), **change})


def test_a_batch_of_another_shape_is_an_error_of_data() -> None:
    with pytest.raises(DataError):
        Augment([])({**batch(), "image": torch.zeros(3, 5, 20, 24)})


def test_two_that_draw_the_same_numbers_are_refused() -> None:
    with pytest.raises(SetsupError, match=r"same random numbers \(seed 0, stream 'Augment'\).*stream="):
        Compose([Augment([Flip()]), Augment([Shift(0.1)])])
    with pytest.raises(SetsupError, match="draw the same random numbers"):
        Compose([Augment([Flip()]), Compose([lambda batch: batch, Compose([Augment([Crop(8)])])])])
    assert Compose([Augment([Flip()]), Augment([Shift(0.1)], stream="second"), lambda batch: batch])
    assert Compose([Compose([Augment([Flip()])]), Compose([Augment([Flip()], seed=1)])])


@pytest.mark.parametrize(
    ("images", "match"),
    [
        (255 * torch.rand(1, 2, 3, 8, 8), r"float32 in 0 … 1, not float32 from \S+ to 2\d\d"),
        (2 * torch.rand(1, 2, 3, 8, 8) - 1, r"float32 from -0\S+ to"),
        (torch.zeros(1, 2, 8, 8, 3, dtype=torch.uint8), "channels before .*movedim"),
        (torch.zeros(1, 2, 2, 3, 8, 8, dtype=torch.uint8), "into the same Augment"),
    ],
)
def test_images_that_are_none_are_refused(images: torch.Tensor, match: str) -> None:
    with pytest.raises(DataError, match=match):
        Augment([Gray()])({"image": images, "step": 0})


def test_what_only_moves_may_hold_any_numbers() -> None:
    ramps = torch.arange(64.0).expand(1, 1, 1, 8, 64)
    assert Augment([Flip(1.0)])({"image": ramps, "step": 0})["image"].max() == 63
