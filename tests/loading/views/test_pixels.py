"""Pairs of pixels of a batch: coordinate images, views resampled by scipy, and the keyed law."""

import copy
import pickle

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

import setsup
from setsup.correspondence.pairs import affine_pairs
from setsup.errors import DataError, SetsupError
from setsup.random import fold, stream_key

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("kornia", reason="kornia is not installed")

from setsup.loading.views.pixels import PlanarPairs  # noqa: E402

ADDED = ("view_1", "view_2", "partner", "positive", "valid")
ROUNDED = 1 / 32  # pixels: OpenCV moves images by coordinates that are rounded
PLACES = np.stack(np.divmod(np.arange(1024), 32)[::-1], axis=-1)  # (x, y) of the pixels of a view of 32 × 32


def pictures(*lead, height=64, width=64, channels=3, seed=0):
    """Smooth uint8 pictures as a loader gives them: channels first in shape, last in memory."""
    coarse = np.random.default_rng(seed).integers(0, 256, (*lead, -(-height // 4), -(-width // 4), channels), np.uint8)
    fine = coarse.repeat(4, axis=-3).repeat(4, axis=-2)[..., :height, :width, :]
    return torch.from_numpy(np.ascontiguousarray(fine)).movedim(-1, -3)


def coordinates(*lead, height=64, width=64):
    """Pictures of two channels that hold x/256 and y/256 of each pixel, exactly."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack([x, y]).div(256).float().expand(*lead, 2, height, width)


def law(lead, image, seed=0, stream="PlanarPairs", step=0, **words):
    """What is drawn, from keys folded one word after the other: (seed, stream), step, set, slot, copy."""
    keys = fold(stream_key(seed, stream), step)
    for length in (*lead, *([] if len(lead) == 3 else [1])):
        keys = fold(keys[..., None], np.arange(length, dtype=np.uint64))
    return affine_pairs(keys.reshape(-1), image, (32, 32), **words)


def pixels_of(view):
    """Pixels of views (sets, size, channels, h, w), as (n, h·w, channels) float64."""
    return view.flatten(0, 1).flatten(2).movedim(1, -1).double().numpy()


def sampled(picture, x, y):
    """Bilinear, the outermost pixels going on outside: scipy's."""
    return np.stack([map_coordinates(channel, [y, x], order=1, mode="nearest") for channel in picture])


# what lies where


@pytest.mark.parametrize("seed", range(3))
def test_partners_of_a_coordinate_image_show_the_same_coordinates(seed):
    batch = PlanarPairs(keep=1.0, seed=seed)({"image": coordinates(2, 40), "step": seed})
    one, two = (256 * pixels_of(batch[name]) for name in ("view_1", "view_2"))
    partner, positive = (batch[name].flatten(0, 1).numpy() for name in ("partner", "positive"))
    # a pixel that shows (x, y) of the picture belongs this far from the first pixel of view 2, which shows its corner
    places = one - two[:, :1]
    drawn = law((2, 40), (64, 64), seed=seed, step=seed, keep=1.0)
    for i in range(80):
        wanted = (np.linalg.inv(drawn.warp[i]) @ (PLACES - 16).T).T + 16 - drawn.shift[i]
        assert np.abs(places[i] - wanted)[positive[i]].max() < ROUNDED
    errors = places[positive] - PLACES[partner[positive]]
    assert len(errors) > 30_000
    assert np.abs(errors).max() < 0.5 + ROUNDED
    assert np.abs(errors.mean(axis=0)).max() < 0.01
    # and every pixel whose place is strictly inside view 2 is positive
    inside = ((places > 0.501) & (places < 31.499)).all(axis=-1) & batch["valid"].flatten(0, 1).numpy()
    assert positive[inside].all()


@pytest.mark.parametrize("side", [32, 28])
def test_partners_of_digits_show_the_same_coordinates(side):
    # resized to 49 × 49, so that pixel x of the digit lies at (x + ½) · 49/side − ½
    batch = PlanarPairs(keep=1.0)({"image": coordinates(1, 80, height=side, width=side), "step": 1})
    one, two = (256 * pixels_of(batch[name]) for name in ("view_1", "view_2"))
    drawn = law((1, 80), (side, side), step=1, keep=1.0)
    assert drawn.source == (49, 49)
    seen, checked = ((of + 0.5) * 49 / side - 0.5 for of in (one, two)), 0
    for i, (first, second) in enumerate(zip(*seen, strict=True)):
        corner = drawn.centre[i] + drawn.shift[i] - 16
        # the outermost pixels of a digit go on to its edge, where coordinates stand still
        ramp = ((second > 1) & (second < 47)).all(axis=1)
        assert np.abs(second - corner - PLACES)[ramp].max() < ROUNDED
        at = drawn.positive[i] & ((first > 1) & (first < 47)).all(axis=1)
        errors = first[at] - corner - PLACES[drawn.partner[i][at]]
        assert np.abs(errors).max() < 0.5 + ROUNDED
        checked += at.sum()
    assert checked > 30_000


@pytest.mark.parametrize(("height", "width"), [(64, 64), (49, 80), (32, 32), (28, 28), (40, 70)])
@pytest.mark.parametrize("floating", [False, True])
def test_views_are_resampled_as_scipy_does(height, width, floating):
    images = pictures(1, 12, height=height, width=width)
    images = images / 255 if floating else images
    batch = PlanarPairs()({"image": images, "step": 4})
    drawn = law((1, 12), (height, width), step=4)
    rows, columns = drawn.source
    for i in range(12):
        picture = images[0, i].double().numpy() / (1 if floating else 255)
        if (rows, columns) != (height, width):
            y, x = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
            picture = sampled(picture, (x + 0.5) * width / columns - 0.5, (y + 0.5) * height / rows - 0.5)
        x, y = (np.linalg.inv(drawn.warp[i]) @ (PLACES - 16).T + drawn.centre[i][:, None]).reshape(2, 32, 32)
        outside = (x < -0.5) | (x >= columns - 0.5) | (y < -0.5) | (y >= rows - 0.5)
        view_1 = np.where(outside, 0, sampled(picture, x, y))
        left, top = drawn.centre[i] + drawn.shift[i] - 16
        view_2 = picture[:, top : top + 32, left : left + 32]
        slope = sum(np.abs(np.diff(picture, axis=axis)).max() for axis in (1, 2))  # a pixel
        assert np.abs(batch["view_1"][0, i].numpy() - view_1).max() < 1e-4 + slope * ROUNDED / 2
        assert np.abs(batch["view_2"][0, i].numpy() - view_2).max() < 1e-6
        assert (batch["valid"][0, i].numpy() == ~outside.ravel()).all()


@pytest.mark.parametrize("side", [32, 49])
def test_pixels_outside_the_image_are_not_valid_and_black(side):
    batch = PlanarPairs(keep=1.0)({"image": torch.ones(1, 300, 1, side, side), "step": 0})
    view_1, valid = batch["view_1"].flatten(2), batch["valid"]
    assert 100 < int((~valid).sum()) < 0.01 * valid.numel()
    assert (view_1 - valid.float()).abs().max() < 1e-6
    assert batch["view_2"].min() > 1 - 1e-6
    assert not (batch["positive"] & ~valid).any()


# the batch


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("lead", [(2, 3), (2, 3, 2)])
def test_shapes_and_types(channels, lead):
    batch = PlanarPairs((16, 24))({"image": pictures(*lead, channels=channels), "step": 0})
    assert list(batch) == ["image", "step", *ADDED]
    for name in ("view_1", "view_2"):
        assert batch[name].shape == (*lead, channels, 16, 24)
        assert batch[name].dtype == torch.float32
        assert batch[name].is_contiguous()
        assert 0 <= batch[name].min() <= batch[name].max() <= 1
    for name, dtype in (("partner", torch.int64), ("positive", torch.bool), ("valid", torch.bool)):
        assert batch[name].shape == (*lead, 16 * 24)
        assert batch[name].dtype == dtype
        assert batch[name].device == batch["image"].device


@pytest.mark.parametrize("lead", [(2, 3), (2, 3, 2)])
def test_everything_follows_from_seed_stream_step_set_and_slot(lead):
    view = PlanarPairs(keep=0.25, shift=5, seed=7, stream="mine")
    batch = view({"image": pictures(*lead), "step": 2**40})
    drawn = law(lead, (64, 64), seed=7, stream="mine", step=2**40, keep=0.25, shift=5)
    for name in ("partner", "positive", "valid"):
        assert (batch[name].flatten(0, -2).numpy() == getattr(drawn, name)).all()
    again = view({"image": pictures(*lead), "step": 2**40})
    assert all(torch.equal(batch[name], again[name]) for name in ADDED)


def test_pairs_differ_between_steps_sets_slots_seeds_and_streams():
    images = pictures(1, 1).expand(2, 3, 3, 64, 64)

    def found(step=0, **words):
        batch = PlanarPairs(**words)({"image": images, "step": step})
        return [row.tobytes() for name in ("partner", "view_1") for row in batch[name].flatten(0, 1).numpy()]

    rows = [*found(), *found(step=1), *found(seed=1), *found(stream="other")]
    assert len(set(rows)) == len(rows) == 4 * 12


def test_an_image_has_the_same_pairs_whatever_stands_beside_it():
    images = pictures(1, 40)
    together = PlanarPairs()({"image": images, "step": 3})
    alone = PlanarPairs()({"image": images[:, :1], "step": 3})
    changed = PlanarPairs()({"image": torch.cat([images[:, :1], 255 - images[:, 1:]], dim=1), "step": 3})
    for name in ADDED:
        assert torch.equal(together[name][:, :1], alone[name])
        assert torch.equal(together[name][:, :1], changed[name][:, :1])


def test_the_batch_stays_as_it_was():
    batch = {"image": pictures(2, 3), "step": 0}
    before = copy.deepcopy(batch)
    found = PlanarPairs()(batch)
    assert list(batch) == ["image", "step"]
    assert found["image"] is batch["image"]
    assert torch.equal(batch["image"], before["image"])
    found["view_2"].zero_()
    assert torch.equal(batch["image"], before["image"])


def test_float_images_give_the_views_of_8_bits():
    images = pictures(1, 6)
    eight_bit, floating = (PlanarPairs()({"image": x, "step": 0}) for x in (images, images / 255))
    for name in ADDED:
        assert torch.equal(eight_bit[name], floating[name])


def test_two_views_under_names_of_their_own():
    names = tuple(f"other_{name}" for name in ADDED)
    batch = PlanarPairs(names=names, stream="other")(PlanarPairs()({"image": pictures(1, 2), "step": 0}))
    assert list(batch) == ["image", "step", *ADDED, *names]
    assert not torch.equal(batch["partner"], batch["other_partner"])
    with pytest.raises(SetsupError, match="already contains 'view_1'"):
        PlanarPairs()(batch)


def test_pairs_come_from_a_loader():
    shapes = setsup.load("shapes3d-procedural")
    sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2)
    batches = iter(setsup.loader(shapes, sets, transform=PlanarPairs(keep=0.25), start=5, workers=0))
    batch = next(batches)
    assert batch["view_1"].shape == (2, 4, 3, 32, 32)
    assert (batch["partner"].flatten(0, 1).numpy() == law((2, 4), (64, 64), step=5, keep=0.25).partner).all()


def test_pairs_survive_pickling():
    view = PlanarPairs(16, keep=0.5, shift=3, seed=9)
    assert pickle.loads(pickle.dumps(view)) == view
    assert repr(view).startswith("PlanarPairs(size=(16, 16), keep=0.5, shift=3, image='image'")


# bad input


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64])
def test_images_of_other_types_are_refused(dtype):
    with pytest.raises(DataError, match=r"'photo' must be uint8 or float32 in 0 … 1, not torch\."):
        PlanarPairs(image="photo")({"photo": torch.zeros(1, 2, 3, 64, 64, dtype=dtype), "step": 0})


