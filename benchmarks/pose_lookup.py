"""Look-up of poses in ten random codebooks, against a loop of products and against scikit-learn, a codebook at a time.

On one core, in CPU time. Photographs and codebooks are as many as those of ABC's tables: 3,000 and 10 × 1,800. Their
embeddings are random, which leaves few cosines so close that they are compared again. Codebooks of 64 dimensions share
no rendering; those of 16,384, the features of a pretrained network, are drawn from the renderings of two models, as in
the published evaluation.
"""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, at_most, compare, duration

__all__ = ["rows"]

TOPIC = "pose_lookup"
QUERIES, CODEBOOKS, SIZE = sized((3_000, 10, 1_800), (30, 2, 20))
DIMENSIONS, FEATURES, POOL, FEW = sized((64, 16_384, 3_600, 300), (8, 600, 30, 10))
SECONDS = 1.0
"""That a look-up may take."""


def rows(full: bool) -> Iterator[Row]:
    from setsup_papers.abc.pose.lookup import draw_codebooks, look_up

    queries, renderings = _vectors(QUERIES, DIMENSIONS, 0), _vectors(CODEBOOKS * SIZE, DIMENSIONS, 1)
    books = np.arange(CODEBOOKS * SIZE).reshape(CODEBOOKS, SIZE)
    ours = Side(lambda: look_up(queries, renderings, books))
    what = f"{QUERIES:,} photographs among {CODEBOOKS} codebooks of {SIZE:,}, {DIMENSIONS} dimensions"
    against = "products in float64, argmax, a codebook after the other"
    yield compare(TOPIC, what, against, ours, Side(_products(queries, renderings, books)), at_least(1), blocks=5)
    if peer("scikit-learn") is not None:
        against = "NearestNeighbors(1, metric='cosine'), likewise"
        yield compare(TOPIC, what, against, ours, Side(_neighbours(queries, renderings, books)), at_least(2), blocks=5)
    seconds = alternate({"ours": ours}, blocks=5)["ours"]
    share = ratio(seconds, np.full(len(seconds), SECONDS))
    yield Row(TOPIC, what, duration(seconds), "a second", f"{SECONDS:g} s", share, "×", at_most(1))
    some, pool = _vectors(FEW, FEATURES, 2), _vectors(POOL, FEATURES, 3)
    drawn = draw_codebooks(np.arange(POOL), CODEBOOKS, SIZE)
    what = f"photograph among {CODEBOOKS} codebooks of {SIZE:,} of {POOL:,} renderings, {FEATURES:,} dimensions"
    sides = Side(lambda: look_up(some, pool, drawn), units=FEW), Side(_products(some, pool, drawn), units=FEW)
    yield compare(TOPIC, what, "products in float64, argmax, a codebook after the other", *sides, blocks=2)


def _vectors(count: int, dimensions: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, dimensions), dtype=np.float32)


def _products(queries: np.ndarray, renderings: np.ndarray, books: np.ndarray) -> Callable[[], object]:
    """What the published evaluation does, in the precision in which ours decides."""

    def unit(vectors: np.ndarray) -> np.ndarray:
        wide = vectors.astype(np.float64)
        return wide / np.linalg.norm(wide, axis=1, keepdims=True)

    def found() -> list[np.ndarray]:
        asked = unit(queries)
        return [book[(asked @ unit(renderings[book]).T).argmax(axis=1)] for book in books]

    return found


def _neighbours(queries: np.ndarray, renderings: np.ndarray, books: np.ndarray) -> Callable[[], object]:
    from sklearn.neighbors import NearestNeighbors

    def found() -> list[np.ndarray]:
        near = NearestNeighbors(n_neighbors=1, metric="cosine", algorithm="brute")
        return [book[near.fit(renderings[book]).kneighbors(queries)[1][:, 0]] for book in books]

    return found
