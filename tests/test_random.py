"""The keyed primitives: against SplitMix64 in plain integers, and against chi-square laws."""

import hashlib
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from setsup.errors import SamplerError
from setsup.random import fold, leading, mix, permute, randint_below, seeds, spread, stream_key, uniform

WORD = 2**64
RARE = 1e-5  # every statistic below is a fixed number, for its seed is; so none of them can flicker


def splitmix(state: int) -> int:
    """The generator's output for a state, as printed in figure 16 of the paper (64 bits, variant 13 of the mixer)."""
    z = state % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def reference_fold(key: int, word: int) -> int:
    return splitmix(key + 0x9E3779B97F4A7C15 * (word + 1))


def keys_of(count: int, seed: int = 0, stream: str = "test") -> np.ndarray:
    return fold(stream_key(seed, stream), np.arange(count, dtype=np.uint64))


def even(counts: np.ndarray) -> float:
    return float(stats.chisquare(np.ravel(counts)).pvalue)


# -- keys ------------------------------------------------------------------------------------------------------------


def test_known_outputs_of_splitmix64():
    # the first five outputs of the published C implementation for the seed 1234567
    outputs = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert [int(fold(1234567, word)) for word in range(5)] == outputs
    assert fold(1234567, np.arange(5)).tolist() == outputs


@given(key=st.integers(0, WORD - 1), words=st.lists(st.integers(0, WORD - 1), min_size=1, max_size=5))
def test_fold_is_splitmix_for_any_key_and_word(key, words):
    expected = [reference_fold(key, word) for word in words]
    assert [int(fold(key, word)) for word in words] == expected
    array = np.array(words, dtype=np.uint64)
    assert fold(key, array).tolist() == expected
    assert fold(np.full(len(words), key, dtype=np.uint64), array).tolist() == expected
    assert mix(key, spread(array)).tolist() == expected
    twice = [reference_fold(first, 7) for first in expected]
    assert fold(fold(key, array), 7).tolist() == twice
    assert int(fold(fold(key, words[0]), 7)) == twice[0]
    assert int(fold(key, array[0])) == expected[0]


def test_folding_leaves_its_arguments_alone():
    key, words = keys_of(3), np.arange(3, dtype=np.uint64)
    before = key.copy()
    fold(key, words)
    fold(key, 5)
    mix(key, spread(words))
    assert (key == before).all()
    assert words.tolist() == [0, 1, 2]


def test_signed_steps_are_the_same_words_as_unsigned_ones():
    words = np.array([0, 1, 2**40, 2**63 - 1])
    assert (fold(9, words) == fold(9, words.astype(np.uint64))).all()


def test_stream_keys_are_digest_then_seed():
    digest = int.from_bytes(hashlib.blake2b(b"SetSampler", digest_size=8).digest(), "little")
    for seed in (0, 1, 2**63, 2**64 - 1, np.int64(5), np.uint64(2**64 - 1)):
        assert stream_key(seed, "SetSampler") == reference_fold(digest, int(seed))


def test_seeds_and_streams_are_never_added():
    names = ["", "a", "b", "SetSampler", "SetSampler2", "größe"]
    keys = {stream_key(seed, name) for seed in range(200) for name in names}
    assert len(keys) == 200 * len(names)
    assert int(fold(stream_key(0, "x"), 1)) != int(fold(stream_key(1, "x"), 0))
    steps = np.arange(500)
    words = np.concatenate([fold(stream_key(seed, "x"), steps) for seed in range(40)])
    assert len(np.unique(words)) == len(words)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, "1", None, True, np.float64(2), np.int64(-1)])
def test_a_seed_out_of_range_is_refused(seed):
    with pytest.raises(SamplerError, match=r"seed must be an integer from 0 to 2\*\*64 - 1"):
        stream_key(seed, "x")


@pytest.mark.parametrize("stream", [3, None, b"SetSampler"])
def test_a_stream_must_be_text(stream):
    with pytest.raises(SamplerError, match="stream must be a string"):
        stream_key(0, stream)


# -- seeds -----------------------------------------------------------------------------------------------------------


