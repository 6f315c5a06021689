import logging
import pickle
import shutil
import tarfile
import threading
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.ndimage
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

import setsup
from setsup.datasets.benchmarks import edges2shoes
from setsup.datasets.benchmarks.edges2shoes import matching
from setsup.errors import DataError
from setsup_cli.main import main
from tests.fuzzing import survives
from tests.true_files import edges2shoes as true
from tests.true_files import ut_zap50k as zappos


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edges2shoes")
    return folder, true.write(folder)


@pytest.fixture(scope="module")
def shoes(release):
    return edges2shoes.open(release[0])


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zappos") / "ut-zap50k"
    return folder, zappos.write(folder)


def _halves(release):
    """Every photograph and its lines, by Pillow."""
    found = []
    for name, _ in release[1]:
        with Image.open(release[0] / "edges2shoes" / f"{name}_AB.jpg") as picture:
            both = np.asarray(picture)
        found += [both[:, 256:], both[:, :256]]
    return found


def test_rows_are_photographs_and_edges(release, shoes):
    table = shoes.factors
    assert len(shoes) == 2 * len(release[1]) == 48
    assert table.values("pair").tolist() == [name for name, _ in release[1] for _ in range(2)]
    assert table.values("domain").tolist() == ["photo", "edges"] * 24
    assert table.values("split").tolist() == ["train"] * 40 + ["val"] * 8
    assert shoes.paths([0, 1, 47]) == ["train/1_AB.jpg", "train/1_AB.jpg", "val/4_AB.jpg"]
    expected = _halves(release)
    for rows in (range(48), [[3, 2], [2, 47]], 5, [], [[]], [8, 9, 8, 9]):
        found = shoes.fetch(rows)["image"]
        flat = np.asarray(rows, int).reshape(-1)
        assert found.shape == (*np.shape(rows), 256, 256, 3)
        for got, row in zip(found.reshape(-1, 256, 256, 3), flat, strict=True):
            assert np.abs(got.astype(int) - expected[row]).max() <= 4
    out = np.zeros((4, 256, 256, 3), np.uint8)
    shoes.fetch_into([1, 0, 6, 1], {"image": out})
    assert np.array_equal(out, shoes.fetch([1, 0, 6, 1])["image"])
    strided = np.zeros((2, 256, 3, 256), np.uint8).transpose(0, 1, 3, 2)
    shoes.fetch_into([1, 0], {"image": strided})
    assert np.array_equal(strided, out[:2])


def test_a_file_is_decoded_once_for_both_its_rows(shoes, monkeypatch):
    decoded = Counter()

    def counted(source, label, *rest):
        decoded[label.partition(" ")[0]] += 1
        return decode(source, label, *rest)

    decode = edges2shoes.dataset.decode
    monkeypatch.setattr(edges2shoes.dataset, "decode", counted)
    shoes.fetch([[4, 5], [5, 4], [9, 8]])
    assert len(decoded) == 2
    assert set(decoded.values()) == {1}


def test_numbers_are_ordered_as_numbers(tmp_path):
    for name in ("train/10", "train/9", "val/1", "train/100", "train/x", "train/1_AB"):
        path = tmp_path / f"{name}_AB.jpg"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    found = edges2shoes.open(tmp_path)
    assert found.factors["pair"].levels == ("train/9", "train/10", "train/100", "val/1")


@pytest.mark.parametrize("times", [0, 1, 2])
def test_lines_are_thickened_before_they_are_resized(release, times):
    thick = edges2shoes.open(release[0], dilate=times)
    whole = edges2shoes.open(release[0]).fetch([6, 7])["image"]
    found = thick.fetch([6, 7])["image"]
    assert np.array_equal(found[0], whole[0])
    # cv2.dilate of what is black, as often: the least value of a square; beyond the sides there is nothing
    wide = 2 * times + 1
    expected = scipy.ndimage.minimum_filter(whole[1], size=(wide, wide, 1), mode="constant", cval=255)
    assert np.array_equal(found[1], expected)
    small = edges2shoes.open(release[0], size=(64, 64), dilate=times)
    assert small.modalities["image"].shape == (64, 64, 3)
    shrunk = Image.fromarray(expected).resize((64, 64), Image.Resampling.BICUBIC)
    assert np.array_equal(small.fetch(7)["image"], np.asarray(shrunk))


