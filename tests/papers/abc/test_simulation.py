"""Simulated losses: one point at a time, by quadrature, and from files that were cut off, damaged or of others."""

import json
import math
import statistics
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from setsup.errors import DataError, SetsupError
from setsup.random import fold, stream_key, uniform

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")  # the package of experiments needs it

from setsup_papers.abc import (  # noqa: E402
    cells,
    correspondence_loss,
    simulation,
)
from setsup_papers.abc.simulation import Simulation, best_temperature, simulate, simulated_loss  # noqa: E402

GRID = ([4, 2, 8], [1, 2])
QUICK = {"draws": 40, "seed": 3}


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def coordinate(stream: str, seed: int, *words: int) -> float:
    """One number of draw, set, member and coordinate, one key word at a time."""
    key = stream_key(seed, stream)
    for word in words:
        key = int(fold(key, word))
    return float(uniform(np.uint64(key)))


def drawn(stream: str, seed: int, draws: int, size: int, dimensions: int) -> np.ndarray:
    shape = (draws, 2, size, dimensions)
    return np.array([coordinate(stream, seed, *at) for at in np.ndindex(shape)]).reshape(shape)


def slow_directed(queries: list[list[float]], keys: list[list[float]], tau: float) -> float:
    """The formula of the paper, one point at a time."""
    total = 0.0
    for i, query in enumerate(queries):
        weights = [math.exp(-(math.dist(query, key) ** 2) / tau) for key in keys]
        proxy = [
            sum(w * x for w, x in zip(weights, axis, strict=True)) / sum(weights) for axis in zip(*keys, strict=True)
        ]
        scores = [math.exp(-(math.dist(proxy, other) ** 2) / tau) for other in queries]
        total -= math.log(scores[i] / sum(scores))
    return total / len(queries)


def same(one: Simulation, other: Simulation) -> None:
    for name in ("sizes", "dimensions", "temperatures", "losses", "errors", "draws"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), strict=True)


@pytest.mark.parametrize(("size", "dimensions", "tau"), [(2, 1, 0.3), (5, 3, 0.1), (4, 6, 2.0)])
def test_mean_and_standard_error_one_point_at_a_time(size: int, dimensions: int, tau: float) -> None:
    losses = [
        slow_directed(u, v, tau) + slow_directed(v, u, tau)
        for u, v in drawn("simulation", 7, 30, size, dimensions).tolist()
    ]
    loss, error = simulated_loss(size, dimensions, tau, 30, seed=7)
    assert loss == pytest.approx(statistics.fmean(losses), rel=1e-5)
    assert error == pytest.approx(statistics.stdev(losses) / math.sqrt(30), rel=1e-4)


@pytest.mark.parametrize("similarity", ["l2", "cosine", lambda x, y: -(x[:, None] - y).abs().sum(-1)])
def test_other_similarities_are_those_of_the_loss(similarity) -> None:
    u, v = torch.from_numpy(drawn("simulation", 0, 20, 6, 2)).unbind(1)
    expected = correspondence_loss(u, v, similarity, 0.2)
    assert simulated_loss(6, 2, 0.2, 20, similarity=similarity)[0] == pytest.approx(float(expected), rel=1e-5)


