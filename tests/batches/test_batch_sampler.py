"""Batches from labels: the draws of the sampler classes, what each way promises, and one sentence for what is wrong."""

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setsup
from setsup.batches import BatchSampler
from setsup.errors import SamplerError, UsageError
from setsup.factors import FactorTable
from setsup.samplers import Sampler

LABELS = np.repeat(np.arange(12), np.arange(4, 28, 2))
WEIGHTS = np.arange(len(LABELS)) % 4
TABLE = FactorTable.from_values({"label": LABELS})

Make = Callable[[int], Sampler]
WAYS: list[tuple[dict[str, Any], Make]] = [
    ({"classes": 5, "per_class": 3}, lambda seed: setsup.DomainSampler(TABLE, "label", 5, 3, seed=seed)),
    ({"domains": 2, "per_domain": 4}, lambda seed: setsup.DomainSampler(TABLE, "label", 2, 4, seed=seed)),
    (
        {"classes": 5, "per_class": 9, "on_small_group": "short"},
        lambda seed: setsup.DomainSampler(TABLE, "label", 5, 9, on_small_group="short", seed=seed),
    ),
    (
        {"classes": 5, "per_class": 3, "weights": WEIGHTS},
        lambda seed: setsup.DomainSampler(TABLE, "label", 5, 3, weights=WEIGHTS, seed=seed),
    ),
    ({"batch_size": 16}, lambda seed: setsup.EpochSampler(TABLE, 16, seed=seed)),
    ({"batch_size": 16, "drop_last": False}, lambda seed: setsup.EpochSampler(TABLE, 16, partial="pad", seed=seed)),
    ({"batch_size": 16, "shuffle": False}, lambda seed: setsup.EpochSampler(TABLE, 16, shuffle=False, seed=seed)),
    ({"batch_size": 16, "weights": WEIGHTS}, lambda seed: setsup.EpochSampler(TABLE, 16, weights=WEIGHTS, seed=seed)),
    ({"pairs": 8}, lambda seed: setsup.SetSampler(TABLE, ["label"], size=2, sets=8, seed=seed)),
    ({"triplets": 8}, lambda seed: setsup.TripletSampler(TABLE, "label", 8, seed=seed)),
    ({"episodes": (5, 1, 2)}, lambda seed: setsup.EpisodeSampler(TABLE, "label", 5, 1, 2, seed=seed)),
]


@pytest.mark.parametrize(("call", "make"), WAYS, ids=[" ".join(call) for call, _ in WAYS])
@pytest.mark.parametrize("seed", [0, 2**63 + 5])
def test_the_draws_are_those_of_the_class(call: dict[str, Any], make: Make, seed: int) -> None:
    batches = setsup.batch_sampler(LABELS.tolist(), **call, seed=seed)
    sampler = make(seed)
    assert type(batches.sampler) is type(sampler)
    found = [rows for _ in range(3) for rows in batches]
    assert (
        found
        == [list(sampler[step]) for step in range(len(found))]
        == [batches.rows(step) for step in range(len(found))]
    )
    assert all(type(row) is int for row in found[0])
    assert len(found) == 3 * len(batches)
    assert batches.sampler.to_dict() == sampler.to_dict() or "weights" in call


