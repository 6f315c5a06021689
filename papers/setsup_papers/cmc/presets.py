"""Experiments of contrastive multiview coding at the paper's size, and that on views of one's own.

Epochs are steps here: as many as take the images of the data once. Where the published code differs from the text, the
text is followed, and presets whose names end in ``-code`` have the values of the code.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from setsup.experiments.data import YOURS, Data
from setsup.experiments.image_batches import Images
from setsup.experiments.optimisation import SGD, Adam, StepDecay
from setsup.experiments.preset import Evaluation, Preset
from setsup_papers.cmc.actions import Actions
from setsup_papers.cmc.augmentations import Frames, PatchViews, ViewCrops
from setsup_papers.cmc.layer_probes import LayerProbes
from setsup_papers.cmc.segmentation import Segmentation
from setsup_papers.cmc.settings import CMCSettings, CrossViewPredictionSettings
from setsup_papers.cmc.view_information import ViewsInformation

__all__ = [
    "ADAM",
    "FLOWS",
    "MOMENTUM",
    "NEGATIVES",
    "OFFSETS",
    "PAPER",
    "PRESETS",
    "RESNETS",
    "SPACES",
    "VIEWS",
    "arrays_of",
    "contrast_patches",
    "number_of_views",
]

PAPER = '"Contrastive multiview coding", arXiv 1906.05849'

NEGATIVES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
"""Numbers of negatives of figure 6."""

VIEWS = ("L", "ab", "depth", "normals")
"""Views of rooms, in the order in which they are added."""

SPACES: Mapping[str, tuple[str, str]] = {
    "lab": ("L", "ab"),
    "ycbcr": ("Y", "CbCr"),
    "hsv": ("H", "SV"),
    "hed": ("H", "ED"),
    "luv": ("L", "uv"),
    "yuv": ("Y", "UV"),
    "xyz": ("X", "YZ"),
    "ydbdr": ("Y", "DbDr"),
    "ypbpr": ("Y", "PbPr"),
    "yiq": ("Y", "IQ"),
    "rgbcie": ("R", "GB"),
}
"""Colour spaces of figure 5, with the views that they are split into."""

OFFSETS = (64, 128, 192, 256, 320, 384)
"""Distances of patches of figure 5, pixels in x and in y."""

MOMENTUM = SGD(rate=0.03, momentum=0.9, weight_decay=1e-4)
"""The optimiser of memory banks."""

ADAM = Adam(rate=1e-3, betas=(0.5, 0.999))
"""The optimiser of patches, and of predictions across views."""

_IMAGENET, _IMAGENET_100, _STL10, _NYU, _UCF101 = 1_281_167, 126_689, 105_000, 795, 9_537
"""Images that are trained on."""

_IMAGE = ("image",)
_SIZE = (("size", (256, 256)),)


def _steps(epochs: int, images: int, batch: int) -> int:
    return round(epochs * images / batch)


def _decays(factor: float, epochs: tuple[int, ...], images: int, batch: int) -> StepDecay:
    """Decays after these epochs: the code lowers the rate in the epoch after the one that it lists."""
    return StepDecay(factor=factor, at=tuple(_steps(epoch, images, batch) for epoch in epochs))


def _crops(size: int, crop: str, **more: Any) -> dict[str, Any]:
    """Augmentation, and the same from the middle of images."""
    training = ViewCrops(size=size, crop=crop, flip=True, **more)  # type: ignore[arg-type]
    return {"augmentation": training, "eval_transform": replace(training, crop="center", flip=False)}


# -- ImageNet ----------------------------------------------------------------------------------------------------------

_PAPER_EPOCHS, _CODE_EPOCHS = (400, (250, 300, 350)), (240, (120, 160, 200))
"""Epochs of AlexNet, and those after which the rate decays."""


def _probes(epochs: int = 160, decays: tuple[int, ...] = (100, 120, 140)) -> LayerProbes:
    return LayerProbes(factor="synset", split="val", epochs=epochs, decays=decays, baselines=("untrained",))


def _imagenet(
    name: str,
    shows: str,
    method: CMCSettings,
    batch: int,
    epochs: int,
    decays: tuple[int, ...],
    probes: LayerProbes,
    least: float = 0.2,
    data: str = "imagenet",
) -> Preset:
    images = _IMAGENET if data == "imagenet" else _IMAGENET_100
    return Preset(
        name=f"cmc/{name}",
        shows=shows,
        data=Data(data, "train", options=_SIZE, modalities=_IMAGE),
        sampler=Images(size=batch),
        method=replace(method, schedule=_decays(0.1, decays, images, batch)),
        steps=_steps(epochs, images, batch),
        checkpoint_every=1_000,
        evaluations={"layers": probes},
        **_crops(224, "resized", area=(least, 1.0)),
    )


RESNETS = {
    "resnet50": ("ResNet-50", "resnet50", 1.0, 280, 0.08),
    "resnet101": ("ResNet-101", "resnet101", 1.0, 200, 0.05),
    "resnet50x2": ("ResNet-50 of double width", "resnet50", 2.0, 156, 0.04),
}
"""Rows of table 2: what they are, the encoder and its width, images of a batch, learning rate."""


def _imagenet_presets() -> Iterator[Preset]:
    base = CMCSettings(optimiser=MOMENTUM)
    table = "table 1, ImageNet, AlexNet"
    yield _imagenet("imagenet-alexnet", table, base, 128, *_PAPER_EPOCHS, _probes())
    code = _probes(60, (30, 40, 50))
    yield _imagenet(
        "imagenet-alexnet-code", f"{table}, as the code has it", replace(base, negatives=16_384), 128, *_CODE_EPOCHS,
        code,
    )  # fmt: skip
    for name, (words, encoder, width, batch, rate) in RESNETS.items():
        method = replace(base, encoder=encoder, width=width, optimiser=replace(MOMENTUM, rate=rate))  # type: ignore[arg-type]
        probes = replace(_probes(100, (60, 75, 90)), layers=("pool",), pooled=(), rate=50.0 if width > 1 else 30.0)
        shows = f"table 2, ImageNet, {words}"
        yield _imagenet(f"imagenet-{name}", shows, method, batch, 280, (160, 200, 240), probes, least=0.08)
    for end, words, epochs, probes in (
        ("", "", _PAPER_EPOCHS, _probes()),
        ("-code", ", as the code trains", _CODE_EPOCHS, code),
    ):
        for count in NEGATIVES:
            shows = f"figure 6, ImageNet-100, {count:,} negatives{words}"
            method = replace(base, negatives=count)
            yield _imagenet(f"fig6-m{count}{end}", shows, method, 128, *epochs, probes, data="imagenet-100")


# -- STL-10 ------------------------------------------------------------------------------------------------------------

_CATEGORIES = LayerProbes(
    factor="category",
    layers=("conv5", "fc7"),
    pooled=(),
    hidden=(0, 200),
    fit="train",
    split="test",
    epochs=100,
    decays=(60, 80),
    rate=ADAM.rate,
    betas=ADAM.betas,
)
_STRIDED = replace(_CATEGORIES, layers=("conv5",), strided=(16, 8))  # dense layers read crops of 64 only


def _stl10(name: str, shows: str, method: CMCSettings, epochs: int, **more: Any) -> Preset:
    parts: dict[str, Any] = {"evaluations": {"layers": _CATEGORIES}, **_crops(64, "box"), **more}
    return Preset(
        name=f"cmc/{name}",
        shows=shows,
        data=Data("stl10", "cmc", modalities=_IMAGE),
        sampler=Images(size=128),
        method=method,
        steps=_steps(epochs, _STL10, 128),
        checkpoint_every=1_000,
        **parts,
    )


def _stl10_methods() -> tuple[CMCSettings, CMCSettings]:
    """Of patches within batches, and of memory banks."""
    base = CMCSettings(encoder="stl10", features=64, temperature=0.1)
    patch = replace(base, objective="patch", optimiser=ADAM, schedule=_decays(0.2, (120, 160), _STL10, 128))
    nce = replace(base, optimiser=MOMENTUM, schedule=_decays(0.1, (200, 240, 280), _STL10, 128))
    return patch, nce


def _stl10_presets() -> Iterator[Preset]:
    patch, nce = _stl10_methods()
    untrained = replace(_CATEGORIES, baselines=("untrained",))
    both: dict[str, Evaluation] = {"layers": untrained, "strided": _STRIDED}
    yield _stl10("stl10-patch", "table 5, STL-10, patches within batches", patch, 200, evaluations=both)
    yield _stl10("stl10-nce", "table 5, STL-10, NCE with memory banks", nce, 320)
    for space, views in SPACES.items():
        crops = _crops(64, "box", views=views, space=space)
        found: dict[str, Evaluation] = {"layers": _CATEGORIES, "information": ViewsInformation()}
        shows = f"figure 5, STL-10, {views[0]} and {views[1]} of {space}"
        yield _stl10(f"fig5-{space}", shows, replace(nce, views=views), 320, evaluations=found, **crops)


def _patch_presets() -> Iterator[Preset]:
    """Patches of 2K images; all of them are cut to one size, which a batch needs."""
    _, nce = _stl10_methods()
    for offset in OFFSETS:
        views = PatchViews(offset=offset)
        yield Preset(
            name=f"cmc/fig5-d{offset}",
            shows=f"figure 5, DIV2K, patches {offset} px apart",
            data=Data("div2k", "train", where="scale == 1", options=(("crop", (640, 640)),), modalities=_IMAGE),
            sampler=Images(size=100),
            method=replace(
                nce,
                views=("patch_1", "patch_2"),
                objective="in_batch",
                schedule=StepDecay(factor=0.1, at=(30_000, 40_000)),
            ),
            augmentation=views,
            eval_transform=views,
            steps=50_000,
            checkpoint_every=1_000,
            evaluations={"information": ViewsInformation()},
        )


# -- NYU ---------------------------------------------------------------------------------------------------------------

_NYU_STEPS = _steps(3_000, _NYU, 128)
_NYU_DECAY = _decays(0.2, (2_000, 2_400, 2_800), _NYU, 128)
_LABELS = "labels13"


def _nyu(name: str, shows: str, method: CMCSettings | CrossViewPredictionSettings, **evaluations: Evaluation) -> Preset:
    photographs = any(isinstance(one, LayerProbes) for one in evaluations.values())
    stl10 = {f"stl10_{part}": Data("stl10", part, modalities=_IMAGE) for part in ("train", "test")}
    return Preset(
        name=f"cmc/nyu-{name}",
        shows=shows,
        data=Data("nyu", "train", modalities=arrays_of(method.views)),
        datasets=stl10 if photographs else {},
        sampler=Images(size=128),
        method=method,
        steps=_NYU_STEPS,
        checkpoint_every=500,
        evaluations=evaluations,
        **_crops(128, "box", views=method.views),
    )


def arrays_of(views: tuple[str, ...]) -> tuple[str, ...]:
    """Modalities of rooms from which views are made."""
    return ("image", *(view for view in views if view not in ("L", "ab")))


def number_of_views(count: int) -> tuple[tuple[str, ...], str]:
    """The first views of rooms, and what their preset shows of figure 4."""
    views = VIEWS[:count]
    return views, "L alone: local infomax" if count == 1 else f"{', '.join(views)}, core view L"


def contrast_patches(*views: str, **more: Any) -> CMCSettings:
    """Settings of the contrast of patches of rooms, with the first view in the core."""
    settings: dict[str, Any] = {
        "pairs": "core",
        "objective": "patch",
        "encoder": "nyu",
        "features": 256,
        "optimiser": ADAM,
    }
    return CMCSettings(views=views, **settings | more)


_contrast = partial(contrast_patches, schedule=_NYU_DECAY)


def _segmentation(*views: str, baselines: bool = False) -> Segmentation:
    return Segmentation(
        views=views,
        labels=_LABELS,
        split="test",
        steps=_steps(200, _NYU, 64),
        baseline_steps=_steps(1_000, _NYU, 64),
        baselines=("untrained", "supervised") if baselines else (),
    )


def _nyu_presets() -> Iterator[Preset]:
    from_l = _segmentation("L")
    for count in range(1, len(VIEWS) + 1):
        views, words = number_of_views(count)
        yield _nyu(f"{count}-views", f"figure 4, NYU: {words}", _contrast(*views), segmentation=from_l)
    yield _nyu(
        "full",
        f"tables 3 and 7, NYU: {', '.join(VIEWS)}, full graph",
        _contrast(*VIEWS, pairs="full"),
        segmentation=_segmentation(*VIEWS, baselines=True),
    )
    stl10 = LayerProbes(
        factor="category",
        layers=("conv5",),
        pooled=(),
        views=("L",),
        fit_dataset="stl10_train",
        dataset="stl10_test",
        epochs=100,
        decays=(60, 80),
        rate=ADAM.rate,
        betas=ADAM.betas,
        baselines=("untrained",),
    )
    for target in ("depth", "normals", _LABELS):
        what = "labels" if target == _LABELS else target
        shows = f"table 4, NYU to STL-10: L and {what}"
        yield _nyu(f"contrast-{what}", f"{shows}, contrasted", _contrast("L", target), layers=stl10)
        prediction = CrossViewPredictionSettings(
            target=target,
            error="cross_entropy" if target == _LABELS else "l2",
            optimiser=ADAM,
            schedule=_NYU_DECAY,
        )
        yield _nyu(f"predict-{what}", f"{shows}, predicted", prediction, layers=stl10)


# -- videos ------------------------------------------------------------------------------------------------------------

FLOWS = {
    "v": ("V: a frame and a later one", ("frame", "later")),
    "d": ("D: a frame and the motion around it", ("frame", "flow_stack")),
    "vd": ("V + D: a frame with both", ("frame", "later", "flow_stack")),
}
"""Rows of table 6: what is contrasted."""


def _video_presets() -> Iterator[Preset]:
    options = (("flow", True), ("length", 16), ("size", (240, 320)))
    arrays = ("video", "flow")
    for name, (words, views) in FLOWS.items():
        crops = Frames(size=224)
        yield Preset(
            name=f"cmc/ucf101-{name}",
            shows=f"table 6, UCF-101, {words}",
            data=Data("ucf101", "split1-train", options=options, modalities=arrays),
            datasets={"hmdb51": Data("hmdb51", options=(("length", 16), ("size", (240, 320))), modalities=("video",))},
            sampler=Images(size=128),
            method=CMCSettings(
                views=views,
                pairs="core",
                objective="in_batch",
                encoder="caffenet",
                shared=("frame", "later") if "later" in views else (),
                apart=("action", "group", "clip"),
                optimiser=Adam(rate=1e-3),
                schedule=_decays(0.2, (200, 250), _UCF101, 128),
            ),
            augmentation=crops,
            eval_transform=replace(crops, center=True),
            steps=_steps(300, _UCF101, 128),
            checkpoint_every=500,
            evaluations={
                "ucf": Actions(baselines=("untrained",) if name == "vd" else ()),
                "hmdb": Actions(dataset="hmdb51", baselines=("untrained",) if name == "vd" else ()),
            },
        )


# -- views of one's own ------------------------------------------------------------------------------------------------

_OWN_VIEWS = ViewCrops(views=("image", "depth"))
_OWN = Preset(
    name="cmc",
    shows="views of your own data",
    missing={
        YOURS: "name them and their modalities, as in `setsup train cmc --data.name mine.npz --views image,depth`"
    },
    data=Data(YOURS),
    sampler=Images(size=64),
    # patches projected to the default of 2,048 numbers diverged on images of 32 × 32
    method=CMCSettings(views=_OWN_VIEWS.views, encoder="small", negatives=1024, optimiser=ADAM, projection=256),
    augmentation=_OWN_VIEWS,
    eval_transform=replace(_OWN_VIEWS, crop="center"),
    steps=5_000,
)

PRESETS = [
    *_imagenet_presets(),
    *_stl10_presets(),
    *_patch_presets(),
    *_nyu_presets(),
    *_video_presets(),
    _OWN,
]
"""Experiments at the paper's size, and on views of one's own."""
