"""Poses of objects in photographs: by look-up among renderings, or as a method predicts them.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, tables 1 and 2, figure 6, and the evaluation that its authors published.

"""

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from setsup.arrays import Array, Reals, Rows
from setsup.errors import DataError, SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.result_cache import digest_rows
from setsup.experiments.trained_run import TrainedRun
from setsup.random import permute, stream_key

if TYPE_CHECKING:
    from setsup.datasets import Dataset

__all__ = ["PoseLookup", "PoseRegression"]

_SHOWN, _NEAREST = 8, 5  # photographs of a sheet, and renderings of each
_SMOKE = 64  # photographs, and renderings of a codebook
_UNTRAINED = "untrained"

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseLookup:
    """Errors of poses from a codebook: a photograph gets the pose of the rendering with the most similar embedding.

    Photographs and codebooks are the same for all runs: codebooks depend on `codebook_seed`, not on the seed of the
    run. Images without a known pose are excluded.

    Attributes
    ----------
    codebook, test : str
        Two of the preset's ``datasets``: renderings of objects that were not trained on, and annotated photographs.
        Both have poses, as for :func:`~setsup_papers.abc.pose.poses.read_rotations`.
    codebooks : int
        Number of random codebooks to average over; 10 in the paper, 50 in the text of its published code.
    size : int
        Number of renderings in each codebook; all, if there are fewer.
    elevation : float, optional
        Leave out renderings from this elevation or above, in degrees; 28.65 (0.5 radians) for the paper's cars and
        74.48 (1.3) for its chairs. By default none are left out.
    samples : int, optional
        Maximum number of photographs; all by default.
    baselines : tuple of {"untrained"}
        Also measure the method with its initial weights, on the same photographs and codebooks.
    embedding : str, optional
        Name of the embedding, if the method has several.
    codebook_seed : int
        Random seed of codebooks, and of the photographs that are shown or selected.

    """

    version: ClassVar[int] = 1

    codebook: str = "codebook"
    test: str = "test"
    codebooks: int = 10
    size: int = 1_800
    elevation: float | None = None
    samples: int | None = None
    baselines: tuple[Literal["untrained"], ...] = ()
    embedding: str | None = None
    codebook_seed: int = 0

    def __post_init__(self) -> None:
        """Check counts before all is embedded."""
        if self.codebooks < 1 or self.size < 1 or (self.samples is not None and self.samples < 1):
            raise SetsupError(
                f"codebooks, size and samples must be 1 or more, not {self.codebooks}, {self.size} and {self.samples}"
            )
        _check_baselines(self.baselines)

    def shrunk(self) -> "PoseLookup":
        """Return the evaluation shrunk to few photographs and small codebooks."""
        return replace(self, codebooks=min(2, self.codebooks), size=min(_SMOKE, self.size), samples=_SMOKE)

    def measure(self, trained: TrainedRun) -> Measured:
        """Measures of :func:`~setsup_papers.abc.pose.measures.summarise`, curves over azimuth, and a sheet.

        ``images`` is the number of photographs, ``renderings`` that of a codebook.
        """
        from setsup.evaluation.retrieval import nearest
        from setsup_papers.abc.pose.lookup import draw_codebooks, look_up
        from setsup_papers.abc.pose.lookup_sheet import draw_lookup

        renderings, pool, poses = self._renderings(trained)
        photographs, rows, truth = _photographs(trained, self.test, self.samples, self.codebook_seed)
        books = draw_codebooks(np.arange(len(pool)), self.codebooks, self.size, self.codebook_seed)
        if self.codebooks > 1 and books.shape[1] == len(pool):
            _LOG.warning(
                "%s has %d renderings, so all codebooks of %d are identical and their spread is 0",
                *(renderings.name, len(pool), self.size),
            )
        used, dense = np.unique(books, return_inverse=True)
        dense = dense.reshape(books.shape)
        about = _about(photographs, rows) | {
            "renderings": renderings.name,
            "codebook": renderings.factors.fingerprint,
            "pool": digest_rows(pool),
            "embedding": self.embedding,
            "books": [self.codebooks, self.size, self.codebook_seed],
        }
        values: dict[str, float] = {"images": float(len(rows)), "renderings": float(books.shape[1])}
        curves: dict[str, tuple[list[float], list[float]]] = {}

        def embedded(source: str) -> tuple[Array, Array]:
            """Of all photographs, and of all renderings that are in a codebook."""
            parts = ((photographs, rows), (renderings, pool[used]))
            asked, known = (_embed(trained, source, dataset, some, self.embedding) for dataset, some in parts)
            return asked, known

        for source in ("", *self.baselines):

            def compute(source: str = source) -> Rows:
                return used[look_up(*embedded(source), dense)]

            numbers = np.asarray(trained.part("look-up", about | {"source": source}, compute), dtype=np.int64)
            measured, over = _measured(poses[numbers], truth, source)
            values |= measured
            curves |= over
        (asked, known), first = embedded(""), books[0]
        shown = _shown(len(rows), self.codebook_seed)
        near = nearest(asked[shown], known[dense[0]], min(_NEAREST, len(first)), metric="cosine")[0]
        sheet = draw_lookup(photographs, rows[shown], truth[shown], renderings, pool[first[near]], poses[first[near]])
        return Measured(values=values, curves=curves, pictures={"retrieved": sheet})

    def _renderings(self, trained: TrainedRun) -> "tuple[Dataset, Rows, Reals]":
        """The codebook's dataset, those of its rows that may be in codebooks, and their rotations."""
        from setsup_papers.abc.pose.poses import known_poses
        from setsup_papers.abc.pose.rotations import euler_from_rotation

        renderings = trained.open(self.codebook)
        pool, poses = known_poses(renderings, "rendering")
        if self.elevation is not None:
            low = euler_from_rotation(poses)[1] < self.elevation
            if not low.any():
                raise DataError(
                    f"{renderings.name} has no rendering with a known pose below the elevation {self.elevation:g}°; "
                    "set a higher elevation"
                )
            pool, poses = pool[low], poses[low]
        return renderings, pool, poses


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseRegression:
    """Errors of the poses that a method predicts.

    Attributes
    ----------
    test : str
        One of the preset's ``datasets``: annotated photographs, as for :class:`PoseLookup`.
    samples : int, optional
        Maximum number of photographs; all by default.
    baselines : tuple of {"untrained"}
        Also measure the method with its initial weights, on the same photographs.
    embedding : str
        Name of the embedding that contains the nine numbers of a rotation matrix, row by row. The nearest rotation is
        used, since results in low precision are not exact rotations.
    sample_seed : int
        Random seed of the selected photographs.

    """

    version: ClassVar[int] = 1

    test: str = "test"
    samples: int | None = None
    baselines: tuple[Literal["untrained"], ...] = ()
    embedding: str = "rotation"
    sample_seed: int = 0

    def __post_init__(self) -> None:
        """Check the count before all is embedded."""
        if self.samples is not None and self.samples < 1:
            raise SetsupError(f"samples must be 1 or more, not {self.samples}")
        _check_baselines(self.baselines)

    def shrunk(self) -> "PoseRegression":
        """Return the evaluation shrunk to few photographs."""
        return replace(self, samples=_SMOKE)

    def measure(self, trained: TrainedRun) -> Measured:
        """Measures of :func:`~setsup_papers.abc.pose.measures.summarise`, and curves over azimuth."""
        from setsup_papers.abc.pose.poses import nearest_rotations

        photographs, rows, truth = _photographs(trained, self.test, self.samples, self.sample_seed)
        about = _about(photographs, rows) | {"embedding": self.embedding}
        values: dict[str, float] = {"images": float(len(rows))}
        curves: dict[str, tuple[list[float], list[float]]] = {}
        for source in ("", *self.baselines):

            def compute(source: str = source) -> Array:
                return _embed(trained, source, photographs, rows, self.embedding)

            regressed = np.asarray(trained.part("regression", about | {"source": source}, compute), dtype=np.float64)
            if regressed.shape != (len(rows), 9):
                form = " × ".join(map(str, regressed.shape[1:]))
                raise SetsupError(
                    f"embedding {self.embedding!r} must consist of the 9 numbers of a predicted rotation, not "
                    f"{form}; choose another embedding"
                )
            measured, over = _measured(nearest_rotations(regressed.reshape(1, -1, 3, 3)), truth, source)
            values |= measured
            curves |= over
        return Measured(values=values, curves=curves)


