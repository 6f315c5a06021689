"""Memory banks: the published code's numbers, a plain loop over arrays, resuming, half precision, and ranks."""

import copy
import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from torch.nn import functional  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.methods.rows import UnseenRows  # noqa: E402
from setsup.random import stream_key  # noqa: E402
from setsup_papers.cmc import BankContrast, banks, draw_features, draw_negatives, nce_loss, pair_views  # noqa: E402
from tests.methods.rows.threads import on_ranks  # noqa: E402

PAIR = (("L", "ab"),)


def unit(values: torch.Tensor) -> torch.Tensor:
    return functional.normalize(values, dim=1)


def features(step: int, count: int, views: tuple[str, ...] = ("L", "ab"), size: int = 5) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    return {view: unit(torch.randn(count, size, generator=generator)) for view in views}


def stored(contrast: BankContrast, view: str) -> torch.Tensor:
    bank: Any = contrast.banks[view]
    return bank.gather(torch.arange(contrast.images))  # type: ignore[no-any-return]


def test_numbers_of_the_published_code(monkeypatch: pytest.MonkeyPatch) -> None:
    n, i, d = torch.arange(8.0)[:, None], torch.arange(2.0)[:, None], torch.arange(4.0)
    first = {"L": unit(torch.sin(1 + 3 * n + 7 * d)), "ab": unit(torch.cos(2 + 5 * n + d))}
    z = {"L": unit(torch.sin(0.5 + 2 * i + d)), "ab": unit(torch.cos(0.3 + 3 * i + d))}
    negatives = torch.tensor([[0, 1, 7], [3, 2, 6]])
    monkeypatch.setattr(banks, "draw_negatives", lambda *_: negatives)
    contrast = BankContrast(PAIR, 8, 4, negatives=3, temperature=0.07)
    for view, bank in contrast.banks.items():
        bank.load_state_dict({"values": first[view], "seen": torch.ones(8, dtype=torch.bool)})
    losses = contrast(z, torch.tensor([2, 5]))
    assert contrast.normalisers.tolist() == pytest.approx([1556058.9, 3937.445], rel=1e-5)
    assert float(losses["L", "ab"]) == pytest.approx(4.798501, abs=2e-6)
    assert float(losses["ab", "L"]) == pytest.approx(9.547661, abs=2e-6)
    assert stored(contrast, "L")[2].tolist() == pytest.approx([0.417903, 0.738404, 0.527431, -0.043957], abs=1e-6)


class ByHand:
    """The same with plain arrays and loops, in float64."""

    def __init__(self, pairs: Any, images: int, negatives: int, seed: int, size: int = 5) -> None:
        self.ways = [way for one, other in pairs for way in ((one, other), (other, one))]
        views = dict.fromkeys(view for way in self.ways for view in way)
        rows = torch.arange(images)
        self.banks = {view: draw_features(rows, stream_key(seed, f"bank of {view}"), size).double() for view in views}
        self.key, self.images, self.negatives, self.step = stream_key(seed, "negatives"), images, negatives, 0
        self.z: dict[Any, float] = {}

    def __call__(self, found: dict[str, torch.Tensor], rows: torch.Tensor) -> dict[Any, float]:
        table = draw_negatives(self.key, self.step, rows, self.negatives, self.images)
        losses, noise = {}, self.negatives / self.images
        for one, other in self.ways:
            bank, z = self.banks[other], found[one].double()
            ratios = [
                [math.exp(float(bank[row] @ z[i]) / 0.07) for row in (int(rows[i]), *table[i].tolist())]
                for i in range(len(rows))
            ]
            constant = self.z.setdefault((one, other), self.images * float(np.mean(ratios)))
            total = 0.0
            for first, *others in ratios:
                total -= math.log(first / constant / (first / constant + noise + 1e-7))
                total -= sum(math.log(noise / (ratio / constant + noise + 1e-7)) for ratio in others)
            losses[one, other] = total / len(rows)
        before = {view: bank.clone() for view, bank in self.banks.items()}
        for view, bank in self.banks.items():
            for i, row in enumerate(rows.tolist()):  # where a row repeats, the last one counts
                moved = 0.5 * before[view][row] + 0.5 * found[view][i].double()
                bank[row] = moved / moved.norm()
        self.step += 1
        return losses


@pytest.mark.parametrize("views", [("L", "ab"), ("L", "ab", "depth")])
def test_steps_are_those_of_a_loop(views: tuple[str, ...]) -> None:
    pairs = pair_views(views, "full")
    contrast, by_hand = BankContrast(pairs, 23, 5, negatives=7, seed=3), ByHand(pairs, 23, 7, 3)
    for step in range(5):
        rows = torch.randint(0, 23, (6,), generator=torch.Generator().manual_seed(step))  # with repeats
        found = features(step, 6, views)
        losses, expected = contrast(found, rows), by_hand(found, rows)
        assert {way: float(loss) for way, loss in losses.items()} == pytest.approx(expected, rel=1e-5)
    for view in views:
        torch.testing.assert_close(stored(contrast, view).double(), by_hand.banks[view], rtol=1e-6, atol=1e-6)
    assert contrast.normalisers.tolist() == pytest.approx(list(by_hand.z.values()), rel=1e-5)


