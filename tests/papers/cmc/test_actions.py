"""Actions of videos by a fine-tuned encoder of frames."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("av")

import torch

from setsup.errors import SetsupError
from setsup.experiments.configs import build_method
from setsup.experiments.data import Data
from setsup.experiments.trained_run import TrainedRun
from setsup_papers.cmc.actions import Actions
from setsup_papers.cmc.settings import CMCSettings
from tests.true_files import ucf101

CONFIG = CMCSettings(views=("frame",), encoder="small", width=0.2, objective="patch", patch_layer="conv2", projection=8, images=((3, 32, 32),))  # fmt: skip  # noqa: E501


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ucf101")
    ucf101.write(folder)
    return folder


def run_of(release: Path, folder: Path) -> TrainedRun:
    data = Data("ucf101", "split1-train", options=(("length", 4), ("size", (36, 48))))
    method = build_method(CONFIG, data.open(release).factors, 0).eval()
    return TrainedRun("cmc/videos", method, 0, folder, data=data, config=CONFIG, root=release)


@pytest.mark.long("trainings")
def test_figures_are_told_in_what_was_fitted(release: Path, tmp_path: Path) -> None:
    run = run_of(release, tmp_path)
    before = {name: value.clone() for name, value in run.method.state_dict().items()}
    measure = Actions(layer="fc4", size=32, split="split1-train", steps=40, batch=12, rate=2e-3, frames=2)
    measured = replace(measure, baselines=()).measure(run)
    losses = measured.curves["loss"][1]
    assert measured.values["accuracy"] > 0.5
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    assert all(torch.equal(before[name], value) for name, value in run.method.state_dict().items())


@pytest.mark.long("videos")
def test_videos_are_told_by_all_their_frames_and_clips(release: Path, tmp_path: Path) -> None:
    run = run_of(release, tmp_path)
    measure = Actions(layer="fc4", size=32, frames=4, batch=8, baselines=())
    data = Data("ucf101", "split1-test", options=(("length", 4), ("every", 12), ("size", (36, 48))))
    test = data.open(release)

    def scores(batch: dict) -> torch.Tensor:
        """Something that depends on the pixels of the box."""
        flat = batch["frame"].flatten(0, 1).float().mean((1, 2, 3))
        return torch.stack([torch.sin(flat), torch.cos(2 * flat), torch.sin(3 * flat)], 1)

    found = measure._accuracy(run, test, scores, 3)
    videos: dict[str, np.ndarray] = {}
    wanted: dict[str, int] = {}
    for row in range(len(test)):
        clip = test.fetch(row, ["video"])["video"][:, 2:34, 8:40]
        shares = [
            scores({"frame": torch.from_numpy(one.copy())[None, None].movedim(-1, 2)}).softmax(1)[0] for one in clip
        ]
        name = str(test.factors.values("file", row))
        videos[name] = videos.get(name, 0) + torch.stack(shares).sum(0).numpy()
        wanted[name] = int(test.factors.codes("action", row))
    assert len(videos) < len(test)
    right = [int(videos[name].argmax()) == wanted[name] for name in videos]
    assert found == np.mean(right)


@pytest.mark.long("videos")
def test_a_frozen_encoder_and_what_is_no_video(release: Path, tmp_path: Path) -> None:
    run = run_of(release, tmp_path)
    measure = Actions(layer="fc4", size=32, steps=2, batch=4, frozen=True)
    values = measure.measure(run).values
    assert values["accuracy"] == values["untrained: accuracy"]  # nothing was trained before
    assert 0 <= values["accuracy"] <= 1
    with pytest.raises(SetsupError, match="has no view 'later'"):
        Actions(view="later").measure(run)
    with pytest.raises(SetsupError, match="must have the modality 'video' and the factors sport"):
        Actions(factor="sport").measure(run)
