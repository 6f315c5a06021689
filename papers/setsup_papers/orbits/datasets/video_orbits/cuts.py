"""First stage: where a video is cut, so that a track never runs from one shot into the next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from setsup.datasets.formats.video.frames import VideoFile
from setsup.errors import imported

__all__ = ["ContentCuts", "Cuts", "no_cuts"]

Cuts = Callable[[VideoFile], Sequence[int]]
"""``cuts(video)`` gives the number of the first frame of every shot but the first, rising."""

_WIDTH = 256


@dataclass(frozen=True, slots=True)
class ContentCuts:
    """Cuts where hue, saturation and brightness change much more than in the frames around.

    This is the adaptive detector of PySceneDetect, on frames of at most 256 columns.

    Parameters
    ----------
    ratio : float
        How many times the change of the two frames before and the two after it a cut exceeds.
    change : float
        Mean change of a pixel that a cut exceeds, of 255.
    shortest : float, s
        No shot but the last is shorter; what changes again before is taken for a flash.

    Raises
    ------
    DataError
        When it is called: PySceneDetect is not installed, or the video cannot be read.

    Examples
    --------
    >>> import io, av, numpy as np
    >>> made = io.BytesIO()
    >>> with av.open(made, "w", format="avi") as file:
    ...     stream = file.add_stream("mpeg4", rate=25, width=64, height=48, pix_fmt="yuv420p")
    ...     for level in [20] * 20 + [200] * 30:
    ...         file.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((48, 64, 3), level, np.uint8))))
    ...     file.mux(stream.encode())
    >>> ContentCuts()(VideoFile(made.getvalue(), "two.avi"))
    [20]

    """

    ratio: float = 3.0
    change: float = 15.0
    shortest: float = 0.6

    def __call__(self, video: VideoFile) -> list[int]:
        """Numbers of the frames at which shots begin, without the first."""
        cv2, scenedetect = imported("cv2", "video"), imported("scenedetect", "video")
        rate = video.rate
        # lengths in whole frames: in seconds, rounding would decide whether a shot is long enough
        detector = imported("scenedetect.detectors", "video").AdaptiveDetector(
            adaptive_threshold=self.ratio,
            min_content_val=self.change,
            min_scene_len=max(1, round(self.shortest * rate)),
        )
        starts: list[int] = []
        for number, frame in video.stream():
            height, width = frame.shape[:2]
            if width > _WIDTH:
                size = (_WIDTH, max(1, round(height * _WIDTH / width)))
                frame = cv2.resize(frame, size, interpolation=cv2.INTER_AREA)
            time = scenedetect.FrameTimecode(number, fps=rate)
            starts += (cut.frame_num for cut in detector.process_frame(time, frame[..., ::-1]))
        return sorted(set(starts))


def no_cuts(video: VideoFile) -> list[int]:
    """Take a video for one shot; for files that hold one shot each.

    Parameters
    ----------
    video : VideoFile
        Not looked at.

    Examples
    --------
    >>> no_cuts(VideoFile("shot.mp4"))
    []

    """
    return []
