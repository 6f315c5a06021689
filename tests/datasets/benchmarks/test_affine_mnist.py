import gzip
import hashlib
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage, stats

import setsup
from setsup.datasets.benchmarks import even_odd
from setsup.datasets.benchmarks.affine_mnist import dataset as affine_mnist
from setsup.datasets.benchmarks.affine_mnist.affine import ORDER, affine_copies, affine_maps
from setsup.errors import DataError
from setsup.factors.split import check_disjoint
from tests.fuzzing import survives
from tests.true_files import mnist as true

PUBLISHED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "mnist"
NAMES = ("rotation", "shear", "scale", "translation_x", "translation_y")
LOW = np.array([-math.pi / 2, -0.3, 0.7, -15, -15])
HIGH = np.array([math.pi / 2, 0.3, 1.3, 15, 15])


def _read(folder):
    """Images and digits of both files, read by nothing but gzip."""
    images, digits = [], []
    for prefix in ("train", "t10k"):
        images.append(gzip.decompress((folder / f"{prefix}-images-idx3-ubyte.gz").read_bytes())[16:])
        digits.append(gzip.decompress((folder / f"{prefix}-labels-idx1-ubyte.gz").read_bytes())[8:])
    pictures = np.frombuffer(b"".join(images), np.uint8).reshape(-1, 28, 28)
    return pictures, np.frombuffer(b"".join(digits), np.uint8)


def _step(name, rotation, shear, scale, x, y):
    """One step as a matrix on (x, y, 1), y down; a positive angle turns from right to up."""
    c, s = math.cos(rotation), math.sin(rotation)
    return np.array(
        {
            "rotate": [[c, s, 0], [-s, c, 0], [0, 0, 1]],
            "shear": [[1, shear, 0], [0, 1, 0], [0, 0, 1]],
            "scale": [[scale, 0, 0], [0, scale, 0], [0, 0, 1]],
            "translate": [[1, 0, x], [0, 1, y], [0, 0, 1]],
        }[name]
    )


def _by_scipy(picture, parameters, order, side=40):
    """The copy as scipy interpolates it, float; scipy takes (row, column), and places of the result to the source."""
    matrix = np.eye(3)
    for name in order:
        matrix = _step(name, *parameters) @ matrix
    height, width = picture.shape
    centred = np.array([[1, 0, -(width - 1) / 2], [0, 1, -(height - 1) / 2], [0, 0, 1]])
    back = np.array([[1, 0, (side - 1) / 2], [0, 1, (side - 1) / 2], [0, 0, 1]])
    swap = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    inverse = swap @ np.linalg.inv(back @ matrix @ centred) @ swap
    return ndimage.affine_transform(
        picture.astype(np.float64), inverse, output_shape=(side, side), order=1, mode="grid-constant"
    )


