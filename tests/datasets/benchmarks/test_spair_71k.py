"""SPair-71k, from files in the published form: images, keypoints, boxes and pairs are those of the annotations."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.correspondence import PixelPairSampler, Status, view_pairs
from setsup.correspondence.matching import Window, keypoints, matched
from setsup.datasets.benchmarks.semantic_pairs.spair import read_annotation
from setsup.datasets.benchmarks.semantic_pairs.spair_pairs import read_list, read_pair
from setsup.datasets.keypoint_pairs import listed_pairs
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files import spair_71k as true

SPLITS = {"trn": "train", "val": "val", "test": "test"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spair")
    true.write(folder)
    return folder


@pytest.fixture(scope="module")
def spair(folder: Path):
    return setsup.load("spair-71k", folder)


def published(folder: Path) -> list[tuple[str, dict]]:
    """Split and annotation of each pair, in the order of the large layout."""
    found = []
    for short, split in SPLITS.items():
        for line in (folder / "SPair-71k" / "Layout" / "large" / f"{short}.txt").read_text().split():
            path = folder / "SPair-71k" / "PairAnnotation" / short / f"{line}.json"
            found.append((split, json.loads(path.read_text())))
    return found


def test_rows_are_the_annotated_images(folder: Path, spair) -> None:
    names = sorted(path.relative_to(folder) for path in folder.glob("*/ImageAnnotation/*/*.json"))
    assert len(spair) == len(names) == 27
    for row, name in enumerate(names):
        said = json.loads((folder / name).read_text())
        values = spair.factors.row(row)
        assert (values["category"], values["photo"]) == (name.parent.name, name.stem)
        assert values["pose"] == (None if said["pose"] == "Unspecified" else said["pose"])
        assert [values[key] for key in ("azimuth", "truncated", "occluded", "difficult")] == [
            said["azimuth_id"],
            *(bool(said[key]) for key in ("truncated", "occluded", "difficult")),
        ]
        fetched = spair.fetch(row)
        with Image.open(folder / "SPair-71k" / "JPEGImages" / name.parent.name / f"{name.stem}.jpg") as image:
            assert np.array_equal(fetched["image"], np.asarray(image))
        assert spair.image_size(row) == fetched["image"].shape[:2]
        assert fetched["box"].tolist() == said["bndbox"]
        for key, point in said["kps"].items():
            known = fetched["keypoints"][int(key)]
            assert known.tolist() == point if point else np.isnan(known).all()


def test_pairs_are_those_of_the_large_layout(folder: Path, spair) -> None:
    pairs, wanted = spair.published_pairs, published(folder)
    assert len(pairs) == len(wanted) == 3 * (6 + 2 + 12)
    words = ("none", "source", "target", "both")
    for number, (split, said) in enumerate(wanted):
        row1, row2 = pairs.rows[number].tolist()
        assert [f"{spair.factors.values('photo', row)}.jpg" for row in (row1, row2)] == [
            said["src_imname"],
            said["trg_imname"],
        ]
        values = pairs.factors.row(number)
        assert (values["split"], values["category"]) == (split, said["category"])
        assert [values["viewpoint"], values["scale"]] == [
            ("easy", "medium", "hard")[said[f"{key}_variation"]] for key in ("viewpoint", "scale")
        ]
        assert [values["truncation"], values["occlusion"]] == [words[said["truncation"]], words[said["occlusion"]]]
        both = spair.keypoint_pairs([row1, row2])
        assert (both.points1.tolist(), both.points2.tolist()) == (said["src_kps"], said["trg_kps"])
        assert (list(both.names), both.status.tolist()) == (said["kps_ids"], [0] * len(both))
    assert spair.factors.values("split", pairs.rows[:, 0]).tolist() == [split for split, _ in wanted]


def test_selections_have_their_pairs_by_their_own_numbers(spair) -> None:
    tests = spair.where("split == 'test' and category == 'car'")
    pairs = listed_pairs(tests)
    assert len(pairs) == 12
    assert set(pairs.factors.values("category")) == {"car"}
    whole = spair.published_pairs.where("split == 'test' and category == 'car'")
    assert tests.rows[pairs.rows].tolist() == whole.rows.tolist()
    for small, large in zip(pairs.rows.tolist(), whole.rows.tolist(), strict=True):
        assert tests.keypoint_pairs(small).points2.tolist() == spair.keypoint_pairs(large).points2.tolist()


def test_keypoints_follow_a_size(folder: Path, spair) -> None:
    """A mark painted at each keypoint of an image is found at the keypoint of the resized image."""
    small = setsup.load("spair-71k", folder, size=(96, 64))
    assert small.fetch([0, 1])["image"].shape == (2, 96, 64, 3)
    row, other = spair.published_pairs.rows[-1].tolist()
    whole, points = spair.fetch(row, ["image"])["image"], spair.fetch(row, ["keypoints"])["keypoints"]
    moved, box = small.fetch(row, ["keypoints"])["keypoints"], small.fetch(row, ["box"])["box"]
    from setsup.datasets.images import resize

    seen = 0
    for (x, y), (across, down) in zip(points.tolist(), moved.tolist(), strict=True):
        if not np.isfinite(x) or not (4 < across < 59 and 4 < down < 91):
            continue
        mark = np.zeros((*whole.shape[:2], 3), np.uint8)
        mark[max(int(y) - 1, 0) : int(y) + 2, max(int(x) - 1, 0) : int(x) + 2] = 255
        light = resize(mark, (96, 64))[..., 0].astype(float)
        rows, columns = np.mgrid[:96, :64]
        assert ((light * columns).sum() / light.sum(), (light * rows).sum() / light.sum()) == pytest.approx(
            (across, down), abs=0.3
        )
        seen += 1
    assert seen > 5
    share = min(whole.shape[0] / 96, whole.shape[1] / 64)
    assert np.diff(box.reshape(2, 2), axis=0) * share == pytest.approx(
        np.diff(spair.fetch(row, ["box"])["box"].reshape(2, 2), axis=0), abs=1e-3
    )
    pairs = small.keypoint_pairs([row, other])
    assert set(pairs.status.tolist()) <= {int(Status.VISIBLE), int(Status.OUTSIDE)}
    assert ((pairs.points1 >= -0.5) & (pairs.points1 <= [63.5, 95.5])).all()


def test_pixel_pairs_are_sparse_and_other_pixels_are_never_negatives(folder: Path) -> None:
    small = setsup.load("spair-71k", folder, size=(96, 96))
    rows = PixelPairSampler(small, pairs=3, seed=1)[0].indices
    assert (small.factors.codes("category", rows[:, 0]) == small.factors.codes("category", rows[:, 1])).all()
    row1, row2 = rows[0].tolist()
    known, window = small.keypoint_pairs([row1, row2]), Window(0, 0, 96, 96)
    pairs = matched(small, row1, row2, window, window, 1.0, 0)
    assert pairs.sparse
    assert (pairs.points1.tolist(), pairs.points2.tolist()) == (known.points1.tolist(), known.points2.tolist())
    assert len(keypoints(small, row1, row2, window, window, 0.5, 0)) == len(known) // 2
    drawn = view_pairs(small, rows, np.arange(3, dtype=np.uint64), fraction=1.0)
    assert (drawn.valid == drawn.positive).all()
    assert 0 < drawn.valid[0].sum() <= len(known)


def test_batches_of_single_pixel_contrast_are_valid_at_keypoints_only(folder: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from setsup.loading.views import SpatialPairs

    small = setsup.load("spair-71k", folder, size=(96, 96), split="train")
    sampler = PixelPairSampler(small, pairs=4, seed=2)
    views = SpatialPairs(small, keep=0.5)
    batch = next(iter(setsup.loader(small, sampler, modalities=["image"], transform=views, workers=0)))
    assert tuple(batch["view_1"].shape) == (4, 3, 96, 96)
    for number, rows in enumerate(sampler[0].indices.tolist()):
        known = small.keypoint_pairs(rows)
        seen = known.status == 0
        flat = {
            int(row1 * 96 + column1): int(row2 * 96 + column2)
            for (column1, row1), (column2, row2) in zip(
                np.rint(known.points1[seen]), np.rint(known.points2[seen]), strict=True
            )
        }
        valid = np.flatnonzero(batch["valid"][number])
        assert set(valid.tolist()) <= set(flat)
        assert len(valid) >= 0.8 * len(flat)  # of several keypoints at a pixel one counts
        positive = np.flatnonzero(batch["positive"][number])
        assert len(positive) == -(-len(valid) // 2)
        assert sum(flat[at] == batch["partner"][number, at] for at in positive.tolist()) >= len(positive) - 1


def test_what_is_wrong_is_said(folder: Path, spair, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="objects of different categories"):
        spair.keypoint_pairs([0, len(spair) - 1])
    with pytest.raises(DataError, match="shared by two rows"):
        spair.keypoint_pairs([0])
    true.write(tmp_path)
    next(tmp_path.glob("*/PairAnnotation/trn/*.json")).unlink()
    with pytest.raises(DataError, match="1 of the pair annotations are missing"):
        _ = setsup.load("spair-71k", tmp_path).published_pairs


def test_a_category_that_contradicts_its_folder_is_refused(tmp_path: Path) -> None:
    true.write(tmp_path)
    path = sorted(tmp_path.glob("*/ImageAnnotation/car/*.json"))[0]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"category": "chair"}))
    with pytest.raises(DataError, match=rf"{path.stem}\.json: 'category' is 'chair'; expected 'car', as its folder"):
        setsup.load("spair-71k", tmp_path)


def test_other_keypoints_of_a_pair_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    true.write(tmp_path)
    path = sorted(tmp_path.glob("*/PairAnnotation/val/*.json"))[0]
    said = json.loads(path.read_text())
    said["trg_kps"][0][0] += 1
    path.write_text(json.dumps(said))
    assert len(setsup.load("spair-71k", tmp_path).published_pairs) == 60
    assert "keypoints of 1 pair annotations differ" in caplog.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bndbox": [1, 2, 3]}, "'bndbox' is .*; expected four numbers"),
        ({"bndbox": [9, 2, 3, 4]}, "expected right ≥ left"),
        ({"kps": []}, "'kps' is .*; expected an object"),
        ({"kps": {"30": None}}, "expected numbers from 0 to 29"),
        ({"kps": {"3": [1, None]}}, "keypoint 3 is .*; expected null or two numbers"),
        ({"kps": {"3": [1e308, 2]}}, "keypoint 3 is .*; expected null or two numbers, at most 1,000,000 pixels"),
        ({"kps": {"3": [1, -1000001]}}, "keypoint 3 is .*; expected null or two numbers, at most 1,000,000 pixels"),
        ({"bndbox": [1, 2, 3, 1e7]}, "'bndbox' is .*; expected four numbers, at most 1,000,000 pixels"),
        ({"truncated": 2}, "'truncated' is 2; expected 0 or 1"),
        ({"azimuth_id": 8}, "'azimuth_id' is 8; expected a number from 0 to 7"),
        ({"pose": None}, "'pose' is None; expected a text"),
    ],
)
def test_damaged_annotations_are_named(change: dict, words: str) -> None:
    healthy = true.annotations("car")[0][2]
    with pytest.raises(DataError, match=words):
        read_annotation(json.dumps(healthy | change).encode(), "a.json")


def test_damaged_files(folder: Path) -> None:
    healthy = json.dumps(true.annotations("car")[0][2]).encode()
    assert survives(healthy, lambda content: read_annotation(content, "a.json"), 300, head=1000) > 100
    lists = (folder / "SPair-71k" / "Layout" / "large" / "test.txt").read_bytes()
    assert survives(lists, lambda content: read_list(content, "test.txt"), 100) > 20
    pair = next(folder.glob("*/PairAnnotation/test/*.json")).read_bytes()
    nothing = np.full((30, 2), np.nan)
    assert survives(pair, lambda content: read_pair(content, "p.json", nothing, nothing), 300) > 100