def test_seeds_are_those_of_every_version_and_platform():
    assert seeds(0, "Augment", 0, (2, 3)).tolist() == [
        [1536085226124801977, 2059024951279621575, 2183338553095557296],
        [9554828778795072917, 4355150762808419415, 14031348990971761250],
    ]
    assert seeds(2**64 - 1, "größe", 2**40, (1, 1)).tolist() == [[13962753912401163991]]
    assert int(seeds(5, "x", 11, ())) == 16248685756435892833


@given(
    seed=st.integers(0, WORD - 1),
    stream=st.text(st.characters(codec="utf-8"), max_size=8),
    step=st.integers(0, WORD - 1),
    shape=st.lists(st.integers(0, 4), max_size=3),
)
def test_seeds_fold_the_step_and_then_every_axis(seed, stream, step, shape):
    found = seeds(seed, stream, step, shape)
    assert found.dtype == np.uint64
    assert found.shape == tuple(shape)
    for place in np.ndindex(*shape):
        expected = int.from_bytes(hashlib.blake2b(stream.encode(), digest_size=8).digest(), "little")
        for word in (seed, step, *place):
            expected = reference_fold(expected, word)
        assert int(found[place]) == expected


def test_seeds_are_even_and_do_not_depend_on_the_number_of_sets_and_positions():
    few, many = (seeds(3, "s", np.int64(9), shape) for shape in ((2, 5), (200, 100)))
    assert (few == many[:2, :5]).all()
    assert len(np.unique(many)) == many.size
    assert stats.kstest(uniform(many).ravel(), "uniform").pvalue > RARE
    # torch's generator for CPUs and numpy's old one take the lower half only
    assert stats.kstest((many & np.uint64(2**32 - 1)).ravel() / 2**32, "uniform").pvalue > RARE


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((-1, "x", 0, (1,)), "seed must be an integer"),
        ((0, 3, 0, (1,)), "stream must be a string"),
        ((0, "x", -1, (1,)), "step must be an integer from 0"),
        ((0, "x", 1.5, (1,)), "step must be an integer"),
        ((0, "x", None, (1,)), "step must be an integer"),
        ((0, "x", 0, (1, -1)), "length must be an integer of at least 0"),
        ((0, "x", 0, 4), r"sequence of lengths, such as \(sets, size\), not 4"),
        ((0, "x", 0, "44"), "sequence of lengths"),
    ],
)
def test_seeds_refuse_what_is_no_key(arguments, match):
    with pytest.raises(SamplerError, match=match):
        seeds(*arguments)


# -- bits ------------------------------------------------------------------------------------------------------------


