"""Settings of methods on orbits: what does not fit the data is said before a folder is made."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import SetsupError
from setsup.experiments import Data, Preset, RunConfig, train
from setsup_papers.orbits.settings import OrbitBatches, OrbitJointSettings


def test_images_of_another_size_than_that_which_is_set_are_refused(tmp_path: Path) -> None:
    preset = Preset(
        name="small/triplets",
        shows="triplets of shapes",
        data=Data("shapes3d-procedural", modalities=("image",)),
        sampler=OrbitBatches(orbit=("shape",), sets=2, size=2),
        method=OrbitJointSettings(objective="triplet", orbit=("shape",), image=(3, 16, 16)),
        steps=1,
    )
    with pytest.raises(
        SetsupError, match=r"^the setting image is 3 × 16 × 16, but the images .* are 3 × 64 × 64"
    ) as caught:
        train(preset, tmp_path / "run", config=RunConfig(workers=0))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
