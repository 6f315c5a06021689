"""Which pixel of one image is which pixel of another."""

from setsup.correspondence.flow import flow, scene_flow, scene_tracks
from setsup.correspondence.from_depth import from_depth, recorded_camera
from setsup.correspondence.from_tracks import from_tracks
from setsup.correspondence.homographies import planar_pairs
from setsup.correspondence.matching import keypoints, recorded, stored, tracked
from setsup.correspondence.overlaps.measuring import overlap
from setsup.correspondence.pair_files.writing import PairFiles, write_pairs
from setsup.correspondence.pair_sampler import PixelPairSampler
from setsup.correspondence.pairs import AffinePairs, affine_pairs
from setsup.correspondence.photographs import Photographs, open_photographs
from setsup.correspondence.pixel_pairs import PixelPairs, Status
from setsup.correspondence.pixel_partners import Partners, partners
from setsup.correspondence.planar import carried, inside
from setsup.correspondence.rendered_frames import RenderedFrames
from setsup.correspondence.rendered_pairs import RenderedPairs, pair_table
from setsup.correspondence.spatial import spatial
from setsup.correspondence.view_pairs import DescriptorPairs, descriptor_pairs, view_pairs
from setsup.samplers.overlap.set_pairs import pair_positions

__all__ = [
    "AffinePairs",
    "DescriptorPairs",
    "PairFiles",
    "Partners",
    "Photographs",
    "PixelPairSampler",
    "PixelPairs",
    "RenderedFrames",
    "RenderedPairs",
    "Status",
    "affine_pairs",
    "carried",
    "descriptor_pairs",
    "flow",
    "from_depth",
    "from_tracks",
    "inside",
    "keypoints",
    "open_photographs",
    "overlap",
    "pair_positions",
    "pair_table",
    "partners",
    "planar_pairs",
    "recorded",
    "recorded_camera",
    "scene_flow",
    "scene_tracks",
    "spatial",
    "stored",
    "tracked",
    "view_pairs",
    "write_pairs",
]
