import gzip
import logging
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from setsup.datasets import load
from setsup.datasets.benchmarks import cars3d
from setsup.datasets.benchmarks.cars3d.files import parse_list
from setsup.errors import DataError
from setsup.files.archives.streams import stream_tar
from tests.fuzzing import survives
from tests.true_files.cars3d import STEMS, car, content, pack, write

COUNT = len(STEMS)
ROWS = 96 * COUNT


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def truth(release):
    """Images and masks in the order of the rows, from scipy and a plain loop."""
    stored = [scipy.io.loadmat(release / f"{stem}.mat") for stem in STEMS]
    pictures, masks = [], []
    for elevation in range(4):
        for azimuth in range(24):
            pictures += [one["im"][:, :, :, azimuth, elevation] for one in stored]
            masks += [one["mask"][:, :, azimuth, elevation] > 0 for one in stored]
    return np.array(pictures), np.array(masks)


def _linked(release, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for path in release.iterdir():
        (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture(params=["folder", "wrapped", "tar", "tar as root", "zip as root", "prepared", "prepared tar.gz"])
def root(request, tmp_path, release):
    if request.param == "wrapped":
        _linked(release, tmp_path / "cars3d" / "data" / "cars")
    elif request.param == "zip as root":
        return Path(shutil.make_archive(str(tmp_path / "my cars"), "zip", release))
    elif request.param.startswith("tar"):
        archive = pack(release, tmp_path / "nips2015-analogy-data.tar")
        return archive if request.param == "tar as root" else tmp_path
    elif request.param == "prepared tar.gz":
        pack(release, tmp_path / "nips2015-analogy-data.tar.gz")
        names = [f"nips2015-analogy-data.tar.{kind}.npy" for kind in ("images", "object_masks")]
        assert cars3d.prepare(tmp_path) == [tmp_path / name for name in names]
    else:
        _linked(release, tmp_path)
    if request.param == "prepared":
        arrays = [tmp_path / "cars3d.images.npy", tmp_path / "cars3d.object_masks.npy"]
        assert cars3d.prepare(tmp_path) == arrays
        assert all(path.exists() for path in arrays)
    return tmp_path


@pytest.mark.long("large or genuine files")
def test_pictures_masks_and_factors(root, truth):
    dataset = cars3d.open(root)
    pictures, masks = truth
    assert len(dataset) == ROWS
    assert dataset.objects == STEMS
    assert dataset.factors.names == ("elevation", "azimuth", "object")
    assert dataset.factors.row(ROWS - 1) == {"elevation": 3, "azimuth": 345, "object": COUNT - 1}
    assert dataset.factors.row((2 * 24 + 5) * COUNT + 1) == {"elevation": 2, "azimuth": 75, "object": 1}
    for rows in ([[ROWS - 1, 0], [5, 77]], [3, 3, 1], [], 200, [[]], np.arange(0, ROWS, 7)):
        rows = np.asarray(rows, int)
        found = dataset.fetch(rows)
        assert found["image"].dtype == np.uint8
        assert found["object_mask"].dtype == np.bool_
        assert np.array_equal(found["image"], pictures[rows])
        assert np.array_equal(found["object_mask"], masks[rows])
        assert list(dataset.fetch(rows, ["object_mask"])) == ["object_mask"]
        out = {name: np.zeros_like(array) for name, array in found.items()}
        dataset.fetch_into(rows, out)
        assert all(np.array_equal(out[name], found[name]) for name in found)


@pytest.mark.long("large or genuine files")
def test_only_what_is_asked_for_is_read(tmp_path, release, truth):
    shutil.copytree(release, tmp_path, dirs_exist_ok=True)
    for number, stem in enumerate(STEMS):
        (tmp_path / f"{stem}.mat").write_bytes(content({"im": car(number)["im"]}))
    dataset = cars3d.open(tmp_path)
    assert np.array_equal(dataset.fetch([9], ["image"])["image"], truth[0][[9]])
    with pytest.raises(DataError, match=r"car_002_mesh\.mat has no variable mask \(available: im\)"):
        dataset.fetch([1], ["object_mask"])


def test_splits(release):
    dcodr = load("cars3d", release, split="dcodr")
    assert dcodr.factors.counts("split").sum() == ROWS
    test = load("cars3d", release, split="dcodr-test")
    assert set(test.factors.counts("object")) <= {9, 10}


def test_slow_reading_is_said_once(release, caplog):
    with caplog.at_level(logging.WARNING, "setsup"):
        dataset = cars3d.open(release)
        dataset.fetch([0, 1])
        dataset.fetch([7])
    assert caplog.text.count("setsup prepare cars3d") == 1
    assert dataset.cpu_bound


def test_what_prepared_itself_reads_what_it_prepared(tmp_path, release, truth, monkeypatch):
    dataset = cars3d.open(shutil.copytree(release, tmp_path / "copy"))
    dataset.fetch([6])
    dataset.prepare()
    monkeypatch.setattr("setsup.datasets.benchmarks.cars3d.dataset.read_mat", lambda *_: pytest.fail("read a MAT file"))
    assert np.array_equal(dataset.fetch([6, 9])["image"], truth[0][[6, 9]])
    assert not dataset.cpu_bound


@pytest.mark.long("large or genuine files")
def test_prepared_arrays_belong_to_the_files(tmp_path, release, truth, caplog):
    shutil.copytree(release, tmp_path, dirs_exist_ok=True)
    cars3d.prepare(tmp_path)
    with caplog.at_level(logging.WARNING, "setsup"):
        dataset = cars3d.open(tmp_path)
        assert np.array_equal(dataset.fetch([6])["image"], truth[0][[6]])
    assert not caplog.text
    assert not dataset.cpu_bound
    # another order of the same files gives other rows, and the arrays are not used
    turned = (tmp_path / "list.txt").read_text().splitlines()[::-1]
    (tmp_path / "list.txt").write_text("\n".join(turned))
    with caplog.at_level(logging.WARNING, "setsup"):
        assert np.array_equal(cars3d.open(tmp_path).fetch([0])["image"], truth[0][[COUNT - 1]])
    assert "was created from other files" in caplog.text
    caplog.clear()
    (tmp_path / f"{STEMS[1]}.mat").write_bytes(content({"im": 255 - car(1)["im"], "mask": car(1)["mask"]}))
    cars3d.prepare(tmp_path)
    assert np.array_equal(cars3d.open(tmp_path).fetch([COUNT - 2])["image"], 255 - truth[0][[1]])


def test_conversion_goes_on_where_it_was(tmp_path, release, truth, monkeypatch):
    """A conversion of the published archive that was killed between two blocks."""
    archive = pack(release, tmp_path / "nips2015-analogy-data.tar.gz")
    monkeypatch.setattr(cars3d.dataset, "_BLOCK", 1)
    fill, done = cars3d.Cars3D._fill, []

    def killed(self, name, read, kept, start, stop, out):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append((name, start // 96))
        fill(self, name, read, kept, start, stop, out)

    monkeypatch.setattr(cars3d.Cars3D, "_fill", killed)
    with pytest.raises(KeyboardInterrupt):
        cars3d.prepare(archive)
    kept = list(done)

    def going_on(self, name, *more):
        done.append((name, more[2] // 96))
        fill(self, name, *more)

    monkeypatch.setattr(cars3d.Cars3D, "_fill", going_on)
    cars3d.prepare(archive)
    pictures = [block for name, block in done if name == "image"]
    assert sorted(set(pictures)) == list(range(COUNT))
    assert len(pictures) - len(kept) < COUNT
    dataset = cars3d.open(archive)
    assert np.array_equal(dataset.fetch(range(ROWS))["image"], truth[0])
    assert np.array_equal(dataset.fetch(range(ROWS))["object_mask"], truth[1])


def test_the_published_archive_is_looked_through_once(tmp_path, release, monkeypatch):
    pack(release, tmp_path / "nips2015-analogy-data.tar.gz")
    dataset = cars3d.open(tmp_path)
    assert dataset.objects == STEMS
    with pytest.raises(DataError, match=r"setsup prepare cars3d --root .*` once to convert it, or unpack it"):
        dataset.fetch([0])
    monkeypatch.setattr("setsup.datasets.benchmarks.cars3d.files.stream_tar", None)
    assert cars3d.open(tmp_path).objects == STEMS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nips2015-analogy-data.tar.gz"]


@pytest.mark.parametrize("packed", [False, True])
def test_without_a_list_names_are_sorted(tmp_path, release, truth, caplog, packed):
    folder = _linked(release, tmp_path / "cars")
    (folder / "list.txt").unlink()
    if packed:
        shutil.move(pack(folder, tmp_path / "x.tar.gz"), tmp_path / "nips2015-analogy-data.tar.gz")
        shutil.rmtree(folder)
    with caplog.at_level(logging.WARNING, "setsup"):
        dataset = cars3d.open(tmp_path)
    assert dataset.objects == tuple(sorted(STEMS))
    assert "has no list.txt: the cars (4 of the 183 published) are numbered by their sorted names" in caplog.text
    if packed:
        # in the order of the archive, which is another one than that of the ids
        cars3d.prepare(tmp_path)
        dataset = cars3d.open(tmp_path)
    assert np.array_equal(dataset.fetch([0])["image"], truth[0][[STEMS.index(min(STEMS))]])


def test_a_list_that_names_fewer(tmp_path, release, caplog):
    folder = _linked(release, tmp_path)
    (folder / "list.txt").unlink()
    (folder / "list.txt").write_bytes(b"\xef\xbb\xbfcar_164_mesh.mat\r\n\r\ncar_002_mesh\r\n")
    with caplog.at_level(logging.WARNING, "setsup"):
        assert cars3d.open(folder).objects == ("car_164_mesh", "car_002_mesh")
    assert "lists 2 of the 4 cars" in caplog.text


def test_listed_cars_that_are_not_there_are_left_out_and_the_others_keep_their_numbers(
    tmp_path, release, truth, caplog
):
    folder = _linked(release, tmp_path)
    whole = cars3d.open(folder)
    (folder / f"{whole.objects[1]}.mat").unlink()
    part = cars3d.open(folder)
    assert f"1 of the 4 listed cars are missing ({whole.objects[1]}.mat); they are left out" in caplog.text
    assert part.objects == (whole.objects[0], *whole.objects[2:])
    assert part.factors["object"].levels == (0, 2, 3)
    where = "elevation == 2 and azimuth == 30 and object == 3"
    shown, same = (one.fetch(one.factors.rows(where))["image"] for one in (part, whole))
    assert np.array_equal(shown, same)


@pytest.mark.parametrize(
    ("listed", "sentence"),
    [
        (b"car_998_mesh\ncar_999_mesh\n", r"list\.txt contains none of the 2 listed cars, such as car_998_mesh\.mat;"),
        (b"../../etc/passwd\n", r"lists '\.\./\.\./etc/passwd'; expected names such as car_001_mesh"),
        (b"/car_017_mesh\n", "lists '/car_017_mesh'"),
        (b"car_\\..\\_mesh\n", "expected names such as car_001_mesh"),
        (b"car_017_mesh\ncar_017_mesh\n", "lists 'car_017_mesh' twice"),
        (b"\n\n", "is empty"),
        (b"car_\xff_mesh\n", "is not UTF-8 text"),
        (b"<html>\n", "lists '<html>'"),
    ],
)
def test_lists_that_are_wrong(tmp_path, release, listed, sentence):
    folder = _linked(release, tmp_path)
    (folder / "list.txt").unlink()
    (folder / "list.txt").write_bytes(listed)
    with pytest.raises(DataError, match=sentence) as caught:
        cars3d.open(folder)
    assert "\n" not in str(caught.value)


WRONG = {
    "axes": (
        lambda one: {"im": one["im"].transpose(0, 1, 2, 4, 3)},
        r"'im' has dtype uint8 and shape \(128, 128, 3, 4, 24\); expected uint8 of shape \(",
    ),
    "fewer": (lambda one: {"im": one["im"][..., :3]}, r"'im' has dtype uint8 and shape \(128, 128, 3, 24, 3\)"),
    "wide": (lambda one: {"im": one["im"].astype(np.uint16)}, "'im' has dtype uint16"),
    "text": (lambda _: {"im": "a text"}, "'im' has dtype <U6"),
    "struct": (lambda one: {"im": {"pixels": one["im"]}}, "'im' has dtype"),
    "cut": (lambda one: content(one)[:-3000], "is truncated or damaged"),
    "other version": (lambda _: b"MATLAB 7.3 MAT-file".ljust(600), r"is a MAT v7\.3 file \(HDF5\)"),
    "empty": (lambda _: b"", "is not a MAT v5 file"),
    "long": (lambda _: bytes(40 << 20), "more than the limit of 33,554,432"),
}


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("kind", list(WRONG))
def test_meshes_that_are_wrong(tmp_path, release, kind):
    make, sentence = WRONG[kind]
    one = car(0)
    made = make(one)
    folder = _linked(release, tmp_path)
    (folder / "car_017_mesh.mat").unlink()
    (folder / "car_017_mesh.mat").write_bytes(made if isinstance(made, bytes) else content({**one, **made}))
    for read in (lambda: cars3d.open(folder).fetch([0], ["image"]), lambda: cars3d.prepare(folder)):
        with pytest.raises(DataError, match=sentence) as caught:
            read()
        assert "car_017_mesh.mat" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("*.npy*"))


def test_nothing_there(tmp_path):
    with pytest.raises(DataError, match="setsup fetch cars3d"):
        cars3d.open(tmp_path)
    pack(tmp_path, tmp_path / "nips2015-analogy-data.tar.gz")
    with pytest.raises(DataError, match=r"contains no file such as car_001_mesh\.mat"):
        cars3d.open(tmp_path / "nips2015-analogy-data.tar.gz")


@pytest.mark.parametrize("mask", ["uint8", "bool", "float64"])
def test_masks_of_any_type(tmp_path, mask):
    variables = car(2, mask)
    if mask == "uint8":
        variables["mask"] = variables["mask"] * 255
    (tmp_path / "car_001_mesh.mat").write_bytes(content(variables))
    found = cars3d.open(tmp_path).fetch(range(96), ["object_mask"])["object_mask"]
    assert np.array_equal(found[24 + 5], variables["mask"][:, :, 5, 1] > 0)
    assert 0.02 < found.mean() < 0.5


MANY = """
import resource, sys
from pathlib import Path
from setsup.datasets.benchmarks import cars3d
from setsup.datasets.benchmarks.cars3d.files import parse_list
from setsup.errors import DataError

resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
names = [f"car_{number}_mesh" for number in range(60_000)]
try:
    parse_list("\\n".join([*names, names[-1]]).encode(), "list.txt")
except DataError as error:
    print(error)
print(cars3d.open(Path(sys.argv[1])).objects)
"""


@pytest.mark.long("large or genuine files")
def test_long_lists_and_archives_of_many_folders_take_no_time(tmp_path):
    """Once half a minute each: every name was sought among all others. The kernel ends who takes as much CPU time."""
    path = tmp_path / "many.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for number in range(20_000):
            archive.addfile(tarfile.TarInfo(f"{number % 19_999:05}/car_{number}_mesh.mat"))
    done = subprocess.run([sys.executable, "-c", MANY, path], capture_output=True, text=True, check=True)
    told = ["list.txt lists 'car_59999_mesh' twice; fetch it again", "('car_0_mesh', 'car_19999_mesh')"]
    assert done.stdout.splitlines() == told


@pytest.mark.long("fuzzing")
def test_fuzzing_of_lists_and_archives(tmp_path):
    listed = b"".join(b"car_%03d_mesh\n" % number for number in range(183))
    assert survives(listed, lambda data: parse_list(data, "list.txt"), 100) > 25
    small = tmp_path / "small"
    small.mkdir()
    dice = np.random.default_rng(0)
    for name in ("car_001_mesh.mat", "list.txt"):
        (small / name).write_bytes(dice.integers(0, 255, 900, dtype=np.uint8).tobytes())
    path = pack(small, tmp_path / "a.tar.gz")
    whole = gzip.decompress(path.read_bytes())

    def read(data):
        path.write_bytes(data)
        return list(stream_tar(path, lambda name: None if "sprites" in name else 1 << 20))

    assert [name for name, _ in read(path.read_bytes())] == [
        *("data/cars/car_001_mesh.mat", "data/cars/list.txt", "data/shapes48.mat")
    ]
    survives(path.read_bytes(), read, 100)
    assert survives(whole, lambda data: read(gzip.compress(data, 1)), 100, head=4096) > 25


def test_an_archive_that_is_cut_off(tmp_path, release):
    path = pack(release, tmp_path / "nips2015-analogy-data.tar.gz")
    path.write_bytes(path.read_bytes()[:-20_000])
    with pytest.raises(DataError, match=r"nips2015-analogy-data\.tar\.gz is truncated or damaged"):
        cars3d.open(tmp_path)


def test_an_archive_of_a_long_format(tmp_path, release):
    with tarfile.open(tmp_path / "nips2015-analogy-data.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(release.iterdir()):
            about = tar.gettarinfo(path, f"./data/cars/{path.name}")
            about.pax_headers = {"comment": "ü" * 300}
            with path.open("rb") as file:
                tar.addfile(about, file)
    assert cars3d.open(tmp_path).objects == STEMS
