"""Second and third stage: faces in a frame. A detector that proposes, a stricter one that confirms and gives points.

Both are detectors: any function of a frame that gives :class:`Faces`. What comes with the library uses OpenCV, for its
cascades because their weights are part of the package, for YuNet because it gives five points of a face and a score
that can be compared, and its weights (0.2 MB, MIT licence) can be had with ``setsup fetch video-orbits``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.errors import DataError, imported
from setsup.files import data_places
from setsup.files.expand_user import expanded
from setsup_papers.orbits.datasets.video_orbits.tracks import overlap

__all__ = ["WEIGHTS", "Cascades", "Detector", "Faces", "YuNet", "confirmed"]

Frame = npt.NDArray[np.uint8]

WEIGHTS = "face_detection_yunet_2023mar.onnx"
"""File with YuNet's weights, as its authors named it."""

_ARRAYS = ("boxes", "scores", "points")
_SAME = 0.4  # overlap from which boxes of two cascades are one face


class Faces:
    """Faces that a detector found in a frame.

    Parameters
    ----------
    boxes : (n, 4) float, px
        Left, top, right and bottom edge.
    scores : (n,) float
        How sure the detector is; only those of one detector are compared.
    points : (n, 5, 2) float, px, optional
        (x, y) of the person's right eye, left eye, tip of the nose, right and left corner of the mouth; NaN where
        unknown, as all are where none are given.

    Attributes
    ----------
    boxes, scores, points : float64 arrays
        As passed in.

    Raises
    ------
    DataError
        When the arrays do not fit together, a box has no area, or a score is not a number.

    Examples
    --------
    >>> len(Faces([[10, 10, 50, 60]], [0.9])), len(Faces([], []))
    (1, 0)

    """

    __slots__ = ("boxes", "points", "scores")

    def __init__(self, boxes: npt.ArrayLike, scores: npt.ArrayLike, points: npt.ArrayLike | None = None) -> None:
        corners, sure = np.asarray(boxes, np.float64), np.asarray(scores, np.float64).reshape(-1)
        count = len(sure)
        five = np.full((count, 5, 2), np.nan) if points is None else np.asarray(points, np.float64)
        if corners.size != 4 * count or five.size != 10 * count:
            raise DataError(
                "a detector must return 4 numbers for the box and 10 numbers for the points of each face, not "
                f"{corners.size} and {five.size} for {count} scores"
            )
        self.boxes, self.scores, self.points = corners.reshape(-1, 4), sure, five.reshape(-1, 5, 2)
        whole = np.isfinite(self.boxes).all() and np.isfinite(sure).all()
        if not (whole and (self.boxes[:, 2:] > self.boxes[:, :2]).all()):
            raise DataError(
                "a detector must return finite scores and finite boxes (left, top, right, bottom) with left < right "
                "and top < bottom"
            )

    def __len__(self) -> int:
        """Count the faces."""
        return len(self.boxes)

    def take(self, which: npt.ArrayLike) -> "Faces":
        """Some of the faces, by their places or a mask."""
        which = np.asarray(which)
        which = which if which.dtype == bool else which.astype(np.int64)
        return Faces(self.boxes[which], self.scores[which], self.points[which])

    def moved(self, x: float, y: float) -> "Faces":
        """Faces of a part of a frame, which begins at (x, y), in the pixels of the frame."""
        return Faces(self.boxes + np.array([x, y, x, y]), self.scores, self.points + np.array([x, y]))


Detector = Callable[[Frame], Faces]
"""``detector(frame)`` finds the faces in a frame, (height, width, 3) uint8 sRGB."""


