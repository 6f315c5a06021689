"""Buffers come back when nobody refers to them, and only then."""

from setsup.loading.ring import _KEPT, Ring


def test_a_free_array_is_handed_out_again() -> None:
    ring = Ring((4,), "uint8")
    first = ring.take()
    address = first.__array_interface__["data"][0]
    view = first[1:]
    del first
    assert ring.take().__array_interface__["data"][0] != address
    del view
    assert ring.take().__array_interface__["data"][0] == address
    assert len(ring) == 2


def test_what_is_held_does_not_grow_the_ring_without_end() -> None:
    ring = Ring((4,), "uint8")
    held = [ring.take() for _ in range(3 * _KEPT)]
    assert len({array.__array_interface__["data"][0] for array in held}) == 3 * _KEPT
    assert len(ring) == _KEPT
