"""The map of orbits against direct calls."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from sklearn.neighbors import NearestNeighbors  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.evaluation.maps import tsne_map  # noqa: E402
from setsup.experiments.result_cache import PartStore  # noqa: E402
from setsup_papers.orbits.orbit_map import OrbitMap  # noqa: E402
from setsup_papers.orbits.orbit_rows import draw_rows  # noqa: E402
from tests.papers.orbits.test_evaluations import CLASSES, VIEWS, run  # noqa: E402

MAP = OrbitMap(factor="class", orbit=("object", "light"))


def test_points_are_t_sne_of_the_embeddings_and_values_are_of_these(tmp_path: Path) -> None:
    some = run(store=PartStore(tmp_path, {}))
    found = MAP.measure(some)
    assert list(found.pictures) == ["trained"]
    (kept,) = tmp_path.glob("orbit-map-*.json")
    points = np.array(next(iter(json.loads(kept.read_text())["results"].values()))["points"])
    test = some.open(split="test")
    rows = draw_rows(some, test, "class", ("object", "light"), per_class=2)
    assert len(points) == len(rows.labels) == CLASSES * 2 * VIEWS
    pixels = test.fetch(rows.sample.rows)["image"].reshape(len(points), -1).astype(np.float64)
    np.testing.assert_array_equal(points, tsne_map(pixels, perplexity=(len(pixels) - 1) / 3, seed=0))
    order = NearestNeighbors(n_neighbors=len(pixels)).fit(pixels).kneighbors(pixels)[1][:, 1:]
    same = rows.orbits[order[:, 0]] == rows.orbits
    other = [next(row for row in near if rows.orbits[row] != own) for near, own in zip(order, rows.orbits, strict=True)]
    assert found.values["nearest: orbit"] == same.mean()
    assert found.values["nearest: class"] == (rows.labels[other] == rows.labels).mean()


@pytest.mark.long("trainings")
def test_baselines_have_maps_and_values_of_their_own() -> None:
    found = replace(MAP, baselines=("pixels",)).measure(run())
    assert list(found.pictures) == ["trained", "pixels"]
    # the embedding is the pixels
    assert found.pictures["trained"].tobytes() == found.pictures["pixels"].tobytes()
    assert found.values["pixels: nearest: orbit"] == found.values["nearest: orbit"]


@pytest.mark.long("trainings")
def test_runs_of_other_seeds_show_the_same_orbits() -> None:
    one, other = (MAP.measure(run(seed=seed)) for seed in (0, 7))
    assert one.pictures["trained"].tobytes() == other.pictures["trained"].tobytes()


def test_shrunk_measurements_run() -> None:
    assert MAP.shrunk().measure(run()).values
    with pytest.raises(SetsupError, match="orbits must be 1 or more"):
        OrbitMap(orbits=0)
