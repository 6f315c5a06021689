"""Sets of setsup that lost a file: restored from their tars byte for byte, or with a word on what is lost."""

import json
import os
import shutil
from contextlib import suppress
from importlib import import_module
from itertools import combinations

import numpy as np
import pyarrow.parquet as pq
import pytest

import setsup
from setsup.datasets import Dataset
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.shards.backup import read_backup
from setsup.shards.external.indexing import index_shards, write_external_index
from setsup.shards.external.restoring import LOST, OTHER_BYTES
from setsup.shards.index import write_index
from setsup.shards.writing.writer import write_shards
from tests.sharded import Varied, contents
from tests.shards.sets import FEW

FILES = ("README.md", "index.parquet", "shards.json")
DAMAGES = {
    "lost": lambda path: path.unlink(),
    "cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
}


@pytest.fixture
def folder(tmp_path, whole):
    return shutil.copytree(whole, tmp_path / "set")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["index.parquet", "shards.json"])
def test_a_damaged_file_is_restored_byte_for_byte(folder, whole, name, damage):
    DAMAGES[damage](folder / name)
    with pytest.raises(DataError, match="setsup index"):
        setsup.open_shards(folder)
    found = write_external_index(folder)
    assert found.restored == (name,)
    assert found.notes == ()
    assert contents(folder) == contents(whole)


def test_a_set_that_is_whole_stays_as_it_is(folder, whole, caplog):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    found = write_external_index(folder)
    assert (found.restored, found.left_out) == ((), {})
    assert found.notes == ("nothing to do: shards.json, index.parquet and the tars are complete",)
    assert contents(folder) == contents(whole)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    np.testing.assert_array_equal(
        index_shards(folder).source_rows(np.arange(5)), setsup.open_shards(whole).source_rows(np.arange(5))
    )
    assert "nothing to do" in caplog.text


def test_an_index_that_another_version_of_pyarrow_writes_has_the_same_content(folder, whole, monkeypatch):
    module = import_module("setsup.shards.external.restoring")

    def write(path, *arguments):
        write_index(path, *arguments)
        pq.write_table(pq.read_table(path), path, compression="gzip")

    monkeypatch.setattr(module, "write_index", write)
    DAMAGES["lost"](folder / "index.parquet")
    assert write_external_index(folder).notes == (OTHER_BYTES,)
    for _ in range(2):  # also from the second copy, which is of the new index
        found, expected = setsup.open_shards(folder), setsup.open_shards(whole)
        assert found.factors.fingerprint == expected.factors.fingerprint
        np.testing.assert_array_equal(found.source_rows(np.arange(5)), expected.source_rows(np.arange(5)))
        for name in ("index.parquet", "shards.json"):
            (folder / name).unlink()
        assert write_external_index(folder).notes == ()


@pytest.mark.parametrize("change", ["damaged", "cut off", "lost", "another"])
def test_a_tar_that_does_not_belong_to_a_whole_index_is_named(folder, change):
    tar = folder / "data-00002.tar"
    if change == "damaged":
        content = bytearray(tar.read_bytes())
        content[600] ^= 1
        tar.write_bytes(content)
    elif change == "cut off":
        os.truncate(tar, 4096)
    elif change == "lost":
        tar.unlink()
    else:
        tar = folder / "mine.tar"
        shutil.copyfile(folder / "data-00001.tar", tar)
    before = contents(folder)
    sentences = {"lost": "is missing: fetch it again, or run the same", "another": "and indexing them together"}
    what = sentences.get(change, "is not the tar that `setsup shard` wrote")
    with pytest.raises(DataError, match=f"{tar.name},? {what}"):
        index_shards(folder)
    assert contents(folder) == before


@pytest.mark.parametrize("names", list(combinations(FILES, 2)))
def test_from_the_second_copy_all_others_are_restored(folder, whole, names):
    for name in names:
        (folder / name).unlink()
    assert set(write_external_index(folder).restored) == set(names)
    assert contents(folder) == contents(whole)


