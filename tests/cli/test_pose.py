"""``setsup pose``: with a method that reads the pose off an image, so that the nearest rendering is known."""

import csv
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

from PIL import Image

from setsup_papers.abc.pose.rotations import euler_from_rotation, geodesic_error, rotation_from_euler

Run = Callable[..., Any]

METHOD = """
from dataclasses import dataclass
import lightning, torch
from setsup.experiments import Data, Preset, Sets

class Reads(lightning.LightningModule):
    def __init__(self, named):
        super().__init__()
        self.named, self.weight = named, torch.nn.Parameter(torch.ones(()))
    def embed(self, batch):
        image = batch["image"].float() / 127.5 - 1
        sets, size, _, height, width = image.shape
        patches = torch.nn.functional.adaptive_avg_pool2d(image[:, :, 0].flatten(0, 1)[:, None], 3)
        found = patches.reshape(sets, size, 9) * self.weight
        return {"embedding": found, "other": -found} if self.named else found
    def training_step(self, batch, number):
        return (self.embed(batch)["other"] if self.named else self.embed(batch)).sum() * 0 + self.weight
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.0)

@dataclass(frozen=True)
class Settings:
    named: bool = False
    def build(self, table, generator):
        return Reads(self.named)

PRESETS = [
    Preset(
        name="mine/reads",
        shows="poses",
        data=Data("renderings.npz"),
        sampler=Sets(inactive=("model",), size=2),
        method=Settings(),
        steps=1,
    )
]
"""

BOXED = ["photos", "--codebook", "matrices.npz", "--boxes"]
OWN = ["--preset", "reads.py", "--device", "cpu"]
SIDE = 12