def test_z_is_that_of_the_first_batch_and_of_evaluations_before_it_is_none() -> None:
    contrast = BankContrast(PAIR, 23, 5, negatives=7)
    rows = torch.tensor([3, 8])
    contrast.eval()(features(9, 2), rows)
    assert not contrast.normalisers.any()
    before = stored(contrast, "L")
    contrast.train()(features(0, 2), rows)
    first = contrast.normalisers.clone()
    contrast(features(1, 2), rows)
    assert torch.equal(contrast.normalisers, first)
    after = stored(contrast, "L")
    contrast.eval()(features(2, 2), rows)
    assert torch.equal(stored(contrast, "L"), after)
    assert not torch.equal(after, before)


def test_images_that_are_not_trained_on_have_their_other_view_as_positive() -> None:
    contrast = BankContrast(PAIR, 23, 5, negatives=7)
    contrast(features(0, 3), torch.tensor([3, 8, 1]))
    found, z = features(1, 3), contrast.normalisers.tolist()
    losses = contrast.eval()(found, torch.tensor([-1, 8, -1]))
    for at, (one, other) in enumerate(contrast.directions):
        total = 0.0
        for i, row in enumerate([-1, 8, -1]):
            positive = found[other][i] if row < 0 else stored(contrast, other)[row]
            table = draw_negatives(stream_key(0, "negatives"), 1, torch.tensor([row]), 7, 23)[0]
            scores = found[one][i] @ torch.cat([positive[None], stored(contrast, other)[table]]).T
            total += float(nce_loss(scores[None], 23, z[at])) / 3
        assert float(losses[one, other]) == pytest.approx(total, rel=1e-5)
    with pytest.raises(UnseenRows):
        contrast.train()(found, torch.tensor([-1, 8, -1]))


def test_one_z_for_each_view_is_the_mean_over_its_pairs() -> None:
    pairs, rows = pair_views(["a", "b", "c"]), torch.tensor([1, 4, 2])
    each, common = (BankContrast(pairs, 23, 5, negatives=7, normaliser=kind) for kind in ("pair", "anchor"))
    for contrast in (each, common):
        contrast(features(0, 3, ("a", "b", "c")), rows)
    for view in "abc":
        own = torch.tensor([anchor == view for anchor, _ in each.directions])
        expected = each.normalisers[own].mean().expand(2)
        torch.testing.assert_close(common.normalisers[own], expected)


def test_positives_are_read_from_the_bank_so_that_only_anchors_have_gradients() -> None:
    contrast = BankContrast(PAIR, 23, 5, negatives=7)
    found = {view: some.requires_grad_() for view, some in features(0, 4).items()}
    losses = contrast(found, torch.tensor([1, 4, 2, 22]))
    losses["L", "ab"].backward()
    assert found["L"].grad is not None
    assert found["L"].grad.abs().sum() > 0
    assert found["ab"].grad is None


def test_a_saved_state_continues_as_if_nothing_had_happened() -> None:
    contrast = BankContrast(pair_views(["L", "ab"]), 23, 5, negatives=7, seed=1)
    rows = torch.tensor([1, 4, 2])
    for step in range(3):
        contrast(features(step, 3), rows)
    resumed = BankContrast(pair_views(["L", "ab"]), 23, 5, negatives=7, seed=1)
    resumed.load_state_dict(copy.deepcopy(contrast.state_dict()))
    for step in range(3, 6):
        assert contrast(features(step, 3), rows) == resumed(features(step, 3), rows)
    assert torch.equal(stored(contrast, "ab"), stored(resumed, "ab"))


def test_softmax_is_over_the_same_candidates() -> None:
    contrast, rows = BankContrast(PAIR, 23, 5, objective="softmax", negatives=7, seed=2), torch.tensor([1, 4])
    found, bank = features(0, 2), draw_features(torch.arange(23), stream_key(2, "bank of ab"), 5)
    table = torch.cat([rows[:, None], draw_negatives(stream_key(2, "negatives"), 0, rows, 7, 23)], 1)
    logits = torch.stack([bank[table[i]] @ found["L"][i] for i in range(2)]) / 0.07
    expected = functional.cross_entropy(logits, torch.zeros(2, dtype=torch.int64))
    torch.testing.assert_close(contrast(found, rows)["L", "ab"], expected)
    assert not contrast.normalisers.any()


