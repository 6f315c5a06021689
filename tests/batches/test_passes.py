"""Passes, ranks and resumption: arithmetic against an enumeration, and batches against the stream of one rank."""

import array
import json
from collections import Counter, deque
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import setsup
from setsup.batches import BatchSampler
from setsup.batches.passes import Passes, count_repeats, rounds, share
from setsup.errors import SamplerError

WORLDS = st.integers(1, 9)


@given(st.integers(1, 40), st.integers(0, 200), WORLDS)
def test_the_rest_of_a_pass_is_shared_without_loss(draws: int, draw: int, world: int) -> None:
    passes = Passes(draws)
    position = passes.at(draw, world)
    end = passes.end(position, world)
    assert position.number * draws <= draw < end == (position.number + 1) * draws
    count = rounds(end - draw, world)
    steps = np.stack([share(draw, end, rank, world, 0, count) for rank in range(world)], axis=1).ravel()
    assert steps[: end - draw].tolist() == list(range(draw, end))
    # ranks without a draw repeat the last one
    assert steps[end - draw :].tolist() == [end - 1] * count_repeats(end - draw, world)


@given(st.integers(1, 20), st.integers(0, 5), st.integers(0, 20), WORLDS, WORLDS)
def test_with_steps_a_pass_keeps_its_number_of_steps_on_other_ranks(
    steps: int, number: int, done: int, world: int, other: int
) -> None:
    passes, done = Passes(99, steps), min(done, steps)
    begin = passes.start(passes.at(0, world), number, world)
    assert begin.draw == number * steps * world
    place = passes.after(begin, done * world, world)
    end = passes.end(place, other)
    assert (place.number, place.done, end - place.draw) == (number, done, (steps - done) * other)
    assert passes.start(place, number + 1, other).draw == end


LABELS = [f"class {number % 7}" for number in range(61)]
CALLS: tuple[dict[str, Any], ...] = (
    {"classes": 3, "per_class": 2},
    {"batch_size": 4},
    {"batch_size": 4, "drop_last": False},
    {"batch_size": 4, "steps": 5},
    {"pairs": 3},
    {"classes": 2, "per_class": 4, "steps": 3},
)


def stream(call: dict[str, Any], passes: int) -> list[list[list[int]]]:
    """Passes of a single rank, each a list of batches."""
    batches = BatchSampler(LABELS, **call)
    return [list(batches) for _ in range(passes)]


def join_ranks(ranks: list[BatchSampler], count: int | None = None) -> list[list[int]]:
    """Batches of one pass, or the first ones, in the order of the draws: by round, then by rank."""
    each = [list(islice(iter(batches), count)) for batches in ranks]
    assert len({len(batches) for batches in each}) == 1  # no rank waits for another
    return [batch for row in zip(*each, strict=True) for batch in row]


@given(st.sampled_from(CALLS), WORLDS)
def test_ranks_together_have_the_draws_of_one(call: dict[str, Any], world: int) -> None:
    ranks = [BatchSampler(LABELS, **call, rank=rank, world=world) for rank in range(world)]
    whole = [rows for each in stream(call, 2 * world) for rows in each] if "steps" in call else None
    for number in range(2):
        found = join_ranks(ranks)
        if whole is not None:  # a pass has as many steps on each rank
            size = call["steps"] * world
            assert found == whole[number * size : (number + 1) * size]
            continue
        wanted = stream(call, 2)[number]
        extra = count_repeats(len(wanted), world)
        assert found == wanted + [wanted[-1]] * extra
        assert len(found) // world == len(ranks[0])


