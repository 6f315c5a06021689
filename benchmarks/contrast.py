"""The contrastive loss of DCoDR on 4 domains of 32 images, forward and backward, beside a loop over its anchors.

On one thread, in CPU time. The loop is what the loss says: for each anchor its similarity to its copy, those to the
other images of its domain, and their log-sum-exp. The published code draws negatives anchor by anchor as well.
"""

from collections.abc import Iterator
from typing import Any

from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, duration

__all__ = ["rows"]

TOPIC = "contrast"
DOMAINS, SIZE, CODE = sized((4, 32, 128), (2, 4, 16))
TEMPERATURE = 0.2


def rows(full: bool) -> Iterator[Row]:
    if peer("torch") is None:
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield _contrast()
    finally:
        torch.set_num_threads(threads)


def _contrast() -> Row:
    import torch

    from setsup_papers.dcodr import domain_contrast_loss

    images, copies = (torch.randn(DOMAINS * SIZE, CODE, requires_grad=True) for _ in range(2))
    domains = torch.arange(DOMAINS).repeat_interleave(SIZE)

    def ours() -> Any:
        return domain_contrast_loss(images, copies, domains, temperature=TEMPERATURE)

    torch.testing.assert_close(ours(), _loop(images, copies, domains))
    sides = {
        "setsup": Side(lambda: ours().backward()),
        "loop": Side(lambda: _loop(images, copies, domains).backward()),
    }
    found = alternate(sides, blocks=11)
    what = f"contrast within {DOMAINS} domains of {SIZE} images, forward and backward"
    share = ratio(found["loop"], found["setsup"])
    return Row(
        TOPIC,
        what,
        duration(found["setsup"]),
        "a loop over anchors",
        duration(found["loop"]),
        share,
        "×",
        at_least(10),
    )


def _loop(images: Any, copies: Any, domains: Any) -> Any:
    """The same, anchor after anchor."""
    import torch
    from torch.nn.functional import normalize

    images, copies = normalize(images, dim=1), normalize(copies, dim=1)
    numbers = torch.arange(len(domains))
    losses = []
    for anchor, domain in enumerate(domains):
        near = images[anchor] @ copies[anchor] / TEMPERATURE
        others = images[(domains == domain) & (numbers != anchor)]
        far = others @ images[anchor] / TEMPERATURE
        losses.append(torch.cat([near[None], far]).logsumexp(0) - near)
    return torch.stack(losses).mean()