def _parameters(dataset, rows):
    return np.stack([dataset.factors.column(name)[rows] for name in NAMES], -1).astype(np.float64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mnist")
    true.write(folder, per_split=60)
    return folder


@pytest.fixture(scope="module")
def digits(folder):
    return affine_mnist.open(folder)


def test_rows_are_orbits(folder, digits):
    pictures, labels = _read(folder)
    table = digits.factors
    assert len(digits) == 33 * 120
    assert table.names == ("digit", *NAMES, "source", "member", "split")
    assert np.array_equal(table.values("digit"), np.repeat(labels, 33))
    assert np.array_equal(table.values("source"), np.repeat(np.arange(120), 33))
    assert np.array_equal(table.values("member"), np.tile(np.arange(33), 120))
    assert [table[name].unit for name in NAMES] == ["rad", "", "", "px", "px"]
    assert table.counts("split").tolist() == [33 * 50, 33 * 10, 33 * 60]
    original = digits.fetch(np.arange(120) * 33)["image"][..., 0]
    assert np.array_equal(original[:, 6:34, 6:34], pictures)
    assert original.sum() == pictures.sum(), "nothing beside the digit"
    assert np.array_equal(_parameters(digits, np.arange(120) * 33), np.tile([0, 0, 1, 0, 0], (120, 1)))


@pytest.mark.parametrize(
    "order", [ORDER, ("translate", "rotate", "shear", "scale"), ("scale", "translate", "shear", "rotate")]
)
def test_copies_are_those_of_scipy(folder, order):
    pictures, _ = _read(folder)
    digits = affine_mnist.open(folder, order=order)
    rows = np.random.default_rng(3).permutation(len(digits))[:150]
    found = digits.fetch(rows)["image"][..., 0].astype(float)
    drawn = _parameters(digits, rows)
    expected = np.stack([_by_scipy(pictures[row // 33], drawn[at], order) for at, row in enumerate(rows.tolist())])
    # half a level of rounding, and what float32 adds
    assert abs(found - expected).max() < 0.502
    assert (np.rint(expected) != found).mean() < 1e-3


numbers = st.tuples(
    *(st.floats(low, high, allow_subnormal=False) for low, high in zip(LOW.tolist(), HIGH.tolist(), strict=True))
)


@settings(deadline=None, max_examples=60)
@given(st.lists(numbers, min_size=1, max_size=40), st.permutations(ORDER), st.integers(8, 45), st.integers(0, 2**32))
def test_any_pictures_on_any_canvas(parameters, order, side, seed):
    dice = np.random.default_rng(seed)
    height, width = dice.integers(1, 30, 2)
    pictures = dice.integers(0, 256, (len(parameters), height, width)).astype(np.uint8)
    found = affine_copies(pictures, affine_maps(*np.array(parameters).T, order), side)
    one = dice.integers(len(parameters))
    expected = _by_scipy(pictures[one], parameters[one], order, side)
    # noise is as steep as pictures can be: 255 levels a pixel, at places known to about 1e-5 pixels
    assert abs(found[one] - expected).max() < 0.52


def test_parameters_are_a_function_of_seed_digit_and_copy(folder, digits):
    # the documented law in plain integers: words folded by SplitMix64, the upper 53 bits as a number in [0, 1)
    mask = 2**64 - 1

    def fold(key, word):
        z = (key + 0x9E3779B97F4A7C15 * (word + 1)) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    name = int.from_bytes(hashlib.blake2b(b"AffineMnist", digest_size=8).digest(), "little")
    for seed, dataset in ((0, digits), (2**63 + 5, affine_mnist.open(folder, seed=2**63 + 5))):
        for source, member in ((0, 1), (7, 32), (119, 16)):
            key = fold(fold(fold(name, seed), source), member)
            expected = [
                low + (high - low) * (fold(key, number) >> 11) * 2.0**-53
                for number, (low, high) in enumerate(zip(LOW, HIGH, strict=True))
            ]
            assert np.array_equal(_parameters(dataset, source * 33 + member), np.float32(expected))


def test_copies_are_drawn_once(folder, digits):
    again = affine_mnist.open(folder)
    assert again.factors.fingerprint == digits.factors.fingerprint
    assert np.array_equal(again.fetch([5, 4, 99])["image"], digits.fetch([5, 4, 99])["image"])
    other = affine_mnist.open(folder, seed=1)
    copies = np.flatnonzero(digits.factors.codes("member") > 0)
    assert (_parameters(other, copies) != _parameters(digits, copies)).all()
    fewer = affine_mnist.open(folder, copies=4)
    assert len(fewer) == 5 * 120
    rows = np.arange(5 * 120)
    same = rows // 5 * 33 + rows % 5
    assert np.array_equal(_parameters(fewer, rows), _parameters(digits, same))
    assert np.array_equal(fewer.fetch(rows)["image"], digits.fetch(same)["image"])


def test_parameters_are_uniform_and_independent(folder):
    digits = affine_mnist.open(folder, copies=200)
    drawn = _parameters(digits, np.flatnonzero(digits.factors.codes("member") > 0))
    for at, (low, high) in enumerate(zip(LOW, HIGH, strict=True)):
        assert np.float32(low) <= drawn[:, at].min() < low + 0.001 * (high - low)
        assert np.float32(high) >= drawn[:, at].max() > high - 0.001 * (high - low)
        assert stats.kstest(drawn[:, at], "uniform", (low, high - low)).pvalue > 1e-3
    correlations = np.corrcoef(drawn.T)[np.triu_indices(5, 1)]
    assert abs(correlations).max() < 4.5 / math.sqrt(len(drawn))


def test_directions():
    """A dot right of the centre: turned it goes up, moved it goes right and down, sheared with y it goes along x."""
    picture = np.zeros((1, 9, 9), np.uint8)
    picture[0, 4, 7] = 200  # 3 to the right

    def seen(**changed):
        given = {"rotation": 0.0, "shear": 0.0, "scale": 1.0, "translation_x": 0.0, "translation_y": 0.0, **changed}
        found = affine_copies(picture, affine_maps(**{name: [value] for name, value in given.items()}), 9)[0]
        return tuple(np.argwhere(found == 200)[0])

    assert seen() == (4, 7)
    assert seen(rotation=math.pi / 2) == (1, 4)
    assert seen(translation_x=1, translation_y=2) == (6, 8)
    picture[:] = 0
    picture[0, 6, 4] = 200  # 2 below the centre
    assert seen(shear=1.0) == (6, 6)
    # what is moved first is turned with it: 2 to the right becomes 2 up
    first = affine_maps([math.pi / 2], [0.0], [1.0], [2.0], [0.0], ("translate", "rotate", "shear", "scale"))
    assert np.allclose(first @ [0, 0, 1], [[0, -2]])
    assert np.allclose(affine_maps([math.pi / 2], [0.0], [1.0], [2.0], [0.0]) @ [0, 0, 1], [[2, 0]])


def test_fetching_into_arrays(digits):
    rows = np.arange(24).reshape(2, 12) * 31
    expected = digits.fetch(rows)["image"]
    whole = np.full((2, 12, 40, 40, 1), 7, np.uint8)
    digits.fetch_into(rows, {"image": whole})
    assert np.array_equal(whole, expected)
    wide = np.full((2, 24, 40, 40, 1), 7, np.uint8)
    digits.fetch_into(rows, {"image": wide[:, ::2]})
    assert np.array_equal(wide[:, ::2], expected)
    assert (wide[:, 1::2] == 7).all()


def test_orbits_are_drawn_with_their_canonical_digit(folder, digits):
    pictures, _ = _read(folder)
    sampler = setsup.OrbitSampler(digits.factors, "source", sets=4, size=8, canonical={"member": 0})
    batch = next(iter(setsup.loader(digits, sampler, to="numpy", workers=0)))
    source = digits.factors.values("source", batch["indices"])
    assert (source == source[:, :1]).all()
    assert len(set(source[:, 0].tolist())) == 4
    assert np.array_equal(batch["canonical_image"][:, 6:34, 6:34, 0], pictures[source[:, 0]])


def test_named_splits(folder):
    for name, sizes in (("embedding", 50), ("rest", 10), ("test", 60), ("train", 60)):
        part = setsup.load("affine-mnist", folder, split=name)
        assert len(part) == 33 * sizes, name
    assert len(setsup.load("affine-mnist", folder, split="originals")) == 120


def test_even_and_odd(folder, digits):
    _, labels = _read(folder)
    both = even_odd.open(folder)
    part = np.full(120, "rest       ")
    part[:50][labels[:50] % 2 == 0] = "embedding"
    part[60:][labels[60:] % 2 == 1] = "evaluation"
    assert np.array_equal(both.factors.values("split"), np.repeat(np.char.strip(part), 33))
    assert np.array_equal(both.fetch(range(99))["image"], digits.fetch(range(99))["image"])
    check_disjoint(both.factors, "split", "source")
    seen, unseen = (setsup.load("even-odd", folder, split=name) for name in ("embedding", "evaluation"))
    assert set(seen.factors.values("digit").tolist()) == {0, 2, 4, 6, 8}
    assert set(unseen.factors.values("digit").tolist()) == {1, 3, 5, 7, 9}


def test_the_files_of_mnist_serve(tmp_path, monkeypatch):
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path / "data"))
    with pytest.raises(DataError, match=r"setsup fetch affine-mnist`"):
        setsup.load("affine-mnist")
    true.write(tmp_path / "data" / "mnist", per_split=12)
    assert len(setsup.load("affine-mnist")) == len(setsup.load("even-odd", tmp_path / "data")) == 33 * 24


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"copies": 0}, "copies must be an integer of at least 1, not 0"),
        ({"copies": True}, "copies must be an integer of at least 1, not True"),
        ({"copies": 2.0}, r"not 2\.0"),
        ({"order": "rotate"}, "exactly once, not 'rotate'"),
        ({"order": ("rotate", "shear", "scale")}, "exactly once"),
        ({"order": ("rotate", "shear", "scal", "translate")}, "did you mean 'scale'"),
        ({"order": ("rotate", "shear", "scale", "scale")}, "exactly once"),
        ({"seed": -1}, "the seed must be"),
    ],
)
def test_options_that_make_no_sense(folder, options, sentence):
    with pytest.raises(setsup.SetsupError, match=sentence):
        affine_mnist.open(folder, **options)


