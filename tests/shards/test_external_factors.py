"""Factors of tars that others wrote: from json and class members, folders and tars."""

import numpy as np
import pytest

import setsup
from setsup.factors import Factor, Kind
from setsup.shards.external import factors as external_factors
from setsup.shards.external import spill_buffer
from setsup.shards.external.indexing import index_shards, write_external_index
from setsup.shards.opening import open_shards
from tests.shards.external_tars import documents, pack, png, refused


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
    found = write_external_index(tmp_path / "set")
    table = open_shards(tmp_path / "set").factors
    assert {name: table.values(name).tolist() for name in ("t", "w", "s")} == {
        "t": [True, False, None, None],
        "w": [1, None, None, None],
        "s": ["a", None, None, None],
    }
    assert np.array_equal(table.values("f"), np.float32([1, 2.5, np.nan, np.nan]), equal_nan=True)
    assert np.array_equal(table.values("g"), np.float32([np.nan, np.nan, np.nan, 0.25]), equal_nan=True)
    assert found.left_out.keys() == {"n", "x.y", "l", "h", "u", "i"}
    assert "all of its values are unknown" in found.left_out["n"]
    assert "lists" in found.left_out["l"]
    assert "of c in" in found.left_out["h"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([{"a": 1}, {"a": "one"}], "numbers (1 of 0 in"),
        ([{"a": "x"}, {"a": False}], "booleans (False of 1 in"),
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
    found = write_external_index(tmp_path)
    assert said in found.left_out["a"]
    assert f"{1 if apart and 'of 1' in said else 0}.tar" in found.left_out["a"]
    assert "good" in open_shards(tmp_path).factors


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": ', "damaged"),
        (b"", "damaged"),
        (b"{}{}", "extra data"),
        (b"\xff\xfe", "UTF-8"),
        (b"[" * 100_000, "damaged"),
        (b'{"a": ' + b"9" * 5000 + b"}", "damaged"),
        (b"[1]", "must be an object"),
    ],
)
def test_bad_json(tmp_path, content, said):
    pack(tmp_path / "a.tar", [*documents({"a": 1}), ("bad.json", content)])
    refused(tmp_path, "a.tar", "bad", said)


def test_json_that_never_is_an_object_is_left_out(tmp_path):
    pack(tmp_path / "a.tar", [(f"{row}.boxes.json", b"[[0, 1, 2, 3]]") for row in range(2)])
    found = write_external_index(tmp_path)
    assert "instead of objects" in found.left_out[".boxes.json"]
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
    found = write_external_index(tmp_path)
    table = open_shards(tmp_path).factors
    assert table["cls"] == Factor("cls", Kind.NOMINAL, (7, 12))
    assert table.values("cls").tolist() == [7, 12, 7, None]
    assert table["color"].levels == ("3", "blue", "red")
    assert found.left_out.keys() == {".id", ".shape"}


def test_texts_that_name_samples(tmp_path, monkeypatch):
    monkeypatch.setattr(external_factors, "FEW", 50)
    values = [
        {"caption": f"caption {row}", "hash": row * 7, "url": f"u{row // 2}", "who": f"w{row % 40}"}
        for row in range(90)
    ]
    pack(tmp_path / "a.tar", documents(*values[:45]))
    pack(tmp_path / "b.tar", documents(*values[45:]))
    found = write_external_index(tmp_path)
    table = open_shards(tmp_path).factors
    assert found.left_out.keys() == {"caption", "hash"}
    assert "more than half of its values are distinct" in found.left_out["caption"]
    assert [table[name].role for name in table.names] == ["variation", "variation"]
    assert table.names == ("url", "who")


def test_few_texts_that_name_samples_are_a_key(tmp_path):
    pack(tmp_path / "a.tar", documents(*({"caption": f"caption {row}", "row": row} for row in range(60))))
    table = index_shards(tmp_path).factors
    assert (table["caption"].role, table["row"].role) == ("key", "variation")


def test_texts_that_are_too_long_for_a_catalogue(tmp_path, monkeypatch):
    monkeypatch.setattr(external_factors, "_LEVELS", 10_000)
    pack(tmp_path / "a.tar", documents(*({"page": f"{row % 3}" * 4000, "size": row} for row in range(9))))
    found = write_external_index(tmp_path)
    assert "3 values have 12.0 kB" in found.left_out["page"]
    assert open_shards(tmp_path).factors.names == ("size",)


def test_the_empty_text_is_unknown_whatever_else_there_is(tmp_path):
    pack(tmp_path / "a.tar", documents({"width": 640, "error": ""}, {"width": "", "error": None}))
    found = write_external_index(tmp_path)
    table = open_shards(tmp_path).factors
    assert table["width"] == Factor("width", Kind.ORDINAL, (640,))
    assert table.values("width").tolist() == [640, None]
    assert found.left_out == {"error": "all of its values are unknown"}


def test_names_that_the_index_uses(tmp_path):
    pack(
        tmp_path / "a.tar",
        [("0.png", png(0)), ("0.json", b'{"__key__": "0", "image.size": 5, "": 1, "a\\n": 2, "b": 3}')],
    )
    found = write_external_index(tmp_path)
    assert open_shards(tmp_path).factors.names == ("b",)
    assert {"__key__", "image.size"} < found.left_out.keys()


