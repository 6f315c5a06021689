"""Orbits in an embedding: distances within and between them, canonical members found again, and a sheet of images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL.Image import Image

from setsup import evaluation
from setsup.datasets import Dataset
from setsup.errors import SetsupError
from setsup.evaluation.orbits import QUANTILES
from setsup.experiments.data import image_modality
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations.drawn_orbits import DrawnOrbits, draw_orbits
from setsup.experiments.trained_run import TrainedRun

__all__ = ["OrbitStructure", "StudiedOrbits", "draw_orbit_sheet", "study_orbits"]

Pixels = npt.NDArray[np.uint8]

_SHOWN, _MEMBERS = 6, 8  # orbits of a sheet, and members of each


@dataclass(frozen=True, slots=True)
class StudiedOrbits:
    """What :func:`study_orbits` finds of one embedding.

    Attributes
    ----------
    values : dict of str to float
        As :class:`OrbitStructure` describes them.
    each : dict of str to (orbits,) float64
        Values of each drawn orbit, NaN where undefined: mean distances ``within`` and ``between``, the share ``nearest
        canonical``, and the three errors.
    note : str
        Why nothing is decoded although the method has ``rectify``; empty otherwise.
    beneath : list of (label, images), one a shown orbit
        Images that a sheet shows beneath the canonical image and the members, None for a missing one. An empty list if
        there are none.

    """

    values: dict[str, float]
    each: dict[str, npt.NDArray[np.float64]]
    note: str
    beneath: list[tuple[str, list[Pixels | None]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrbitStructure:
    """Measure whether an embedding groups the members of an orbit and maps them to their canonical member.

    All is of the same drawn members, and of embeddings as they are. Values by name:

    ``within / between``, ``AUC``
        :func:`~setsup.evaluation.orbit_distances`: ratio of the mean distances within and between orbits, and the
        probability that a pair of one orbit is closer than a pair of two.
    ``within: mean``, ``between: 50 %``, …
        Mean, root mean square and quantiles of all these Euclidean distances; with ``, scaled`` divided by the root
        mean square of those between.
    ``nearest canonical``, ``chance: nearest canonical``
        :func:`~setsup.evaluation.canonical_retrieval`: share of the members, without the canonical ones, to which of
        the canonical members of all drawn orbits that of their own is the nearest.
    ``error: rectified``, ``error: input``, ``error: mean image``
        For a method with ``rectify(batch)``, which returns images (sets, size, C, H, W) in [0, 1]: mean squared error
        per pixel of its images of the members, without the canonical ones, to the canonical image; and of two
        baselines, the members themselves and the mean image of each orbit's members. ``PSNR: …`` are these in decibels.
        Members count alike, and all images are as the method reads them, after the preset's transform.
    ``orbits``, ``rows``, ``orbits of one member``, ``orbits without canonical member``
        Counts of the drawn orbits and rows.

    Attributes
    ----------
    orbit : tuple of str
        Factors whose combinations are the orbits.
    canonical : str, optional
        Canonical member, as for :class:`setsup.OrbitSampler`. Without it, only distances are measured.
    count : int
        Number of orbits, drawn with the seed of the run.
    members : int
        Maximum number of members of each orbit.
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    orbit: tuple[str, ...]
    canonical: str | None = None
    count: int = 100
    members: int = 64
    embedding: str | None = None

    def shrunk(self) -> "OrbitStructure":
        """Return the evaluation shrunk to few orbits."""
        return replace(self, count=4, members=8)

    def draw(self, trained: TrainedRun) -> DrawnOrbits:
        """Draw the orbits: the same for all runs with one seed and dataset."""
        table = trained.dataset.factors
        return draw_orbits(table, self.orbit, self.canonical, count=self.count, members=self.members, seed=trained.seed)

    def measure(self, trained: TrainedRun) -> Measured:
        """Values, and a sheet of the first orbits."""
        drawn = self.draw(trained)
        studied = study_orbits(trained, drawn, self.embedding)
        sheet = draw_orbit_sheet(trained.dataset, drawn, {trained.name: studied})
        return Measured(values=studied.values, pictures={"orbits": sheet})