def test_the_length_of_a_pass() -> None:
    rows = len(LABELS)
    assert len(setsup.batch_sampler(LABELS, classes=5, per_class=3)) == rows // 15
    assert len(setsup.batch_sampler(LABELS, pairs=8)) == rows // 16
    assert len(setsup.batch_sampler(LABELS, triplets=8)) == rows // 24
    assert len(setsup.batch_sampler(LABELS, episodes=(5, 1, 2))) == rows // 15
    assert len(setsup.batch_sampler(LABELS, batch_size=16)) == rows // 16
    assert len(setsup.batch_sampler(LABELS, batch_size=16, drop_last=False)) == -(-rows // 16)
    large = int((np.bincount(LABELS) >= 10) @ np.bincount(LABELS))
    assert len(setsup.batch_sampler(LABELS, classes=5, per_class=10, on_small_group="drop")) == large // 50
    assert len(setsup.batch_sampler(LABELS, classes=12, per_class=100, on_small_group="replace")) == 1
    assert len(setsup.batch_sampler(LABELS, classes=5, per_class=3, weights=WEIGHTS)) == (WEIGHTS > 0).sum() // 15
    assert len(setsup.batch_sampler(LABELS, classes=5, per_class=3, steps=77, rank=1, world=4)) == 77


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=60),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from(["error", "drop", "short", "replace"]),
    st.integers(0, 2**64 - 1),
)
def test_a_batch_of_classes_has_what_it_promises(
    labels: list[int], classes: int, each: int, small: str, seed: int
) -> None:
    counts = Counter(labels)
    drawable = {label for label, count in counts.items() if count >= each or small in ("short", "replace")}
    options: dict[str, Any] = {"classes": classes, "per_class": each, "on_small_group": small, "seed": seed}
    if (small == "error" and min(counts.values()) < each) or classes > len(drawable):
        with pytest.raises(SamplerError, match=r"too few rows for per_class=|exceeds the|none of the"):
            setsup.batch_sampler(labels, **options)
        return
    batches = setsup.batch_sampler(labels, **options)
    drawn = Counter[int]()
    for _ in range(3):
        for rows in batches:
            of = Counter(labels[row] for row in rows)
            assert len(of) == classes
            for label, count in of.items():
                assert label in drawable
                assert count == (min(each, counts[label]) if small == "short" else each)
                distinct = {row for row in rows if labels[row] == label}
                assert len(distinct) == count or (small == "replace" and counts[label] < each)
            drawn.update(of.keys())
    # in every round, each class comes equally often
    assert len(drawn) < len(drawable) or max(drawn.values()) - min(drawn.values()) <= classes


@given(st.lists(st.integers(0, 3), min_size=8, max_size=40), st.integers(0, 100))
def test_pairs_triplets_and_episodes_have_what_they_promise(labels: list[int], seed: int) -> None:
    few = {"on_small_group": "drop", "seed": seed}
    if max(Counter(labels).values()) >= 2:
        for rows in setsup.batch_sampler(labels, pairs=3, **few):
            pairs = np.array(rows).reshape(3, 2)
            assert (pairs[:, 0] != pairs[:, 1]).all()
            assert (np.array(labels)[pairs].T[0] == np.array(labels)[pairs].T[1]).all()
    if max(Counter(labels).values()) >= 2 and len(set(labels)) > 1:
        for rows in setsup.batch_sampler(labels, triplets=3, **few):
            anchor, positive, negative = np.array(rows).reshape(3, 3).T
            assert (anchor != positive).all()
            of = np.array(labels)
            assert (of[anchor] == of[positive]).all()
            assert (of[anchor] != of[negative]).all()
    if sum(count >= 2 for count in Counter(labels).values()) >= 2:
        for rows in setsup.batch_sampler(labels, episodes=(2, 1, 1), **few):
            episode = np.array(labels)[np.array(rows).reshape(2, 2)]
            assert (episode[:, 0] == episode[:, 1]).all()
            assert episode[0, 0] != episode[1, 0]
            assert len(set(rows)) == 4


def test_anchors_are_uniform_over_rows_of_classes_of_two_and_negatives_over_those_of_all_others() -> None:
    labels = np.repeat(np.arange(5), [4, 3, 1, 1, 1])
    batches = setsup.batch_sampler(labels, triplets=100, on_small_group="drop", steps=300)
    assert len(setsup.batch_sampler(labels, triplets=1, on_small_group="drop")) == (4 + 3) // 3
    anchor, positive, negative = np.array([rows for rows in batches]).reshape(-1, 3).T
    draws = len(anchor)
    np.testing.assert_allclose(np.bincount(anchor, minlength=10) / draws, [1 / 7] * 7 + [0] * 3, atol=0.013)  # 6 σ
    np.testing.assert_allclose(np.bincount(positive, minlength=10) / draws, [1 / 7] * 7 + [0] * 3, atol=0.013)
    of_rows = [3 / 7 / 7] * 4 + [4 / 7 / 6] * 3 + [4 / 7 / 6 + 3 / 7 / 7] * 3  # given a class of four, six others
    np.testing.assert_allclose(np.bincount(negative, minlength=10) / draws, of_rows, atol=0.013)


