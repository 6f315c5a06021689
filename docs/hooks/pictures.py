"""Pictures of what samplers draw, drawn while the site is built from data that needs no download."""

import io
from collections.abc import Callable
from functools import cache

from PIL import Image

import setsup
from setsup.datasets import Dataset
from setsup.reports import contact_sheet, describe, triplet_sheet
from setsup.samplers import Sampler, Stepwise

NAME = "shapes3d-procedural"
WIDTH = 980
FEW = (
    "scale == 1.25 and orientation == 0.0 and wall_hue == 0.1 and floor_hue == 0.6 "
    "and object_hue in (0.0, 0.3, 0.5, 0.7)"
)
"""16 rows of the data set."""


@cache
def shapes() -> Dataset:
    """The data set that all pictures show."""
    return setsup.load(NAME)


def png(sheet: Image.Image) -> bytes:
    """PNG as small as it gets without a loss."""
    stream = io.BytesIO()
    sheet.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def sets() -> Image.Image:
    sampler = setsup.SetSampler(shapes().factors, inactive=["wall_hue"], size=16)
    return blocks(sampler, "SetSampler(table, inactive=['wall_hue'], size=16)")


def active() -> Image.Image:
    sampler = setsup.SetSampler(shapes().factors, active=["orientation", "scale"], size=16, seed=7)
    return blocks(sampler, "SetSampler(table, active=['orientation', 'scale'], size=16, seed=7)")


def pair() -> Image.Image:
    sampler = setsup.SetSampler(shapes().factors, inactive=[["object_hue", "shape"], []], size=16)
    return blocks(sampler, "SetSampler(table, inactive=[['object_hue', 'shape'], []], size=16)")


def domains() -> Image.Image:
    sampler = setsup.DomainSampler(shapes().factors, "shape", sets=2, size=8)
    return blocks(sampler, "DomainSampler(table, 'shape', sets=2, size=8)", "domain", steps=2)


def orbits() -> Image.Image:
    orbit = ["floor_hue", "wall_hue", "object_hue", "scale", "shape"]
    sampler = setsup.OrbitSampler(shapes().factors, orbit, sets=2, canonical={"orientation": 0.0}, seed=4)
    return blocks(sampler, "OrbitSampler(table, orbit, sets=2, canonical={'orientation': 0.0}, seed=4)", "orbit")


def triplets() -> Image.Image:
    sampler = setsup.TripletSampler(shapes().factors, "object_hue", triplets=12)
    images = shapes().fetch(sampler[0].indices)["image"]
    title = "TripletSampler(table, 'object_hue', triplets=12)\npositive: the anchor's object_hue; negative: another"
    return triplet_sheet(images, title, width=WIDTH)


def epochs() -> Image.Image:
    sampler = setsup.EpochSampler(shapes().factors, size=10, epochs=2, partial="pad", where=FEW)
    batches = sampler.block(0, len(sampler))
    images = shapes().fetch(batches.indices[:, 0])["image"]
    captions = [f"step {step}, epoch {step // sampler.steps_per_epoch}" for step in range(len(sampler))]
    title = "EpochSampler(table, size=10, epochs=2, partial='pad', where=…)"
    title += "\n16 rows: 2 steps an epoch; padded slots are grey"
    mask = None if batches.mask is None else batches.mask[:, 0]
    return contact_sheet(images, captions, title, mask=mask, width=WIDTH)


def mixtures() -> Image.Image:
    both = setsup.concat(shapes().where("shape == 'cube'"), shapes().where("shape == 'sphere'"))
    base = setsup.SetSampler(both.factors, inactive=[["wall_hue"], []], where="part == 'a'", size=16)
    mixed = setsup.Mixture(base, pool="part == 'b'", sets=[1], p=Stepwise(0.5, every=1000, levels=3))
    images, captions = [], []
    for step, share in ((0, 0.0), (1000, 0.25), (2000, 0.5)):
        draw = mixed[step]
        images.append(both.fetch(draw.indices[1])["image"])
        spheres = int((both.factors.values("part", draw.indices[1]) == "b").sum())
        captions.append(f"step {step:,}, set 1: p = {share:g}\n{spheres} of 16 slots from the pool")
    title = "Mixture(base, pool=\"part == 'b'\", sets=[1], p=Stepwise(0.5, every=1000, levels=3))"
    title += "\npart a: cubes; part b, the pool: spheres"
    return contact_sheet(images, captions, title, width=WIDTH)


def rows() -> Image.Image:
    batch = setsup.EpochSampler(shapes().factors, size=24)[0]
    return contact_sheet(shapes().fetch(batch.indices)["image"], ["24 rows"], NAME, width=WIDTH)


def blocks(sampler: Sampler, title: str, noun: str = "set", steps: int = 1) -> Image.Image:
    """Sheet of the first steps of a sampler, with what is held and what varies."""
    dataset = shapes()
    draws = sampler.block(0, steps)
    captions: list[str] = []
    for step in range(steps):
        for number, words in enumerate(describe(dataset.factors, draws.at(step))):
            label = f"{noun} {number}" if steps == 1 else f"step {step}, {noun} {number}"
            held, varies = words.held_words(dataset.factors), words.varying_words(dataset.factors)
            captions.append(f"{label} · held: {_whole(held)}\nvaries: {_whole(varies)}")
    images = dataset.fetch(draws.indices)["image"]
    flat = images.reshape(-1, *images.shape[2:])
    canonical = None if draws.canonical is None else dataset.fetch(draws.canonical.reshape(-1))["image"]
    return contact_sheet(flat, captions, title, canonical=canonical, width=WIDTH)


def _whole(words: str) -> str:
    """Keep each value with its name and unit on one line."""
    return ", ".join(word.replace(" ", "\u00a0") for word in words.split(", "))


PICTURES: dict[str, Callable[[], Image.Image]] = {
    "set": sets,
    "set-active": active,
    "set-pair": pair,
    "domain": domains,
    "orbit": orbits,
    "triplet": triplets,
    "epoch": epochs,
    "mixture": mixtures,
    NAME: rows,
}
"""What makes the picture of each name."""