def test_many_copies(folder):
    digits = affine_mnist.open(folder, copies=300)
    assert len(digits) == 301 * 120
    assert digits.factors.row(301 * 120 - 1)["member"] == 300


@pytest.mark.long("fuzzing")
def test_fuzzing(tmp_path):
    true.write(tmp_path, per_split=12)
    for name in ("train-images-idx3", "t10k-labels-idx1"):
        path = tmp_path / f"{name}-ubyte.gz"
        healthy = path.read_bytes()
        plain = path.with_suffix("")

        def read(content, plain=plain):
            plain.write_bytes(content)
            digits = affine_mnist.open(tmp_path, copies=2)
            found = digits.fetch([0, len(digits) - 1])["image"]
            assert found.shape == (2, 40, 40, 1)

        refused = survives(gzip.decompress(healthy), read, 40, times=40)
        plain.unlink()
        assert refused > 10, name


@pytest.fixture(scope="module")
def published():
    return affine_mnist.open(PUBLISHED)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published MNIST files are not beside the checkout")
class TestPublished:
    @pytest.mark.long("large or genuine files")
    def test_rows_and_splits(self, published):
        assert len(published) == 2_310_000
        assert published.factors.counts("split").tolist() == [1_650_000, 330_000, 330_000]
        # that of each digit in the published files, and 33 images of each
        counts = [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]
        assert published.factors.counts("digit").tolist() == [33 * count for count in counts]
        assert (
            setsup.load("affine-mnist", PUBLISHED, split="embedding").factors.counts("split").tolist()[0] == 1_650_000
        )

    @pytest.mark.long("large or genuine files")
    def test_ranges(self, published):
        drawn = _parameters(published, slice(None))
        assert (drawn.min(0) >= np.float32(LOW)).all()
        assert (drawn.max(0) <= np.float32(HIGH)).all()
        copies = drawn[published.factors.codes("member") > 0]
        spread = (copies - LOW) / (HIGH - LOW)
        assert abs(spread.mean(0) - 0.5).max() < 1e-3
        assert abs(spread.var(0) - 1 / 12).max() < 1e-3

    @pytest.mark.long("large or genuine files")
    def test_copies(self, published):
        pictures, _ = _read(PUBLISHED)
        rows = np.random.default_rng(0).integers(0, len(published), 120)
        found = published.fetch(rows)["image"][..., 0].astype(float)
        drawn = _parameters(published, rows)
        expected = [_by_scipy(pictures[row // 33], drawn[at], ORDER) for at, row in enumerate(rows.tolist())]
        assert abs(found - expected).max() < 0.502

    @pytest.mark.long("large or genuine files")
    @pytest.mark.parametrize(("order", "kept"), [(ORDER, 0.947), (("translate", "rotate", "shear", "scale"), 0.913)])
    def test_ink_that_stays_on_the_canvas(self, order, kept):
        digits = affine_mnist.open(PUBLISHED, order=order, copies=1)
        rows = np.arange(1, len(digits), 8)
        ink = digits.fetch(rows)["image"].sum((1, 2, 3), dtype=float)
        whole = digits.fetch(rows - 1)["image"].sum((1, 2, 3), dtype=float) * _parameters(digits, rows)[:, 2] ** 2
        assert abs((ink / whole).mean() - kept) < 0.005
        # on a canvas that holds everything none is lost
        inside = np.flatnonzero(abs(_parameters(digits, rows)[:, 3:]).max(1) < 2)
        assert abs((ink / whole)[inside].mean() - 1) < 0.005

    @pytest.mark.long("large or genuine files")
    def test_even_and_odd(self):
        seen, unseen = (setsup.load("even-odd", PUBLISHED, split=name) for name in ("embedding", "evaluation"))
        _, labels = _read(PUBLISHED)
        assert len(seen) == 33 * int((labels[:50_000] % 2 == 0).sum())
        assert len(unseen) == 33 * int((labels[60_000:] % 2 == 1).sum())
