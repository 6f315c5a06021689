"""TAP-Vid: videos with tracks of points, real ones (DAVIS) and rendered ones (RGB-Stacking)."""

from setsup.datasets.benchmarks.tapvid.dataset import PointVideos, VideoTracks

__all__ = ["PointVideos", "VideoTracks"]
