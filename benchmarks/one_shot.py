"""One-shot accuracy over 1,000 re-splits as one batched computation, against scikit-learn once a re-split.

Both sides have the same re-splits, at equal threads: by the clock with a thread for each core, then the CPU time on one
thread. The images are as many as those of NORB's experiment: 15 toys of 5 categories, 6 lightings, 162 views.
"""

import os
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measure import Side, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, compare

__all__ = ["rows"]

TOPIC = "one_shot"
TOYS, LIGHTINGS, VIEWS, CATEGORIES, DIMENSION = 15, 6, sized(162, 9), 5, sized(1024, 32)
RESPLITS, LOOPED = sized(1_000, 10), sized(50, 5)
"""Re-splits at once; and those of a call of the loop, whose time does not depend on how many there are."""


def rows(full: bool) -> Iterator[Row]:
    if peer("scikit-learn") is None:
        return
    from threadpoolctl import threadpool_limits

    from setsup.evaluation import draw_labelled

    points, labels, orbits = _data()
    drawn = draw_labelled(labels, orbits, RESPLITS)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for threads, clock in ((cores, time.perf_counter), (1, time.process_time)):
        words = f"{threads} thread{'s' * (threads > 1)}, {'CPU time' if threads == 1 else 'wall clock'}"
        what = f"re-split of {len(points):,} images × {DIMENSION}, {RESPLITS:,} at once, {words}"
        with threadpool_limits(threads):
            ours = Side(_ours(points, labels, orbits, drawn), units=RESPLITS)
            loop = Side(_loop(points, labels, orbits, drawn[:LOOPED]), units=LOOPED)
            against = "KNeighborsClassifier(1), a re-split after the other"
            yield compare(TOPIC, what, against, ours, loop, at_least(5), blocks=5, clock=clock)


def _data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    dice = np.random.default_rng(0)
    orbits = np.repeat(np.arange(TOYS * LIGHTINGS), VIEWS)
    labels = orbits // (LIGHTINGS * TOYS // CATEGORIES)
    centres = 0.3 * dice.standard_normal((CATEGORIES, DIMENSION))
    points = dice.standard_normal((len(labels), DIMENSION)) + centres[labels]
    return points.astype(np.float32), labels, orbits


def _ours(points: np.ndarray, labels: np.ndarray, orbits: np.ndarray, drawn: np.ndarray) -> Callable[[], object]:
    from setsup.evaluation import one_shot_accuracy

    return lambda: one_shot_accuracy(points, labels, orbits, drawn)


def _loop(points: np.ndarray, labels: np.ndarray, orbits: np.ndarray, drawn: np.ndarray) -> Callable[[], object]:
    from sklearn.neighbors import KNeighborsClassifier

    def accuracies() -> list[float]:
        found = []
        for images in drawn:
            queries = ~np.isin(orbits, orbits[images])
            told = KNeighborsClassifier(1).fit(points[images], labels[images]).predict(points[queries])
            found.append((told == labels[queries]).mean())
        return found

    return accuracies
