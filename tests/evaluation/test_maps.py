"""Maps: neighbours stay neighbours, the seed decides, and bad input is refused before a library sees it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from setsup.errors import DataError, SetsupError
from setsup.evaluation.maps import tsne_map, umap_map
from setsup.random import fold, stream_key, uniform

# three clusters of 25 rows in 6 dimensions, whose middles are 10 apart and which are about 1 wide
CLUSTER = np.repeat(np.arange(3), 25)
ROWS = uniform(fold(stream_key(0, "test"), np.arange(75 * 6, dtype=np.uint64))).reshape(75, 6) + 10 * np.eye(6)[CLUSTER]


def apart(placed: np.ndarray, cluster: np.ndarray = CLUSTER) -> bool:
    """Whether every point is nearer to all of its cluster than to any other."""
    distances = np.linalg.norm(placed[:, None] - placed, axis=2)
    same = cluster[:, None] == cluster
    return bool((np.where(same, distances, 0).max(axis=1) < np.where(same, np.inf, distances).min(axis=1)).all())


@pytest.mark.long("Ray clusters")
def test_tsne_keeps_clusters_apart_and_is_decided_by_the_seed() -> None:
    pytest.importorskip("sklearn")
    placed = tsne_map(ROWS, perplexity=10)
    assert placed.shape == (75, 2)
    assert placed.dtype == np.float64
    assert apart(placed)
    np.testing.assert_array_equal(tsne_map(ROWS, perplexity=10), placed)
    # the embeddings' own scale says nothing, even where float32 has no such numbers
    np.testing.assert_array_equal(tsne_map(ROWS * 2.0**300, perplexity=10), placed)


# the same functions, interpreted: numba compiles them for twenty seconds, which the tests of extras wait for
DRAWN = """
import sys, warnings
import numpy as np
from setsup.evaluation.maps import umap_map

warnings.simplefilter("error")
rows = np.load(sys.argv[1])
placed = [umap_map(rows, neighbours=5), umap_map(rows * 2.0**300, neighbours=5), umap_map(rows, neighbours=5, seed=1)]
assert {one.dtype for one in placed} == {np.dtype(np.float64)}
np.save(sys.argv[1], placed)
"""


@pytest.mark.long("charts")
def test_umap_keeps_clusters_apart_and_is_decided_by_the_seed(tmp_path: Path) -> None:
    pytest.importorskip("umap")
    few = np.concatenate([np.flatnonzero(CLUSTER == cluster)[:8] for cluster in range(3)])
    np.save(tmp_path / "rows.npy", ROWS[few])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", DRAWN, tmp_path / "rows.npy"], check=True, env=environment)
    first, scaled, other = np.load(tmp_path / "rows.npy")
    assert first.shape == (24, 2)
    assert apart(first, CLUSTER[few])
    np.testing.assert_array_equal(scaled, first)
    assert not np.array_equal(other, first)


@pytest.mark.parametrize("place", [tsne_map, umap_map])
def test_what_has_no_map_is_refused(place) -> None:
    with pytest.raises(DataError, match=r"at least 4 rows and 2 dimensions, not \(3, 6\)"):
        place(ROWS[:3])
    with pytest.raises(DataError, match=r"at least 4 rows and 2 dimensions, not \(75, 1\)"):
        place(ROWS[:, :1])
    with pytest.raises(DataError, match="row 2 of 75 in embeddings contains a value that is not finite"):
        place(np.where(np.arange(75)[:, None] == 2, np.nan, ROWS))
    with pytest.raises(DataError, match="all 75 embeddings are equal"):
        place(np.full((75, 2), 0.3))
    with pytest.raises(SetsupError, match="seed"):
        place(ROWS, seed=-1)


@pytest.mark.parametrize("perplexity", [0.5, 75, np.nan, "30", True])
def test_perplexities_that_cannot_be_are_refused(perplexity) -> None:
    with pytest.raises(SetsupError, match="perplexity must be at least 1 and below 75 for 75 rows"):
        tsne_map(ROWS, perplexity=perplexity)


def test_neighbours_that_cannot_be_are_refused() -> None:
    with pytest.raises(SetsupError, match="each of 75 rows has 74 neighbours, but 75 were requested; request fewer"):
        umap_map(ROWS, neighbours=75)
    with pytest.raises(SetsupError, match="neighbours must be an integer of at least 2, not 1"):
        umap_map(ROWS, neighbours=1)


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(SetsupError, match=r"sklearn is required but not installed: pip install '\.\[train\]'"):
        tsne_map(ROWS)
    with pytest.raises(SetsupError, match=r"umap is required but not installed: pip install '\.\[umap\]'"):
        umap_map(ROWS)
