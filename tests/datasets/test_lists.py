"""What every list of a release promises, whichever benchmark reads it: damage is told in one sentence.

Lists are texts that name images or say what is on them. Damage of formats is tried in `tests/datasets/formats`.
"""

import importlib
import re
import shutil
from pathlib import Path

import pytest

import setsup
from setsup.errors import DataError
from tests.fuzzing import survives

LISTS: dict[str, dict[str, str]] = {
    "camelyon17": {"metadata.csv": "twice outside"},
    "cars3d": {"list.txt": "less"},
    "celeba": {
        "list_attr_celeba.txt": "",
        "identity_CelebA.txt": "",
        "list_landmarks68_celeba_x64.csv": "",
        "list_landmarks_align_celeba.txt": "",
        "list_eval_partition.txt": "",
    },
    "clevr": {"CLEVR_val_scenes.json": ""},
    "co3d": {"set_lists_fewview_dev.json": ""},
    "compcars": {
        "attributes.txt": "",
        "train.txt": "empty twice more less outside large",
        "verification_pairs_easy.txt": "empty cut twice less outside large",
    },
    "cub200": {
        "train_test_split.txt": "",
        "images.txt": "",
        "image_class_labels.txt": "",
        "bounding_boxes.txt": "",
        "part_locs.txt": "",
        "image_attribute_labels.txt": "",
    },
    "domainnet": {"real_test.txt": "empty page cut twice more less outside large long"},
    "fmow": {"rgb_metadata.csv": "twice outside large", "country_code_mapping.csv": "large"},
    "hmdb51": {"jump_test_split1.txt": "empty twice less"},
    "in-shop": {"list_eval_partition.txt": ""},
    "iwildcam": {"metadata.csv": "twice large", "categories.csv": "cut outside"},
    "keypointnet": {"car.json": "", "val.txt": "empty cut twice less large"},
    "mini-imagenet": {"val.csv": "outside"},
    "mnist-m": {"mnist_m_test_labels.txt": "outside"},
    "msmt17": {"list_query.txt": ""},
    "mvimgnet": {"mvimgnet_category.txt": "empty cut twice more large"},
    "nicopp": {"dim_train.txt": "empty page cut twice more less outside large long"},
    "online-products": {"Ebay_train.txt": "cut large"},
    "pacs": {"sketch_train_kfold.txt": "empty page cut twice more less outside large long"},
    "pascal3d": {"car_test.txt": "twice large", "car_val.txt": "cut twice less large"},
    "scenenn": {"005.xml": "page less"},
    "scenenn-frames": {"005/trajectory.log": "empty", "005/timestamp.txt": "empty cut", "asus.ini": "outside long"},
    "shapenet": {"all.csv": "twice outside", "taxonomy.json": ""},
    "shapenet-renderings": {"dev.txt": "empty cut twice less large long", "projection.txt": ""},
    "stl10": {"class_names.txt": "less", "fold_indices.txt": ""},
    "terra-incognita": {"caltech_images_20210113.json": ""},
    "ucf101": {"testlist02.txt": "empty twice more less"},
    "ut-zap50k": {"meta-data.csv": ""},
    "vehicleid": {"img2vid.txt": "", "color_attr.txt": "", "test_list_800.txt": ""},
    "veri776": {"test_label.xml": "less"},
    "video-orbits": {"orbits.csv": "twice"},
    "waterbirds": {"metadata.csv": "twice outside large"},
}
"""Lists by benchmarks, and what is read all the same: then it is about fewer images, or about none that are there."""
ASCII = ("trajectory.log", "timestamp.txt")
"""Lists of numbers, which a mark before them damages."""
REPLACED = ("asus.ini",)
"""Lists in which what is no UTF-8 cannot hide a number."""


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Folders of releases by name, whose archives with lists are unpacked."""
    made = {}

    def release(name):
        if name not in made:
            folder = made[name] = tmp_path_factory.mktemp(name)
            importlib.import_module(f"tests.true_files.{name.replace('-', '_')}").write(folder)
            if name in ("online-products", "shapenet-renderings"):
                for archive in list(folder.glob("*.zip")):
                    shutil.unpack_archive(archive, folder / archive.stem)
                    archive.unlink()
        return made[name]

    return release


@pytest.fixture(params=[(name, file) for name, files in LISTS.items() for file in files], ids="/".join)
def listed(request, releases):
    """Name of a benchmark, its folder, one of its lists, which is put back after the test, and what is read in it."""
    name, file = request.param
    folder = releases(name)
    path = sorted(path for path in folder.rglob(Path(file).name) if str(path).endswith(f"/{file}"))[0]
    healthy = path.read_bytes()
    yield name, folder, path, LISTS[name][file].split()
    path.write_bytes(healthy)


def test_marks_and_other_ends_of_lines_change_nothing(listed, caplog):
    name, folder, path, _ = listed
    expected, healthy = setsup.load(name, folder).factors.fingerprint, path.read_bytes()
    said = list(caplog.messages)
    for content in (b"\xef\xbb\xbf" + healthy, healthy.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")):
        path.write_bytes(content)
        caplog.clear()
        if path.name in ASCII and content.startswith(b"\xef"):
            with pytest.raises(DataError, match=r"is not ASCII text: byte 0 is 0xef"):
                setsup.load(name, folder)
        else:
            assert setsup.load(name, folder).factors.fingerprint == expected
            assert caplog.messages == said


def test_what_is_no_text_is_refused(listed):
    name, folder, path, _ = listed
    healthy = path.read_bytes().rstrip()
    last = healthy.splitlines()[-1]
    contents = [b"\xff\xfe\0a" * 40, healthy + b"\n\xc3\x28 1 2,3\n"]
    if path.suffix != ".csv":  # columns that are not asked for are not decoded
        contents.append(healthy + b"\n\xff" + last + b"\n")
    for content in contents[:1] if path.name in REPLACED else contents:
        path.write_bytes(content)
        with pytest.raises(DataError, match=path.name.replace(".", r"\.")) as found:
            setsup.load(name, folder)
        assert "\n" not in str(found.value)


def damages(healthy):
    """Contents by what is wrong with them, most of it with a line at the end."""
    last = healthy.splitlines()[-1]
    comma = b"," if b"," in last else b" "
    first = re.split(rb"[ ,]", last)[0]
    lines = {
        "twice": last,
        "more": last + comma + b"7",
        "less": last.rpartition(comma)[0],
        "outside": last.replace(first, b"../../etc/passwd", 1),
        "large": last + b"9" * 400,
        "long": b"x" * (1 << 20),
    }
    yield from {
        "empty": b"",
        "page": b"<html><body>quota</body></html>",
        "cut": healthy[: len(healthy) * 2 // 3],
    }.items()
    yield from ((what, healthy.rstrip() + b"\n" + line + b"\n") for what, line in lines.items())


def test_damage_is_told_in_one_sentence_or_is_known_to_be_read(listed):
    name, folder, path, bears = listed
    told = {}
    for what, content in damages(path.read_bytes()):
        path.write_bytes(content)
        try:
            setsup.load(name, folder)
        except DataError as error:
            told[what] = str(error)
        else:
            told[what] = None
    assert [what for what, sentence in told.items() if sentence is None] == bears
    for sentence in filter(None, told.values()):
        assert "\n" not in sentence
        assert len(sentence) < 1000
        assert path.name in sentence or str(folder) in sentence


@pytest.mark.long("fuzzing")
def test_damaged_bytes_are_refused_or_read(listed):
    name, folder, path, _ = listed

    def read(content):
        path.write_bytes(content)
        setsup.load(name, folder)

    survives(path.read_bytes(), read, 6, slack=20 << 20)  # that damage is felt, the tests above see
