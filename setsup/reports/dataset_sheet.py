"""Contact sheets of draws and rows of a dataset."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_array, check_instance, check_integer, check_string
from setsup.datasets import Dataset
from setsup.errors import DataError
from setsup.factors.stored import check_rows
from setsup.factors.table import FactorTable
from setsup.random import fold, permute
from setsup.reports.lettering import legible
from setsup.reports.saving import Sheet
from setsup.reports.sheet import contact_page
from setsup.reports.thumbnails import thumbnail
from setsup.reports.triplets import triplet_page
from setsup.reports.words import SetWords, describe
from setsup.samplers.draw import Draw
from setsup.samplers.sampler import Sampler

if TYPE_CHECKING:
    from setsup.reports.page import Page

__all__ = ["orbit_names", "show"]

_MEMBERS = 64
_BLOCKS = 32
_IMAGES = 512
_ROWS = 24  # of a dataset of which no rows are named
_LARGEST = 1024  # pixels of a thumbnail
_NOUNS = {"DomainSampler": "domain", "OrbitSampler": "orbit", "TripletSampler": "triplet"}

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
    check_instance(dataset, Dataset, "the dataset of show", DataError)
    steps = check_integer(steps, "steps of show", DataError, 1)
    tile = None if tile is None else check_integer(tile, "tile of show", DataError, 8, _LARGEST)
    if title is not None:
        check_string(title, "title of show", DataError)
    if sampler is not None:
        check_instance(sampler, Sampler, "the sampler of show", DataError)
        if len(sampler.table) != len(dataset):
            raise DataError(
                f"the sampler draws from {len(sampler.table):,} rows, but {dataset.name} has {len(dataset):,}: show "
                "the dataset that it was made for"
            )
    shown = _shown(dataset, draws, sampler)
    if sampler is not None and shown.noun == "triplet":
        return Sheet(_triplets(shown, sampler, title, tile))
    return Sheet(_blocks(shown, steps, title, tile))


def orbit_names(sampler: Sampler) -> list[str]:
    """Factors that anchor and positive of a triplet share."""
    named = sampler.arguments["orbit"]
    return [named] if isinstance(named, str) else list(named)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown: a block of draws, and where it comes from."""

    dataset: Dataset
    table: FactorTable
    draws: Draw
    sampler: Sampler | None
    bare: bool = False
    """Whether these are row numbers of the caller rather than a draw."""
    rows: str = ""
    """What a single set of bare rows is called."""
    single: bool = False
    """Whether this is one step whose number is not known."""

    @property
    def noun(self) -> str:
        if self.sampler is None:
            return "set" if self.draws.canonical is None else "orbit"
        return _NOUNS.get(type(self.sampler).__name__, "set")

    @property
    def counter(self) -> str:
        """What a step is called: the steps of a block that does not start with step 0 have other numbers."""
        start = None if self.sampler is None else self.sampler[0].indices
        return "step" if np.array_equal(start, self.draws.indices[0]) else "draw"

    def argument(self, name: str) -> Any:
        """An argument of the sampler, None where it is not known."""
        return None if self.sampler is None else self.sampler.arguments.get(name)


def _shown(dataset: Dataset, draws: Any, sampler: Sampler | None) -> _Shown:
    table = dataset.factors if sampler is None else sampler.table
    if isinstance(draws, Draw):
        single = draws.indices.ndim == 2
        block = _block(draws) if single else draws
        _check_draw(dataset, table, block)
        return _Shown(dataset, table, block, sampler, single=single)
    if draws is None:
        count = min(_ROWS, len(dataset))
        rows = np.sort(permute(fold(0, 0), len(dataset), np.arange(count)))
        words = f"{count:,} of {len(dataset):,} rows" if count < len(dataset) else f"{count:,} rows"
    else:
        if isinstance(draws, Sampler) or hasattr(draws, "indices"):
            raise DataError(
                f"draws of show must be a draw or row numbers, not a {type(draws).__name__}; give it one step, such as "
                "sampler[0]"
            )
        rows = np.atleast_1d(check_rows(check_array(draws, "draws of show", DataError), len(dataset)))
        words = f"{rows.size:,} rows" if rows.size != 1 else f"row {rows.item():,}"
    if rows.ndim > 3 or not rows.size:
        raise DataError(
            f"draws of show must be row numbers of the shape (n,), (sets, size) or (steps, sets, size), at least one, "
            f"not {rows.shape}"
        )
    single = rows.ndim < 3
    block = rows.reshape((1,) * (3 - rows.ndim) + rows.shape)
    draw = Draw(block, _equal(dataset.factors, block))
    return _Shown(dataset, dataset.factors, draw, None, True, "" if rows.ndim > 1 else words, single)


