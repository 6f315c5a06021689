"""What orbits are found in: the videos of a folder, or folders of frames that are already cropped to a face."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.datasets.formats.video.frames import VideoFile
from setsup.datasets.images import decode
from setsup.errors import DataError
from setsup.files import content_digest
from setsup.files.archives.members import MemberIndex, open_members
from setsup.files.expand_user import expanded

__all__ = ["FRAMES", "Clip", "DamagedClipError", "clip_frames", "find_clips"]

Frame = npt.NDArray[np.uint8]

FRAMES = r"(?P<folder>.+)/[^/]+\.(?i:png|jpe?g|bmp|webp|tiff?)"
"""Names of frames, in folders of a track each."""

_VIDEOS = r".+\.(?i:mp4|m4v|mov|mkv|webm|avi|mpe?g|ts|mts|wmv|flv|ogv|ogg|mxf|3gp)"


class DamagedClipError(DataError):
    """A clip cannot be decoded, whatever the stages."""


@dataclass(frozen=True, slots=True)
class Clip:
    """A video, or a folder of frames.

    `places` (n,) int64.
    """

    name: str
    members: MemberIndex
    places: npt.NDArray[np.int64]
    video: VideoFile | None

    def stream(self, stop: int | None = None) -> Iterator[tuple[int, Frame]]:
        """Decode the frames before number `stop`, in one pass: number, and (height, width, 3) uint8 sRGB."""
        if self.video is not None:
            yield from self.video.stream(0, stop)
            return
        for number, frame_place in enumerate(self.places[:stop].tolist()):
            yield number, decode(partial(self.members.read, frame_place), self.members.label(frame_place), 3)

    def digest(self) -> str:
        """SHA-256 of the video, or of all frames one after the other."""
        path = self.members.path(int(self.places[0]))
        if self.video is not None and path is not None:
            return content_digest(path)
        digest = hashlib.sha256()
        for frame_place in self.places.tolist():
            digest.update(self.members.read(frame_place))
        return digest.hexdigest()


def clip_frames(clip: Clip, stop: int | None = None) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Decode the frames of a clip, numbered."""
    try:
        yield from clip.stream(stop)
    except DataError as error:  # what a stage raises meanwhile does not come here
        raise DamagedClipError(str(error)) from error


def find_clips(source: Path | str, without: Path | str | None = None) -> list[Clip]:
    """Find the videos below a folder or in an archive, or else folders of frames."""
    path = expanded(source)
    members = open_members(path)
    inner = None if without is None else _relative(Path(without), path)
    places, _ = members.matching(_VIDEOS)
    clips = []
    for file_place in places.tolist():
        file = members.path(file_place)
        label, name = members.label(file_place), members.names[file_place].as_py()
        video = VideoFile(partial(members.read, file_place) if file is None else file, label)
        clips.append(Clip(name, members, np.array([file_place]), video))
    folders: dict[str, list[int]] = {}
    if not clips:
        places, groups = members.matching(FRAMES)
        for file_place, folder in zip(places.tolist(), groups["folder"].to_pylist(), strict=True):
            folders.setdefault(folder, []).append(file_place)
    clips += [Clip(folder, members, np.array(frame_places), None) for folder, frame_places in sorted(folders.items())]
    clips = [clip for clip in clips if inner is None or not f"{clip.name}/".startswith(inner)]
    if not clips:
        raise DataError(
            f"{path} contains neither videos (mp4, mkv, mov, avi, webm …) nor folders of frames such as "
            "<track>/<frame>.png; choose another folder"
        )
    return clips


def _relative(inner: Path, outer: Path) -> str | None:
    inner, outer = expanded(inner).resolve(), outer.resolve()
    return f"{inner.relative_to(outer).as_posix()}/" if inner.is_relative_to(outer) and inner != outer else None
