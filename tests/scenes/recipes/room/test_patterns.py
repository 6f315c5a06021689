"""Patterns show both of their colors, and repeat without a seam."""

import numpy as np
import pytest

from setsup.random import stream_key
from setsup.scenes.recipes.room.patterns import PATTERNS, pattern

LIGHT, DARK = (220, 200, 180), (40, 30, 20)


@pytest.mark.parametrize("kind", PATTERNS)
def test_a_pattern_shows_both_colors_but_a_plain_one(kind: str) -> None:
    shown = pattern(kind, LIGHT, DARK, np.uint64(stream_key(0, kind)))[..., 0].astype(float)
    light = (shown > sum((LIGHT[0], DARK[0])) / 2).mean()
    assert shown.shape == (128, 128)
    assert light == 1 if kind == "plain" else 0.1 < light < 0.95


@pytest.mark.parametrize("kind", PATTERNS)
def test_opposite_edges_continue_each_other(kind: str) -> None:
    shown = pattern(kind, LIGHT, DARK, np.uint64(stream_key(0, kind)))[..., 0].astype(float)
    for axis in (0, 1):
        steps = np.abs(np.diff(shown, axis=axis)).mean(axis=1 - axis)
        seam = np.abs(np.take(shown, 0, axis) - np.take(shown, -1, axis)).mean()
        assert seam <= steps.max() + 2
