"""A small tieredImageNet: a tree of a folder a part and synset."""

from pathlib import Path

from tests.true_files.pacs import drawn, encoded, put

HELD = "synset"

SUPERCLASSES = {
    "n01530575": "n01524359",
    "n01531178": "n01524359",
    "n01675722": "n01674216",
    "n02099267": "n02098550",
    "n03314780": "n00020090",
    "n07565083": "n00020090",
}
"""Superclasses of synsets, by the published csv files."""
PARTS = {"n01524359": "train", "n01674216": "train", "n02098550": "val", "n00020090": "test"}
EACH = 4


def files() -> dict[str, bytes]:
    """Content by path, in an order that is not that of the names."""
    return {
        f"{PARTS[above]}/{synset}/{synset}_{number}.JPEG": encoded(drawn(0, kind, number, (84, 90)))
        for kind, (synset, above) in reversed(list(enumerate(SUPERCLASSES.items())))
        for number in range(1, EACH + 1)
    }


def write(folder: Path) -> None:
    """Write the trees."""
    put(folder, files())