def test_a_pair_of_a_short_class_is_a_single_row() -> None:
    batches = setsup.batch_sampler([0, 0, 1], pairs=1, on_small_group="short", steps=50)
    assert {tuple(sorted(rows)) for rows in batches} == {(0, 1), (2,)}


def test_by_weight_rows_come_as_often_as_they_should() -> None:
    batches = setsup.batch_sampler([0, 1, 2, 3], batch_size=1, weights=[0.0, 1.0, 1.0, 2.0], steps=20_000)
    counts = np.bincount([row for rows in batches for row in rows], minlength=4) / 20_000
    np.testing.assert_allclose(counts, [0, 0.25, 0.25, 0.5], atol=0.02)  # six standard deviations


def test_a_column_of_weights_that_float32_rounds_to_0_is_refused() -> None:
    columns: dict[str, list[float]] = {"y": [0] * 3, "w": [1, 0, 1e-50]}
    with pytest.raises(
        SamplerError, match=r"^column 'w' of labels has the weight 1e-50 in row 2, which float32 rounds to"
    ):
        setsup.batch_sampler(columns, batch_size=1, weights="w")
    assert len(setsup.batch_sampler(columns["y"], batch_size=1, weights=columns["w"])) == 2, "an array has float64"
    assert len(setsup.batch_sampler({**columns, "w": [1, 0, 1e-30]}, batch_size=1, weights="w")) == 2