def _equal(table: FactorTable, rows: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """Codes of the factors that are equal within sets, as those that a draw fixes."""
    found = {}
    for factor in table.factors:
        if factor.role in ("variation", "part"):
            codes = table.codes(factor.name, rows)
            equal = (codes == codes[..., :1]).all(axis=-1)
            if equal.any():
                found[factor.name] = np.where(equal, codes[..., 0], np.nan if factor.levels is None else -1)
    return found


def _block(draw: Draw) -> Draw:
    """A block of one step."""
    parts = (draw.mask, draw.canonical)
    return Draw(
        draw.indices[None],
        {name: np.asarray(codes)[None] for name, codes in draw.inactive.items()},
        *(None if part is None else part[None] for part in parts),
    )


def _check_draw(dataset: Dataset, table: FactorTable, draws: Draw) -> None:
    """Refuse the draw of another table, before a caption says something wrong."""
    if draws.indices.ndim != 3 or not draws.indices.size:
        raise DataError(f"a draw that is shown has the shape (sets, size), not {draws.indices.shape}")
    check_rows(draws.indices, len(dataset))
    for name, codes in draws.inactive.items():
        if name not in table.names:
            raise DataError(
                f"the draw fixes {name!r}, which is no factor of {dataset.name}: show it with the dataset that it was "
                "drawn from, or with its sampler, show(dataset, draw, sampler)"
            )
        levels = table[name].levels
        if levels is not None and len(levels) <= np.max(codes, initial=-1):
            raise DataError(
                f"the draw fixes {name} at level {np.max(codes)}, but {dataset.name} has {len(levels):,}: show it with "
                "the dataset that it was drawn from"
            )


def _triplets(shown: _Shown, sampler: Sampler, title: str | None, tile: int | None) -> "Page":
    rows = shown.draws.indices[0]
    explained = f"positive: same {', '.join(orbit_names(sampler))}; negative: another"
    first = rows[:_MEMBERS]
    images = _images(shown.dataset, first, tile)
    more = f"\n… and {len(rows) - len(first):,} more triplets" if len(rows) > len(first) else ""
    heading = f"{_heading(shown, 1)}\n{explained}" if title is None else title
    return triplet_page(
        [images[start : start + 3] for start in range(0, first.size, 3)], f"{heading}{more}".strip(), tile=tile
    )


def _blocks(shown: _Shown, steps: int, title: str | None, tile: int | None) -> "Page":
    draws = shown.draws
    total, sets, size = draws.indices.shape
    most = min(sets, _BLOCKS, max(8, _IMAGES // min(size, _MEMBERS)))
    steps = max(1, min(total, steps, 8 // sets))
    heading = _heading(shown, steps) if title is None else title
    if sets > most:
        heading += f"\nthe first {most} of {sets:,} {shown.noun}s"
    blocks = [(step, number) for step in range(steps) for number in range(most)]
    words = {step: describe(shown.table, draws.at(step), most) for step in range(steps)}
    chosen = tuple(np.array(blocks).T)
    first = draws.indices[chosen][:, :_MEMBERS]
    images = _images(shown.dataset, first, tile)
    return contact_page(
        [images[start : start + first.shape[1]] for start in range(0, first.size, first.shape[1])],
        [_caption(shown, words[step][number], step, number, steps) for step, number in blocks],
        heading.strip(),
        mask=None if draws.mask is None else draws.mask[chosen],
        canonical=None if draws.canonical is None else _images(shown.dataset, draws.canonical[chosen], tile),
        sizes=[words[step][number].members for step, number in blocks],
        limit=_MEMBERS,
        tile=tile,
    )


def _caption(shown: _Shown, found: SetWords, step: int, number: int, steps: int) -> str:
    label = shown.rows or f"{shown.noun} {number}"
    if steps > 1:
        label = f"{shown.counter} {step}, {label}"
    fixed = _join(found.held_words(shown.table, shown.argument("tolerance"), legible))
    if found.held or not shown.bare:
        label += f" · {'equal' if shown.bare else 'fixed'}: {fixed}"
    size = shown.draws.indices.shape[-1]
    if shown.bare and size == 1:
        return label
    short = f" · {found.members:,} of {size:,} positions" if found.members < size else ""
    return f"{label}{short}\nvaries: {_join(found.varying_words(shown.table))}"


def _join(words: str) -> str:
    """Keep each value with its name and unit on one line."""
    return ", ".join(item.replace(" ", "\u00a0") for item in words.split(", "))


def _heading(shown: _Shown, steps: int) -> str:
    name, noun = shown.dataset.name, shown.noun
    if shown.rows:
        return name
    total, sets, size = shown.draws.indices.shape
    what = f"{sets:,} {noun}{'s' * (sets > 1)}" + (f" of {size:,}" if noun != "triplet" else "")
    counter = shown.counter
    which = f"{counter} 0" if steps == 1 else f"{counter}s 0 to {steps - 1}"
    which += f" of {total:,}" if steps < total else ""
    seed, where = shown.argument("seed"), shown.argument("where")
    parts = [
        f"seed {seed}" if seed is not None else "",
        which if not shown.single else "",
        f"where {where}" if where else "",
    ]
    return "\n".join(line for line in (f"{name}: {what}", ", ".join(filter(None, parts))) if line)


def _images(dataset: Dataset, rows: npt.NDArray[np.int64], tile: int | None) -> Images:
    """Fetch the images of rows, flat; images of several sizes one by one, as thumbnails."""
    name = next((name for name, kind in dataset.modalities.items() if kind.color), None)
    if name is None:
        raise DataError(f"{dataset.name} has no images to show; its modalities: {', '.join(dataset.modalities)}")
    if None not in dataset.modalities[name].shape:
        return list(dataset.fetch(rows.reshape(-1), [name])[name])
    target = max(tile or 0, 128)
    return [np.asarray(thumbnail(dataset.fetch(row, [name])[name], target)) for row in rows.reshape(-1)]
