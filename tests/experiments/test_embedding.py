"""What a method can give: vectors, maps, several by name; and which rows it sees of data it was not trained on."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import LightningModule  # noqa: E402

from setsup.datasets import Selection  # noqa: E402
from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments import embed, embed_batches  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.embedding import embed_all  # noqa: E402
from setsup.experiments.evaluations import Retrieval  # noqa: E402
from setsup.experiments.training.preflight import try_first_draw  # noqa: E402
from setsup.methods.rows import RowCodes  # noqa: E402
from tests.experiments.checkpoint_retention import CODES, initial  # noqa: E402
from tests.experiments.numbered import Numbered, RowNumbers, trained  # noqa: E402
from tests.experiments.small import PLAIN  # noqa: E402


class Given(RowNumbers):
    """Embeds an image by its number, as a test says."""

    def __init__(self, give: Any) -> None:
        super().__init__()
        self.give = give

    def embed(self, batch: Any) -> Any:
        return self.give(super().embed(batch), batch)


def maps(numbers: torch.Tensor, batch: Any) -> torch.Tensor:
    """Maps (sets, size, 2, 3, 4) of the number plus the place."""
    return numbers[..., None, None] + torch.arange(24.0).view(2, 3, 4)


MAPS = Given(maps).eval()
VIEWS = Given(lambda numbers, batch: {"L": numbers, "ab": maps(-numbers, batch)}).eval()
EXPECTED = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("count", [1, 257])
def test_maps_are_those_of_their_rows(count: int) -> None:
    rows = np.random.default_rng(0).integers(0, 600, count)
    found = embed(MAPS, Numbered(600), rows)
    assert (found.shape, found.dtype) == ((count, 2, 3, 4), np.float32)
    np.testing.assert_array_equal(found, rows[:, None, None, None] + EXPECTED)


def test_maps_are_written_where_they_are_wanted(tmp_path: Path) -> None:
    out = np.memmap(tmp_path / "maps", np.float32, "w+", shape=(300, 2, 3, 4))
    assert embed(MAPS, Numbered(300), out=out) is out
    np.testing.assert_array_equal(out, np.arange(300)[:, None, None, None] + EXPECTED)
    for wrong, sentence in (
        (np.zeros((299, 2, 3, 4), np.float32), r"float32 array of 300 rows, not float32 of shape \(299, 2, 3, 4\)"),
        (np.zeros((300, 2, 3, 4)), "not float64"),
        (np.zeros((300, 2, 3), np.float32), r"out must have the shape \(300, 2, 3, 4\) of .*, not \(300, 2, 3\)"),
    ):
        with pytest.raises(SetsupError, match=sentence):
            embed(MAPS, Numbered(300), out=wrong)


def test_large_images_are_embedded_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup.experiments.embedding._BYTES", 20)  # of two each
    parts = list(embed_batches(MAPS, Numbered(33)))
    assert [len(part) for part in parts] == [10, 10, 10, 3]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(33)[:, None, None, None] + EXPECTED)


def test_several_embeddings_go_by_their_names() -> None:
    some = trained(VIEWS, Numbered(300))
    assert some.embed(name="L")[:, 0].tolist() == list(range(300))
    np.testing.assert_array_equal(some.embed(name="ab"), EXPECTED - np.arange(300)[:, None, None, None])
    assert some.embed(name="L") is some.embed(name="L")
    assert sum(len(part) for part in some.embed_batches(name="ab")) == 300
    made = embed_all(VIEWS, Numbered(300), np.array([7, 3]), lambda name, shape: np.zeros(shape, np.float32))
    assert made["L"].tolist() == [[7], [3]]
    assert made["ab"].shape == (2, 2, 3, 4)


def test_large_embeddings_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    some = trained(VIEWS, Numbered(30))
    monkeypatch.setattr("setsup.experiments.trained_run._CACHED", 121)
    assert some.embed(name="L") is some.embed(name="L")
    assert some.embed(name="ab") is not some.embed(name="ab")


@pytest.mark.parametrize(
    ("method", "name", "sentence"),
    [
        (VIEWS, None, "Given.embed returns several embeddings (L, ab); choose one with embedding= or name="),
        (VIEWS, "AB", "Given.embed returns no embedding named 'AB'; did you mean 'ab'?"),
        (MAPS, "L", "Given.embed returns one unnamed embedding, so 'L' cannot be chosen; omit the name"),
        (Given(lambda numbers, batch: {}), None, "Given.embed must return a tensor (sets, size, …)"),
        (
            Given(lambda numbers, batch: {"a/b": numbers}),
            None,
            "Given.embed returned an embedding named 'a/b'; a name may contain only",
        ),
        (Given(lambda numbers, batch: {"a": 3}), None, "to such tensors, not int as 'a' for a batch of 1 × 4 images"),
        (
            Given(lambda numbers, batch: numbers[..., 0]),
            None,
            "to such tensors, not (1, 4) for a batch of 1 × 4 images",
        ),
        (Given(lambda numbers, batch: numbers[0]), None, "to such tensors, not (4, 1) for a batch of 1 × 4 images"),
        (
            Given(lambda numbers, batch: numbers.numpy()),
            None,
            "to such tensors, not ndarray for a batch of 1 × 4 images",
        ),
    ],
)
def test_what_is_no_embedding_is_one_sentence(method: Any, name: str | None, sentence: str) -> None:
    with pytest.raises(SetsupError) as caught:
        embed(method.eval(), Numbered(4), name=name)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_maps_of_different_sizes_are_one_sentence() -> None:
    method = Given(lambda numbers, batch: torch.zeros(*numbers.shape[:2], 2 + int(numbers.max() > 300)))
    with pytest.raises(
        SetsupError,
        match=r"returned an embedding of shape \(3,\) for row 256 of the rows to embed, but of shape \(2,\)",
    ):
        embed(method.eval(), Numbered(600))


INDICES = Given(lambda numbers, batch: torch.cat([numbers, batch["indices"][..., None].clamp(min=-1)], -1)).eval()


def test_rows_of_the_training_data_are_found_in_selections_of_one_dataset() -> None:
    whole = Numbered(700)
    first = whole.where("split == 'train'")  # even rows
    some = trained(INDICES, first)
    for dataset, expected in (
        (first, lambda rows: rows // 2),
        (whole, lambda rows: np.where(rows % 2, -1, rows // 2)),
        (first.where("colour == 1"), lambda rows: rows // 2),
        (whole.where("colour == 1"), lambda rows: np.where(rows % 2, -1, rows // 2)),
        (Selection(whole, [8, 3, 8]), lambda rows: np.where(rows % 2, -1, rows // 2)),
        (whole.where("split == 'test'"), lambda rows: np.full(len(rows), -1)),
        (Numbered(700, seed=1), lambda rows: np.full(len(rows), -1)),
    ):
        found = some.embed(dataset)  # of the row in the whole, and where it was trained on
        np.testing.assert_array_equal(found[:, 1], expected(found[:, 0].astype(int)))
        np.testing.assert_array_equal(embed(INDICES, dataset, **some.embedding(dataset)), found)


def test_the_whole_was_trained_on_and_a_part_is_embedded_without_opening_it() -> None:
    whole = Numbered(700, name="mnist")  # of a benchmark, whose name the run knows
    some = trained(INDICES, whole, table=whole.factors)
    part = whole.where("split == 'test'")
    found = some.embed(part, np.array([3, 349, 0]))
    assert found.tolist() == [[7, 7], [699, 699], [1, 1]]
    assert some.data.opened == []


def test_training_data_that_are_elsewhere_are_other_data() -> None:
    class Missing:
        modalities, name, substitute = None, "numbered", None

        def open(self, *_: Any, **__: Any) -> Any:
            raise DataError("the files are missing")

    some = trained(INDICES, None, table=Numbered(700).factors, data=Missing())
    assert some.embed(Numbered(4, seed=1))[:, 1].tolist() == [-1] * 4


BANK = torch.arange(700.0)[:, None] + 1
LOOKUPS = {
    "an array": lambda numbers, batch: BANK[batch["indices"]],
    "an embedding layer": lambda numbers, batch: torch.nn.functional.embedding(batch["indices"], BANK),
    "a small array": lambda numbers, batch: BANK[:2][batch["indices"].clamp(max=1)],
    "under another name": lambda numbers, batch: {"bank": BANK[dict(batch)["indices"]]},
}


@pytest.mark.parametrize("give", LOOKUPS.values(), ids=LOOKUPS)
def test_a_method_that_looks_up_rows_of_other_data_is_one_sentence(give: Any) -> None:
    some = trained(Given(give), Numbered(700))
    with pytest.raises(
        SetsupError, match=r"^Given.embed looks up batch.*-1 for images outside its training data"
    ) as caught:
        some.embed(Numbered(300, seed=1))
    assert "\n" not in str(caught.value)
    some.embed(rows=np.arange(2))  # of which it has something


def test_a_method_may_embed_images_alone_where_rows_are_negative() -> None:
    def give(numbers: torch.Tensor, batch: Any) -> torch.Tensor:
        rows = batch["indices"][..., None]
        return torch.where(rows < 0, -numbers, BANK[rows.clamp(min=0)][..., 0])

    def random(numbers: torch.Tensor, batch: Any) -> torch.Tensor:
        return numbers + torch.rand(numbers.shape) / 2

    some = trained(Given(give), Numbered(700))
    assert some.embed(Numbered(300, seed=1))[:, 0].tolist() == [-row for row in range(300)]
    assert some.embed(rows=np.arange(300))[:, 0].tolist() == list(range(1, 301))
    noisy = trained(Given(random), Numbered(700)).embed(Numbered(300, seed=1))
    assert np.floor(noisy)[:, 0].tolist() == list(range(300))


@dataclass(frozen=True)
class Settings:
    """Of a method that gives what a test says."""

    method: Any

    def build(self, *_: Any) -> Any:
        return self.method


class Shown(LightningModule):
    """A vector for each image of a batch, without its sets."""

    def embed(self, batch: Any) -> torch.Tensor:
        return batch["image"].float().mean((-2, -1)).flatten(0, 1)


def test_a_form_that_no_evaluation_knows_is_refused_before_a_training() -> None:
    data = PLAIN.open_training(0)
    build = partial(build_method, Settings(Shown()), data.dataset.factors, 0)
    for evaluated in False, True:
        with pytest.raises(SetsupError, match=r"^Shown.embed must return .*, not \(8, 3\) for a batch of 2 × 4 images"):
            try_first_draw(data, build, None, PLAIN.validation, evaluated=evaluated)


def test_a_first_draw_of_which_there_are_no_codes_yet_fits() -> None:
    data = CODES.open_training(0)
    build = partial(build_method, CODES.method, data.dataset.factors, 0)
    try_first_draw(data, build, None, CODES.validation, evaluated=True)


def test_vectors_are_measured_and_maps_are_not() -> None:
    some = trained(VIEWS, Numbered(300))
    assert some.embed_vectors(name="L").shape == (300, 1)
    with pytest.raises(
        SetsupError, match=r"^Given.embed returns 'ab' as 2 × 3 × 4 numbers per image, but this evaluation requires one"
    ):
        some.embed_vectors(name="ab")
    with pytest.raises(SetsupError, match=r"^Given.embed returns 2 × 3 × 4 numbers per image"):
        Retrieval(factors=("shape",)).measure(trained(MAPS, Numbered(300)))


def test_the_untrained_method_has_its_initial_codes() -> None:
    some = trained(RowNumbers(), PLAIN.data.open(), config=CODES.method)
    rows = np.array([7, 3])
    np.testing.assert_array_equal(
        embed(some.untrained, some.dataset, rows, **some.embedding(some.dataset)),
        initial(torch.from_numpy(rows)).numpy(),
    )


def test_codes_of_rows_that_were_never_trained_on_are_one_sentence() -> None:
    class Learned(RowNumbers):
        def __init__(self) -> None:
            super().__init__()
            self.codes = RowCodes(700, 2, rate=0.1)
            self.codes(torch.arange(0, 700, 2)).sum().backward()
            self.codes.step()

        def embed(self, batch: Any) -> torch.Tensor:
            return self.codes(batch["indices"])

    some = trained(Learned(), Numbered(700))
    assert some.embed(rows=np.array([4, 698])).shape == (2, 2)
    for dataset, rows, said in (
        (None, [4, 3, 5], "no values for 2 of 3 rows (never seen in training: 2)"),
        (Numbered(700, seed=1), [4, 3, 5], "no values for 3 of 3 rows (not in the training data: 3)"),
    ):
        with pytest.raises(SetsupError) as caught:
            some.embed(dataset, np.array(rows))
        assert str(caught.value) == f"Learned has {said}; embed rows of its training data"


def test_images_of_another_name_are_no_training_rows_though_the_table_is_the_same() -> None:
    some, other = trained(INDICES, Numbered(300)), Numbered(300, name="other")
    assert other.factors.fingerprint == some.dataset.factors.fingerprint
    assert some.embed(rows=np.array([5, 7]))[:, 1].tolist() == [5, 7]
    assert some.embed(other, np.array([5, 7]))[:, 1].tolist() == [-1, -1]
