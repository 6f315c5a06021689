"""Records that a Croissant description describes, as a dataset."""

from collections.abc import Mapping

from setsup.datasets.own.contents import Content, ContentDataset
from setsup.factors import FactorTable

__all__ = ["CroissantDataset"]


class CroissantDataset(ContentDataset):
    """Records that a Croissant description describes; made by :func:`open_croissant`.

    Attributes
    ----------
    records : str
        The record set.

    """

    def __init__(self, name: str, records: str, factors: FactorTable, contents: Mapping[str, Content]) -> None:
        super().__init__(name, factors, contents)
        self.records = records
