"""Open each written release under each name: what is another benchmark's is refused, but for the pairs listed here."""

import contextlib
import importlib
from pathlib import Path

import pytest

import setsup
from setsup.errors import SetsupError
from setsup.files import load_manifest

FILES = Path(__file__).resolve().parents[1] / "true_files"
RELEASES = sorted(file.stem.replace("_", "-") for file in FILES.glob("*.py") if file.stem not in ("rings", "toys"))

MADE_OF_MNIST = ("mnist", "affine-mnist", "colored-mnist", "even-odd", "rotated-mnist")

OPENING: dict[tuple[str, str], str] = {
    **{
        (one, other): "made of the files of mnist (shares: mnist)"
        for one in MADE_OF_MNIST
        for other in MADE_OF_MNIST
        if one != other
    },
    ("clevr", "clevr-objects"): "objects of the images of clevr (shares: clevr)",
    ("clevr-objects", "clevr"): "objects of the images of clevr (shares: clevr)",
    **{
        ("abc-pose", each): "abc-pose reads releases in folders of their names, which its root holds"
        for each in ("cars196", "compcars", "imagenet-a", "pascal3d", "shapenet-renderings")
    },
    ("imagenet-100", "imagenet"): "a hundred synsets of imagenet (shares: imagenet), which are a part of it",
    ("tiered-imagenet", "imagenet"): "synsets of imagenet in trees train and val, which imagenet reads as a part of it",
}
"""Pairs of a release and another name under which it opens."""

OPENING_ANYWHERE = {
    "shapes3d-procedural": "computed, and reads no file",
    "video-orbits": "reads a user's own frames, <track>/<frame>, which many releases look like",
}
"""Names under which any folder may open."""


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("release", RELEASES)
def test_a_release_opens_under_its_own_name_only(tmp_path, release):
    folder = tmp_path / release
    folder.mkdir()
    importlib.import_module(f"tests.true_files.{release.replace('-', '_')}").write(folder)
    opened = set()
    for name in setsup.names():
        with contextlib.suppress(SetsupError):
            setsup.load(name, folder)
            opened.add(name)
    expected = {release, *(name for of, name in OPENING if of == release)}
    assert opened >= expected
    assert opened - set(OPENING_ANYWHERE) == expected - set(OPENING_ANYWHERE)


def test_pairs_that_share_files_say_so_in_their_manifests():
    for (release, name), reason in OPENING.items():
        if "shares: " in reason:
            shared = reason.partition("shares: ")[2].split(")")[0]
            assert {load_manifest(each).shares or each for each in (release, name)} == {shared}


def test_a_single_domain_of_which_another_benchmark_has_one(tmp_path):
    """Its categories tell, where no other domain beside it does."""
    importlib.import_module("tests.true_files.domainnet").write(tmp_path)
    with pytest.raises(SetsupError, match=r"unknown levels of category: The_Eiffel_Tower, aircraft"):
        setsup.load("pacs", tmp_path / "sketch.zip")
    importlib.import_module("tests.true_files.pacs").write(tmp_path / "pacs")
    sketches = next((tmp_path / "pacs").rglob("sketch"))
    (sketches / "dog").rename(sketches / "person")
    (tmp_path / "other").mkdir()
    sketches.rename(tmp_path / "other" / "sketch")
    with pytest.raises(SetsupError, match="unknown levels of category: person"):
        setsup.load("domainnet", tmp_path / "other")
