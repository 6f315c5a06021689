"""Names of arguments: files keep those of options, and a name that Python had says what it is now."""

import json

import pytest

from setsup.errors import SamplerError, UsageError
from setsup.factors import Factor, FactorTable, Kind
from setsup.samplers import FactorPairSampler, Sampler, SetSampler, Zip, from_dict

GRID = FactorTable([Factor(name, Kind.ORDINAL, tuple(range(4))) for name in "abc"])


class OwnSmall(Sampler):
    """A sampler of one's own, whose argument has a name that setsup's samplers had."""

    def __init__(self, table, small="drop"):
        self.table, self.arguments = table, {"small": small}

    def draws(self, steps):
        return SetSampler(self.table, ["a"], size=2).draws(steps)


@pytest.mark.parametrize(
    ("sampler", "stored"),
    [
        (SetSampler(GRID, ["a", "b"], size=2, num_fixed=1, on_small_group="drop"), {"random": 1, "small": "drop"}),
        (FactorPairSampler(GRID, k=1, must_differ=False), {"differ": False}),
        (OwnSmall(GRID, small="short"), {"small": "short"}),
    ],
    ids=["sets", "pairs", "own"],
)
def test_files_keep_the_names_of_options(sampler, stored):
    written = sampler.to_dict()
    assert stored.items() <= written["arguments"].items()
    assert not {"num_fixed", "on_small_group", "must_differ"} & written["arguments"].keys()
    again = from_dict(json.loads(json.dumps(written)), GRID)
    assert again.arguments == sampler.arguments
    assert (again[5].indices == sampler[5].indices).all()


def test_samplers_within_others_keep_them_too():
    both = Zip(*[SetSampler(GRID, ["a"], size=2, on_small_group="short")] * 2)
    assert both.to_dict()["arguments"]["samplers"][0]["arguments"]["small"] == "short"
    again = from_dict(both.to_dict(), GRID)
    assert (again[3].indices == both[3].indices).all()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: SetSampler(GRID, ["a"], small="drop"),
            "SetSampler got an unexpected keyword argument 'small'; in Python it is called 'on_small_group'",
        ),
        (lambda: SetSampler(GRID, ["a"], random=1), "'random'; in Python it is called 'num_fixed'"),
        (lambda: FactorPairSampler(GRID, differ=False), "'differ'; in Python it is called 'must_differ'"),
    ],
)
def test_a_former_name_says_what_it_is_now(make, said):
    with pytest.raises(UsageError, match=said):
        make()


def test_a_file_with_an_unknown_argument_is_refused():
    written = SetSampler(GRID, ["a"], size=2).to_dict()
    with pytest.raises(SamplerError, match="smal"):
        from_dict({**written, "arguments": {**written["arguments"], "smal": "drop"}}, GRID)