def test_every_bit_is_fair_and_independent_of_the_others():
    words = keys_of(40_000)
    bits = ((words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).astype(np.float64) * 2 - 1
    count = len(words)
    assert np.abs(bits.mean(0)).max() < 4.9 / math.sqrt(count)  # 64 normal deviates
    products = bits.T @ bits / count
    np.fill_diagonal(products, 0)
    assert np.abs(products).max() < 5.6 / math.sqrt(count)  # 2,016 of them


NEIGHBOURS = {
    "seeds": lambda i: fold(np.array([stream_key(int(s), "n") for s in i], dtype=np.uint64), 3),
    "steps": lambda i: fold(stream_key(5, "n"), i),
    "late steps": lambda i: fold(stream_key(5, "n"), i + 2**62),
    "sets": lambda i: fold(fold(stream_key(5, "n"), 11), i.astype(np.uint64) << np.uint64(40)),
    "purposes": lambda i: fold(fold(stream_key(5, "n"), 11), (i % 256 << 32) + i // 256),
    "slots": lambda i: fold(fold(stream_key(5, "n"), 11), i + (16 << 32)),
    "steps of a slot": lambda i: fold(fold(stream_key(5, "n"), i), 16 << 32),
    "streams": lambda i: fold(np.array([stream_key(0, f"n{s}") for s in i], dtype=np.uint64), 3),
}


@pytest.mark.parametrize("which", NEIGHBOURS)
def test_neighbouring_keys_are_independent(which):
    words = NEIGHBOURS[which](np.arange(20_001))
    values = uniform(words)
    assert stats.kstest(values, "uniform").pvalue > RARE
    for lag in (1, 2, 3, 8):
        first, second = values[:-lag], values[lag:]
        assert abs(np.corrcoef(first, second)[0, 1]) < 4.9 / math.sqrt(len(first))
        joint = np.zeros((12, 12))
        np.add.at(joint, ((first * 12).astype(int), (second * 12).astype(int)), 1)
        assert even(joint) > RARE
    low = (words & np.uint64(15)).astype(int)
    joint = np.zeros((16, 16))
    np.add.at(joint, (low[:-1], low[1:]), 1)
    assert even(joint) > RARE
    flips = np.bitwise_count(words[:-1] ^ words[1:])
    expected = stats.binom.pmf(np.arange(65), 64, 0.5)
    seen = np.bincount(flips, minlength=65)
    kept = slice(22, 43)
    pool = [seen[:22].sum(), *seen[kept], seen[43:].sum()]
    wanted = np.array([expected[:22].sum(), *expected[kept], expected[43:].sum()]) * len(flips)
    assert stats.chisquare(pool, wanted * (sum(pool) / wanted.sum())).pvalue > RARE


def test_swapping_seed_and_step_gives_independent_numbers():
    seeds, steps = np.meshgrid(np.arange(120), np.arange(120), indexing="ij")
    keys = np.array([stream_key(seed, "x") for seed in range(120)], dtype=np.uint64)
    values = uniform(fold(keys[seeds], steps))
    assert even(np.histogram(values, bins=50, range=(0, 1))[0]) > RARE
    upper = np.triu_indices(120, 1)
    assert abs(np.corrcoef(values[upper], values.T[upper])[0, 1]) < 4.9 / math.sqrt(len(upper[0]))


# -- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 64, 1000])
def test_below_is_uniform(n):
    drawn = randint_below(keys_of(60_000, seed=n), n)
    assert drawn.dtype == np.int64
    assert even(np.bincount(drawn, minlength=n)) > RARE or n == 1
    assert drawn.min() == 0
    assert drawn.max() == n - 1


@given(word=st.integers(0, WORD - 1), n=st.integers(1, 2**53 - 1))
def test_below_is_the_documented_formula_and_stays_below(word, n):
    bits = np.array([word], dtype=np.uint64)
    for size in (n, np.array([n])):
        found = int(randint_below(bits, size)[0])
        assert found == math.floor((word >> 11) * 2.0**-53 * n)
        assert 0 <= found < n


@given(n=st.integers(1, 2**53 - 1))
def test_the_largest_word_still_falls_below(n):
    assert randint_below(np.array([WORD - 1], dtype=np.uint64), n)[0] == n - 1


def test_below_agrees_with_exact_arithmetic():
    words = keys_of(2000)
    for n in (3, 10, 4097, 480_000, 10**8):
        assert randint_below(words, n).tolist() == [(int(word) >> 11) * n >> 53 for word in words]


def test_below_broadcasts_sizes():
    words, sizes = keys_of(6).reshape(3, 2), np.array([1, 10, 1000])
    assert randint_below(words, sizes[:, None]).tolist() == [
        randint_below(row, int(n)).tolist() for row, n in zip(words, sizes, strict=False)
    ]


def test_uniform_is_the_upper_53_bits():
    words = np.array([0, 2**11 - 1, 2**11, 2**63, WORD - 1], dtype=np.uint64)
    assert uniform(words).tolist() == [0.0, 0.0, 2.0**-53, 0.5, 1 - 2.0**-53]
    assert stats.kstest(uniform(keys_of(50_000)), "uniform").pvalue > RARE


# -- permutations ----------------------------------------------------------------------------------------------------

SIZES = [1, 2, 3, 4, 5, 31, 32, 33, 1023, 1024, 1025, 4094, 4095, 4096, 4097, 4098, 4099, 5000, 8191, 8192, 8193]
LARGE = [16_384, 65_535, 65_536, 65_537, 131_073]


@pytest.mark.parametrize("n", SIZES + LARGE)
def test_permutations_are_bijections(n):
    keys = keys_of(3 if n < 10_000 else 1, seed=n)
    images = permute(keys, n, np.broadcast_to(np.arange(n), (len(keys), n)))
    assert images.dtype == np.int64
    assert (np.sort(images, axis=1) == np.arange(n)).all()


@given(n=st.integers(1, 9000), key=st.integers(0, WORD - 1), data=st.data())
def test_positions_are_evaluated_one_by_one(n, key, data):
    wanted = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=6))
    whole = permute(np.uint64(key), n, np.arange(n))
    assert sorted(whole.tolist()) == list(range(n))
    assert permute(np.uint64(key), n, wanted).tolist() == whole[wanted].tolist()
    assert leading(np.array([key], dtype=np.uint64), n, min(n, 5))[0].tolist() == whole[:5].tolist()


