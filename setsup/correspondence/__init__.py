"""Which pixel of one picture is which pixel of another."""

from setsup.correspondence.pairs import AffinePairs, affine_pairs
from setsup.correspondence.planar import carried, inside

__all__ = ["AffinePairs", "affine_pairs", "carried", "inside"]
