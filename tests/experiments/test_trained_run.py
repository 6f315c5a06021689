"""Embeddings come in the order of the rows that were asked for, whatever the dataset, and are made once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup  # noqa: E402
from setsup.datasets.benchmarks import mnist as digits  # noqa: E402
from setsup.errors import DataError, RowError, SetsupError  # noqa: E402
from setsup.experiments import RunConfig, embed, find_preset, load_trained, open_run, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.runs.run_folder import begin  # noqa: E402
from tests.experiments.numbered import Numbered, OneHot, RowNumbers, trained  # noqa: E402
from tests.experiments.small import DROPOUT, PLAIN, Tiny  # noqa: E402
from tests.true_files import mnist  # noqa: E402

HERE = RunConfig(workers=0)
SHORT = replace(PLAIN, steps=2)
ROWS = RowNumbers().eval()


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 600])
def test_all_rows_in_order(count: int) -> None:
    found = embed(ROWS, Numbered(count))
    assert (found.shape, found.dtype) == ((count, 1), np.float32)
    assert np.array_equal(found[:, 0], np.arange(count))


@settings(max_examples=25)
@given(st.lists(st.integers(0, 599), min_size=1, max_size=300))
def test_any_rows_in_the_order_asked_for(rows: list[int]) -> None:
    assert embed(ROWS, Numbered(600), np.array(rows))[:, 0].tolist() == rows


def test_rows_of_two_axes_are_refused() -> None:
    with pytest.raises(RowError, match=r"of shape \(1, 2\)"):
        embed(ROWS, Numbered(600), np.array([[3, 4]]))


def test_rows_of_a_part_are_its_own() -> None:
    whole = Numbered(700)
    part = whole.where("split == 'test'")
    assert embed(ROWS, part)[:, 0].tolist() == list(range(1, 700, 2))
    assert embed(ROWS, part, np.array([349, 0, 7]))[:, 0].tolist() == [699, 1, 15]


class Looked(OneHot):
    """Embeds an image by its row's number, as a memory bank looks it up."""

    def embed(self, batch):  # type: ignore[no-untyped-def]
        return batch["indices"][..., None].float()


