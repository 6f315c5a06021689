"""Pictures of what samplers draw, drawn while the site is built from data that needs no download."""

import io
from collections.abc import Callable
from functools import cache, partial

import camera_sheets
import numpy as np
import recipe_sheets
import rendered_sheets
from PIL import Image, ImageDraw

import setsup
from setsup.correspondence import overlap, spatial
from setsup.datasets import Dataset
from setsup.evaluation import nearest
from setsup.rendered.dataset import RenderedDataset
from setsup.reports import contact_sheet, describe, match_sheet, triplet_sheet
from setsup.reports.page import CAPTIONS, GUTTER, MARGIN, PADDING, SKIP, Cell, Page, lines_height
from setsup.reports.text_layout import wrap_text
from setsup.samplers import Sampler, Stepwise
from setsup.samplers.overlap.table import OverlapTable
from setsup.scenes.recipes import Room

NAME = "shapes3d-procedural"
WIDTH = 980
FEW = (
    "scale == 1.25 and orientation == 0.0 and wall_hue == 0.1 and floor_hue == 0.6 "
    "and object_hue in (0.0, 0.3, 0.5, 0.7)"
)
"""16 rows of the dataset."""
ONE = "scale == 1.25 and orientation == 0.0 and wall_hue == 0.6 and floor_hue == 0.3 and object_hue == 0.0"
"""Four rows, one of each shape."""
BANDS = ((1, 3), (3, 5), (5, 7), (7, 9))
"""Tenths of the overlap."""


@cache
def shapes() -> Dataset:
    """The dataset that all pictures show."""
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


def episodes() -> Image.Image:
    sampler = setsup.EpisodeSampler(shapes().factors, "object_hue", ways=3, shots=2, queries=6, across="shape")
    title = "EpisodeSampler(table, 'object_hue', ways=3, shots=2, queries=6, across='shape')"
    return setsup.show(shapes(), sampler[0], sampler, title=f"{title}\nframed: support").image


def hierarchies() -> Image.Image:
    sampler = setsup.HierarchicalSampler(shapes().factors, ["shape", "object_hue"], sets=[2, 3], size=4)
    return blocks(sampler, "HierarchicalSampler(table, ['shape', 'object_hue'], sets=[2, 3], size=4)")


def sequence_pairs() -> Image.Image:
    where = "scale == 1.25 and floor_hue in (0.2, 0.6) and wall_hue in (0.1, 0.5)"
    video = ["floor_hue", "wall_hue", "object_hue", "shape"]
    sampler = setsup.SequencePairSampler(shapes().factors, video, "orientation", window=13, pairs=6, where=where)
    title = "SequencePairSampler(table, video, 'orientation', window=13, pairs=6, where=…)"
    return setsup.show(shapes(), sampler[0], sampler, title=title).image


def constraints() -> Image.Image:
    positive = "shape == anchor.shape and object_hue != anchor.object_hue"
    negative = "object_hue == anchor.object_hue and shape != anchor.shape"
    sampler = setsup.TripletSampler(shapes().factors, triplets=8, positive=positive, negative=negative)
    images = shapes().fetch(sampler[0].indices)["image"]
    return triplet_sheet(images, f"TripletSampler\npositive: {positive}\nnegative: {negative}", width=WIDTH)


def neighbours() -> Image.Image:
    rows = np.flatnonzero(shapes().factors.mask("scale == 1.25 and orientation in (-30.0, 0.0, 30.0)"))[::4]
    images = shapes().fetch(rows)["image"]
    points = images.reshape(len(rows), 8, 8, 8, 8, 3).mean((2, 4)).reshape(len(rows), -1)
    table = np.full((len(shapes()), 10), -1)
    table[rows] = rows[nearest(points, points, 10, own=np.arange(len(rows)))[0]]
    positive, negative = "shape == anchor.shape and wall_hue != anchor.wall_hue", "shape != anchor.shape"
    sampler = setsup.NeighbourSampler(shapes().factors, table, positive, negative, 8, ranks={"negative": (1, 10)})
    title = f"NeighbourSampler\npositive: {positive}\nnegative, among the ten nearest rows: {negative}"
    return triplet_sheet(shapes().fetch(sampler[0].indices)["image"], title, width=WIDTH)


