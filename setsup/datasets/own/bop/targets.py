"""Lists of the test images that BOP challenges evaluate: ``test_targets_bop19.json``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.formats.json_text import read_json
from setsup.datasets.own.bop.annotations import FIX
from setsup.datasets.own.bop.finding import BopScene
from setsup.errors import DamagedFile, abbreviate
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex

__all__ = ["target_factors"]

_MOST = 1 << 28  # bytes of a list


def target_factors(
    files: MemberIndex, scenes: Sequence[BopScene], scene: Rows, number: Rows
) -> list[tuple[Factor, Array]]:
    """A split for each list, of the images of its test scenes; `scene` (n,) positions among `scenes`, `number` (n,)."""
    places, groups = files.matching(r"test_targets_(?P<name>bop[0-9]+)\.json")
    tested = np.array([each.number if each.split == "test" else -1 for each in scenes], np.int64)[scene]
    factors: list[tuple[Factor, Array]] = []
    for place, name in zip(places.tolist(), groups["name"].to_pylist(), strict=True):
        targets = _targets(files.read(place, _MOST), files.label(place))
        images = zip(tested.tolist(), number.tolist(), strict=True)
        chosen = np.array([0 if image in targets else -1 for image in images], np.int64)
        if (chosen >= 0).any():
            factors.append((Factor(name, Kind.NOMINAL, ("test",), role="split"), chosen))
    return factors


def _targets(content: bytes, label: str) -> set[tuple[int, int]]:
    """BopScene and image of each target."""
    listed: Any = read_json(content, label)
    if not isinstance(listed, list):
        raise DamagedFile(f"{label} contains {abbreviate(listed)}; expected a list of targets", FIX)
    targets = set[tuple[int, int]]()
    for target in listed:
        scene, image = (target.get(key) for key in ("scene_id", "im_id")) if isinstance(target, dict) else (None, None)
        if type(scene) is not int or type(image) is not int:
            raise DamagedFile(f"{label} has the target {abbreviate(target)}; expected scene_id and im_id", FIX)
        targets.add((scene, image))
    return targets
