"""The files of CLEVR, whose objects are the rows here."""

from tests.true_files.clevr import write

__all__ = ["HELD", "write"]

HELD = "shape"
