"""Networks of views of an image."""

# ruff: noqa: E402

from setsup.errors import require_modules

require_modules("networks need", "torch")  # before what imports it

from setsup_papers.cmc.networks.caffenet import caffenet_view
from setsup_papers.cmc.networks.dense_views import ViewDecoder, nyu_view
from setsup_papers.cmc.networks.views import RESNETS, ViewEncoder, alexnet_view, resnet_view, small_view, stl10_view

__all__ = [
    "RESNETS",
    "ViewDecoder",
    "ViewEncoder",
    "alexnet_view",
    "caffenet_view",
    "nyu_view",
    "resnet_view",
    "small_view",
    "stl10_view",
]
