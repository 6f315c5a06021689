"""Keys of stored evaluations go by names that earlier versions wrote."""

import pytest

from setsup.experiments.former_names import former_module


@pytest.mark.parametrize(
    ("name", "former"),
    [
        ("setsup_papers.abc.measures", "setsup.experiments.abc.measures"),
        ("setsup_papers.abc.pose.evaluations", "setsup.experiments.pose.evaluations"),
        ("setsup_papers.cmc.layer_probes", "setsup.experiments.cmc.layer_probes"),
        ("setsup_papers.dcodr.measures", "setsup.experiments.dcodr.measures"),
        ("setsup_papers.orbits.verification", "setsup.experiments.orbits.verification"),
        ("setsup_papers.pixels.room_measures", "setsup.experiments.pixels.room_measures"),
        ("setsup.experiments.evaluations.components", "setsup.experiments.measures.components"),
        ("setsup.experiments.encoders.knowledge", "setsup.experiments.encoders.knowledge"),
        ("theirs.setsup_papers.abc", "theirs.setsup_papers.abc"),
    ],
)
def test_keys_name_modules_as_they_were_first_written(name: str, former: str) -> None:
    assert former_module(name) == former
