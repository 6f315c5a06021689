"""FactorVAE's vote: closed forms, and a slow one over the same draws."""

import numpy as np
import pytest

pytest.importorskip("torch")
from setsup.errors import DataError, SetsupError
from setsup.evaluation.scores import factor_vae
from setsup.factors import Factor, FactorTable, Kind
from setsup.random import fold, stream_key, uniform
from setsup.samplers import SetSampler

GRID = np.tile(np.indices((4, 3, 5)).reshape(3, -1), 3).T


def score(codes, factors=GRID, **options):
    return factor_vae(codes, factors, **{"votes": 600, "size": 12, **options})


def test_perfect_codes_whatever_their_order_sign_and_scale() -> None:
    found = score(GRID[:, [1, 2, 0]] * [-9.0, 0.1, 3.0] + 1e3)
    assert found.value == 1
    assert found.parts.tolist() == [1, 1, 1]
    assert score(np.concatenate([GRID, GRID], axis=1)).value == 1  # the first of two equals always wins


def test_one_code_stands_for_one_factor() -> None:
    # the only code gets all votes, so it is right as often as its factor is drawn
    found = score(GRID[:, :1], votes=3000)
    assert sorted(found.parts.tolist()) == [0, 0, 1]
    assert found.value == pytest.approx(1 / 3, abs=0.05)


def test_one_code_of_two_factors_and_one_of_the_third() -> None:
    found = score(np.stack([5 * GRID[:, 0] + GRID[:, 0] * GRID[:, 1], GRID[:, 2]], axis=1), votes=2000)
    assert found.parts[2] == 1
    assert 0.6 < found.value < 0.75


def test_noise_is_at_chance() -> None:
    factors = np.tile(GRID, (10, 1))
    noise = uniform(fold(stream_key(1, "noise"), np.arange(3 * len(factors)))).reshape(-1, 3)
    assert score(noise, factors, votes=6000).value == pytest.approx(1 / 3, abs=0.05)


def test_constant_codes_take_no_part() -> None:
    constant = np.full((len(GRID), 2), 0.1)
    assert score(np.concatenate([constant, GRID], axis=1)).value == 1
    found = score(constant)
    assert (found.value, found.parts.tolist()) == (0, [0, 0, 0])


def test_a_slow_vote_over_the_same_draws() -> None:
    codes = np.sin(np.arange(540).reshape(180, 3) ** 1.3) + GRID * [1.0, 0.2, 0.4]
    names = ["0", "1", "2"]
    table = FactorTable(
        [Factor(name, Kind.NOMINAL, tuple(range(size))) for name, size in zip(names, (4, 3, 5), strict=True)],
        dict(zip(names, GRID.T, strict=True)),
    )
    options = {"num_fixed": 1, "size": 12, "sets": 1, "on_small_group": "replace", "seed": 3, "stream": "factor_vae"}
    sampler = SetSampler(table, names, **options)
    polls = []
    for step in range(90):
        draw = sampler[step]
        (held,) = [int(name) for name in names if draw.inactive[name][0] >= 0]
        rows = draw.indices[0]
        assert len(set(GRID[rows, held])) == 1
        ratio = [np.var(codes[rows, j], ddof=1) / np.var(codes[:, j], ddof=1) for j in range(3)]
        polls.append((ratio.index(min(ratio)), held))
    stands = {}
    for code in range(3):
        of = [held for least, held in polls[:60] if least == code]
        stands[code] = max(range(3), key=of.count)
    right = [stands[least] == held for least, held in polls[60:]]
    found = factor_vae(codes, GRID, votes=60, size=12, seed=3)
    assert found.value == pytest.approx(np.mean(right))
    assert 0.3 < found.value < 1


def test_votes_are_keyed_by_the_seed() -> None:
    codes = np.sin(np.arange(540).reshape(180, 3) ** 1.3) + GRID * [1.0, 0.2, 0.4]
    assert score(codes, seed=1).value == score(codes, seed=1).value != score(codes, seed=2).value


def test_unknown_rows_are_counted_and_never_drawn_where_the_factor_is_held() -> None:
    factors = GRID.copy()
    factors[:30, 0] = -1
    codes = GRID.astype(float)
    codes[:30, 0] = 77.0  # would spoil the votes of factor 0
    found = score(codes, factors)
    assert found.left_out.tolist() == [30, 0, 0]
    assert found.parts[0] == 1


def test_bad_input_is_refused_in_a_sentence() -> None:
    lone = np.vstack([GRID, [[9, 0, 0]]])
    with pytest.raises(DataError, match="level 9 of factor 0 has only one row"):
        score(lone * 1.0, lone)
    with pytest.raises(SetsupError, match="size must be an integer of at least 2, not 1"):
        score(GRID, size=1)
    with pytest.raises(SetsupError, match="votes must be an integer of at least 2"):
        score(GRID, votes=1)
    with pytest.raises(DataError, match="not finite"):
        score(np.full(GRID.shape, np.inf))
