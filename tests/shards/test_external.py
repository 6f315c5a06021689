"""Tars of others become a dataset: samples as webdataset has them, modalities, indexing again."""

import io
import json
import signal
import subprocess
import sys
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import setsup
from setsup.datasets import Modality
from setsup.errors import DataError
from setsup.factors import Factor, Kind
from setsup.shards import tar_scan
from setsup.shards.external.indexing import index_shards, write_external_index
from setsup.shards.external.samples import group_samples
from setsup.shards.opening import open_shards
from setsup.shards.stores.opening import open_store
from setsup.shards.writing.writer import write_shards
from tests.sharded import Varied
from tests.shards.external_tars import documents, npy, pack, picture, png, stored, streamed

# -- what webdataset writes ----------------------------------------------------------------------------------------


def test_tars_of_webdataset_are_a_dataset(written, caplog):
    dataset = index_shards(written)
    assert [shard.rows for shard in dataset.catalogue.shards] == [12, 12, 6]
    assert dataset.name == "photos"
    assert dataset.modalities == {
        "depth": Modality((3, 4), "float32"),
        "image": Modality((12, 16, 3), "uint8", color="srgb"),
    }
    there = streamed(*sorted(written.glob("*.tar")))
    assert [key for key, _ in there] == dataset.keys(np.arange(30))
    rows = np.array([[29, 0, 17], [12, 11, 17]])
    batch = dataset.fetch(rows)
    for place, row in np.ndenumerate(rows):
        members = there[row][1]
        pixels = np.asarray(Image.open(io.BytesIO(members["png"])))
        np.testing.assert_array_equal(batch["image"][place], pixels)
        np.testing.assert_array_equal(batch["depth"][place], np.load(io.BytesIO(members["depth.npy"])))
    told = [json.loads(members["json"]) for _, members in there]
    table = dataset.factors
    assert table.names == ("shape", "size", "angle", "at.x", "cls")
    assert table["shape"] == Factor("shape", Kind.NOMINAL, ("ball", "cube"))
    assert table["size"] == Factor("size", Kind.ORDINAL, (0, 1, 2, 3, 4))
    assert table["cls"] == Factor("cls", Kind.NOMINAL, (0, 1, 2))
    for name in ("shape", "size"):
        assert table.values(name).tolist() == [one[name] for one in told]
    np.testing.assert_array_equal(table.values("angle"), np.array([one["angle"] for one in told], np.float32))
    assert table.values("at.x").tolist() == [one["at"]["x"] for one in told]
    assert table.values("cls").tolist() == [int(members["cls"]) for _, members in there]
    assert caplog.messages == ["members that are not supported: txt"]


def test_any_sampler_works_on_it(written):
    dataset = index_shards(written)
    sampler = setsup.SetSampler(dataset.factors, inactive=["shape"], size=4, sets=2, seed=0)
    draw = sampler[3]
    images = dataset.fetch(draw.indices)["image"]
    assert images.shape == (2, 4, 12, 16, 3)
    for code, rows in zip(draw.inactive["shape"], draw.indices, strict=True):
        assert set(rows % 2) == {code}  # even rows are balls


def test_places_are_those_of_the_tar(written):
    dataset = index_shards(written)
    for (key, members), (expected, there) in zip(
        stored(dataset), streamed(*sorted(written.glob("*.tar"))), strict=True
    ):
        assert key == expected
        assert members == {name: there[name] for name in ("png", "depth.npy")}


def test_the_same_bytes_again_and_elsewhere(written, tmp_path):
    found = index_shards(written)
    names = ["index.parquet", "shards.json"]
    first = {name: (written / name).read_bytes() for name in names}
    assert sorted(path.name for path in written.iterdir()) == [*(f"data-00{n}.tar" for n in range(3)), *names]
    index_shards(written)
    assert {name: (written / name).read_bytes() for name in names} == first
    for name in names:
        (written / name).unlink()
    other = index_shards(written, tmp_path / "elsewhere" / "index")
    assert {name: (tmp_path / "elsewhere" / "index" / name).read_bytes() for name in names} == first
    assert sorted(path.name for path in (tmp_path / "elsewhere" / "index").iterdir()) == names
    assert not (written / "shards.json").exists()
    np.testing.assert_array_equal(other.fetch([3, 29])["depth"], found.fetch([3, 29])["depth"])


