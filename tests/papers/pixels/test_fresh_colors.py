import numpy as np
import pytest
import torch

import setsup
from setsup.errors import DataError, SetsupError
from setsup.loading.transforms import Compose
from setsup.loading.views import PlanarPairs
from setsup.random import fold, stream_key
from setsup_papers.pixels import FreshColors
from tests.true_files import mnist as true

RECIPES = ("irm", "pixels")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mnist")
    true.write(folder, per_split=150)
    return folder


def _loader(folder, recipe, inactive=("environment",), **options):
    colored = setsup.load("colored-mnist", folder, recipe=recipe)
    sets = setsup.SetSampler(colored.factors, inactive=list(inactive), size=16, sets=2, seed=0)
    return setsup.loader(colored, sets, **{"workers": 0, **options})


def _batch(sets=2, size=500, environment=0, channels=3, step=0):
    """Random pictures in colour 0 with random clean labels, all of one environment."""
    dice = torch.Generator().manual_seed(1)
    image = torch.randint(0, 256, (sets, size, 1, 4, 4), dtype=torch.uint8, generator=dice).repeat(1, 1, channels, 1, 1)
    image[:, :, 0 if channels == 3 else 1] = 0
    factors = {name: torch.zeros(sets, size, dtype=torch.int64) for name in ("label", "color", "other")}
    factors["clean_label"] = torch.randint(0, 2, (sets, size), generator=dice)
    factors["environment"] = torch.full((sets, size), environment)
    return {"image": image, "factors": factors, "step": step, "inactive": {}}


@pytest.mark.parametrize("recipe", RECIPES)
def test_images_labels_and_colors_agree(folder, recipe):
    given, fresh = (iter(_loader(folder, recipe, transform=transform)) for transform in (None, FreshColors()))
    for before, after in (pair for pair, _ in zip(zip(given, fresh, strict=True), range(3), strict=False)):
        channels = before["image"].shape[2]
        color = after["factors"]["color"]
        empty = color if channels == 3 else 1 - color
        grey = before["image"].amax(2)
        for channel in range(channels):
            expected = torch.where((empty == channel)[..., None, None], 0, grey)
            assert torch.equal(after["image"][:, :, channel], expected)
        assert after["image"].dtype == torch.uint8
        for name in ("digit", "clean_label", "environment", "split"):
            assert torch.equal(before["factors"][name], after["factors"][name])
        assert torch.equal(before["indices"], after["indices"])
        for name in ("label", "color"):
            assert after["factors"][name].dtype == before["factors"][name].dtype
            assert not torch.equal(before["factors"][name], after["factors"][name])


@pytest.mark.parametrize("share", [0, 1, 2])
def test_shares(share):
    batch = FreshColors(seed=5)(_batch(sets=8, size=5000, environment=share))["factors"]
    noise, count = (0.1, 0.2, 0.9)[share], 40_000
    for one, other, expected in (("clean_label", "label", 0.75), ("label", "color", 1 - noise)):
        found = (batch[one] == batch[other]).float().mean().item()
        assert abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / count)
    # both flips are independent, of each other and of the clean label
    flips = torch.stack([batch["label"] ^ batch["clean_label"], batch["color"] ^ batch["label"], batch["clean_label"]])
    correlations = np.corrcoef(flips.flatten(1).numpy())[np.triu_indices(3, 1)]
    assert abs(correlations).max() < 4.5 / np.sqrt(count)


def test_color_predicts_85_and_10_per_cent_whatever_the_step():
    inside, outside = [], []
    for step in range(20):
        for environment, found in ((0, inside), (1, inside), (2, outside)):
            factors = FreshColors()(_batch(size=1000, environment=environment, step=step))["factors"]
            found.append((factors["label"] == factors["color"]).float().mean().item())
    assert abs(np.mean(inside) - 0.85) < 0.006
    assert abs(np.mean(outside) - 0.10) < 0.006


def test_what_is_drawn_is_a_function_of_seed_step_set_and_slot():
    one = FreshColors()(_batch(step=7))["factors"]["label"]
    assert torch.equal(one, FreshColors()(_batch(step=7))["factors"]["label"])
    for other in (
        FreshColors()(_batch(step=8)),
        FreshColors(seed=1)(_batch(step=7)),
        FreshColors(stream="other")(_batch(step=7)),
    ):
        assert 0.2 < (one != other["factors"]["label"]).float().mean() < 0.55
    # sets and slots differ, and do not depend on how many there are
    flips = one ^ _batch(step=7)["factors"]["clean_label"]
    assert not torch.equal(flips[0], flips[1])
    small = _batch(step=7)
    small["image"], small["factors"] = small["image"][:1, :9], {k: v[:1, :9] for k, v in small["factors"].items()}
    assert torch.equal(FreshColors()(small)["factors"]["label"], one[:1, :9])