@pytest.mark.parametrize("count", [1, 255, 257])
def test_indices_of_a_batch_name_rows_of_what_is_embedded(count: int) -> None:
    rows = np.random.default_rng(count).integers(0, 600, count)
    method, whole = Looked().eval(), Numbered(600)
    assert embed(method, whole, rows)[:, 0].tolist() == rows.tolist()
    assert trained(method, whole).embed(rows=rows)[:, 0].tolist() == rows.tolist()
    # a part has rows of its own, those of its table
    assert embed(method, whole.where("split == 'test'"), rows // 2)[:, 0].tolist() == (rows // 2).tolist()


def test_no_row_is_no_embedding() -> None:
    with pytest.raises(SetsupError, match="at least one row"):
        embed(ROWS, Numbered(600), np.array([], np.int64))


def test_dropout_is_off_for_a_while_and_every_part_gets_its_mode_back() -> None:
    method = build_method(DROPOUT.method, setsup.load("shapes3d-procedural").factors, 0).train()
    method.encoder[1].eval()
    before = [part.training for part in method.modules()]
    shapes, rows = setsup.load("shapes3d-procedural"), np.arange(3)
    first = embed(method, shapes, rows)
    assert np.array_equal(first, embed(method, shapes, rows))
    assert [part.training for part in method.modules()] == before
    np.testing.assert_array_equal(first, embed(method.eval(), shapes, rows))


def test_another_method_is_not_taken_for_one_that_is_gone() -> None:
    some = trained(RowNumbers(), Numbered(8))
    some.embed()
    for level in range(4):  # new ones, often at the place in memory of the last
        some.method = None
        some.method = OneHot("size", 3, length=level).eval()
        assert some.embed().max() == level


def test_rows_that_there_are_not() -> None:
    for rows in ([600], [-1]):
        with pytest.raises(SetsupError):
            embed(ROWS, Numbered(600), np.array(rows))


def test_bfloat16_is_what_the_method_computes_in() -> None:
    class Kinds(OneHot):
        def embed(self, batch):  # type: ignore[no-untyped-def]
            self.kind = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
            return super().embed(batch).to(self.kind)

    method = Kinds()
    assert embed(method, Numbered(4), precision="bf16").dtype == np.float32
    assert method.kind == torch.bfloat16
    embed(method, Numbered(4))
    assert method.kind == torch.float32


def test_samples_have_no_repeats_and_are_those_of_the_seed() -> None:
    some, other = trained(ROWS, Numbered(5_000)), trained(ROWS, Numbered(5_000), seed=1)
    for count in (1, 100, 4_999, 5_000, 9_999):
        rows = some.sample(count)
        assert len(rows) == min(count, 5_000)
        assert len(set(rows.tolist())) == len(rows)
        assert set(rows.tolist()) <= set(range(5_000))
        assert np.array_equal(rows, some.sample(count))
        assert np.array_equal(rows, some.sample(5_000)[:count]), "fewer rows are the first of more"
    assert not np.array_equal(some.sample(100), other.sample(100))
    # 100 of 5,000: a mean of 2,500 and a standard error of 143
    assert abs(some.sample(100).mean() - 2_500) < 5 * 143


def test_embeddings_are_made_once() -> None:
    dataset = Numbered(300)
    some = trained(ROWS, dataset)
    rows = some.sample(40)
    first = some.embed(rows=rows)
    assert first[:, 0].tolist() == rows.tolist()
    fetched = dataset.fetched
    assert some.embed(rows=rows) is first
    assert some.embed(dataset, rows.copy()) is first
    assert dataset.fetched == fetched
    assert some.embed()[:, 0].tolist() == list(range(300))
    part = some.open(split="test")
    assert some.embed(part)[:, 0].tolist() == list(range(1, 300, 2))
    assert some.embed(part, np.array([3]))[:, 0].tolist() == [7]


def test_embeddings_that_others_get_too_cannot_be_written() -> None:
    some = trained(ROWS, Numbered(30))
    with pytest.raises(ValueError, match="read-only"):
        some.embed()[0] = 7
    assert some.embed()[0] == 0


def test_two_data_sets_with_the_same_factors_are_two() -> None:
    class Backwards(Numbered):
        def fetch(self, indices, modalities=None):  # type: ignore[no-untyped-def]
            return super().fetch(299 - np.asarray(indices), modalities)

    some, other = trained(ROWS, Numbered(300)), Backwards(300, name="backwards")
    assert some.dataset.factors.fingerprint == other.factors.fingerprint
    assert some.embed()[:, 0].tolist() == list(range(300))
    assert some.embed(other)[:, 0].tolist() == list(range(300))[::-1]


def test_the_data_are_those_of_the_run() -> None:
    some = trained(ROWS, Numbered(10), root="there", substitute=True)
    some.open(split="test")
    assert some.dataset is some.dataset
    assert some.data.opened == [("there", True, "test"), ("there", True, None)]


@pytest.mark.long("trainings")
def test_a_trained_method_has_the_weights_of_the_run_and_no_dropout(tmp_path: Path) -> None:
    run = train(replace(DROPOUT, steps=3), tmp_path, seed=4, config=HERE)
    found = load_trained(run, device="cpu")
    assert (found.seed, found.device, found.precision, found.substitute) == (4, "cpu", "float32", False)
    assert not found.method.training
    state = torch.load(tmp_path / "last.ckpt", weights_only=True)["state_dict"]
    assert all(torch.equal(weight, state[name]) for name, weight in found.method.state_dict().items())
    rows = np.arange(0, 40_000, 9_001)
    images = setsup.load("shapes3d-procedural").fetch(rows)["image"].astype(np.float64) / 255
    blocks = images.reshape(len(rows), 8, 8, 8, 8, 3).mean((2, 4)).transpose(0, 3, 1, 2).reshape(len(rows), -1)
    first, bias, last = (state[f"encoder.{name}"].double().numpy() for name in ("1.weight", "1.bias", "4.weight"))
    expected = np.tanh(blocks @ first.T + bias) @ last.T
    np.testing.assert_allclose(found.embed(rows=rows), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.long("trainings")
def test_the_untrained_method_is_where_training_began(tmp_path: Path) -> None:
    still = replace(SHORT, method=Tiny(rate=1e-30))
    unmoved = load_trained(train(still, tmp_path / "still", seed=3, config=HERE), device="cpu")
    moved = load_trained(train(SHORT, tmp_path / "moved", seed=3, config=HERE), device="cpu")
    assert not moved.untrained.training
    for name, weight in unmoved.method.state_dict().items():
        torch.testing.assert_close(moved.untrained.state_dict()[name], weight, rtol=0, atol=1e-28)
        torch.testing.assert_close(unmoved.untrained.state_dict()[name], weight, rtol=0, atol=1e-28)
        assert not torch.equal(moved.method.state_dict()[name], weight)


@pytest.mark.long("trainings")
def test_a_run_remembers_where_its_files_were(tmp_path: Path) -> None:
    mnist.write(tmp_path / "files")
    preset = replace(find_preset("abc/mnist"), steps=1)
    preset = replace(preset, sampler=replace(preset.sampler, size=4))
    run = train(preset, tmp_path / "run", root=tmp_path / "files", config=HERE)
    found = load_trained(run, device="cpu")
    assert len(found.dataset) == 200
    assert set(found.dataset.factors.values("split")) == {"train"}
    whole = digits.open(tmp_path / "files")
    test = whole.fetch(np.arange(200, 400))["image"]
    assert np.array_equal(found.open(split="test").fetch(np.arange(200))["image"], test)
    assert found.embed(found.open(split="test")).shape == (200, 8)
    (tmp_path / "files").rename(tmp_path / "moved")
    with pytest.raises(DataError, match="files"):
        _ = load_trained(run, device="cpu").dataset
    assert len(load_trained(run, device="cpu", root=tmp_path / "moved").dataset) == 200
    train(preset, tmp_path / "run", root=tmp_path / "moved", config=HERE)
    assert len(load_trained(open_run(tmp_path / "run"), device="cpu").dataset) == 200, "the new place is remembered"


def test_a_run_without_a_checkpoint_has_no_trained_method(tmp_path: Path) -> None:
    run = begin(tmp_path, SHORT, 0, config={"precision": "float32"})
    with pytest.raises(DataError, match="contains no checkpoint yet; repeat the command that started the run"):
        load_trained(run)


def test_two_datasets_of_one_name_and_equal_factors_are_embedded_apart() -> None:
    class Backwards(Numbered):
        def fetch(self, indices, modalities=None):  # type: ignore[no-untyped-def]
            return super().fetch(299 - np.asarray(indices), modalities)

    some, other = trained(ROWS, Numbered(300)), Backwards(300)
    assert (some.dataset.name, some.dataset.factors.fingerprint) == (other.name, other.factors.fingerprint)
    assert some.embed()[:, 0].tolist() == list(range(300))
    assert some.embed(other)[:, 0].tolist() == list(range(300))[::-1]
