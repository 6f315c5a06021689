"""The contact sheet of ``setsup sample``."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError
from setsup.reports import contact_sheet, describe, triplet_sheet
from setsup.reports.lettering import legible
from setsup.reports.thumbnails import thumbnail

if TYPE_CHECKING:
    from PIL.Image import Image

    from setsup.datasets import Dataset
    from setsup.samplers import Draw, Sampler

__all__ = ["draw_sheet", "orbit"]

_MEMBERS = 64
_BLOCKS = 32
_IMAGES = 512
_NOUNS = {"DomainSampler": "domain", "OrbitSampler": "orbit", "TripletSampler": "triplet"}

Images = list[npt.NDArray[Any]]


def draw_sheet(dataset: "Dataset", sampler: "Sampler", draws: "Draw", steps: int) -> "Image":
    """Show the first steps of a block of draws."""
    if _noun(sampler) == "triplet":
        title, rows = _title(dataset, sampler, draws, 1), draws.indices[0]
        explained = f"positive: same {', '.join(orbit(sampler))}; negative: another"
        shown = rows[:_MEMBERS]
        images = _images(dataset, shown)
        more = f"\n… and {len(rows) - len(shown):,} more triplets" if len(rows) > len(shown) else ""
        return triplet_sheet(
            [images[start : start + 3] for start in range(0, shown.size, 3)], f"{title}\n{explained}{more}"
        )
    return _blocks_sheet(dataset, sampler, draws, steps)


def _blocks_sheet(dataset: "Dataset", sampler: "Sampler", draws: "Draw", steps: int) -> "Image":
    total, sets, size = draws.indices.shape
    most = min(sets, _BLOCKS, max(8, _IMAGES // min(size, _MEMBERS)))
    steps = max(1, min(total, steps, 8 // sets))
    title = _title(dataset, sampler, draws, steps)
    blocks = [(step, number) for step in range(steps) for number in range(most)]
    table, noun = dataset.factors, _noun(sampler)
    words = {step: describe(table, draws.at(step), most) for step in range(steps)}
    captions = []
    for step, number in blocks:
        found = words[step][number]
        label = f"{noun} {number}" if steps == 1 else f"step {step}, {noun} {number}"
        fixed = found.held_words(table, sampler.arguments.get("tolerance"), legible)
        varies = found.varying_words(table)
        short = f" · {found.members:,} of {size:,} positions" if found.members < size else ""
        captions.append(f"{label} · fixed: {_join(fixed)}{short}\nvaries: {_join(varies)}")
    if sets > most:
        title += f"\nthe first {most} of {sets:,} {noun}s"
    chosen = tuple(np.array(blocks).T)
    shown = draws.indices[chosen][:, :_MEMBERS]
    images = _images(dataset, shown)
    return contact_sheet(
        [images[start : start + shown.shape[1]] for start in range(0, shown.size, shown.shape[1])],
        captions,
        title,
        mask=None if draws.mask is None else draws.mask[chosen],
        canonical=None if draws.canonical is None else _images(dataset, draws.canonical[chosen]),
        sizes=[words[step][number].members for step, number in blocks],
        limit=_MEMBERS,
    )


def _noun(sampler: "Sampler") -> str:
    return _NOUNS.get(type(sampler).__name__, "set")


def _join(words: str) -> str:
    """Keep each value with its name and unit on one line."""
    return ", ".join(item.replace(" ", "\u00a0") for item in words.split(", "))


def _title(dataset: "Dataset", sampler: "Sampler", draws: "Draw", shown: int) -> str:
    noun = _noun(sampler)
    steps, sets, size = draws.indices.shape
    what = f"{sets:,} {noun}{'s' * (sets > 1)}" + (f" of {size:,}" if noun != "triplet" else "")
    which = "step 0" if shown == 1 else f"steps 0 to {shown - 1}"
    which += f" of {steps:,}" if shown < steps else ""
    where = sampler.arguments.get("where")
    return f"{dataset.name}: {what}\nseed {sampler.arguments['seed']}, {which}" + (f", where {where}" if where else "")


def orbit(sampler: "Sampler") -> list[str]:
    """Factors that anchor and positive of a triplet share."""
    named = sampler.arguments["orbit"]
    return [named] if isinstance(named, str) else list(named)


def _images(dataset: "Dataset", rows: npt.NDArray[np.int64]) -> Images:
    """Fetch the images of rows, flat; images of several sizes one by one, as thumbnails."""
    name = next((name for name, kind in dataset.modalities.items() if kind.color), None)
    if name is None:
        raise DataError(f"{dataset.name} has no images to show; its modalities: {', '.join(dataset.modalities)}")
    if None not in dataset.modalities[name].shape:
        return list(dataset.fetch(rows.reshape(-1), [name])[name])
    return [np.asarray(thumbnail(dataset.fetch(row, [name])[name], 128)) for row in rows.reshape(-1)]
