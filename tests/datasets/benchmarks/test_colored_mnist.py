import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import setsup
from setsup.datasets.benchmarks import colored_mnist
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files import mnist as true

PUBLISHED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "mnist"
RECIPES = ("irm", "pixels")


def _read(folder):
    """Images and digits of both files, read by nothing but gzip."""
    images, digits = [], []
    for prefix in ("train", "t10k"):
        images.append(gzip.decompress((folder / f"{prefix}-images-idx3-ubyte.gz").read_bytes())[16:])
        digits.append(gzip.decompress((folder / f"{prefix}-labels-idx1-ubyte.gz").read_bytes())[8:])
    pictures = np.frombuffer(b"".join(images), np.uint8).reshape(-1, 28, 28)
    return pictures, np.frombuffer(b"".join(digits), np.uint8)


def _as_published(recipe, picture, color):
    """One image, step by step as the published code makes it, in torch and channels first; float of 0 … 255."""
    if recipe == "irm":
        found = torch.from_numpy(picture.copy())[::2, ::2].float().repeat(2, 1, 1)
        found[1 - color] = 0
        return found
    larger = torch.nn.functional.interpolate(
        torch.from_numpy(picture.copy())[None, None].float(), (32, 32), mode="bilinear", antialias=True
    )
    found = larger[0].repeat(3, 1, 1)
    found[color] = 0
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mnist")
    true.write(folder, per_split=300)
    return folder


@pytest.mark.parametrize("recipe", RECIPES)
def test_images_are_made_as_the_published_code_does(folder, recipe):
    pictures, digits = _read(folder)
    colored = colored_mnist.open(folder, recipe=recipe)
    assert np.array_equal(colored.factors.values("digit"), digits[: len(colored)])
    colors = colored.factors.values("color")
    assert set(colors.tolist()) == {0, 1}
    found = colored.fetch(np.arange(len(colored)))["image"]
    for row in range(0, len(colored), 7):
        expected = _as_published(recipe, pictures[row], int(colors[row])).permute(1, 2, 0).numpy()
        assert abs(found[row] - expected).max() <= 0.5 + 1e-4, row
    assert colored.modalities["image"].shape == found.shape[1:] == ((14, 14, 2) if recipe == "irm" else (32, 32, 3))


def test_environments_of_irm(folder):
    table = colored_mnist.open(folder).factors
    environment = table.values("environment")
    assert len(table) == 300
    assert (environment[250:] == 0.9).all()
    # two halves of the others, in no order that one sees
    assert [(environment[:250] == share).sum() for share in (0.2, 0.1)] == [125, 125]
    runs = 1 + (np.diff(environment[:250]) != 0).sum()
    assert abs(runs - 126) < 4 * np.sqrt(62)  # Wald and Wolfowitz
    assert table.values("split").tolist() == ["train"] * 250 + ["test"] * 50
    assert not np.array_equal(environment, colored_mnist.open(folder, seed=1).factors.values("environment"))


def test_environments_of_pixels(folder):
    table = colored_mnist.open(folder, recipe="pixels").factors
    assert table.values("environment").tolist() == [0.1] * 200 + [0.2] * 200 + [0.9] * 200
    parts = table.values("split")
    assert (parts[400:] == "ood").all()
    for start in (0, 200):
        counts = {part: int((parts[start : start + 200] == part).sum()) for part in set(parts.tolist())}
        assert counts == {"train": 160, "validation": 20, "test": 20, "ood": 0}


def test_three_domains_of_a_number_that_three_does_not_divide(tmp_path):
    true.write(tmp_path, per_split=100)
    environment = colored_mnist.open(tmp_path, recipe="pixels").factors.counts("environment")
    assert environment.tolist() == [66, 66, 68]


@pytest.mark.parametrize("recipe", RECIPES)
def test_labels_and_colors_are_fixed(folder, recipe):
    one, same = (colored_mnist.open(folder, recipe=recipe, seed=3) for _ in range(2))
    assert one.factors.fingerprint == same.factors.fingerprint
    other = colored_mnist.open(folder, recipe=recipe, seed=4)
    for name in ("label", "color"):
        assert (one.factors.values(name) != other.factors.values(name)).mean() > 0.2


def test_fetching_any_rows_into_any_array(folder):
    for recipe in RECIPES:
        colored = colored_mnist.open(folder, recipe=recipe)
        every = colored.fetch(range(len(colored)))["image"]
        rows = np.random.default_rng(0).integers(0, len(colored), (3, 10))
        assert np.array_equal(colored.fetch(rows)["image"], every[rows])
        wide = np.full((3, 20, *every.shape[1:]), 7, np.uint8)
        colored.fetch_into(rows, {"image": wide[:, ::2]})
        assert np.array_equal(wide[:, ::2], every[rows])
        assert (wide[:, 1::2] == 7).all()


def test_batches_are_channels_first(folder):
    colored = colored_mnist.open(folder)
    sets = setsup.SetSampler(colored.factors, inactive=["environment"], size=4, sets=2, seed=0)
    batch = next(iter(setsup.loader(colored, sets, workers=0)))
    assert tuple(batch["image"].shape) == (2, 4, 2, 14, 14)


def test_splits_open_by_name(folder):
    assert [len(setsup.load("colored-mnist", folder, split=part)) for part in ("train", "test")] == [250, 50]
    parts = ("train", "validation", "test", "ood")
    sizes = [len(setsup.load("colored-mnist", folder, split=part, recipe="pixels")) for part in parts]
    assert sizes == [320, 40, 40, 200]
    with pytest.raises(DataError, match="no split 'ood' with the given options; known: train, test"):
        setsup.load("colored-mnist", folder, split="ood")
    assert len(setsup.load("colored-mnist", folder, where="environment == 0.9 and color == label")) < 15


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"recipe": "pixel"}, "no recipe 'pixel'; did you mean 'pixels'"),
        ({"recipe": None}, "no recipe None"),
        ({"recipe": ["irm"]}, "no recipe"),
        ({"seed": 2**64}, "the seed must be"),
    ],
)
def test_options_that_make_no_sense(folder, options, sentence):
    with pytest.raises(setsup.SetsupError, match=sentence):
        colored_mnist.open(folder, **options)


