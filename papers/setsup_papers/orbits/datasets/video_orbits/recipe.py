"""The "Late Night" recipe: a folder of videos becomes a folder of orbits.

Each stage is a function that can be replaced. What the paper [1]_ leaves open is chosen here: thresholds, margin, which
detectors, what counts as a tie.

References
----------
.. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Trading robust representations for sample complexity through
   self-supervised visual experience", NeurIPS 2018, experiment "Late Night".

"""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.errors import DataError, did_you_mean, imported
from setsup.files import locked
from setsup.files.expand_user import expanded
from setsup.progress import progress
from setsup_papers.orbits.datasets.video_orbits.clips import Clip, DamagedClipError, clip_frames, find_clips
from setsup_papers.orbits.datasets.video_orbits.cuts import ContentCuts, Cuts
from setsup_papers.orbits.datasets.video_orbits.faces import Cascades, Detector, Faces, YuNet, confirmed
from setsup_papers.orbits.datasets.video_orbits.records import (
    TABLE,
    FoundFaces,
    describe_stage,
    is_done,
    write_clip,
    write_table,
)
from setsup_papers.orbits.datasets.video_orbits.tracks import Track, largest, link
from setsup_papers.orbits.datasets.video_orbits.yaw import Canonical, Yaw, least_yaw, yaw_of_points

__all__ = ["extract"]

_KEPT = ("video", "shot", "all")
_VERSION = 1  # of what is written for the same recipe


def extract(
    videos: Path | str,
    out: Path | str,
    *,
    cuts: Cuts = ContentCuts(),  # noqa: B008  (frozen)
    detect: Detector = Cascades(),  # noqa: B008
    confirm: Detector | None = YuNet(),  # noqa: B008
    track: Track = link,
    yaw: Yaw = yaw_of_points,
    canonical: Canonical = least_yaw,
    keep: Literal["video", "shot", "all"] = "video",
    size: int = 96,
    margin: float = 0.2,
) -> Path:
    """Find face tracks in videos, and write their crops with a table.

    Every video is cut into shots; in every frame `detect` proposes faces and `confirm` looks at each again; boxes that
    overlap from frame to frame make a track; the largest track is kept, and its least turned face is its canonical one.

    An interrupted run resumes with the video at which it was stopped, and produces identical output. A
    video is done again where its content or the recipe has changed.

    Parameters
    ----------
    videos : Path or str
        Folder (or zip, tar) of videos at any depth. Where it has none: folders of frames that are already cropped,
        ``<track>/<frame>.png``. Each is a track then; neither `cuts`, `detect`, `track` nor `keep` are used, and frames
        in which `confirm` sees no face stay, with score and yaw unknown.
    out : Path or str
        Folder to write: ``orbits.csv``, and ``tracks/<video>/<shot>-<number>/<frame>.png``.
    cuts : Cuts
        ``cuts(video)``: first frames of the shots but the first.
    detect : Detector
        ``detect(frame)``: faces, as a first stage proposes them.
    confirm : Detector or None
        The second stage, which gets the surroundings of each of them, and whose boxes, scores and points count. None
        leaves it out; without points no yaw is known, and the face with the best score is the canonical one.
    track : Track
        ``track(boxes)``: numbers of tracks in a shot.
    yaw : Yaw
        ``yaw(frame, faces)``: degrees.
    canonical : Canonical
        ``canonical(yaw, score)``: place of the canonical face in a track.
    keep : str
        ``"video"``: the largest track of each video, which has the most faces; ``"shot"``: of each shot; ``"all"``.
    size : int, px
        Side of the crops.
    margin : float
        How far a crop goes beyond the box on each side, as a share of the box's longer side. Crops are square; beyond
        the frame its last pixels are repeated.

    Returns
    -------
    Path
        The table; its folder opens with ``setsup.load("video-orbits", root=out)``.

    Raises
    ------
    DataError
        There is nothing to find orbits in, a library or the weights of a stage are missing, a stage gives what it
        should not, or the disk is full. Videos that are damaged are named once all others are done.

    Notes
    -----
    A stage is recorded by its name and, for a dataclass, its fields: after a change inside a function of your own,
    remove `out`. The content of files named in fields, such as weights, is not looked at.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("ann/0.png", "ann/1.png", "bob/0.png"):
    ...     (folder / "crops" / name).parent.mkdir(parents=True, exist_ok=True)
    ...     Image.new("RGB", (40, 50), "tan").save(folder / "crops" / name)
    >>> def points(frame):
    ...     return Faces([[0, 0, 40, 50]], [0.9], [[[12, 20], [28, 20], [20, 28], [14, 38], [26, 38]]])
    >>> table = extract(folder / "crops", folder / "orbits", confirm=points)
    >>> table.read_text().splitlines()[1]
    'tracks/ann/000000.png,,,ann,0,,0.00,0.00,40.00,50.00,0.900000,0.0000,true'

    """
    if keep not in _KEPT:
        raise DataError(f"keep must be one of {', '.join(_KEPT)}, not {keep!r}{did_you_mean(keep, _KEPT)}")
    if not (isinstance(size, int) and size > 0 and margin >= 0):
        raise DataError(
            f"size must be a positive number of pixels and margin not negative, not {size!r} and {margin!r}"
        )
    out = expanded(out)
    stages = {"cuts": cuts, "detect": detect, "confirm": confirm, "track": track, "yaw": yaw, "canonical": canonical}
    recipe = {"version": _VERSION, **{name: describe_stage(stage) for name, stage in stages.items()}}
    recipe |= {"keep": keep, "size": size, "margin": margin}
    clips = find_clips(videos, out)
    if clips[0].video is not None:
        imported("av", "video")
    damaged: list[DataError] = []
    with locked(out / TABLE), progress(len(clips), "finding orbits", "videos") as advance:
        for clip in clips:
            # a folder of frames may hold another one; it comes first, and replacing it has the other one done again
            folder = out / "tracks" / clip.name
            record = {"sha256": clip.digest(), **recipe}
            if not is_done(folder, record):
                try:
                    if clip.video is None:
                        faces = _take_cropped(clip, confirm, yaw)
                    else:
                        faces = _keep_tracks(_detect_all(clip, detect, confirm, yaw), _shots(clip, cuts), track, keep)
                    write_clip(folder, clip, faces, canonical, size, margin, record)
                except DamagedClipError as error:
                    damaged.append(error)
            advance()
        if damaged:
            more = f" (and {len(damaged) - 1:,} more)" if len(damaged) > 1 else ""
            raise DataError(
                f"{damaged[0]}{more}; the other videos ({len(clips) - len(damaged):,}) are finished and will not be "
                "processed again"
            )
        return write_table(out, clips, recipe)


