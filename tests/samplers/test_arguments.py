import inspect

import numpy as np
import pytest

import setsup
from setsup.errors import EndlessError, RowError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import Draw, EpochSampler, Mixture, Sampler, SetSampler, Stepwise, TripletSampler

TABLE = FactorTable([Factor("a", Kind.NOMINAL, ("x", "y")), Factor("b", Kind.ORDINAL, tuple(range(6)))])


@pytest.mark.parametrize(
    ("draw", "reduce"),
    [
        (lambda: SetSampler(TABLE, ["a"], size=2**31 - 1, sets=2**12, on_small_group="replace"), "size or sets"),
        (lambda: SetSampler(TABLE, ["a"], size=2, sets=2).block(0, 2**44), "the number of steps"),
        (lambda: SetSampler(TABLE, ["a"], size=2, sets=2).shard(1, 2).block(0, 2**44), "the number of steps"),
    ],
)
def test_memory_that_is_not_there_is_refused_before_it_is_asked_for(draw, reduce):
    with pytest.raises(
        SamplerError, match=rf"requires [\d,]+ bytes of memory, but only [\d,]+ are available; reduce {reduce}"
    ):
        draw()


def test_a_batch_beyond_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr("setsup.checks.memory._memory", lambda: 1 << 28)
    with pytest.raises(
        SamplerError, match=r"requires 11,811,160,064 bytes of memory, but only 268,435,456 are available; reduce size"
    ):
        EpochSampler(TABLE, 2**27, partial="pad")
    with pytest.raises(SamplerError, match="reduce triplets"):
        TripletSampler(TABLE, "a", triplets=2**23)


def test_memory_that_runs_out_after_all_is_one_sentence(monkeypatch):
    sampler = SetSampler(TABLE, ["a"], size=2)

    def draws(steps):
        raise MemoryError("Unable to allocate 1.00 GiB")

    monkeypatch.setattr(sampler, "draws", draws)
    monkeypatch.setattr("setsup.samplers.groups.single.SingleStep.draw", lambda one, key: draws(key))
    for ask in (lambda: sampler[3], lambda: sampler.block(0, 5), lambda: sampler.shard(0, 2)[1]):
        with pytest.raises(SamplerError, match=r"not enough memory to draw \d steps \(Unable"):
            ask()


def test_memory_that_runs_out_for_a_sampler_of_ones_own_is_one_sentence():
    class _Hungry(Sampler):
        def __init__(self, table):
            raise MemoryError("Unable to allocate 9.00 TiB")

        def draws(self, steps): ...

    with pytest.raises(SamplerError, match=r"not enough memory for _Hungry on a table of 12 rows \(Unable .*\)"):
        _Hungry(TABLE)


def test_numbers_of_sets_and_triplets_beyond_their_key_words_are_refused():
    for make in (
        lambda: TripletSampler(TABLE, "a", triplets=2**24 + 6),
        lambda: SetSampler(TABLE, ["a"], size=1, sets=2**24 + 1),
        lambda: setsup.DomainSampler(TABLE, "a", 2**24 + 1, 1, domains="all"),
        lambda: setsup.OrbitSampler(TABLE, "a", 2**24 + 1, values="independent"),
    ):
        with pytest.raises(SamplerError, match="must be an integer from 1 to 16,777,216"):
            make()


def test_weights_whose_sum_is_no_number_are_refused():
    with pytest.raises(SamplerError, match="the sum of the weights overflows; divide all weights by the largest"):
        SetSampler(TABLE, [[]], sets=1, size=2, weights=[1e308] * 12)
    large = SetSampler(TABLE, [[]], sets=1, size=2, weights=[1e307] * 12).block(0, 400)
    assert set(large.indices.ravel().tolist()) == set(range(12))


class _First(Sampler):
    def __init__(self):
        self.table, self.arguments = TABLE, {}

    def draws(self, steps):
        return Draw(np.zeros((len(steps), 1, 1), np.int64))


def test_draws_take_steps_only():
    finite = EpochSampler(TABLE, 2, epochs=1, where="a == 'x'")
    for sampler in (SetSampler(TABLE, ["a"], size=2), finite, Mixture(finite, "a == 'y'", [0], p=0.5), _First()):
        for wrong in (np.array([0, -1]), np.array([2, 2**63, 1], np.uint64)):
            with pytest.raises(RowError, match=r"step \S+ is out of range: steps are from 0 to 2\*\*63 - 1"):
                sampler.draws(wrong)
        for wrong in ([1.0], [True], [[1, 2]], 1, "1", None, [], [2**70], ["a"]):
            with pytest.raises(RowError, match="steps must be a 1-D array of integers"):
                sampler.draws(wrong)
        with pytest.raises(RowError, match="steps must be an array"):
            sampler.draws([[1], [1, 2]])
        for steps in ([2, 0], np.array([2, 0], np.uint8)):
            assert sampler.draws(steps).indices.tolist() == [sampler[2].indices.tolist(), sampler[0].indices.tolist()]


