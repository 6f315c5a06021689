"""Overlaps that are measured into a file: resumed after an interruption, and the same bytes whoever measures."""

import json

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.correspondence import overlap
from setsup.correspondence.overlaps import scenes, tracks, work
from setsup.errors import DataError, SetsupError
from setsup.jobs import Ray
from setsup.rendered.dataset import RenderedDataset
from setsup.samplers.overlap.table import OverlapTable
from setsup.scenes import Mesh
from setsup.scenes.recipes import ObjectView, Room
from tests.track_models import Model


@pytest.fixture
def rooms(monkeypatch):
    """Rooms of eight views each, and scenes of more than six views are large; units of work are small."""
    monkeypatch.setattr(scenes, "_WHOLE", 6)
    monkeypatch.setattr(scenes, "_VIEWS", 3)
    monkeypatch.setattr(tracks, "_VIEWS", 3)
    return RenderedDataset(Room(rooms=2, pairs=4, size=(30, 40)))


@pytest.fixture
def capture(tmp_path):
    Model(tmp_path / "cloud")
    return setsup.open(tmp_path / "cloud")


def counted(monkeypatch, stop_at=None):
    """Names of units that run from now on; one of them is interrupted."""
    keep, done = work._keep, []

    def kept(function, dtypes, item):
        if len(done) == stop_at:
            raise KeyboardInterrupt
        keep(function, dtypes, item)
        done.append(item[0].name)

    monkeypatch.setattr(work, "_keep", kept)
    return done


@pytest.mark.long("kills and interruptions")
@pytest.mark.parametrize("kind", ["scenes", "tracks"])
def test_interrupted_work_resumes(kind, rooms, capture, tmp_path, monkeypatch):
    """At every unit: those that are finished do not run again, and the bytes are those of an uninterrupted call."""
    dataset, options = (rooms, {"scene": "room", "candidates": 4}) if kind == "scenes" else (capture, {})
    file, folder = tmp_path / "again.overlap", tmp_path / "again.overlap.units"
    table = overlap(dataset, path=tmp_path / "whole.overlap", **options)
    assert table.path == tmp_path / "whole.overlap"
    assert table.digest == overlap(dataset, **options).digest
    with monkeypatch.context() as context:
        every = counted(context)
        overlap(dataset, path=file, **options)
    assert len(every) == (12 if kind == "scenes" else 3)
    file.unlink()
    for stop in range(len(every)):
        with monkeypatch.context() as context:
            first = counted(context, stop)
            with pytest.raises(KeyboardInterrupt):
                overlap(dataset, path=file, **options)
        assert len(first) == stop
        assert not file.exists()
        with monkeypatch.context() as context:
            second = counted(context)
            overlap(dataset, path=file, **options)
        assert sorted(first + second) == sorted(every)
        assert file.read_bytes() == (tmp_path / "whole.overlap").read_bytes()
        assert not folder.exists()
        file.unlink()


def test_a_finished_file_is_opened(rooms, tmp_path, monkeypatch):
    file = tmp_path / "rooms.overlap"
    first = overlap(rooms, scene="room", rows=range(8), path=file)
    (tmp_path / "rooms.overlap.units").mkdir()  # as a kill at the very end leaves it
    with monkeypatch.context() as context:
        assert not counted(context)
        assert overlap(rooms, scene="room", rows=range(8), path=file).digest == first.digest
    assert [one.name for one in tmp_path.iterdir()] == ["rooms.overlap"]
    for other, words in (
        ({"rows": range(7)}, "of other rows"),
        ({"rows": range(8), "seed": 1}, r"with other settings \(seed\)"),
        ({"rows": range(8), "pixels": 20}, r"with other settings \(pixels\)"),
        ({"rows": range(8), "source": "depth"}, "of another dataset or from another source"),
    ):
        match = f"rooms.overlap has overlaps of .* another call, {words}; choose another file"
        with pytest.raises(DataError, match=match):
            overlap(rooms, scene="room", path=file, **other)
    assert OverlapTable.open(file).digest == first.digest


def one_plate(width):
    """Views of a plate from eight directions; the recipe has the same factors for plates of any width."""
    plate = Mesh([[-width, 0, 0], [width, 0, 0], [width, 1, 0], [-width, 1, 0.2]], [[0, 1, 2], [0, 2, 3], [0, 2, 1]])
    return RenderedDataset(
        ObjectView({"plate": lambda: plate}, azimuths=range(0, 320, 40), elevations=(20,), size=(24, 32))
    )