def _shots(clip: Clip, cuts: Cuts) -> npt.NDArray[np.int64]:
    """First frame of every shot."""
    if clip.video is None:
        return np.zeros(1, np.int64)
    try:
        frames = clip.video.frames
    except DataError as error:
        raise DamagedClipError(str(error)) from error
    firsts = np.asarray(cuts(clip.video), np.float64).reshape(-1)
    if len(firsts) and not ((firsts % 1 == 0).all() and (np.diff([0, *firsts, frames]) > 0).all()):
        raise DataError(
            f"{clip.video.label}: cuts must be the first frames of shots, increasing from 1 to {frames - 1}, not "
            f"{firsts[:5].tolist()}; correct the stage that finds them"
        )
    return np.array([0, *firsts], np.int64)


def _detect_all(clip: Clip, detect: Detector, confirm: Detector | None, yaw: Yaw) -> list[tuple[Faces, Array]]:
    """Faces of every frame, and their yaw."""
    detected = []
    for _, frame in clip_frames(clip):
        faces = _check_faces(detect(frame), detect)
        if confirm is not None and len(faces):
            faces = confirmed(frame, faces, confirm)
        detected.append((faces, _yaws(yaw, frame, faces)))
    return detected


def _take_cropped(clip: Clip, confirm: Detector | None, yaw: Yaw) -> FoundFaces:
    """Frames that are faces already, all of them, with the score and yaw of the face that is seen best."""
    boxes, scores, yaws = [], [], []
    for _, frame in clip_frames(clip):
        faces = Faces([], []) if confirm is None else _check_faces(confirm(frame), confirm)
        best = faces.take([int(np.argmax(faces.scores))]) if len(faces) else faces
        boxes.append([0, 0, frame.shape[1], frame.shape[0]])
        scores.append(best.scores[0] if len(best) else np.nan)
        yaws.append(_yaws(yaw, frame, best)[0] if len(best) else np.nan)
    none = np.full(len(boxes), -1)
    return FoundFaces(np.arange(len(boxes)), none, none, np.array(boxes, float), np.array(scores), np.array(yaws))


def _check_faces(faces: object, stage: object) -> Faces:
    if not isinstance(faces, Faces):
        raise DataError(f"the detector {describe_stage(stage)} must return Faces, not a {type(faces).__name__}")
    return faces


def _yaws(yaw: Yaw, frame: npt.NDArray[np.uint8], faces: Faces) -> Array:
    yaws = np.asarray(yaw(frame, faces), np.float64)
    if yaws.shape != (len(faces),):
        raise DataError(f"the stage {describe_stage(yaw)} must return yaws of shape {(len(faces),)}, not {yaws.shape}")
    return yaws


def _keep_tracks(
    looked: Sequence[tuple[Faces, Array]], shots: npt.NDArray[np.int64], track: Track, keep: str
) -> FoundFaces:
    """Faces of the tracks that are kept."""
    numbers: list[Array] = []
    ends = np.append(shots[1:], len(looked))
    for first, end in zip(shots.tolist(), ends.tolist(), strict=True):
        numbers += track([faces.boxes for faces, _ in looked[first:end]])
    counts = [len(faces) for faces, _ in looked]
    if [len(of_frame) for of_frame in numbers] != counts:
        raise DataError("the stage that links faces into tracks must assign a track number to every box of every frame")
    frame = np.repeat(np.arange(len(looked)), counts)
    shot = np.searchsorted(shots, frame, side="right") - 1
    faces_found = FoundFaces(
        frame,
        shot,
        np.concatenate([np.empty(0, np.int64), *numbers]).astype(np.int64),
        np.concatenate([np.empty((0, 4)), *(faces.boxes for faces, _ in looked)]),
        np.concatenate([np.empty(0), *(faces.scores for faces, _ in looked)]),
        np.concatenate([np.empty(0), *(yaws for _, yaws in looked)]),
    )
    # unlike in different shots, and in their order
    _, whole = np.unique(np.stack([faces_found.shot, faces_found.track], 1), axis=0, return_inverse=True)
    chosen = np.ones(len(frame), bool)
    if keep != "all" and len(frame):
        chosen = largest(shot if keep == "shot" else np.zeros_like(shot), whole.reshape(-1), faces_found.boxes)
    order = np.flatnonzero(chosen)[np.lexsort((frame[chosen], whole.reshape(-1)[chosen]))]
    return FoundFaces(*(getattr(faces_found, field.name)[order] for field in fields(FoundFaces)))
