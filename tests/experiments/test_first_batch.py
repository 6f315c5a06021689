"""What a network gets first is shown, however many channels, copies and modalities it has."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup  # noqa: E402
from setsup.experiments import Run, RunConfig, train  # noqa: E402
from setsup.experiments.training.monitoring import first_batch  # noqa: E402
from setsup.experiments.training.monitoring.first_batch import FIRST_BATCH, batch_sheet  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from tests.experiments.small import FEW, PLAIN  # noqa: E402

HERE = RunConfig(workers=0)
SHORT = replace(PLAIN, steps=4, checkpoint_every=2)


def contains(sheet: Any, image: np.ndarray) -> bool:
    """Whether pixels (height, width, 3) are somewhere on a sheet, enlarged by a whole factor."""
    page = np.asarray(sheet.convert("RGB"))
    for factor in (1, 2, 4, 8):
        large = image.repeat(factor, 0).repeat(factor, 1)
        height, width = large.shape[:2]
        places = np.argwhere((page[: 1 - height, : 1 - width] == large[0, 0]).all(-1))
        for y, x in np.ndindex(9, 9):  # first some pixels, then all
            y, x = y * (height - 1) // 8, x * (width - 1) // 8
            places = places[(page[places[:, 0] + y, places[:, 1] + x] == large[y, x]).all(-1)]
        if any(np.array_equal(page[y : y + height, x : x + width], large) for y, x in places):
            return True
    return False


def batch(**arrays: Any) -> dict[str, Any]:
    """A batch of two sets of three images, the last of which is padding."""
    mask = torch.tensor([[True, True, True], [True, True, False]])
    return {"step": 0, "mask": mask, "indices": torch.zeros(2, 3, dtype=torch.int64), **arrays}


@pytest.mark.long("trainings")
def test_the_first_draw_is_in_the_folder_and_stays_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes, whole = setsup.load("shapes3d-procedural"), ABC.training_step
    # a folder without a trained step is another run's
    train(replace(SHORT, steps=1, sampler=replace(PLAIN.sampler, inactive=("floor_hue",))), tmp_path / "a", config=HERE)
    other = (tmp_path / "a" / FIRST_BATCH).read_bytes()

    def fail(self: ABC, batch: Any, batch_idx: int) -> Any:
        if self.global_step == 2:
            raise ConnectionError
        return whole(self, batch, batch_idx)

    (tmp_path / "b").mkdir()
    (tmp_path / "b" / FIRST_BATCH).write_bytes(other)
    monkeypatch.setattr(ABC, "training_step", fail)
    with pytest.raises(ConnectionError):
        train(SHORT, tmp_path / "b", config=HERE)
    path = tmp_path / "b" / FIRST_BATCH
    written = path.read_bytes(), path.stat().st_mtime_ns
    assert written[0] != other
    sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2, where=FEW, seed=0)
    images = shapes.fetch(sets[0].indices)["image"]
    with Image.open(path) as sheet:
        assert all(contains(sheet, images[number, place]) for number in range(2) for place in range(4))
    monkeypatch.setattr(ABC, "training_step", whole)
    train(SHORT, tmp_path / "b", config=HERE)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == written


def test_floats_are_shown_in_their_range_and_padding_is_grey() -> None:
    values = torch.zeros(2, 3, 3, 8, 8)
    values[0, 0, 0, 0, 0], values[1, 2] = 1.0, 0.25
    sheet = batch_sheet(batch(image=values))
    spot = np.zeros((8, 8, 3), np.uint8)
    spot[0, 0, 0] = 255
    assert contains(sheet, spot)
    assert not contains(sheet, np.full((8, 8, 3), 64, np.uint8)), "padding is shown"
    # what is not within 0 … 1 is stretched
    stretched = values * 4 - 2
    stretched[1, 2] = -2
    assert contains(batch_sheet(batch(image=stretched)), spot)
    stretched[0, 1, 0, 0, 0] = torch.nan
    assert contains(batch_sheet(batch(image=stretched)), spot)


@pytest.mark.parametrize(
    ("shape", "rows"),
    [((1, 8, 8), 2), ((2, 8, 8), 2), ((3, 8, 8), 2), ((8, 8), 2), ((8, 8, 3), 2), ((2, 3, 8, 8), 4), ((9, 8, 8), 8)],
    ids=str,
)
def test_a_row_for_each_set_and_each_copy_or_channel_of_many(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], rows: int
) -> None:
    seen: list[Any] = []
    whole = first_batch.image_grid

    def grid(images: Any, labels: Any, title: str, tile: int | None) -> Any:
        seen.append((len(images), [len(row) for row in images], title))
        return whole(images, labels, title=title, tile=tile)

    monkeypatch.setattr(first_batch, "image_grid", grid)
    sheet = batch_sheet(batch(view=torch.rand(2, 3, *shape) * 2 - 1))
    assert sheet is not None
    ((count, lengths, title),) = seen
    assert (count, lengths) == (rows, [3] * rows)
    assert title.startswith("view\nfloat32 (2, 3, ")
    assert "shown from black to white" in title


def test_a_block_for_each_modality_and_nothing_for_what_is_no_image() -> None:
    images = {"image": torch.zeros(2, 3, 3, 8, 8, dtype=torch.uint8), "depth": torch.rand(2, 3, 8, 8)}
    both, one = batch_sheet(batch(**images)), batch_sheet(batch(image=images["image"]))
    assert both is not None
    assert one is not None
    assert both.height > 1.5 * one.height
    canonical = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    assert batch_sheet(batch(canonical_image=canonical)) is not None
    nothing = {"vectors": torch.rand(2, 3, 64), "homography": torch.rand(2, 3, 3, 3), "factors": {}, "words": ["a"]}
    assert batch_sheet(batch(**nothing)) is None


def test_a_picture_that_cannot_be_made_stops_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(batch: Any, views: Any) -> None:
        raise ValueError("such a batch was never seen")

    plain = train(SHORT, tmp_path / "plain", config=HERE)
    monkeypatch.setattr(first_batch, "batch_sheet", fail)
    run: Run = train(SHORT, tmp_path / "run", config=HERE)
    assert run.finished
    assert not (run.folder / FIRST_BATCH).exists()
    assert (run.folder / "metrics.jsonl").read_bytes() == (plain.folder / "metrics.jsonl").read_bytes()
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert said.endswith("first-batch.png was not written: such a batch was never seen")


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32])
def test_unsigned_integers_such_as_depth_of_sensors_are_shown_as_other_integers_are(dtype: Any) -> None:
    values = torch.arange(2 * 3 * 20 * 20).reshape(2, 3, 20, 20) * 5
    sheets = [np.asarray(batch_sheet(batch(depth=values.to(kind)))) for kind in (dtype, torch.int64)]
    assert sheets[0].shape == sheets[1].shape
    rows = np.flatnonzero((sheets[0] != sheets[1]).any((1, 2)))
    assert len(rows) < 40  # of the line with the type
