"""State by row is one array, however many ranks it is divided among: compared with plain indexing."""

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from setsup.errors import RowError, SetsupError  # noqa: E402
from setsup.methods.rows import RowState, UnseenRows  # noqa: E402
from setsup.methods.rows.saving import saving_without_rows  # noqa: E402
from tests.methods.rows.threads import on_ranks  # noqa: E402

ROWS = 23
WORLDS = [1, 2, 3]


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def some_rows(*shape: int, seed: int = 0, rows: int = ROWS) -> torch.Tensor:
    return torch.randint(0, rows, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64])
def test_reading_and_writing_are_those_of_one_array(world: int, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    first = (10 * numbers(ROWS, *shape)).to(dtype)

    def work(rank: int) -> Any:
        state, found = RowState(ROWS, *shape, dtype=dtype, initial=first), []
        for step in range(6):
            rows = some_rows(rank + 2, 4, seed=10 * step + rank)  # ranks have other numbers of them, and repeats
            found.append(state.gather(rows))
            state.update(rows, (10 * numbers(*rows.shape, *shape, seed=10 * step + rank)).to(dtype))
        return found, state.state_dict()

    done, array = on_ranks(world, work), first.clone()
    for step in range(6):
        for rank in range(world):
            rows = some_rows(rank + 2, 4, seed=10 * step + rank)
            assert torch.equal(done[rank][0][step], array[rows])
        for rank in range(world):  # the first rank's first, and of one rank the first place first: the last stays
            rows = some_rows(rank + 2, 4, seed=10 * step + rank)
            values = (10 * numbers(*rows.shape, *shape, seed=10 * step + rank)).to(dtype)
            for row, value in zip(rows.flatten().tolist(), values.reshape(-1, *shape), strict=True):
                array[row] = value
    assert torch.equal(done[0][1]["values"], array)
    assert done[0][1]["values"].dtype == dtype
    assert done[0][1]["seen"].all()


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_scores_and_their_gradients_are_those_of_the_values_that_were_read(world: int, dtype: torch.dtype) -> None:
    first = numbers(ROWS, 5).to(dtype)

    def inputs(rank: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return numbers(rank + 2, 5, seed=rank), some_rows(rank + 2, 7, seed=rank), numbers(rank + 2, 7, seed=9 + rank)

    def work(rank: int) -> Any:
        state, (queries, rows, weights) = RowState(ROWS, 5, dtype=dtype, initial=first), inputs(rank)
        queries.requires_grad_()
        found = state.scores(queries, rows)
        for number in range(3):  # as a memory bank does, before the backward pass
            state.update(rows[:, 0], torch.full((len(rows), 5), float(number)))
        (found * weights).sum().backward()
        assert (state.gather(rows[:, 0]) == 2).all(), "what was written is there after the backward pass"
        return found.detach(), queries.grad

    for rank, (found, gradient) in enumerate(on_ranks(world, work)):
        queries, rows, weights = inputs(rank)
        queries = queries.double().requires_grad_()
        expected = (queries[:, None] * first[rows].double()).sum(-1)
        (expected * weights).sum().backward()
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), expected.detach(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(gradient.double(), queries.grad, rtol=1e-5, atol=1e-5)


def test_blocks_of_products_are_those_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, rows, first = numbers(9, 4).requires_grad_(), some_rows(9, 6), numbers(ROWS, 4)
    monkeypatch.setattr("setsup.methods.rows.products._BLOCK", 50)  # two lines
    found = RowState(ROWS, 4, initial=first).scores(queries, rows)
    expected = torch.einsum("nd,nmd->nm", queries, first[rows])
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(one.square().sum(), queries)[0] for one in (found, expected)))


@pytest.mark.parametrize("enabled", [False, True])
def test_products_are_float32_also_under_autocast(enabled: bool) -> None:
    queries, rows, first = numbers(4, 5).bfloat16(), some_rows(4, 6), numbers(ROWS, 5)
    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        found = RowState(ROWS, 5, initial=first).scores(queries, rows)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, torch.einsum("nd,nmd->nm", queries.float(), first[rows]))


@pytest.mark.parametrize("world", WORLDS)
def test_rows_that_were_never_written_are_not_read(world: int) -> None:
    def work(rank: int) -> Any:
        state = RowState(ROWS, 2)
        state.update(torch.tensor([rank, 7]), torch.ones(2, 2))
        seen = state.seen(torch.tensor([[rank, 7], [20, -1]]))
        # only the last rank asks for what is not there, and all get the error
        rows = torch.tensor([7, 7] if rank < world - 1 else [7, 20, 20, -1, ROWS])
        with pytest.raises(UnseenRows) as first:
            state.gather(rows)
        with pytest.raises(UnseenRows) as second:
            state.scores(torch.ones(len(rows), 2), rows[:, None])
        assert state.gather(torch.tensor([7])).tolist() == [[1, 1]], "ranks still answer each other"
        return seen.tolist(), str(first.value), str(second.value)

    count = 5 + 2 * (world - 1)
    said = f"no values for 4 of {count} rows (never seen in training: 2, not in the training data: 2)"
    for seen, *errors in on_ranks(world, work):
        assert seen == [[True, True], [False, False]]
        assert errors == [said, said]