def test_weights_may_be_a_tensor_with_a_gradient() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    weights = torch.tensor([0.0, 1.0, 1.0, 2.0], requires_grad=True)
    one = setsup.batch_sampler([0, 1, 0, 1], batch_size=2, weights=weights, steps=9)
    assert list(one) == list(setsup.batch_sampler([0, 1, 0, 1], batch_size=2, weights=[0, 1, 1, 2], steps=9))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({}, "requires one way of drawing; pass classes= with per_class="),
        ({"weights": WEIGHTS}, "requires one way of drawing"),
        ({"classes": 2, "per_class": 2, "batch_size": 4}, "classes=2 and batch_size=4 are 2 ways of drawing"),
        ({"pairs": 2, "triplets": 2}, "pairs=2 and triplets=2 are 2 ways of drawing a batch; pass only one"),
        ({"classes": 2}, "classes=2 requires the number of rows per class; pass per_class= too"),
        ({"domains": 2, "per_class": 2}, "per_class=2 applies to classes=, not to domains="),
        ({"batch_size": 2, "per_domain": 2}, "per_domain=2 applies to domains=, not to batch_size="),
        ({"classes": 0, "per_class": 2}, "classes must be an integer from 1"),
        ({"classes": 2, "per_class": "2"}, "per_class must be an integer from 1"),
        ({"batch_size": 0}, "batch_size must be an integer from 1"),
        ({"batch_size": {"label": 3}}, "batch_size must be an integer from 1"),
        ({"episodes": 5}, r"episodes must be \(ways, shots, queries\).*not 5; pass a tuple or list of three integers"),
        ({"episodes": (5, 1)}, r"such as \(5, 1, 15\), not \(5, 1\); pass a tuple or list of three integers"),
        (
            {"episodes": {"a": (5, 1, 2), "b": (5, 1, 2)}},
            r"episodes must be \(ways, shots, queries\), or one column with it, such as {'identity': \(5, 1, 15\)}",
        ),
        ({"episodes": {(): (5, 1, 2)}}, r"an empty tuple of columns; pass at least one .*{'identity': \(5, 1, 15\)}"),
        ({"episodes": (13, 1, 2)}, "the 13 ways of episodes= exceed the 12 classes of label; lower its first number"),
        ({"episodes": (5, 0, 1)}, "the shots of episodes must be an integer from 1"),
        (
            {"classes": {"a": 1, "b": 1}, "per_class": 1},
            "must be a number, or one column with it, such as {'identity': 8}",
        ),
        ({"classes": {"label": 5}, "per_class": 2}, "classes names the column label, but labels is a single column"),
        ({"batch_size": 4, "weights": "importance"}, "names a column, but labels is a single column"),
        ({"batch_size": 4, "weights": [1.0]}, "weights must have shape"),
        ({"classes": 13, "per_class": 2}, "classes=13 exceeds the 12 classes of label; lower classes="),
        ({"domains": 13, "per_domain": 2}, "domains=13 exceeds the 12 domains of label; lower domains="),
        (
            {"classes": 2, "per_class": 7},
            r"2 of 12 classes have too few rows for per_class=7, the smallest: label = 0 \(4\), label = 1 \(6\); pass "
            r"on_small_group= \('drop' leaves them out, 'short' takes",
        ),
        (
            {"classes": 11, "per_class": 7, "on_small_group": "drop"},
            "the 10 of 12 classes of label with enough rows for per_class=7",
        ),
        (
            {"pairs": 2, "weights": WEIGHTS * 0.0 + (np.arange(180) == 5), "on_small_group": "drop"},
            "none of the 1 class",
        ),
        ({"episodes": (2, 4, 4)}, "too few rows for support and query \\(8 rows\\)"),
        ({"batch_size": 10**6}, "batch_size=1000000 exceeds the 180 rows that can be drawn; lower batch_size="),
        (
            {"batch_size": 4, "on_small_group": "drop"},
            "on_small_group='drop' applies only to ways of drawing with classes",
        ),
        ({"classes": 2, "per_class": 2, "on_small_group": "skip"}, "on_small_group must be one of"),
        ({"triplets": 2, "on_small_group": "short"}, "on_small_group"),
        ({"classes": 2, "per_class": 2, "shuffle": False}, "shuffle=False applies only to batch_size="),
        ({"batch_size": 4, "shuffle": 3}, "shuffle must be"),
        (
            {"classes": 2, "per_class": 2, "drop_last": False},
            r"drop_last=False applies only to batch_size=.*; classes=",
        ),
        ({"pairs": 2, "drop_last": False}, "pairs= has only whole batches, so leave out drop_last="),
        ({"classes": 2, "per_class": 2, "drop_last": 0}, "drop_last must be"),
        ({"batch_size": 4, "epochs": 0}, "epochs must be an integer of at least 1"),
        ({"batch_size": 4, "steps": 0}, "steps must be an integer from 1"),
        ({"batch_size": 4, "start": -1}, "start must be an integer from 0"),
        ({"batch_size": 4, "rank": 1}, "rank= requires world=; pass both"),
        ({"batch_size": 4, "world": 2}, "world= requires rank=; pass both"),
        ({"batch_size": 4, "rank": 2, "world": 2}, "rank must be an integer from 0 to 1"),
        ({"batch_size": 4, "seed": -1}, "seed"),
    ],
)
def test_what_is_wrong_is_said_in_the_callers_words(call: dict[str, Any], message: str) -> None:
    with pytest.raises(SamplerError, match=message) as caught:
        setsup.batch_sampler(LABELS, **call)
    assert "\n" not in str(caught.value)


def test_arguments_of_others_are_refused() -> None:
    with pytest.raises(UsageError, match="unexpected keyword argument 'num_workers'; pass it to the DataLoader"):
        setsup.batch_sampler(LABELS, batch_size=4, num_workers=2)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="unexpected keyword argument 'per_clas'; did you mean 'per_class'"):
        setsup.batch_sampler(LABELS, classes=4, per_clas=2)  # type: ignore[call-arg]
    for wrong in (-1, 1.5, "1", None, 2**63):
        with pytest.raises(SamplerError, match="the number of a pass must be"):
            setsup.batch_sampler(LABELS, batch_size=4).set_epoch(wrong)  # type: ignore[arg-type]