def test_other_batches_are_refused():
    view, images = PlanarPairs(), pictures(1, 2)
    with pytest.raises(SetsupError, match=r"batch\['step'\].*setsup\.loader"):
        view({"image": images})
    with pytest.raises(SetsupError, match="modality 'image' not found in the batch; did you mean 'images'"):
        view({"images": images, "step": 0})
    with pytest.raises(DataError, match=r"must be a tensor, not ndarray"):
        view({"image": images.numpy(), "step": 0})
    with pytest.raises(DataError, match=r"'image' must have shape \(sets, size, channels, height, width\)"):
        view({"image": images[0], "step": 0})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"size": 0}, r"PlanarPairs: size must be a number of pixels or \(height, width\), not 0"),
        ({"size": (32, 32, 3)}, "PlanarPairs: size must be"),
        ({"keep": 1.25}, r"PlanarPairs: keep must be a finite number from 0 to 1, not 1\.25"),
        ({"keep": None}, "PlanarPairs: keep must be a finite number from 0 to 1, not None"),
        ({"shift": -1}, "shift must be an integer of at least 0, not -1"),
        ({"shift": 8.0}, r"shift must be an integer of at least 0, not 8\.0"),
        ({"names": ("a", "b")}, "names must be a tuple of 5 distinct strings"),
        ({"seed": -1}, "the seed must be"),
        ({"stream": 3}, "the stream must be a string"),
    ],
)
def test_bad_arguments_are_refused_at_construction(words, message):
    with pytest.raises(SetsupError, match=message):
        PlanarPairs(**words)