@pytest.mark.long("enumeration")
@given(st.sampled_from(CALLS), WORLDS, st.lists(st.tuples(st.integers(0, 12), WORLDS), min_size=1, max_size=4))
@example({"batch_size": 4}, 2, [(8, 3), (0, 1)])
def test_a_resumed_stream_loses_and_repeats_nothing(
    call: dict[str, Any], world: int, stops: list[tuple[int, int]]
) -> None:
    """Stop after some batches, save, and resume on another number of ranks; again and again."""
    ranks = [BatchSampler(LABELS, **call, rank=rank, world=world) for rank in range(world)]
    found: list[list[int]] = []
    for count, other in [*stops, (100, 1)]:
        begin = ranks[0].state_dict()["delivered"]
        seen = join_ranks(ranks, count)
        states = [batches.state_dict() for batches in ranks]
        assert all(state == states[0] for state in states)
        number = states[0]["delivered"] - begin
        assert seen[number:] == seen[number - 1 : number] * (len(seen) - number)  # repeated at the end of a pass
        assert not seen[number:] or len(seen) - number < len(ranks)
        found += seen[:number]
        ranks = [BatchSampler(LABELS, **call, rank=rank, world=other) for rank in range(other)]
        for batches in ranks:
            batches.load_state_dict(states[0])
    sampler = ranks[0].sampler
    assert found == [list(sampler[step]) for step in range(len(found))]


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_every_row_once_in_a_pass_of_all_rows(world: int) -> None:
    ranks = [
        BatchSampler(LABELS, batch_size=4, drop_last=False, rank=rank, world=world, seed=3) for rank in range(world)
    ]
    for _ in range(3):
        batches = join_ranks(ranks)
        whole = batches[: len(batches) - count_repeats(16, world)]
        assert sorted(row for batch in whole for row in batch) == list(range(61))


def test_state_is_the_same_for_every_number_of_ranks_at_the_end_of_a_pass() -> None:
    for world in (1, 2, 3, 5):
        batches = BatchSampler(LABELS, batch_size=4, rank=world - 1, world=world)
        list(batches)
        state = batches.state_dict()
        assert (state["delivered"], state["pass"], state["steps"]) == (15, 1, 0)


def test_a_state_saved_at_the_last_batch_resumes_with_an_empty_rest_and_behind_it_with_the_next_pass() -> None:
    batches = setsup.batch_sampler(LABELS, batch_size=4)
    within = [batches.state_dict() for _ in batches][-1]
    behind = batches.state_dict()
    assert within["delivered"] == behind["delivered"] == 15
    wanted = stream({"batch_size": 4}, 3)
    for state, passes in ((within, [[], wanted[1]]), (behind, [wanted[1], wanted[2]])):
        resumed = setsup.batch_sampler(LABELS, batch_size=4)
        resumed.load_state_dict(state)
        assert [list(resumed), list(resumed)] == passes
    # by its own count, a trainer is in the epoch in which it saved
    for state, epoch, rest in ((within, 0, 0), (within, 1, 15), (behind, 1, 15)):
        resumed = setsup.batch_sampler(LABELS, batch_size=4)
        resumed.load_state_dict(state)
        resumed.set_epoch(epoch)
        assert len(list(resumed)) == rest


def test_the_batches_that_arrived_count_where_more_were_requested() -> None:
    batches = setsup.batch_sampler(LABELS, batch_size=4, rank=1, world=2)
    list(batches)
    taken = iter(batches)
    for _ in range(6):  # a DataLoader with workers requests ahead
        next(taken)
    assert batches.state_dict()["delivered"] == 15 + 12
    state = batches.state_dict(delivered=4)
    assert (state["delivered"], state["pass"], state["steps"]) == (15 + 8, 1, 4)
    resumed = setsup.batch_sampler(LABELS, batch_size=4)
    resumed.load_state_dict(state)
    assert next(iter(resumed)) == batches.rows(23)
    with pytest.raises(SamplerError, match=r"since the present loop began .* must be an integer from 0 to 6, not 7"):
        batches.state_dict(delivered=7)
    unused = setsup.batch_sampler(LABELS, batch_size=4)
    with pytest.raises(SamplerError, match="no batches were requested"):
        unused.state_dict(delivered=1)


def test_before_a_loop_no_batches_have_arrived_only_where_that_is_clear() -> None:
    batches = setsup.batch_sampler(LABELS, batch_size=4)
    assert batches.state_dict(delivered=0) == batches.state_dict()
    list(batches)
    with pytest.raises(SamplerError, match=r"delivered=0 may mean the pass that has ended .*; leave out delivered="):
        batches.state_dict(delivered=0)  # a loop of no worker processes has requested nothing yet
    assert batches.state_dict()["pass"] == 1
    batches.set_epoch(1)
    assert batches.state_dict(delivered=0) == batches.state_dict()
    assert batches.state_dict()["delivered"] == len(batches)
    next(iter(batches))
    assert batches.state_dict(delivered=0)["delivered"] == len(batches), "requested, but not arrived"