def test_batches_can_be_copied_and_pickled() -> None:
    batches = setsup.batch_sampler(LABELS, classes=5, per_class=3)
    list(batches)
    for other in (copy.copy(batches), copy.deepcopy(batches), pickle.loads(pickle.dumps(batches))):
        assert other.state_dict() == batches.state_dict()
        other.sampler.set_epoch(4)
        assert other.state_dict()["pass"] == 4
        assert next(iter(other)) == batches.rows(4 * len(batches))
    assert batches.state_dict()["pass"] == 1


def test_large_batches_are_drawn_few_at_a_time() -> None:
    batches = setsup.batch_sampler(np.zeros(3_000_000, np.int8), batch_size=1_000_000)
    assert [len(rows) for rows in batches] == [1_000_000] * 3


def test_a_batch_sampler_has_no_batch_size() -> None:
    batches = setsup.batch_sampler(LABELS, batch_size=4)
    assert not hasattr(batches, "batch_size")
    assert not hasattr(batches, "drop_last")
    assert repr(batches) == f"BatchSampler({batches.sampler!r})"
    assert bool(batches)


class Texts:
    """What sentence-transformers passes of a dataset: columns by name."""

    column_names = ("text", "topic", "label")

    def __getitem__(self, name: str) -> list[int]:
        assert name != "text", "texts are not read"
        return (LABELS if name == "label" else LABELS[::-1] % 4).tolist()

    def __len__(self) -> int:
        return len(LABELS)


def test_a_factory_makes_batches_of_the_label_column() -> None:
    make = setsup.batch_sampler.factory(classes=5, per_class=3)
    given: dict[str, Any] = {"batch_size": 15, "drop_last": False, "valid_label_columns": ["score", "label"]}
    made = make(Texts(), **given, generator=object(), seed=7)
    assert isinstance(made, BatchSampler)
    assert list(made) == list(setsup.batch_sampler(LABELS, classes=5, per_class=3, seed=7))
    own_seed = setsup.batch_sampler.factory(classes=5, per_class=3, seed=2)(Texts(), **given, seed=7)
    assert list(own_seed) == list(setsup.batch_sampler(LABELS, classes=5, per_class=3, seed=2))
    named = setsup.batch_sampler.factory(classes={"topic": 3}, per_class=5)(Texts(), **given)
    assert list(named) == list(setsup.batch_sampler(LABELS[::-1] % 4, classes=3, per_class=5))
    every = setsup.batch_sampler.factory(batch_size=15)(Texts(), **given)
    assert list(every) == list(setsup.batch_sampler(LABELS, batch_size=15, drop_last=False))
    options: dict[str, Any] = {"classes": 5, "per_class": 3, "on_small_group": "drop"}
    weighted = setsup.batch_sampler.factory(**options, weights="topic")(Texts(), **given)
    assert list(weighted) == list(setsup.batch_sampler(LABELS, **options, weights=LABELS[::-1] % 4))
    again = pickle.loads(pickle.dumps(make))
    assert list(again(Texts(), **given)) == list(setsup.batch_sampler(LABELS, classes=5, per_class=3))


def test_a_factory_says_what_does_not_fit() -> None:
    with pytest.raises(SamplerError, match="requires one way of drawing"):
        setsup.batch_sampler.factory(per_class=3)
    with pytest.raises(UsageError, match="unexpected keyword argument 'per_clas'"):
        setsup.batch_sampler.factory(classes=3, per_clas=3)
    with pytest.raises(SamplerError, match="does not accept world=, because the trainer passes it"):
        setsup.batch_sampler.factory(batch_size=3, world=2)
    make = setsup.batch_sampler.factory(classes=5, per_class=3)
    with pytest.raises(SamplerError, match=r"batches of 16 rows.*set per_device_train_batch_size=15 \(and"):
        make(Texts(), batch_size=16, valid_label_columns=["label"])
    with pytest.raises(SamplerError, match=r"columns score, scores \(its columns are text, topic, label\); name the"):
        make(Texts(), batch_size=15, valid_label_columns=["score", "scores"])
    with pytest.raises(SamplerError, match=r"name the label column, as in episodes={'label': \(5, 1, 2\)}"):
        setsup.batch_sampler.factory(episodes=(5, 1, 2))(Texts(), valid_label_columns=["scores"])
