"""A small HMDB51 in the published tree: stick figures, each frame with its number in blocks along the lower edge."""

from pathlib import Path

from tests.kept import kept
from tests.videos import actor, encoded, numbered

HELD = "action"

ACTIONS = {"clap": "clap", "handstand": "handstand", "jump": "jump"}
# source: ground, shirt; names hold what a shell would take for its own
SOURCES = {
    "#20_Rhythm": ((225, 205, 160), (200, 40, 40)),
    "Catch_Me_If_You_Can_(2002)": ((170, 200, 235), (40, 80, 200)),
    "Tom&Jerry's_show": ((175, 215, 165), (120, 60, 160)),
    "prelinger_They_Grow_Up": ((200, 200, 205), (230, 140, 30)),
}
SEEN = ("f_nm_np1_fr_goo", "u_cm_np1_ba_med", "l_nm_np2_le_bad", "h_cm_np3_ri_med")
RATE = 30


def stem(action: str, number: int) -> str:
    """Name of a file."""
    return f"{list(SOURCES)[number]}_{action}_{SEEN[number]}_{number}"


def frames(action: str, number: int) -> int:
    """How many a video has."""
    return 24 + 5 * number + len(action)


def video(action: str, number: int) -> bytes:
    """One video, MPEG-4 in AVI as published."""
    ground, shirt = list(SOURCES.values())[number]
    shown = (
        actor(ACTIONS[action], time / RATE + number / 7, ground, shirt, 10 * number)
        for time in range(frames(action, number))
    )
    pictures = (numbered(time, picture=picture) for time, picture in enumerate(shown))
    return encoded(pictures, rate=RATE, qscale=4, bf=2, g=12)


def part(number: int, split: int) -> int:
    """0 (unused), 1 (train) or 2 (test)."""
    return {0: 2, 1: 0}.get((number + split) % 4, 1)


@kept
def write(folder: Path) -> None:
    """Write ``<action>/<video>.avi`` and ``testTrainMulti_7030_splits/<action>_test_split<s>.txt``."""
    lists = folder / "testTrainMulti_7030_splits"
    lists.mkdir()
    for action in ACTIONS:
        (folder / action).mkdir()
        for number in range(len(SOURCES)):
            (folder / action / f"{stem(action, number)}.avi").write_bytes(video(action, number))
        for split in (1, 2, 3):
            lines = [f"{stem(action, number)}.avi {part(number, split)} \n" for number in range(len(SOURCES))]
            (lists / f"{action}_test_split{split}.txt").write_text("".join(lines))