def test_start_counts_draws_of_all_ranks() -> None:
    wanted = stream({"batch_size": 4}, 2)
    for start in (0, 7, 14, 15, 20):
        batches = setsup.batch_sampler(LABELS, batch_size=4, start=start)
        assert batches.state_dict()["delivered"] == start
        number, inside = divmod(start, 15)
        assert list(batches) == wanted[number][inside:]


def test_set_epoch_selects_a_pass_once_however_often_it_is_called() -> None:
    wanted = stream({"classes": 3, "per_class": 2}, 8)
    batches = setsup.batch_sampler(LABELS, classes=3, per_class=2)
    assert batches.sampler.set_epoch == batches.set_epoch  # where Lightning looks for it
    for epoch in (5, 5, 0, 7):
        batches.set_epoch(epoch)
        batches.sampler.set_epoch(epoch)
        assert list(batches) == wanted[epoch]
    batches.set_epoch(2)
    next(iter(batches))  # a look at the first batch
    batches.set_epoch(2)
    assert list(batches) == wanted[2]
    assert list(batches) == wanted[3]


def test_set_epoch_keeps_a_position_within_the_pass() -> None:
    wanted = stream({"batch_size": 4}, 3)
    for start, epoch, rest in ((20, 1, wanted[1][5:]), (20, 0, wanted[0]), (20, 2, wanted[2])):
        batches = setsup.batch_sampler(LABELS, batch_size=4, start=start)
        for _ in range(2):
            batches.set_epoch(epoch)
        assert list(batches) == rest
        assert list(batches) == (wanted + stream({"batch_size": 4}, 4)[3:])[epoch + 1]


def test_a_position_stays_until_a_pass_has_begun() -> None:
    wanted = stream({"batch_size": 4}, 4)
    for epochs in ((1,), (3, 1), (0, 2, 1)):
        batches = setsup.batch_sampler(LABELS, batch_size=4, start=20)
        for epoch in epochs:
            batches.set_epoch(epoch)
        assert batches.state_dict()["delivered"] == 20
        assert list(batches) == wanted[1][5:]
        batches.set_epoch(1)
        assert list(batches) == wanted[1]


def test_the_position_is_that_of_the_pass_that_runs() -> None:
    batches = setsup.batch_sampler(LABELS, batch_size=4)
    taken = iter(batches)
    next(taken)
    batches.set_epoch(0)  # as Lightning does when workers have asked for batches already
    assert batches.state_dict()["delivered"] == 1
    next(taken)
    assert batches.state_dict()["delivered"] == 2
    batches.set_epoch(3)
    assert batches.state_dict() | {"delivered": 45, "pass": 3, "steps": 0} == batches.state_dict()


def test_an_iterator_that_is_not_used_changes_nothing() -> None:
    batches = setsup.batch_sampler(LABELS, batch_size=4)
    iter(batches)
    iter(batches)
    assert list(batches) == stream({"batch_size": 4}, 1)[0]


def test_passes_end_with_epochs_and_say_so_once(caplog: pytest.LogCaptureFixture) -> None:
    batches = setsup.batch_sampler(LABELS, batch_size=4, epochs=2)
    assert [len(list(batches)) for _ in range(4)] == [15, 15, 0, 0]
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "all epochs=2 passes are over, so this loop has no batches"
    ]
    assert len(batches) == 15
    batches.set_epoch(1)
    assert len(list(batches)) == 15


def test_repeated_draws_are_in_the_report() -> None:
    one = setsup.batch_sampler(LABELS, batch_size=4)
    assert one.report().notes[-1] == "a pass has 15 batches"
    four = setsup.batch_sampler(LABELS, batch_size=4, rank=0, world=4)
    assert four.report().notes[-2:] == [
        "a pass has 15 batches, 4 for each of 4 ranks",
        "1 rank has no batch left in the last round of a pass, and repeats the last one",
    ]
    counts = Counter(step for rank in range(4) for step in share(0, 15, rank, 4, 0, len(four)).tolist())
    assert counts == Counter(range(15)) + Counter({14: 1})