def shown(rotations: np.ndarray, side: int = SIDE) -> np.ndarray:
    """Pictures (n, side, side, 3) of nine patches, each an entry of the rotation."""
    patches = np.rint(127.5 * (rotations + 1)).astype(np.uint8)
    return np.repeat(patches.repeat(side // 3, axis=-2).repeat(side // 3, axis=-1)[..., None], 3, axis=-1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a codebook, photographs of known poses, and runs of a step."""
    from setsup_cli.main import main

    folder = tmp_path_factory.mktemp("poses")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        azimuth = np.arange(0, 360, 15.0)
        angles = np.stack([one.ravel() for one in np.meshgrid(azimuth, [0.0, 20.0, 40.0])])
        rotations = rotation_from_euler(*angles)
        model = np.arange(len(rotations)) % 2
        np.savez("renderings.npz", image=shown(rotations), azimuth=angles[0], elevation=angles[1], model=model)
        np.savez("matrices.npz", image=shown(rotations), rotation=rotations.astype(np.float32), model=model)
        np.savez("plain.npz", image=shown(rotations), model=model)
        Path("reads.py").write_text(METHOD)
        for name, more in (("runs", []), ("named", ["--method.named", "true"])):
            assert main(["train", "reads.py", "--out", name, "--accelerator", "cpu", "-q", *more]) == 0
        (folder / "photos" / "more").mkdir(parents=True)
        asked = rotation_from_euler([31, 200, 355], [19, 3, 38])
        for name, picture in zip(("a.png", "b.png", "more/c.png"), shown(asked, 30), strict=True):
            Image.fromarray(picture).save(folder / "photos" / name)
    return folder


@pytest.fixture
def work(trained: Path, setsup: Run, tmp_path: Path) -> Path:
    """What was trained, in a folder of the test."""
    for one in trained.iterdir():
        (tmp_path / one.name).symlink_to(one)
    return tmp_path


def poses(folder: Path) -> list[dict[str, str]]:
    with (folder / "poses.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("codebook", ["renderings.npz", "matrices.npz"])
def test_each_photograph_gets_the_pose_of_the_nearest_rendering(setsup: Run, work: Path, codebook: str) -> None:
    found = setsup("pose", "runs/seed-0", "photos", "--codebook", codebook, *OWN)
    assert found.code == 0, found.err
    lines = poses(work / "setsup-pose")
    assert [line["file"] for line in lines] == ["a.png", "b.png", "more/c.png"]
    told = [(float(line["azimuth_deg"]), float(line["elevation_deg"])) for line in lines]
    assert [tuple(map(round, one)) for one in told] == [(30, 20), (195, 0), (0, 40)]
    assert all(abs(float(line["theta_deg"])) < 0.01 for line in lines)
    assert [line["bottom"] for line in lines] == ["30.0"] * 3
    assert float(lines[0]["cosine"]) > 0.99
    assert found.out.splitlines()[-1] == "setsup-pose/poses.csv"
    with Image.open(work / "setsup-pose" / "sheet.png") as sheet:
        assert min(sheet.size) > 200


def test_disagreement_is_that_of_the_nearest_five(setsup: Run, work: Path) -> None:
    """By hand: cosines of patches are traces, and the five nearest of each are those of least angle."""
    found = setsup("pose", "runs/seed-0", "photos/a.png", "--codebook", "matrices.npz", "--json", *OWN).json
    (line,) = found["poses"]
    book = np.load("matrices.npz")["rotation"].astype(np.float64)
    near = np.argsort(geodesic_error(book, rotation_from_euler(31, 19)))[:5]
    apart = [geodesic_error(book[a], book[b]) for i, a in enumerate(near) for b in near[:i]]
    assert line["nearest_row"] == near[0]
    assert line["disagreement_deg"] == pytest.approx(np.mean(apart), abs=1e-3)
    few = setsup("pose", "runs/seed-0", "photos/a.png", "--codebook", "matrices.npz", "--nearest", 1, "--json", *OWN)
    assert few.json["poses"][0]["disagreement_deg"] == 0
    one = setsup("pose", "runs/seed-0", "photos/a.png", "--codebook", "matrices.npz", "--out", "one", *OWN)
    assert "\n1 object, looked up" in one.out
    assert found["renderings"] == 72


def test_boxes_are_objects(setsup: Run, work: Path) -> None:
    asked = rotation_from_euler([61, 240], [21, 39])
    photograph = np.full((60, 90, 3), 200, np.uint8)
    photograph[10:40, 20:50], photograph[30:60, 60:90] = shown(asked, 30)
    (work / "street").mkdir()
    Image.fromarray(photograph).save(work / "street" / "x.png")
    Image.fromarray(photograph).save(work / "street" / "y.png")
    # the second reaches out of the photograph, and is clipped
    (work / "boxes.csv").write_text("file;left;top;right;bottom\nx.png;20;10;50;40\nx.png;60;30;99;70\n")
    found = setsup("pose", "runs/seed-0", "street", "--codebook", "matrices.npz", "--boxes", "boxes.csv", *OWN)
    assert found.code == 0, found.err
    assert "omitted, because they have no box: 1" in found.out
    lines = poses(work / "setsup-pose")
    assert [round(float(line["azimuth_deg"])) for line in lines] == [60, 240]
    assert [line["right"] for line in lines] == ["50.0", "99.0"]  # as given
    with zipfile.ZipFile("street.zip", "w") as archive:
        archive.write("street/x.png", "x.png")
    packed = setsup("pose", "runs/seed-0", "street.zip", "--codebook", "matrices.npz", "--boxes", "boxes.csv", *OWN)
    assert packed.code == 0, packed.err
    assert poses(work / "setsup-pose") == lines  # the same result, in the same place


def test_some_renderings_only(setsup: Run, work: Path) -> None:
    words = ["pose", "runs/seed-0", "photos", "--codebook", "renderings.npz", "--where", "elevation < 30", *OWN]
    assert setsup(*words).code == 0
    assert {float(line["elevation_deg"]) for line in poses(work / "setsup-pose")} == {0.0, 20.0}
    higher = setsup(*words[:5], "--where", "elevation > 10", "--out", "higher", *OWN)
    assert higher.code == 0, higher.err
    book = np.load("renderings.npz")
    for line in poses(work / "higher"):  # rows of the file, whatever was left out
        row = int(line["nearest_row"])
        told = float(line["azimuth_deg"]), float(line["elevation_deg"])
        assert (book["azimuth"][row], book["elevation"][row]) == pytest.approx(told)
    other = setsup(*words[:5], "--nearest", 2, *OWN)
    assert "setsup-pose contains another result; wrote setsup-pose-2 instead" in other.out
    refused(setsup(*words[:5], "--where", "elevation > 90", *OWN), "--where 'elevation > 90' selects no renderings")


def test_matrices_alone_are_a_codebook(setsup: Run, work: Path) -> None:
    book = np.load("matrices.npz")
    np.savez("bare.npz", image=book["image"], rotation=book["rotation"])
    found = setsup("pose", "runs/seed-0", "photos", "--codebook", "bare.npz", *OWN)
    assert found.code == 0, found.err
    assert [round(float(line["azimuth_deg"])) for line in poses(work / "setsup-pose")] == [30, 195, 0]


def test_the_median_of_an_even_number_of_objects(setsup: Run, work: Path) -> None:
    (work / "between").mkdir()
    # the nearest two of the first are 15° apart in azimuth, those of the second 20° in elevation
    for name, picture in zip("ab", shown(rotation_from_euler([36, 30], [1, 11]), 30), strict=True):
        Image.fromarray(picture).save(work / "between" / f"{name}.png")
    found = setsup("pose", "runs/seed-0", "between", "--codebook", "matrices.npz", "--nearest", 2, *OWN)
    assert [round(float(line["disagreement_deg"])) for line in poses(work / "setsup-pose")] == [15, 20]
    assert re.search(r"disagree by 1[78]° in the median", found.out)


def test_a_photograph_named_twice_is_not_left_out(setsup: Run, work: Path) -> None:
    twice = ["pose", "runs/seed-0", "photos/a.png", "photos/a.png", "--codebook", "matrices.npz", *OWN]
    found = setsup(*twice)
    assert found.code == 0, found.err
    assert "omitted" not in found.out
    assert "\n2 objects, looked up among 72 renderings" in found.out
    assert len(poses(work / "setsup-pose")) == 2


@pytest.mark.parametrize("images", [shown(np.eye(3)[None]) / 255, shown(np.eye(3)[None]).astype(np.uint16)])
def test_renderings_that_are_not_of_uint8_are_refused(setsup: Run, work: Path, images: np.ndarray) -> None:
    np.savez("other.npz", image=images, azimuth=[0.0], elevation=[0.0])
    found = setsup("pose", "runs/seed-0", "photos", "--codebook", "other.npz", *OWN)
    refused(
        found,
        f"and values from 0 to 255, not {images.dtype} of shape (12, 12, 3)",
        late=True,
    )


def test_of_several_embeddings_one_is_named(setsup: Run, work: Path) -> None:
    words = ["pose", "named/seed-0", "photos", "--codebook", "matrices.npz", *OWN]
    refused(setsup(*words), "returns several embeddings (embedding, other); choose one", late=True)
    assert setsup(*words, "--embedding", "other").code == 0
    assert round(float(poses(work / "setsup-pose")[0]["azimuth_deg"])) == 30  # of both, so that cosines are the same


def refused(found: Any, words: str, late: bool = False) -> None:
    """One sentence; where it is late, the run has been described."""
    assert found.code == 2
    assert late or not found.out
    assert words in found.err
    assert "Traceback" not in found.err
    assert found.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["photos", "--codebook", "plain.npz"], "plain has no poses: expected the modality 'rotation'"),
        (["photos", "--codebook", "nowhere"], "nowhere"),
        (["photos"], "--codebook requires a value"),
        (["empty", "--codebook", "matrices.npz"], "empty contains no image files"),
        (["nothing", "--codebook", "matrices.npz"], "nothing"),
        (["photos/a.png", "nothing.png", "--codebook", "matrices.npz"], "nothing.png does not exist"),
        (["photos/a.png", "photos", "--codebook", "matrices.npz"], "photos is a folder; pass one folder"),
        (["broken", "--codebook", "matrices.npz"], "broken/half.png could not be decoded"),
        (["broken/text.jpg", "--codebook", "matrices.npz"], "broken/text.jpg is not a readable image"),
        (["photos", "--codebook", "matrices.npz", "--nearest", "0"], "--nearest must be 1 or more, not 0"),
        (
            [*BOXED, "lost.csv"],
            "lost.csv, line 3 refers to 'd.png', and so does another line, but no photograph",
        ),
        ([*BOXED, "lost.csv"], ", and so does another line"),
        ([*BOXED, "far.csv"], "far.csv, line 2: the box 30, 0, 40, 9 lies"),
        ([*BOXED, "flat.csv"], "flat.csv, line 2: the box of 'a.png'"),
        ([*BOXED, "words.csv"], "words.csv, line 2: column 'left' must be a number of pixels, not 'x'"),
        (["photos", "--codebook", "scaled.npz"], "'rotation' of row 3 of scaled is not a rotation: [["),
        (
            ["photos", "--codebook", "scaled.npz", "--where", "model == 1"],
            "'rotation' of row 3 of scaled is not a rotation: [[",
        ),
        ([*BOXED, "short.csv"], "but has no column 'bottom'"),
        ([*BOXED, "none.csv"], "none.csv"),
        ([*BOXED, "bare.csv"], "bare.csv"),
        (["photos", "--codebook", "reads.py"], "reads.py"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(setsup: Run, work: Path, words: list[str], said: str) -> None:
    head = "file,left,top,right,bottom\n"
    for name, text in {
        "lost": f"{head}a.png,0,0,9,9\nd.png,0,0,9,9\ne.png,0,0,9,9\n",
        "far": f"{head}a.png,30,0,40,9\n",
        "flat": f"{head}a.png,9,0,9,9\n",
        "words": f"{head}a.png,x,0,9,9\n",
        "short": "file,left,top,right\na.png,1,2,3\n",
        "bare": head,
    }.items():
        Path(f"{name}.csv").write_text(text)
    book = dict(np.load("matrices.npz"))
    np.savez("scaled.npz", **book | {"rotation": book["rotation"] * np.where(np.arange(72) == 3, 2, 1)[:, None, None]})
    Path("empty").mkdir()
    Path("broken").mkdir()
    Path("broken/half.png").write_bytes(Path("photos/a.png").read_bytes()[:90])
    Path("broken/text.jpg").write_text("no image")
    if words[0] == "broken":
        Path("broken/text.jpg").unlink()
    refused(setsup("pose", "runs/seed-0", *words, *OWN), said, late=words[0] == "broken")
    assert not Path("setsup-pose").exists()


def test_runs_that_are_none(setsup: Run, work: Path) -> None:
    refused(setsup("pose", "photos", "photos", "--codebook", "matrices.npz", *OWN), "photos")
    refused(setsup("pose", "runs/seed-0"), "requires")


def test_of_photographs_of_one_name_the_path_is_written(setsup: Run, work: Path) -> None:
    for place in ("one", "two"):
        (work / "both" / place).mkdir(parents=True)
        (work / "both" / place / "x.png").write_bytes((work / "photos" / "a.png").read_bytes())
    Path("boxes.csv").write_text("file,left,top,right,bottom\nx.png,0,0,9,9\n")
    words = ["pose", "runs/seed-0", "both", "--codebook", "matrices.npz", "--boxes", "boxes.csv", *OWN]
    refused(setsup(*words), "boxes.csv, line 2: 2 photographs are named 'x.png'; use the path of one of them")
    Path("boxes.csv").write_text("file,left,top,right,bottom\ntwo/x.png,0,0,30,30\n")
    assert setsup(*words).code == 0
    assert [line["file"] for line in poses(work / "setsup-pose")] == ["two/x.png"]


@pytest.mark.long("trainings")
def test_from_meshes_to_poses(setsup: Run, tmp_path: Path) -> None:
    """Own renderings, a few steps of a small network, and photographs that are renderings on a background."""
    pytest.importorskip("embreex")
    (tmp_path / "tent.obj").write_text("v 0 0 0\nv 3 0 0\nv 0 0 1\nv 0 2 0\nf 1 2 4\nf 1 3 4\nf 2 3 4\n")
    (tmp_path / "flag.obj").write_text("v 0 0 0\nv 1 0 2\nv 0 1 1\nv 2 2 0\nf 1 2 4\nf 1 3 4\nf 2 3 4\n")
    words = ["render", "object", "--models", "tent.obj", "flag.obj", "--views", 40, "--size", 24, 24]
    assert setsup(*words, "--out", "renders", "--modalities", "image", "--renderer", "embree").code == 0
    source = METHOD.replace('Data("renderings.npz")', 'Data("renders")').replace("steps=1", "steps=3")
    (tmp_path / "reads.py").write_text(source)
    assert setsup("train", "reads.py", "--out", "runs", "--accelerator", "cpu").code == 0
    import setsup as library

    images = library.open(tmp_path / "renders").fetch([3, 50])["image"]
    Path("photos").mkdir()
    for number, image in enumerate(images):
        solid = np.argwhere(image[..., 3] > 0)
        (top, left), (bottom, right) = solid.min(axis=0), solid.max(axis=0) + 1
        Image.fromarray(image[top:bottom, left:right, :3]).save(f"photos/{number}.png")
    found = setsup("pose", "runs/seed-0", "photos", "--codebook", "renders", "--json", *OWN)
    assert found.code == 0, found.err
    truth = library.open(tmp_path / "renders").factors
    for line, row in zip(found.json["poses"], (3, 50), strict=True):
        assert line["nearest_row"] == row
        assert line["azimuth_deg"] == pytest.approx(truth.values("azimuth", row), abs=1e-3)
        assert line["elevation_deg"] == pytest.approx(truth.values("elevation", row), abs=1e-3)


def test_angles_are_those_of_the_library() -> None:
    """What the table tells is the inverse of what renderings are drawn at."""
    azimuth, elevation, theta = euler_from_rotation(rotation_from_euler(330, 12, 4))
    assert (azimuth, elevation, theta) == (pytest.approx(330), pytest.approx(12), pytest.approx(4))