def test_no_positions_of_an_empty_permutation_are_none_and_others_are_refused():
    assert permute(np.uint64(1), 0, np.arange(0)).shape == (0,)
    with pytest.raises(SamplerError, match="n must be at least 1"):
        permute(np.uint64(1), 0, np.arange(2))


def test_small_permutations_are_the_stable_order_of_keyed_words():
    for n in (1, 2, 7, 100, 4096):
        key = stream_key(n, "order")
        words = [reference_fold(key, index) >> 12 for index in range(n)]
        assert permute(np.uint64(key), n, np.arange(n)).tolist() == sorted(range(n), key=words.__getitem__)


def test_sizes_may_differ_from_draw_to_draw():
    sizes = np.array([1, 5, 4096, 4097, 3, 70_000, 4096, 5])
    keys = keys_of(len(sizes))
    positions = np.stack([np.arange(6) % n for n in sizes])
    alone = [permute(key, int(n), row).tolist() for key, n, row in zip(keys, sizes, positions, strict=False)]
    assert permute(keys, sizes, positions).tolist() == alone
    shaped = permute(keys.reshape(2, 4), sizes.reshape(2, 4), positions.reshape(2, 4, 6))
    assert shaped.reshape(-1, 6).tolist() == alone


@pytest.mark.parametrize("n", [5, 10_000])
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4), (0, 0)])
def test_no_positions_have_no_images(n, shape):
    keys = np.zeros(shape[:-1], dtype=np.uint64)
    assert permute(keys, n, np.zeros(shape, dtype=np.int64)).shape == shape


def test_large_blocks_are_worked_off_in_parts():
    keys, n = keys_of(1500), 4000  # more words than are sorted at once
    images = permute(keys, n, np.broadcast_to([0, 3999], (1500, 2)))
    for row in (0, 523, 524, 525, 1499):
        assert images[row].tolist() == permute(keys[row], n, [0, 3999]).tolist()


def test_no_draws_at_all():
    none = np.zeros(0, dtype=np.uint64)
    assert permute(none, 5, np.zeros((0, 3), dtype=int)).shape == (0, 3)
    assert permute(none, np.zeros(0, int), np.zeros((0, 3), dtype=int)).shape == (0, 3)
    assert leading(none, 5, 3).shape == (0, 3)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 2), (32, 32), (4096, 8), (4097, 8), (100_000, 5)])
def test_leading_is_the_start_of_the_permutation(n, k):
    keys = keys_of(20, seed=n)
    wanted = permute(keys, n, np.broadcast_to(np.arange(k), (20, k)))
    assert (leading(keys, n, k) == wanted).all()
    assert (leading(keys, np.full(20, n), k) == wanted).all()


def test_all_24_permutations_of_four_are_equally_likely():
    images = permute(keys_of(48_000), 4, np.broadcast_to(np.arange(4), (48_000, 4)))
    counts = Counter(map(tuple, images.tolist()))
    assert set(counts) == set(itertools.permutations(range(4)))
    assert even(np.array(list(counts.values()))) > RARE


def test_both_parities_are_equally_likely():
    images = permute(keys_of(4000), 16, np.broadcast_to(np.arange(16), (4000, 16)))
    later, earlier = np.triu_indices(16, 1)
    inversions = (images[:, later] > images[:, earlier]).sum(1)
    assert even(np.bincount(inversions % 2)) > RARE