def test_too_many_fields(tmp_path):
    pack(tmp_path / "a.tar", documents(*({f"field{row}_{n}": 1 for n in range(300)} for row in range(4))))
    refused(tmp_path, "1,200 different names")
    pack(tmp_path / "a.tar", documents({"boxes": {f"box{n}": 1 for n in range(200)}, "size": 3}))
    found = write_external_index(tmp_path)
    assert "200 different names" in found.left_out["boxes"]
    assert open_shards(tmp_path).factors.names == ("size",)


def test_a_set_that_does_not_fit_into_memory(tmp_path, written, monkeypatch):
    plain = index_shards(written, tmp_path / "plain")
    monkeypatch.setattr(spill_buffer, "IN_MEMORY", 1000)
    index_shards(written, tmp_path / "spooled")
    for name in ("index.parquet", "shards.json"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "spooled" / name).read_bytes()
    assert len(plain) == 30


def tars_in(folder, names, classes=True):
    """Tars with three samples each, whose keys are the same."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        members = [(f"{row}.png", png(row)) for row in range(3)]
        members += [(f"{row}.cls", str(row % 2).encode()) for row in range(3) if classes]
        pack(folder / name, sorted(members))


def tars_of(dataset):
    """Name of the tar of each row."""
    return [shard.name for shard in dataset.catalogue.shards for _ in range(shard.rows)]


def test_tars_of_several_folders_are_told_from_splits(tmp_path, caplog):
    tars_in(tmp_path, ["cats/000.tar", "dogs/000.tar"])
    found = index_shards(tmp_path)
    assert (len(found), found.factors.names) == (6, ("cls",))
    (said,) = [one.getMessage() for one in caplog.records if "folder" in one.getMessage()]
    assert said.startswith("the tars of cats, dogs are indexed as one set, without a factor for the folder of each row")
    assert said.endswith(f"index each one separately, for example with `setsup index {tmp_path}/cats`")
    assert len(index_shards(tmp_path / "cats")) == len(index_shards(tmp_path / "dogs")) == 3


@pytest.mark.parametrize(
    ("tars", "levels"),
    [
        (["val/000.tar", "train/000.tar", "train/001.tar"], ("train", "val")),
        (["train-000000.tar", "test-000000.tar", "val-000000.tar"], ("train", "val", "test")),
        (["imagenet-train-000.tar", "imagenet-validation-000.tar"], ("train", "validation")),
        (["deep/Test/a.tar", "deep/Train/a.tar"], ("train", "test")),
        (["train-0.tar", "eval-0.tar"], ("train", "eval")),
    ],
)
def test_splits_are_a_factor_where_folders_or_names_of_tars_say_them(tmp_path, caplog, tars, levels):
    tars_in(tmp_path, tars)
    found = index_shards(tmp_path)
    assert found.factors.names == ("cls", "split")
    assert (found.factors["split"].levels, found.factors["split"].role) == (levels, "split")
    for row, split in enumerate(found.factors.values("split").tolist()):
        assert split in tars_of(found)[row].lower()
    assert not [one for one in caplog.records if "one set" in one.getMessage()]
    assert index_shards(tmp_path).factors["split"] == found.factors["split"]
    assert len(setsup.open(tmp_path, split="train")) == 3 * sum("train" in tar.lower() for tar in tars)


@pytest.mark.parametrize(
    ("tars", "count"),
    [
        (["train/000.tar", "extra/000.tar"], "1 of 2"),  # one says none
        (["train-0.tar", "val-0.tar", "extra-0.tar"], "2 of 3"),
        (["train-000.tar", "train-001.tar"], ""),  # all say the same
        (["train-val-000.tar", "test-000.tar"], "1 of 2"),  # one says two
        (["constrain-000.tar", "latest-000.tar"], ""),  # parts of other words
    ],
)
def test_names_that_do_not_say_the_split_of_each_tar_give_none(tmp_path, caplog, tars, count):
    tars_in(tmp_path, tars)
    assert "split" not in index_shards(tmp_path).factors
    said = [one.getMessage() for one in caplog.records if "name a split" in one.getMessage()]
    assert [one.partition(" tars")[0] for one in said] == ([count] if count else [])


def test_a_field_of_that_name_is_the_factor(tmp_path, caplog):
    for name in ("train", "val"):
        pack(tmp_path / name / "0.tar", documents({"split": f"{name}-a"}, {"split": f"{name}-b"}))
    assert index_shards(tmp_path).factors["split"].levels == ("train-a", "train-b", "val-a", "val-b")
    assert "the factor split is the field of the json members, not what folders or names of tars say" in caplog.text


def test_nothing_is_said_where_a_factor_tells_or_there_is_one_folder(tmp_path, caplog):
    tars_in(tmp_path / "bare", ["cats/000.tar", "dogs/000.tar"], classes=False)
    assert index_shards(tmp_path / "bare").factors["shard"].levels == ("cats/000.tar", "dogs/000.tar")
    tars_in(tmp_path / "one", ["train/000.tar", "train/001.tar"])
    index_shards(tmp_path / "one")
    assert not [one for one in caplog.records if "one set" in one.getMessage()]