def study_orbits(trained: TrainedRun, drawn: DrawnOrbits, embedding: str | None = None) -> StudiedOrbits:
    """Measure orbits in the embedding of a method.

    Parameters
    ----------
    trained : TrainedRun
        Method and dataset, also from :func:`~setsup.experiments.encoders.encoder_run`.
    drawn : DrawnOrbits
        Orbits of its dataset, from :meth:`OrbitStructure.draw`.
    embedding : str, optional
        Name of the embedding, if the method has several.

    Returns
    -------
    StudiedOrbits

    Raises
    ------
    SetsupError, DataError
        When the method gives maps or cannot embed, or the dataset has no images.

    Examples
    --------
    >>> import setsup
    >>> from setsup.experiments.encoders import encoder_run, open_encoder
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> pixels = encoder_run(open_encoder("pixels:4", "cpu"), shapes)
    >>> views = OrbitStructure(orbit=("wall_hue", "shape"), canonical="first", count=3, members=4)
    >>> found = study_orbits(pixels, views.draw(pixels))
    >>> found.values["rows"], found.each["within"].shape
    (12, (3,))

    """
    canonical = drawn.canonical[drawn.canonical >= 0]
    rows = np.unique(np.concatenate([drawn.rows, canonical]))
    embedded = trained.embed_vectors(rows=rows, name=embedding)
    members = embedded[np.searchsorted(rows, drawn.rows)]
    distances = evaluation.orbit_distances(members, drawn.orbits)
    values = _distance_values(distances)
    values |= {
        "orbits": len(drawn),
        "rows": len(drawn.rows),
        "orbits of one member": distances.single,
        "orbits without canonical member": int((drawn.canonical < 0).sum()),
    }
    by_orbit = {"within": distances.within_each, "between": distances.between_each}
    shown, note = shown_orbits(drawn), ""
    beneath: list[tuple[str, list[Pixels | None]]] = []
    if drawn.others.any():
        others = drawn.others
        with_canonical = np.flatnonzero(drawn.canonical >= 0)
        own = np.searchsorted(with_canonical, drawn.orbits[others])
        retrieval = evaluation.canonical_retrieval(members[others], embedded[np.searchsorted(rows, canonical)], own)
        values |= {"nearest canonical": retrieval.share, "chance: nearest canonical": retrieval.chance}
        by_orbit["nearest canonical"] = _means(retrieval.own, drawn.orbits[others], len(drawn))
        nearest = dict(zip(drawn.rows[others].tolist(), canonical[retrieval.nearest].tolist(), strict=True))
        beneath = _retrieved(trained.dataset, drawn, shown, nearest)
    if callable(getattr(trained.method, "rectify", None)):
        try:
            beneath = _decoded(trained, drawn, shown)
            if drawn.others.any():
                _add_errors(trained, drawn, values, by_orbit)
        except SetsupError as error:
            note = f"nothing is rectified: {error}"
    return StudiedOrbits(values, by_orbit, note, beneath)


def shown_orbits(drawn: DrawnOrbits) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """The first orbits with a member besides the canonical one, each with the rows that are shown of it."""
    members = ((orbit, drawn.members(orbit)[:_MEMBERS]) for orbit in range(len(drawn)))
    return [(orbit, rows) for orbit, rows in members if len(rows)][:_SHOWN]


def draw_orbit_sheet(dataset: Dataset, drawn: DrawnOrbits, found: Mapping[str, StudiedOrbits]) -> Image:
    """Draw the first orbits: canonical image and members, and beneath what each embedding makes of these.

    Parameters
    ----------
    dataset : Dataset
        Whose images are shown.
    drawn : DrawnOrbits
        Orbits of it.
    found : mapping of str to StudiedOrbits
        Of each embedding, by its label.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When the dataset has no images.

    """
    from setsup.reports.orbits import orbit_sheet

    shown = shown_orbits(drawn)
    canonical = bool((drawn.canonical >= 0).any())
    width = max(len(rows) for _, rows in shown)
    blocks, captions, labels = [], [], []
    for position, (orbit, rows) in enumerate(shown):
        lines: list[Sequence[Pixels | None]] = [[_image(dataset, row) for row in (drawn.canonical[orbit], *rows)]]
        names = [""]
        for label, studied in found.items():
            if studied.beneath:
                caption, images = studied.beneath[position]
                lines.append(images)
                names.append(f"{label}\n{caption}")
        blocks.append([[*line, *[None] * (1 + width - len(line))][not canonical :] for line in lines])
        labels.append(names)
        captions.append(
            f"{drawn.names[orbit]}\n"
            + _count_members(len(rows) + int(drawn.canonical[orbit] >= 0), int(drawn.sizes[orbit]))
        )
    heading = f"{dataset.name}: {len(shown)} of {drawn.among:,} orbits"
    if canonical:
        heading += f"\ncanonical member: {drawn.asked}"
    return orbit_sheet(blocks, captions, labels, heading, canonical=canonical)