def test_one_tar_and_a_pattern(written, tmp_path):
    one = index_shards(written / "data-001.tar", tmp_path / "one")
    assert (one.name, len(one), one.keys([0])) == ("data-001", 12, ["sample0012"])
    two = index_shards(f"{written}/data-{{001..002}}.tar", tmp_path / "two")
    assert (two.name, len(two)) == ("photos", 18)
    np.testing.assert_array_equal(two.fetch(17)["depth"], np.full((3, 4), 29, np.float32))
    with pytest.raises(DataError, match=r"data-003\.tar does not exist"):
        index_shards(f"{written}/data-{{000..003}}.tar", tmp_path / "three")
    assert not (tmp_path / "three").exists()


# -- how members make samples --------------------------------------------------------------------------------------


parts = st.text("ab0-_é ", min_size=1, max_size=3)
folders = st.sampled_from(["", "a/", "b.c/", "a/b/", "a.b/c/"])
endings = st.sampled_from(["png", "PNG", "depth.npy", "json", "cls", "txt", "tar.gz"])


@pytest.mark.long("large or genuine files")
@given(
    st.lists(
        st.tuples(folders, parts, st.lists(endings, min_size=1, max_size=4, unique_by=str.lower)),
        min_size=1,
        max_size=12,
        unique_by=lambda one: one[:2],
    ),
    st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_samples_are_those_of_webdataset(tmp_path_factory, samples, form):
    folder = tmp_path_factory.mktemp("samples")
    members = [
        (f"{path}{key}.{ending}", f"{path}{key}{ending}".encode()) for path, key, found in samples for ending in found
    ]
    path = pack(folder / "a.tar", members, form)
    with tar_scan.scan_tar(open_store(folder), "a.tar") as tar:
        found = group_samples(tar.listing, "a.tar")
        contents = tar.contents(range(len(tar.listing.names)))
    names = [
        {ext: contents[place] for ext, place in zip(found.extensions, row, strict=True) if place >= 0}
        for row in found.member.tolist()
    ]
    assert list(zip(found.keys.to_pylist(), names, strict=True)) == streamed(path)
    assert found.folders.to_pylist() == [key.rpartition("/")[0] for key in found.keys.to_pylist()]


def test_what_is_no_member_is_passed_over(tmp_path):
    extra = tarfile.TarInfo("link.png")
    extra.type, extra.linkname = tarfile.SYMTYPE, "0.png"
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for name in ("folder", "LICENSE", "._0.png", "x/.hidden.png", "__meta__", "__index__/0.json", "a.b/README"):
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if name == "folder" else tarfile.REGTYPE
            tar.addfile(member, io.BytesIO())
        tar.addfile(extra)
        for kind, name in ((tarfile.CHRTYPE, "device.png"), (tarfile.FIFOTYPE, "pipe.png"), (tarfile.LNKTYPE, "h.png")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "0.png" if kind == tarfile.LNKTYPE else ""
            tar.addfile(member)
        for name, content in (("./0.png", png(0)), ("./__MACOSX/._0.png", b"mac"), ("./0.json", b'{"a": 1}')):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    dataset = index_shards(tmp_path)
    assert dataset.keys([0]) == ["0"]
    assert len(dataset) == 1
    assert dataset.factors.row(0) == {"a": 1}


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names(tmp_path, form):
    long = "k" * 300
    members = [(f"{long}/{row}é.png", png(row)) for row in range(3)]
    path = pack(tmp_path / "a.tar", members, form)
    dataset = index_shards(tmp_path)
    assert dataset.keys([0, 1, 2]) == [key for key, _ in streamed(path)] == [f"{long}/{row}é" for row in range(3)]
    np.testing.assert_array_equal(dataset.fetch(2)["image"], np.asarray(picture(2)))


# -- modalities ----------------------------------------------------------------------------------------------------


def test_names_of_modalities(tmp_path):
    pack(
        tmp_path / "a.tar",
        [
            (f"{row}.{name}", content)
            for row in range(4)
            for name, content in {
                "JPG": png(row, format="JPEG"),
                "png": png(row, mode="L"),
                "Seg.png": png(row, (5, 6), "RGBA"),
                "depth.npy": npy(np.zeros((row + 1, 2), ">f4")),
                "image.npy": npy(np.float64(row)),
                "pth": b"\x80\x04}",
                "mp4": b"film",
                "objects.npy": npy(np.array([{"a": row}], object)),
                "deep.png": b"no picture",
            }.items()
        ],
    )
    found = write_external_index(tmp_path)
    dataset = open_shards(tmp_path)
    assert dataset.modalities == {
        "image": Modality((12, 16, 3), "uint8", color="srgb"),
        "png": Modality((12, 16, 1), "uint8", color="grey"),
        "seg": Modality((5, 6, 4), "uint8", color="srgb"),
        "depth": Modality((None, 2), "float32"),
        "image.npy": Modality((), "float64"),
    }
    assert found.not_fetched == ("pth", "mp4")
    assert found.left_out.keys() == {".objects.npy", ".deep.png"}
    assert "0.objects.npy in a.tar" in found.left_out[".objects.npy"]
    assert dataset.fetch([3, 1], ["image.npy"])["image.npy"].tolist() == [3.0, 1.0]
    np.testing.assert_array_equal(dataset.fetch(2, ["png"])["png"][..., 0], np.asarray(picture(2, mode="L")))


def test_images_of_several_kinds_are_one_modality(tmp_path):
    pack(tmp_path / "a.tar", [(f"{row}.{'png' if row % 2 else 'webp'}", png(row, format="PNG")) for row in range(6)])
    dataset = index_shards(tmp_path)
    assert list(dataset.modalities) == ["image"]
    np.testing.assert_array_equal(dataset.fetch([4, 5])["image"], [np.asarray(picture(row)) for row in (4, 5)])


def test_sizes_that_differ(tmp_path):
    pack(tmp_path / "a.tar", [(f"{row:03}.png", png(row, (8, 9 + row % 3))) for row in range(40)])
    assert index_shards(tmp_path).modalities["image"].shape == (8, None, 3)


def test_members_that_some_samples_lack(tmp_path):
    members = [(f"{row}.png", png(row)) if row % 2 else (f"{row}.npy", npy(np.arange(row))) for row in range(1, 7)]
    pack(tmp_path / "a.tar", members)
    dataset = index_shards(tmp_path)
    assert dataset.modalities["npy"] == Modality((None,), "int64")
    assert dataset.fetch(3, ["npy"])["npy"].tolist() == [0, 1, 2, 3]
    with pytest.raises(DataError, match=r"row 0 .* no 'npy'"):
        dataset.fetch(0, ["npy"])


def test_a_damaged_image_does_not_hide_the_others(tmp_path):
    pack(tmp_path / "a.tar", [(f"{row}.png", b"\x89PNG" if row == 0 else png(row)) for row in range(4)])
    dataset = index_shards(tmp_path)
    assert dataset.fetch([1, 2])["image"].shape == (2, 12, 16, 3)
    with pytest.raises(DataError, match="row 0"):
        dataset.fetch(0)


# -- sets that setsup wrote ----------------------------------------------------------------------------------------


@pytest.mark.long("large or genuine files")
def test_a_set_of_ours_is_indexed_from_its_tars(tmp_path, caplog):
    folder = tmp_path / "ours"
    source = Varied()
    ours = write_shards(source, folder, per_shard=12)
    expected = {name: ours.fetch(np.arange(len(ours)), [name])[name] for name in ("image", "depth")}
    index_shards(folder)
    assert "nothing to do: shards.json, index.parquet and the tars are complete" in caplog.text
    assert setsup.open_shards(folder).source_rows([3]) == [3]
    index_shards(folder, tmp_path / "beside")
    found = setsup.open_shards(folder, index=tmp_path / "beside")
    index = folder / "index.parquet"
    index.write_bytes(bytes(index.stat().st_size))  # damaged, of the same size
    again = index_shards(folder)  # restored
    assert again.catalogue == ours.catalogue
    assert found.factors.fingerprint == ours.factors.fingerprint
    assert dict(found.catalogue.about) == dict(ours.catalogue.about)
    assert found.name == ours.name
    for name, array in expected.items():
        np.testing.assert_array_equal(found.fetch(np.arange(len(ours)), [name])[name], array)
    assert found.modalities == ours.modalities
    (folder / "shards.json").unlink()
    (folder / "index.parquet").unlink()
    (folder / "backup.parquet").unlink()
    bare = index_shards(folder)
    assert any("source rows, checksums" in message for message in caplog.messages)
    for row in range(len(ours)):
        told = {name: value for name, value in ours.factors.row(row).items() if name in bare.factors.names}
        assert bare.factors.row(row) == told


def test_descriptions_that_were_corrected_stay(tmp_path):
    pack(tmp_path / "a.tar", documents(*({"hue": row % 4 / 4, "shape": "ab"[row % 2]} for row in range(8))))
    assert index_shards(tmp_path).factors["hue"].continuous
    path = tmp_path / "shards.json"
    told = json.loads(path.read_text())
    told["factors"][0] = {"name": "hue", "kind": "cyclic", "levels": [0.0, 0.25, 0.5, 0.75], "period": 1.0}
    path.write_text(json.dumps(told))
    table = index_shards(tmp_path).factors
    assert table["hue"] == Factor("hue", Kind.CYCLIC, (0.0, 0.25, 0.5, 0.75), period=1.0)
    assert table.codes("hue").tolist() == [0, 1, 2, 3] * 2


def test_a_description_that_does_not_hold_is_found_again(tmp_path, caplog):
    pack(tmp_path / "a.tar", documents({"shape": "a", "size": 2}, {"shape": "b", "size": 1}))
    index_shards(tmp_path)
    pack(tmp_path / "b.tar", documents({"shape": "c", "size": 1}))
    table = index_shards(tmp_path).factors
    assert table["shape"].levels == ("a", "b", "c")
    assert table["size"].levels == (1, 2)
    assert any("'shape'" in message for message in caplog.messages)


def test_a_damaged_catalogue_is_replaced(tmp_path, written, caplog):
    index_shards(written)
    good = (written / "shards.json").read_bytes()
    (written / "shards.json").write_bytes(good[:100])
    index_shards(written)
    assert (written / "shards.json").read_bytes() == good
    assert any("damaged" in message for message in caplog.messages)


# -- kills ---------------------------------------------------------------------------------------------------------


@pytest.mark.long("kills and interruptions")
def test_ctrl_c_and_kills_leave_the_old_index_or_the_new_one(written):
    index_shards(written)
    old = {path.name: path.read_bytes() for path in written.iterdir()}
    pack(written / "data-003.tar", documents({"shape": "ball", "size": 0, "angle": 0.5, "at": {"x": 1}}, first=90))
    code = (
        "import os, signal, sys; import setsup.shards.external.indexing as f; real = f.%s\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job has it ignored
        "def die(*a, **k):\n    os.kill(os.getpid(), signal.%s); return real(*a, **k)\n"
        "f.%s = die; f.write_external_index(sys.argv[1])"
    )
    for place in ("write_index", "content_digest"):
        for sign in ("SIGKILL", "SIGINT"):
            child = subprocess.run(
                [sys.executable, "-c", code % (place, sign, place), str(written)], capture_output=True, check=False
            )
            assert child.returncode in (-signal.SIGKILL, -signal.SIGINT, 1), child.stderr
            for name, content in old.items():
                assert (written / name).read_bytes() == content
            assert open_shards(written).keys([29]) == ["sample0029"]
    assert len(index_shards(written)) == 31
    assert sorted(path.name for path in written.iterdir()) == sorted([*old, "data-003.tar"])
    assert not (written / ".setsup").exists()