def _check_baselines(baselines: tuple[str, ...]) -> None:
    for name in baselines:
        if name != _UNTRAINED:
            raise SetsupError(f"baselines must be {_UNTRAINED}, not {name!r}")


def _photographs(trained: TrainedRun, name: str, samples: int | None, seed: int) -> "tuple[Dataset, Rows, Reals]":
    """Annotated photographs, those of their rows that are measured, and their rotations."""
    from setsup_papers.abc.pose.poses import known_poses

    photographs = trained.open(name)
    rows, truth = known_poses(photographs, "photograph")
    if samples is not None:
        some = permute(stream_key(seed, "pose photographs"), len(rows), np.arange(min(samples, len(rows))))
        some = np.sort(some)
        rows, truth = rows[some], truth[some]
    return photographs, rows, truth


def _embed(trained: TrainedRun, source: str, dataset: "Dataset", rows: Rows, name: str | None) -> Array:
    """Embeddings (n, d) of rows by the method of a run, or by the baseline that a source names."""
    from setsup.experiments.embedding import embed

    if not source:
        return trained.embed_vectors(dataset, rows, name)
    return embed(trained.untrained, dataset, rows, name=name, **trained.embedding(dataset))


def _about(photographs: "Dataset", rows: Rows) -> dict[str, Any]:
    """What results depend on of the photographs."""
    return {
        "photographs": photographs.name,
        "table": photographs.factors.fingerprint,
        "rows": digest_rows(rows),
    }


def _measured(
    predicted: Reals, truth: Reals, source: str
) -> tuple[dict[str, float], dict[str, tuple[list[float], list[float]]]]:
    """Values and curves by name, in front of which a source is put; `predicted` is (codebooks, n, 3, 3)."""
    from setsup_papers.abc.pose.measures import over_azimuth, summarise

    front = f"{source}: " if source else ""
    over = over_azimuth(predicted, truth)
    curves = {
        f"{front}median error over azimuth": (over.azimuth.tolist(), over.median.tolist()),
        f"{front}front-back over azimuth": (over.azimuth.tolist(), over.confused.tolist()),
    }
    return {f"{front}{name}": value for name, value in summarise(predicted, truth).items()}, curves


def _shown(count: int, seed: int) -> Rows:
    """Photographs that are shown."""
    rows: Rows = permute(stream_key(seed, "pose sheet"), count, np.arange(min(_SHOWN, count)))
    return rows