@given(st.integers(0, 2**40), st.integers(0, 9), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_draws_share_points_with_fewer_draws_members_and_coordinates(first, start, more, size, dimensions) -> None:
    draws = range(first, first + 10)
    whole = simulation._points(5, "any", draws, 4, 3)
    part = simulation._points(5, "any", range(first + start, first + start + more), size, dimensions)
    assert part.dtype == torch.float32
    np.testing.assert_array_equal(part[: 10 - start], whole[start : start + more, :, :size, :dimensions])


@pytest.mark.parametrize(("together", "block"), [(1, 100), (100, 7), (1 << 30, 1_000)])
def test_how_many_draws_are_computed_at_a_time_does_not_matter(monkeypatch, together: int, block: int) -> None:
    expected = simulated_loss(9, 2, 0.05, 230)
    monkeypatch.setattr(simulation, "_TOGETHER", together)
    monkeypatch.setattr(simulation, "_BLOCK", block)
    assert simulated_loss(9, 2, 0.05, 230) == pytest.approx(expected, rel=1e-6)


def expected_loss(tau: float, nodes: int = 24) -> float:
    """Mean loss of two sets of two points in [0, 1], by Gauss-Legendre quadrature in four dimensions."""
    x, weight = np.polynomial.legendre.leggauss(nodes)
    u0, u1, v0, v1 = np.meshgrid(*[(x + 1) / 2] * 4, indexing="ij")

    def directed(a, b, c, d):
        total = 0.0
        for query, other in ((a, b), (b, a)):
            share = 1 / (1 + np.exp(((query - c) ** 2 - (query - d) ** 2) / tau))  # the weight of c
            proxy = share * c + (1 - share) * d
            total = total + np.logaddexp(0, ((proxy - query) ** 2 - (proxy - other) ** 2) / tau)
        return total / 2

    of_all = directed(u0, u1, v0, v1) + directed(v0, v1, u0, u1)
    return float(np.einsum("abcd,a,b,c,d->", of_all, *[weight / 2] * 4))


@pytest.mark.parametrize("tau", [0.15, 0.3, 1.0])
def test_two_points_in_one_dimension_by_quadrature(tau: float) -> None:
    assert expected_loss(tau, 20) == pytest.approx(expected_loss(tau), abs=1e-4)  # it has converged
    loss, error = simulated_loss(2, 1, tau, 20_000)
    assert abs(loss - expected_loss(tau)) < 4 * error
    assert error < 0.01


@pytest.mark.long("trainings")
def test_best_temperature_of_two_points_in_one_dimension_by_quadrature() -> None:
    exact = minimize_scalar(lambda log: expected_loss(math.exp(log)), bounds=(-3, 1), method="bounded")
    found = best_temperature(2, 1, 20_000)
    assert found == pytest.approx(math.exp(exact.x), rel=0.05)
    assert expected_loss(found) - exact.fun < 2e-4


@pytest.mark.long("trainings")
@pytest.mark.parametrize(("size", "dimensions"), [(3, 1), (16, 1), (8, 4), (32, 2)])
def test_no_temperature_of_a_fine_grid_is_better_on_the_same_draws(size: int, dimensions: int) -> None:
    tau = best_temperature(size, dimensions, 60, seed=1)
    u, v = torch.from_numpy(drawn("simulation search", 1, 60, size, dimensions)).unbind(1)
    least, low, high = (float(correspondence_loss(u, v, "l2sq", tau * by)) for by in (1, 0.5, 2))
    assert least < min(low, high)
    grid = [float(correspondence_loss(u, v, "l2sq", some)) for some in np.geomspace(1e-6, 1e2, 150)]
    assert least <= min(grid) + 1e-5


def test_the_search_does_not_depend_on_where_it_starts(monkeypatch) -> None:
    expected = best_temperature(8, 2, 50)
    true = simulation._valley
    for away in (-9.0, -1.7, 6.0):
        monkeypatch.setattr(simulation, "_valley", lambda loss, start, what, by=away: true(loss, start + by, what))
        assert best_temperature(8, 2, 50) == pytest.approx(expected, rel=2e-3)


def test_a_loss_without_a_minimum_is_refused() -> None:
    flat = {"similarity": lambda x, y: x @ y.T * 0}
    with pytest.raises(SetsupError, match=r"4 points in 2 dimensions has no minimum .* use more draws"):
        best_temperature(4, 2, 20, **flat)
    # points that find themselves for sure: the lower the temperature, the better, and no end to it
    with pytest.raises(SetsupError, match="no minimum"):
        simulation._valley(lambda log: log, 0.0, "some")
    with pytest.raises(SetsupError, match="no minimum"):
        simulation._valley(lambda log: -log, 0.0, "some")


def test_temperatures_and_losses_are_those_of_the_functions() -> None:
    found = simulate(*GRID, **QUICK, error=0)
    for (row, size), (column, count) in product(enumerate(GRID[0]), enumerate(GRID[1])):
        tau = best_temperature(size, count, 40, seed=3)
        assert found.temperatures[row, column] == tau
        assert (found.losses[row, column], found.errors[row, column]) == simulated_loss(size, count, tau, 40, seed=3)
    assert (found.sizes.tolist(), found.dimensions.tolist()) == GRID
    assert found.draws.dtype == np.int64
    assert np.all(found.draws == 40)


@pytest.mark.long("trainings")
def test_draws_end_where_the_standard_error_is_small() -> None:
    whole, some, few = (simulate([8], [2], draws=2_000, error=error) for error in (0, 0.015, 0.9))
    assert (whole.draws.item(), few.draws.item()) == (2_000, 500)
    assert 500 < some.draws.item() < 2_000
    assert some.draws.item() % 100 == 0
    assert some.errors.item() < 0.015 * some.losses.item()
    assert some.temperatures == whole.temperatures
    expected = simulated_loss(8, 2, whole.temperatures.item(), some.draws.item() - 100)
    assert expected[1] >= 0.015 * expected[0]


@pytest.mark.long("trainings")
def test_more_points_want_more_dimensions() -> None:
    """The claim of the figure, at sizes far apart."""
    found = simulate([4, 32], [1, 2, 4], draws=1_000, error=0)
    assert found.best[0] < found.best[1]
    assert np.all(found.losses < 2 * np.log(found.sizes)[:, None])  # better than to guess


def test_scaled_and_best() -> None:
    losses = np.array([[3.0, 2.0, 4.0], [1.0, 5.0, 4.0]])
    found = Simulation(np.array([4, 8]), np.array([3, 1, 2]), losses, losses, losses, losses.astype(np.int64))
    np.testing.assert_allclose(found.scaled, [[1.5, 1, 2], [0.2, 1, 0.8]])
    assert found.best.tolist() == [1, 3]
    without = Simulation(np.array([4, 8]), np.array([2, 3]), *[losses[:, :2]] * 3, losses[:, :2].astype(np.int64))
    assert without.best.tolist() == [3, 2]
    with pytest.raises(
        SetsupError, match=r"by the loss of 1 dimension, but the dimensions of the simulation are \[2, 3\]"
    ):
        _ = without.scaled


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Simulation, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    return simulate(*GRID, **QUICK, folder=folder), (folder / "simulation.jsonl").read_bytes()


@pytest.mark.long("trainings")
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.62, 0.99, 1.0])
def test_a_file_cut_off_anywhere_is_completed(tmp_path: Path, uninterrupted, share: float) -> None:
    expected, content = uninterrupted
    (tmp_path / "simulation.jsonl").write_bytes(content[: int(share * len(content))])
    same(simulate(*GRID, **QUICK, folder=tmp_path), expected)
    assert (tmp_path / "simulation.jsonl").read_bytes() == content
    same(simulate(*GRID, **QUICK), expected)


