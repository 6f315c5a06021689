r"""UCF101: 13,320 videos of 101 human actions, read from the published folder, zip or tar.

Videos are ``UCF-101/<Class>/v_<Class>_g<group>_c<clip>.avi``, or all in one folder; the lists of the three splits are
``ucfTrainTestlist/trainlist01.txt`` and so on, next to them or in their own zip. The videos of a group show one actor
or place, so no group is in two parts of a split::

    actions = setsup.load("ucf101", root="data", split="split1-train")  # 16 frames from the middle of each video
    frames = setsup.load("ucf101", root="data", length=1, every=25)  # one frame per second

For rows and their lengths, see :mod:`setsup.datasets.adapters.clips`.

References
----------
.. [1] K. Soomro, A. R. Zamir, M. Shah, "UCF101: a dataset of 101 human actions classes from videos in the wild", 2012
   (arXiv 1212.0402).

"""

import re
from pathlib import Path

from setsup.datasets.adapters.clip_flow import flow_preparer
from setsup.datasets.adapters.clips import Clips, Codes
from setsup.datasets.adapters.factor_columns import nominal
from setsup.datasets.adapters.video_lists import PARTS, lists_beside, split_factor
from setsup.errors import DamagedFile, require_modules
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded

__all__ = ["open", "prepare"]

_NAME = "ucf101"
_VIDEO = r"v_(?P<action>[A-Za-z0-9]+)_g(?P<group>\d+)_c(?P<clip>\d+)"
_LIST = r"(?P<part>train|test)list0?(?P<split>[123])\.txt"
_ARCHIVES = ("UCF101_videos.zip", "UCF101.zip", "UCF-101.zip", "UCF101.tar", "UCF-101.tar")
_LISTS = ("UCF101TrainTestSplits-RecognitionTask.zip",)
# videos and lists spell one class in two ways; this is the way of classInd.txt and of the folder
_RESPELT = {"HandStandPushups": "HandstandPushups"}


def open(
    root: Path | str | None = None,
    length: int = 16,
    stride: int = 1,
    every: int | None = None,
    size: tuple[int, int] | None = None,
    flow: bool = False,
) -> Clips:
    """Open UCF101.

    Factors of a row are ``action`` (the class), ``group`` (1 to 25 within the action), ``clip`` (key; within the
    group), the keys ``file``, ``frame`` and ``time``, and the splits ``split1`` to ``split3``, each if its
    lists exist.

    Parameters
    ----------
    root : Path, str or None
        A folder, zip or tar with the videos; None for the default folders.
    length : int
        Number of frames per row.
    stride : int
        Distance between successive frames of a row, in frames of the video.
    every : int or None
        Distance between the starts of successive rows, in frames of the video. None for one row per video, from its
        middle.
    size : (height, width), optional
        Resize every frame, antialiased, until it just covers this size, and crop the centre; by default frames stay
        240 × 320.
    flow : bool
        Whether to add ``flow``, the optical flow from each frame to the next; see
        :class:`~setsup.datasets.adapters.clips.Clips`.

    Returns
    -------
    Clips

    Raises
    ------
    DataError
        When the files are missing (the message shows how to get them), a list is damaged, PyAV is not installed, or an
        argument is out of range.

    """
    require_modules(f"{_NAME} requires", "av")
    folder = None if root is None else expanded(root)
    members = find_members(_NAME, folder, {rf"(?:UCF-?101/)?(?:[^/]+/)?{_VIDEO}\.avi": "v_*_g*_c*.avi"}, _ARCHIVES)
    places, fields = members.matching(rf"(?:.*/)?(?P<video>{_VIDEO})\.avi")
    names = fields["video"].to_pylist()
    groups, clips = ([int(number) for number in fields[field].to_pylist()] for field in ("group", "clip"))
    factors = [
        nominal("action", [_RESPELT.get(action, action) for action in fields["action"].to_pylist()]),
        nominal("group", groups, within="action"),
        nominal("clip", clips, within="group", role="key"),
    ]
    splits = _splits(members, folder, names)
    return Clips(
        _NAME, members, places, names, factors, splits, length=length, stride=stride, every=every, size=size, flow=flow
    )


prepare = flow_preparer(open)
"""Compute the flow of all rows, by the options of :func:`open` and the number of processes."""


def _splits(members: MemberIndex, root: Path | None, names: list[str]) -> list[Codes]:
    """Factors ``split1`` to ``split3``, those of which both lists are there."""
    lists = lists_beside(_NAME, members, root, _LIST, _LISTS)
    keys = [name.casefold() for name in names]
    factors = []
    for split in "123":
        if not all((part, split) in lists for part in PARTS):
            continue
        listed: dict[str, str] = {}
        for part in PARTS:
            label, lines = lists[part, split]
            for number, line in enumerate(lines, 1):
                video = re.fullmatch(rf"(?:[^/]+/)?({_VIDEO})\.avi(?:\s+\d+)?", line)
                if video is None:
                    raise DamagedFile(
                        f"{label}: non-empty line {number} is {line[:80]!r}; expected the name of a video such as "
                        "ApplyEyeMakeup/v_ApplyEyeMakeup_g08_c01.avi"
                    )
                if listed.setdefault(video[1].casefold(), part) != part:
                    raise DamagedFile(f"{label}: {video[1]} is listed for both training and testing")
        factors.append(split_factor(f"split{split}", keys, listed, members.source))
    return factors
