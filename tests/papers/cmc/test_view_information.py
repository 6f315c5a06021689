"""Information between the views that a preset draws."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

from setsup.errors import SetsupError
from setsup.evaluation import view_information
from setsup_papers.cmc.frozen import augmented_batches
from setsup_papers.cmc.settings import CMCSettings
from setsup_papers.cmc.view_information import ViewsInformation
from tests.papers.cmc.toys import run_of

CONFIG = CMCSettings(
    views=("grey", "image"), encoder="small", width=0.1, objective="in_batch", images=((1, 8, 8), (3, 8, 8))
)


def test_pairs_are_those_of_the_augmentation(tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    np.savez(tmp_path / "noise.npz", image=dice.integers(0, 255, (40, 12, 12, 3), np.uint8), number=np.arange(40))
    run = run_of(tmp_path / "noise.npz", CONFIG, 8, tmp_path)
    measure = ViewsInformation(pairs=100, steps=6, batch=16, width=2)
    found = measure.measure(run)
    batches = list(augmented_batches(run, run.dataset, "information", 3, 40, seed=0))
    first = np.concatenate([batch["grey"][0].numpy() for batch in batches])[:100]
    second = np.concatenate([batch["image"][0].numpy() for batch in batches])[:100].astype(np.float32) / 255
    wanted = view_information(first, second, steps=6, batch=16, width=2)
    assert found.values == {"nats": wanted.nats, "nats of the fit": wanted.fit_nats}
    assert list(found.curves["nats"][0]) == list(wanted.steps)
    run.seed = 5
    assert measure.measure(run).values == found.values  # on the same crops for all seeds
    with pytest.raises(SetsupError, match="must be empty or contain two different views, not"):
        ViewsInformation(views=("L",))