def test_a_run_that_is_killed_keeps_all_whole_results(tmp_path: Path, monkeypatch, uninterrupted) -> None:
    expected, content = uninterrupted
    true, done = simulation._cell, []

    def killed(*arguments):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(arguments)
        return true(*arguments)

    monkeypatch.setattr(simulation, "_cell", killed)
    with pytest.raises(KeyboardInterrupt):
        simulate(*GRID, **QUICK, folder=tmp_path / "new")
    kept = (tmp_path / "new" / "simulation.jsonl").read_bytes()
    assert kept == b"".join(content.splitlines(keepends=True)[:5])
    done.clear()
    same(simulate(*GRID, **QUICK, folder=tmp_path / "new"), expected)
    assert [cell[:2] for cell in done] == [(8, 1), (8, 2)]  # what was known is not simulated again


def test_a_folder_takes_more_sizes_and_dimensions(tmp_path: Path, uninterrupted) -> None:
    simulate([8], [1], **QUICK, folder=tmp_path)
    simulate([4], [2, 3], **QUICK, folder=tmp_path)
    same(simulate(*GRID, **QUICK, folder=tmp_path), uninterrupted[0])
    assert len((tmp_path / "simulation.jsonl").read_text().splitlines()) == 1 + 7


@pytest.mark.parametrize("change", [{"seed": 4}, {"draws": 41}, {"error": 0.02}])
def test_a_folder_of_other_settings_is_refused(tmp_path: Path, uninterrupted, change) -> None:
    (tmp_path / "simulation.jsonl").write_bytes(uninterrupted[1])
    with pytest.raises(DataError, match=r"contains a simulation of \{.*'seed': 3.*choose another folder"):
        simulate(*GRID, **{**QUICK, **change}, folder=tmp_path)
    assert (tmp_path / "simulation.jsonl").read_bytes() == uninterrupted[1]