def test_half_precision_changes_the_loss_by_less_than_a_thousandth() -> None:
    images, size, anchors = 5000, 128, 256
    whole, half = (
        BankContrast(PAIR, images, size, negatives=512, dtype=dtype) for dtype in (torch.float32, torch.float16)
    )
    for step in range(3):  # anchors that are near their rows, as in training
        rows = torch.arange(anchors)
        near = {
            view: unit(stored(whole, view)[rows] + 0.3 * features(step, anchors, ("x",), size)["x"])
            for view in "L ab".split()
        }
        one, other = whole(near, rows), half(near, rows)
        for way, loss in one.items():
            assert float(other[way]) == pytest.approx(float(loss), rel=1e-3)
    assert half.banks["L"].state_dict()["values"].dtype == torch.float16


@pytest.mark.parametrize("views", [("L", "ab"), ("L", "ab", "depth")])
def test_two_ranks_have_the_losses_and_banks_of_one_process_with_their_draws_as_one_batch(
    views: tuple[str, ...],
) -> None:
    pairs, batch = pair_views(views, "full"), 4

    def rows_of(step: int, rank: int) -> torch.Tensor:
        return torch.randint(0, 23, (batch,), generator=torch.Generator().manual_seed(10 * step + rank))

    def inputs(step: int, rank: int) -> dict[str, torch.Tensor]:
        return features(10 * step + rank, batch, views)

    def work(rank: int) -> Any:
        contrast = BankContrast(pairs, 23, 5, negatives=7, seed=3)
        found = [
            {way: float(loss) for way, loss in contrast(inputs(step, rank), rows_of(step, rank)).items()}
            for step in range(4)
        ]
        return found, {view: bank.state_dict()["values"] for view, bank in contrast.banks.items()}, contrast.normalisers

    one, other = on_ranks(2, work)
    single = BankContrast(pairs, 23, 5, negatives=7, seed=3)
    for step in range(4):
        joint = {view: torch.cat([inputs(step, rank)[view] for rank in (0, 1)]) for view in views}
        losses = single(joint, torch.cat([rows_of(step, rank) for rank in (0, 1)]))
        for way, loss in losses.items():
            assert (one[0][step][way] + other[0][step][way]) / 2 == pytest.approx(float(loss), rel=1e-5)
    torch.testing.assert_close(one[2], single.normalisers, rtol=1e-5, atol=0)
    assert torch.equal(one[2], other[2])
    for view in views:
        torch.testing.assert_close(one[1][view], stored(single, view), rtol=1e-6, atol=1e-6)


def test_negatives_depend_on_the_step_and_the_row_alone_and_are_uniform() -> None:
    key, rows = stream_key(0, "negatives"), torch.tensor([5, 9, 700])
    found = draw_negatives(key, 4, rows, 4096, 50)
    assert torch.equal(draw_negatives(key, 4, rows[[2, 0]], 4096, 50), found[[2, 0]])
    assert not torch.equal(draw_negatives(key, 5, rows, 4096, 50), found)
    assert not torch.equal(draw_negatives(stream_key(1, "negatives"), 4, rows, 4096, 50), found)
    assert not torch.equal(found[0], found[1])
    counts = torch.bincount(found.flatten(), minlength=50).double()
    expected = found.numel() / 50  # 245.8, whose standard deviation is about 15.5
    assert float(((counts - expected) ** 2 / expected).sum()) < 85  # chi squared of 49 degrees: 1 in 1,000 is above


def test_initial_rows_are_uniform_and_about_of_unit_length() -> None:
    found = draw_features(torch.arange(1000), stream_key(0, "bank"), 128)
    bound = 1 / math.sqrt(128 / 3)
    assert found.abs().max() <= bound
    assert float(found.mean()) == pytest.approx(0, abs=1e-3)
    assert float(found.std()) == pytest.approx(bound / math.sqrt(3), rel=0.01)
    assert float(found.norm(dim=1).mean()) == pytest.approx(1, abs=0.01)
    assert torch.equal(draw_features(torch.tensor([7]), stream_key(0, "bank"), 128)[0], found[7])


def test_what_does_not_fit_is_refused() -> None:
    for arguments in ({"negatives": 0}, {"momentum": 1.0}, {"objective": "mine"}, {"normaliser": "none"}):
        with pytest.raises(SetsupError):
            BankContrast(PAIR, 8, 4, **arguments)  # type: ignore[arg-type]
    with pytest.raises(SetsupError, match="the only view"):
        BankContrast(pair_views(["L"]), 8, 4)


def test_a_normaliser_that_is_not_finite_names_the_views_and_what_to_change() -> None:
    hot = BankContrast(PAIR, 20, 5, negatives=3, temperature=1e-3)
    with pytest.raises(SetsupError, match=r"Z of 'L' and 'ab' is inf on the first batch: .* τ = 0.001; .*temperature"):
        hot({"L": 10 * unit(torch.ones(20, 5)), "ab": unit(torch.ones(20, 5))}, torch.arange(20))
    contrast = BankContrast(PAIR, 20, 5, negatives=3)
    broken = features(0, 4)
    broken["ab"][0, 0] = math.nan
    with pytest.raises(SetsupError, match="Z of 'ab' and 'L' is nan on the first batch: features are not finite"):
        contrast(broken, torch.arange(4))
    assert contrast.normalisers.tolist() == [0, 0]
