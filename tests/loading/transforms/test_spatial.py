"""Views and partners of batches: what a loader delivers is what the scenes say, whatever makes the batches."""

import numpy as np
import pytest

import setsup
from setsup.correspondence import PairSampler, RenderedPairs, pair_table, spatial, stored
from setsup.datasets.rendered import RenderedDataset
from setsup.datasets.rendered_writing import render
from setsup.errors import SetsupError
from setsup.scenes.recipes import Shapes3D

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("kornia", reason="kornia is not installed")
pytest.importorskip("embreex", reason="embreex is not installed")

from setsup.loading.transforms import SpatialDescriptors, SpatialPairs  # noqa: E402

SIZE = 48


@pytest.fixture(scope="module")
def shapes() -> RenderedDataset:
    return RenderedDataset(Shapes3D(size=(SIZE, SIZE)), renderer="embree")


def first_batch(shapes, transform, modalities=("image",), **options):
    pairs = PairSampler(shapes, pairs=3, seed=4)
    return next(iter(setsup.loader(shapes, pairs, modalities=list(modalities), transform=transform, **options)))


def test_views_are_the_two_pictures_and_positives_are_traced(shapes) -> None:
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


def test_partners_show_the_same_instance_and_nearly_the_same_colour(shapes) -> None:
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
    with pytest.raises(SetsupError, match="give match=stored"):
        SpatialDescriptors(kept, 30)(batch)


def test_what_does_not_fit_is_refused(shapes) -> None:
    sets = setsup.SetSampler(shapes.factors, ["shape"], size=3, sets=2)
    batch = next(iter(setsup.loader(shapes, sets, modalities=["image"], workers=0)))
    with pytest.raises(SetsupError, match="pairs of views"):
        SpatialPairs(shapes)(batch)
    batch = first_batch(shapes, None, workers=0)
    with pytest.raises(SetsupError, match="does not fit"):
        SpatialPairs(shapes, size=64)(batch)
    with pytest.raises(SetsupError, match="instances"):
        SpatialDescriptors(shapes, 5)(batch)
    with pytest.raises(SetsupError, match="has 'view_1' already"):
        SpatialPairs(shapes)(SpatialPairs(shapes)(batch))
    loose = {name: value for name, value in batch.items() if name != "step"}
    with pytest.raises(SetsupError, match="step"):
        SpatialPairs(shapes)(loose)
    cubes = shapes.where("shape == 'cube'")
    some = first_batch(cubes, SpatialPairs(cubes), workers=0)
    del some["view_1"]
    with pytest.raises(SetsupError, match="rows of the batch are not those of rendered shapes3d: give the data set of"):
        SpatialPairs(shapes)(some)
    other = setsup.SetSampler(shapes.factors, ["orientation"], size=2, sets=2)
    batch = next(iter(setsup.loader(shapes, other, modalities=["image"], workers=0)))
    with pytest.raises(SetsupError, match="different scenes"):
        SpatialPairs(shapes)(batch)