@pytest.mark.parametrize("recipe", RECIPES)
def test_very_few_digits(tmp_path, recipe):
    """Files of one or a few digits are no MNIST, but nothing breaks down, or it is said what is too small."""
    for count in (1, 2, 3, 20):
        true.write(tmp_path / str(count), per_split=count)
        if recipe == "pixels" and count < 20:
            with pytest.raises(setsup.SetsupError, match=r"^[^\n]*increase its share[^\n]*$"):
                colored_mnist.open(tmp_path / str(count), recipe=recipe)
            continue
        colored = colored_mnist.open(tmp_path / str(count), recipe=recipe)
        assert len(colored.fetch(range(len(colored)))["image"]) == count * (2 if recipe == "pixels" else 1)


@pytest.mark.long("fuzzing")
def test_fuzzing(tmp_path):
    true.write(tmp_path, per_split=20)
    path = tmp_path / "train-labels-idx1-ubyte.gz"
    plain = path.with_suffix("")

    def read(content):
        plain.write_bytes(content)
        for recipe in RECIPES:
            colored = colored_mnist.open(tmp_path, recipe=recipe)
            assert len(colored.fetch([0, len(colored) - 1])["image"]) == 2

    assert survives(gzip.decompress(path.read_bytes()), read, 75) > 15


@pytest.fixture(scope="module")
def published():
    return {recipe: colored_mnist.open(PUBLISHED, recipe=recipe) for recipe in RECIPES}


def _agreement(table, one, other, where):
    """Share of the rows in which two factors agree, and how many rows there are."""
    rows = table.rows(where)
    return (table.values(one, rows) == table.values(other, rows)).mean(), len(rows)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published MNIST files are not beside the checkout")
class TestPublished:
    def test_sizes(self, published):
        counts = published["irm"].factors.joint_counts(["environment", "split"])
        assert counts.tolist() == [[25_000, 0], [25_000, 0], [0, 10_000]]
        counts = published["pixels"].factors.joint_counts(["environment", "split"])
        assert counts.sum(1).tolist() == [23_333, 23_333, 23_334]
        assert abs(counts[:2, :3] - np.array([0.8, 0.1, 0.1]) * 23_333).max() < 1

    @pytest.mark.parametrize(
        ("recipe", "where", "share"),
        [
            ("irm", "environment == 0.2", 0.8),
            ("irm", "environment == 0.1", 0.9),
            ("irm", "split == 'train'", 0.85),
            ("irm", "split == 'test'", 0.1),
            ("pixels", "environment == 0.1", 0.9),
            ("pixels", "environment == 0.2", 0.8),
            ("pixels", "split != 'ood'", 0.85),
            ("pixels", "split == 'ood'", 0.1),
        ],
    )
    def test_color_alone_predicts_the_label(self, published, recipe, where, share):
        found, rows = _agreement(published[recipe].factors, "color", "label", where)
        assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / rows)

    @pytest.mark.parametrize("recipe", RECIPES)
    def test_shape_predicts_three_quarters_everywhere(self, published, recipe):
        table = published[recipe].factors
        assert np.array_equal(table.values("clean_label"), table.values("digit") < 5)
        for share in (0.1, 0.2, 0.9):
            found, rows = _agreement(table, "clean_label", "label", f"environment == {share}")
            assert abs(found - 0.75) < 4 * np.sqrt(0.75 * 0.25 / rows)

    @pytest.mark.parametrize("recipe", RECIPES)
    def test_flips_know_nothing_of_the_digit_or_of_each_other(self, published, recipe):
        table = published[recipe].factors
        wrong = table.values("label") != table.values("clean_label")
        astray = table.values("color") != table.values("label")
        for share in (0.1, 0.2, 0.9):
            rows = table.rows(f"environment == {share}")
            for one, other in ((wrong, table.values("digit")), (astray, table.values("digit")), (astray, wrong)):
                counts = stats.contingency.crosstab(one[rows], other[rows]).count
                assert stats.chi2_contingency(counts).pvalue > 1e-4

    @pytest.mark.long("large or genuine files")
    @pytest.mark.parametrize("recipe", RECIPES)
    def test_the_color_is_seen_and_tells_the_label(self, published, recipe):
        """From pixels alone: the empty channel tells the label as well as the factor does."""
        colored = published[recipe]
        rows = np.random.default_rng(0).permutation(colored.factors.rows("environment == 0.9"))[:4000]
        images = colored.fetch(rows)["image"].astype(int)
        seen = images[..., 1].sum((1, 2)) > images[..., 0].sum((1, 2))  # green rather than red, or cyan than magenta
        guess = seen if recipe == "irm" else ~seen
        assert abs((guess == colored.factors.values("label", rows)).mean() - 0.1) < 0.02

    @pytest.mark.long("large or genuine files")
    def test_images(self, published):
        pictures, _ = _read(PUBLISHED)
        for recipe, colored in published.items():
            rows = np.random.default_rng(1).integers(0, len(colored), 100)
            colors = colored.factors.values("color", rows)
            found = colored.fetch(rows)["image"]
            for image, row, color in zip(found, rows.tolist(), colors.tolist(), strict=True):
                expected = _as_published(recipe, pictures[row], color).permute(1, 2, 0).numpy()
                assert abs(image - expected).max() <= 0.5 + 1e-4