@dataclass(frozen=True, slots=True)
class Cascades:
    """The cascades of OpenCV, whose weights come with its package: fast where few windows look like faces.

    Parameters
    ----------
    names : tuple of str
        Files of ``cv2.data`` without ``haarcascade_`` and ``.xml``. Of faces that two of them find, the box and score
        of the earlier one stay. A ``profileface``, trained on one side, looks at the mirrored frame too.
    smallest : float
        Least side of a face, as a share of the frame's shorter side.
    side : int, px
        Longest side to which a larger frame is scaled down before it is searched.
    step : float
        Ratio of the sizes that are tried, above 1.
    votes : int
        Overlapping windows that a face needs.

    Raises
    ------
    DataError
        When it is called: OpenCV is not installed, is a version without cascades (5), or has no such file.

    Notes
    -----
    The score is the sum of the cascade's last stage, for the best window.

    Examples
    --------
    >>> import numpy as np
    >>> len(Cascades()(np.zeros((120, 160, 3), np.uint8)))
    0

    """

    names: tuple[str, ...] = ("frontalface_alt2", "profileface")
    smallest: float = 0.1
    side: int = 320
    step: float = 1.1
    votes: int = 3
    _open: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(self, frame: Frame) -> Faces:
        """Faces in a frame."""
        cv2 = imported("cv2", "video")
        image, back = _scale(frame, self.side)
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        boxes, scores = np.empty((0, 4)), np.empty(0)
        for name in self.names:
            for mirrored in (False, True)[: 1 + name.startswith("profileface")]:
                more, sure = self._detect(self._cascade(cv2, name), grey[:, ::-1].copy() if mirrored else grey)
                if mirrored:
                    more[:, [0, 2]] = grey.shape[1] - more[:, [2, 0]]
                new = ~(overlap(more, boxes) >= _SAME).any(1)
                boxes, scores = np.concatenate([boxes, more[new]]), np.concatenate([scores, sure[new]])
        return Faces(boxes * np.tile(back, 2), scores)

    def _detect(self, cascade: Any, grey: Frame) -> tuple[Array, Array]:
        least = max(1, round(self.smallest * min(grey.shape)))
        rectangles, _, sure = cascade.detectMultiScale3(
            grey, self.step, self.votes, minSize=(least, least), outputRejectLevels=True
        )
        corners = np.asarray(rectangles, np.float64).reshape(-1, 4)
        boxes = np.concatenate([corners[:, :2], corners[:, :2] + corners[:, 2:]], 1)
        scores = np.asarray(sure, np.float64).reshape(-1)
        # OpenCV's threads finish in any order
        order = np.lexsort((*boxes.T[::-1], -scores))
        return boxes[order], scores[order]

    def _cascade(self, cv2: Any, name: str) -> Any:
        if name not in self._open:
            if not hasattr(cv2, "CascadeClassifier"):
                raise DataError(
                    f"OpenCV {cv2.__version__} no longer has cascades; install opencv-python-headless below 5, or pass "
                    "another detector"
                )
            path = Path(cv2.data.haarcascades) / f"haarcascade_{name}.xml"
            if not path.is_file():
                known = ", ".join(sorted(file.stem[12:] for file in path.parent.glob("haarcascade_*face*.xml")))
                raise DataError(f"OpenCV has no cascade named {name!r}; choose from {known}")
            self._open[name] = cv2.CascadeClassifier(str(path))
        return self._open[name]


@dataclass(frozen=True, slots=True)
class YuNet:
    """YuNet [1]_ by OpenCV: boxes, scores in 0 … 1, and five points.

    Parameters
    ----------
    weights : Path or str, optional
        The file ``face_detection_yunet_2023mar.onnx``; where ``setsup fetch video-orbits`` puts it by default.
    least : float
        Score that a face needs.
    side : int, px
        Longest side to which a larger image is scaled down; faces of more than about 300 pixels are not found.

    Raises
    ------
    DataError
        When it is called: OpenCV is not installed, or the file is missing or damaged.

    References
    ----------
    .. [1] W. Wu, H. Peng, S. Yu, "YuNet: a tiny millisecond-level face detector", Machine Intelligence Research, 2023.

    Examples
    --------
    >>> YuNet("nowhere.onnx")(np.zeros((64, 64, 3), np.uint8))
    Traceback (most recent call last):
    setsup.errors.DataError: the weights of YuNet, nowhere.onnx, are missing; fetch them with `setsup fetch video-orbits` (0.2 MB, MIT licence), or pass confirm=None or another detector

    """  # noqa: E501

    weights: Path | str | None = None
    least: float = 0.6
    side: int = 320
    _open: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(self, frame: Frame) -> Faces:
        """Faces in a frame."""
        cv2 = imported("cv2", "video")
        path = self._path()
        small, back = _scale(frame, self.side)
        image, size = np.ascontiguousarray(small[..., ::-1]), small.shape[1::-1]
        try:
            if "net" not in self._open:
                self._open["net"] = cv2.FaceDetectorYN.create(str(path), "", size, self.least)
            self._open["net"].setInputSize(size)
            detected = self._open["net"].detect(image)[1]
        except cv2.error as error:
            raise DataError(
                f"OpenCV could not load {path} ({' '.join(str(error).split())[:120]}); remove it and run `setsup fetch "
                "video-orbits`"
            ) from error
        rows = np.empty((0, 15)) if detected is None else np.asarray(detected, np.float64)
        boxes = np.concatenate([rows[:, :2], rows[:, :2] + rows[:, 2:4]], 1)
        points = rows[:, 4:14].reshape(-1, 5, 2) * back
        faces = Faces(boxes * np.tile(back, 2), rows[:, 14], points)
        return faces.take(np.lexsort((*faces.boxes.T[::-1], -faces.scores)))

    def _path(self) -> Path:
        places = [folder / WEIGHTS for folder in data_places("video-orbits")]
        if self.weights is not None:
            places = [expanded(self.weights)]
        for path in places:
            if path.is_file():
                return path
        raise DataError(
            f"the weights of YuNet, {places[0]}, are missing; fetch them with `setsup fetch video-orbits` (0.2 MB, MIT "
            "licence), or pass confirm=None or another detector"
        )