def test_states_of_others_are_refused() -> None:
    batches = setsup.batch_sampler(LABELS, batch_size=4)
    state = batches.state_dict()
    with pytest.raises(SamplerError, match="load it into a batch sampler of the same labels"):
        setsup.batch_sampler(LABELS[::-1], batch_size=4).load_state_dict(state)
    for wrong in ({"delivered": 3}, None, {**state, "pass": -1}, {**state, "steps": 1.5}):
        with pytest.raises(SamplerError, match=r"as state_dict\(\) returns them"):
            batches.load_state_dict(wrong)
    with pytest.raises(SamplerError, match="draw 40 lies outside pass 0, which has 15 draws"):
        batches.load_state_dict({**state, "delivered": 40})


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (LABELS[:-1], {}, r"other labels \(61 rows then, 60 now\); load it into"),
        ([*LABELS, "new", "new"], {}, r"\(61 rows then, 63 now, 7 classes of label then, 8 now\)"),
        ([f"{label}!" for label in LABELS], {}, r"\(as many classes of label, but other values\)"),
        ([*LABELS[:-1], LABELS[1]], {}, r"\(as many rows, but other numbers of rows in the classes of label\)"),
        (LABELS[::-1], {}, r"\(the same values in another order\); load it into .*, in the same order$"),
        (
            LABELS[::-1],
            {"seed": 3},
            r"another order\), and with seed=0, but this batch sampler has seed=3; load it into",
        ),
        (
            LABELS[::-1],
            {"domains": 3, "per_domain": 2},
            "with classes=3, per_class=2, but .* has domains=3, per_domain=2;",
        ),
        (LABELS[:8], {"batch_size": 4}, r"61 rows then, 8 now.* with classes=3, per_class=2, but .* has batch_size=4;"),
        (LABELS[:9], {"domains": 3, "per_domain": 1}, r"\(61 rows then, 9 now\)"),
        (LABELS[:3] * 9, {"domains": 3, "per_domain": 1}, r"\(61 rows then, 27 now, 7 domains of label then, 3 now\)"),
    ],
)
def test_a_state_of_other_labels_says_what_differs(labels: list[Any], options: dict[str, Any], message: str) -> None:
    state = json.loads(json.dumps(setsup.batch_sampler(LABELS, classes=3, per_class=2).state_dict()))
    ways = {"domains", "batch_size"} & set(options)
    call: dict[str, Any] = options if ways else {"classes": 3, "per_class": 2, **options}
    with pytest.raises(SamplerError, match=message) as caught:
        setsup.batch_sampler(labels, **call).load_state_dict(state)
    assert "\n" not in str(caught.value)


def test_of_columns_a_state_says_which_differ() -> None:
    columns: dict[str, list[Any]] = {"y": LABELS, "w": [1.0] * len(LABELS)}
    call: dict[str, Any] = {"classes": {"y": 3}, "per_class": 2}
    weighted = setsup.batch_sampler(columns, **call, weights="w").state_dict()
    with pytest.raises(SamplerError, match=r"was saved with weights with the digest .*; create it with the same argu"):
        setsup.batch_sampler({**columns, "w": [2.0] * len(LABELS)}, **call, weights="w").load_state_dict(weighted)
    table = setsup.FactorTable.from_values({"y": LABELS, "z": LABELS})
    with pytest.raises(SamplerError, match=r"values of y in another order, or other values of another column\)"):
        setsup.batch_sampler(setsup.FactorTable.from_values({"y": LABELS, "z": LABELS[::-1]}), **call).load_state_dict(
            setsup.batch_sampler(table, **call).state_dict()
        )


def test_a_state_of_an_earlier_version_loads_and_is_refused_without_what_differs() -> None:
    state = setsup.batch_sampler(LABELS, classes=3, per_class=2, start=4).state_dict()
    for labels in (None, 3, [], {"rows": "many"}, {"columns": 2}):
        earlier = {**state, "labels": labels}
        if labels is None:
            del earlier["labels"]
        resumed = setsup.batch_sampler(LABELS, classes=3, per_class=2)
        resumed.load_state_dict(earlier)
        assert next(iter(resumed)) == resumed.rows(4)
        with pytest.raises(SamplerError, match=r"^the state at draw 4 was saved with other labels \(.*; load it into"):
            setsup.batch_sampler(LABELS[::-1], classes=3, per_class=2).load_state_dict(earlier)


def test_at_the_start_of_a_selected_pass_a_state_says_that_pass() -> None:
    batches = setsup.batch_sampler(LABELS, classes=3, per_class=2)
    count = len(list(batches))
    batches.set_epoch(1)
    state = batches.state_dict(delivered=0)
    assert (state["delivered"], state["pass"], state["steps"]) == (count, 1, 0)
    resumed = setsup.batch_sampler(LABELS, classes=3, per_class=2)
    resumed.load_state_dict(state)
    assert list(resumed) == list(batches)