def _count_members(shown: int, members: int) -> str:
    return f"{members:,} members" + (f", {shown} of them shown" if shown < members else "")


def _distance_values(found: evaluation.OrbitDistances) -> dict[str, float]:
    values: dict[str, float] = {"within / between": found.ratio, "AUC": found.auc}
    scale = found.between.root_mean_square or float("nan")
    for name, some in (("within", found.within), ("between", found.between)):
        numbers = {"mean": some.mean, "root mean square": some.root_mean_square}
        numbers |= {
            f"{100 * share:.0f} %": float(quantile) for share, quantile in zip(QUANTILES, some.quantiles, strict=True)
        }
        values[f"pairs {name}"] = some.pairs
        values |= {f"{name}: {statistic}": number for statistic, number in numbers.items()}
        values |= {f"{name}, scaled: {statistic}": number / scale for statistic, number in numbers.items()}
    return values


def _add_errors(
    trained: TrainedRun, drawn: DrawnOrbits, values: dict[str, float], by_orbit: dict[str, npt.NDArray[np.float64]]
) -> None:
    """Errors of the canonical images, averaged over members."""
    from setsup.experiments.evaluations.rectified import recovery_errors

    weights = np.bincount(drawn.orbits[drawn.others], minlength=len(drawn))
    for name, errors in recovery_errors(trained, drawn).items():
        mean = float(np.average(errors[weights > 0], weights=weights[weights > 0]))
        values |= {f"error: {name}": mean, f"PSNR: {name}": evaluation.peak_signal_to_noise(mean)}
        by_orbit[f"error: {name}"] = errors


def _decoded(
    trained: TrainedRun, drawn: DrawnOrbits, shown: Sequence[tuple[int, npt.NDArray[np.int64]]]
) -> list[tuple[str, list[Pixels | None]]]:
    """What a method decodes of the canonical image and of the members of the orbits that are shown."""
    from setsup.experiments.evaluations.rectified import rectified

    wanted = [[row for row in (drawn.canonical[orbit], *rows) if row >= 0] for orbit, rows in shown]
    _, images = rectified(trained, np.concatenate(wanted))
    lines, at = [], 0
    for (orbit, _), rows in zip(shown, wanted, strict=True):
        some = [_to_bytes(image.transpose(1, 2, 0)) for image in images[at : at + len(rows)]]
        lines.append(("rectified", [*([None] if drawn.canonical[orbit] < 0 else []), *some]))
        at += len(rows)
    return lines


def _retrieved(
    dataset: Dataset,
    drawn: DrawnOrbits,
    shown: Sequence[tuple[int, npt.NDArray[np.int64]]],
    nearest: Mapping[int, int],
) -> list[tuple[str, list[Pixels | None]]]:
    """The canonical image nearest to each member of the orbits that are shown."""
    lines = []
    for orbit, rows in shown:
        near = [nearest.get(int(row)) for row in rows]
        right = sum(canonical == drawn.canonical[orbit] for canonical in near if canonical is not None)
        caption = f"nearest canonical image\n{right} of {len(rows)} are its own" if drawn.canonical[orbit] >= 0 else ""
        images = [None if canonical is None else _image(dataset, canonical) for canonical in near]
        lines.append((caption, [None, *images]))
    return lines


def _means(numbers: npt.NDArray[np.float64], orbits: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.float64]:
    """Mean of the numbers of each orbit, NaN without any."""
    members = np.bincount(orbits, minlength=count)
    sums = np.bincount(orbits, numbers, minlength=count)
    means: npt.NDArray[np.float64] = np.divide(sums, members, out=np.full(count, np.nan), where=members > 0)
    return means


def _image(dataset: Dataset, row: int) -> Pixels | None:
    if row < 0:
        return None
    name = image_modality(dataset)
    return _to_bytes(dataset.fetch(np.asarray(row), [name])[name])


def _to_bytes(image: npt.NDArray[Any]) -> Pixels:
    """An image (H, W, C) as bytes: floats are from 0 to 1."""
    if image.dtype == np.uint8:
        return image
    unit = image / 65_535 if image.dtype == np.uint16 else image
    return np.asarray(np.rint(255 * np.clip(unit, 0, 1)), dtype=np.uint8)