@cache
def rooms() -> tuple[RenderedDataset, OverlapTable]:
    """Rooms of which pairs of views are drawn by their overlap."""
    dataset = RenderedDataset(Room(rooms=4, pairs=6, size=(96, 128)), renderer="embree")
    return dataset, overlap(dataset, scene="room")


def overlaps(low: float = 0.3, high: float = 0.8, sets: int = 6) -> Image.Image:
    dataset, table = rooms()
    sampler = setsup.OverlapSampler(dataset.factors, table, overlap=(low, high), sets=sets)
    title = f"OverlapSampler(table, overlaps, overlap=({low}, {high}), sets={sets})"
    title += "\nin parentheses: the overlap of the second view with the first"
    return setsup.show(dataset, sampler[0], sampler, title=title).image


def overlap_matches() -> Image.Image:
    dataset, table = rooms()
    sampler = setsup.OverlapSampler(dataset.factors, table, overlap=(0.3, 0.8), size=3, form="star", sets=1)
    (first, *others), *_ = sampler[0].indices.tolist()
    pairs = [spatial(dataset.scene(first), dataset.camera(first), dataset.camera(other)) for other in others]
    images = [tuple(dataset.fetch([first, other], ["image"])["image"]) for other in others]
    found = table.overlap[table.find([first, first], others)]
    captions = [f"views 0 and {number}, overlap {share:.2f}" for number, share in enumerate(found, 1)]
    title = "OverlapSampler(…, overlap=(0.3, 0.8), size=3, form='star'): matches of its two pairs"
    return match_sheet(images, pairs, captions, title)


def factor_pairs() -> Image.Image:
    sampler = setsup.FactorPairSampler(shapes().factors, pairs=12, k=(1, 3))
    title = "FactorPairSampler(table, pairs=12, k=(1, 3))"
    return setsup.show(shapes(), sampler[0], sampler, title=title).image


def epochs() -> Image.Image:
    sampler = setsup.EpochSampler(shapes().factors, size=10, epochs=2, partial="pad", where=FEW)
    batches = sampler.block(0, len(sampler))
    images = shapes().fetch(batches.indices[:, 0])["image"]
    captions = [f"step {step}, epoch {step // sampler.steps_per_epoch}" for step in range(len(sampler))]
    title = "EpochSampler(table, size=10, epochs=2, partial='pad', where=…)"
    title += "\n16 rows: 2 steps per epoch; padding is grey"
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


def zips() -> Image.Image:
    labelled = setsup.SetSampler(shapes().factors, [], sets=1, size=8, where="orientation == 0")
    unlabelled = setsup.SetSampler(shapes().factors, [], sets=2, size=16, where="orientation != 0")
    title = "Zip(labelled, unlabelled)\nlabelled: 1 set of 8, where orientation == 0; unlabelled: 2 sets of 16"
    return blocks(setsup.Zip(labelled, unlabelled), title)


def colors() -> Image.Image:
    import torch  # only here, so that the other pictures need none

    from setsup.loading.views.colors import SPACES, in_color_space

    image = shapes().where(ONE).fetch(np.array([1]))["image"][0]
    pixels = torch.from_numpy(image).movedim(-1, 0)
    images, captions = [[image]], ["the image"]
    for name, space in SPACES.items():
        grey = (in_color_space(pixels, name, normalize=True).clamp(-1, 1) + 1) * 127.5
        images.append(list(grey.round().to(torch.uint8)[..., None].numpy()))
        captions.append(f"{name}\nviews {' and '.join(space.views)}")
    title = "ColorViews(space): the channels of each space, normalised\n-1 and below is black, 1 and above is white"
    return contact_sheet(images, captions, title, width=WIDTH)


