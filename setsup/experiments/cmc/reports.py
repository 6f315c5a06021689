"""Reports on the tables and figures of contrastive multiview coding; those of the small runs are apart."""

from collections.abc import Mapping
from typing import Any

from setsup.experiments.cmc.claims import (
    above,
    between_random_and_supervised,
    less_information_is_better,
    less_information_over_distance,
    rising,
)
from setsup.experiments.cmc.presets import FLOWS, NEGATIVES, OFFSETS, PAPER, RESNETS, SPACES, VIEWS
from setsup.experiments.report import Claim, Column, Report, Row
from setsup.experiments.report.report import Reference

__all__ = [
    "REPORTS",
    "SUPERVISED",
    "UNTRAINED",
    "contrast_above_prediction",
    "more_views",
    "view_above_random",
    "views_words",
]

UNTRAINED, SUPERVISED = "untrained: ", "supervised: "


def _accuracies(keys: tuple[str, ...], rows: Mapping[str, tuple[float | None, ...]]) -> dict[str, dict[str, Reference]]:
    """Published percentages by row and column, as shares; None for what a table leaves empty."""
    return {
        label: {key: round(value / 100, 6) for key, value in zip(keys, values, strict=True) if value is not None}
        for label, values in rows.items()
    }


def _said(found: Mapping[str, Mapping[str, Reference]]) -> dict[str, dict[tuple[str, str], Reference]]:
    """Published values as references of a report."""
    return {"the paper": {(label, key): value for label, values in found.items() for key, value in values.items()}}


def _report(name: str, shows: str, source: str, evaluations: tuple[str, ...], **more: Any) -> Report:
    return Report(
        name=f"cmc/{name}", shows=shows, source=f"{source} of {PAPER}", evaluations=evaluations, digits=3, **more
    )


# -- ImageNet ----------------------------------------------------------------------------------------------------------

_CONV = tuple(f"conv{number}: accuracy" for number in range(1, 6))
_TABLE1 = {"CMC": (18.4, 33.5, 38.1, 40.4, 42.6), "random": (11.6, 17.1, 16.9, 16.3, 14.1)}
_CITED1 = {
    "ImageNet labels": (19.3, 36.3, 44.2, 48.3, 50.5),
    "Data-Init": (17.5, 23.0, 24.5, 23.2, 20.6),
    "Context": (16.2, 23.3, 30.2, 31.7, 29.6),
    "Colorization": (13.1, 24.8, 31.0, 32.6, 31.8),
    "Jigsaw": (19.2, 30.1, 34.7, 33.9, 28.3),
    "BiGAN": (17.7, 24.5, 31.0, 29.9, 28.0),
    "SplitBrain": (17.7, 29.3, 35.4, 35.2, 32.8),
    "Counting": (18.0, 30.6, 34.3, 32.5, 25.7),
    "Inst-Dis": (16.8, 26.5, 31.8, 34.1, 35.6),
    "RotNet": (18.8, 31.7, 38.7, 38.2, 36.5),
    "DeepCluster": (12.9, 29.2, 38.2, 39.8, 36.1),
    "AET": (19.3, 32.8, 40.6, 39.7, 37.7),
}
_TABLE2 = {"ResNet-50": (64.1,), "ResNet-101": (65.0,), "ResNet-50 of double width": (68.4,)}

_IMAGENET = [
    _report(
        "table1",
        "linear probes of layers of AlexNet on ImageNet",
        "table 1",
        ("layers",),
        rows=(
            Row("cmc/imagenet-alexnet", "CMC"),
            Row("cmc/imagenet-alexnet-code", "CMC, settings of the code"),
            Row("cmc/imagenet-alexnet", "random", UNTRAINED),
        ),
        columns=tuple(Column(key, key.partition(":")[0]) for key in _CONV),
        references=_said(_accuracies(_CONV, _TABLE1)),
        cited=_accuracies(_CONV, _CITED1),
        claims=(
            above(
                "Contrastive features are above random ones in the last layer (table 1).",
                _CONV[-1],
                ("CMC",),
                ("random",),
                "accuracy of conv5 is higher",
            ),
        ),
    ),
    _report(
        "table2",
        "linear probes of ResNets on ImageNet",
        "table 2",
        ("layers",),
        rows=tuple(Row(f"cmc/imagenet-{name}", words) for name, (words, *_) in RESNETS.items()),
        columns=(Column("pool: accuracy", "accuracy"),),
        references=_said(_accuracies(("pool: accuracy",), _TABLE2)),
    ),
    *(
        _report(
            f"fig6{end}",
            f"accuracy on ImageNet-100 over the number of negatives{words}",
            "figure 6",
            ("layers",),
            rows=tuple(Row(f"cmc/fig6-m{count}{end}", f"{count:,} negatives") for count in NEGATIVES),
            columns=(Column(_CONV[-1], "conv5"),),
            references=_said(
                {f"{count:,} negatives": {_CONV[-1]: 0.603 if count == 4096 else "figure only"} for count in NEGATIVES}
            ),
            claims=(
                rising(
                    "More negatives give better features (figure 6).",
                    _CONV[-1],
                    [f"{count:,} negatives" for count in NEGATIVES],
                    "the rank correlation of their number with the accuracy is .5 or more",
                    0.5,
                ),
            ),
        )
        for end, words in (("", ""), ("-code", ", trained as by the code"))
    ),
]

