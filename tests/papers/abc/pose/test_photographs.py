"""Images as they are embedded for `setsup pose`: boxes of photographs against Pillow, renderings as published."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup
from setsup.datasets.benchmarks.shapenet_renderings import crop_to_alpha
from setsup.errors import DataError, SetsupError
from setsup_papers.abc.pose.estimate import estimate_poses, image_size
from setsup_papers.abc.pose.photo_boxes import PhotoBox, read_boxes
from setsup_papers.abc.pose.photographs import CutRenderings, open_photographs
from tests.experiments.numbered import trained
from tests.papers.abc.pose.posed import ReadsPose, of_rotations, random_rotations

DICE = np.random.default_rng(0)
PICTURE = DICE.integers(0, 256, (40, 60, 3), dtype=np.uint8)


@pytest.fixture
def street(tmp_path: Path) -> Path:
    """A photograph, the same turned by the note of its camera, and a hidden one."""
    folder = tmp_path / "street"
    (folder / ".trash").mkdir(parents=True)
    Image.fromarray(PICTURE).save(folder / "a.png")
    turned = Image.fromarray(PICTURE).transpose(Image.Transpose.ROTATE_90)
    notes = Image.Exif()
    notes[0x0112] = 6  # to be turned clockwise by who shows it
    turned.save(folder / "b.jpg", quality=100, subsampling=0, exif=notes)
    Image.fromarray(PICTURE).save(folder / ".trash" / "c.png")
    return folder


def test_boxes_are_cut_as_by_pillow(street: Path) -> None:
    edges = (10.5, 3.0, 47.25, 31.0)
    found = open_photographs([street], [PhotoBox("a.png", edges, "here")], (16, 24))
    expected = Image.fromarray(PICTURE).resize((24, 16), Image.Resampling.BILINEAR, edges)
    inside = np.abs(found.fetch(0)["image"].astype(int) - np.asarray(expected, int))[1:-1, 1:-1]
    assert inside.max() <= 1  # at its sides Pillow mixes in what lies around the box
    assert (found.files, found.boxless) == (["a.png"], 1)


def test_photographs_are_seen_upright_and_hidden_ones_are_not_seen(street: Path) -> None:
    found = open_photographs([street], size=(40, 60))
    assert found.files == ["a.png", "b.jpg"]
    assert found.edges.tolist() == [[0, 0, 60, 40]] * 2
    first, second = found.fetch([0, 1])["image"].astype(int)
    assert (first == PICTURE).all()
    assert np.abs(second - PICTURE).mean() < 3  # JPEG
    one = open_photographs([street / "b.jpg"], size=(40, 60))
    assert one.files == [str(street / "b.jpg")]


def test_several_boxes_of_one_photograph_are_rows(street: Path) -> None:
    lines = ["file\tscore\tleft\ttop\tright\tbottom", "./a.png\t1\t0\t0\t30\t20", "a.png\t2\t30\t20\t60\t40"]
    (street / "boxes.csv").write_text("\n".join(lines) + "\n")
    boxes = read_boxes(street / "boxes.csv")
    found = open_photographs([street], boxes, (20, 30)).fetch([1, 0])["image"]
    assert (found == np.stack([PICTURE[20:, 30:], PICTURE[:20, :30]])).all()


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("file,left,top,right,bottom\na.png,0.1,.2,1e1,20\n", (0.1, 0.2, 10.0, 20.0)),
        ("file;left;top;right;bottom\na.png;0,1;0,2;10;20\n", (0.1, 0.2, 10.0, 20.0)),
        ("left\ttop\tright\tbottom\tfile\n0,1\t0.2\t10\t20\ta.png\n", (0.1, 0.2, 10.0, 20.0)),
        ("\n\nfile,left,top,right,bottom\n\na.png, 1, 2, 3, 4", (1.0, 2.0, 3.0, 4.0)),
    ],
)
def test_boxes_are_read_to_the_last_digit(tmp_path: Path, text: str, edges: tuple[float, ...]) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        (tmp_path / "boxes.csv").write_text(text, encoding)
        (box,) = read_boxes(tmp_path / "boxes.csv")
        assert (box.file, box.edges) == ("a.png", edges)


@pytest.mark.parametrize("name", ["true", "false", "1e3", "007", "a,b.png", "two\nlines.png"])
def test_names_are_taken_as_they_are_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "boxes.csv").write_text(f'file,left,top,right,bottom\n"{name}",0,0,9,9\n')
    assert [box.file for box in read_boxes(tmp_path / "boxes.csv")] == [name]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("\na,0,0,9,9\n\n\nb,9,0,0,9\n", "line 6: the box of 'b'"),
        ('"a\nb",0,0,9,9\nc,9,0,0,9\n', "line 4: the box of 'c'"),
        ("a,true,0,9,9\n", "line 2: column 'left' must be a number of pixels, not 'true'"),
        ("a,0,0,1_0,9\n", "line 2: column 'right' must be a number of pixels, not '1_0'"),
        ('a,0,0,9,"1,000"\n', "line 2: column 'bottom' must be a number of pixels, not '1,000'"),
        ("a,,0,9,9\n", "line 2: the box of 'a'"),
        ("a,0,0,9,9\nb,0,0,9\n", "line 3: a line must have 5 fields, like the header, not 4"),
        ('a,0,0,9,9\n"b,0,0,9,9\n', "line 3: .*check for unclosed quotes"),
    ],
)
def test_the_line_of_a_wrong_box_is_named(tmp_path: Path, lines: str, said: str) -> None:
    (tmp_path / "boxes.csv").write_text(f"file,left,top,right,bottom\n{lines}")
    with pytest.raises(DataError, match=said):
        read_boxes(tmp_path / "boxes.csv")


def test_renderings_are_cut_as_published() -> None:
    images = DICE.integers(0, 256, (3, 20, 30, 4), dtype=np.uint8)
    images[..., 3] = 0
    images[0, 3:15, 8:20, 3], images[1, :, 2:9, 3], images[2, ..., 3] = 255, 90, 255
    renderings = setsup.from_arrays(images, {"number": [0, 1, 2]})
    found = CutRenderings(renderings, np.array([1, 0]), (16, 16)).fetch([0, 1])["image"]
    assert (found == np.stack([crop_to_alpha(images[row], (16, 16))[..., :3] for row in (1, 0)])).all()
    opaque = CutRenderings(renderings, np.array([2]), (20, 30)).fetch(0)["image"]
    assert (opaque == images[2, ..., :3]).all()
    images[0, ..., 3] = 0
    with pytest.raises(DataError, match="arrays, row 0: the image is completely transparent"):
        CutRenderings(renderings, np.array([1, 0]), (16, 16)).fetch(1)


def test_grey_renderings_stay_grey() -> None:
    images = DICE.integers(0, 256, (2, 10, 10), dtype=np.uint8)
    renderings = setsup.from_arrays(images, {"number": [0, 1]})
    cut = CutRenderings(renderings, np.arange(2), (10, 10))
    assert (cut.fetch([0, 1])["image"][..., 0] == images).all()
    assert CutRenderings(renderings, np.arange(2), (5, 7)).fetch(0)["image"].shape == (5, 7, 1)


def test_the_size_is_that_of_the_training() -> None:
    codebook = of_rotations(random_rotations(2))
    nothing: dict[str, Any] = {"eval_transform": None, "augmentation": None, "config": None}
    for changed, size in (
        ({}, (3, 3)),
        ({"eval_transform": SimpleNamespace(size=64)}, (64, 64)),
        ({"augmentation": SimpleNamespace(size=(32, 48))}, (32, 48)),
        ({"config": SimpleNamespace(image=(3, 28, 20))}, (28, 20)),
        ({"eval_transform": "dcodr", "config": SimpleNamespace(image=None)}, (3, 3)),
    ):
        assert image_size(SimpleNamespace(**nothing | changed), codebook) == size  # type: ignore[arg-type]


def test_renderings_without_a_pose_are_no_estimate() -> None:
    poses = random_rotations(12, 3)
    known = poses.copy()
    known[::2] = np.nan
    # what is shown is the pose, but for every other one it is not known
    arrays = {"image": of_rotations(poses).fetch(np.arange(12))["image"], "rotation": known.astype(np.float32)}
    codebook = setsup.from_arrays(arrays, {"number": np.arange(12)})
    photographs = of_rotations(poses[:4])
    found = estimate_poses(trained(ReadsPose(), codebook), photographs, codebook, 3)
    assert found.rows.shape == (4, 3)
    assert (found.rows % 2 == 1).all()
    assert found.rows[1, 0] == 1
    assert found.cosines[1, 0] == pytest.approx(1)
    np.testing.assert_allclose(found.rotations, poses[found.rows], atol=1e-6)
    with pytest.raises(DataError, match="arrays has no rendering with a known pose"):
        estimate_poses(trained(ReadsPose(), codebook), photographs, codebook.where("number in (0, 2)"))


def test_embeddings_of_unequal_lengths_are_refused() -> None:
    codebook = of_rotations(random_rotations(4))
    photographs = setsup.from_arrays(np.zeros((1, 4, 4, 1), np.uint8) + 9, {"number": [0]})
    with pytest.raises(SetsupError, match="embeddings of photographs and renderings must have the same length"):
        estimate_poses(trained(ReadsPose(), codebook), photographs, codebook)