def depth_frames(folder):
    """A capture of three frames with depth in millimetres, in ``transforms.json``."""
    folder.mkdir()
    frames = []
    for number in range(3):
        Image.new("RGB", (32, 24)).save(folder / f"{number}.png")
        Image.fromarray(np.full((24, 32), 2000 + number, np.uint16)).save(folder / f"{number}.depth.png")
        pose = np.eye(4)
        pose[0, 3] = number / 10
        frames.append({"file_path": f"{number}.png", "depth_file_path": f"{number}.depth.png",
                       "transform_matrix": pose.tolist()})  # fmt: skip
    camera = {"w": 32, "h": 24, "fl_x": 30, "fl_y": 30, "cx": 16, "cy": 12, "k1": 0.01}
    (folder / "transforms.json").write_text(json.dumps({**camera, "frames": frames}))
    return folder


def other_content(tmp_path):
    """Datasets with equal factors and other content."""
    Model(tmp_path / "model")
    frames = depth_frames(tmp_path / "frames")
    return {
        "mesh": (one_plate(1.0), one_plate(3.0)),
        "size of scenes": (
            RenderedDataset(Room(rooms=1, size=(24, 32))),
            RenderedDataset(Room(rooms=1, size=(32, 24))),
        ),
        "crop": (setsup.open(tmp_path / "model"), setsup.open(tmp_path / "model", size=(24, 24))),
        "size of depth": (setsup.open(frames), setsup.open(frames, size=(12, 16))),
        "unit of depth": (setsup.open(frames), setsup.open(frames, depth_scale=0.01)),
    }


@pytest.mark.parametrize("what", ["mesh", "size of scenes", "crop", "size of depth", "unit of depth"])
def test_tables_and_units_of_other_content_are_not_taken(what, tmp_path, monkeypatch):
    """Equal factors do not make equal views: a mesh was edited, or a capture is opened with other options."""
    one, other = other_content(tmp_path)[what]
    assert one.factors.fingerprint == other.factors.fingerprint
    file = tmp_path / "views.overlap"
    with monkeypatch.context() as context:
        context.setattr(OverlapTable, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            overlap(one, path=file)
    wanted = overlap(other)
    assert overlap(other, path=file).digest == wanted.digest != overlap(one).digest
    with pytest.raises(DataError, match="of views with equal factors but other content"):
        overlap(one, path=file)
    assert overlap(other, path=file).digest == wanted.digest


def interrupted(table, path):
    raise KeyboardInterrupt


@pytest.mark.long("kills and interruptions")
def test_results_of_other_settings_and_damaged_ones_count_for_nothing(rooms, tmp_path, monkeypatch):
    wanted = overlap(rooms, scene="room", seed=1)
    file, folder = tmp_path / "rooms.overlap", tmp_path / "rooms.overlap.units"
    for number in (0, 1):
        with monkeypatch.context() as context:
            counted(context, 8)
            with pytest.raises(KeyboardInterrupt):
                overlap(rooms, scene="room", seed=number, path=file)
    for damage, one in enumerate(sorted(folder.glob("*.unit"))[:3]):
        content = one.read_bytes()
        one.write_bytes((content[:100], content[:-1] + b"\1", b"")[damage])
    assert overlap(rooms, scene="room", seed=1, path=file).digest == wanted.digest


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("processes", [2, 3])
def test_processes_do_not_matter(rooms, capture, tmp_path, processes):
    for number, (dataset, options) in enumerate(((rooms, {"scene": "room", "candidates": 4}), (capture, {}))):
        files = [tmp_path / f"{number}-{count}.overlap" for count in (1, processes)]
        for file, count in zip(files, (1, processes), strict=True):
            overlap(dataset, path=file, processes=count, **options)
        assert files[0].read_bytes() == files[1].read_bytes()


def test_files_that_cannot_be_written(rooms, tmp_path):
    with pytest.raises(SetsupError, match="on= requires path="):
        overlap(rooms, scene="room", on=Ray())
    with pytest.raises(SetsupError, match="processes must be 1 on a cluster"):
        overlap(rooms, scene="room", on=Ray(), processes=2, path=tmp_path / "x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "other").write_text("no table")
    for place in ("/proc/x/rooms.overlap", tmp_path / "folder", tmp_path / "other"):
        with pytest.raises(DataError) as raised:
            overlap(rooms, scene="room", path=place)
        assert "\n" not in str(raised.value)
    assert (tmp_path / "other").read_text() == "no table"


def test_a_table_of_tracks_counts_pairs_that_it_does_not_list(capture, tmp_path):
    table = overlap(capture, path=tmp_path / "cloud.overlap")
    assert table.counts[0, 2] == 72 > len(table)
    fields = {name: getattr(table, name) for name in ("first", "second", "overlap", "angle", "scale", "unknown",
                                                      "decided", "views", "sampled", "starts", "counts", "excluded",
                                                      "excluded_starts")}  # fmt: skip
    with pytest.raises(DataError, match=r"scene 0 counts 72 measured pairs, and lists \d+;"):
        OverlapTable(**fields, about={**table.about, "source": "depth"})
    fields["counts"] = np.array([[72, 0, 5, 67]])
    with pytest.raises(DataError, match="scene 0 has tracks, and measured 5 pairs of 72"):
        OverlapTable(**fields, about=table.about)
