import errno
import io
import json
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import webdataset
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image
from webdataset.tariterators import group_by_keys, tar_file_expander

import setsup
from setsup.datasets import Modality
from setsup.errors import DataError
from setsup.factors import Factor, Kind
from setsup.shards.dataset import open_shards
from setsup.shards.foreign import factors as foreign_factors
from setsup.shards.foreign import spool, walking
from setsup.shards.foreign.indexing import index_shards, write_foreign_index
from setsup.shards.foreign.samples import grouped
from setsup.shards.layout import parsed
from setsup.shards.stores.addresses import split_address
from setsup.shards.stores.store import open_store
from setsup.shards.writing.writer import write_shards
from tests.fuzzing import survives
from tests.sharded import Varied


def picture(row, size=(12, 16), mode="RGB"):
    dice = np.random.default_rng(row)
    channels = {"RGB": 3, "L": 1, "RGBA": 4}[mode]
    pixels = dice.integers(0, 256, (*size, channels), np.uint8)
    return Image.fromarray(pixels[..., 0] if channels == 1 else pixels, mode)


def png(row, size=(12, 16), mode="RGB", format="PNG"):
    stream = io.BytesIO()
    picture(row, size, mode).save(stream, format)
    return stream.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def pack(path, members, form=tarfile.USTAR_FORMAT):
    """Write a tar with the standard library; content that is a TarInfo goes in as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=form) as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def documents(*values, first=0):
    """Json members of samples 0, 1, 2 …."""
    return [(f"{row}.json", json.dumps(value).encode()) for row, value in enumerate(values, first)]


def streamed(*paths):
    """Samples as the webdataset library gives them."""
    found = []
    for path in paths:
        with path.open("rb") as stream:
            samples = list(group_by_keys(tar_file_expander([{"url": str(path), "stream": stream}])))
        for sample in samples:
            found.append((sample["__key__"], {name: value for name, value in sample.items() if name[:2] != "__"}))
    return found


def stored(dataset):
    """Samples of an index: their keys, and the bytes at which it says that members lie."""
    tars = [(Path(dataset.url) / shard.name).read_bytes() for shard in dataset.catalogue.shards]
    found = [(key, {}) for key in dataset.keys(np.arange(len(dataset)))]
    table = pq.read_table(Path(dataset.url) / "index.parquet").to_pydict()
    for name, member in dataset.catalogue.members.items():
        for row, (_, members) in enumerate(found):
            offset, size = table[f"{name}.offset"][row], table[f"{name}.size"][row]
            if offset >= 0:
                members[member.extension] = tars[table["__shard__"][row]][offset : offset + size]
    return found


def refused(address, *words, **options):
    """One sentence, and no file."""
    folder = address if isinstance(address, Path) and address.is_dir() else Path(address).parent
    before = sorted(folder.rglob("*"))
    with pytest.raises(DataError) as caught:
        index_shards(address, **options)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert sorted(folder.rglob("*")) == before


# -- what webdataset writes ----------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path):
    """Thirty samples in three tars that webdataset wrote."""
    folder = tmp_path / "photos"
    folder.mkdir()
    with webdataset.ShardWriter(str(folder / "data-%03d.tar"), maxcount=12, verbose=0) as sink:
        for row in range(30):
            sink.write(
                {
                    "__key__": f"sample{row:04}",
                    "png": picture(row),
                    "depth.npy": np.full((3, 4), row, np.float32),
                    "json": {"shape": ["ball", "cube"][row % 2], "size": row % 5, "angle": row / 7, "at": {"x": row}},
                    "cls": row % 3,
                    "txt": f"caption {row}",
                }
            )
    return folder


def test_tars_of_webdataset_are_a_data_set(written, caplog):
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
    assert caplog.messages == ["members that are not read: txt"]


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
    with pytest.raises(DataError, match=r"data-003\.tar is not there"):
        index_shards(f"{written}/data-{{000..003}}.tar", tmp_path / "three")
    assert not (tmp_path / "three").exists()


# -- how members make samples --------------------------------------------------------------------------------------

parts = st.text("ab0-_é ", min_size=1, max_size=3)
folders = st.sampled_from(["", "a/", "b.c/", "a/b/", "a.b/c/"])
endings = st.sampled_from(["png", "PNG", "depth.npy", "json", "cls", "txt", "tar.gz"])


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
    with walking.walked(open_store(folder), "a.tar") as tar:
        found = grouped(tar.listing, "a.tar")
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
    found = write_foreign_index(tmp_path)
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


def test_pictures_of_several_kinds_are_one_modality(tmp_path):
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


def test_a_damaged_picture_does_not_hide_the_others(tmp_path):
    pack(tmp_path / "a.tar", [(f"{row}.png", b"\x89PNG" if row == 0 else png(row)) for row in range(4)])
    dataset = index_shards(tmp_path)
    assert dataset.fetch([1, 2])["image"].shape == (2, 12, 16, 3)
    with pytest.raises(DataError, match="row 0"):
        dataset.fetch(0)


# -- factors -------------------------------------------------------------------------------------------------------


def test_values_of_json(tmp_path):
    (tmp_path / "set").mkdir()
    pack(tmp_path / "set" / "0.tar", documents({"t": True, "w": 1, "f": 1, "s": "a", "n": None, "x": {"y": {"z": 1}}}))
    pack(
        tmp_path / "set" / "1.tar",
        [
            ("a.json", b'\xef\xbb\xbf {"t": false, "f": 2.5, "s": "", "n": null, "l": [1], "g": NaN}\n'),
            ("b.png", png(0)),
            ("c.json", b'{"t": null, "g": 0.25, "h": 123456789012345678901, "u": "\\ud800", "i": -1e999}'),
        ],
    )
    found = write_foreign_index(tmp_path / "set")
    table = open_shards(tmp_path / "set").factors
    assert {name: table.values(name).tolist() for name in ("t", "w", "s")} == {
        "t": [True, False, None, None],
        "w": [1, None, None, None],
        "s": ["a", None, None, None],
    }
    assert np.array_equal(table.values("f"), np.float32([1, 2.5, np.nan, np.nan]), equal_nan=True)
    assert np.array_equal(table.values("g"), np.float32([np.nan, np.nan, np.nan, 0.25]), equal_nan=True)
    assert found.left_out.keys() == {"n", "x.y", "l", "h", "u", "i"}
    assert "never known" in found.left_out["n"]
    assert "lists" in found.left_out["l"]
    assert "of c in" in found.left_out["h"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([{"a": 1}, {"a": "one"}], "numbers (1 of 0 in"),
        ([{"a": "x"}, {"a": False}], "truth values (False of 1 in"),
        ([{"a": 0.5}, {"a": {"b": 1}}], "{'b': 1} of 1"),
    ],
)
@pytest.mark.parametrize("apart", [False, True])
def test_mixed_types_name_tar_key_and_field(tmp_path, values, said, apart):
    if apart:
        for row, value in enumerate(values):
            pack(tmp_path / f"{row}.tar", documents({**value, "good": row}, first=row))
    else:
        pack(tmp_path / "0.tar", documents(*({**value, "good": row} for row, value in enumerate(values))))
    found = write_foreign_index(tmp_path)
    assert said in found.left_out["a"]
    assert f"{1 if apart and 'of 1' in said else 0}.tar" in found.left_out["a"]
    assert "good" in open_shards(tmp_path).factors


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": ', "damaged"),
        (b"", "damaged"),
        (b"{}{}", "more follows"),
        (b"\xff\xfe", "UTF-8"),
        (b"[" * 100_000, "damaged"),
        (b'{"a": ' + b"9" * 5000 + b"}", "damaged"),
        (b"[1]", "no object"),
    ],
)
def test_bad_json(tmp_path, content, said):
    pack(tmp_path / "a.tar", [*documents({"a": 1}), ("bad.json", content)])
    refused(tmp_path, "a.tar", "bad", said)


def test_json_that_never_is_an_object_is_left_out(tmp_path):
    pack(tmp_path / "a.tar", [(f"{row}.boxes.json", b"[[0, 1, 2, 3]]") for row in range(2)])
    found = write_foreign_index(tmp_path)
    assert "no objects" in found.left_out[".boxes.json"]
    assert open_shards(tmp_path).factors["shard"] == Factor("shard", Kind.NOMINAL, ("a.tar",), role="part")


def test_a_set_without_factors_has_its_tars(tmp_path):
    for name in ("one", "two"):
        pack(tmp_path / f"{name}.tar", [(f"{row}.png", png(row)) for row in range(2)])
    pack(tmp_path / "three.tar", [])
    dataset = index_shards(tmp_path)
    assert dataset.factors["shard"] == Factor("shard", Kind.NOMINAL, ("one.tar", "two.tar"), role="part")
    assert dataset.factors.values("shard").tolist() == ["one.tar"] * 2 + ["two.tar"] * 2
    assert [shard.rows for shard in dataset.catalogue.shards] == [2, 0, 2]  # one, three, two


def test_folders_are_a_factor(tmp_path):
    pack(tmp_path / "a.tar", [(f"train/n0{row // 2}/{row}.png", png(row)) for row in range(4)])
    table = index_shards(tmp_path).factors
    assert table.names == ("folder",)
    assert table.values("folder").tolist() == ["train/n00", "train/n00", "train/n01", "train/n01"]


def test_one_folder_is_none(tmp_path):
    pack(tmp_path / "a.tar", [(f"all/{row}.png", png(row)) for row in range(4)])
    assert index_shards(tmp_path).factors.names == ("shard",)


def test_classes(tmp_path):
    texts = ["7\n", "12", " 7", ""]
    pack(
        tmp_path / "a.tar",
        [
            (name, content)
            for row, text in enumerate(texts)
            for name, content in (
                (f"{row}.cls", text.encode()),
                (f"{row}.color.cls", [b"red", b"blue", b"3", b"red"][row]),
                (f"{row}.id", b"x" * 5000),
                (f"{row}.json", b'{"shape": 1}'),
                (f"{row}.shape.cls", b"1"),
            )
        ],
    )
    found = write_foreign_index(tmp_path)
    table = open_shards(tmp_path).factors
    assert table["cls"] == Factor("cls", Kind.NOMINAL, (7, 12))
    assert table.values("cls").tolist() == [7, 12, 7, None]
    assert table["color"].levels == ("3", "blue", "red")
    assert found.left_out.keys() == {".id", ".shape"}


def test_texts_that_name_samples(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_factors, "FEW", 50)
    values = [
        {"caption": f"caption {row}", "hash": row * 7, "url": f"u{row // 2}", "who": f"w{row % 40}"}
        for row in range(90)
    ]
    pack(tmp_path / "a.tar", documents(*values[:45]))
    pack(tmp_path / "b.tar", documents(*values[45:]))
    found = write_foreign_index(tmp_path)
    table = open_shards(tmp_path).factors
    assert found.left_out.keys() == {"caption", "hash"}
    assert "names samples" in found.left_out["caption"]
    assert [table[name].role for name in table.names] == ["variation", "variation"]
    assert table.names == ("url", "who")


def test_few_texts_that_name_samples_are_a_key(tmp_path):
    pack(tmp_path / "a.tar", documents(*({"caption": f"caption {row}", "row": row} for row in range(60))))
    table = index_shards(tmp_path).factors
    assert (table["caption"].role, table["row"].role) == ("key", "variation")


def test_texts_that_are_too_long_for_a_catalogue(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_factors, "_LEVELS", 10_000)
    pack(tmp_path / "a.tar", documents(*({"page": f"{row % 3}" * 4000, "size": row} for row in range(9))))
    found = write_foreign_index(tmp_path)
    assert "3 values take 12.0 kB" in found.left_out["page"]
    assert open_shards(tmp_path).factors.names == ("size",)


def test_the_empty_text_is_unknown_whatever_else_there_is(tmp_path):
    pack(tmp_path / "a.tar", documents({"width": 640, "error": ""}, {"width": "", "error": None}))
    found = write_foreign_index(tmp_path)
    table = open_shards(tmp_path).factors
    assert table["width"] == Factor("width", Kind.ORDINAL, (640,))
    assert table.values("width").tolist() == [640, None]
    assert found.left_out == {"error": "it is never known"}


def test_names_that_the_index_uses(tmp_path):
    pack(
        tmp_path / "a.tar",
        [("0.png", png(0)), ("0.json", b'{"__key__": "0", "image.size": 5, "": 1, "a\\n": 2, "b": 3}')],
    )
    found = write_foreign_index(tmp_path)
    assert open_shards(tmp_path).factors.names == ("b",)
    assert {"__key__", "image.size"} < found.left_out.keys()


def test_too_many_fields(tmp_path):
    pack(tmp_path / "a.tar", documents(*({f"field{row}_{n}": 1 for n in range(300)} for row in range(4))))
    refused(tmp_path, "1,200 different names")
    pack(tmp_path / "a.tar", documents({"boxes": {f"box{n}": 1 for n in range(200)}, "size": 3}))
    found = write_foreign_index(tmp_path)
    assert "200 different names" in found.left_out["boxes"]
    assert open_shards(tmp_path).factors.names == ("size",)


def test_a_set_that_does_not_fit_into_memory(tmp_path, written, monkeypatch):
    plain = index_shards(written, tmp_path / "plain")
    monkeypatch.setattr(spool, "IN_MEMORY", 1000)
    index_shards(written, tmp_path / "spooled")
    for name in ("index.parquet", "shards.json"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "spooled" / name).read_bytes()
    assert len(plain) == 30


# -- sets that setsup wrote ----------------------------------------------------------------------------------------


def test_a_set_of_ours_is_indexed_from_its_tars(tmp_path):
    folder = tmp_path / "ours"
    source = Varied()
    ours = write_shards(source, folder, per_shard=12)
    expected = {name: ours.fetch(np.arange(len(ours)), [name])[name] for name in ("image", "depth")}
    with pytest.raises(DataError, match=r"a set that `setsup shard` wrote, whose index has checksums .*--out"):
        index_shards(folder)
    assert setsup.open_shards(folder).source_rows([3]) == [3]
    index_shards(folder, tmp_path / "beside")
    found = setsup.open_shards(folder, index=tmp_path / "beside")
    index = folder / "index.parquet"
    index.write_bytes(bytes(index.stat().st_size))  # damaged, of the same size
    again = index_shards(folder)
    assert again.factors.fingerprint == found.factors.fingerprint
    assert found.factors.fingerprint == ours.factors.fingerprint
    assert dict(found.catalogue.about) == dict(ours.catalogue.about)
    assert found.name == ours.name
    for name, array in expected.items():
        np.testing.assert_array_equal(found.fetch(np.arange(len(ours)), [name])[name], array)
    assert found.modalities == ours.modalities
    (folder / "shards.json").unlink()
    (folder / "index.parquet").unlink()
    bare = index_shards(folder)
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


def test_a_description_that_does_not_hold_is_found_anew(tmp_path, caplog):
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


# -- bad tars ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["0.png", "0.png"], "an extension twice"),
        (["0.png", "0.PNG"], "an extension twice"),
        (["0.png", "1.png", "0.json"], "tar --sort=name"),
        (["../0.png"], "lead out"),
        (["/0.png"], "lead out"),
        (["a/../../0.png"], "lead out"),
        (["readme"], "no samples"),
        ([], "no samples"),
        ([f"0.a{n}.png" for n in range(300)], "first dot"),
    ],
)
def test_bad_members(tmp_path, names, said):
    pack(tmp_path / "a.tar", [(name, b"{}") for name in names])
    refused(tmp_path, said, "a.tar" if names and names[0] != "readme" else "tars")


def test_webdataset_refuses_the_same(tmp_path):
    for names in (["0.png", "0.png"], ["0.png", "0.PNG"]):
        pack(tmp_path / "a.tar", [(name, b"") for name in names])
        with pytest.raises(ValueError, match="duplicate"):
            streamed(tmp_path / "a.tar")


def test_dots_in_keys(tmp_path):
    for number in range(80):
        pack(tmp_path / f"{number:02}.tar", [(f"photo.{number}.png", png(0))])
    refused(tmp_path, "first dot")


def test_a_sparse_member(tmp_path):
    (tmp_path / "0.npy").write_bytes(b"")
    with (tmp_path / "0.npy").open("r+b") as file:
        file.truncate(1 << 20)
    subprocess.run(["tar", "--sparse", "-cf", "a.tar", "0.npy"], cwd=tmp_path, check=True)
    refused(tmp_path, "0.npy", "--sparse")


@pytest.mark.parametrize("cut", [0, 100, 512, 700, 1536, -1024])
def test_a_tar_that_is_cut_off(tmp_path, cut):
    path = pack(tmp_path / "a.tar", [("0.png", png(0)), ("0.json", b"{}")])
    size = 512 + -(-len(png(0)) // 512) * 512 + 1024
    path.write_bytes(path.read_bytes()[: cut if cut >= 0 else size])
    refused(tmp_path, "a.tar", "cut off or damaged")


def test_what_is_no_tar(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"<html>quota exceeded</html>" * 100)
    refused(tmp_path, "a.tar", "damaged")


def test_packed_tars(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(__file__, "0.txt")
    refused(tmp_path, "a.tar.gz", "gunzip")
    (tmp_path / "a.tar.gz").rename(tmp_path / "a.tar")
    refused(tmp_path, "a.tar", "gzip", "gunzip")


def test_a_packed_tar_among_others_is_named(tmp_path, written):
    (written / "more.tar.gz").write_bytes(b"\x1f\x8b")
    assert write_foreign_index(written).left_out.keys() == {"more.tar.gz"}


def test_places_that_cannot_be_written(tmp_path, written):
    (tmp_path / "file").write_text("")
    refused(written, "file", out=tmp_path / "file")
    pq.write_table(pa.table({"a": [1]}), written / "index.parquet")
    refused(written, "table of something else")


def test_the_index_of_other_tars_is_not_replaced(written, tmp_path):
    index_shards(written)
    refused(written / "data-001.tar", "other tars", "--out")
    refused(f"{written}/data-{{001..002}}.tar", "data-000.tar", "--out")
    pack(tmp_path / "other" / "a.tar", documents({"a": 1}))
    with pytest.raises(DataError, match="other tars"):
        index_shards(tmp_path / "other", written)
    assert open_shards(written).keys([29]) == ["sample0029"]
    shutil.move(written / "data-002.tar", tmp_path / "data-002.tar")  # what is taken away is no other set
    assert len(index_shards(written)) == 24


def test_a_full_disk(written, monkeypatch):
    monkeypatch.setattr(spool, "IN_MEMORY", 1000)

    class Full(io.BytesIO):
        def write(self, content):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spool.tempfile, "SpooledTemporaryFile", lambda most: Full())
    refused(written, "the disk is full")


def test_a_set_that_is_being_written_is_left_alone(written):
    (written / ".setsup").mkdir()
    (written / ".setsup" / "plan.json").write_text("{}")
    refused(written, "setsup shard")


def test_a_tar_that_changed_is_noticed_when_it_is_read(tmp_path):
    path = pack(tmp_path / "a.tar", [(f"{row}.npy", npy(np.arange(3))) for row in range(3)])
    dataset = index_shards(tmp_path)
    content = bytearray(path.read_bytes())
    place = content.index(b"1.npy")
    content[place : place + 5] = b"7.npy"
    content[place + 148 : place + 156] = b"%06o\0 " % (int(content[place + 148 : place + 154], 8) + ord("7") - ord("1"))
    path.write_bytes(content)
    with pytest.raises(DataError, match="changed since it was indexed"):
        dataset.fetch([1])
    again = index_shards(tmp_path)
    assert again.keys([1]) == ["7"]
    assert again.catalogue.shards[0].digest != dataset.catalogue.shards[0].digest


def test_mutated_tars(tmp_path):
    members = [
        (f"k/{row}.{name}", content)
        for row in range(3)
        for name, content in (("npy", npy(np.arange(4))), ("json", b'{"a": 1}'), ("cls", b"4"))
    ]
    healthy = pack(tmp_path / "healthy.tar", members, tarfile.PAX_FORMAT).read_bytes().rstrip(b"\0") + bytes(2048)
    folder = tmp_path / "set"
    folder.mkdir()

    def read(content):
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / "a.tar").write_bytes(content)
        found = write_foreign_index(folder)
        catalogue = parsed((folder / "shards.json").read_bytes(), "shards.json")
        assert catalogue == found.catalogue
        open_shards(folder)

    assert survives(healthy, read, 100, head=2048, times=400) > 25


def test_mutated_json(tmp_path):
    folder = tmp_path / "set"

    def read(content):
        pack(folder / "a.tar", [("0.json", content), ("1.json", b'{"size": 1, "shape": "a"}')])
        (folder / "shards.json").unlink(missing_ok=True)
        write_foreign_index(folder)

    healthy = b'{"size": 12, "shape": "ball", "at": {"x": 0.5, "y": -1e3}, "seen": true, "of": [1, 2], "no": null}'
    assert survives(healthy, read, 100, times=4000) > 25


# -- stores --------------------------------------------------------------------------------------------------------


class Counted:
    """A folder as a store that is far away."""

    folder = None

    def __init__(self, folder):
        self._store, self.url, self.asked = open_store(folder), "far://set", []

    def size(self, name):
        return self._store.size(name)

    def ranges(self, wanted):
        self.asked.append([(one.start, one.stop) for one in wanted])
        return self._store.ranges(wanted)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_walk_from_afar_is_the_walk_here(tmp_path, form):
    dice = np.random.default_rng(0)
    members = [
        (f"{'x/' * (60 if row % 7 == 0 else 1)}{row:04}.{name}", dice.bytes(int(size)))
        for row in range(300)
        for name, size in (("png", dice.integers(0, 60_000)), ("json", dice.integers(0, 900)))
    ]
    pack(tmp_path / "a.tar", members, form)
    with walking.walked(open_store(tmp_path), "a.tar") as here:
        there = Counted(tmp_path)
        with walking.walked(there, "a.tar", (b".json",)) as far:
            assert walking.listing_digest(far.listing) == walking.listing_digest(here.listing)
            assert far.listing.names.equals(here.listing.names)
            before = len(there.asked)
            assert (
                far.contents(range(1, 600, 2))
                == here.contents(range(1, 600, 2))
                == [content for _, content in members[1::2]]
            )
            assert len(there.asked) == before  # they were kept while the walk passed them
            assert far.contents([0, 4]) == [members[0][1], members[4][1]]
    size = (tmp_path / "a.tar").stat().st_size
    read = sum(stop - start for asked in there.asked[:before] for start, stop in asked)
    assert before < 20
    assert read < 1.3 * size


def test_large_contents_are_passed_over(tmp_path):
    members = [
        (f"{row}.{name}", content) for row in range(12) for name, content in (("npy", bytes(3 << 20)), ("json", b"{}"))
    ]
    pack(tmp_path / "a.tar", members)
    there = Counted(tmp_path)
    with walking.walked(there, "a.tar", (b".json",)) as far:
        assert len(far.listing.names) == 24
    read = sum(stop - start for asked in there.asked for start, stop in asked)
    assert read < 12 * 3 * walking.SMALL


def test_an_index_in_a_bucket(written, bucket, short_waits):
    url = f"{bucket.url}/photos"
    here = index_shards(written)
    store = open_store(url, bucket.options)
    for path in sorted(written.glob("*.tar")):
        store.put_bytes(path.name, path.read_bytes())
    far = index_shards(url, storage_options=bucket.options)
    assert store.names() == sorted(path.name for path in written.iterdir())
    for name in ("index.parquet", "shards.json"):
        assert store.read(name, 1 << 20) == (written / name).read_bytes()
    rows = [29, 3, 11]
    np.testing.assert_array_equal(far.fetch(rows)["image"], here.fetch(rows)["image"])


def test_tars_of_the_web(written, web, tmp_path, short_waits):
    for path in written.glob("*.tar"):
        web.files[f"set/{path.name}"] = path.read_bytes()
    with pytest.raises(DataError, match="--out"):
        index_shards(f"{web.url}/set/data-{{000..002}}.tar")
    far = index_shards(f"{web.url}/set/data-{{000..002}}.tar", tmp_path / "index")
    assert far.keys([29]) == ["sample0029"]
    np.testing.assert_array_equal(far.fetch([29])["image"][0], np.asarray(picture(29)))
    with pytest.raises(DataError, match=r"data-003\.tar"):
        index_shards(f"{web.url}/set/data-{{000..003}}.tar", tmp_path / "other")


# -- addresses -----------------------------------------------------------------------------------------------------


@example(0, 10, 1, False)
@given(st.integers(0, 300), st.integers(0, 20), st.integers(1, 6), st.booleans())
def test_patterns_are_those_of_braceexpand(first, more, width, padded):
    import braceexpand

    low, high = (f"{number:0{width}}" if padded else str(number) for number in (first, first + more))
    pattern = f"s3://bucket/a/data-{{{low}..{high}}}-x.tar"
    folder, names = split_address(pattern)
    assert [f"{folder}/{name}" for name in names] == list(braceexpand.braceexpand(pattern))


@pytest.mark.parametrize(
    "address", ["a-{0..1,3}.tar", "a-{x,y}.tar", "a-{0..3.tar", "a-0..3}.tar", "a-{3..0}.tar", "a-{0..9999999}.tar"]
)
def test_bad_patterns(address):
    with pytest.raises(DataError):
        split_address(f"https://example.org/{address}")


# -- kills ---------------------------------------------------------------------------------------------------------


def test_ctrl_c_and_kills_leave_the_old_index_or_the_new_one(written):
    index_shards(written)
    old = {path.name: path.read_bytes() for path in written.iterdir()}
    pack(written / "data-003.tar", documents({"shape": "ball", "size": 0, "angle": 0.5, "at": {"x": 1}}, first=90))
    code = (
        "import os, signal, sys; import setsup.shards.foreign.indexing as f; real = f.%s\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job has it ignored
        "def die(*a, **k):\n    os.kill(os.getpid(), signal.%s); return real(*a, **k)\n"
        "f.%s = die; f.write_foreign_index(sys.argv[1])"
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
