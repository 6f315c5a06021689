"""Pictures and words for people: contact sheets, and draws described in words and units."""

from setsup.reports.sheet import contact_sheet
from setsup.reports.triplets import triplet_sheet
from setsup.reports.words import SetWords, Variation, describe, describe_triplets, value_words

__all__ = ["SetWords", "Variation", "contact_sheet", "describe", "describe_triplets", "triplet_sheet", "value_words"]
