"""The progress file of folders with few modalities, as earlier versions wrote it, and with many."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.folder import open_rendered, rendered_rows
from setsup.rendered.modalities import KEPT
from setsup.rendered.writing import render
from tests.rendered_scenes import Crayon, Dots

ROWS = 3 * 2 * 24
FEW = "azimuth < 90"
NEW = ["image", "depth", "pose", "intrinsics"]
EARLIER = ("image", "depth", "normals", "instances", "triangles", "partners", "status", "labels")
"""Of the folders that earlier versions began: a byte of the progress file has their bits in this order."""


def dots(renderer: Any = None, **options: Any) -> RenderedDataset:
    return RenderedDataset(Dots(), renderer=renderer or Crayon(), **options)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Stopping(Crayon):
    """Stops after some images, as a user does."""

    def __init__(self, after: int = 1 << 30) -> None:
        super().__init__()
        self._left = after

    def render(self, camera: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return super().render(camera)


def test_a_folder_that_an_earlier_version_began_is_finished(tmp_path: Path) -> None:
    """Its progress file has a byte a row: bits 0 to 4 for the modalities of every recipe."""
    assert KEPT[: len(EARLIER)] == EARLIER
    whole = render(dots().where(FEW), tmp_path / "whole").folder
    begun = tmp_path / "begun"
    render(dots().where(FEW), begun)
    done = np.arange(36) % 3 == 0
    for name in EARLIER[:5]:  # what is not marked is lost
        array = np.load(begun / f"{name}.npy", mmap_mode="r+")
        array[~done] = 0
        array.flush()
    parts = json.loads((begun / "names.json").read_text())
    (begun / "names.parts").mkdir()
    for key, names in parts.items():
        (begun / "names.parts" / f"{key}.json").write_text(json.dumps(names))
    for name in ("names.json", "croissant.json"):
        (begun / name).unlink()
    (begun / "rendered.progress").write_bytes(bytes(0b11111 if row else 0 for row in done.tolist()))
    assert rendered_rows(begun) == (done.sum(), 36)
    renderer = Crayon()
    render(dots(renderer).where(FEW), begun)
    assert renderer.counts[1] == (~done).sum()
    assert contents(begun) == contents(whole)


def test_folders_of_new_modalities_resume_too(tmp_path: Path) -> None:
    render(dots(), tmp_path / "whole", NEW)
    with pytest.raises(KeyboardInterrupt):
        render(dots(Stopping(51)), tmp_path / "out", NEW)
    progress = np.fromfile(tmp_path / "out" / "rendered.progress", "<u4")
    bits = sum(1 << KEPT.index(name) for name in NEW)
    assert sorted(progress.tolist()) == [0] * (ROWS - 50) + [bits] * 50
    assert rendered_rows(tmp_path / "out") == (50, ROWS)
    renderer = Crayon()
    render(dots(renderer), tmp_path / "out", NEW)
    assert renderer.counts[1] == ROWS - 50
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    (tmp_path / "out" / "rendered.progress").write_bytes(bytes(ROWS))
    with pytest.raises(DataError, match=r"rendered.progress is damaged: it has 144 bytes for 144 rows"):
        render(dots(), tmp_path / "out", NEW)


def test_a_cache_of_new_modalities_is_shared_by_datasets_with_others(tmp_path: Path) -> None:
    first, second = Crayon(), Crayon()
    views = dots(first, cache=tmp_path / "out", modalities=NEW)
    views.fetch([3, 8], ["pose"])
    assert views.fetch([3, 8], ["depth", "pose"]).keys() == {"depth", "pose"}
    assert first.counts[1] == 4  # the depth was not there yet
    other = dots(second, cache=tmp_path / "out", modalities=["pose", "normals"])
    other.fetch([3, 8], ["pose"])
    assert second.counts[1] == 2  # made again, since the rows since the last second are not marked
    done = render(dots(), tmp_path / "out", NEW)
    np.testing.assert_array_equal(done.fetch([3, 8])["pose"], views.fetch([3, 8])["pose"])


def test_cameras_are_modalities(tmp_path: Path) -> None:
    """A point of the camera's frame is moved to the world by the pose, and to its pixel by the intrinsics."""
    views = dots(modalities=["intrinsics", "pose"])
    found = render(views, tmp_path / "out").fetch([5, 77])
    assert list(found) == ["pose", "intrinsics"]
    assert found["pose"].dtype == found["intrinsics"].dtype == np.float64
    for pose, k, row in zip(found["pose"], found["intrinsics"], [5, 77], strict=True):
        camera = views.camera(row)
        np.testing.assert_array_equal(pose[3], [0, 0, 0, 1])
        point = pose @ [0.3, -0.2, 2.0, 1.0]
        pixels, depth = camera.project(point[:3])
        assert depth == pytest.approx(2.0)
        np.testing.assert_allclose(pixels, (k @ [0.15, -0.1, 1.0])[:2])


def test_what_is_not_available_is_refused(tmp_path: Path) -> None:
    for act in (
        lambda: dots(modalities=["image", "poze"]),
        lambda: render(dots(), tmp_path / "out", ["image", "poze"]),
    ):
        with pytest.raises(DataError, match=r"rendered dots has no modality 'poze'; did you mean 'pose'\?"):
            act()
    with pytest.raises(DataError, match=r"without the modality 'pose'; create it with modalities=\['depth', 'pose'\]"):
        dots(modalities=["depth"]).fetch(0, ["pose"])
    assert not (tmp_path / "out").exists()
    render(dots(), tmp_path / "out", NEW)
    about = json.loads((tmp_path / "out" / "rendered.json").read_text())
    about["modalities"]["pose"]["shape"] = [3, 4]
    (tmp_path / "out" / "rendered.json").write_text(json.dumps(about))
    with pytest.raises(DataError, match=r"\[4, 4\] of float64 for pose"):
        open_rendered(tmp_path / "out")
