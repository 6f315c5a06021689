"""Contact sheets of draws and rows of a dataset."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_integer, check_string
from setsup.datasets import Dataset
from setsup.datasets.modality import first_image
from setsup.errors import DataError
from setsup.reports.describe import PairWords, SetWords, describe, describe_pairs
from setsup.reports.display.saving import Sheet
from setsup.reports.display.shown import Shown, find_shown
from setsup.reports.overlap_words import describe_overlaps
from setsup.reports.page import check_measures
from setsup.reports.sheet import contact_page
from setsup.reports.text_layout import legible
from setsup.reports.thumbnails import thumbnail
from setsup.reports.triplets import triplet_page
from setsup.samplers.draw import Draw
from setsup.samplers.neighbours import NeighbourSampler
from setsup.samplers.overlaps import OverlapSampler
from setsup.samplers.row_arguments import weight_names, weight_words, where_words
from setsup.samplers.sampler import Sampler
from setsup.samplers.triplets import TripletSampler

if TYPE_CHECKING:
    from setsup.reports.page import Page

__all__ = ["orbit_names", "show"]

_MEMBERS = 64
_BLOCKS = 32
_IMAGES = 512
_FEW = 24  # images that are shown larger

Images = list[npt.NDArray[Any]]


def show(
    dataset: Dataset,
    draws: Draw | npt.ArrayLike | None = None,
    sampler: Sampler | None = None,
    *,
    steps: int = 4,
    title: str | None = None,
    tile: int | None = None,
) -> Sheet:
    """Show the images of draws or rows as a contact sheet, as ``setsup sample`` does.

    Each set is a block of images; its caption says which factors are fixed and over how many levels the others vary.
    Of large draws the first sets and the first 64 images of each set are shown, and how many more there are is said.

    Parameters
    ----------
    dataset : Dataset
        Whose images are shown: those of its first modality of images.
    draws : Draw or integer array, optional
        A draw, such as ``sampler[0]``; a block of draws, such as ``sampler.block(0, 4)``; or row numbers of the shape
        (n,), (sets, size) or (steps, sets, size). By default 24 rows from all over the dataset, the same each time.
    sampler : Sampler, optional
        Where the draws come from: captions then have its nouns, tolerance, seed and ``where``, and triplets are shown
        as triplets. Needed where its table has factors that the dataset does not have.
    steps : int
        Steps of a block that are shown at most, as long as they have few sets.
    title : str, optional
        Replaces the heading; empty for none.
    tile : int, optional
        Pixels of the longer side of a thumbnail; 128 for up to 24 images, else 64.

    Returns
    -------
    Sheet
        An image that displays itself in notebooks; ``save`` writes it as PNG, PDF or SVG.

    Raises
    ------
    RowError
        When a row number is out of range.
    DataError
        When the dataset has no images, an image cannot be read, or the draw is one of another table.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=6, seed=0)
    >>> setsup.show(shapes, sets[0], sets).image.mode
    'RGB'

    """
    if not isinstance(dataset, Dataset):
        raise DataError(
            f"the dataset of show must be a Dataset, such as setsup.load returns, not a {type(dataset).__name__}"
        )
    steps = check_integer(steps, "steps of show", DataError, 1)
    check_measures(tile, 1)
    if title is not None:
        check_string(title, "title of show", DataError)
    if sampler is not None:
        if not isinstance(sampler, Sampler):
            raise DataError(f"the sampler of show must be a Sampler, not a {type(sampler).__name__}")
        if len(sampler.table) != len(dataset):
            raise DataError(
                f"the sampler draws from {len(sampler.table):,} rows, but {dataset.name} has {len(dataset):,}; "
                "pass the dataset that the sampler was created for"
            )
    shown = find_shown(dataset, draws, sampler)
    if sampler is not None and shown.noun == "triplet":
        return Sheet(_triplets(shown, sampler, title, tile))
    return Sheet(_blocks(shown, steps, title, tile))


def orbit_names(sampler: Sampler) -> list[str]:
    """Factors that anchor and positive of a triplet share.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> orbit_names(setsup.TripletSampler(shapes.factors, "shape", triplets=2))
    ['shape']

    """
    if isinstance(sampler, NeighbourSampler) or (
        isinstance(sampler, TripletSampler) and sampler.arguments["orbit"] is None
    ):
        return list(sampler.shared)
    named = sampler.arguments["orbit"]
    return [named] if isinstance(named, str) else list(named)


def _triplets(shown: Shown, sampler: Sampler, title: str | None, tile: int | None) -> "Page":
    rows = shown.draws.indices[0]
    explained = f"positive: same {', '.join(orbit_names(sampler))}; negative: another"
    if (positive := shown.argument("positive")) is not None:
        explained = f"positive: {positive}\nnegative: {shown.argument('negative')}"
    if isinstance(sampler, NeighbourSampler):
        explained += f"\n{sampler.words}"
    first = rows[:_MEMBERS]
    images = _images(shown.dataset, first, tile)
    more = f"\n… and {len(rows) - len(first):,} more triplets" if len(rows) > len(first) else ""
    heading = f"{_heading(shown, 1)}\n{explained}" if title is None else title
    return triplet_page(
        [images[start : start + 3] for start in range(0, first.size, 3)], f"{heading}{more}".strip(), tile=tile
    )


def _blocks(shown: Shown, steps: int, title: str | None, tile: int | None) -> "Page":
    draws = shown.draws
    total, sets, size = draws.indices.shape
    most = min(sets, _BLOCKS, max(8, _IMAGES // min(size, _MEMBERS)))
    steps = max(1, min(total, steps, 8 // sets))
    heading = _heading(shown, steps) if title is None else title
    if sets > most:
        heading += f"\nthe first {most} of {sets:,} {shown.nouns}"
    blocks = [(step, number) for step in range(steps) for number in range(most)]
    described = {step: _words(shown, draws.at(step), most) for step in range(steps)}
    overlaps = {step: _overlaps(shown, draws.at(step), most) for step in range(steps)}
    chosen = tuple(np.array(blocks).T)
    first = draws.indices[chosen][:, :_MEMBERS]
    images = _images(shown.dataset, first, tile)
    return contact_page(
        [images[start : start + first.shape[1]] for start in range(0, first.size, first.shape[1])],
        [
            _caption(shown, described[step][number], step, number, steps, overlaps[step][number])
            for step, number in blocks
        ],
        heading.strip(),
        None if draws.mask is None else draws.mask[chosen],
        None if draws.canonical is None else _images(shown.dataset, draws.canonical[chosen], tile),
        [_members(described[step][number]) for step, number in blocks],
        limit=_MEMBERS,
        tile=tile,
        framed=shown.support,
    )


def _words(shown: Shown, draw: Draw, most: int) -> Sequence[SetWords | PairWords]:
    without = [] if shown.sampler is None else weight_names(shown.sampler.arguments)
    compared = draw.pair_labels or isinstance(shown.sampler, NeighbourSampler)
    compared = compared or (isinstance(shown.sampler, OverlapSampler) and shown.noun == "pair")
    return (describe_pairs if compared else describe)(shown.table, draw, most, without)


def _overlaps(shown: Shown, draw: Draw, most: int) -> list[str]:
    """What was measured of the views of each set; empty where a sampler does not draw by overlap."""
    if isinstance(shown.sampler, OverlapSampler):
        return describe_overlaps(shown.sampler, draw, most)
    return [""] * most


def _members(described: SetWords | PairWords) -> int:
    return 2 if isinstance(described, PairWords) else described.members


def _caption(shown: Shown, described: SetWords | PairWords, step: int, number: int, steps: int, overlaps: str) -> str:
    label = shown.rows or f"{shown.noun} {number}"
    if steps > 1:
        label = f"{shown.counter} {step}, {label}"
    if overlaps:
        label += f" · {_join(overlaps)}"
    if isinstance(described, PairWords):
        label = f"{label}\n" if overlaps else f"{label} · "
        equal = f"\nequal: {_join(described.fixed_words(shown.table))}" if described.fixed else ""
        return f"{label}{_join(described.changed_words(shown.table))}{equal}"
    fixed = _join(described.fixed_words(shown.table, shown.argument("tolerance"), legible))
    size = shown.draws.indices.shape[-1]
    if shown.bare and size == 1:
        return f"{label}\n{fixed}"
    if described.fixed or not shown.bare:
        label += f" · {'equal' if shown.bare else 'fixed'}: {fixed}"
    short = f" · {described.members:,} of {size:,} positions" if described.members < size else ""
    return f"{label}{short}\nvaries: {_join(described.varying_words(shown.table))}"


def _join(text: str) -> str:
    """Keep each value with its name and unit on one line."""
    return ", ".join(item.replace(" ", "\u00a0") for item in text.split(", "))


def _heading(shown: Shown, steps: int) -> str:
    name, noun = shown.dataset.name, shown.noun
    if shown.rows:
        return name
    total, sets, size = shown.draws.indices.shape
    counted = f"{sets:,} {noun if sets == 1 else shown.nouns}" + (
        f" of {size:,}" if noun not in ("pair", "triplet") else ""
    )
    counter = shown.counter
    which = f"{counter} 0" if steps == 1 else f"{counter}s 0 to {steps - 1}"
    which += f" of {total:,}" if steps < total else ""
    seed, where, weights = shown.argument("seed"), shown.argument("where"), weight_words(shown.argument("weights"))
    parts = [
        f"seed {seed}" if seed is not None else "",
        which if not shown.single else "",
        f"where {where_words(where)}" if where is not None else "",
        f"drawn by weight: {weights}" if weights else "",
        "framed: support" if shown.support else "",
        f"each with its anchor first, then {members}" if (members := shown.argument("members")) else "",
        *_near(shown),
        f"the last {negatives} of each: negatives" if (negatives := shown.argument("negatives")) else "",
    ]
    return "\n".join(line for line in (f"{name}: {counted}", ", ".join(filter(None, parts))) if line)


def _near(shown: Shown) -> list[str]:
    """What pairs of neighbours, and pairs and sets of views, are."""
    if isinstance(shown.sampler, OverlapSampler):
        return [shown.sampler.words]
    if shown.noun != "pair" or not isinstance(shown.sampler, NeighbourSampler):
        return []
    given = {role: shown.argument(role) for role in ("positive", "negative")}
    return [shown.sampler.words, *(f"{role}: {text}" for role, text in given.items() if text is not None)]


def _images(dataset: Dataset, rows: npt.NDArray[np.int64], tile: int | None) -> Images:
    """Fetch the images of rows, flat; images of several sizes one by one, as thumbnails."""
    name = first_image(dataset.modalities)
    if name is None:
        raise DataError(f"{dataset.name} has no images to show (modalities: {', '.join(dataset.modalities)})")
    if None not in dataset.modalities[name].shape:
        return list(dataset.fetch(rows.reshape(-1), [name])[name])
    # in rows of one height, a wide image takes more pixels than in a cell
    target = max(tile or 0, 128) * (2 if rows.size <= _FEW else 1)
    return [np.asarray(thumbnail(dataset.fetch(row, [name])[name], target)) for row in rows.reshape(-1)]
