"""A small TerraIncognita as it was published: images with names of 36 letters, and the annotations in COCO's form."""

import json
import uuid
from pathlib import Path
from typing import Any

from tests.kept import kept
from tests.true_files.pacs import drawn, encoded, put

HELD = "domain"

LOCATIONS = ("38", "43", "46", "100", "7")
"""Of the last one nothing is taken."""
CATEGORIES = ("bobcat", "cat", "coyote", "deer", "empty")
"""Deer are not taken."""
EACH = 4


def annotations() -> dict[str, Any]:
    """The annotations; one image has two animals, and one of them twice."""
    names = dict(enumerate(CATEGORIES, 3))
    images, said = [], []
    for place, location in enumerate(LOCATIONS):
        for number in names:
            for shot in range(EACH):
                key = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{location} {number} {shot}"))
                images.append(
                    {
                        **{"id": key, "file_name": f"{key}.jpg", "location": location if place else int(location)},
                        **{"seq_id": f"{location}-{number}-{shot // 2}", "frame_num": shot % 2 + 1},
                        **{"width": 2048, "height": 1494, "date_captured": "2012-05-01 10:00:00"},
                    }
                )
                said.append({"id": f"{key}-a", "image_id": key, "category_id": number})
    twice = images[0]["id"]
    said += [{"id": f"more-{each}", "image_id": twice, "category_id": each} for each in (3, 4)]
    categories = [{"id": number, "name": name} for number, name in {**names, 30: "badger"}.items()]
    return {"info": {}, "images": images, "categories": categories, "annotations": said}


def images() -> dict[str, bytes]:
    """Content by path."""
    return {
        f"eccv_18_all_images_sm/{each['file_name']}": encoded(
            drawn(number % 2, number // EACH, number, (96 + 8 * (number % 2), 72))
        )
        for number, each in enumerate(annotations()["images"])
    }


@kept
def write(folder: Path) -> None:
    """Write the folder of images and the file of annotations."""
    put(folder, {**images(), "caltech_images_20210113.json": json.dumps(annotations()).encode()})
