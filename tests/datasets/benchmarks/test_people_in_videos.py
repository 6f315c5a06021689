"""Orbits of people in videos, from the videos to batches with their canonical members."""

import numpy as np
import pytest

import setsup
from setsup.factors import check_disjoint, split
from tests.people_in_videos import labelled, looks, write

pytest.importorskip("av")


@pytest.fixture(scope="module")
def orbits(tmp_path_factory):
    return write(tmp_path_factory.mktemp("people"), people=3, tracks=3, frames=5, size=32)


@pytest.fixture(scope="module")
def faces(orbits):
    out, persons = orbits
    return labelled(setsup.load("video-orbits", root=out), persons)


@pytest.mark.long("videos")
def test_every_person_has_its_tracks(orbits, faces):
    _, persons = orbits
    table = faces.factors
    assert len(faces) == 3 * 3 * 5
    assert set(table.values("track").tolist()) == persons.keys()
    for name in set(persons.values()):
        rows = table.rows(f"person == '{name}'")
        assert len(rows) == 15
        assert len({*table.values("track", rows).tolist()}) == 3
    assert len({looks(number) for number in range(28)}) == 28


def test_orbits_are_tracks_with_the_least_turned_face_as_canonical(faces):
    table = faces.factors
    batches = setsup.OrbitSampler(table, orbit="track", canonical={"canonical": True}, sets=5, size=4, seed=1)
    for step in range(4):
        draw = batches[step]
        assert draw.indices.shape == (5, 4)
        for members, canonical in zip(draw.indices, draw.canonical, strict=True):
            track = {*table.values("track", [*members, canonical]).tolist()}
            assert len(track) == 1
            yaws = np.abs(table.values("yaw", table.rows(f"track == {track.pop()!r}")))
            assert abs(table.values("yaw", [canonical])[0]) == yaws.min() < 5
    batch = next(iter(setsup.loader(faces, batches, to="numpy", workers=0)))
    assert batch["image"].shape == (5, 4, 32, 32, 3)
    assert batch["canonical_image"].shape == (5, 32, 32, 3)


def test_persons_can_be_split_without_sharing_a_track(faces):
    parted = split(faces.factors, {"train": 0.67, "test": 0.33}, seed=0, disjoint="track")
    check_disjoint(parted, "split", ["track"])
    assert {*parted.values("split").tolist()} == {"train", "test"}
