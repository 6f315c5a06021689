"""Views of images: color channels, patches, pairs of pixels, frames and motion of clips.

A view is a callable that takes a batch of tensors and gives the batch with more modalities; what was there stays as it
was. It is given as ``transform=`` to :func:`setsup.loader`, or put into a
:class:`~setsup.loading.transforms.Compose` after an :class:`~setsup.loading.transforms.Augment`.

Convention
----------
Images are (sets, size, channels, height, width), or (sets, size, copies, channels, height, width), or (sets, channels,
height, width) where there is one a set, such as ``canonical_image``. What is random is keyed by (seed, stream, step,
set, slot, copy): two views of one class with one seed draw the same unless their streams differ.
"""

# ruff: noqa: E402

from setsup.errors import require_modules

require_modules("views need", "torch", "kornia")  # before what imports them

from setsup.loading.views.clips import FrameTriples
from setsup.loading.views.color_views import ColorViews
from setsup.loading.views.flows import FlowViews
from setsup.loading.views.patches import Patches, PatchPairs
from setsup.loading.views.pixels import PlanarPairs
from setsup.loading.views.spatial import SpatialDescriptors, SpatialPairs

__all__ = [
    "ColorViews",
    "FlowViews",
    "FrameTriples",
    "PatchPairs",
    "Patches",
    "PlanarPairs",
    "SpatialDescriptors",
    "SpatialPairs",
]