@pytest.mark.parametrize("world", WORLDS)
def test_initial_values_are_read_and_rows_of_other_data_are_not(world: int) -> None:
    def work(rank: int) -> Any:
        state = RowState(ROWS, initial=lambda rows: rows.float())
        assert state.gather(torch.tensor([22, rank])).tolist() == [22, rank]
        with pytest.raises(UnseenRows, match=f"no values for {world} of {2 * world} rows"):
            state.gather(torch.tensor([3, -1]))
        with pytest.raises(RowError, match=f"{world} of the rows to write are not among the 23 rows"):
            state.update(torch.tensor([3, ROWS]), torch.zeros(2))
        return state.state_dict()["values"]

    first, *others = on_ranks(world, work)
    assert first.tolist() == list(range(ROWS)), "what was refused has written nothing"
    assert all(other.shape == (0,) for other in others)


@pytest.mark.parametrize("world", WORLDS)
def test_memory_banks_of_cmc_have_the_values_of_its_code(world: int) -> None:
    """Values of the authors' own code, for two samples, which several ranks share out."""

    def unit(values: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(values, dim=-1)

    n, d, i = torch.arange(8.0)[:, None], torch.arange(4.0), torch.arange(2.0)[:, None]
    banks = {"L": unit(torch.sin(1 + 3 * n + 7 * d)), "ab": unit(torch.cos(2 + 5 * n + d))}
    features = {"L": unit(torch.sin(0.5 + 2 * i + d)), "ab": unit(torch.cos(0.3 + 3 * i + d))}
    table, size, negatives = torch.tensor([[2, 0, 1, 7], [5, 3, 2, 6]]), 8, 3

    def work(rank: int) -> Any:
        own = slice(rank, None, world)
        states = {name: RowState(size, 4, initial=bank) for name, bank in banks.items()}
        found = {}
        for name, other in ("L", "ab"), ("ab", "L"):
            found[name] = states[other].scores(features[name][own], table[own]).div(0.07).exp()
        for name, state in states.items():
            rows = table[own, 0]
            state.update(rows, unit(0.5 * state.gather(rows) + 0.5 * features[name][own]))
        return found, states["L"].gather(torch.tensor([2]))[0]

    done = on_ranks(world, work)
    for name, total, loss in (("L", 1556058.9, 4.798501), ("ab", 3937.445, 9.547661)):
        exponentials = torch.cat([found[name] for found, _ in done]).double()
        expected = size * exponentials.mean()
        assert float(expected) == pytest.approx(total, rel=1e-5)
        share, noise = exponentials / expected, negatives / size
        positive = (share[:, 0] / (share[:, 0] + noise + 1e-7)).log()
        negative = (noise / (share[:, 1:] + noise + 1e-7)).log().sum(1)
        assert float(-(positive + negative).mean()) == pytest.approx(loss, rel=1e-5)
    for _, row in done:
        torch.testing.assert_close(row, torch.tensor([0.417903, 0.738404, 0.527431, -0.043957]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("before", WORLDS)
@pytest.mark.parametrize("after", WORLDS)
def test_a_checkpoint_restores_with_any_number_of_ranks(before: int, after: int) -> None:
    def write(rank: int) -> Any:
        state = RowState(ROWS, 3, dtype=torch.float16)
        rows = some_rows(6, seed=rank)
        state.update(rows, numbers(6, 3, seed=rank))
        return state.state_dict()

    kept = on_ranks(before, write)[0]
    assert not kept["seen"].all()

    def read(rank: int) -> Any:
        state = RowState(ROWS, 3, dtype=torch.float16)
        state.load_state_dict(kept)
        written = kept["seen"].nonzero()[:, 0]
        assert torch.equal(state.gather(written), kept["values"][written])
        with pytest.raises(UnseenRows):
            state.gather((~kept["seen"]).nonzero()[:, 0])
        return state.state_dict()

    again = on_ranks(after, read)[0]
    assert all(torch.equal(again[name], kept[name]) for name in ("values", "seen"))


@pytest.mark.parametrize("block", [1, 100])
def test_a_checkpoint_is_sent_in_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup.methods.rows.saving._BLOCK", block)
    first = numbers(ROWS, 3)
    found = on_ranks(3, lambda rank: RowState(ROWS, 3, initial=first).state_dict())
    assert torch.equal(found[0]["values"], first)


def test_the_other_state_of_a_method_is_compared_without_asking_ranks_for_their_rows() -> None:
    method = torch.nn.ModuleDict({"bank": RowState(ROWS, 2), "layer": torch.nn.Linear(2, 1)})

    def work(rank: int) -> Any:
        if rank == 0:  # alone: it would wait for the others
            with saving_without_rows():
                return set(method.state_dict())
        return None

    assert on_ranks(2, work)[0] == {"layer.weight", "layer.bias"}
    assert {"bank.values", "bank.seen"} < set(method.state_dict())


def test_what_was_loaded_before_ranks_met_is_divided_among_them() -> None:
    first = numbers(ROWS, 3)
    states = [RowState(ROWS, 3) for _ in range(2)]
    for state in states:
        state.load_state_dict({"values": first, "seen": torch.ones(ROWS, dtype=torch.bool)})
    for found in on_ranks(2, lambda rank: states[rank].gather(torch.arange(ROWS))):
        assert torch.equal(found, first)
    assert sorted(len(state._held) for state in states) == [11, 12]
    with pytest.raises(SetsupError, match="divided among 2 ranks, but there are now 1; save a checkpoint"):
        states[0].gather(torch.arange(3))


def test_it_is_no_parameter_and_no_buffer_and_moves_and_copies_with_its_module() -> None:
    module = torch.nn.Sequential(RowState(ROWS, 2, dtype=torch.float16, initial=1.0))
    assert not list(module.parameters())
    assert not list(module.buffers())
    other = copy.deepcopy(module).double().to("cpu")
    other[0].update(torch.tensor([3]), torch.zeros(1, 2))
    assert other[0].gather(torch.tensor([3, 4])).tolist() == [[0, 0], [1, 1]]
    assert other[0].gather(torch.tensor([3])).dtype == torch.float16
    assert module[0].gather(torch.tensor([3])).tolist() == [[1, 1]]
    module.load_state_dict(other.state_dict())
    assert module[0].gather(torch.tensor([3])).tolist() == [[0, 0]]
    assert set(module.state_dict()) == {"0.values", "0.seen"}


def test_it_is_made_in_inference_mode_and_written_outside() -> None:
    state = RowState(ROWS, 2, initial=1.0)
    with torch.inference_mode():
        state.gather(torch.tensor([3]))
    queries = torch.ones(1, 2, requires_grad=True)
    state.scores(queries, torch.tensor([[3]])).sum().backward()
    state.update(torch.tensor([3]), queries * 2)
    assert state.gather(torch.tensor([3])).tolist() == [[2, 2]]


def test_weights_of_another_size_are_refused() -> None:
    state = RowState(ROWS, 2)
    with pytest.raises(RuntimeError, match=r"values is \(22, 2\), not \(23, 2\)"):
        state.load_state_dict(RowState(ROWS - 1, 2).state_dict())
    with pytest.raises(RuntimeError, match="seen"):
        state.load_state_dict({"values": torch.zeros(ROWS, 2)})


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: RowState(0, 2), r"must have at least 1 row and positive sizes, not \(0, 2\)"),
        (lambda: RowState(4, initial=torch.zeros(3)), r"initial values must have the shape \(4,\), not \(3,\)"),
        (
            lambda: RowState(4, initial=lambda rows: torch.zeros(1)).gather(torch.zeros(1).long()),
            "of 4 rows must have the shape",
        ),
        (lambda: RowState(4).gather(torch.zeros(2)), "an integer tensor, such as batch.*not torch.float32"),
        (lambda: RowState(4).gather([2]), "not list"),
        (lambda: RowState(4, 3).update(torch.tensor([1]), torch.zeros(3)), r"must have the shape \(1, 3\), not \(3,\)"),
        (lambda: RowState(4, 3).scores(torch.zeros(2, 3), torch.zeros(1, 3).long()), "queries must have"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("queries", [3, 0])
def test_a_rank_none_of_whose_rows_are_asked_for_takes_part(queries: int) -> None:
    first = numbers(8, 5)
    rows = torch.tensor([[0, 2], [4, 6], [6, 0]])[:queries]  # of two ranks, the first has the even rows

    def work(rank: int) -> Any:
        state, asked = RowState(8, 5, initial=first), torch.ones(queries, 5, requires_grad=True)
        found = state.scores(asked, rows)
        found.sum().backward()
        return found.detach(), asked.grad

    for found, gradient in on_ranks(2, work):
        torch.testing.assert_close(found, first[rows].sum(-1))
        torch.testing.assert_close(gradient, first[rows].sum(1))


def test_initial_values_drawn_at_random_are_those_of_the_seed() -> None:
    def made(seed: int, noise: int) -> torch.Tensor:
        torch.manual_seed(seed)
        state = RowState(700, 3, initial=lambda some: torch.randn(len(some), 3))
        torch.manual_seed(noise)  # values are made at the first use, whatever was drawn meanwhile
        before = torch.get_rng_state()
        found = state.gather(torch.arange(700))
        assert torch.equal(torch.get_rng_state(), before)
        return found

    assert torch.equal(made(1, 2), made(1, 3))
    assert not torch.equal(made(1, 2), made(2, 2))
    assert len(made(1, 2).unique()) > 2_000
