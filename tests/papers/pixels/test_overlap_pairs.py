"""``pixels/pairs`` on views drawn by overlap: rendered with depth, or captured with the tracks of a COLMAP model."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("kornia")

import setsup  # noqa: E402
from setsup.correspondence import overlap  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Preset, RunConfig, find_preset, open_run, smoke, train  # noqa: E402
from setsup.experiments.configs import build_transform  # noqa: E402
from setsup.experiments.settings import flatten, put  # noqa: E402
from setsup.loading import Loader  # noqa: E402
from setsup.rendered.dataset import RenderedDataset  # noqa: E402
from setsup.rendered.writing import render  # noqa: E402
from setsup.samplers.overlap.table import OverlapTable  # noqa: E402
from setsup.scenes.recipes import Room  # noqa: E402
from setsup_papers.pixels.pixel_contrast import PixelContrast  # noqa: E402
from tests.experiments.test_resume import checked_equal  # noqa: E402
from tests.track_models import Model  # noqa: E402

HERE = RunConfig(workers=0)


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rooms, four views each, without stored partners; and their overlaps."""
    pytest.importorskip("embreex")
    folder = tmp_path_factory.mktemp("rendered") / "rooms"
    views = RenderedDataset(Room(rooms=2, pairs=2, size=(48, 64)), renderer="embree")
    dataset = render(views, folder, ["depth", "image"])
    overlap(dataset, scene="room", path=folder.with_suffix(".overlap"))
    return folder


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures") / "cloud"
    Model(folder)
    overlap(setsup.open(folder), path=folder.with_suffix(".overlap"))
    return folder


def preset_of(folder: Path, **more: Any) -> Preset:
    """The preset, as options of the command set it, with a small network."""
    given = {
        "data.name": str(folder),
        "sampler.overlaps": str(folder.with_suffix(".overlap")),
        "sampler.overlap": [0.2, 0.9],
        "augmentation.size": 32,
        "method.widths": [8, 8],
        "method.blocks": [1, 1],
        **more,
    }
    preset: Preset = put(find_preset("pixels/pairs"), given)
    return preset


def first_batch(preset: Preset) -> tuple[Any, Any]:
    assert preset.data is not None
    assert preset.sampler is not None
    dataset = preset.data.open()
    transform = build_transform(preset.augmentation, dataset, 0)
    sampler = preset.sampler.build(dataset, 0)
    return dataset, next(iter(Loader(dataset, sampler, modalities=["image"], transform=transform, workers=0)))


def test_a_step_has_pairs_of_the_band_with_partners_by_depth(rooms: Path) -> None:
    dataset, batch = first_batch(preset_of(rooms, **{"sampler.pairs": 6, "sampler.direction": "both"}))
    table = overlap(dataset, scene="room")
    first, second = batch["indices"].numpy().T
    for one, other in ((first, second), (second, first)):
        found = table.overlap[table.find(one, other)]
        assert ((found >= np.float32(0.2)) & (found <= np.float32(0.9))).all()
    assert batch["view_1"].shape == (6, 3, 32, 32)
    assert 0 < batch["positive"].float().mean() < 0.125


def test_a_step_of_a_capture_counts_common_points_alone(cloud: Path) -> None:
    _, batch = first_batch(preset_of(cloud, **{"augmentation.keep": 0.5, "augmentation.colors": False}))
    valid, positive = batch["valid"], batch["positive"]
    assert not (positive & ~valid).any()
    counts = valid.sum(1)
    assert (counts < 100).all()
    assert counts.sum() > 0
    assert positive.sum(1).tolist() == [-(-count // 2) for count in counts.tolist()]


@pytest.mark.long("trainings")
@pytest.mark.parametrize("name", ["rooms", "cloud"])
def test_a_stopped_run_resumes_bit_for_bit(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    preset = preset_of(request.getfixturevalue(name), **{"sampler.pairs": 3})
    preset = replace(preset, steps=5, checkpoint_every=2)
    step = PixelContrast.training_step

    def stopping(self: PixelContrast, batch: Any, number: int) -> Any:
        if self.global_step == 3:
            raise MemoryError
        return step(self, batch, number)

    monkeypatch.setattr(PixelContrast, "training_step", stopping)
    with pytest.raises(MemoryError):
        train(preset, tmp_path / "run", config=HERE)
    monkeypatch.setattr(PixelContrast, "training_step", step)
    run = train(preset, tmp_path / "run", config=HERE)
    checked_equal(run.folder, train(preset, tmp_path / "whole", config=HERE))
    digest = OverlapTable.open(preset.sampler.overlaps).digest  # type: ignore[union-attr]
    assert flatten(open_run(run.folder, preset).preset)["sampler.overlaps_digest"] == digest
    assert open_run(run.folder).difference(preset) == {}


@pytest.mark.long("trainings")
def test_a_run_does_not_resume_with_other_overlaps(cloud: Path, tmp_path: Path) -> None:
    file = tmp_path / "cloud.overlap"
    shutil.copy(cloud.with_suffix(".overlap"), file)
    preset = smoke(preset_of(cloud, **{"sampler.overlaps": str(file)}))
    train(preset, tmp_path / "run", config=HERE)
    file.unlink()
    overlap(setsup.open(cloud), rows=range(6), path=file)
    with pytest.raises(SetsupError, match=r"contains another run: sampler\.overlaps_digest is '.*' in that run, not '"):
        train(preset, tmp_path / "run", config=HERE)


def test_what_the_data_lack_is_said(cloud: Path, tmp_path: Path) -> None:
    preset = preset_of(cloud, **{"sampler.overlaps": str(tmp_path / "none.overlap")})
    with pytest.raises(SetsupError, match=r"none\.overlap"):
        first_batch(preset)
    assert preset.sampler is not None
    shapes = setsup.load("shapes3d-procedural")
    with pytest.raises(SetsupError, match="has no pixel correspondences"):
        preset.sampler.build(shapes, 0)