def test_table_of_positions_for_sixteen():
    images = permute(keys_of(32_000), 16, np.broadcast_to(np.arange(16), (32_000, 16)))
    for position in range(16):
        assert even(np.bincount(images[:, position], minlength=16)) > RARE / 16
    for first, second in ((0, 1), (3, 12), (14, 15)):
        pairs = np.bincount(images[:, first] * 16 + images[:, second], minlength=256).reshape(16, 16)
        assert (np.diag(pairs) == 0).all()
        assert even(pairs[~np.eye(16, dtype=bool)]) > RARE


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("n", [4096, 4097, 5000, 8192, 8193, 100_000, 2**20, 10**9, 2**40])
def test_images_under_large_permutations_are_uniform(n):
    draws, cells = (40_000, 20) if n > 4096 else (5000, 10)  # a sort of n words costs more than a network
    positions = np.array([0, 1, 2, n // 2, n - 2, n - 1])
    images = permute(keys_of(draws, seed=n), n, np.broadcast_to(positions, (draws, len(positions))))
    assert images.min() >= 0
    assert images.max() < n
    cell = images * cells // n
    sizes = np.array([-(-n * (c + 1) // cells) + (n * c // -cells) for c in range(cells)], dtype=float)  # exact widths
    for place in range(len(positions)):
        assert stats.chisquare(np.bincount(cell[:, place], minlength=cells), draws * sizes / n).pvalue > RARE
    for first, second in ((0, 1), (1, 2), (0, 3), (4, 5), (0, 5)):
        pairs = np.bincount(cell[:, first] * cells + cell[:, second], minlength=cells**2)
        together = np.outer(sizes, sizes) - np.diag(sizes)
        assert stats.chisquare(pairs, draws * together.ravel() / (n * (n - 1))).pvalue > RARE
        assert (images[:, first] != images[:, second]).all()


@pytest.mark.parametrize("n", [4097, 8192])
def test_low_bits_and_differences_of_images_are_uniform(n):
    images = permute(keys_of(40_000, seed=n), n, np.broadcast_to([0, 1], (40_000, 2)))
    for shift in (0, 3):
        low = images >> shift & 7
        law = np.bincount(np.arange(n) >> shift & 7).astype(float)
        joint = np.outer(law, law) - np.diag(law)
        seen = np.bincount(low[:, 0] * 8 + low[:, 1], minlength=64)
        assert stats.chisquare(seen, 40_000 * joint.ravel() / (n * (n - 1))).pvalue > RARE
    gap = (images[:, 1] - images[:, 0]) % n  # uniform over 1 … n − 1
    assert stats.kstest(gap / n, "uniform").pvalue > RARE


@pytest.mark.parametrize("n", [16, 4096, 4097, 2**16])
def test_neighbouring_keys_give_independent_permutations(n):
    draws = 30_000 if n != 4096 else 3000
    images = permute(keys_of(draws + 1, seed=n), n, np.zeros((draws + 1, 1), dtype=int))[:, 0] * 10 // n
    joint = np.bincount(images[:-1] * 10 + images[1:], minlength=100).reshape(10, 10)
    law = np.bincount(np.arange(n) * 10 // n) / n
    assert stats.chisquare(joint.ravel(), draws * np.outer(law, law).ravel()).pvalue > RARE


def test_one_large_permutation_has_as_many_fixed_points_and_rises_as_chance():
    n = 50_000
    fixed, rises = [], []
    for key in keys_of(30, seed=77):
        images = permute(key, n, np.arange(n))
        fixed.append(int((images == np.arange(n)).sum()))
        rises.append(int((np.diff(images) > 0).sum()))
    # fixed points are Poisson(1), so their sum Poisson(30); rises have the variance (n + 1)/12
    assert RARE < stats.poisson.cdf(sum(fixed), 30) < 1 - RARE
    deviates = (np.array(rises) - (n - 1) / 2) / math.sqrt((n + 1) / 12)
    assert np.abs(deviates).max() < 4.5
    assert stats.kstest(deviates, "norm").pvalue > RARE
