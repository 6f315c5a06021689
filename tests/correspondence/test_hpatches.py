"""HPatches: homographies, splits and images of sequences in the published form."""

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.correspondence import hpatches
from setsup.correspondence.homography_files import parse_homography
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files.hpatches import SIZES, homography, image, write


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hpatches")
    write(folder)
    return folder


@pytest.fixture
def copy(tmp_path: Path, release: Path) -> Path:
    shutil.copytree(release / "hpatches-sequences-release", tmp_path / "x")
    return tmp_path / "x"


def test_factors_images_and_homographies(release: Path) -> None:
    found = setsup.load("hpatches", release)
    scenes = sorted(SIZES)
    table = found.factors
    assert table.values("scene").tolist() == [scene for scene in scenes for _ in range(6)]
    assert table.values("view").tolist() == [1, 2, 3, 4, 5, 6] * 4
    assert table.values("change").tolist() == ["illumination"] * 12 + ["viewpoint"] * 12
    assert set(table.values("scene")[table.values("split") == "large"]) == {"i_dc", "v_talent"}
    for number, scene in enumerate(scenes):
        for view in range(1, 7):
            row = 6 * number + view - 1
            assert np.array_equal(found.fetch(row)["image"], image(scene, view))
            # from any view to another one: back to the first, and from there
            matrix = homography(scene, view) @ np.linalg.inv(homography(scene, 3))
            assert np.allclose(found.homography([6 * number + 2, row]), matrix / matrix[2, 2], atol=1e-6)
    usual = setsup.load("hpatches", release, split="usual")
    assert sorted(set(usual.factors.values("scene"))) == ["i_lamp", "v_wall"]
    assert np.allclose(usual.homography([6, 9]), homography("v_wall", 4), atol=1e-6)


def test_homographies_follow_a_size(release: Path) -> None:
    plain, small = setsup.load("hpatches", release), setsup.load("hpatches", release, size=(32, 32))
    height, width = SIZES["v_wall"]
    assert (height, width) == (64, 96)  # halved, and 8 columns cut off either side
    row1, row2 = 18, 21
    assert plain.factors.row(row1)["scene"] == "v_wall"
    for x, y in ((5.0, 3.0), (40.5, 20.25)):
        whole = np.array([2 * (x + 0.5) - 0.5 + 16, 2 * (y + 0.5) - 0.5, 1])
        moved = plain.homography([row1, row2]) @ whole
        moved = moved[:2] / moved[2]
        wanted = [(moved[0] - 16 + 0.5) / 2 - 0.5, (moved[1] + 0.5) / 2 - 0.5]
        here = small.homography([row1, row2]) @ [x, y, 1]
        assert np.allclose(here[:2] / here[2], wanted)


def test_the_published_zip_opens_as_it_is(release: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "hpatches-sequences-release.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(release.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(release).as_posix())
    one, other = setsup.load("hpatches", release), setsup.load("hpatches", tmp_path)
    assert other.factors.fingerprint == one.factors.fingerprint
    assert np.array_equal(other.fetch(19)["image"], one.fetch(19)["image"])
    assert (
        other.pixel_pairs([18, 20], [[3, 4]]).points2.tolist() == one.pixel_pairs([18, 20], [[3, 4]]).points2.tolist()
    )


def test_the_list_of_large_sequences_is_in_the_manifest() -> None:
    splits = {split.name: split.description for split in setsup.files.load_manifest("hpatches").splits}
    assert len(hpatches.LARGE) == 8
    assert all(scene in splits["large"] for scene in hpatches.LARGE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "v_wall" / "H_1_4").unlink(), r"v_wall must have .*homographies of \[2, 3, 5, 6\]"),
        (
            lambda folder: (folder / "v_wall" / "4.ppm").unlink(),
            r"v_wall must have .*the images \[1, 2, 3, 5, 6\] in 5",
        ),
        (lambda folder: Image.new("RGB", (4, 4)).save(folder / "i_dc" / "1.png"), r"i_dc must have .* in 7 files"),
        (lambda folder: (folder / "i_dc" / "H_1_2").write_text("1 0 0\n0 1 0\n"), r"H_1_2.* must contain a homography"),
        (lambda folder: (folder / "i_dc" / "H_1_2").write_text("1 0 a"), r"H_1_2.* could not be parsed as 3 × 3"),
        (lambda folder: (folder / "i_dc" / "H_1_2").write_bytes(b"1" * 9999), r"H_1_2"),
    ],
)
def test_what_is_damaged_is_named(change, words: str, copy: Path) -> None:
    change(copy)
    with pytest.raises(DataError, match=words) as found:
        setsup.load("hpatches", copy)
    assert "\n" not in str(found.value)


def test_two_rows_of_one_sequence_are_needed(release: Path) -> None:
    found = setsup.load("hpatches", release)
    for method in (found.homography, found.pixel_pairs):
        with pytest.raises(DataError, match="rows 0 and 6 of hpatches show different scenes"):
            method([0, 6])
        with pytest.raises(DataError, match="between two rows of hpatches, not 1"):
            method([0])


@pytest.mark.long("fuzzing")
def test_damaged_homographies(release: Path) -> None:
    healthy = next(release.rglob("v_wall/H_1_3")).read_bytes()

    def read(content: bytes) -> None:
        matrix = parse_homography(content, "H_1_3")
        assert matrix.shape == (3, 3)
        assert np.isfinite(matrix).all()

    assert survives(healthy, read, 400) > 100