def test_a_position_that_a_trainer_leaves_is_told(caplog: pytest.LogCaptureFixture) -> None:
    batches = setsup.batch_sampler(LABELS, classes=3, per_class=2)
    list(batches)
    saved = batches.state_dict()
    resumed = setsup.batch_sampler(LABELS, classes=3, per_class=2)
    resumed.load_state_dict(saved)
    resumed.set_epoch(0)
    resumed.set_epoch(1)
    assert next(iter(resumed)) == batches.rows(saved["delivered"])
    assert not caplog.records
    resumed.load_state_dict(saved)
    for _ in range(2):
        resumed.set_epoch(0)
        assert next(iter(resumed)) == batches.rows(0)
    (record,) = caplog.records
    assert "pass 0 was selected, so the position in pass 1" in record.getMessage()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 1}, "was saved with seed=0, but this batch sampler has seed=1; create it with the same arguments"),
        ({"classes": 2}, "was saved with classes=3, but this batch sampler has classes=2"),
        ({"weights": [1.0] * 61}, "with weights=None, but this batch sampler has weights with the digest [0-9a-f]{16}"),
        ({"steps": 3, "seed": 1}, "with seed=0, steps=None, but this batch sampler has seed=1, steps=3; create"),
        ({"on_small_group": "drop"}, "with on_small_group='error', but this .* has on_small_group='drop'"),
    ],
)
def test_a_state_of_other_arguments_is_refused_by_their_names(other: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"classes": 3, "per_class": 2}
    state = json.loads(json.dumps(setsup.batch_sampler(LABELS, **call).state_dict()))
    with pytest.raises(SamplerError, match=message + ".*or pass start=0"):
        setsup.batch_sampler(LABELS, **(call | other)).load_state_dict(state)


def test_a_state_knows_weights_of_any_numbers_by_their_values() -> None:
    from decimal import Decimal
    from fractions import Fraction

    def state(weights: Any) -> dict[str, Any]:
        return setsup.batch_sampler(LABELS, classes=3, per_class=2, weights=weights).state_dict()

    whole = [1 + number % 3 for number in range(61)]
    other = setsup.batch_sampler(LABELS, classes=3, per_class=2, weights=whole)
    for kind in (float, Fraction, Decimal, np.longdouble):
        other.load_state_dict(state([kind(weight) for weight in whole]))
    other.load_state_dict(state(np.array(whole, np.uint8)))
    other.load_state_dict(state(pa.array(whole)))
    unknown: list[Any] = [None, *whole[1:]]
    setsup.batch_sampler(LABELS, classes=3, per_class=2, weights=unknown).load_state_dict(state(unknown))
    other.load_state_dict(state(array.array("d", whole)))
    other.load_state_dict(state(deque(whole)))
    assert state(range(1, 62))["arguments"] != state(range(2, 63))["arguments"]


@pytest.mark.parametrize(
    ("start", "options"), [(2**63 // 10 * 10 - 1, {}), (2**63 - 9, {"steps": 5}), (2**63 - 9, {"rank": 2, "world": 3})]
)
def test_at_the_end_of_the_stream_a_pass_that_does_not_fit_is_an_error(start: int, options: dict[str, Any]) -> None:
    batches = setsup.batch_sampler(LABELS, classes=3, per_class=2, start=start, **options)
    with pytest.raises(SamplerError, match=r"would have draws beyond 2⁶³.*begin with an earlier one"):
        [list(batches) for _ in range(4)]
    batches.set_epoch(0)
    assert len(list(batches)) == len(batches)


def test_an_earlier_pass_is_one_of_the_present_ranks() -> None:
    ranks = [setsup.batch_sampler(LABELS, batch_size=4, steps=3, rank=rank, world=4) for rank in range(4)]
    [join_ranks(ranks) for _ in range(2)]
    state = ranks[0].state_dict()
    three = [setsup.batch_sampler(LABELS, batch_size=4, steps=3, rank=rank, world=3) for rank in range(3)]
    for number, first in ((2, 24), (3, 33), (0, 0), (1, 9)):
        for batches in three:
            batches.load_state_dict(state)
            batches.set_epoch(number)
        assert join_ranks(three) == [three[0].rows(step) for step in range(first, first + 9)]
