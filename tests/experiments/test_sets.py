"""Drawings: pools, as the published experiments have them; and sets of fewer images than were asked for."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import RunConfig, Sets, find_preset, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.settings import flatten, put  # noqa: E402
from setsup.factors import Factor, FactorTable, Kind  # noqa: E402
from tests.experiments.by_hand import abc_loss  # noqa: E402
from tests.experiments.small import PLAIN  # noqa: E402

SHAPES = setsup.load("shapes3d-procedural")
TABLE = FactorTable([Factor(name, Kind.NOMINAL, tuple(range(n))) for name, n in {"a": 3, "b": 4, "c": 50}.items()])


def drawn(config: Sets, table: FactorTable = TABLE, seed: int = 0, steps: int = 400) -> np.ndarray:
    """Different rows of all sets of some steps."""
    sampler = config.build(SimpleNamespace(factors=table), seed)
    return np.unique(np.concatenate([sampler[step].indices.ravel() for step in range(steps)]))


def test_no_more_than_the_pool_of_each_value_is_drawn() -> None:
    rows = drawn(Sets(inactive=("a",), size=8, pool=20))
    assert np.bincount(TABLE.codes("a", rows)).tolist() == [20, 20, 20]
    assert len(np.unique(TABLE.codes("b", rows))) == 4, "they are any of the rows, not the first of a grid"
    of_two = drawn(Sets(inactive=("a", "b"), size=8, pool=20))
    assert TABLE.joint_counts(["a", "b"]).shape == (3, 4)
    assert np.bincount(TABLE.codes("a", of_two) * 4 + TABLE.codes("b", of_two)).tolist() == [20] * 12


def test_pools_are_the_same_in_all_runs_and_sets_are_not() -> None:
    config = Sets(inactive=("a",), size=8, pool=20)
    assert drawn(config, seed=0).tolist() == drawn(config, seed=9).tolist()
    first, other = (config.build(SimpleNamespace(factors=TABLE), seed)[0].indices for seed in (0, 9))
    assert (first != other).any()


def test_pools_hold_what_the_expression_keeps() -> None:
    rows = drawn(Sets(inactive=("a",), size=8, pool=20, where="b != 2 and a != 1"))
    assert set(TABLE.codes("b", rows)) == {0, 1, 3}
    assert np.bincount(TABLE.codes("a", rows)).tolist() == [20, 0, 20]


def test_sets_that_hold_nothing_draw_from_all_pools() -> None:
    pools = drawn(Sets(inactive=("a",), size=8, pool=20))
    sampler = Sets(inactive=("a",), size=8, pool=20, unconstrained=1).build(SimpleNamespace(factors=TABLE), 3)
    free = np.unique(np.concatenate([sampler[step].indices[1] for step in range(400)]))
    assert free.tolist() == pools.tolist()
    assert len(drawn(Sets(inactive=(), sets=1, size=8, pool=20))) == 20


def test_a_pool_of_all_rows_leaves_none_out() -> None:
    assert len(drawn(Sets(inactive=("a",), size=100, pool=200), steps=100)) == len(TABLE)
    rows = drawn(Sets(inactive=("a",), size=8, pool=5))  # short sets of five
    assert np.bincount(TABLE.codes("a", rows[rows >= 0])).tolist() == [5, 5, 5]


def test_rows_of_which_the_held_factor_is_unknown_are_in_no_pool() -> None:
    codes = np.where(np.arange(len(TABLE)) % 5, TABLE.codes("a"), -1)
    columns = {"a": codes, "b": TABLE.codes("b"), "c": TABLE.codes("c")}
    rows = drawn(Sets(inactive=("a",), size=8, pool=20, unconstrained=1), FactorTable(TABLE.factors, columns))
    assert np.bincount(codes[rows]).tolist() == [20, 20, 20]


def test_a_pool_of_nothing() -> None:
    with pytest.raises(SetsupError, match=r"^pool must be at least 1 \(a number of rows\), not 0$"):
        Sets(inactive=("a",), pool=0).build(SimpleNamespace(factors=TABLE), 0)


def test_the_pool_is_a_setting() -> None:
    preset = put(find_preset("abc/fig3a"), {"sampler.pool": 1_031})
    assert flatten(preset)["sampler.pool"] == 1_031
    assert flatten(find_preset("abc/fig3a"))["sampler.pool"] is None


FIVE = tuple(name for name in SHAPES.factors.names if name != "object_hue")


@pytest.mark.long("trainings")
@pytest.mark.parametrize("method", ["small", "paper"])
def test_five_inactive_factors_leave_short_sets_that_train(tmp_path: Path, method: Any) -> None:
    """Figure 2a: one factor is active, and of ten images each set has all."""
    preset = replace(PLAIN, sampler=Sets(inactive=FIVE, size=32, small="short"), steps=2)
    if method == "paper":
        preset = replace(preset, method=find_preset("abc/fig3a").method)
    run = train(preset, tmp_path, config=RunConfig(workers=0))
    assert run.finished
    assert run.progress().images == 2 * 2 * 10
    draw = preset.sampler.build(SHAPES, 0)[0]
    found = []
    for number, rows in enumerate(draw.indices):
        rows = rows if draw.mask is None else rows[draw.mask[number]]
        assert sorted(SHAPES.factors.codes("object_hue", rows)) == list(range(10))
        images = np.moveaxis(SHAPES.fetch(rows, ["image"])["image"], -1, -3).copy()
        found.append(build_method(preset.method, SHAPES.factors, 0).eval().encoder(torch.from_numpy(images)))
    first, *_ = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(first)["loss"] == pytest.approx(float(abc_loss(*found).detach()), rel=1e-4)