def test_a_selection_in_another_order_keeps_its_source_rows(tmp_path):
    chosen = Varied().select(np.arange(49, 5, -3))
    written = write_shards(chosen, tmp_path / "set", order="shuffle", seed=4, per_shard=7)
    before, rows = contents(tmp_path / "set"), written.source_rows(np.arange(15))
    (tmp_path / "set" / "index.parquet").unlink()
    again = index_shards(tmp_path / "set")
    assert again.source_rows(np.arange(15)).tolist() == rows.tolist()
    assert contents(tmp_path / "set") == before


@pytest.mark.parametrize("backup", ["lost", "damaged", "of another set"])
def test_without_the_second_copy_source_rows_are_lost_and_that_is_said(folder, whole, tmp_path, backup, caplog):
    (folder / "index.parquet").unlink()
    if backup == "lost":
        (folder / "backup.parquet").unlink()
    elif backup == "damaged":
        content = bytearray((folder / "backup.parquet").read_bytes())
        content[30:60] = bytes(30)
        (folder / "backup.parquet").write_bytes(content)
    else:
        write_shards(Varied(20), tmp_path / "other")
        shutil.copy(tmp_path / "other" / "backup.parquet", folder / "backup.parquet")
    found = index_shards(folder)
    assert LOST in caplog.messages
    table = pq.read_table(whole / "index.parquet").drop_columns(["__source_row__"])
    assert pq.read_table(folder / "index.parquet").equals(table)  # all but the source rows
    assert found.catalogue.plan == setsup.open_shards(whole).catalogue.plan
    assert found.verify() == []
    with pytest.raises(DataError, match="or the index was restored"):
        found.source_rows([0])


@pytest.mark.parametrize("change", ["damaged", "cut off", "lost"])
def test_a_tar_that_is_another_is_named_and_nothing_is_written(folder, change):
    (folder / "index.parquet").unlink()
    tar = folder / "data-00002.tar"
    if change == "damaged":
        content = bytearray(tar.read_bytes())
        content[600] ^= 1
        tar.write_bytes(content)
    elif change == "cut off":
        os.truncate(tar, 4096)
    else:
        tar.unlink()
    with pytest.raises(DataError, match=r"data-00002\.tar .*fetch it again"):
        index_shards(folder)
    assert not (folder / "index.parquet").exists()
    assert not (folder / ".setsup").exists()


class Levels(Dataset):
    """Levels that are equal in Python, or that texts of numbers confuse."""

    name = "levels"

    def __init__(self):
        values = {
            "whole": (0, 1, 2),
            "fraction": (0.1, 0.30000000000000004, 1e-320),
            "lit": (False, True),
            "text": ("1", "1.0", "null"),
        }
        factors = [Factor(name, Kind.NOMINAL, levels) for name, levels in values.items()]
        factors.append(Factor("angle", Kind.CONTINUOUS))
        dice = np.random.default_rng(0)
        columns = {one.name: dice.integers(-1, len(one), 40) for one in factors[:-1]}
        angle = dice.normal(0, 1e30, 40).astype(np.float32)
        angle[3], angle[4], angle[5] = np.nan, -0.0, np.float32(1e-45)
        self.factors = FactorTable(factors, {**columns, "angle": angle})
        self.modalities = {"weight": setsup.datasets.Modality((), "int16")}

    def fetch(self, indices, modalities=None):
        rows, names = setsup.datasets.fetch_request(self, indices, modalities)
        return {name: rows.astype(np.int16) for name in names}


def test_values_come_back_exactly(tmp_path):
    write_shards(Levels(), tmp_path / "set", per_shard=15)
    before = contents(tmp_path / "set")
    (tmp_path / "set" / "index.parquet").unlink()
    index_shards(tmp_path / "set")
    assert contents(tmp_path / "set") == before


