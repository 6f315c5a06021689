"""Damage a healthy file in many ways, and see that a reader either reads it or refuses it in one sentence."""

import random
import tracemalloc
from collections.abc import Callable, Iterator

from setsup.errors import SetsupError
from tests.traced import traced

_WORDS = (
    b"\0",
    b"\xff",
    b"\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff",
    b"-1 ",
    b"99999999 ",
    b"nan",
    b"\n",
    b"..",
    b"<",
    b"\x00\x01",
)


def mutations(healthy: bytes, rounds: int, seed: int = 0, head: int = 512) -> Iterator[bytes]:
    """Damaged copies of a file: bits flipped, words put in or over, parts cut out, cut off or doubled.

    Half of the damage falls on the first `head` bytes, where headers are.
    """
    dice = random.Random(seed)
    for _ in range(rounds):
        content = bytearray(healthy)
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(max(1, min(len(content), head) if dice.random() < 0.5 else len(content)))
            what = dice.randrange(6)
            if what == 0 and content:
                content[min(at, len(content) - 1)] ^= 1 << dice.randrange(8)
            elif what == 1:
                word = dice.choice(_WORDS)
                content[at : at + len(word)] = word
            elif what == 2:
                content[at:at] = dice.choice(_WORDS)
            elif what == 3:
                del content[at : at + dice.randint(1, 64)]
            elif what == 4:
                del content[at:]
            else:
                content[at:at] = content[at : at + dice.randint(1, 64)]
        yield bytes(content)


def survives(
    healthy: bytes,
    read: Callable[[bytes], object],
    rounds: int = 200,
    *,
    seed: int = 0,
    head: int = 512,
    times: int = 10,
    slack: int = 6 << 20,
) -> int:
    """Read damaged copies of a file; nothing but a SetsupError may come out, within ``times`` its size of memory.

    Parameters
    ----------
    healthy : bytes
        A whole file, which must be read without an error.
    read : callable
        Reads a file of the given content, all of it.
    slack : int, bytes
        Memory beside, for libraries that are imported or keep something.

    Returns
    -------
    int
        Damaged copies that were refused, so that a test can see that its damage is felt at all.

    """
    read(healthy)
    refused = 0
    with traced():
        for turn, content in enumerate(mutations(healthy, rounds, seed, head)):
            which, most = f"damaged copy {turn} of seed {seed}", times * len(content) + slack
            refusal, used = _tried(read, content, which)
            if used > most:  # threads that earlier tests left take memory, too; a bomb goes off each time
                _, used = _tried(read, content, which)
            assert used <= most, f"{which} took {used:,} bytes, twice"
            refused += refusal
    return refused


def _tried(read: Callable[[bytes], object], content: bytes, which: str) -> tuple[bool, int]:
    """Whether the content is refused, and the most bytes of memory that were taken meanwhile."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    refused = False
    try:
        read(content)
    except SetsupError as error:
        refused = True
        if "\n" in str(error):
            raise AssertionError(f"more than one line: {error}") from error
    except Exception as error:
        raise AssertionError(f"{which}: {type(error).__name__}: {error}") from error
    return refused, tracemalloc.get_traced_memory()[1] - before
