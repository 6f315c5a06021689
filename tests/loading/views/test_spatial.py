"""Views and partners of batches: what a loader delivers is what the scenes say, whatever makes the batches."""

import numpy as np
import pytest

import setsup
from setsup.correspondence import (
    PixelPairSampler,
    RenderedPairs,
    overlap,
    pair_table,
    planar,
    spatial,
    stored,
    view_pairs,
)
from setsup.correspondence.matching import matched
from setsup.errors import SetsupError
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import render
from setsup.scenes.recipes import Shapes3D

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("kornia", reason="kornia is not installed")
pytest.importorskip("embreex", reason="embreex is not installed")

from setsup.loading.transforms import (  # noqa: E402
    Affine,
    Augment,
    Compose,
    Crop,
    Flip,
    Jitter,
    Perspective,
    Resize,
    ResizedCrop,
    Rotate,
    VerticalFlip,
)
from setsup.loading.views import SpatialDescriptors, SpatialPairs  # noqa: E402
from setsup.methods.recipes import recipe  # noqa: E402
from setsup.random import fold, stream_key  # noqa: E402

SIZE = 48


@pytest.fixture(scope="module")
def shapes() -> RenderedDataset:
    return RenderedDataset(Shapes3D(size=(SIZE, SIZE)), renderer="embree")


def first_batch(shapes, transform, modalities=("image",), **options):
    pairs = PixelPairSampler(shapes, pairs=3, seed=4)
    return next(iter(setsup.loader(shapes, pairs, modalities=list(modalities), transform=transform, **options)))


def test_views_are_the_two_images_and_positives_are_traced(shapes) -> None:
    batch = first_batch(shapes, SpatialPairs(shapes, keep=1.0), workers=0)
    assert batch["view_1"].shape == (3, 3, SIZE, SIZE)
    for pair, (row1, row2) in enumerate(batch["indices"].tolist()):
        images = shapes.fetch([row1, row2], ["image"])["image"]
        for view, image in zip(("view_1", "view_2"), images, strict=True):
            np.testing.assert_array_equal(batch[view][pair].permute(1, 2, 0).numpy(), image)
        wanted = spatial(shapes.scene(row1), shapes.camera(row1), shapes.camera(row2))
        positive = batch["positive"][pair].numpy()
        np.testing.assert_array_equal(positive, wanted.visible)
        nearest = np.rint(wanted.points2[positive])
        np.testing.assert_array_equal(batch["partner"][pair].numpy()[positive], nearest[:, 1] * SIZE + nearest[:, 0])
    assert batch["valid"].all()


def test_partners_show_the_same_instance_and_nearly_the_same_color(shapes) -> None:
    batch = first_batch(shapes, SpatialPairs(shapes, keep=1.0), ("image", "instances"), workers=0)
    instances = batch["instances"].flatten(2)
    one, two = instances[:, 0], instances[:, 1].gather(1, batch["partner"])
    positive = batch["positive"]
    # nearest pixels of places on an edge may lie across it
    assert (one == two)[positive].float().mean() > 0.97
    assert (one == two)[~positive].float().mean() < 0.7


@pytest.mark.parametrize("independent", [False, True])
def test_windows_are_cut_out_of_both_views(shapes, independent: bool) -> None:
    whole = first_batch(shapes, None, workers=0)["image"]
    batch = first_batch(shapes, SpatialPairs(shapes, size=(20, 24), keep=1.0, independent=independent), workers=0)
    assert batch["view_1"].shape == (3, 3, 20, 24)
    corners = []
    for pair in range(3):
        found = []
        for place, view in enumerate(("view_1", "view_2")):
            patches = whole[pair, place].unfold(1, 20, 1).unfold(2, 24, 1)  # (channels, tops, lefts, 20, 24)
            same = (patches == batch[view][pair][:, None, None]).all(dim=0).flatten(2).all(dim=2)
            assert same.any()
            found.append({tuple(place) for place in same.nonzero().tolist()})
        corners.append(found)
    shared = [bool(one & two) for one, two in corners]
    assert all(shared) if not independent else not all(shared)
    both = batch["positive"].sum()
    assert 0 < both < 3 * 20 * 24