def confirmed(frame: Frame, proposed: Faces, detector: Detector, margin: float = 0.5, least: float = 0.3) -> Faces:
    """Have a second detector look at each face that a first one proposed, and keep what both see.

    Parameters
    ----------
    frame : (height, width, 3) uint8
        The frame.
    proposed : Faces
        What the first detector found in it.
    detector : Detector
        The second; it gets a part of the frame around each face.
    margin : float
        How far that part goes beyond the box on each side, as a share of the box.
    least : float
        Overlap (intersection over union) of the two boxes from which they are one face.

    Returns
    -------
    Faces
        Boxes, scores and points of the second detector; of two that are the same face the surer one.

    Examples
    --------
    >>> def whole(image):
    ...     return Faces([[2, 2, image.shape[1] - 2, image.shape[0] - 2]], [1.0])
    >>> proposed = Faces([[20, 10, 30, 20]], [0.5])
    >>> confirmed(np.zeros((64, 64, 3), np.uint8), proposed, whole, margin=0.4).boxes.tolist()
    [[18.0, 8.0, 32.0, 22.0]]

    """
    height, width = frame.shape[:2]
    confirmed_faces: list[Faces] = []
    for left, top, right, bottom in proposed.boxes:
        x, y = margin * (right - left), margin * (bottom - top)
        x0, y0 = max(0, int(left - x)), max(0, int(top - y))
        x1, y1 = min(width, int(np.ceil(right + x))), min(height, int(np.ceil(bottom + y)))
        if x1 <= x0 or y1 <= y0:
            continue
        faces = detector(np.ascontiguousarray(frame[y0:y1, x0:x1])).moved(x0, y0)
        shared = overlap(faces.boxes, np.array([[left, top, right, bottom]]))[:, 0]
        if len(faces) and shared.max() >= least:
            confirmed_faces.append(faces.take([int(np.argmax(shared))]))
    kept: list[Faces] = []
    for face in sorted(confirmed_faces, key=lambda candidate: -candidate.scores[0]):
        if not any(overlap(face.boxes, other.boxes)[0, 0] >= _SAME for other in kept):
            kept.append(face)
    return _join(kept)


def _scale(frame: Frame, side: int) -> tuple[Frame, Array]:
    """Frame with no side longer than `side`, and the factors (x, y) by which its pixels are multiplied back."""
    height, width = frame.shape[:2]
    scale = side / max(height, width)
    if scale >= 1:
        return frame, np.ones(2)
    cv2 = imported("cv2", "video")
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return cv2.resize(frame, size, interpolation=cv2.INTER_AREA), np.array([width / size[0], height / size[1]])


def _join(parts: list[Faces]) -> Faces:
    if not parts:
        return Faces(np.empty((0, 4)), np.empty(0))
    boxes, scores, points = (np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS)
    return Faces(boxes, scores, points)