def test_the_documented_distribution():
    """Bits folded from the key words (seed, stream, step, set, slot, copy 0) and the number of the draw."""
    batch = FreshColors(seed=3)(_batch(sets=2, size=50, environment=1, step=11))["factors"]
    for place in ((0, 0), (1, 49), (1, 3)):
        key = fold(stream_key(3, "FreshColors"), 11)
        for word in (*place, 0):
            key = fold(key, np.asarray(word, np.uint64))
        label, color = ((int(fold(key, number)) >> 11) * 2.0**-53 for number in (0, 1))
        expected = int(batch["clean_label"][place]) ^ (label < 0.25)
        assert int(batch["label"][place]) == expected
        assert int(batch["color"][place]) == expected ^ (color < 0.2)


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("workers", ["thread", 2])
def test_workers_and_resuming_change_nothing(folder, workers):
    plain = iter(_loader(folder, "pixels", transform=FreshColors()))
    first = [next(plain) for _ in range(5)]
    other = iter(_loader(folder, "pixels", transform=FreshColors(), workers=workers))
    resumed = iter(_loader(folder, "pixels", transform=FreshColors(), start=3))
    ranks = [iter(_loader(folder, "pixels", transform=FreshColors(), rank=rank, world=2)) for rank in range(2)]
    for number, batch in enumerate(first):
        same = [next(other), next(ranks[number % 2])] + ([next(resumed)] if number >= 3 else [])
        for found in same:
            assert torch.equal(found["image"], batch["image"])
            assert torch.equal(found["factors"]["label"], batch["factors"]["label"])
    assert not torch.equal(first[0]["factors"]["label"], first[1]["factors"]["label"])


def test_an_image_is_colored_again_when_it_comes_again(folder):
    """Of a digit that is drawn over and over, the label is wrong in a quarter of all draws."""
    colored = setsup.load("colored-mnist", folder, recipe="pixels", where="environment == 0.1").select([5])
    sampler = setsup.EpochSampler(colored.factors, 1, shuffle=False)
    batches = iter(setsup.loader(colored, sampler, transform=FreshColors(), workers=0))
    drawn = [next(batches)["factors"] for _ in range(400)]
    wrong = np.mean([int(factors["label"]) != int(factors["clean_label"]) for factors in drawn])
    astray = np.mean([int(factors["label"]) != int(factors["color"]) for factors in drawn])
    assert abs(wrong - 0.25) < 0.09
    assert abs(astray - 0.1) < 0.06


def test_before_the_pairs_of_pixels(folder):
    transform = Compose([FreshColors(), PlanarPairs(size=32, keep=0.25)])
    batch = next(iter(_loader(folder, "pixels", transform=transform)))
    assert tuple(batch["view_1"].shape) == (2, 16, 3, 32, 32)
    empty = batch["factors"]["color"][..., None, None, None]
    for view in ("view_1", "view_2"):
        assert not batch[view].gather(2, empty.expand(-1, -1, 1, 32, 32)).any()


def test_copies_of_an_image_share_its_color():
    batch = _batch(size=6, channels=2)
    batch["image"] = batch["image"][:, :, None].repeat(1, 1, 4, 1, 1, 1)
    found = FreshColors(label_noise=0.5)(batch)
    assert (found["image"][:, :, :1] == found["image"]).all()
    filled = found["image"].sum((-1, -2)) > 0
    assert torch.equal(filled[:, :, 0, 1].long(), found["factors"]["color"])


def test_floats_stay_floats():
    batch = _batch()
    batch["image"] = batch["image"].float() / 255
    found = FreshColors()(batch)
    assert found["image"].dtype == torch.float32
    assert torch.equal(found["image"].amax(2), batch["image"].amax(2))


def test_the_batch_that_is_given_stays_as_it_was():
    batch = _batch()
    image, factors = batch["image"].clone(), {name: codes.clone() for name, codes in batch["factors"].items()}
    FreshColors()(batch)
    assert torch.equal(batch["image"], image)
    assert all(torch.equal(batch["factors"][name], codes) for name, codes in factors.items())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda batch: batch.pop("step"), "must be the number of the draw"),
        (lambda batch: batch.pop("image"), "modality 'image' not found in the batch"),
        (lambda batch: batch.pop("factors"), "no codes of the factor 'clean_label'"),
        (
            lambda batch: batch["factors"].pop("environment"),
            "no codes of the factor 'environment' for its 2 sets of 500",
        ),
        (
            lambda batch: batch["factors"].update(environment=torch.full((2, 500), 3)),
            "codes from 3 to 3, but FreshColors expects 0 to 2",
        ),
        (lambda batch: batch["factors"].update(environment=torch.full((2, 500), -1)), "codes from -1 to -1"),
        (lambda batch: batch["factors"].update(clean_label=torch.full((2, 500), -1)), "clean_label"),
        (lambda batch: batch.update(image=torch.zeros(2, 500, 1, 4, 4)), "2 or 3 channels of Colored MNIST, not 1"),
        (lambda batch: batch.update(image=torch.zeros(2, 500, 4)), "must have shape"),
        (lambda batch: batch.update(image=np.zeros((2, 500, 3, 4, 4))), "must be a tensor"),
        (lambda batch: batch.update(inactive={"label": torch.zeros(2)}), "the sets fix label, which"),
    ],
)
def test_batches_that_do_not_fit(change, sentence):
    batch = _batch()
    change(batch)
    with pytest.raises((SetsupError, DataError), match=sentence):
        FreshColors()(batch)


def test_sets_that_hold_the_color_are_refused(folder):
    with pytest.raises(SetsupError, match="fix color, which FreshColors draws again"):
        next(iter(_loader(folder, "pixels", inactive=["environment", "color"], transform=FreshColors())))


@pytest.mark.parametrize("options", [{"noise": (0.1, 1.5)}, {"label_noise": -0.1}, {"seed": -1}, {"noise": ("a",)}])
def test_arguments_that_make_no_sense(options):
    with pytest.raises(SetsupError):
        FreshColors(**options)
