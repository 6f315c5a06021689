"""Published lists where other libraries and the authors put them."""

import importlib
import shutil

import pytest

import setsup


def written(name, folder):
    importlib.import_module(f"tests.true_files.{name}").write(folder)
    return setsup.load(name, folder)


LAYOUTS = {
    "Dassl": ("pacs/images", "pacs/splits"),
    "the authors": ("pacs_data", "pacs_label"),
    "the authors, unpacked twice": ("pacs_data/pacs_data", "pacs_data/pacs_label"),
    "JiGen": ("PACS", "txt_lists"),
}


@pytest.mark.parametrize("root", ["around", "images", "zip"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pacs(layout, root, tmp_path):
    whole = written("pacs", tmp_path / "whole")
    images, lists = (tmp_path / "x" / place for place in LAYOUTS[layout])
    (lists).mkdir(parents=True)
    for path in (tmp_path / "whole").rglob("*_kfold.txt"):
        shutil.copy(path, lists)
        path.unlink()
    (domain,) = (tmp_path / "whole").rglob("art_painting")
    shutil.copytree(domain.parent, images)
    if root == "zip":
        shutil.make_archive(str(tmp_path / "any"), "zip", tmp_path / "x")
        found = setsup.load("pacs", tmp_path / "any.zip")
    else:
        found = setsup.load("pacs", tmp_path / "x" if root == "around" else images)
    assert found.factors.fingerprint == whole.factors.fingerprint


def test_lists_of_another_dataset_are_not_taken(tmp_path):
    """All datasets lie in one folder, and one of them has the same domains."""
    written("pacs", tmp_path / "another")
    written("pacs", tmp_path / "PACS")
    for path in (tmp_path / "PACS").rglob("*_kfold.txt"):
        path.unlink()
    (domain,) = (tmp_path / "PACS").rglob("art_painting")
    assert "split" not in setsup.load("pacs", domain.parent).factors


@pytest.mark.parametrize("place", ["Objectron", "clone", "."])
def test_objectron(place, tmp_path):
    whole = written("objectron", tmp_path / "whole")
    (index,) = [path for path in (tmp_path / "whole").rglob("index") if path.is_dir()]
    (annotations,) = [path for path in (tmp_path / "whole").rglob("annotations") if path.is_dir()]
    shutil.copytree(annotations, tmp_path / "x" / "annotations")
    shutil.copytree(index, tmp_path / "x" / place / "index")
    (tmp_path / "x" / place / "README.md").write_text("a clone")
    assert setsup.load("objectron", tmp_path / "x").factors.fingerprint == whole.factors.fingerprint


def test_objectron_beside_the_folder_of_annotations(tmp_path):
    whole = written("objectron", tmp_path / "whole")
    (index,) = [path for path in (tmp_path / "whole").rglob("index") if path.is_dir()]
    (annotations,) = [path for path in (tmp_path / "whole").rglob("annotations") if path.is_dir()]
    shutil.copytree(annotations, tmp_path / "x" / "data" / "annotations")
    shutil.copytree(index, tmp_path / "x" / "Objectron" / "index")
    assert setsup.load("objectron", tmp_path / "x").factors.fingerprint == whole.factors.fingerprint
