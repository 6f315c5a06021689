"""Learned codes by row: those of a sparse embedding with SparseAdam, however many ranks they are divided among."""

import re
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from setsup.errors import SetsupError  # noqa: E402
from setsup.methods.rows import RowCodes, UnseenRows  # noqa: E402
from tests.methods.rows.test_state import ROWS, WORLDS, numbers, some_rows  # noqa: E402
from tests.methods.rows.threads import on_ranks  # noqa: E402

STEPS = 20
FIRST = numbers(ROWS, 3)


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    return some_rows(2, 4, seed=10 * step + rank), numbers(2, 4, 3, seed=10 * step + rank)


def loss_of(found: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Not linear, so that gradients depend on the codes."""
    return (found * weights).sum() + found.square().sum()


def reference(world: int, accumulate: int = 1, lazy: bool = True) -> torch.Tensor:
    """One process that gets the batches of all ranks as one, with the mean of their losses."""
    table = torch.nn.Embedding.from_pretrained(FIRST.clone(), freeze=False, sparse=lazy)
    rule = torch.optim.SparseAdam if lazy else torch.optim.Adam
    adam = rule(table.parameters(), lr=0.1, betas=(0.5, 0.99))
    for step in range(STEPS):
        adam.zero_grad()
        for number in range(accumulate):
            parts = [batch(step * accumulate + number, rank) for rank in range(world)]
            found = table(torch.stack([rows for rows, _ in parts]))
            weights = torch.stack([weights for _, weights in parts])
            (loss_of(found, weights) / world).backward()
        adam.step()
    return table.weight.detach()


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("lazy", [True, False], ids=["SparseAdam", "Adam"])
def test_they_are_trained_as_by_adam_on_the_batches_of_all_ranks(world: int, accumulate: int, lazy: bool) -> None:
    def work(rank: int) -> Any:
        codes = RowCodes(ROWS, 3, rate=0.1, betas=(0.5, 0.99), initial=FIRST, lazy=lazy)
        for step in range(STEPS):
            for number in range(accumulate):
                rows, weights = batch(step * accumulate + number, rank)
                loss_of(codes(rows), weights).backward()
            codes.step()
        return codes.state_dict()

    found = on_ranks(world, work)[0]
    torch.testing.assert_close(found["codes.values"], reference(world, accumulate, lazy), rtol=1e-5, atol=1e-6)
    assert found["steps"] == STEPS
    drawn = {row for step in range(STEPS * accumulate) for rank in range(world) for row in batch(step, rank)[0].ravel()}
    assert set(found["codes.seen"].nonzero()[:, 0].tolist()) == {int(row) for row in drawn}


def test_they_continue_from_a_checkpoint_with_other_ranks() -> None:
    """Steps of one draw by one rank, then by two, half of it each."""

    def train(codes: RowCodes, steps: range, rank: int, world: int) -> None:
        for step in steps:
            rows, weights = batch(step, 0)
            part = slice(rank * 2 // world, (rank + 1) * 2 // world)
            (world * loss_of(codes(rows[part]), weights[part])).backward()
            codes.step()

    def start(rank: int) -> Any:
        codes = RowCodes(ROWS, 3, rate=lambda step: 0.1 / (1 + step), initial=FIRST)
        train(codes, range(5), rank, 1)
        return codes.state_dict()

    kept = on_ranks(1, start)[0]

    def go_on(rank: int) -> Any:
        codes = RowCodes(ROWS, 3, rate=lambda step: 0.1 / (1 + step))
        codes.load_state_dict(kept)
        train(codes, range(5, 10), rank, 2)
        return codes.state_dict()

    whole = RowCodes(ROWS, 3, rate=lambda step: 0.1 / (1 + step), initial=FIRST)
    train(whole, range(10), 0, 1)
    found = on_ranks(2, go_on)[0]
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("world", WORLDS)
def test_only_codes_that_were_trained_are_read_in_evaluation_mode(world: int) -> None:
    def work(rank: int) -> Any:
        codes = RowCodes(ROWS, 3, rate=0.1, initial=FIRST)
        assert torch.equal(codes(torch.tensor([20])).detach(), FIRST[[20]]), "training begins with initial codes"
        codes(torch.tensor([rank])).sum().backward()
        codes.step()
        codes.eval()
        assert not codes(torch.tensor([rank])).requires_grad
        said = f"no values for {world} of {2 * world} rows (never seen in training: {world})"
        with pytest.raises(UnseenRows, match=re.escape(said)):
            codes(torch.tensor([rank, 20]))
        codes.codes.mark_seen()
        return codes(torch.tensor([20]))

    assert all(torch.equal(found, FIRST[[20]]) for found in on_ranks(world, work))


def test_a_step_in_which_one_rank_uses_none() -> None:
    def work(rank: int) -> Any:
        codes = RowCodes(ROWS, 3, rate=0.1, initial=FIRST)
        found = codes(torch.tensor([5]) if rank else torch.empty(0, dtype=torch.int64))
        if rank:
            found.sum().backward()
        codes.step()
        codes.step()  # of which there is nothing
        return codes.state_dict()

    found = on_ranks(2, work)[0]
    assert found["steps"] == 1
    assert found["codes.seen"].nonzero()[:, 0].tolist() == [5]
    torch.testing.assert_close(found["codes.values"][5], FIRST[5] - 0.1)


def test_a_step_scaled_in_float16_is_unscaled_and_left_out_when_it_overflows() -> None:
    codes, plain = (RowCodes(ROWS, 3, rate=0.1, eps=0.1, initial=FIRST) for _ in range(2))
    (1024 * codes(torch.tensor([5])).square().sum()).backward()
    codes.step(scale=1024.0)
    plain(torch.tensor([5])).square().sum().backward()
    plain.step()
    before = codes.state_dict()["codes.values"].clone()
    torch.testing.assert_close(before, plain.state_dict()["codes.values"])
    (torch.inf * codes(torch.tensor([5]))).sum().backward()
    codes.step(scale=1024.0)
    assert torch.equal(codes.state_dict()["codes.values"], before)


def test_gradients_that_were_never_applied_are_not_saved_over() -> None:
    method = torch.nn.ModuleDict({"content": RowCodes(ROWS, 3, rate=0.1)})
    method["content"](torch.tensor([5])).sum().backward()
    with pytest.raises(SetsupError, match=r"^gradients of content were never applied; call step\(\)"):
        method.state_dict()
    method["content"].step()
    assert method.state_dict()["content.steps"] == 1


def test_they_are_no_parameters_and_compiling_leaves_them_alone() -> None:
    codes = RowCodes(ROWS, 3, rate=0.1)
    assert not list(codes.parameters())
    assert [name for name, _ in codes.named_buffers()] == ["steps"]
    codes.compile()
    codes(torch.tensor([5])).sum().backward()
    codes.step()