@pytest.fixture(scope="module")
def coordinates(shapes):
    """A batch whose pictures show the x and y of their own pixels."""
    batch = first_batch(shapes, None, ("image", "instances"), workers=0)
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    batch["image"] = torch.stack([x, y]).float().expand(3, 2, 2, SIZE, SIZE)
    return batch


def traced_by_hand(shapes, rows, pixels):
    """Where view 2 has pixels of view 1, and whether it shows them."""
    row1, row2 = rows
    found = spatial(shapes.scene(row1), shapes.camera(row1), shapes.camera(row2), pixels)
    return found.points2, found.visible


@pytest.mark.parametrize("size", [None, (20, 24)])
@pytest.mark.parametrize(
    ("operations", "geometry"),
    [
        ([Flip(1.0)], "sets"),
        ([Flip(), VerticalFlip()], "independent"),
        ([Crop((30, 28))], "sets"),
        ([Crop((30, 28)), Flip()], "independent"),
    ],
    ids=str,
)
def test_partners_follow_what_moved_the_images(shapes, coordinates, operations, geometry, size) -> None:
    """Both pixels of a pair show, on pictures of coordinates, the two ends that rays say: to 1e-3 px."""
    moving = Compose([Augment(operations, geometry=geometry), SpatialPairs(shapes, size=size, keep=1.0)])
    batch = moving(coordinates)
    one, two = (batch[view].flatten(2) for view in ("view_1", "view_2"))
    at = two.gather(2, batch["partner"][:, None].expand(-1, 2, -1))
    assert batch["valid"].all()
    shown = 0
    for pair, rows in enumerate(batch["indices"].tolist()):
        positive = batch["positive"][pair].numpy()
        places = one[pair].T.double().numpy()
        wanted, visible = traced_by_hand(shapes, rows, places)
        shown += int(positive.sum())
        assert visible[positive].all()
        assert np.abs(at[pair].T.double().numpy() - wanted)[positive].max() <= 0.5 + 1e-3
        # of the others, none is shown by view 2
        ends = planar.carried(wanted[~positive & visible], batch["homographies"]["image"][pair, 1].numpy())
        if size is None:
            assert not planar.inside(ends, *batch["view_2"].shape[-2:]).any()
    assert shown > 500


@pytest.mark.parametrize(
    "operations",
    [[Rotate((-90, 90))], [ResizedCrop((41, 33), (0.2, 0.6))], [Resize(30)], [Affine(scale=(1.2, 1.5)), Flip()],
     [Perspective(0.4)]],
    ids=str,
)  # fmt: skip
def test_both_ends_of_a_pair_go_to_the_nearest_pixels(shapes, coordinates, operations) -> None:
    batch = Compose([Augment(operations), SpatialPairs(shapes, keep=1.0)])(coordinates)
    height, width = batch["view_1"].shape[-2:]
    y, x = np.mgrid[:SIZE, :SIZE].astype(float)
    pixels = np.stack([x, y], axis=-1).reshape(-1, 2)
    for pair, rows in enumerate(batch["indices"].tolist()):
        one, two = batch["homographies"]["image"][pair].numpy()
        wanted, visible = traced_by_hand(shapes, rows, pixels)
        first, second = planar.carried(pixels, one), planar.carried(wanted, two)
        both = visible & planar.inside(first, height, width) & planar.inside(second, height, width)
        places = np.concatenate([first, second], axis=1)[both]
        assert (np.abs(places % 1 - 0.5) > 1e-9).all(), "a place half-way between two pixels may go to either"
        flat = [np.rint(ends[both]) @ [1, width] for ends in (first, second)]
        may = set(zip(*(ends.astype(int).tolist() for ends in flat), strict=True))
        positive = np.flatnonzero(batch["positive"][pair])
        found = set(zip(positive.tolist(), batch["partner"][pair][positive].tolist(), strict=True))
        assert found <= may
        shown = set(np.flatnonzero(batch["valid"][pair]).tolist())
        assert {first for first, _ in found} == {first for first, _ in may} & shown
        # what a picture does not show is not valid, and has no partner
        y, x = np.mgrid[:height, :width]
        back = planar.carried(np.stack([x, y], axis=-1).reshape(-1, 2), np.linalg.inv(one))
        np.testing.assert_array_equal(batch["valid"][pair].numpy(), planar.inside(back, SIZE, SIZE))
        assert not (batch["positive"][pair] & ~batch["valid"][pair]).any()


