"""Look-up of the nearest rendering against scipy's distances, and codebooks against their definition."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from setsup.errors import DataError, SetsupError
from setsup_papers.abc.pose import lookup
from setsup_papers.abc.pose.lookup import draw_codebooks, look_up


def slowly(queries: np.ndarray, renderings: np.ndarray, books: np.ndarray) -> list[list[int]]:
    """By scipy, one codebook after the other; books ascend, so that the first of equals is the lowest row."""
    return [book[cdist(queries, renderings[book], "cosine").argmin(axis=1)].tolist() for book in books]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("dimensions", [1, 7, 64, 1100])
def test_the_largest_cosine_is_found(monkeypatch: pytest.MonkeyPatch, shared: bool, dimensions: int) -> None:
    monkeypatch.setattr(lookup, "_BLOCK", 1000)  # of many queries, a few at a time
    dice = np.random.default_rng(dimensions)
    queries, renderings = dice.normal(size=(31, dimensions)), dice.normal(size=(240, dimensions)) + 0.1
    books = draw_codebooks(np.arange(60), 8, 40) if shared else np.arange(240).reshape(4, 60)
    if dimensions == 1:  # all cosines are 1 or −1
        expected = [[next(row for row in book if renderings[row, 0] * q > 0) for q in queries[:, 0]] for book in books]
        assert look_up(queries, renderings, books).tolist() == expected
    else:
        assert look_up(queries, renderings, books).tolist() == slowly(queries, renderings, books)


def test_what_float32_cannot_tell_apart_is_told_apart() -> None:
    """Cosines that differ by 10⁻¹² relative to a vector along the first axis, in either order."""
    angles = np.array([2e-4, 1e-4, 3e-4])
    renderings = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for order in ([0, 1, 2], [1, 0, 2], [2, 0, 1]):
        found = look_up([[1.0, 0.0]], renderings[order], [[0, 1, 2]])
        assert order[int(found[0, 0])] == 1


def test_of_equal_ones_the_lowest_row_is_found() -> None:
    same = np.repeat(np.array([[3.0, 4.0]]), 6, axis=0)
    assert look_up([[1.0, 1.0], [3.0, 4.0]], same, [[5, 3, 4], [2, 1, 5]]).tolist() == [[3, 3], [1, 1]]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(0)
    queries = dice.normal(size=(50, 5)).round(1) + 0.01  # with ties
    renderings = np.concatenate([queries, 2 * queries, dice.normal(size=(100, 5))])
    books = draw_codebooks(np.arange(200), 5, 150)
    whole = look_up(queries, renderings, books)
    for block in (1, 777):
        monkeypatch.setattr(lookup, "_BLOCK", block)
        assert (look_up(queries, renderings, books) == whole).all()


def test_length_does_not_count() -> None:
    dice = np.random.default_rng(1)
    queries, renderings, scale = dice.normal(size=(9, 4)), dice.normal(size=(30, 4)), np.logspace(-20, 20, 30)[:, None]
    book = [np.arange(30)]
    assert (look_up(queries, renderings, book) == look_up(1e-30 * queries, scale * renderings, book)).all()


def test_codebooks_are_random_rows_that_depend_on_their_number_only() -> None:
    pool = np.arange(1000, 1500)
    books = draw_codebooks(pool, 10, 100, seed=3)
    assert books.shape == (10, 100)
    assert all(len(set(book.tolist())) == 100 and set(book.tolist()) <= set(pool.tolist()) for book in books)
    assert (np.diff(books, axis=1) > 0).all()
    assert (draw_codebooks(pool, 3, 100, seed=3) == books[:3]).all()
    assert len({tuple(book) for book in books.tolist()}) == 10
    assert (draw_codebooks(pool, 1, 100, seed=4) != books[:1]).any()
    counts = np.bincount(draw_codebooks(np.arange(20), 2000, 5).ravel(), minlength=20)
    assert (abs(counts - 500) < 5 * np.sqrt(500 * 0.75)).all()
    assert (draw_codebooks(pool, 2, 10_000) == pool).all()  # all there are


@pytest.mark.parametrize(
    ("queries", "renderings", "books", "words"),
    [
        (np.zeros((2, 3)), np.ones((4, 3)), [[0, 1]], "queries: the embedding of row 0 is zero"),
        (np.ones((2, 3)), np.eye(4, 3), [[0, 3]], "renderings: the embedding of row"),
        (np.full((2, 3), np.nan), np.ones((4, 3)), [[0, 1]], "queries: the embedding of row 0 is not finite"),
        (
            np.ones((2, 3)),
            np.ones((4, 2)),
            [[0, 1]],
            "queries and renderings must have embeddings of the same length, not 3 and 2",
        ),
        (
            np.ones((2, 3)),
            np.ones((4, 3)),
            [[0, 4]],
            "row numbers of the renderings, from 0 to 3, not numbers from 0 to 4",
        ),
        (
            np.ones((2, 3)),
            np.ones((4, 3)),
            [[-1]],
            "row numbers of the renderings, from 0 to 3, not numbers from -1 to -1",
        ),
        (
            np.ones((2, 3)),
            np.ones((4, 3)),
            np.zeros((0, 5)),
            r"row numbers of the renderings, from 0 to 3, not the shape \(0, 5\)",
        ),
        (np.ones(3), np.ones((4, 3)), [[0]], "queries must be a non-empty array"),
        (np.ones((2, 3)), np.array([["a"]]), [[0]], "renderings of look_up must be an array of numbers"),
    ],
)
def test_what_is_wrong_is_said(queries: np.ndarray, renderings: np.ndarray, books: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        look_up(queries, renderings, books)  # type: ignore[arg-type]


def test_no_codebook_of_nothing() -> None:
    with pytest.raises(SetsupError, match="at least one rendering is required to draw codebooks"):
        draw_codebooks([])
    with pytest.raises(SetsupError, match="codebooks must be"):
        draw_codebooks([1], 0)
