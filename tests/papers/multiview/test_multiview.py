"""Views that share a subset of latents: what is drawn, the loss by loops, and regressions by normal equations."""

import math

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("sklearn")
import torch

import setsup
from setsup.errors import DataError, SetsupError
from setsup.factors import Factor, Kind
from setsup_papers.multiview import BlockContrastSettings, SharedFactors, explained_variance
from setsup_papers.multiview.measures import regression_targets

SUBSETS = ("floor_hue+wall_hue", "wall_hue+shape")


def test_pairs_of_each_subset_share_its_factors_and_no_other() -> None:
    dataset = setsup.load("shapes3d-procedural")
    sampler = SharedFactors(subsets=SUBSETS, pairs=200).build(dataset, 0)
    draw = sampler[3]
    assert draw.indices.shape == (400, 2)
    names = dataset.factors.names
    equal = {name: np.equal(*dataset.factors.codes(name, draw.indices).T) for name in names}
    for number, subset in enumerate(SUBSETS):
        own = slice(200 * number, 200 * (number + 1))
        for name in names:
            share = equal[name][own].mean()
            assert share == 1 if name in subset.split("+") else share < 0.5, (subset, name)


def test_continuous_factors_are_shared_up_to_the_tolerance() -> None:
    dice = np.random.default_rng(0)
    dataset = setsup.from_arrays(
        {"image": np.zeros((500, 4, 4, 3), np.uint8)}, {"a": dice.uniform(-1, 1, 500), "b": dice.uniform(-1, 1, 500)}
    )
    sampler = SharedFactors(subsets=("a", "b"), pairs=64, tolerance=(("a", 0.05), ("b", 0.1))).build(dataset, 0)
    rows = sampler[0].indices
    apart = {name: np.abs(np.subtract(*dataset.factors.values(name)[rows].T)) for name in ("a", "b")}
    assert apart["a"][:64].max() <= 0.05 < apart["a"][64:].max()
    assert apart["b"][64:].max() <= 0.1 < apart["b"][:64].max()


def small() -> torch.nn.Module:
    settings = BlockContrastSettings(blocks=("one", "two"), width=3, image=(3, 16, 16), convolutions=((4, 2),), dense=8)
    return settings.build(None, torch.Generator().manual_seed(0))


def test_the_loss_is_that_of_loops() -> None:
    method = small()
    batch = {"image": torch.randint(0, 256, (10, 2, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator())}
    blocks = {name: block.detach().double() for name, block in method.embed(batch).items()}
    assert {name: tuple(block.shape) for name, block in blocks.items()} == {"one": (10, 2, 3), "two": (10, 2, 3)}
    wanted = []
    for name, own in (("one", range(5)), ("two", range(5, 10))):
        for anchor, other in ((0, 1), (1, 0)):
            for pair in own:
                scores = [float(blocks[name][pair, anchor] @ blocks[name][each, other]) / 0.1 for each in own]
                wanted.append(math.log(sum(map(math.exp, scores))) - scores[pair - own.start])
    assert float(method.loss(batch).detach()) == pytest.approx(np.mean(wanted), rel=1e-5)
    assert torch.allclose(blocks["one"].norm(dim=-1), torch.ones(10, 2, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(3, 2), (4, 3)])
def test_sets_that_are_no_pairs_of_each_block(shape: tuple[int, int]) -> None:
    with pytest.raises(SetsupError, match="equally many pairs for each of 2 blocks"):
        small().loss({"image": torch.zeros(*shape, 3, 16, 16, dtype=torch.uint8)})


@pytest.mark.parametrize("seed", range(20))
def test_ridge_regressions_are_those_of_normal_equations(seed: int) -> None:
    dice = np.random.default_rng(seed)
    rows, wide, targets = int(dice.integers(20, 60)), int(dice.integers(1, 5)), int(dice.integers(1, 3))
    x = dice.normal(2, 3, (rows, wide))
    y = np.sin(x @ dice.normal(size=(wide, targets))) + dice.normal(size=(rows, targets))
    half = rows // 2
    z = (x - x[:half].mean(0)) / x[:half].std(0)
    weights = np.linalg.solve(
        z[:half].T @ z[:half] + half / 1000 * np.eye(wide), z[:half].T @ (y[:half] - y[:half].mean(0))
    )
    kernel = np.exp(-np.square(z[:, None] - z[:half]).sum(-1) / wide)
    alpha = np.linalg.solve(kernel[:half] + half / 1000 * np.eye(half), y[:half] - y[:half].mean(0))
    for name, found in (("linear", z @ weights), ("rbf", kernel @ alpha)):
        rest = (y - y[:half].mean(0))[half:]
        wanted = 1 - np.square(rest - found[half:]).sum() / np.square(rest).sum()
        assert explained_variance(x, y, kernel=name) == pytest.approx(wanted, abs=1e-9)


def test_targets_of_each_kind_of_factor() -> None:
    shape = Factor("shape", Kind.NOMINAL, levels=("cube", "ball"))
    assert np.array_equal(
        regression_targets(shape, np.array([1, 0, -1])), [[0, 1], [1, 0], [np.nan, np.nan]], equal_nan=True
    )
    scale = Factor("scale", Kind.ORDINAL, levels=(0.5, 2.0))
    assert np.array_equal(regression_targets(scale, np.array([1, 0, -1])), [[2.0], [0.5], [np.nan]], equal_nan=True)
    hue = Factor("hue", Kind.CYCLIC, levels=(0.0, 0.25), unit="turn", period=1.0)
    assert regression_targets(hue, np.array([0, 1])) == pytest.approx(np.array([[1, 0], [0, 1]]))
    free = Factor("x", Kind.CONTINUOUS)
    assert np.array_equal(regression_targets(free, np.array([0.3, np.nan])), [[0.3], [np.nan]], equal_nan=True)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((8, 2)), np.arange(8.0), "shapes"),
        (np.zeros((8, 2)), np.zeros((8, 1)), "all equal"),
        (np.zeros((3, 2)), np.zeros((3, 1)), "4 rows"),
        (np.full((8, 2), np.nan), np.arange(8.0)[:, None], "finite"),
    ],
)
def test_mistakes(x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        explained_variance(x, y)
