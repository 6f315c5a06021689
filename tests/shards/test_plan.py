import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.datasets import Modality
from setsup.errors import DataError, FactorError, SamplerError
from setsup.factors import Factor, FactorTable, Kind
from setsup.shards.layout import Member
from setsup.shards.writing.plan import ShardPlan, cut, keys, order_rows, rows_a_shard

FACTORS = [
    Factor("category", Kind.NOMINAL, ("chair", "table", "lamp")),
    Factor("instance", Kind.ORDINAL, (3, 7, 12, 13), within="category"),
    Factor("lit", Kind.NOMINAL, (False, True)),
    Factor("yaw", Kind.CONTINUOUS),
]


def table(rows: int, seed: int = 0) -> FactorTable:
    dice = np.random.default_rng(seed)
    columns = {one.name: dice.integers(-1, len(one), rows) for one in FACTORS if not one.continuous}
    return FactorTable(FACTORS, {**columns, "yaw": dice.normal(size=rows)})


@given(st.integers(1, 200), st.integers(0, 5), st.permutations(["category", "lit", "instance"]), st.integers(1, 3))
def test_by_factors_is_a_stable_sort_by_codes_with_unknown_last(rows, seed, names, count):
    some, names = table(rows, seed), names[:count]
    order = order_rows(some, "by:" + ",".join(names))
    wide = []
    for name in names:
        wide += [outer for outer in ([] if name != "instance" else ["category"]) if outer not in wide]
        wide += [name] if name not in wide else []
    codes = {name: np.where(some.codes(name) < 0, 99, some.codes(name)) for name in wide}
    expected = sorted(range(rows), key=lambda row: [codes[name][row] for name in wide])
    assert order.at(0, rows).tolist() == expected
    assert order.at(rows // 3, rows).tolist() == expected[rows // 3 :]
    labels = [tuple(codes[name][row] for name in wide) for row in expected]
    assert order.starts.tolist() == [at for at in range(rows) if at == 0 or labels[at] != labels[at - 1]] + [rows]


def test_a_grid_is_sorted_as_its_columns_are():
    grid = FactorTable([Factor("a", Kind.ORDINAL, (0, 1, 2)), Factor("b", Kind.ORDINAL, (0, 1))])
    assert order_rows(grid, "by:b").at(0, 6).tolist() == [0, 2, 4, 1, 3, 5]
    assert order_rows(grid.select(range(6)), "by:b").at(0, 6).tolist() == [0, 2, 4, 1, 3, 5]


def test_many_more_combinations_than_rows_are_sorted_as_well():
    levels = tuple(range(5000))
    codes = np.array([[7, 4999, 7, 0], [1, 0, 0, -1], [4, 4, 4, 4]])
    some = FactorTable([Factor(name, Kind.ORDINAL, levels) for name in "abc"], dict(zip("abc", codes, strict=True)))
    order = order_rows(some, "by:c,a,b")
    assert order.at(0, 4).tolist() == [3, 2, 0, 1]
    assert order.starts.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.long("fuzzing")
@given(st.integers(1, 9000), st.integers(0, 2**64 - 1))
def test_a_shuffle_is_a_permutation_that_needs_no_whole(rows, seed):
    some = FactorTable([Factor("row", Kind.ORDINAL, (0,))], {"row": np.zeros(rows, np.uint8)})
    order = order_rows(some, "shuffle", seed)
    assert order.sorted is None
    whole = order.at(0, rows)
    assert sorted(whole.tolist()) == list(range(rows))
    np.testing.assert_array_equal(order.at(rows // 2, rows), whole[rows // 2 :])
    assert order_rows(some, "keep", seed) == order_rows(some, "keep")


def test_a_seed_of_numpy_is_that_number():
    order = order_rows(FactorTable.from_values({"a": [0, 1, 2]}), "shuffle", np.int64(4))
    assert (order.seed, type(order.seed)) == (4, int)


def test_seeds_shuffle_differently():
    some = table(5000)
    first, second = (order_rows(some, "shuffle", seed).at(0, 5000) for seed in (0, 1))
    # two permutations share one place on average
    assert np.count_nonzero(first == second) < 12
    assert np.count_nonzero(first == np.arange(5000)) < 12


def test_what_is_no_order_is_refused():
    some = table(5)
    for wrong in ("sorted", "by:", "by", "", "Keep"):
        with pytest.raises(DataError, match="order must be 'keep', 'shuffle', or 'by:'"):
            order_rows(some, wrong)
    with pytest.raises(FactorError, match="unknown factor 'catgory'; did you mean 'category'"):
        order_rows(some, "by:catgory")
    with pytest.raises(FactorError, match="unknown factor ''"):
        order_rows(some, "by:lit,")
    with pytest.raises(FactorError, match=r"'yaw' is continuous.*table\.binned\('yaw', width\)"):
        order_rows(some, "by:yaw")
    with pytest.raises(SamplerError, match="the seed must be"):
        order_rows(some, "shuffle", -1)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=30), st.integers(1, 9))
def test_groups_that_fit_are_in_one_shard_each(sizes, per_shard):
    starts = np.cumsum([0, *sizes])
    found = cut(int(starts[-1]), per_shard, starts)
    assert found[0] == 0
    assert found[-1] == starts[-1]
    lengths = np.diff(found)
    assert lengths.min() > 0
    assert lengths.max() <= per_shard
    for first, after in pairwise(starts):
        inside = [place for place in found if first < place < after]
        assert not inside if after - first <= per_shard else len(inside) <= (after - first) // per_shard + 1
    # no two neighbours could have been one shard, but where that would cut a group
    for first, middle, after in zip(found, found[1:], found[2:], strict=False):
        if after - first <= per_shard:
            assert middle in starts
            assert after not in starts


@given(st.integers(1, 1000), st.integers(1, 1200))
def test_without_groups_all_shards_but_the_last_are_full(rows, per_shard):
    found = cut(rows, per_shard)
    assert np.diff(found)[:-1].tolist() == [per_shard] * (len(found) - 2)
    assert found[-1] == rows


@pytest.mark.parametrize("wrong", [0, -3, 2.5, True, "7"])
def test_what_is_no_number_of_rows_is_refused(wrong):
    with pytest.raises(DataError, match="per_shard must be an integer of at least 1"):
        cut(10, wrong)


def test_rows_a_shard_are_256_mib_and_100_000_at_most():
    assert rows_a_shard(1 << 20) == 256
    assert rows_a_shard(0) == rows_a_shard(3) == 100_000
    assert rows_a_shard(1 << 40) == 1


def test_keys_have_one_length_and_no_dot():
    assert keys(10, 8, 10) == ["000008", "000009"]
    assert keys(1_000_000, 999_999, 1_000_000) == ["999999"]
    assert keys(1_000_001, 0, 1) == ["0000000"]


def plan(**changes) -> ShardPlan:
    members = {"image": Member(Modality((None, 5, 3), "uint8", color="srgb"), "png")}
    return replace(ShardPlan("shapes", "f" * 32, "c" * 64, members, "keep", 0, (0, 5, 8), "0.1"), **changes)


def test_equal_plans_have_equal_digests_and_others_do_not():
    other = {"image": Member(Modality((4, 5, 3), "uint8", color="srgb"), "png")}
    changes = [
        {}, {"name": "shape"}, {"factors": "0" * 32}, {"content": "0" * 64}, {"members": other}, {"order": "shuffle"},
        {"seed": 1}, {"cuts": (0, 4, 8)}, {"setsup": "0.2"},
    ]  # fmt: skip
    plans = [plan(**change) for change in changes]
    assert len({one.digest for one in plans}) == len(plans)
    assert plan() == plan()
    assert plan().digest == plan().digest
    for one, change in zip(plans, changes, strict=True):
        said = one.against(plan().to_json().encode(), "plan.json")
        assert bool(said) == bool(change)
        assert one.against(one.to_json().encode(), "plan.json") == ""
    assert plans[5].against(plan().to_json().encode(), "") == "another order (keep there, shuffle here)"


def test_the_digest_is_that_of_the_json():
    import hashlib

    one = plan(name="fürm")
    compact = json.dumps(json.loads(one.to_json()), sort_keys=True, separators=(",", ":"))
    assert one.digest == hashlib.sha256(compact.encode()).hexdigest()


def test_shards_are_named_by_number():
    one = plan()
    assert (one.rows, one.shards, one.shard_name(1)) == (8, 2, "data-00001.tar")
    with pytest.raises(IndexError, match="shard 2 is out of range"):
        one.shard_name(2)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b"null", b"\xff", b"[" * 100_000, b'{"name": 1}', plan().to_json().encode()[:-9]]
)
def test_what_is_no_plan_is_refused(content):
    with pytest.raises(DataError, match=r"plan\.json is damaged"):
        plan().against(content, "plan.json")
