"""Contrastive multiview coding: negatives from a large bank, half precision, pairs of views, and their preparation.

On one thread, in CPU time. The bank has the size of ImageNet's, 1.2 million rows of 128 dimensions, 614 MB, and every
call reads other rows: what it reads is not in a cache.
"""

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measure import Side, Spread, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, at_most, duration

__all__ = ["rows"]

TOPIC = "cmc"
IMAGES, SIZE, NEGATIVES = sized((1_200_000, 128, 4096), (2_000, 16, 64))
ANCHORS = sized(16, 2)
HALVED = sized((20_000, 256), (500, 64))
"""Rows of the banks in two precisions, and anchors."""

VIEWS = ("L", "ab", "depth", "normal", "label")


def rows(full: bool) -> Iterator[Row]:
    if peer("torch") is None:
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield from _negatives()
        yield _half()
        yield _pairs()
        yield from _preparation()
    finally:
        torch.set_num_threads(threads)


def _negatives() -> Iterator[Row]:
    """Draw and score, which copies no rows to memory, and draw and copy, beside an index."""
    import torch

    from setsup.methods.rows import RowState
    from setsup.random import stream_key
    from setsup_papers.cmc import draw_negatives

    values = torch.empty(IMAGES, SIZE).uniform_(-0.1, 0.1)
    bank, key = RowState(IMAGES, SIZE, initial=values), stream_key(0, "negatives")
    queries = torch.nn.functional.normalize(torch.randn(ANCHORS, SIZE), dim=1)
    own, steps = torch.arange(ANCHORS), iter(range(1_000_000))

    def drawn() -> torch.Tensor:
        return draw_negatives(key, next(steps), own, NEGATIVES, IMAGES)

    def indexed() -> torch.Tensor:
        return values[torch.randint(IMAGES, (ANCHORS, NEGATIVES))]

    sides = {
        "scores": Side(lambda: bank.scores(queries, drawn())),
        "gather": Side(lambda: bank.gather(drawn())),
        "products": Side(lambda: torch.bmm(indexed(), queries[:, :, None])),
        "indexed": Side(indexed),
    }
    with torch.no_grad():
        found = alternate(sides, blocks=11)
    negatives = f"{NEGATIVES:,} negatives of {ANCHORS} anchors each from {IMAGES:,} × {SIZE}"
    for what, name, other, against, bound in (
        ("drawn and scored", "scores", "products", "randint, an index, bmm", at_least(3)),
        ("drawn and scored", "scores", "indexed", "randint and an index alone", at_least(3)),
        ("drawn and copied", "gather", "indexed", "randint and an index", None),
    ):
        figure = ratio(found[other], found[name])
        row = duration(found[name]), against, duration(found[other]), figure, "×", bound
        yield Row(TOPIC, f"{negatives}: {what}", *row)


def _half() -> Row:
    """How much half-precision banks change the loss."""
    import torch
    from torch.nn.functional import normalize

    from setsup_papers.cmc import BankContrast

    images, anchors = HALVED
    kinds = (torch.float32, torch.float16)
    whole, half = (
        BankContrast((("L", "ab"),), images, SIZE, negatives=min(NEGATIVES, 1024), dtype=kind) for kind in kinds
    )
    changes = []
    for step in range(3):
        own = torch.arange(anchors) + anchors * (step % 2)
        near = {
            view: normalize(whole.banks[view].gather(own) + 0.5 * torch.randn(anchors, SIZE) / SIZE**0.5, dim=1)  # type: ignore[operator]
            for view in ("L", "ab")
        }
        with torch.no_grad():
            one, other = whole(near, own), half(near, own)
        changes += [abs(float(other[way] / loss) - 1) for way, loss in one.items()]
    what = f"loss of {anchors} anchors with a bank of float16"
    return Row(TOPIC, what, "float16", "float32", "float32", Spread.of([1000 * max(changes)]), "‰", at_most(1))


def _pairs() -> Row:
    """A pair in both directions, of the full graph of five views beside that of two."""
    import torch

    from setsup_papers.cmc import BankContrast, pair_views

    images = HALVED[0]
    sides = {}
    for count in (2, 5):
        pairs = pair_views(VIEWS[:count])
        contrast = BankContrast(pairs, images, SIZE, negatives=min(NEGATIVES, 1024))
        features = {view: torch.nn.functional.normalize(torch.randn(16, SIZE), dim=1) for view in VIEWS[:count]}
        sides[str(count)] = Side(lambda c=contrast, f=features: c(f, torch.arange(16)), units=len(pairs))  # type: ignore[misc]
    with torch.no_grad():
        found = alternate(sides, blocks=11)
    what = "a pair of views scored and its banks updated: one of the 10 pairs of five views"
    share = ratio(found["5"], found["2"])
    return Row(TOPIC, what, duration(found["5"]), "the only pair", duration(found["2"]), share, "×", at_most(1.15))


def _preparation() -> Iterator[Row]:
    """Crops, flips and Lab of a batch, as a share of a step of the network."""
    import torch

    from setsup.loading.transforms import Augment, Compose, Flip, ResizedCrop
    from setsup.loading.views import ColorViews

    for what, side, width, images, least in (
        ("ImageNet's half AlexNets, 256² to 224²", sized((256, 224), (80, 64)), 1.0, sized(16, 2), 0.2),
        ("STL-10's half AlexNets at half width, 96² to 64²", (96, 64), 0.5, sized(32, 2), 0.2),
    ):
        before, after = side
        batch = {
            "image": torch.randint(256, (1, images, 3, before, before), dtype=torch.uint8),
            "indices": torch.arange(images)[None],
            "mask": torch.ones(1, images, dtype=torch.bool),
            "factors": {},
            "step": 0,
        }
        prepared = Compose([Augment([ResizedCrop((after, after), (least, 1.0)), Flip()], seed=0), ColorViews("lab")])
        encoder = "alexnet" if width == 1 else "stl10"
        sides = {
            "step": Side(_step(prepared(batch), encoder, width)),
            "prepared": Side(lambda p=prepared, b=batch: p(b)),
        }
        found = alternate(sides, blocks=7)
        share = ratio(100 * found["prepared"], found["step"])
        bound = at_most(15) if width == 1 else None
        yield Row(
            TOPIC,
            f"crops, flips and Lab of {images} images: {what}",
            duration(found["prepared"]),
            "a step",
            duration(found["step"]),
            share,
            "%",
            bound,
        )


def _step(batch: Any, encoder: str, width: float) -> Callable[[], None]:
    """A step of training on views, with 4,096 negatives from a small bank."""
    import warnings

    from setsup.experiments.configs import build_method
    from setsup.experiments.optimisation import optimise
    from setsup_papers.cmc.settings import CMCSettings

    settings: Any = CMCSettings(encoder=encoder, width=width, negatives=NEGATIVES)  # type: ignore[arg-type]
    method: Any = build_method(settings.fit_to(batch), range(HALVED[0]), 0)  # type: ignore[arg-type]
    how = (settings.optimiser, settings.schedule)
    optimiser = optimise(method.parameters(), *how, steps=1)["optimizer"]

    def step() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Lightning, about logging without a Trainer
            loss = method.loss(batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step
