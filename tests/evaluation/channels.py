"""Channels whose information is known: a level g, a code c drawn given g, and the code's one-hot vector under noise."""

import math

import numpy as np
from scipy.integrate import quad


def symmetric(levels: int, error: float) -> np.ndarray:
    """P(code | level): right but for `error`, which falls evenly on the other codes."""
    return np.full((levels, levels), error / (levels - 1)) + (1 - error - error / (levels - 1)) * np.eye(levels)


def erasure(levels: int, lost: float) -> np.ndarray:
    """P(code | level): right, or one more code that says nothing."""
    return np.concatenate([(1 - lost) * np.eye(levels), np.full((levels, 1), lost)], axis=1)


def without_noise(channel: np.ndarray) -> float:
    """I(g; c) in nats for levels that are equally likely."""
    joint = channel / len(channel)
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    some = joint > 0
    return float((joint[some] * np.log(joint[some] / independent[some])).sum())


def two_codes(error: float, sigma: float) -> float:
    """I(g; one-hot + noise) for the binary symmetric channel, by quadrature.

    The noise that matters is that along the line between the codes, which are √2 apart.
    """

    def density(x: float, level: int) -> float:
        here = [math.exp(-((x - side / math.sqrt(2)) ** 2) / 2 / sigma**2) for side in (-1, 1)]
        return ((1 - error) * here[level] + error * here[1 - level]) / sigma / math.sqrt(2 * math.pi)

    def term(x: float) -> float:
        both = density(x, 0), density(x, 1)
        return sum(p / 2 * math.log(2 * p / sum(both)) for p in both if p > 0)

    far = 1 + 10 * sigma
    return quad(term, -far, far, points=[-(0.5**0.5), 0, 0.5**0.5], limit=200)[0]


def sent(channel: np.ndarray, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Levels (rows,), and one-hot codes (rows, codes)."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(0, len(channel), rows)
    codes = (channel.cumsum(axis=1)[levels] < rng.random((rows, 1))).sum(axis=1)
    return levels, np.eye(channel.shape[1])[codes]


def gaussians(rho: float, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, float]:
    """Two correlated normal columns (rows, 1) and (rows,), and their information, −½ ln(1 − ρ²)."""
    x, y = np.random.default_rng(seed).standard_normal((2, rows))
    return x[:, None], rho * x + math.sqrt(1 - rho**2) * y, -0.5 * math.log(1 - rho**2)
