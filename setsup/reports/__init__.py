"""Images and words for people: contact sheets, charts, and draws described in words and units."""

from setsup.reports.bar_charts import bar_panels, bars
from setsup.reports.curve_charts import curves
from setsup.reports.describe import (
    Change,
    PairWords,
    SetWords,
    Variation,
    describe,
    describe_pairs,
    describe_triplets,
    value_words,
)
from setsup.reports.display.dataset_sheet import orbit_names, show
from setsup.reports.display.saving import Sheet
from setsup.reports.grid import image_grid
from setsup.reports.image_points import image_scatter
from setsup.reports.matches import match_sheet, matches_drawn
from setsup.reports.orbits import orbit_sheet
from setsup.reports.points import scatter, scatter_panels
from setsup.reports.sheet import contact_sheet
from setsup.reports.tracks import track_sheet
from setsup.reports.triplets import triplet_sheet

__all__ = [
    "Change",
    "PairWords",
    "SetWords",
    "Sheet",
    "Variation",
    "bar_panels",
    "bars",
    "contact_sheet",
    "curves",
    "describe",
    "describe_pairs",
    "describe_triplets",
    "image_grid",
    "image_scatter",
    "match_sheet",
    "matches_drawn",
    "orbit_names",
    "orbit_sheet",
    "scatter",
    "scatter_panels",
    "show",
    "track_sheet",
    "triplet_sheet",
    "value_words",
]
