"""A small UCF101 in the published tree: stick figures, each frame with its number in blocks along the lower edge."""

from pathlib import Path

from tests.kept import kept
from tests.videos import actor, encoded, numbered

HELD = "action"

ACTIONS = {"ApplyEyeMakeup": "clap", "HandstandPushups": "handstand", "JumpingJack": "jump"}
GROUNDS = {1: (170, 200, 235), 2: (225, 205, 160), 9: (175, 215, 165)}
SHIRTS = {1: (200, 40, 40), 2: (40, 80, 200)}
RATE = 25


def frames(action: str, group: int, clip: int) -> int:
    """How many a video has."""
    return 30 + 3 * group + clip


def video(action: str, group: int, clip: int) -> bytes:
    """One video, MPEG-4 in AVI as published."""
    shown = (
        actor(ACTIONS[action], number / RATE + clip / 8, GROUNDS[group], SHIRTS[clip], 25 * (clip - 1))
        for number in range(frames(action, group, clip))
    )
    pictures = (numbered(number, picture=picture) for number, picture in enumerate(shown))
    return encoded(pictures, rate=RATE, qscale=4, bf=1, g=12)


def stem(action: str, group: int, clip: int) -> str:
    """Name of a file, which for one class is spelt in another way than its folder."""
    return f"v_{action.replace('Handstand', 'HandStand')}_g{group:02}_c{clip:02}"


def clips() -> list[tuple[str, int, int]]:
    """Action, group and clip of each video."""
    return [(action, group, clip) for action in ACTIONS for group in GROUNDS for clip in SHIRTS]


@kept
def write(folder: Path) -> None:
    """Write ``UCF-101/<Class>/…`` and ``ucfTrainTestlist/…``; in split s the s-th group is tested."""
    for action, group, clip in clips():
        path = folder / "UCF-101" / action / f"{stem(action, group, clip)}.avi"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(video(action, group, clip))
    lists = folder / "ucfTrainTestlist"
    lists.mkdir()
    ids = {action: number for number, action in enumerate(ACTIONS, 1)}
    (lists / "classInd.txt").write_bytes(b"".join(f"{number} {action}\r\n".encode() for action, number in ids.items()))
    for split, tested in enumerate(GROUNDS, 1):
        train, test = [], []
        for action, group, clip in clips():
            line = f"{action}/v_{action}_g{group:02}_c{clip:02}.avi"
            (test if group == tested else train).append(line if group == tested else f"{line} {ids[action]}")
        (lists / f"trainlist0{split}.txt").write_bytes("".join(f"{line}\r\n" for line in train).encode())
        (lists / f"testlist0{split}.txt").write_bytes("".join(f"{line}\r\n" for line in test).encode())
