"""Sets of renderings and real images of ABC's pose experiment, and what is done to them."""

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, chisquare

from setsup.datasets import BaseDataset, Modality
from setsup.errors import DataError, SetsupError
from setsup.loading.batch import make_batch
from setsup.samplers import from_dict
from setsup_papers.abc.pose.data import PoseAugmentation, PoseCrop, PoseSets
from setsup_papers.abc.pose.datasets.abc_pose.factors import Part, pose_table

MODELS, VIEWS, REAL = 5, 9, 30


def table():
    """Renderings of five models of cars, and real images without annotations."""
    pose = np.zeros((MODELS * VIEWS, 3), np.float32)
    rendered = Part("car", "rendering", "train", np.repeat(np.arange(MODELS), VIEWS), pose)
    real = Part("car", "real", "train", np.full(REAL, -1), np.full((REAL, 3), np.nan, np.float32))
    return pose_table([rendered, real], [f"car {number}" for number in range(MODELS)])


class Images(BaseDataset):
    """Images of 12 x 12 pixels with alpha; renderings are transparent on the left."""

    name = "images"

    def __init__(self):
        self.factors = table()
        self.modalities = {"image": Modality((12, 12, 4), "uint8", color="srgb")}

    def _read(self, name, rows, out):
        for image, row in zip(out, rows.tolist(), strict=True):
            image[..., :3] = (7 * row + np.arange(12)[:, None, None] * 3 + np.arange(12)[:, None] + np.arange(3)) % 256
            image[..., 3] = 255
            if row < MODELS * VIEWS:
                image[:, :5, 3] = 0
        return out

    def backgrounds(self, count, side):
        return np.full((min(count, 3), side + 4, side + 4, 3), 99, np.uint8)


def batch_of(dataset, sampler, step=0):
    found = make_batch(dataset, step, sampler[step], ["image"])
    found["image"] = torch.from_numpy(found["image"]).movedim(-1, -3)
    return found


# Sets


def test_one_set_of_a_pair_is_of_one_model_and_the_other_of_all():
    dataset = Images()
    sampler = PoseSets(pairs=3, size=6, real=0.0).build(dataset, seed=1)
    draw = sampler.block(0, 2000)
    assert draw.indices.shape == (2000, 6, 6)
    objects = dataset.factors.codes("object", draw.indices)
    assert (objects >= 0).all()  # renderings only
    model, free = objects[:, ::2], objects[:, 1::2]
    assert (model == model[..., :1]).all()
    assert all(len(set(rows)) == 6 for rows in draw.indices[:, 0].tolist())  # no image twice
    for counted in (model[..., 0], free):
        assert chisquare(np.bincount(counted.reshape(-1), minlength=MODELS)).pvalue > 1e-4
    seen = np.bincount(draw.indices[:, 1::2].reshape(-1), minlength=MODELS * VIEWS)
    assert chisquare(seen).pvalue > 1e-4
    # sets of a step are independent: models of two pairs coincide as often as chance has it
    same = int((model[:, 0, 0] == model[:, 1, 0]).sum())
    assert binomtest(same, 2000, 1 / MODELS).pvalue > 1e-4


@pytest.mark.parametrize("every", [4_000, 150])
def test_real_images_come_as_often_as_the_schedule_says(every):
    dataset = Images()
    sampler = PoseSets(pairs=2, size=8, real=0.10, every=every).build(dataset, seed=0)
    for level in (0, 1, 5, 8, 9, 11):
        steps = np.arange(level * every, level * every + min(every, 150))
        found = sampler.draws(steps).indices
        expected = 0.10 * min(level, 9) / 9  # the formula of the specification, by hand
        real = found >= MODELS * VIEWS
        assert not real[:, ::2].any()
        hits, trials = int(real[:, 1::2].sum()), real[:, 1::2].size
        assert hits == 0 if expected == 0 else binomtest(hits, trials, expected).pvalue > 1e-4
    # each real image comes as often as any other
    late = sampler.draws(np.arange(9 * every, 9 * every + 4000)).indices
    assert chisquare(np.bincount(late[late >= MODELS * VIEWS] - MODELS * VIEWS, minlength=REAL)).pvalue > 1e-4


def test_without_titration_the_share_is_constant():
    sampler = PoseSets(pairs=1, size=8, real=0.02, every=None).build(Images(), seed=0)
    hits = int((sampler.block(0, 4000).indices[:, 1] >= MODELS * VIEWS).sum())
    assert binomtest(hits, 32_000, 0.02).pvalue > 1e-4


def test_draws_depend_on_seed_and_step_alone():
    dataset = Images()
    settings = PoseSets(pairs=2, size=4, every=10)
    sampler = settings.build(dataset, seed=3)
    block = sampler.block(80, 100).indices
    for step in (80, 93, 99):
        np.testing.assert_array_equal(settings.build(dataset, seed=3)[step].indices, block[step - 80])
    np.testing.assert_array_equal(from_dict(sampler.to_dict(), dataset.factors).block(80, 100).indices, block)
    assert (settings.build(dataset, seed=4).block(80, 100).indices != block).mean() > 0.8


