"""Cameras and names of instances in shards of renderings, and pairs of pixels by them."""

import json
import pickle
import tarfile

import numpy as np
import pytest

import setsup
from setsup.correspondence import PixelPairSampler, RenderedPairs, pair_table, stored, view_pairs
from setsup.datasets.dataset import of_row
from setsup.errors import DataError, RowError
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.folder import open_rendered
from setsup.rendered.writing import render
from setsup.scenes import Camera
from setsup.shards.external.indexing import write_external_index
from setsup.shards.views import ShardedViews, parse_view
from setsup.shards.writing.writer import write_shards
from tests.fuzzing import survives
from tests.rendered_scenes import Crayon, Dots
from tests.sharded import Varied, contents
from tests.shards.external_tars import streamed

ROWS = 144


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A rendering of all dots."""
    folder = tmp_path_factory.mktemp("drawn") / "dots"
    return render(RenderedDataset(Dots(), renderer=Crayon()), folder, ["image", "depth"])


def same_views(shards, drawn, rows):
    for place, row in enumerate(rows):
        assert shards.camera(place) == drawn.camera(row)
        for name in ("k", "rotation", "translation"):
            np.testing.assert_array_equal(getattr(shards.camera(place), name), getattr(drawn.camera(row), name))
        assert shards.names(place) == drawn.names(row)


# -- what is written ---------------------------------------------------------------------------------------------------


def test_the_standard_library_and_numpy_read_the_cameras(drawn, tmp_path):
    write_shards(drawn, tmp_path / "set", per_shard=100)
    k, rotation, translation = (
        np.load(drawn.folder / f"camera_{name}.npy") for name in ("k", "rotation", "translation")
    )
    row = 0
    for path in sorted((tmp_path / "set").glob("*.tar")):
        with tarfile.open(path) as tar:
            names = tar.getnames()
            for name in names[2::4]:
                assert name == f"{row:06}.camera.json"
                found = json.loads(tar.extractfile(name).read())
                assert list(found) == ["height", "width", "k", "rotation", "translation", "instances", "names"]
                assert (found["height"], found["width"]) == (4, 6)
                np.testing.assert_array_equal(found["k"], k[row])
                np.testing.assert_array_equal(found["rotation"], rotation[row])
                np.testing.assert_array_equal(found["translation"], translation[row])
                shape = row // 48
                assert (found["instances"], found["names"]) == ([shape], [["cone", "ball", "cube"][shape]])
                row += 1
    assert row == ROWS
    samples = streamed(tmp_path / "set" / "data-00000.tar")  # by webdataset
    assert [(key, json.loads(members["camera.json"])["width"]) for key, members in samples[:2]] == [
        ("000000", 6), ("000001", 6),
    ]  # fmt: skip
    catalogue = json.loads((tmp_path / "set" / "shards.json").read_text())
    assert catalogue["pair_factors"] == ["shape", "hue"]
    assert catalogue["members"]["camera"]["extension"] == "camera.json"


@pytest.mark.long("large or genuine files")
def test_the_set_opens_with_its_cameras(drawn, tmp_path):
    shards = write_shards(drawn, tmp_path / "set", order="by:hue", per_shard=50)
    assert isinstance(shards, ShardedViews)
    assert (shards.pair_factors, shards.modalities) == (("shape", "hue"), drawn.modalities)
    same_views(shards, drawn, shards.source_rows(range(ROWS)).tolist())
    assert set(shards.fetch([3])) == {"image", "depth"}
    with pytest.raises(DataError, match="no modality 'camera'"):
        shards.fetch([3], ["camera"])
    chosen = shards.where("shape == 'cube'")
    assert chosen.names(5) == {2: "cube"}
    assert chosen.pair_factors == ("shape", "hue")
    assert pickle.loads(pickle.dumps(shards)).camera(7) == shards.camera(7)
    assert shards.verify() == []
    with pytest.raises(RowError):
        shards.camera(ROWS)
    with pytest.raises(RowError, match="single row"):
        shards.camera([1, 2])
    small = setsup.open_shards(tmp_path / "set", size=(2, 3))
    with pytest.raises(DataError, match="open the dataset without size="):
        small.camera(0)
    assert small.names(0) == shards.names(0)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("kind", ["drawn", "folder", "shards", "selection"])
def test_equal_views_give_equal_bytes_wherever_they_come_from(drawn, tmp_path, kind):
    options = {"modalities": ["image"], "order": "shuffle", "seed": 3, "per_shard": 60}
    write_shards(drawn, tmp_path / "set", **options)
    if kind == "drawn":
        source = RenderedDataset(Dots(), renderer=Crayon())
    elif kind == "shards":
        source = write_shards(drawn, tmp_path / "between", modalities=["image"])
    else:
        source = open_rendered(drawn.folder) if kind == "folder" else drawn.select(range(ROWS))
    processes = 2 if kind == "folder" else 1
    write_shards(source, tmp_path / "again", processes=processes, **options)
    there, here = contents(tmp_path / "set"), contents(tmp_path / "again")
    tars = [name for name in there if name.endswith(".tar")]
    assert len(tars) == 3
    assert {name: there[name] for name in tars} == {name: here[name] for name in tars}
    assert there["index.parquet"] == here["index.parquet"]


def test_scenes_of_what_is_drawn_are_built_once_a_block(tmp_path):
    built = []

    class Counting(Dots):
        def scene(self, values):
            built.append((values["shape"], values["hue"]))
            return super().scene(values)

    source = RenderedDataset(Counting(), renderer=Crayon())
    source._pools.clear()
    write_shards(source, tmp_path / "set", order="shuffle", modalities=["depth"])
    assert len(built) < 30


@pytest.mark.long("stores")
def test_in_a_store(drawn, memory):
    shards = write_shards(drawn, memory, per_shard=50)
    same_views(shards, drawn, range(0, ROWS))


def test_what_has_no_cameras_gets_none(drawn, tmp_path):
    shards = write_shards(Varied(5), tmp_path / "varied")
    assert not hasattr(shards, "camera")
    assert "pair_factors" not in json.loads((tmp_path / "varied" / "shards.json").read_text())
    assert not hasattr(write_shards(drawn, tmp_path / "small", size=(2, 3)), "camera")

    class Other(Varied):
        @of_row
        def camera(self, row):
            return "Nikon"

    assert not hasattr(write_shards(Other(5), tmp_path / "other"), "camera")


def test_with_hugging_face(drawn, tmp_path):
    datasets = pytest.importorskip("datasets")
    write_shards(drawn, tmp_path / "set", per_shard=100)
    text = (tmp_path / "set" / "README.md").read_text()
    hub = pytest.importorskip("huggingface_hub")
    features = datasets.Features._from_yaml_list(hub.DatasetCard(text).data.dataset_info["features"])
    assert "KEY.camera.json" in text
    with tarfile.open(tmp_path / "set" / "data-00000.tar") as tar:
        found = json.loads(tar.extractfile("000007.camera.json").read())
    kept = features["camera.json"]
    assert set(kept) == set(found)
    one = datasets.Dataset.from_list([{"camera.json": found}], features=datasets.Features({"camera.json": kept}))[0]
    assert one["camera.json"] == found


# -- pairs -------------------------------------------------------------------------------------------------------------


@pytest.mark.long("large or genuine files")
def test_pairs_of_pixels_are_those_of_the_rendering(tmp_path):
    pytest.importorskip("embreex")
    from setsup.loading.views import SpatialDescriptors, SpatialPairs
    from setsup.scenes.recipes import Shapes3D

    recipe = Shapes3D(size=(24, 24))
    drawn = render(RenderedPairs(recipe, pair_table(recipe, 6), "embree"), tmp_path / "drawn")
    shards = write_shards(drawn, tmp_path / "set", order="shuffle", seed=5, per_shard=5)
    rows = shards.source_rows(np.arange(12))
    sampler, other = PixelPairSampler(drawn, pairs=4), PixelPairSampler(shards, pairs=4)
    assert sorted(other[0].inactive) == sorted(sampler[0].inactive) == ["view_pair"]
    # the same pairs of rows, wherever they lie
    place = np.argsort(rows)
    pairs, keys = sampler[3].indices, np.arange(4, dtype=np.uint64)
    theirs = view_pairs(drawn, pairs, keys, fraction=0.5, match=stored)
    ours = view_pairs(shards, place[pairs], keys, fraction=0.5, match=stored)
    for name in ("partner", "positive", "valid"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert theirs.positive.any()
    # as they lie, the very draws: all of a batch is the same
    keep = write_shards(drawn, tmp_path / "keep", format="npy")
    for transform in (
        lambda data: SpatialPairs(data, size=16, match=stored),
        lambda data: SpatialDescriptors(data, 32, background=("floor", "wall"), match=stored),
    ):
        batches = [
            next(iter(setsup.loader(data, PixelPairSampler(data, pairs=4), transform=transform(data), workers=0)))
            for data in (drawn, keep)
        ]
        assert batches[0].keys() == batches[1].keys()
        for name, value in batches[0].items():
            if hasattr(value, "shape"):
                np.testing.assert_array_equal(np.asarray(value), np.asarray(batches[1][name]))


# -- damage ------------------------------------------------------------------------------------------------------------


BYTES = {"dtype": "uint8", "unit": "", "color": ""}
SOUND = {
    "height": 4, "width": 6, "k": [[5.0, 0.0, 2.5], [0.0, 5.0, 1.5], [0.0, 0.0, 1.0]],
    "rotation": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "translation": [0.0, 0.0, 3.0],
    "instances": [0, 2], "names": ["floor", "Stuhl"],
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"height": 0}, {"height": 4.5}, {"height": "4"}, {"width": None}, {"width": True}, {"k": 3}, {"k": [[1, 2]]},
        {"k": [[5, 0, 1], [0, 5, 1], [0, 0]]}, {"rotation": [[0] * 3] * 3}, {"rotation": {}}, {"translation": [1, 2]},
        {"translation": [1, 2, float("nan")]}, {"translation": ["a", "b", "c"]}, {"translation": [1e999, 0, 0]},
        {"translation": [10**400, 0, 0]}, {"instances": [0]}, {"instances": ["0", 1]}, {"instances": None},
        {"names": [1, 2]}, {"names": 3},
    ],
)  # fmt: skip
def test_what_is_no_camera_is_said(change):
    camera, names = parse_view(json.dumps(SOUND).encode(), "the member", "fetch it again")
    assert camera == Camera(4, 6, np.array(SOUND["k"]), np.eye(3), np.array([0.0, 0.0, 3.0]))
    assert names == {0: "floor", 2: "Stuhl"}
    with pytest.raises(DataError, match=r"^the member is damaged: .*; fetch it again$"):
        parse_view(json.dumps({**SOUND, **change}).encode(), "the member", "fetch it again")


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"3", b"null", b'"x"', b"{", b"\xff", b"[" * 100_000, b'{"height": 1}']
)
def test_what_is_no_object_is_said(content):
    with pytest.raises(DataError, match="is damaged"):
        parse_view(content, "the member", "fetch it again")


def test_mutated_members():
    survives(json.dumps(SOUND).encode(), lambda content: parse_view(content, "the member", "fetch it again"))


def test_a_member_that_changed_is_noticed(drawn, tmp_path):
    write_shards(drawn, tmp_path / "set", modalities=["depth"])
    path = tmp_path / "set" / "data-00000.tar"
    path.write_bytes(path.read_bytes().replace(b'"width":6', b'"width":5'))
    with pytest.raises(DataError, match=r"the 'camera' of row 3 .* has changed since it was indexed"):
        setsup.open_shards(tmp_path / "set").camera(3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pair_factors": ["shape", "color"]}, "pair_factors must be names of factors"),
        ({"pair_factors": [3]}, "pair_factors"),
        ({"members": {"camera": {"extension": "camera.json", "shape": [3], **BYTES}}}, "are not supported"),
        ({"members": {"look": {"extension": "camera.json", "shape": [None], **BYTES}}}, "are not supported"),
    ],
)  # fmt: skip
def test_catalogues_that_tell_otherwise(drawn, tmp_path, change, said):
    write_shards(drawn, tmp_path / "set", modalities=["depth"])
    path = tmp_path / "set" / "shards.json"
    told = json.loads(path.read_text())
    for name, value in change.items():
        told[name] = {**told[name], **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(told))
    with pytest.raises(DataError, match=said):
        setsup.open_shards(tmp_path / "set")


@pytest.mark.long("large or genuine files")
def test_an_index_of_the_tars_knows_the_cameras_by_the_catalogue(drawn, tmp_path):
    write_shards(drawn, tmp_path / "set", per_shard=50)
    write_external_index(tmp_path / "set", tmp_path / "beside")
    beside = setsup.open_shards(tmp_path / "set", index=tmp_path / "beside")
    (tmp_path / "set" / "index.parquet").write_bytes(b"PAR1")
    again = setsup.index_shards(tmp_path / "set")
    assert (beside.catalogue.check, again.catalogue.check) == ("header", "crc32c")  # the latter is restored
    for found in (beside, again):
        assert found.pair_factors == ("shape", "hue")
        assert found.modalities == drawn.modalities
        assert found.factors.fingerprint == drawn.factors.fingerprint
        same_views(found, drawn, range(ROWS))
    for name in ("shards.json", "index.parquet", "backup.parquet"):
        (tmp_path / "set" / name).unlink()
    bare = setsup.index_shards(tmp_path / "set")  # to which they are json as any other
    assert not hasattr(bare, "camera")
    assert {"shape", "hue", "azimuth", "camera.height"} <= set(bare.factors.names)
    np.testing.assert_array_equal(bare.fetch([140])["depth"], drawn.fetch([140])["depth"])
