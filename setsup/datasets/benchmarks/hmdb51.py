r"""HMDB51: 6,766 videos of 51 human actions, from films and the web, read from the published folders, a zip or a tar.

Videos are ``<action>/<video>.avi``, the lists of the three splits are
``testTrainMulti_7030_splits/<action>_test_split1.txt`` and so on, next to them. The release is a RAR archive of 51 RAR
archives, which must be unpacked first::

    actions = setsup.load("hmdb51", root="data", split="split1-train", size=(112, 112))
    frames = setsup.load("hmdb51", root="data", length=1, every=30, size=(112, 112))  # one frame per second

A video's name describes its source and content [1]_:
``<source>_<action>_<body>_<camera>_np<people>_<viewpoint>_<quality>_<number>``. Videos of one source look alike.

For rows and their lengths, see :mod:`setsup.datasets.adapters.clips`. Videos have the same height but different widths:
pass `size` to fetch several together.

References
----------
.. [1] H. Kuehne, H. Jhuang, E. Garrote, T. Poggio, T. Serre, "HMDB: a large video database for human motion
   recognition", ICCV 2011.

"""

import re
from pathlib import Path

import numpy as np

from setsup.arrays import Places
from setsup.datasets.adapters.clip_flow import flow_preparer
from setsup.datasets.adapters.clips import Clips, Codes
from setsup.datasets.adapters.factor_columns import nominal
from setsup.datasets.adapters.video_lists import lists_beside, split_factor
from setsup.errors import DamagedFile, require_modules
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded

__all__ = ["open", "prepare"]

_NAME = "hmdb51"
_SEEN = r"_[hulf]_[cn]m_np\d_(?:fr|ba|le|ri)_(?:goo|med|bad)_\d+"
_LIST = r"(?P<action>[^/]+)_test_split(?P<split>[123])\.txt"
_ARCHIVES = ("hmdb51_org.zip", "hmdb51.zip", "hmdb51_org.tar", "hmdb51.tar")
_LISTS = ("test_train_splits.zip", "testTrainMulti_7030_splits.zip")
_ID = {"1": "train", "2": "test", "0": ""}

# what the letters of a name mean: factor, kind, and levels in their order
_MEANT: dict[str, tuple[Kind, dict[str, str | int]]] = {
    "body": (Kind.NOMINAL, {"h": "head", "u": "upper", "f": "full", "l": "lower"}),
    "camera": (Kind.NOMINAL, {"nm": "static", "cm": "moving"}),
    "people": (Kind.ORDINAL, {f"np{number}": number for number in range(10)}),
    "viewpoint": (Kind.NOMINAL, {"fr": "front", "ba": "back", "le": "left", "ri": "right"}),
    "quality": (Kind.ORDINAL, {"bad": "bad", "med": "medium", "goo": "good"}),
}


def open(
    root: Path | str | None = None,
    length: int = 16,
    stride: int = 1,
    every: int | None = None,
    size: tuple[int, int] | None = None,
    flow: bool = False,
) -> Clips:
    """Open HMDB51.

    Factors of a row are ``action`` (the folder), ``body`` (the part that is visible), ``camera`` (whether it moves),
    ``people``, ``viewpoint``, ``quality``, ``source``, the keys ``file``, ``frame`` and ``time``, and the splits
    ``split1`` to ``split3``, each if its lists exist: 70 videos of each action train, 30 test, and the others are in
    neither part. Values that a name does not contain are unknown.

    Parameters
    ----------
    root : Path, str or None
        A folder, zip or tar with the folders of the actions; None for the default folders.
    length : int
        Number of frames per row.
    stride : int
        Distance between successive frames of a row, in frames of the video.
    every : int or None
        Distance between the starts of successive rows, in frames of the video. None for one row per video, from its
        middle.
    size : (height, width), optional
        Resize every frame, antialiased, until it just covers this size, and crop the centre.
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
    held = {rf"(?:[^/]+/)?[^/]+/[^/]+{_SEEN}\.avi": "<action>/<video>.avi"}
    members = find_members(_NAME, folder, held, _ARCHIVES)
    places, actions, names = _videos(members)
    factors = [nominal("action", actions), *_seen(actions, names)]
    splits = _splits(lists_beside(_NAME, members, folder, _LIST, _LISTS), actions, names, members.source)
    videos = [f"{action}/{name}" for action, name in zip(actions, names, strict=True)]
    return Clips(
        _NAME, members, places, videos, factors, splits, length=length, stride=stride, every=every, size=size, flow=flow
    )


prepare = flow_preparer(open)
"""Compute the flow of all rows, by the options of :func:`open` and the number of processes."""


def _videos(members: MemberIndex) -> tuple[Places, list[str], list[str]]:
    """Places, actions and names of the videos in folders where some have names of the release: others are another's."""
    places, fields = members.matching(r"(?:(?P<around>[^/]+)/)?(?P<action>[^/]+)/(?P<video>[^/]+)\.avi")
    around, actions, names = (fields[field].to_pylist() for field in ("around", "action", "video"))
    own = {folder for folder, name in zip(around, names, strict=True) if re.search(f"{_SEEN}$", name)}
    rows = [row for row, folder in enumerate(around) if folder in own]
    return places[rows], [actions[row] for row in rows], [names[row] for row in rows]


def _seen(actions: list[str], names: list[str]) -> list[Codes]:
    """Factors of what the videos' names say, and of their sources."""
    pattern = re.compile(r"_([hulf])_([cn]m)_(np\d)_(fr|ba|le|ri)_(goo|med|bad)_\d+$")
    matches = [pattern.search(name) for name in names]
    factors = []
    for group, (factor, (kind, meant)) in enumerate(_MEANT.items(), 1):
        letters = [None if each is None else each[group] for each in matches]
        used = [letter for letter in meant if factor != "people" or letter in letters] or list(meant)
        codes = np.array([-1 if letter is None else used.index(letter) for letter in letters], np.int64)
        factors.append((Factor(factor, kind, tuple(meant[letter] for letter in used)), codes))
    sources = [
        name[: each.start()].removesuffix(f"_{action}") if each is not None else None
        for each, action, name in zip(matches, actions, names, strict=True)
    ]
    if any(source is not None for source in sources):
        factors.append(nominal("source", sources))
    return factors


def _splits(
    lists: dict[tuple[str, ...], tuple[str, list[str]]], actions: list[str], names: list[str], where: Path
) -> list[Codes]:
    """Factors ``split1`` to ``split3``, those of which there is a list of every action."""
    factors = []
    keys = [f"{action}/{name}" for action, name in zip(actions, names, strict=True)]
    for split in "123":
        if not all((action, split) in lists for action in set(actions)):
            continue
        listed = {}
        for action in sorted(set(actions)):
            label, lines = lists[action, split]
            for line in lines:
                video, _, part = line.rpartition(" ")
                if part not in _ID or not video.strip().endswith(".avi"):
                    raise DamagedFile(
                        f"{label} contains the line {line[:80]!r}; expected the name of a video followed by 0, 1 or 2"
                    )
                listed[f"{action}/{video.strip().removesuffix('.avi')}"] = _ID[part]
        factors.append(split_factor(f"split{split}", keys, listed, where))
    return factors