def test_the_recipe_of_rooms_has_partners_in_its_windows(shapes) -> None:
    both = Compose([recipe("oxels-3d", size=(30, 34), seed=3), SpatialPairs(shapes, keep=0.5)])
    batch = first_batch(shapes, both, workers=0)
    assert batch["view_1"].shape == (3, 3, 30, 34)
    assert torch.equal(batch["view_1"], batch["image"][:, 0])
    corners = -batch["homographies"]["image"][..., :2, 2].long().numpy()
    keys = fold(fold(fold(stream_key(0, "SpatialPairs"), batch["step"]), np.arange(3, dtype=np.uint64)), 0)
    wanted = view_pairs(shapes, batch["indices"].numpy(), fold(keys, 0), fraction=0.5, windows=corners, size=(30, 34))
    for name in ("partner", "positive", "valid"):
        np.testing.assert_array_equal(batch[name].numpy(), getattr(wanted, name))
    for pair, rows in enumerate(batch["indices"].tolist()):
        positive = np.flatnonzero(batch["positive"][pair])
        partner = batch["partner"][pair][positive].numpy()
        one, two = (np.stack([flat % 34, flat // 34], axis=-1) + corners[pair, 0] for flat in (positive, partner))
        place, visible = traced_by_hand(shapes, rows, one.astype(float))
        assert visible.all()
        assert len(positive) > 100
        assert np.abs(place - two).max() <= 0.5 + 1e-3


def test_colors_may_change_before_and_after(shapes) -> None:
    color = Jitter(0.3, 0, 0.3, 0.1)
    plain = first_batch(shapes, SpatialPairs(shapes, size=32), workers=0)
    kinds = {"view_1": "color", "view_2": "color"}
    for transforms in (
        [Augment([color], eight_bit=True), SpatialPairs(shapes, size=32)],
        [SpatialPairs(shapes, size=32), Augment([color], modalities=kinds, eight_bit=True)],
    ):
        batch = first_batch(shapes, Compose(transforms), workers=0)
        for name in ("partner", "positive", "valid"):
            assert torch.equal(batch[name], plain[name])
        assert batch["view_1"].shape == plain["view_1"].shape
        assert batch["view_1"].dtype == torch.uint8
        assert not torch.equal(batch["view_1"], plain["view_1"])


def test_descriptors_of_smaller_images_do_not_repeat(shapes, coordinates) -> None:
    smaller = Augment([Resize((20, 28))], modalities={"image": "color", "instances": "label"})
    batch = Compose([smaller, SpatialDescriptors(shapes, 200, ("floor", "wall", "walls", "sky"))])(coordinates)
    for first in batch["first"]:
        found = first[first >= 0].tolist()
        assert 20 < len(found) == len(set(found))


def test_descriptors_follow_what_moved_the_images(shapes, coordinates) -> None:
    kinds, ground = {"image": "color", "instances": "label"}, ("floor", "wall", "walls", "sky")
    for operations in ([Flip(), VerticalFlip()], [Crop((30, 28)), Flip()]):
        moved = Augment(operations, modalities=kinds, fill={"instances": 0})
        batch = Compose([moved, SpatialDescriptors(shapes, 30, ground)])(coordinates)
        instances = batch["instances"].flatten(2)
        for pair, rows in enumerate(batch["indices"].tolist()):
            some = batch["first"][pair] >= 0
            first, match = batch["first"][pair][some], batch["match"][pair][some]
            one, two = batch["image"].flatten(3)[pair]
            wanted, visible = traced_by_hand(shapes, rows, one[:, first].T.double().numpy())
            assert visible.all()
            assert np.abs(two[:, match].T.double().numpy() - wanted).max(initial=0) <= 0.5 + 1e-3
            own, same = instances[pair, 0][first], batch["same"][pair][some]
            assert (instances[pair, 1][same[same >= 0]] == own[same >= 0]).all()
        assert (batch["first"] >= 0).any()
    turned = Compose([Augment([Rotate((45, 45))], modalities=kinds), SpatialDescriptors(shapes, 30, ground)])
    batch = turned(coordinates)
    y, x = np.mgrid[:SIZE, :SIZE]
    for pair in range(3):  # what is beside a turned picture is of no instance, though it is filled with 0
        back = np.linalg.inv(batch["homographies"]["instances"][pair, 1].numpy())
        beside = ~planar.inside(planar.carried(np.stack([x, y], axis=-1).reshape(-1, 2), back), SIZE, SIZE)
        assert not beside[batch["same"][pair][batch["same"][pair] >= 0]].any()


@pytest.mark.parametrize("dtype", ["int64", "uint16", "uint8"])
def test_nothing_is_drawn_where_a_turned_image_is_blank(shapes, coordinates, dtype) -> None:
    given = dict(coordinates)
    most = int(given["instances"].max())
    given["instances"] = torch.where(given["instances"] < 0, most, given["instances"]).to(getattr(torch, dtype))
    turned = Augment([Rotate((45, 45))], modalities={"image": "color", "instances": "label"})
    both = Compose(
        [turned, SpatialDescriptors(shapes, 200, ("floor", "wall", "walls", "sky")), SpatialPairs(shapes, keep=0.5)]
    )
    batch = both(given)
    y, x = np.mgrid[:SIZE, :SIZE]
    for pair in range(3):
        back = np.linalg.inv(batch["homographies"]["instances"][pair, 1].numpy())
        shown = planar.inside(planar.carried(np.stack([x, y], axis=-1).reshape(-1, 2), back), SIZE, SIZE)
        assert 0.1 < (~shown).mean() < 0.3
        for name in ("same", "other", "background"):
            drawn = batch[name][pair].numpy()
            assert shown[drawn[drawn >= 0]].all()
        assert (batch["background"][pair] >= 0).any()
        drawn = batch["partner"][pair][~batch["positive"][pair]].numpy()
        assert shown[drawn].all()
        # of those that are shown, none is left out
        assert len(np.unique(drawn)) > 0.5 * shown.sum()


def test_images_that_were_changed_unseen_are_refused(shapes, coordinates) -> None:
    batch = coordinates
    smaller = {**batch, "image": batch["image"][..., :40, :40]}
    with pytest.raises(SetsupError, match="'image' is 40 × 40, but views of rendered shapes3d are 48 × 48; resize and"):
        SpatialPairs(shapes)(smaller)
    with pytest.raises(SetsupError, match=r"transformed differently; list both in modalities="):
        SpatialDescriptors(shapes, 5)(Augment([Flip(1.0)])(batch))
    with pytest.raises(SetsupError, match="'instances' is 40 × 40"):
        SpatialDescriptors(shapes, 5)({**batch, "instances": batch["instances"][..., :40, :40]})


@pytest.mark.long("large or genuine files")
class OnDevice(torch.Tensor):
    """A tensor that is not in the memory of the CPU, as numpy sees it."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    numpy = __array__

    def cpu(self) -> torch.Tensor:
        return self.as_subclass(torch.Tensor)


@pytest.mark.parametrize("modalities", [("image",), ("image", "instances")])
def test_batches_may_be_on_a_device(shapes, modalities) -> None:
    spatial_pairs = SpatialPairs(shapes) if len(modalities) == 1 else SpatialDescriptors(shapes, 4)
    batch = first_batch(shapes, None, modalities, workers=0)
    wanted = spatial_pairs(dict(batch))
    moved = dict(batch) | {"indices": batch["indices"].as_subclass(OnDevice)}
    moved["factors"] = {name: codes.as_subclass(OnDevice) for name, codes in batch["factors"].items()}
    found = spatial_pairs(moved)
    for name in spatial_pairs.names:
        assert torch.equal(found[name], wanted[name])


@pytest.mark.long("worker processes")
def test_the_same_batches_whatever_makes_them(shapes) -> None:
    views = SpatialPairs(shapes, size=32)
    here, there = (first_batch(shapes, views, workers=workers) for workers in (0, 1))
    for name in ("view_1", "view_2", "partner", "positive", "valid"):
        assert torch.equal(here[name], there[name])


def test_another_step_or_seed_draws_other_pixels(shapes) -> None:
    batch = first_batch(shapes, None, workers=0)
    found = [
        SpatialPairs(shapes, seed=seed)({**batch, "step": step})["positive"] for seed, step in ((0, 0), (0, 1), (1, 0))
    ]
    assert not torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    shares = [one.float().mean().item() for one in found]
    assert max(shares) <= 0.125


def test_descriptors_match_and_their_others_are_of_their_kinds(shapes) -> None:
    ground = ("floor", "wall", "walls", "sky")
    batch = first_batch(shapes, SpatialDescriptors(shapes, 40, ground), ("image", "instances"), workers=0)
    assert batch["first"].shape == batch["background"].shape == (3, 40)
    for pair, (row1, row2) in enumerate(batch["indices"].tolist()):
        names = shapes.names(row1)
        one, two = batch["instances"][pair].flatten(1).numpy()
        wanted = spatial(shapes.scene(row1), shapes.camera(row1), shapes.camera(row2))
        first = batch["first"][pair].numpy()
        there = first >= 0
        assert there.all(), "the object is large enough"
        assert wanted.visible[first].all()
        assert not {names[number] for number in one[first].tolist()} & set(ground)
        np.testing.assert_array_equal(one[first], two[batch["same"][pair].numpy()])
        behind = two[batch["background"][pair].numpy()]
        assert {names.get(number, "") for number in behind.tolist()} <= {*ground, ""}
        assert (batch["other"][pair] == -1).all(), "there is one object"


def test_a_folder_of_pairs_serves_as_the_scenes_do(tmp_path) -> None:
    recipe = Shapes3D(size=(SIZE, SIZE))
    views = RenderedPairs(recipe, pair_table(recipe, pairs=3), "embree")
    kept = render(views, tmp_path / "kept")
    batch = first_batch(views, None, ("image", "instances"), workers=0)
    for traced, looked_up in (
        (SpatialPairs(views, size=32), SpatialPairs(kept, size=32, match=stored)),
        (
            SpatialDescriptors(views, 30, ("floor", "wall")),
            SpatialDescriptors(kept, 30, ("floor", "wall"), match=stored),
        ),
    ):
        wanted, found = traced(batch), looked_up(batch)
        for name in traced.names:
            assert torch.equal(found[name], wanted[name])
    wanted, found = (SpatialDescriptors(kept, 30, match=match)(batch) for match in (stored, matched))
    assert torch.equal(found["match"], wanted["match"]), "what is stored is looked up by default"


def test_what_does_not_fit_is_refused(shapes) -> None:
    sets = setsup.SetSampler(shapes.factors, ["shape"], size=3, sets=2)
    batch = next(iter(setsup.loader(shapes, sets, modalities=["image"], workers=0)))
    with pytest.raises(SetsupError, match="has sets of 3 views; pass views="):
        SpatialPairs(shapes)(batch)
    batch = first_batch(shapes, None, workers=0)
    with pytest.raises(SetsupError, match="is larger than the views"):
        SpatialPairs(shapes, size=64)(batch)
    with pytest.raises(SetsupError, match="instances"):
        SpatialDescriptors(shapes, 5)(batch)
    with pytest.raises(SetsupError, match="already contains 'view_1'"):
        SpatialPairs(shapes)(SpatialPairs(shapes)(batch))
    loose = {name: value for name, value in batch.items() if name != "step"}
    with pytest.raises(SetsupError, match="step"):
        SpatialPairs(shapes)(loose)
    with pytest.raises(SetsupError, match="draw with a PixelPairSampler"):
        SpatialPairs(shapes)({name: value for name, value in batch.items() if name != "indices"})
    cubes = shapes.where("shape == 'cube'")
    some = first_batch(cubes, SpatialPairs(cubes), workers=0)
    del some["view_1"]
    with pytest.raises(SetsupError, match="rows of the batch are not rows of rendered shapes3d; pass the dataset of"):
        SpatialPairs(shapes)(some)
    other = setsup.SetSampler(shapes.factors, ["orientation"], size=2, sets=2)
    batch = next(iter(setsup.loader(shapes, other, modalities=["image"], workers=0)))
    with pytest.raises(SetsupError, match="different scenes"):
        SpatialPairs(shapes)(batch)


def by_overlap(shapes, transform, form, size, negatives=0):
    """A batch of sets of views of one scene and its overlaps."""
    table = overlap(shapes, rows=range(30))  # two scenes
    sampler = setsup.OverlapSampler(
        shapes.factors, table, overlap=(0.2, 0.9), size=size, form=form, direction="both", negatives=negatives, sets=3
    )
    options = {"modalities": ["image"], "transform": transform, "workers": 0}
    return next(iter(setsup.loader(shapes, sampler, **options)))


@pytest.mark.parametrize(
    ("form", "size", "pairs"),
    [("chain", 3, [(0, 1), (1, 2)]), ("star", 3, [(0, 1), (0, 2)]), ("clique", 3, [(0, 1), (0, 2), (1, 2)])],
)
def test_sets_drawn_by_overlap_have_their_pairs(shapes, form, size, pairs) -> None:
    """Views and partners of the pairs of each set, one after another; negatives have none."""
    batch = by_overlap(shapes, SpatialPairs(shapes, keep=1.0, views=size, form=form), form, size, negatives=1)
    assert batch["image"].shape[:2] == (3, size + 1)
    assert batch["view_1"].shape == (3 * len(pairs), 3, SIZE, SIZE)
    for at, (number, (one, two)) in enumerate((number, pair) for number in range(3) for pair in pairs):
        rows = batch["indices"][number, [one, two]].tolist()
        np.testing.assert_array_equal(batch["view_1"][at], batch["image"][number, one])
        np.testing.assert_array_equal(batch["view_2"][at], batch["image"][number, two])
        wanted = spatial(shapes.scene(rows[0]), *map(shapes.camera, rows))
        np.testing.assert_array_equal(batch["positive"][at].numpy(), wanted.visible)
        nearest = np.rint(wanted.points2[wanted.visible])
        found = batch["partner"][at].numpy()[wanted.visible]
        np.testing.assert_array_equal(found, nearest[:, 1] * SIZE + nearest[:, 0])


def test_partners_of_sets_follow_windows_and_flips(shapes) -> None:
    """What moves the views of a set moves the partners of its pairs, each view by its own matrix."""
    moving = Compose([Augment([Flip(p=0.5)]), SpatialPairs(shapes, size=40, keep=1.0, views=3, form="star")])
    batch = by_overlap(shapes, moving, "star", 3)
    matrices = batch["homographies"]["image"].numpy()
    assert len({matrix.tobytes() for matrix in matrices.reshape(-1, 3, 3)}) == 2, "some are flipped, some are not"
    for at, (number, two) in enumerate((number, two) for number in range(3) for two in (1, 2)):
        rows = batch["indices"][number, [0, two]].tolist()
        both = spatial(shapes.scene(rows[0]), *map(shapes.camera, rows))
        moved = both.carried(matrices[number, 0], matrices[number, two], (SIZE, SIZE), (SIZE, SIZE))
        views = [batch["image"][number, position].numpy() for position in (0, two)]
        corner = next(
            (left, top)
            for left in range(9)
            for top in range(9)
            if all(
                np.array_equal(view[:, top : top + 40, left : left + 40], batch[name][at].numpy())
                for view, name in zip(views, ("view_1", "view_2"), strict=True)
            )
        )
        move = planar.crop(*corner)
        cut = moved.carried(move, move, (40, 40), (40, 40))
        cut = cut.select(cut.visible)
        first, second = (np.rint(points).astype(int) for points in (cut.points1, cut.points2))
        positive = np.zeros(1600, bool)
        positive[first[:, 1] * 40 + first[:, 0]] = True
        np.testing.assert_array_equal(batch["positive"][at].numpy(), positive)
        found = batch["partner"][at].numpy()[first[:, 1] * 40 + first[:, 0]]
        np.testing.assert_array_equal(found, second[:, 1] * 40 + second[:, 0])


def test_sets_of_which_nothing_says_the_pairs_are_refused(shapes) -> None:
    with pytest.raises(SetsupError, match=r"sets of 4 views; pass views=, the size of the OverlapSampler, and its"):
        by_overlap(shapes, SpatialPairs(shapes), "chain", 3, negatives=1)
    with pytest.raises(SetsupError, match=r"sets of 3 views, fewer than views=4"):
        by_overlap(shapes, SpatialPairs(shapes, views=4), "chain", 3)
    with pytest.raises(SetsupError, match="form must be"):
        SpatialPairs(shapes, form="ring")
    with pytest.raises(SetsupError, match="number of views of a set"):
        SpatialPairs(shapes, views=1)
    with pytest.raises(SetsupError, match=r"must be of pairs of views"):
        SpatialDescriptors(shapes, 4)(by_overlap(shapes, None, "chain", 3) | {"instances": torch.zeros(3, 3, 48, 48)})