def pixel_pairs() -> Image.Image:
    import torch  # only here, so that the other pictures need none

    from setsup.loading.views.pixels import PlanarPairs

    images = torch.from_numpy(shapes().where(ONE).fetch(np.arange(4))["image"])[None].movedim(-1, 2)
    batch = PlanarPairs(32, keep=0.25)({"image": images, "step": 3})
    views = [(batch[name][0] * 255).round().byte().movedim(1, -1).numpy() for name in ("view_1", "view_2")]
    partner, positive = batch["partner"][0].numpy(), batch["positive"][0].numpy()
    couples, captions = [], []
    for number in range(4):
        some = np.flatnonzero(positive[number])
        some = some[np.linspace(0, len(some) - 1, 12).round().astype(int)]
        couples.append(joined(views[0][number], views[1][number], some, partner[number][some]))
        text = f"{positive[number].sum()} of 1,024 pixels are positive\n12 of them and their partners"
        captions.append(wrap_text(text, couples[0].width, CAPTIONS))
    head = lines_height(captions[0]) + SKIP
    width, height = couples[0].width + 2 * PADDING, couples[0].height + head + 2 * PADDING
    title = "PlanarPairs(size=32, keep=0.25)\nfour images, each with view 1 on the left and view 2 on the right"
    page = Page(2 * (MARGIN + width) + GUTTER, 2 * height + GUTTER, title, Cell(*couples[0].size, couples[0].width))
    for number, (couple, caption) in enumerate(zip(couples, captions, strict=True)):
        left, top = MARGIN + number % 2 * (width + GUTTER), page.top + number // 2 * (height + GUTTER)
        page.card(left, top, width, height)
        page.write(left + PADDING, top + PADDING - 2, caption)
        page.place(np.asarray(couple), left + PADDING, top + PADDING + head)
    return page.image


def joined(one: np.ndarray, two: np.ndarray, pixels: np.ndarray, partners: np.ndarray) -> Image.Image:
    """Two square views side by side, and pixels of the first joined to pixels of the second."""
    factor, length = 12, len(one)  # drawn at twice the size, so that lines are smooth
    side, gap = length * factor, 3 * factor
    sheet = Image.new("RGB", (2 * side + gap, side), "white")
    for view, left in ((one, 0), (two, side + gap)):
        sheet.paste(Image.fromarray(view).resize((side, side), Image.Resampling.NEAREST), (left, 0))
    draw = ImageDraw.Draw(sheet)
    starts, ends = (np.stack([at % length, at // length], axis=-1) * factor + factor // 2 for at in (pixels, partners))
    for number, (start, end) in enumerate(zip(starts, ends + np.array([side + gap, 0]), strict=True)):
        color = f"hsl({360 * number // len(pixels)}, 90%, 55%)"
        draw.line([*start, *end], fill=color, width=3)
        for x, y in (start, end):
            draw.ellipse((x - 8, y - 8, x + 8, y + 8), fill=color, outline="white", width=3)
    return sheet.resize((sheet.width // 2, sheet.height // 2), Image.Resampling.LANCZOS)


def of_shapes(sheet: Callable[[Dataset], Image.Image]) -> Image.Image:
    """A sheet of the dataset that all pictures show."""
    return sheet(shapes())


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
            held, varies = words.fixed_words(dataset.factors), words.varying_words(dataset.factors)
            captions.append(f"{label} · fixed: {_whole(held)}\nvaries: {_whole(varies)}")
    images = dataset.fetch(draws.indices)["image"]
    flat = images.reshape(-1, *images.shape[2:])
    canonical = None if draws.canonical is None else dataset.fetch(draws.canonical.reshape(-1))["image"]
    mask = None if draws.mask is None else draws.mask.reshape(-1, draws.mask.shape[-1])
    return contact_sheet(flat, captions, title, mask=mask, canonical=canonical, width=WIDTH)


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
    "episode": episodes,
    "hierarchical": hierarchies,
    "sequence-pair": sequence_pairs,
    "constraints": constraints,
    "neighbour": neighbours,
    "overlap": overlaps,
    **{f"overlap-{low}-{high}": partial(overlaps, low / 10, high / 10, 3) for low, high in BANDS},
    "overlap-star": overlap_matches,
    "factor-pair": factor_pairs,
    "epoch": epochs,
    "mixture": mixtures,
    "zip": zips,
    "colors": colors,
    "pixel-pairs": pixel_pairs,
    **{name: partial(of_shapes, sheet) for name, sheet in recipe_sheets.SHEETS.items()},
    **rendered_sheets.SHEETS,
    **camera_sheets.SHEETS,
    NAME: rows,
}
"""What makes the picture of each name."""
