"""Photographs with homographies, in the layout of HPatches."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.correspondence import PixelPairSampler, Status, open_photographs, planar
from setsup.errors import DataError

SIZE = (60, 90)
TILT = np.array([[0.9, -0.15, 12.0], [0.1, 0.8, 3.0], [0.0006, -0.0004, 1.0]])
MATRICES = {2: TILT, 3: planar.compose(planar.rotation(20), planar.translate(4, 30)), 6: -2 * planar.scaling(0.7, 0.9)}


def pattern(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A plane without repeats: a smooth colour for each place."""
    waves = [np.sin(x / 9 + 0.3), np.cos(y / 7 + x / 31), np.sin((x + 2 * y) / 23)]
    return np.stack([127.5 + 120 * wave for wave in waves], axis=-1)


def scene(folder: Path, matrices: dict, ending: str = ".ppm", size: tuple = SIZE) -> None:
    """Photographs whose pixels are computed, not resampled."""
    folder.mkdir(parents=True)
    x, y = np.meshgrid(np.arange(size[1]), np.arange(size[0]))
    for view, matrix in {1: np.eye(3), **matrices}.items():
        back = np.linalg.inv(matrix) @ np.stack([x, y, np.ones_like(x)]).reshape(3, -1)
        image = pattern(back[0] / back[2], back[1] / back[2]).reshape(*size, 3)
        Image.fromarray(image.round().astype(np.uint8)).save(folder / f"{view}{ending}")
        if view > 1:
            (folder / f"H_1_{view}").write_text("\n".join(" ".join(map(repr, row)) for row in matrix.tolist()) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("photographs") / "planes"
    scene(root / "v_wall", MATRICES)
    scene(root / "i_floor", {2: np.eye(3)}, ".png", (75, 80))
    return root


def colors(image: np.ndarray, points: np.ndarray) -> np.ndarray:
    from scipy.ndimage import map_coordinates

    return np.stack([map_coordinates(one.astype(float), points.T[::-1], order=1) for one in image.T.swapaxes(1, 2)], -1)


@pytest.mark.parametrize("size", [None, (40, 64), (50, 50)])
def test_partners_show_the_same_color(folder: Path, size: tuple[int, int] | None) -> None:
    pytest.importorskip("scipy")
    photographs = setsup.open(folder, **({} if size is None else {"size": size}))
    assert len(photographs) == 6
    walls = np.flatnonzero(photographs.factors.values("scene") == "v_wall")
    height, width = size or SIZE
    seen = 0
    for one in walls:
        for two in walls:
            pairs = photographs.pixel_pairs([one, two])
            assert len(pairs) == height * width
            assert set(pairs.status.tolist()) <= {int(Status.VISIBLE), int(Status.OUTSIDE)}
            inside = pairs.visible & (pairs.points2 > 1).all(1) & (pairs.points2 < [width - 2, height - 2]).all(1)
            inside &= (pairs.points1 > 1).all(1) & (pairs.points1 < [width - 2, height - 2]).all(1)
            first, second = (photographs.fetch(row)["image"] for row in (one, two))
            apart = np.abs(colors(first, pairs.points1) - colors(second, pairs.points2))[inside]
            assert apart.size == 0 or (np.quantile(apart, 0.99) < 6), (one, two)
            seen += len(apart)
    assert seen > 5000


def test_rows_of_selections_are_renumbered_and_scenes_must_agree(folder: Path) -> None:
    photographs = open_photographs(folder, (40, 40))
    last = photographs.where("scene == 'v_wall'")
    found = last.pixel_pairs([0, 1], [[5, 6]])
    first = np.flatnonzero(photographs.factors.values("scene") == "v_wall")[0]
    assert found.points2.tolist() == photographs.pixel_pairs([first, first + 1], [[5, 6]]).points2.tolist()
    with pytest.raises(DataError, match=r"rows 0 and 2 of planes show different scenes"):
        photographs.pixel_pairs([0, 2])
    for rows in ([0], [0, 1, 1], []):
        with pytest.raises(DataError, match=rf"^pixels can be paired only between two rows of planes, not {len(rows)}"):
            photographs.pixel_pairs(rows)
    with pytest.raises(DataError, match=r"^rows of Photographs.pixel_pairs must be a list of integers, not \[0.5, 1\]"):
        photographs.pixel_pairs([0.5, 1])


def test_photographs_of_several_sizes_have_a_size_each(folder: Path) -> None:
    photographs = open_photographs(folder)
    assert [photographs.image_size(row) for row in range(6)] == [(75, 80)] * 2 + [SIZE] * 4
    assert photographs.where("scene == 'v_wall'").image_size(0) == SIZE
    assert open_photographs(folder, (40, 50)).image_size(3) == (40, 50)


def test_one_scene_needs_no_folder_of_its_own(folder: Path) -> None:
    photographs = setsup.open(folder / "v_wall")
    assert photographs.factors.values("view").tolist() == [1, 2, 3, 6]
    assert set(photographs.factors.values("scene")) == {"v_wall"}
    rows = PixelPairSampler(photographs, pairs=20)[0].indices
    assert (rows[:, 0] != rows[:, 1]).all()


def test_batches_have_partners(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    from setsup.loading.transforms import Compose
    from setsup.loading.views import SpatialPairs
    from setsup.methods.recipes import recipe

    photographs = open_photographs(folder, (64, 80))
    sampler = PixelPairSampler(photographs, pairs=6)
    views = Compose([recipe("oxels-3d", size=48), SpatialPairs(photographs, keep=0.5)])
    batch = next(iter(setsup.loader(photographs, sampler, transform=views, workers=0)))
    assert batch["view_1"].shape == (6, 3, 48, 48)
    assert 0.02 < batch["positive"].float().mean() < 0.5
    plain = SpatialPairs(photographs, size=48, keep=1.0)
    batch = next(iter(setsup.loader(photographs, sampler, transform=plain, workers=0)))
    flat = [batch[name].flatten(2).float() for name in ("view_1", "view_2")]
    there = torch.gather(flat[1], 2, batch["partner"][:, None].expand(-1, 3, -1))
    apart = (flat[0] - there).abs().mean(1)
    assert apart[batch["positive"]].median() < 8 < apart[~batch["positive"]].median()


def broken(name: str, text: str | bytes | None):
    def change(folder: Path) -> None:
        if text is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            broken("H_1_2", "1 0 0\n0 1 0\n"),
            r"H_1_2 must contain a homography, an invertible matrix .*; write three lines of three numbers",
        ),
        (broken("H_1_2", "1 0 0\n0 1\n0 0 1"), r"H_1_2 could not be parsed as 3 × 3 numbers"),
        (broken("H_1_2", "1 0 0\n0 one 0\n0 0 1"), r"H_1_2 could not be parsed as 3 × 3 numbers: .*'one'"),
        (broken("H_1_2", "1 0 1_0\n0 1 0\n0 0 1"), r"H_1_2 could not be parsed as 3 × 3 numbers: it contains '_'"),
        (broken("H_1_2", "1 0 \u0661\n0 1 0\n0 0 1"), r"H_1_2 could not be parsed as 3 × 3 numbers"),
        (broken("H_1_2", b"\xff\xfe\x00"), r"H_1_2 could not be parsed as 3 × 3 numbers"),
        (broken("H_1_2", "1 0 0\n0 1 0\n0 0 nan"), r"H_1_2 must contain a homography"),
        (broken("H_1_2", "1 0 0\n2 0 0\n0 0 1"), r"H_1_2 must contain a homography, an invertible"),
        (broken("2.ppm", None), r"a homography of view 2, but no image of that view; add one, for example 2\.png"),
        (broken("1.ppm", None), r"a homography of view 1, but no image of that view"),
        (broken("2.png", "x"), r"a homography of view 2, but 2 images of that view"),
        (broken("2.ppm", "x"), r"2\.ppm"),
        (
            broken("H_1_2.txt", "1 0 0\n0 1 0\n0 0 1"),
            r"has two homographies of view 2, H_1_2 and H_1_2\.txt; remove one of them",
        ),
        (
            broken("H_1_02", "1 0 0\n0 1 0\n0 0 1"),
            r"has two homographies of view 2, H_1_02 and H_1_2; remove one of them",
        ),
        (broken("3.JPG", "x"), r"contains 3\.JPG, but no homography H_1_3 of view 3; .* remove 3\.JPG"),
    ],
)
def test_what_is_damaged_is_named(change, words: str, tmp_path: Path) -> None:
    scene(tmp_path / "scene", {2: TILT})
    change(tmp_path / "scene")
    with pytest.raises(DataError, match=words):
        open_photographs(tmp_path / "scene", (32, 32))


def test_a_folder_without_homographies_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DataError,
        match=r"has no pixel correspondences .* add homographies: for views 1\.png, .*3 × 3 numbers.*docs/corr",
    ):
        open_photographs(tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        open_photographs(tmp_path / "gone")


@pytest.mark.parametrize("factor", [1e-305, 3.7e307, -1e300])
def test_any_multiple_is_the_same_homography(factor: float, tmp_path: Path) -> None:
    scene(tmp_path / "scene", {2: TILT})
    exact = open_photographs(tmp_path / "scene").pixel_pairs([0, 1])
    text = "\n".join(" ".join(map(repr, row)) for row in (TILT / 12 * factor).tolist())
    (tmp_path / "scene" / "H_1_2").write_text(text)
    found = open_photographs(tmp_path / "scene").pixel_pairs([0, 1])
    np.testing.assert_allclose(found.points2, exact.points2, atol=1e-6)
    assert np.array_equal(found.status, exact.status)
