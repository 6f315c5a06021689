"""Rendered datasets in the files that other projects read: COCO, BOP, transforms.json, TAP-Vid, Sintel and KITTI."""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup.exports.coco import encode_rle
    from setsup.exports.flow import encode_flo, encode_kitti_flow
    from setsup.exports.tapvid import Video, write_tap_vid
    from setsup.exports.writing import Exported, export_renders

__all__ = [
    "Exported",
    "Video",
    "encode_flo",
    "encode_kitti_flow",
    "encode_rle",
    "export_renders",
    "write_tap_vid",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "coco": ("encode_rle",),
            "flow": ("encode_flo", "encode_kitti_flow"),
            "tapvid": ("Video", "write_tap_vid"),
            "writing": ("Exported", "export_renders"),
        },
    )
