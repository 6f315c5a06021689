"""Keyed randomness: numbers that are a function of their key, not of a history.

Every sampler, recipe and transform is built on two primitives. *Keyed bits* turn key words (seed, stream, step, set,
position) into 64 uniform bits; *keyed permutations* are bijections on 0 … n − 1 that are evaluated only where needed.
There is no state, and nothing depends on the platform: the arithmetic is that of 64-bit integers, and products of
exactly representable doubles.

Keys fold one word at a time with the SplitMix64 step, ``fold(key, word) = mix(key + γ·(word + 1))``, whose mixer is a
bijection [1]_. Different words of one key can therefore never collide, and no two key words are ever summed: a mixer
separates the seed from the step, and the step from the set.

References
----------
.. [1] G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
.. [2] M. Luby, C. Rackoff, "How to construct pseudorandom permutations from pseudorandom functions", 1988.

"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Rows, Words
from setsup.checks import check_integer, check_string, is_integer
from setsup.errors import SamplerError, abbreviate

__all__ = [
    "below_few",
    "fold",
    "fold_integers",
    "leading",
    "mix",
    "permute",
    "randint_below",
    "seeds",
    "spread",
    "stream_key",
    "uniform",
]


_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_M1_INT, _M2_INT = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
# arrays of no axis: a numpy scalar, or an int, costs as much again as the shift of a few words
_M1, _M2, _11, _27, _30, _31, _32 = (np.array(n, dtype=np.uint64) for n in (_M1_INT, _M2_INT, 11, 27, 30, 31, 32))
_WORD = np.dtype(np.uint64)
_LOW_32 = np.array(2**32 - 1, dtype=np.uint64)
_EXACT = 2**53  # up to here numbers below n are products of doubles: 53 bits reach each of them
_SMALL = 4096  # up to here a permutation is a sort of keyed words: a Feistel network is not uniform for small n
_ROUNDS = 8
_CHUNK = 1 << 21  # words sorted at a time, to bound the memory of large blocks

_INDEX = np.arange(_SMALL, dtype=np.uint64)
_LOWER, _UPPER = (np.array(n, dtype=np.uint64) for n in (_SMALL - 1, _MASK ^ (_SMALL - 1)))


def stream_key(seed: int, stream: str) -> int:
    """Key of a named stream of a seed; the name enters by a fixed digest.

    Parameters
    ----------
    seed : int
        0 ≤ seed < 2⁶⁴.
    stream : str
        Any text; two consumers with one seed are independent exactly when their streams differ.

    Raises
    ------
    SamplerError
        When the seed is out of range, or the stream no text.

    Examples
    --------
    >>> stream_key(0, "SetSampler") != stream_key(1, "SetSampler") != stream_key(1, "other")
    True

    """
    if not is_integer(seed) or not 0 <= seed <= _MASK:
        raise SamplerError(f"the seed must be an integer from 0 to 2**64 - 1, not {abbreviate(seed)}")
    digest = hashlib.blake2b(check_string(stream, "the stream", SamplerError).encode(), digest_size=8).digest()
    return fold_integers(int.from_bytes(digest, "little"), int(seed))


def fold_integers(key: int, word: int) -> int:
    """As :func:`fold`, of single integers.

    Examples
    --------
    >>> fold_integers(stream_key(0, "example"), 3) == int(fold(stream_key(0, "example"), 3))
    True

    """
    z = (key + _GOLDEN * (word + 1)) & _MASK
    z = ((z ^ (z >> 30)) * _M1_INT) & _MASK
    z = ((z ^ (z >> 27)) * _M2_INT) & _MASK
    return z ^ (z >> 31)


def fold(key: int | Words, word: int | npt.NDArray[Any]) -> Words:
    """Key or bits that belong to one more key word.

    Parameters
    ----------
    key : int or uint64 array
        From :func:`stream_key`, or from another fold.
    word : int or unsigned integer array
        Step, set, slot …; broadcast against the key.

    Returns
    -------
    uint64 array of the broadcast shape: 64 uniform bits each, and a key for further words

    Examples
    --------
    >>> import numpy as np
    >>> steps = fold(stream_key(0, "example"), np.arange(4, dtype=np.uint64))
    >>> fold(steps[:, None], np.arange(3, dtype=np.uint64)).shape
    (4, 3)

    """
    if isinstance(key, int) and isinstance(word, int):
        return np.array(fold_integers(key, word), dtype=np.uint64)
    return mix(key, spread(word))


def seeds(seed: int, stream: str, step: int, shape: Sequence[int]) -> Words:
    """One seed for each image of a step, for random generators of other libraries.

    That of position p in set s is ``fold(fold(fold(stream_key(seed, stream), step), s), p)``: a function of these five
    alone, the same on every platform, rank and worker, and after a resume. Seeds of different images of one set are
    different, and so are those of one position in different steps or sets; all others are independent and uniform on
    0 … 2⁶⁴ − 1.

    Parameters
    ----------
    seed : int
        0 ≤ seed < 2⁶⁴.
    stream : str
        Two transforms with one seed draw the same numbers unless their streams differ.
    step : int
        Number of the draw, ``batch["step"]``.
    shape : sequence of int
        Axes to number, such as (sets, size) of ``batch["indices"].shape``; (sets,) gives one seed per set, and () one
        per step.

    Returns
    -------
    uint64 array of that shape

    Raises
    ------
    SamplerError
        If the seed, the step or a length is out of range, or the stream is no string.

    Examples
    --------
    >>> found = seeds(0, "flips", step=17, shape=(2, 4))
    >>> found.shape, found.dtype
    ((2, 4), dtype('uint64'))
    >>> generator = np.random.default_rng(int(found[1, 3]))
    >>> bool(found[1, 3] == seeds(0, "flips", step=17, shape=(8, 8))[1, 3])
    True

    """
    found = fold(stream_key(seed, stream), check_integer(step, "the step", SamplerError, 0, _MASK))
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise SamplerError(f"the shape must be a sequence of lengths, such as (sets, size), not {abbreviate(shape)}")
    for length in shape:
        found = fold(found[..., None], np.arange(check_integer(length, "a length", SamplerError), dtype=np.uint64))
    return found


def spread(word: int | npt.NDArray[Any]) -> Any:
    """First half of a fold, γ·(word + 1) modulo 2⁶⁴: what words that never change need only once.

    Returns
    -------
    uint64 scalar or array of the shape of ``word``

    """
    if isinstance(word, int):
        return np.uint64((_GOLDEN * (word + 1)) & _MASK)
    # as functions: between scalars, operators would warn that they wrap around
    return np.multiply(np.add(word.astype(np.uint64, copy=False), np.uint64(1)), np.uint64(_GOLDEN))


def mix(key: int | Words, spread_word: Any) -> Words:
    """Second half of a fold: ``mix(key, spread(word))`` is ``fold(key, word)``."""
    return _mixed(np.asarray(np.add(np.array(key, _WORD) if isinstance(key, int) else key, spread_word)))


def _mixed(z: Words) -> Words:
    """SplitMix64 finaliser, in place."""
    z ^= z >> _30
    z *= _M1
    z ^= z >> _27
    z *= _M2
    z ^= z >> _31
    return z


_INDEX_SPREAD = spread(_INDEX)


def uniform(bits: Words) -> npt.NDArray[np.float64]:
    """Doubles in [0, 1): the upper 53 of 64 bits."""
    return (bits >> _11) * np.float64(2.0**-53)


def randint_below(bits: Words, n: int | npt.NDArray[Any]) -> Rows:
    """Integers 0 … n − 1: ``floor((bits >> 11)·2⁻⁵³·n)``; beyond 2⁵³, where that leaves some out, ``floor(u·n)``.

    There u is the binary fraction whose first 64 digits are the bits, and whose next 64 are their fold with 0; the
    product is exact.

    Parameters
    ----------
    bits : uint64 array
        From :func:`fold`.
    n : int or integer array
        Positive, below 2⁶³; broadcast against the bits.

    Examples
    --------
    >>> import numpy as np
    >>> randint_below(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64), 10)
    array([0, 5, 9])

    """
    if isinstance(n, int):
        return below_few(bits, n) if n <= _EXACT else _of_fraction(bits, np.uint64(n))
    large = n > _EXACT
    if not np.count_nonzero(large):
        return below_few(bits, n)
    return np.where(large, _of_fraction(bits, np.asarray(n).astype(np.uint64)), below_few(bits, n))


def below_few(bits: Words, n: int | npt.NDArray[Any]) -> Rows:
    """As :func:`randint_below`, for n that are known not to exceed 2⁵³, as numbers of what is in memory do not.

    Examples
    --------
    >>> below_few(np.array([0, 1 << 63, (1 << 64) - 1], np.uint64), 10).tolist()
    [0, 5, 9]

    """
    # n·2⁻⁵³ is exact, so this product is rounded once, as the formula's is
    return ((bits >> _11) * (n * 2.0**-53)).astype(np.int64)


def _of_fraction(bits: Words, n: Any) -> Rows:
    """``floor(u·n)`` of fractions of 128 binary digits, for n below 2⁶³."""
    high, low = _product(bits, n)
    more, _ = _product(fold(bits, 0), n)
    carried = np.add(low, more) < low  # as a function: between scalars, the operator would warn that it wraps around
    return (high + carried).astype(np.int64)


def _product(one: Words, two: Words) -> tuple[Words, Words]:
    """Upper and lower 64 digits of products."""
    one_high, one_low, two_high, two_low = one >> _32, one & _LOW_32, two >> _32, two & _LOW_32
    # none of these sums exceeds 2⁶⁴ − 1
    middle = one_high * two_low + (one_low * two_low >> _32)
    cross = one_low * two_high + (middle & _LOW_32)
    return one_high * two_high + (middle >> _32) + (cross >> _32), np.multiply(one, two)


def permute(keys: npt.ArrayLike, n: npt.ArrayLike, positions: npt.ArrayLike) -> Rows:
    """Images of positions under keyed permutations of 0 … n − 1.

    Up to 4,096 elements the permutation is the order of keyed words (their upper 52 bits, ties by index); above, a
    Feistel network of 8 rounds on the next power of two, walked until it falls below n [2]_.

    Parameters
    ----------
    keys : (...) uint64
        One permutation each, from :func:`fold`.
    n : int or (...) integers
        Their sizes; at least 1, if there are positions.
    positions : (..., k) integers
        0 ≤ position < n, for each permutation.

    Returns
    -------
    (..., k) int64

    Raises
    ------
    SamplerError
        When there are positions, but a size is less than 1.

    Examples
    --------
    >>> import numpy as np
    >>> order = permute(np.uint64(stream_key(0, "example")), 5, np.arange(5))
    >>> sorted(order.tolist())
    [0, 1, 2, 3, 4]

    """
    where = np.asarray(positions, dtype=np.int64)
    lead = where.shape[:-1]
    key = np.broadcast_to(np.asarray(keys, dtype=np.uint64), lead).reshape(-1)
    size = np.broadcast_to(np.asarray(n, dtype=np.int64), lead).reshape(-1)
    flat = where.reshape(len(key), where.shape[-1])
    found = np.empty(flat.shape, dtype=np.int64)
    if not found.size:
        return found.reshape(where.shape)
    if size.min() < 1:
        raise SamplerError(f"n must be at least 1 to permute {flat.shape[1]:,} positions, not {size.min()}")
    small = size <= _SMALL
    for some, law in ((small, _sorted_words), (~small, _feistel)):
        if some.any():
            found[some] = law(key[some], size[some], flat[some])
    return found.reshape(where.shape)


def leading(keys: Words, n: int | Rows, k: int) -> Rows:
    """First k images of keyed permutations: ``permute(keys, n, 0 … k − 1)``.

    Parameters
    ----------
    keys : (draws,) uint64
        One permutation each.
    n : int or (draws,) int64
        Their sizes, at least k.
    k : int
        Images of each.

    Returns
    -------
    (draws, k) int64

    """
    width = n if isinstance(n, int) else int(n.max())
    if width <= _SMALL and width * len(keys) <= _CHUNK:
        return _order(keys, width, None if isinstance(n, int) else n)[:, :k].astype(np.int64)
    return permute(keys, n, np.broadcast_to(np.arange(k), (len(keys), k)))


def _order(keys: Words, width: int, sizes: Rows | None = None) -> Words:
    """Keyed words in order, their indices in the low bits; so a plain sort is a stable argsort of the upper 52.

    Where ``sizes`` (keys,) are given, words beyond them come last.
    """
    words = mix(keys[:, None], _INDEX_SPREAD[:width])
    words &= _UPPER
    words |= _INDEX[:width]
    if sizes is not None and np.count_nonzero(sizes != width):
        words[_INDEX[:width] >= sizes[:, None].astype(np.uint64)] = np.uint64(_MASK)
    words.sort(axis=-1)
    words &= _LOWER
    return words


def _sorted_words(key: Words, size: Rows, positions: Rows) -> Rows:
    """Order of keyed words, one row a permutation."""
    width = int(size.max())
    step = max(1, _CHUNK // width)
    found = np.empty(positions.shape, dtype=np.int64)
    for start in range(0, len(key), step):
        rows = slice(start, start + step)
        found[rows] = np.take_along_axis(_order(key[rows], width, size[rows]), positions[rows], axis=-1)
    return found


def _feistel(key: Words, size: Rows, positions: Rows) -> Rows:
    """Cycle-walking Feistel network, one row a permutation."""
    total = np.frompyfunc(lambda m: int(m - 1).bit_length(), 1, 1)(size).astype(np.uint64)
    shape = positions.shape
    right = np.broadcast_to(((total + np.uint64(1)) // np.uint64(2))[:, None], shape)
    left = np.broadcast_to((total // np.uint64(2))[:, None], shape)
    rounds = fold(key[:, None], np.arange(_ROUNDS, dtype=np.uint64))
    value = _network(positions.astype(np.uint64), left, right, [rounds[:, r : r + 1] for r in range(_ROUNDS)])
    limit = np.broadcast_to(size.astype(np.uint64)[:, None], shape)
    while True:
        outside = np.nonzero(value >= limit)
        if not len(outside[0]):
            return value.astype(np.int64)
        walked = [rounds[outside[0], r] for r in range(_ROUNDS)]
        value[outside] = _network(value[outside], left[outside], right[outside], walked)


def _network(value: Words, left: Words, right: Words, rounds: list[Words]) -> Words:
    """Unbalanced Feistel network on left + right bits; halves change places each round, and 8 rounds restore them."""
    high, low = value >> right, value & ((np.uint64(1) << right) - np.uint64(1))
    high_shift, low_shift = np.uint64(64) - left, np.uint64(64) - right
    for key in rounds:
        z = (low ^ key) * _M1
        z ^= z >> np.uint64(29)
        z *= _M2
        high, low = low, high ^ (z >> high_shift)
        high_shift, low_shift = low_shift, high_shift
    return (high << right) | low