@pytest.mark.parametrize(
    "damaged",
    [
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b"null",
        b'{"size": 4, "dimensions": 1, "temperature": 0.1, "loss": NaN, "error": 0.1, "draws": 40}',
        b'{"size": 4, "dimensions": 1, "temperature": 0.1, "loss": "2", "error": 0.1, "draws": 40}',
        b'{"size": 4, "dimensions": 1, "temperature": 0.1, "loss": 2.0, "error": 0.1, "draws": 4e1}',
        b'{"size": 4, "dimensions": 1, "temperature": 0.1, "loss": 2.0, "error": 0.1, "draws": 40, "more": 1}',
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, uninterrupted, damaged: bytes) -> None:
    lines = uninterrupted[1].splitlines()
    lines[3] = damaged
    (tmp_path / "simulation.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(DataError, match=r"simulation.jsonl, line 4 .*remove the file to simulate again"):
        simulate(*GRID, **QUICK, folder=tmp_path)


@given(st.binary(max_size=80), st.integers(0, 400), st.booleans())
@settings(max_examples=60, deadline=None)
def test_whatever_the_bytes_an_error_or_results(
    tmp_path_factory, uninterrupted, junk: bytes, at: int, more: bool
) -> None:
    file = tmp_path_factory.mktemp("junk") / "simulation.jsonl"
    file.write_bytes(uninterrupted[1][:at] + junk + (uninterrupted[1][at:] if more else b""))
    first = json.loads(uninterrupted[1].splitlines()[0])
    try:
        found = cells.read_cells(file, first)
    except DataError:
        return
    assert all(isinstance(cell, cells.Cell) for cell in found.values())


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError):
        simulate([4], [1], **QUICK, folder=tmp_path / "file")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 1}, "set size must be an integer of at least 2"),
        ({"size": 4.0}, "set size"),
        ({"dimensions": 0}, "number of dimensions must be an integer of at least 1"),
        ({"draws": 1}, "draws must be an integer of at least 2"),
        ({"temperature": 0.0}, "temperature"),
        ({"seed": -1}, "seed"),
        ({"similarity": "l3"}, "unknown similarity 'l3'"),
    ],
)
def test_arguments_out_of_range(arguments, message: str) -> None:
    good = {"size": 4, "dimensions": 1, "temperature": 0.1, "draws": 10}
    with pytest.raises(SetsupError, match=message):
        simulated_loss(**{**good, **arguments})
    if "temperature" not in arguments:
        del good["temperature"]
        with pytest.raises(SetsupError, match=message):
            best_temperature(**{**good, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": []}, "set sizes must be one or more distinct"),
        ({"sizes": [4, 8, 4]}, "set sizes must be one or more distinct"),
        ({"sizes": [4, 1]}, "each of the set sizes"),
        ({"dimensions": [1, 1]}, "numbers of dimensions"),
        ({"dimensions": [0]}, "each of the numbers of dimensions"),
        ({"draws": 1}, "draws"),
        ({"error": 1.0}, "relative standard error"),
        ({"error": -0.1}, "relative standard error"),
        ({"error": math.nan}, "relative standard error"),
        ({"seed": 2**64}, "seed"),
    ],
)
def test_grids_out_of_range(tmp_path: Path, arguments, message: str) -> None:
    with pytest.raises(SetsupError, match=message):
        simulate(**{"sizes": [4], "dimensions": [1], "draws": 20, "folder": tmp_path, **arguments})
    assert not list(tmp_path.iterdir())
