"""Orbits: mining of triplets beside a loop, and rendering as a share of a training step, on one thread, in CPU time.

The step is that of triplets on Affine MNIST: forward, loss, backward and Adam of the paper's encoder, 256 images of
40 x 40 pixels. The digits are random, which changes no time.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, at_most, duration

__all__ = ["rows"]

TOPIC = "orbits"
ORBITS, MEMBERS = sized((32, 8), (4, 4))
CHANNELS, CODE = sized(((16, 32, 64, 128), 1024), ((4, 8, 16, 32), 64))
MARGIN = 0.2
FACTORS = {"rotation": 1.5, "shear": 0.3, "translation_x": 15.0, "translation_y": 15.0}


def rows(full: bool) -> Iterator[Row]:
    if peer("torch") is None:
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield _mining()
        yield _members()
    finally:
        torch.set_num_threads(threads)


def _mining() -> Row:
    import torch

    from setsup_papers.orbits.losses import mine_triplets

    points = torch.nn.functional.normalize(torch.randn(ORBITS * MEMBERS, CODE), dim=1)
    orbit = torch.arange(len(points)) // MEMBERS
    distances = torch.cdist(points, points).square()
    listed, numbers = distances.tolist(), orbit.tolist()
    assert torch.stack(mine_triplets(distances, orbit), 1).tolist() == _loop(listed, numbers)
    sides = {
        "setsup": Side(lambda: mine_triplets(distances, orbit)),
        "loop": Side(lambda: _loop(listed, numbers)),
    }
    found = alternate(sides, blocks=5)
    what = f"triplets mined from the distances of {len(points)} images"
    share = ratio(found["loop"], found["setsup"])
    return Row(
        TOPIC,
        what,
        duration(found["setsup"]),
        "a loop over triplets",
        duration(found["loop"]),
        share,
        "×",
        at_least(10),
    )


def _loop(distances: list[list[float]], orbit: list[int]) -> list[list[int]]:
    """The same triplets, candidate by candidate."""
    triplets = []
    for anchor, row in enumerate(distances):
        own = orbit[anchor]
        for positive, near in enumerate(row):
            if positive == anchor or orbit[positive] != own:
                continue
            nearest, farthest, chosen, last = math.inf, -1.0, -1, -1
            for negative, far in enumerate(row):
                if orbit[negative] != own:
                    if near < far < nearest:
                        nearest, chosen = far, negative
                    if far >= farthest:
                        farthest, last = far, negative
            triplets.append([anchor, positive, last if chosen < 0 else chosen])
    return triplets


def _members() -> Row:
    import torch

    from setsup_papers.orbits import AffineMembers

    shape = (ORBITS, MEMBERS)
    digits = torch.randint(0, 256, (*shape, 1, 28, 28), dtype=torch.uint8)
    factors = {name: (2 * torch.rand(shape) - 1) * most for name, most in FACTORS.items()}
    batch = {"original": digits, "factors": factors | {"scale": 0.7 + 0.6 * torch.rand(shape)}}
    batch["canonical_original"] = digits[:, 0]
    render = AffineMembers()
    sides = {"step": Side(_step(render(batch)["image"])), "members": Side(lambda: render(batch))}
    found = alternate(sides, blocks=11)
    what = f"{ORBITS * MEMBERS} affine members and {ORBITS} canonical images rendered"
    share = ratio(100 * found["members"], found["step"])
    return Row(TOPIC, what, duration(found["members"]), "a step", duration(found["step"]), share, "%", at_most(5))


def _step(images: Any) -> Callable[[], None]:
    """A step of training on images (orbits, members, 1, height, width) uint8."""
    import torch

    from setsup_papers.orbits import OrbitEncoder, triplet_loss

    network = OrbitEncoder((1, 40, 40), CHANNELS, CODE).to(memory_format=torch.channels_last)
    adam = torch.optim.Adam(network.parameters(), lr=1e-3)
    orbit = torch.arange(ORBITS * MEMBERS) // MEMBERS

    def step() -> None:
        adam.zero_grad()
        codes = network(images.flatten(0, 1).float() / 255)[0]
        triplet_loss(torch.nn.functional.normalize(codes, dim=-1), orbit, margin=MARGIN).backward()
        adam.step()

    return step
