"""Every method refuses learning rates that are not above 0, from the command and from Python."""

import math
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup
from setsup.errors import SetsupError
from setsup.experiments.configs import build_method
from setsup_papers.abc.pose.baseline_settings import (
    CCVAESettings,
    ExclusiveInformationSettings,
    SharedInformationSettings,
)
from setsup_papers.abc.pose.settings import PoseABCSettings
from setsup_papers.abc.presets import ABCSettings
from setsup_papers.dcodr.baseline_settings import (
    AmortisedLORDSettings,
    DRNETSettings,
    LORDSettings,
    MLVAESettings,
)
from setsup_papers.dcodr.settings import DCoDRSettings
from setsup_papers.orbits.settings import OrbitJointSettings
from setsup_papers.pixels.settings import PixelContrastSettings

SHAPES = ("shape",)
SMALL: list[Any] = [
    ABCSettings(encoder="shapes3d"),
    OrbitJointSettings(orbit=SHAPES, image=(3, 16, 16), channels=(2, 2), pools=(2, 2), dimensions=4),
    PixelContrastSettings(widths=(8,), blocks=(1,), features=2),
    DCoDRSettings(domain=SHAPES).shrunk(),
    LORDSettings(domain=SHAPES).shrunk(),
    AmortisedLORDSettings(domain=SHAPES).shrunk(),
    DRNETSettings(domain=SHAPES).shrunk(),
    MLVAESettings(domain=SHAPES, hidden=4),
    PoseABCSettings(encoder="small"),
    CCVAESettings(),
    SharedInformationSettings().shrunk(),
    ExclusiveInformationSettings().shrunk(),
]
CASES = [
    pytest.param(settings, name, id=f"{type(settings).__name__}-{name}")
    for settings in SMALL
    for name in ("rate", "generator_rate", "style_rate", "latent_rate")
    if hasattr(settings, name)
]


@pytest.mark.parametrize(("settings", "name"), CASES)
def test_rates_are_above_0(settings: Any, name: str) -> None:
    table = setsup.load("shapes3d-procedural").factors
    build_method(replace(settings, **{name: 1e-30}), table, 0)
    for value in (0.0, -1e-3, math.inf, math.nan):
        with pytest.raises(SetsupError, match=f"^{name}, a learning rate, must be a finite number above 0, not "):
            build_method(replace(settings, **{name: value}), table, 0)


@pytest.mark.parametrize("settings", [SMALL[4], SMALL[5]], ids=["LORD", "AmortisedLORD"])
def test_the_rate_at_the_end_may_be_0(settings: Any) -> None:
    table = setsup.load("shapes3d-procedural").factors
    build_method(replace(settings, last_rate=0.0), table, 0)
    with pytest.raises(
        SetsupError, match=r"^last_rate, a learning rate, must be a finite number of at least 0, not -1"
    ):
        build_method(replace(settings, last_rate=-1.0), table, 0)
