"""Limits of what a small file may grow into."""

__all__ = ["memory_limit"]

_RATIO, _BESIDE = 100, 1 << 28


def memory_limit(size: int) -> int:
    """Bytes of memory that the content of a table may need whose file has `size` bytes.

    Tables are rarely packed to less than a hundredth; small ones may be.
    """
    return _RATIO * size + _BESIDE