# -- STL-10 ------------------------------------------------------------------------------------------------------------

_LAYERS = (
    "layers: conv5: accuracy",
    "layers: conv5 MLP: accuracy",
    "layers: fc7: accuracy",
    "layers: fc7 MLP: accuracy",
)
_STRIDED = ("strided: conv5 strided: accuracy", "strided: conv5 strided MLP: accuracy")
_HEADS5 = ("conv5", "conv5, MLP", "fc7", "fc7, MLP", "strided", "strided, MLP")
_TABLE5 = {
    "CMC, patches": (76.65, 80.14, 79.25, 80.11, 82.58, 83.43),
    "CMC, NCE": (83.28, 84.64, 86.66, 86.88, None, None),
}
_CITED5 = {
    "AE": (None, 62.19, None, 55.78, None, None),
    "NAT": (None, 64.32, None, 61.43, None, None),
    "BiGAN": (None, 71.53, None, 67.18, None, None),
    "SplitBrain": (None, 72.35, None, 63.15, None, None),
    "DIM": (None, 72.57, None, 70.00, None, 78.21),
    "CPC": (None, None, None, None, None, 77.81),
    "supervised": (68.70, None, None, None, None, None),
}
_RANKED = ("information: nats", "layers: conv5: accuracy")

_STL10 = [
    _report(
        "table5",
        "classification of STL-10",
        "table 5",
        ("layers", "strided"),
        rows=(Row("cmc/stl10-patch", "CMC, patches"), Row("cmc/stl10-nce", "CMC, NCE")),
        columns=tuple(map(Column, (*_LAYERS, *_STRIDED), _HEADS5)),
        references=_said(_accuracies((*_LAYERS, *_STRIDED), _TABLE5)),
        cited=_accuracies((*_LAYERS, *_STRIDED), _CITED5),
        claims=(
            above(
                "Memory banks are better than patches within batches (table 5).",
                _LAYERS[0],
                ("CMC, NCE",),
                ("CMC, patches",),
                "linear accuracy of conv5 is higher",
            ),
        ),
    ),
    _report(
        "fig5-colors",
        "information between views and accuracy, over colour spaces, on STL-10",
        "figure 5",
        ("information", "layers"),
        rows=tuple(Row(f"cmc/fig5-{space}", f"{space}: {one}, {two}") for space, (one, two) in SPACES.items()),
        columns=(Column(_RANKED[0], "nats"), Column(_RANKED[1], "conv5"), Column("layers: fc7: accuracy", "fc7")),
        claims=(
            less_information_is_better(_RANKED, [f"{space}: {one}, {two}" for space, (one, two) in SPACES.items()]),
        ),
    ),
    _report(
        "fig5-patches",
        "information between patches of DIV2K over their distance",
        "figure 5",
        ("information",),
        rows=tuple(Row(f"cmc/fig5-d{offset}", f"{offset} px") for offset in OFFSETS),
        columns=(Column("nats"),),
        claims=(less_information_over_distance(OFFSETS),),
    ),
]

# -- NYU ---------------------------------------------------------------------------------------------------------------

_BOTH = ("L: pixel accuracy", "L: mIoU")
_TABLE3 = {"random": (45.5, 21.4), "core view": (57.1, 34.1), "full graph": (57.0, 34.4), "supervised": (57.8, 35.9)}
_TARGETS4 = {"depth": (55.5, 58.3), "normals": (58.4, 60.1), "labels": (57.7, 59.2)}
_KEY4 = "conv5: accuracy"
_MIOU7 = {"random": (21.4, 15.6, 30.1, 29.5), "CMC": (34.4, 26.1, 39.2, 37.8), "supervised": (35.9, 29.6, 41.0, 41.5)}
_PIXELS7 = {"random": (45.5, 37.7, 51.1, 50.5), "CMC": (57.0, 49.6, 59.4, 57.8), "supervised": (57.8, 52.6, 59.1, 59.6)}
_KEYS7 = tuple(f"{view}: {value}" for value in ("mIoU", "pixel accuracy") for view in VIEWS)


def views_words(count: int) -> str:
    """Name of the row with so many views."""
    return "1 view" if count == 1 else f"{count} views"


def more_views(place: str) -> Claim:
    """The claim on the number of views."""
    return rising(
        f"Features of L are better the more views there are ({place}).",
        "L: mIoU",
        [views_words(count) for count in range(1, len(VIEWS) + 1)],
        "the rank correlation of the number of views with mIoU is .8 or more",
        0.8,
    )


def contrast_above_prediction(key: str, what: str, place: str) -> Claim:
    """The claim on contrast and prediction."""
    return above(
        f"Contrasting views gives better features than predicting one from the other ({place}).",
        key,
        [f"contrast, L and {target}" for target in _TARGETS4],
        [f"prediction, L to {target}" for target in _TARGETS4],
        f"{what} is higher for each second view",
    )


