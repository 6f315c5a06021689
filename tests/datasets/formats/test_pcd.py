import numpy as np
import pytest

from setsup.datasets.formats.geometry.pcd import read_pcd
from setsup.errors import DataError
from tests.fuzzing import survives

POINTS = np.array([[0.5, -1, 2], [3, 4, 5], [1e-3, 0, -7]], np.float32)
COLORS = np.array([[255, 0, 0], [1, 2, 3], [16, 32, 64]], np.uint8)
WORDS = (COLORS.astype(np.uint32) * np.array([1 << 16, 1 << 8, 1], np.uint32)).sum(axis=1).astype(np.uint32)


def _file(data="ascii", rgb="U", count=3):
    head = (
        f"# .PCD v.7 - Point Cloud Data file format\nVERSION .7\nFIELDS x y z rgb\nSIZE 4 4 4 4\nTYPE F F F {rgb}\n"
        f"COUNT 1 1 1 1\nWIDTH {count}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {count}\nDATA {data}\n"
    ).encode()
    colors = WORDS if rgb == "U" else WORDS.view(np.float32)
    if data == "binary":
        rows = np.zeros(3, [("p", "<f4", 3), ("c", "<u4")])
        rows["p"], rows["c"] = POINTS, WORDS
        return head + rows.tobytes()
    form = "" if rgb == "U" else ".9g"
    lines = [f"{x:.9g} {y:.9g} {z:.9g} {c:{form}}" for (x, y, z), c in zip(POINTS, colors, strict=True)]
    return head + ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("data", ["ascii", "binary"])
@pytest.mark.parametrize("rgb", ["U", "F"])
def test_both_forms_and_both_colors(data, rgb, tmp_path):
    path = tmp_path / "a #1 ü.pcd"
    path.write_bytes(_file(data, rgb))
    cloud = read_pcd(path, str(path))
    assert cloud.points.dtype == np.float32
    assert np.array_equal(cloud.points, POINTS)
    assert np.array_equal(cloud.colors, COLORS)


def test_fields_of_any_number_and_a_grid_of_points():
    head = b"VERSION 0.7\r\nFIELDS normal x y z\r\nSIZE 8 4 4 4\r\nTYPE F F F F\r\nCOUNT 2 1 1 1\r\n"
    cloud = read_pcd(head + b"WIDTH 1\r\nHEIGHT 2\r\nDATA ascii\r\n1 2 3 4 5\r\n6 7 8 9 10\r\n", "a.pcd")
    assert cloud.points.tolist() == [[3, 4, 5], [8, 9, 10]]
    assert cloud.records["normal"].tolist() == [[1, 2], [6, 7]]
    assert cloud.colors is None


def test_the_genuine_cloud(genuine):
    path = next((genuine / "keypointnet" / "pcds").rglob("*.pcd"))
    expected = np.loadtxt(path, skiprows=10)
    cloud = read_pcd(path, str(path))
    assert np.array_equal(cloud.points, expected[:, :3].astype(np.float32))
    words = expected[:, 3].astype(int)
    assert np.array_equal(cloud.colors, np.stack([words >> 16 & 255, words >> 8 & 255, words & 255], axis=1))


BAD = {
    "no line DATA": lambda b: b.replace(b"DATA", b"DATUM"),
    "has the version": lambda b: b.replace(b"VERSION .7", b"VERSION .6"),
    "which is not valid in a PCD file": lambda b: b.replace(b"HEIGHT", b"DEPTH"),
    "contradictory header lines": lambda b: b.replace(b"SIZE 4 4 4 4", b"SIZE 4 4 4"),
    "expected x, y and z": lambda b: b.replace(b"FIELDS x", b"FIELDS w"),
    "which is not supported": lambda b: b.replace(b"SIZE 4", b"SIZE 3"),
    "expected integers": lambda b: b.replace(b"WIDTH 3", b"WIDTH -3"),
    "specifies 9,000,000,000 points": lambda b: b.replace(b"POINTS 3", b"POINTS 9000000000"),
    "specifies 9,000,000 points": lambda b: b.replace(b"POINTS 3", b"POINTS 9000000").replace(b"TH 3", b"TH 9000000"),
    "specifies 3 points of 4": lambda b: b + b"1 2 3 4\n",
    "characters that cannot be part of a number": lambda b: b.replace(b"0.5", b"o.5"),
    "has a non-finite x at point 0": lambda b: b.replace(b"0.5", b"nan"),
    "has a rgb that is not a uint32": lambda b: b.replace(b" 16711680", b" 1.5"),
    "expected ascii or binary; convert the file": lambda b: b.replace(b"DATA ascii", b"DATA binary_compressed"),
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_said(message):
    with pytest.raises(DataError, match=f"bad.pcd .*{message}"):
        read_pcd(BAD[message](_file()), "bad.pcd")


@pytest.mark.parametrize(("kind", "word"), [("I", "9223372036854775808"), ("U", "18446744073709551616"), ("U", "-1")])
def test_a_whole_number_beyond_64_bits(kind, word):
    head = f"FIELDS x y z time\nSIZE 4 4 4 8\nTYPE F F F {kind}\nWIDTH 1\nHEIGHT 1\nPOINTS 1\nDATA ascii\n"
    with pytest.raises(DataError, match=r"has a time that is not a u?int64; fetch"):
        read_pcd(f"{head}0 0 0 {word}\n".encode(), "bad.pcd")


def test_a_binary_file_that_is_cut_off():
    with pytest.raises(DataError, match="47 bytes of points, but its header specifies 48"):
        read_pcd(_file("binary")[:-1], "bad.pcd")


@pytest.mark.parametrize("data", ["ascii", "binary"])
def test_fuzzing(data):
    assert survives(_file(data), lambda content: read_pcd(content, "a.pcd").colors, 200) > 100