def test_sets_for_augmentation_alone_are_of_all_models():
    dataset = Images()
    draw = PoseSets(pairs=1, size=6, real=0.3, every=None, constrained=False).build(dataset, 0).block(0, 400)
    for number in (0, 1):
        real = draw.indices[:, number] >= MODELS * VIEWS
        assert binomtest(int(real.sum()), real.size, 0.3).pvalue > 1e-4
    with pytest.raises(SetsupError, match="pairs must be 1 or more"):
        PoseSets(pairs=0).build(dataset, 0)
    small = PoseSets(real=0.1).shrunk()
    assert (small.pairs, small.size, small.real) == (1, 4, 0.5)


# What is done to images

STILL = {"move": 0.0, "brightness": 0.0, "hue": 0.0, "noise": 0.0, "sobel": 0.0}


def test_renderings_stand_before_backgrounds_and_real_images_do_not():
    dataset = Images()
    batch = batch_of(dataset, PoseSets(pairs=2, size=4, real=0.5, every=None).build(dataset, 0))
    found = PoseAugmentation(size=8, **STILL).build(dataset, 0)(batch)["image"]
    assert found.shape == (4, 4, 2, 3, 8, 8)
    box = batch["image"][..., 2:10, 2:10].float() / 255
    alpha = box[..., 3:, :, :]
    expected = box[..., :3, :, :] * alpha + 99 / 255 * (1 - alpha)
    for copy in (0, 1):
        torch.testing.assert_close(found[:, :, copy], expected, atol=1e-6, rtol=0)
    black = PoseAugmentation(size=8, backgrounds=0, **STILL).build(dataset, 0)(batch)["image"]
    torch.testing.assert_close(black[:, :, 1], box[..., :3, :, :], atol=1e-6, rtol=0)


def test_copies_differ_and_only_real_images_change_their_hue():
    dataset = Images()
    batch = batch_of(dataset, PoseSets(pairs=2, size=4, real=0.5, every=None).build(dataset, 0))
    transform = PoseAugmentation(size=8).build(dataset, 0)
    found = transform(batch)["image"]
    assert not torch.equal(found[:, :, 0], found[:, :, 1])
    assert torch.equal(transform(batch)["image"], found)
    turned = PoseAugmentation(size=8, **{**STILL, "hue": 0.5}).build(dataset, 0)(batch)["image"]
    plain = PoseAugmentation(size=8, **STILL).build(dataset, 0)(batch)["image"]
    changed = (turned - plain).abs().flatten(2).amax(-1) > 1e-3
    real = torch.from_numpy(np.asarray(batch["factors"]["source"])) == 1
    assert real.any()
    assert not changed[~real].any()
    assert changed[real].float().mean() > 0.9


def test_moves_show_what_lies_around_the_box():
    dataset = Images()
    batch = batch_of(dataset, PoseSets(pairs=1, size=4, real=0.9, every=None).build(dataset, 0))
    batch["image"][:] = 255
    moved = PoseAugmentation(size=8, **{**STILL, "move": 0.25}).build(dataset, 0)(batch)["image"]
    assert moved.min() == 1  # white, to the margin of two pixels


def test_the_middle_of_images_is_evaluated_without_alpha():
    dataset = Images()
    batch = batch_of(dataset, PoseSets(pairs=1, size=4).build(dataset, 0))
    found = PoseCrop(size=8).build(dataset, 0)(batch)["image"]
    assert torch.equal(found, batch["image"][..., :3, 2:10, 2:10])
    exact = {"image": found}
    assert torch.equal(PoseCrop(size=8).build(dataset, 0)(exact)["image"], found)
    with pytest.raises(SetsupError, match="at least as large as the box"):
        PoseCrop(size=16).build(dataset, 0)(batch)


def test_data_without_backgrounds_are_refused():
    class Plain(Images):
        backgrounds = None

    with pytest.raises(DataError, match="has no backgrounds"):
        PoseAugmentation(size=8).build(Plain(), 0)
    assert PoseAugmentation().shrunk().backgrounds == 8


@pytest.mark.parametrize(("move", "backgrounds", "words"), [(0.25, 4, None), (0.3, 4, "background"), (0.3, 0, "black")])
def test_moves_beyond_the_margin_are_logged(caplog, move, backgrounds, words):
    PoseAugmentation(size=8, move=move, backgrounds=backgrounds).build(Images(), seed=0)
    said = f"have a margin of 2 pixels, but moves are of up to 2.4; pixels beyond the margin are {words}"
    assert (said in caplog.text) if words else not caplog.text