def view_above_random(place: str) -> tuple[Claim, ...]:
    """The claims on features of each view."""
    return tuple(
        above(
            f"Features of {view} are above random ones ({place}).",
            f"{view}: mIoU",
            ("CMC",),
            ("random",),
            "mIoU is higher",
        )
        for view in VIEWS
    )


_ROOMS = [
    _report(
        "fig4",
        "segmentation of NYU from L over the number of views",
        "figure 4",
        ("segmentation",),
        rows=tuple(Row(f"cmc/nyu-{count}-views", views_words(count)) for count in range(1, len(VIEWS) + 1)),
        columns=tuple(Column(key, key.partition(": ")[2]) for key in _BOTH),
        references=_said({views_words(4): _accuracies(_BOTH, _TABLE3)["core view"]}),
        claims=(more_views("figure 4"),),
    ),
    _report(
        "table3",
        "segmentation of NYU from L, four views",
        "table 3",
        ("segmentation",),
        rows=(
            Row("cmc/nyu-full", "random", UNTRAINED),
            Row("cmc/nyu-4-views", "core view"),
            Row("cmc/nyu-full", "full graph"),
            Row("cmc/nyu-full", "supervised", SUPERVISED),
        ),
        columns=tuple(Column(key, key.partition(": ")[2]) for key in _BOTH),
        references=_said(_accuracies(_BOTH, _TABLE3)),
        claims=(between_random_and_supervised("L: mIoU", "full graph", "random", "supervised", "table 3"),),
    ),
    _report(
        "table4",
        "contrasting and predicting a second view of NYU, classification of STL-10",
        "table 4",
        ("layers",),
        rows=(
            Row("cmc/nyu-contrast-depth", "random", UNTRAINED),
            *(Row(f"cmc/nyu-predict-{target}", f"prediction, L to {target}") for target in _TARGETS4),
            *(Row(f"cmc/nyu-contrast-{target}", f"contrast, L and {target}") for target in _TARGETS4),
        ),
        columns=(Column(_KEY4, "accuracy"),),
        references=_said(
            _accuracies(
                (_KEY4,),
                {
                    "random": (25.2,),
                    **{f"prediction, L to {target}": (found[0],) for target, found in _TARGETS4.items()},
                    **{f"contrast, L and {target}": (found[1],) for target, found in _TARGETS4.items()},
                },
            )
        ),
        cited=_accuracies((_KEY4,), {"supervised": (65.1,)}),
        claims=(contrast_above_prediction(_KEY4, "accuracy", "table 4"),),
    ),
    _report(
        "table7",
        "segmentation of NYU from each view, full graph",
        "table 7",
        ("segmentation",),
        rows=(
            Row("cmc/nyu-full", "random", UNTRAINED),
            Row("cmc/nyu-full", "CMC"),
            Row("cmc/nyu-full", "supervised", SUPERVISED),
        ),
        columns=tuple(map(Column, _KEYS7)),
        references=_said(_accuracies(_KEYS7, {label: (*_MIOU7[label], *_PIXELS7[label]) for label in _MIOU7})),
        claims=view_above_random("table 7"),
    ),
]

# -- videos ------------------------------------------------------------------------------------------------------------

_VIDEO = ("ucf: accuracy", "hmdb: accuracy")
_FROM_RANDOM = ("ucf: untrained: accuracy", "hmdb: untrained: accuracy")
_LABELS6 = {name: words.partition(":")[0] for name, (words, _) in FLOWS.items()}
_TABLE6 = {"V": (55.3, None, None, None), "D": (57.1, None, None, None), "V + D": (59.1, 26.7, 48.2, 19.5)}
_CITED6 = {
    "ImageNet labels": (67.7, 28.0),
    "VGAN": (52.1, None),
    "LT-Motion": (53.0, None),
    "TempCoh": (45.4, 15.9),
    "Shuffle and Learn": (50.2, 18.1),
    "Geometry": (55.1, 23.3),
    "OPN": (56.3, 22.1),
    "ST Order": (58.6, 25.0),
    "Cross and Learn": (58.7, 27.2),
}

_VIDEOS = [
    _report(
        "table6",
        "actions of UCF-101 and HMDB-51, trained on UCF-101",
        "table 6",
        ("ucf", "hmdb"),
        rows=tuple(Row(f"cmc/ucf101-{name}", label) for name, label in _LABELS6.items()),
        columns=tuple(
            map(Column, (*_VIDEO, *_FROM_RANDOM), ("UCF-101", "HMDB-51", "UCF-101, random", "HMDB-51, random"))
        ),
        references=_said(_accuracies((*_VIDEO, *_FROM_RANDOM), _TABLE6)),
        cited=_accuracies(_VIDEO, _CITED6),
        claims=(
            above(
                "A later frame and motion together are better than each alone (table 6).",
                _VIDEO[0],
                ("V + D", "V + D"),
                ("V", "D"),
                "accuracy on UCF-101 is higher",
            ),
        ),
    ),
]

REPORTS = [*_IMAGENET, *_STL10, *_ROOMS, *_VIDEOS]
"""Reports on the genuine datasets."""
