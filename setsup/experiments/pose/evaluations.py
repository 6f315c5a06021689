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
import numpy.typing as npt

from setsup.errors import DataError, SetsupError
from setsup.experiments.parts import digest_rows
from setsup.experiments.preset import Measured
from setsup.experiments.trained import TrainedRun
from setsup.random import permute, stream_key

if TYPE_CHECKING:
    from PIL.Image import Image

    from setsup.datasets import Dataset

__all__ = ["PoseLookup", "PoseRegression"]

Reals = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

_SHOWN, _NEAREST = 8, 5  # photographs of a sheet, and renderings of each
_SMOKE = 64  # photographs, and renderings of a codebook
_UNTRAINED = "untrained"

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseLookup:
    """Errors of the pose of that rendering of a codebook whose embedding has the largest cosine with a photograph's.

    Photographs and codebooks are the same for all runs: codebooks depend on `codebook_seed`, and not on the seed of
    the run. Images without a known pose are left out.

    Attributes
    ----------
    codebook, test : str
        Of the preset's ``datasets``: renderings of objects that were not trained on, and annotated photographs. Both
        have poses, as :func:`~setsup.experiments.pose.poses.read_rotations` reads them.
    codebooks : int
        Random codebooks that are averaged; 10 in the paper, 50 in the text of its published code.
    size : int
        Renderings of each, at most all.
    elevation : float, optional
        Leave out renderings from as high as this, in degrees; 28.65 (0.5 radians) for the paper's cars and 74.48 (1.3)
        for its chairs. By default none are left out.
    samples : int, optional
        At most so many photographs; all by default.
    baselines : tuple of {"untrained"}
        Measure these on the same photographs and codebooks, too: the method with its initial weights.
    embedding : str, optional
        Which embedding, of a method with several.
    codebook_seed : int
        Of codebooks, and of the photographs that are shown or taken.

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
            raise SetsupError("codebooks, size and samples of a look-up of poses are 1 or more")
        _check_baselines(self.baselines)

    def shrunk(self) -> "PoseLookup":
        """The same on few photographs and small codebooks."""
        return replace(self, codebooks=min(2, self.codebooks), size=min(_SMOKE, self.size), samples=_SMOKE)

    def measure(self, trained: TrainedRun) -> Measured:
        """Measures of :func:`~setsup.experiments.pose.measures.summarise`, curves over azimuth, and a sheet.

        ``images`` is the number of photographs, ``renderings`` that of a codebook.
        """
        from setsup.experiments.embedding import embed
        from setsup.experiments.pose.lookup import draw_codebooks, look_up

        renderings, pool, poses = self._renderings(trained)
        photographs, rows, truth = _photographs(trained, self.test, self.samples, self.codebook_seed)
        books = draw_codebooks(np.arange(len(pool)), self.codebooks, self.size, self.codebook_seed)
        if self.codebooks > 1 and books.shape[1] == len(pool):
            _LOG.warning(
                "%s has %d renderings, and codebooks of %d are all the same: their spread is 0",
                *(renderings.name, len(pool), self.size),
            )
        used = np.unique(books)
        about = _about(photographs, rows) | {
            "renderings": renderings.name,
            "codebook": renderings.factors.fingerprint,
            "pool": digest_rows(pool),
            "embedding": self.embedding,
            "books": [self.codebooks, self.size, self.codebook_seed],
        }
        values: dict[str, float] = {"images": float(len(rows)), "renderings": float(books.shape[1])}
        curves: dict[str, tuple[list[float], list[float]]] = {}
        pictures: dict[str, Image] = {}
        for source in ("", *self.baselines):

            def embedded(dataset: "Dataset", some: Rows, source: str = source) -> Reals:
                if not source:
                    return trained.embed_vectors(dataset, some, self.embedding)
                return embed(trained.untrained, dataset, some, name=self.embedding, **trained.embedding(dataset))

            def compute(embedded: Any = embedded) -> Rows:
                dense = np.searchsorted(used, books)
                return used[look_up(embedded(photographs, rows), embedded(renderings, pool[used]), dense)]

            found = np.asarray(trained.part("look-up", about | {"source": source}, compute), dtype=np.int64)
            told, over = _measured(poses[found], truth, source)
            values |= told
            curves |= over
            if not source:
                shown = _shown(len(rows), self.codebook_seed)
                first = pool[books[0]]
                pictures["retrieved"] = _draw_nearest(
                    photographs,
                    rows[shown],
                    truth[shown],
                    embedded(photographs, rows)[shown],
                    renderings,
                    first,
                    poses[books[0]],
                    embedded(renderings, pool[used])[np.searchsorted(used, books[0])],
                )
        return Measured(values=values, curves=curves, pictures=pictures)

    def _renderings(self, trained: TrainedRun) -> "tuple[Dataset, Rows, Reals]":
        """The codebook's dataset, those of its rows that may be in codebooks, and their rotations."""
        from setsup.evaluation.rotations import euler_from_rotation
        from setsup.experiments.pose.poses import read_rotations

        renderings = trained.open(self.codebook)
        poses = read_rotations(renderings)
        pool = np.flatnonzero(np.isfinite(poses).all(axis=(1, 2)))
        if self.elevation is not None:
            pool = pool[euler_from_rotation(poses[pool])[1] < self.elevation]
        if not len(pool):
            below = "" if self.elevation is None else f" from below {self.elevation:g}°"
            raise DataError(f"{renderings.name} has no rendering with a known pose{below} to look poses up in")
        return renderings, pool, poses[pool]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseRegression:
    """Errors of the poses that a method predicts.

    Attributes
    ----------
    test : str
        Of the preset's ``datasets``: annotated photographs, as for :class:`PoseLookup`.
    samples : int, optional
        At most so many photographs; all by default.
    baselines : tuple of {"untrained"}
        Measure these on the same photographs, too: the method with its initial weights.
    embedding : str
        The one that is the nine numbers of a rotation, row by row. The nearest rotation to them counts, since those of
        a method in low precision are not exactly one.
    sample_seed : int
        Of the photographs that are taken.

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
            raise SetsupError(f"samples are 1 or more, not {self.samples}")
        _check_baselines(self.baselines)

    def shrunk(self) -> "PoseRegression":
        """The same on few photographs."""
        return replace(self, samples=_SMOKE)

    def measure(self, trained: TrainedRun) -> Measured:
        """Measures of :func:`~setsup.experiments.pose.measures.summarise`, and curves over azimuth."""
        from setsup.experiments.embedding import embed
        from setsup.experiments.pose.poses import nearest_rotations

        photographs, rows, truth = _photographs(trained, self.test, self.samples, self.sample_seed)
        about = _about(photographs, rows) | {"embedding": self.embedding}
        values: dict[str, float] = {"images": float(len(rows))}
        curves: dict[str, tuple[list[float], list[float]]] = {}
        for source in ("", *self.baselines):

            def compute(source: str = source) -> Reals:
                method = trained.untrained if source else trained.method
                more = trained.embedding(photographs)
                return embed(method, photographs, rows, name=self.embedding, **more)

            found = np.asarray(trained.part("regression", about | {"source": source}, compute), dtype=np.float64)
            if found.shape != (len(rows), 9):
                form = " × ".join(map(str, found.shape[1:]))
                raise SetsupError(
                    f"a predicted rotation has 9 numbers, and {self.embedding!r} has {form}: name another"
                )
            told, over = _measured(nearest_rotations(found.reshape(1, -1, 3, 3)), truth, source)
            values |= told
            curves |= over
        return Measured(values=values, curves=curves)


def _check_baselines(baselines: tuple[str, ...]) -> None:
    for name in baselines:
        if name != _UNTRAINED:
            raise SetsupError(f"the only baseline is {_UNTRAINED}, not {name!r}")


def _photographs(trained: TrainedRun, name: str, samples: int | None, seed: int) -> "tuple[Dataset, Rows, Reals]":
    """Annotated photographs, those of their rows that are measured, and their rotations."""
    from setsup.experiments.pose.poses import read_rotations

    photographs = trained.open(name)
    truth = read_rotations(photographs)
    rows = np.flatnonzero(np.isfinite(truth).all(axis=(1, 2)))
    if not len(rows):
        raise DataError(f"{photographs.name} has no photograph with a known pose, so there is no error to measure")
    if samples is not None:
        some = permute(stream_key(seed, "pose photographs"), len(rows), np.arange(min(samples, len(rows))))
        rows = rows[np.sort(some)]
    return photographs, rows, truth[rows]


def _about(photographs: "Dataset", rows: Rows) -> dict[str, Any]:
    return {
        "photographs": photographs.name,
        "table": photographs.factors.fingerprint,
        "rows": digest_rows(rows),
    }


def _measured(
    predicted: Reals, truth: Reals, source: str
) -> tuple[dict[str, float], dict[str, tuple[list[float], list[float]]]]:
    """Values and curves by name."""
    from setsup.experiments.pose.measures import over_azimuth, summarise

    front = f"{source}: " if source else ""
    over = over_azimuth(predicted, truth)
    curves = {
        f"{front}median error over azimuth": (over.azimuth.tolist(), over.median.tolist()),
        f"{front}front-back over azimuth": (over.azimuth.tolist(), over.confused.tolist()),
    }
    return {f"{front}{name}": value for name, value in summarise(predicted, truth).items()}, curves


def _shown(count: int, seed: int) -> Rows:
    """Photographs that are shown."""
    found: Rows = permute(stream_key(seed, "pose sheet"), count, np.arange(min(_SHOWN, count)))
    return found


def _draw_nearest(
    photographs: "Dataset",
    queries: Rows,
    truth: Reals,
    asked: Reals,
    renderings: "Dataset",
    rows: Rows,
    poses: Reals,
    embedded: Reals,
) -> "Image":
    """Some photographs, and their nearest renderings in a codebook."""
    from setsup.evaluation.retrieval import nearest
    from setsup.experiments.pose.lookup_sheet import draw_lookup

    near = nearest(asked, embedded, min(_NEAREST, len(rows)), metric="cosine")[0]
    return draw_lookup(photographs, queries, truth, renderings, rows[near], poses[near])