def test_a_number_of_times_that_cannot_be(release):
    for times in (-1, 17, 1.0, True):
        with pytest.raises(DataError, match="dilate must be"):
            edges2shoes.open(release[0], dilate=times)


def test_splits(release, caplog):
    safe = setsup.load("edges2shoes", release[0], split="pair-safe")
    assert not caplog.records
    parts = safe.factors.joint_counts(["pair", "split"])
    assert (np.sort(parts, axis=1) == [0, 2]).all()
    assert abs(parts[:, 1].sum() - 4.8) <= 2
    leaky = setsup.load("edges2shoes", release[0], split="dcodr")
    parts = leaky.factors.joint_counts(["pair", "split"])
    divided = (parts == 1).all(axis=1).sum()
    assert divided > 0
    assert f"rows of the same pair are in several parts ({divided} of 24" in caplog.text
    assert abs(parts[:, 1].sum() - 4.8) <= 1
    assert len(setsup.load("edges2shoes", release[0], split="val")) == 8


@pytest.mark.long("large or genuine files")
def test_labels_are_those_of_the_picture_that_was_photographed(release, catalogue, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(matching, "FEW", 11)
    root = tmp_path / "edges2shoes"
    shutil.copytree(release[0] / "edges2shoes", root)
    assert "shoe_type" not in edges2shoes.open(root).factors
    shutil.copytree(catalogue[0], tmp_path / "ut-zap50k")
    assert "shoe_type" not in edges2shoes.open(root).factors
    assert main(["prepare", "edges2shoes", "--root", str(root)]) == 0
    path = capsys.readouterr().out.strip()
    assert path.endswith("edges2shoes-zappos.npy")
    found = edges2shoes.open(root)
    # DCoDR's table, by pandas
    told = pd.read_csv(catalogue[0] / "ut-zap50k-data" / "meta-data.csv", dtype=str)
    drawn = [row["values"]["CID"] for _, row in release[1] for _ in range(2)]
    for factor, column in {
        **{"shoe_type": "Category", "gender": "Gender", "closure": "Closure"},
        **{"material": "Material", "toe_style": "ToeStyle"},
    }.items():
        values = told[column].fillna("Other").str.split(";").str[0]
        counts = values.value_counts()
        values = values.where(values.map(counts) > 11, "Other")
        wanted = dict(zip(told["CID"], values, strict=True))
        assert found.factors.values(factor).tolist() == [wanted[cid] for cid in drawn], factor
        assert set(found.factors[factor].levels) == set(values)
        assert list(found.factors[factor].levels) == sorted(set(values))
    assert "Other" in found.factors["shoe_type"].levels
    apart = found.factors.values("match_distance")
    assert apart.dtype == np.float32
    assert (apart < 6).all()
    assert np.array_equal(apart[::2], apart[1::2])
    # the same by stretched and by padded pictures, and by those that are named
    square = tmp_path / "square"
    shutil.copytree(catalogue[0] / "ut-zap50k-images-square", square / "ut-zap50k-images-square")
    shutil.copytree(catalogue[0] / "ut-zap50k-data", square / "ut-zap50k-data")
    edges2shoes.prepare(root, zappos=square)
    again = edges2shoes.open(root, zappos=square)
    assert again.factors.values("material").tolist() == found.factors.values("material").tolist()
    assert np.array_equal(pickle.loads(pickle.dumps(found)).factors.values("gender"), found.factors.values("gender"))


def test_matches_are_made_once_and_anew_for_other_files(release, catalogue, tmp_path, monkeypatch):
    root = shutil.copytree(release[0] / "edges2shoes", tmp_path / "e2s")
    beside = shutil.copytree(catalogue[0], tmp_path / "zap")
    path = edges2shoes.prepare(root, beside)
    made = path.stat().st_mtime_ns
    assert edges2shoes.prepare(root, beside) == path
    assert path.stat().st_mtime_ns == made
    (root / "train" / "20_AB.jpg").unlink()
    assert "gender" not in edges2shoes.open(root, zappos=beside).factors
    assert edges2shoes.prepare(root, beside) != path
    assert "gender" in edges2shoes.open(root, zappos=beside).factors
    list_of_paths = beside / "ut-zap50k-data" / "meta-data.csv"
    list_of_paths.write_text("".join(list_of_paths.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(DataError, match="48 images, but"):
        edges2shoes.prepare(root, beside)
    assert "gender" not in edges2shoes.open(root, zappos=beside).factors


@pytest.mark.parametrize("which", ["photographs", "catalogue"])
def test_matches_of_pictures_that_were_replaced_are_not_taken(release, catalogue, tmp_path, which):
    root = shutil.copytree(release[0] / "edges2shoes", tmp_path / "e2s")
    beside = shutil.copytree(catalogue[0], tmp_path / "zap")
    before = edges2shoes.prepare(root, beside)
    picture = next((root / "train" if which == "photographs" else beside / "ut-zap50k-images").rglob("*.jpg"))
    fresh = picture.with_suffix(".fresh")
    fresh.write_bytes(picture.read_bytes())  # of the same size
    fresh.replace(picture)
    assert "gender" not in edges2shoes.open(root, zappos=beside).factors
    assert edges2shoes.prepare(root, beside) != before


def test_files_are_listed_once(release, monkeypatch):
    calls = []
    listed = edges2shoes.dataset._list_pairs
    monkeypatch.setattr(edges2shoes.dataset, "_list_pairs", lambda members: calls.append(1) or listed(members))
    edges2shoes.open(release[0])
    assert len(calls) == 1


def test_equal_digests_are_compared(monkeypatch):
    class Same:
        def __init__(self, *_, **__): ...
        def digest(self):
            return b"same"

    monkeypatch.setattr(matching.hashlib, "blake2b", Same)
    others = np.array([[0, 0], [9, 9], [0, 0], [9, 0]], np.uint8)
    rows, squares = matching.nearest(others[::-1].copy(), others, lambda n=1: None)
    assert (rows.tolist(), squares.tolist()) == ([3, 0, 1, 0], [0, 0, 0, 0])


@pytest.mark.long("large or genuine files")
def test_a_file_of_matches_that_is_another(release, catalogue, tmp_path):
    path = edges2shoes.prepare(release[0], catalogue[0])
    healthy = path.read_bytes()

    def read(content):
        path.write_bytes(content)
        return edges2shoes.open(release[0], zappos=catalogue[0])

    # whatever it holds, rows have values or there are no labels
    assert survives(healthy, read, 30, slack=20 << 20) == 0


def test_without_the_catalogue(release, tmp_path, capsys):
    assert main(["prepare", "edges2shoes", "--root", str(release[0])]) == 2
    assert "setsup fetch ut-zap50k" in capsys.readouterr().err
    with pytest.raises(DataError, match="setsup fetch ut-zap50k"):
        edges2shoes.open(release[0], zappos=tmp_path)


@given(
    arrays(np.uint8, st.tuples(st.integers(1, 9), st.just(7))),
    arrays(np.uint8, st.tuples(st.integers(1, 30), st.just(7)), fill=st.sampled_from([0, 255])),
)
def test_the_nearest_of_all(queries, others):
    done = []
    rows, squares = matching.nearest(queries, others, done.append)
    apart = ((queries[:, np.newaxis].astype(int) - others) ** 2).sum(axis=2)
    assert squares.tolist() == apart.min(axis=1).tolist()
    assert apart[np.arange(len(queries)), rows].tolist() == squares.tolist()
    # of equal vectors the first
    assert all((others[:row] != others[row]).any(axis=1).all() for row in rows)
    assert sum(done) == len(others)


def test_the_nearest_in_blocks(monkeypatch):
    monkeypatch.setattr(matching, "_BLOCK", 16)
    monkeypatch.setattr(matching, "_OTHERS", 32)
    dice = np.random.default_rng(0)
    others = dice.integers(0, 256, (150, 3072), np.uint8)
    others[70:90] = others[20:40]
    chosen = dice.permutation(150)[:90]
    noisy = np.clip(others[chosen].astype(int) + dice.integers(-9, 10, (90, 3072)), 0, 255).astype(np.uint8)
    rows, squares = matching.nearest(noisy, others, lambda n=1: None)
    assert rows.tolist() == [row - 50 if 70 <= row < 90 else row for row in chosen.tolist()]
    assert squares.tolist() == ((noisy.astype(int) - others[rows]) ** 2).sum(axis=1).tolist()


@given(st.lists(st.sampled_from(["", "Men", "Men;Boys", "Boys", "Other", "Girls;Men", " Girls"]), min_size=1))
def test_rare_values_are_put_together(cells):
    levels, codes = matching.coarse(np.array(cells), 2)
    first = [cell.split(";")[0].strip() or "Other" for cell in cells]
    counts = Counter(first)
    assert [levels[code] for code in codes] == [value if counts[value] > 2 else "Other" for value in first]
    assert levels == tuple(sorted(set(np.array(levels)[codes].tolist())))


@pytest.mark.parametrize("packing", ["tar", "folders above", "train only"])
def test_copies(tmp_path, release, shoes, packing):
    folder = release[0] / "edges2shoes"
    if packing == "tar":
        with tarfile.open(tmp_path / "edges2shoes.tar", "w") as file:
            file.add(folder, "edges2shoes")
    elif packing == "folders above":
        shutil.copytree(folder, tmp_path / "pix2pix" / "datasets" / "edges2shoes")
    else:
        shutil.copytree(folder / "train", tmp_path / "train")
    found = setsup.load("edges2shoes", tmp_path)
    rows = np.arange(40 if packing == "train only" else 48)
    assert found.factors.values("pair").tolist() == shoes.factors.values("pair", rows).tolist()
    assert np.array_equal(found.fetch([0, 39])["image"], shoes.fetch([0, 39])["image"])
    assert np.array_equal(pickle.loads(pickle.dumps(found)).fetch(3)["image"], shoes.fetch(3)["image"])


def test_packed_as_a_whole(tmp_path, release):
    with tarfile.open(tmp_path / "edges2shoes.tar.gz", "w:gz") as file:
        file.add(release[0] / "edges2shoes", "edges2shoes")
    with pytest.raises(DataError, match="compressed as a whole: unpack it") as found:
        edges2shoes.open(tmp_path)
    assert "setsup fetch edges2shoes" in str(found.value)


def test_pictures_that_are_none(tmp_path, release):
    root = shutil.copytree(release[0] / "edges2shoes", tmp_path / "copy")
    Image.new("RGB", (256, 256)).save(root / "train" / "2_AB.jpg")
    found = edges2shoes.open(root)
    with pytest.raises(DataError, match=r"2_AB\.jpg \(row 2\) is 256 × 256 pixels .*; expected 256 × 512"):
        found.fetch([2, 0])
    path = root / "train" / "3_AB.jpg"
    healthy = path.read_bytes()

    def read(content):
        path.write_bytes(content)
        return found.fetch([4, 5])

    assert survives(healthy, read, 60, slack=20 << 20) > 20


def test_threads(shoes, caplog):
    caplog.set_level(logging.ERROR)
    expected = shoes.fetch(range(20))["image"]
    same = []
    threads = [
        threading.Thread(target=lambda: same.append(np.array_equal(shoes.fetch(range(20))["image"], expected)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 4
