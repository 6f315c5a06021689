"""State of a method by row of the training data: memory banks and learned codes, divided among ranks.

:class:`RowState` is an array with an entry for each row, such as the memory bank of a contrastive method.
:class:`RowCodes` are vectors that are learned, one for each row. Under ``torch.distributed`` each rank has the rows r,
r + W, r + 2W, …; a checkpoint has all of them once, and restores with any number of ranks.
"""

from setsup.methods.rows.codes import RowCodes
from setsup.methods.rows.state import RowState, UnseenRows

__all__ = ["RowCodes", "RowState", "UnseenRows"]
