"""A small ImageNet-A as it was published: a tar with a folder a synset, and names with blanks."""

from pathlib import Path

from tests.true_files.imagenet import drawn, encoded, packed

HELD = "synset"

NAMES = {"n01498041": "stingray", "n02009912": "American egret", "n04146614": "school bus", "n07753592": "banana"}
SAID = (
    "digital clock _ digital clock",
    "chameleon _ box turtle",
    "doormat _ doormat",
    "syringe _ stethoscope",
    "jay _ jay",
)


def files() -> dict[str, bytes]:
    """Content by name."""
    found = {"imagenet-a/README.txt": "".join(f"{synset} {name}\n" for synset, name in NAMES.items()).encode()}
    for place, synset in enumerate(reversed(NAMES)):
        for number, said in enumerate(SAID):
            confidence = 0.865662 - 0.07 * number - 0.01 * place
            name = f"imagenet-a/{synset}/0.{number * 116 + place:06}_{said}_{confidence:.6g}.jpg"
            found[name] = encoded(drawn(synset, 20 + 3 * number + place), (synset, 20 + number))
    return found


def write(folder: Path) -> None:
    """Write ``imagenet-a.tar``."""
    (folder / "imagenet-a.tar").write_bytes(packed(files()))