def test_the_second_copy_holds_what_the_tars_do_not(whole):
    table = pq.read_table(whole / "backup.parquet")
    assert table.column_names == ["__source_row__"]
    assert table.column(0).equals(pq.read_table(whole / "index.parquet").column("__source_row__"))
    about = table.schema.metadata[b"setsup"].decode()
    assert '"card"' in about
    assert FEW["order"] in about


def test_a_lost_second_copy_is_written_again(folder, whole):
    (folder / "backup.parquet").unlink()
    index_shards(folder)
    assert contents(folder) == contents(whole)


def test_a_lost_data_card_is_written_again(folder, whole):
    (folder / "README.md").unlink()
    index_shards(folder)
    assert contents(folder) == contents(whole)


def test_without_its_second_copy_and_data_card_a_set_is_as_complete_as_it_can_be(folder):
    for name in ("README.md", "backup.parquet"):
        (folder / name).unlink()
    before = contents(folder)
    found = write_external_index(folder)
    assert found.restored == ()
    assert found.notes == ("nothing to do: shards.json, index.parquet and the tars are complete",)
    assert contents(folder) == before


def test_description_and_index_of_another_set_give_way_to_the_second_copy(folder, whole, tmp_path):
    other = tmp_path / "other"
    write_shards(setsup.load("shapes3d-procedural").select(range(5, 17)), other)
    for name in ("shards.json", "index.parquet"):
        (folder / name).write_bytes((other / name).read_bytes())
    index_shards(folder)
    assert contents(folder) == contents(whole)


def test_a_description_that_does_not_fit_the_tars_gives_way_to_its_copy(folder, whole):
    description = folder / "shards.json"
    description.write_text(description.read_text().replace('"hue"', '"other"'))
    (folder / "index.parquet").unlink()
    index_shards(folder)
    assert contents(folder) == contents(whole)


def test_an_edited_description_keeps_its_source_rows(folder, whole, caplog):
    description = folder / "shards.json"
    edited = json.loads(description.read_text())
    edited["name"] = "renamed"
    description.write_text(json.dumps(edited))
    (folder / "index.parquet").unlink()
    index_shards(folder)
    assert "differs from its copy in backup.parquet" in caplog.text
    assert json.loads(description.read_text())["name"] == "renamed"
    same = ("index.parquet", "backup.parquet")
    assert [(folder / one).read_bytes() for one in same] == [(whole / one).read_bytes() for one in same]


def test_without_its_copy_a_description_that_does_not_fit_the_tars_is_one_sentence(folder):
    description = folder / "shards.json"
    description.write_text(description.read_text().replace('"hue"', '"other"'))
    for name in ("index.parquet", "backup.parquet"):
        (folder / name).unlink()
    with pytest.raises(DataError, match=r"'other'.*does not match the values in the tars"):
        index_shards(folder)


def test_any_flipped_bit_of_the_second_copy_is_noticed_or_harmless(whole, tmp_path):
    content, expected = (whole / "backup.parquet").read_bytes(), read_backup(whole / "backup.parquet")
    damaged = tmp_path / "damaged.parquet"
    for at in range(0, len(content), 29):
        damaged.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        with suppress(DataError):
            found = read_backup(damaged)
            assert (found.catalogue, found.card) == (expected.catalogue, expected.card)
            assert np.array_equal(found.source_rows, expected.source_rows)


def test_a_folder_above_a_set_is_refused(folder):
    before = contents(folder)
    with pytest.raises(DataError, match=f"has its own index; run `setsup index .*{folder.name}`"):
        index_shards(folder.parent)
    assert contents(folder) == before
    assert not (folder.parent / "shards.json").exists()


def test_a_folder_above_two_sets_is_refused(folder, tmp_path):
    for name in "ab":
        shutil.copytree(folder, tmp_path / "sets" / name)
    with pytest.raises(DataError, match=r"sets/a, a folder in .*sets, has its own index; run `setsup index .*sets/a`"):
        index_shards(tmp_path / "sets")
    assert not (tmp_path / "sets" / "shards.json").exists()
