"""Reports on the small runs of contrastive multiview coding: rooms, halves of digits, colour spaces, patches."""

from typing import Any

from setsup.experiments.report import Column, Report, Row
from setsup_papers.cmc.claims import (
    above,
    between_random_and_supervised,
    less_information_is_better,
    less_information_over_distance,
    rising,
)
from setsup_papers.cmc.presets import OFFSETS, PAPER, SPACES, VIEWS
from setsup_papers.cmc.reports import (
    SUPERVISED,
    UNTRAINED,
    contrast_above_prediction,
    more_views,
    view_above_random,
    views_words,
)
from setsup_papers.cmc.small_presets import NEGATIVES, TARGETS

__all__ = ["REPORTS"]

_BOTH = (Column("L: mIoU", "mIoU"), Column("L: pixel accuracy", "pixel accuracy"))
_SIZE = "not the paper's data, nor its size"


def _report(name: str, shows: str, like: str, evaluations: tuple[str, ...], **more: Any) -> Report:
    source = f"as {like} of {PAPER}: {_SIZE}"
    return Report(
        name=f"cmc/{name}-small", shows=f"{shows}, small", source=source, evaluations=evaluations, digits=3, **more
    )


_ROOMS = [
    _report(
        "rooms",
        "segmentation of rendered rooms from L over the number of views",
        "figure 4 and table 3",
        ("segmentation",),
        rows=(
            Row("cmc/rooms-full-small", "random", UNTRAINED),
            *(Row(f"cmc/rooms-{count}-views-small", views_words(count)) for count in range(1, len(VIEWS) + 1)),
            Row("cmc/rooms-full-small", "full graph"),
            Row("cmc/rooms-full-small", "supervised", SUPERVISED),
        ),
        columns=_BOTH,
        claims=(
            more_views("figure 4"),
            between_random_and_supervised("L: mIoU", "full graph", "random", "supervised", "table 3"),
        ),
    ),
    _report(
        "rooms-views",
        "segmentation of rendered rooms from each view, full graph",
        "table 7",
        ("segmentation",),
        rows=(
            Row("cmc/rooms-full-small", "random", UNTRAINED),
            Row("cmc/rooms-full-small", "CMC"),
            Row("cmc/rooms-full-small", "supervised", SUPERVISED),
        ),
        columns=tuple(Column(f"{view}: {value}") for value in ("mIoU", "pixel accuracy") for view in VIEWS),
        claims=view_above_random("table 7"),
    ),
    _report(
        "rooms-prediction",
        "contrasting and predicting a second view of rendered rooms",
        "table 4",
        ("segmentation",),
        rows=(
            Row("cmc/rooms-full-small", "random", UNTRAINED),
            *(Row(f"cmc/rooms-predict-{target}-small", f"prediction, L to {target}") for target in TARGETS),
            *(Row(f"cmc/rooms-contrast-{target}-small", f"contrast, L and {target}") for target in TARGETS),
        ),
        columns=_BOTH,
        claims=(contrast_above_prediction("L: mIoU", "mIoU", "table 4"),),
    ),
]

_ACCURACY = "out: accuracy"
_NCE, _SOFTMAX = ([f"{words}, m = {count:,}" for count in NEGATIVES] for words in ("NCE", "softmax"))

_DIGITS = _report(
    "digits",
    "linear probes of halves of digits over objectives and the number of negatives",
    "section 3.2 and figure 6",
    ("probe",),
    rows=(
        *(
            Row(f"cmc/digits-{objective}-m{count}-small", label)
            for objective, labels in (("nce", _NCE), ("softmax", _SOFTMAX))
            for count, label in zip(NEGATIVES, labels, strict=True)
        ),
        Row("cmc/digits-in-batch-small", "softmax within batches"),
        Row("cmc/digits-nce-m4096-small", "random", UNTRAINED),
    ),
    columns=(Column("fc4: accuracy", "last layer but one"), Column(_ACCURACY, "features")),
    claims=(
        above(
            "NCE gives better features than softmax over as many negatives (section 3.2).",
            _ACCURACY,
            (_NCE[-1],),
            (_SOFTMAX[-1],),
            f"accuracy of features at m = {NEGATIVES[-1]:,} is higher",
        ),
        rising(
            "More negatives give better features (figure 6).",
            _ACCURACY,
            _NCE,
            "the rank correlation of their number with the accuracy of NCE is .5 or more",
            0.5,
        ),
    ),
)

_SPACES = {space: f"{space}: {one}, {two}" for space, (one, two) in SPACES.items()}
_PROBED = "probe: conv3: accuracy"

_COLORS = _report(
    "colors",
    "information between views of photographs, and accuracy on rendered objects, over colour spaces",
    "figure 5",
    ("information", "probe"),
    rows=tuple(Row(f"cmc/colors-{space}-small", label) for space, label in _SPACES.items()),
    columns=(
        Column("information: nats", "nats"),
        Column(_PROBED, "accuracy"),
        Column("probe: untrained: conv3: accuracy", "untrained"),
    ),
    claims=(less_information_is_better(("information: nats", _PROBED), list(_SPACES.values())),),
)

_PATCHES = _report(
    "patches",
    "information between patches of rendered images over their distance",
    "figure 5",
    ("information",),
    rows=tuple(Row(f"cmc/patches-d{offset}-small", f"{offset} px") for offset in OFFSETS),
    columns=(Column("nats"),),
    claims=(less_information_over_distance(OFFSETS),),
)

REPORTS = [*_ROOMS, _DIGITS, _COLORS, _PATCHES]
"""Reports on small runs."""
