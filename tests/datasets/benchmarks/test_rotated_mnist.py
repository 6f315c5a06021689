import gzip

import numpy as np
import pytest
import torch

import setsup
from setsup.errors import DataError
from tests.true_files import mnist as true

ANGLES = (0, 15, 30, 45, 60, 75)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mnist")
    true.write(folder, per_split=150)
    return folder


def _pictures(folder):
    files = [folder / f"{prefix}-images-idx3-ubyte.gz" for prefix in ("train", "t10k")]
    found = [gzip.decompress(file.read_bytes())[16:] for file in files]
    return np.frombuffer(b"".join(found), np.uint8).reshape(-1, 28, 28)


def _turned(picture, angle):
    """A picture turned counterclockwise about its centre, by torch's sampling."""
    turn = np.radians(angle)
    # a place of the result comes from the place turned back; y points down
    matrix = torch.tensor([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0]], dtype=torch.float32)
    grid = torch.nn.functional.affine_grid(matrix[None], (1, 1, 28, 28), align_corners=False)
    given = torch.from_numpy(picture.copy()).float()[None, None]
    return torch.nn.functional.grid_sample(given, grid, align_corners=False)[0, 0].numpy()


def test_digits_are_turned_by_the_angle_of_their_environment(folder):
    pictures = _pictures(folder)
    turned = setsup.load("rotated-mnist", folder)
    angles = turned.factors.values("angle")
    assert set(angles.tolist()) == set(ANGLES)
    found = turned.fetch(np.arange(len(turned)))["image"][..., 0]
    for row in range(len(turned)):
        assert abs(found[row] - _turned(pictures[row], int(angles[row]))).max() <= 1.5, row
    assert np.array_equal(found[angles == 0], pictures[angles == 0])


def test_a_top_right_stroke_goes_to_the_left(tmp_path):
    """Counterclockwise as one sees it: what is at the top moves to the left."""
    pictures = true.write(tmp_path, per_split=30)
    turned = setsup.load("rotated-mnist", tmp_path)
    row = int(np.flatnonzero(turned.factors.values("angle") == 75)[0])
    y, x = np.mgrid[:28, :28] - 13.5
    before = pictures[row] * (y < -3)
    assert before.sum() > 0
    after = turned.fetch(row)["image"][..., 0].astype(float)
    assert (after * (x < -3)).sum() > 0.9 * before.sum()


@pytest.mark.parametrize("name", ["rotated-mnist", "colored-mnist"])
def test_a_permutation_deals_rows_as_the_published_code_does(folder, tmp_path, name):
    count = len(_pictures(folder))
    order = np.random.default_rng(3).permutation(count)
    factor, levels, options = "angle", ANGLES, {}
    if name == "colored-mnist":
        factor, levels, options = "environment", (0.1, 0.2, 0.9), {"recipe": "domainbed"}
    expected = np.empty(count)
    for number, level in enumerate(levels):
        expected[order[number :: len(levels)]] = level  # images[shuffle][i::n]
    np.save(tmp_path / "order.npy", order)
    for permutation in (order, order.tolist(), tmp_path / "order.npy", str(tmp_path / "order.npy")):
        found = setsup.load(name, folder, permutation=permutation, **options)
        assert np.array_equal(found.factors.values(factor).astype(float), expected)
    for wrong in (order[:-1], np.zeros(count, int), order.astype(float), [order]):
        with pytest.raises(DataError, match="expected a permutation of the integers 0 to 299"):
            setsup.load(name, folder, permutation=wrong, **options)


def test_seeds_deal_environments_of_equal_size(folder):
    first, again, other = (setsup.load("rotated-mnist", folder, seed=seed) for seed in (0, 0, 1))
    assert np.bincount(first.factors.codes("angle")).tolist() == [50] * 6
    assert np.array_equal(first.factors.codes("angle"), again.factors.codes("angle"))
    assert not np.array_equal(first.factors.codes("angle"), other.factors.codes("angle"))


def test_one_angle_is_left_out(folder):
    split = setsup.load("rotated-mnist", folder, split="leave-out-75")
    angle, part = split.factors.values("angle"), split.factors.values("split")
    assert set(part[angle == 75]) == {"test"}
    assert [int((part[angle == each] == "validation").sum()) for each in ANGLES] == [10, 10, 10, 10, 10, 0]


def test_colors_of_the_third_recipe(folder):
    """Labels, colours and channels as the published code of DomainBed makes them, of what the table has."""
    pictures = _pictures(folder)
    colored = setsup.load("colored-mnist", folder, recipe="domainbed")
    table = colored.factors
    assert table.names == ("digit", "clean_label", "label", "color", "environment")
    digit, color = table.values("digit"), table.values("color").astype(int)
    assert np.array_equal(table.values("clean_label"), (digit < 5).astype(int))
    images = torch.stack([torch.from_numpy(pictures.copy())] * 2, dim=1)
    images[torch.arange(len(images)), torch.from_numpy(1 - color)] *= 0
    assert np.array_equal(colored.fetch(np.arange(len(colored)))["image"], images.permute(0, 2, 3, 1).numpy())
    assert np.bincount(table.codes("environment")).tolist() == [100, 100, 100]
    with pytest.raises(DataError, match="does not accept permutation=; use recipe='domainbed'"):
        setsup.load("colored-mnist", folder, permutation=np.arange(300))
    left = setsup.load("colored-mnist", folder, recipe="domainbed", split="leave-out-0.9")
    assert set(left.factors.values("split")[left.factors.values("environment") == 0.9]) == {"test"}
