"""Omniglot, miniImageNet and tieredImageNet: rows by walks over the files and by the csv files, and their episodes."""

import io
import shutil

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError
from setsup.files import load_manifest
from setsup.files.downloads.check import State, check_files
from setsup_cli.main import main
from tests.true_files import mini_imagenet, omniglot, tiered_imagenet


def _decoded(content):
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


@pytest.mark.parametrize("form", ["published", "torchvision", "evaluation only"])
def test_omniglot(tmp_path, form):
    omniglot.write(tmp_path)
    files = omniglot.files()
    if form == "torchvision":  # zips and folders
        (tmp_path / "omniglot-py").mkdir()
        for path in list(tmp_path.glob("*.zip")):
            shutil.unpack_archive(path, tmp_path / "omniglot-py")
            path.rename(tmp_path / "omniglot-py" / path.name)
    if form == "evaluation only":
        (tmp_path / "images_background.zip").unlink()
        files = {path: content for path, content in files.items() if path.startswith("images_evaluation")}
    found = setsup.load("omniglot", tmp_path)
    rows = sorted(path.split("/") for path in files)
    assert found.factors.values("split").tolist() == [row[0].removeprefix("images_") for row in rows]
    assert found.factors.values("alphabet").tolist() == [row[1] for row in rows]
    assert found.factors.values("character").tolist() == [row[2] for row in rows]
    assert found.factors.values("drawer").tolist() == [int(row[3][5:7]) for row in rows]
    assert np.array_equal(found.fetch(range(len(rows)))["image"], [_decoded(files["/".join(row)]) for row in rows])


def test_a_class_of_omniglot_is_a_character_of_an_alphabet(tmp_path):
    omniglot.write(tmp_path)
    part = setsup.load("omniglot", tmp_path, split="background")
    episodes = setsup.EpisodeSampler(part.factors, "character", ways=5, shots=1, queries=3)
    told = list(zip(part.factors.values("alphabet"), part.factors.values("character"), strict=True))
    for step in range(20):
        classes = [{told[row] for row in rows} for rows in episodes[step].indices.tolist()]
        assert [len(each) for each in classes] == [1] * 5
        assert len(set.union(*classes)) == 5


def test_splits_of_omniglot_by_alphabets_and_characters(tmp_path):
    """Alphabets of the small sets, and of the parts of the lists of Prototypical Networks, one of which is in two."""
    said = {  # alphabet and character: part, small1, small2, vinyals
        ("Balinese", 1): ("background", "background", None, "train"),
        ("Greek", 24): ("background", "background", "background", "train"),
        ("Early_Aramaic", 3): ("background", "background", None, "val"),
        ("Japanese_(katakana)", 3): ("background", None, "background", "train"),
        ("Gurmukhi", 41): ("evaluation", "evaluation", "evaluation", "train"),
        ("Gurmukhi", 42): ("evaluation", "evaluation", "evaluation", "test"),
        ("Tibetan", 1): ("evaluation", "evaluation", "evaluation", "test"),
    }
    content = next(iter(omniglot.files().values()))
    for (alphabet, character), (part, *_) in said.items():
        folder = tmp_path / f"images_{part}" / alphabet / f"character{character:02}"
        folder.mkdir(parents=True)
        (folder / "0001_01.png").write_bytes(content)
    found = setsup.load("omniglot", tmp_path).factors
    names = ("split", "small1", "small2", "vinyals")
    for row in range(len(said)):
        values = found.row(row)
        key = (values["alphabet"], int(values["character"].removeprefix("character")))
        assert tuple(values[name] for name in names) == said[key]


@pytest.mark.parametrize(
    "path", ["images/{name}", "{part}/{synset}/{name}", "images/{synset}/{name}", "images/{part}/{synset}/{name}"]
)
def test_mini_imagenet(tmp_path, path):
    mini_imagenet.write(tmp_path, path)
    found, rows, content = setsup.load("mini-imagenet", tmp_path), mini_imagenet.rows(), mini_imagenet.content()
    assert found.factors.values("split").tolist() == [part for part, _, _ in rows]
    assert found.factors.values("synset").tolist() == [synset for _, synset, _ in rows]
    for row in range(0, len(rows), 4):
        assert np.array_equal(found.fetch(row)["image"], _decoded(content[rows[row][2]]))
    test = setsup.load("mini-imagenet", tmp_path, split="test")
    assert set(test.factors.values("synset")) == set(mini_imagenet.SYNSETS["test"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("n0153282900000005.jpg,bird", r"val\.csv: label of row 0 is .bird."),
        ("n0153282900000005.jpg,n01532829", "n0153282900000005.jpg"),  # it is in train.csv, too
        ("n0153282900000005.jpg", r"val\.csv could not be parsed as CSV: .*Expected 2 columns"),
    ],
)
def test_bad_csv_files_of_mini_imagenet(tmp_path, line, message):
    mini_imagenet.write(tmp_path)
    (tmp_path / "val.csv").write_text(f"filename,label\n{line}\n")
    with pytest.raises(DataError, match=message) as found:
        setsup.load("mini-imagenet", tmp_path)
    assert "\n" not in str(found.value)


def test_fetching_mini_imagenet_does_not_end_without_its_images(tmp_path, capsys):
    assert main(["fetch", "mini-imagenet", "--root", str(tmp_path)]) != 0
    assert "put images (or " in capsys.readouterr().err
    mini_imagenet.write(tmp_path)
    assert all(state.state is not State.MISSING for state in check_files(load_manifest("mini-imagenet"), tmp_path))


def test_a_superclass_of_tiered_imagenet_is_in_one_part(tmp_path):
    tiered_imagenet.write(tmp_path)
    synset = next((tmp_path / "val").iterdir())
    synset.rename(tmp_path / "test" / synset.name)
    setsup.load("tiered-imagenet", tmp_path)
    (tmp_path / "train" / synset.name).symlink_to(tmp_path / "test" / synset.name)
    with pytest.raises(DataError, match="the split 'train' of tiered-imagenet differs from the published one"):
        setsup.load("tiered-imagenet", tmp_path, split="train")


def test_tiered_imagenet(tmp_path):
    tiered_imagenet.write(tmp_path)
    files = tiered_imagenet.files()
    found = setsup.load("tiered-imagenet", tmp_path)
    order = ["train", "val", "test"]
    rows = sorted((path.split("/") for path in files), key=lambda row: (order.index(row[0]), *row[1:]))
    assert found.factors.values("split").tolist() == [row[0] for row in rows]
    assert found.factors.values("synset").tolist() == [row[1] for row in rows]
    assert found.factors.values("superclass").tolist() == [tiered_imagenet.SUPERCLASSES[row[1]] for row in rows]
    for row in range(0, len(rows), 5):
        assert np.array_equal(found.fetch(row)["image"], _decoded(files["/".join(rows[row])]))


def test_synsets_of_other_datasets_are_refused(tmp_path):
    tiered_imagenet.write(tmp_path)
    (tmp_path / "train" / "n00000001").mkdir()
    (tmp_path / "train" / "n00000001" / "1.jpg").write_bytes(b"")
    with pytest.raises(DataError, match=r"'n00000001'; expected one of n01440764, .* and 605 more") as found:
        setsup.load("tiered-imagenet", tmp_path)
    assert len(str(found.value)) < 400