def test_shuffle_is_true_or_false():
    for wrong in ("no", 0, None):
        with pytest.raises(SamplerError, match="shuffle must be True or False, not"):
            EpochSampler(TABLE, 2, shuffle=wrong)
    assert EpochSampler(TABLE, 2, shuffle=np.False_, epochs=1)[0].indices.tolist() == [[0, 1]]


def test_a_mixture_over_a_finite_sampler_has_its_length():
    base = EpochSampler(TABLE, 2, epochs=3, where="a == 'x'")
    mixed = Mixture(base, pool="a == 'y'", sets=[0])
    assert len(mixed) == len(base) == 9
    endless = Mixture(EpochSampler(TABLE, 2, where="a == 'x'"), pool="a == 'y'", sets=[0])
    assert endless  # an object is true, also one without a length
    with pytest.raises(EndlessError, match="a Mixture is infinite"):
        len(endless)
    with pytest.raises(TypeError):
        len(endless)


@pytest.mark.parametrize("kind", [kind for kind in vars(setsup.samplers).values() if isinstance(kind, type)])
def test_docstrings_describe_each_parameter_once_the_table_first(kind):
    """Also those that all samplers share, which the source describes in one place."""
    if not issubclass(kind, Sampler) or kind is Sampler:
        return
    section = inspect.getdoc(kind).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    described = [
        name
        for line in section.splitlines()
        if not line.startswith(" ")
        for name in line.partition(" : ")[0].split(", ")
    ]
    parameters = [
        f"*{name}" if one.kind is one.VAR_POSITIONAL else name
        for name, one in inspect.signature(kind).parameters.items()
    ]
    assert sorted(described) == sorted(parameters)
    assert described[0] == parameters[0]
    assert "As for every sampler" not in section
    if "table" in described:
        assert "Factors of a dataset" in section.split("\n    ")[1]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: SetSampler(TABLE, (name for name in ["a"]), size=2),
            "inactive must be plain data",
        ),
        (
            lambda: SetSampler(TABLE, ["a"], size=2, stream="\ud800"),
            r"the stream must not contain '\\ud800', which is half of a surrogate",
        ),
        (
            lambda: setsup.samplers.from_dict(SetSampler(TABLE, ["a"], size=2).to_dict(), None),
            "a FactorTable, not None",
        ),
        (lambda: Stepwise(0.1, 2**70, 10), "every must be an integer from 1 to"),
        (lambda: Stepwise("a", 1, 2), "end must be a finite number from 0 to 1, not 'a'"),
        (lambda: Mixture(EpochSampler(TABLE, 2, where="b < 3"), "b > 3", [0], p=True), "must be a finite number"),
    ],
)
def test_wrong_arguments_are_one_sentence(make, sentence):
    with pytest.raises(SamplerError, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_schedule_takes_steps_only():
    assert Stepwise(0.1, 2**62, 10).at([2**62]).round(6).tolist() == [0.011111]
    for wrong in ([-1], [2**63], [2**70], [0.5], "x", None):
        with pytest.raises(setsup.SetsupError, match="steps must be integers from 0 to"):
            Stepwise(0.1, 5, 10).at(wrong)


def test_the_mask_of_a_block_is_none_where_nothing_is_padded():
    """Also of a sampler of one's own that always gives a mask."""

    class Padded(Sampler):
        table, arguments = TABLE, {}

        def draws(self, steps):
            mask = np.ones((len(steps), 1, 3), dtype=bool)
            mask[steps == 2, :, 2] = False
            return Draw(np.zeros((len(steps), 1, 3), dtype=np.int64), mask=mask)

    sampler = Padded()
    assert [sampler[step].mask is None for step in range(4)] == [True, True, False, True]
    assert sampler.block(0, 2).mask is None
    assert sampler.block(0, 4).mask[:, 0].tolist() == [[True] * 3, [True] * 3, [True, True, False], [True] * 3]
    assert [sampler.block(0, 4).at(step).mask is None for step in range(4)] == [True, True, False, True]
