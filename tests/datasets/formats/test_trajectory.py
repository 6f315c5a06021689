import numpy as np
import pytest

from setsup.datasets.formats.geometry.trajectory import read_keys, read_timestamps, read_trajectory
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files import scenenn_frames

LOG = scenenn_frames.trajectory(1).encode()


def block(head="0 0 1", matrix="1 0 0 2.5\n0 1 0 0\n0 0 1 0\n0 0 0 1\n"):
    return f"{head}\n{matrix}".encode()


@pytest.mark.parametrize("change", [(b"", b""), (b"\n", b"\r\n"), (b" ", b"  \t"), (b"\n", b"\n\n")])
def test_poses(change):
    frames, poses = read_trajectory(LOG.replace(*change) if change[0] else LOG, "trajectory.log")
    assert frames.tolist() == [*range(7)], "the eighth frame was lost"
    lines = LOG.decode().splitlines()
    expected = [[[float(word) for word in lines[5 * k + 1 + i].split()] for i in range(4)] for k in range(7)]
    assert poses.dtype == np.float64
    assert np.array_equal(poses, expected)


def test_a_head_of_one_number_and_no_last_line_break():
    assert read_trajectory(block("17")[:-1], "trajectory.log")[0].tolist() == [17]
    frames, poses = read_trajectory(b"", "trajectory.log")
    assert frames.shape == (0,)
    assert poses.shape == (0, 4, 4)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (LOG[:-30], r"line 35 has .* words|ends inside the block that begins in line 31"),
        (LOG[: LOG.rindex(b"\n", 0, -1) + 1], "ends inside the block that begins in line 31"),
        (block() + block("1", "1 0 0\n0 0 1 0\n0 0 1 0\n0 0 0 1\n"), "line 7 has 3 words; expected the 4 numbers"),
        (block("0 0 1 1"), "line 1 has 4 words; expected the frame number"),
        (block("zero"), "line 1 contains 'zero'; expected an integer"),
        (block("1.5"), "line 1 contains '1.5'; expected an integer"),
        (block() + block("1", "1 0 0 x\n0 1 0 0\n0 0 1 0\n0 0 0 1\n"), "line 7 contains 'x'; expected a number"),
        (block("0", "1 0 0 nan\n0 1 0 0\n0 0 1 0\n0 0 0 1\n"), "line 2 contains nan, which is not a finite number"),
        (block("0", "1 0 0 0\n0 1 0 0\n0 0 1 -inf\n0 0 0 1\n"), "line 4 contains -inf"),
        (block("0", "1 0 0 0\n0 1 0 0\n0 0 1 1e999\n0 0 0 1\n"), "line 4 contains 1e999"),
        (block("-1"), "line 1 has the frame number -1"),
        (block("9" * 19), "line 1 contains '9+'; expected an integer|line 1 has the frame number"),
        (block("5") + block("6") + block("5"), "line 11 repeats frame 5"),
        (b"0 0 1\n\xff\n", "is not ASCII text: byte 6"),
    ],
)
def test_damaged_trajectories(content, sentence):
    with pytest.raises(DataError, match=rf"^trajectory\.log.*({sentence})") as found:
        read_trajectory(content, "trajectory.log")
    assert "\n" not in str(found.value)


def test_timestamps():
    frames, times = read_timestamps(b"1 0\n2 33369 33400\n10 4294967296\n", "timestamp.txt")
    assert frames.tolist() == [1, 2, 10]
    assert times.tolist() == [0, 33369, 2**32]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"1 0\n2\n", "line 2 has 1 words; expected a frame number and its time"),
        (b"1 0 0 0\n", "line 1 has 4 words"),
        (b"1 0.5\n", "line 1 contains '0.5'"),
        (b"1 0\n1 5\n", "line 2 repeats frame 1"),
    ],
)
def test_damaged_timestamps(content, sentence):
    with pytest.raises(DataError, match=rf"^timestamp\.txt.*{sentence}"):
        read_timestamps(content, "timestamp.txt")


LENS = ("fx", "cy")


def test_keys():
    assert read_keys(b"depth_width 640\nfx\t5.4447329e2\n\ncy 240\n", "asus.ini", LENS) == {"fx": 544.47329, "cy": 240}


def test_comments_sections_and_further_words_do_no_harm():
    content = (
        "# fx of the Xtion, née PrimeSense\r\n[camera]\nwidth\nname = asus\nfx 544.4 pixels ; 1\n cy 240 0\n".encode()
    )
    assert read_keys(content, "asus.ini", LENS) == {"fx": 544.4, "cy": 240}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"cy 1\nfx\n", "fx in line 2 is ''; expected a finite number"),
        (b"fx 5\ncy five\n", "cy in line 2 is 'five'; expected a finite number"),
        (b"fx 5\nfx 5\ncy 1\n", "line 2 repeats the name 'fx'"),
        (b"fx inf\n", "fx in line 1 is 'inf'; expected a finite number"),
        (b"fx 1e999\n", "fx in line 1 is '1e999'; expected a finite number"),
        (b"fx = 5\n", "fx in line 1 is '='; expected a finite number"),
        (b"fx 5\n# cy 5\n", "has no line that begins with 'cy'; fetch it again"),
        (b"", "has no line that begins with 'fx'"),
    ],
)
def test_damaged_keys(content, sentence):
    with pytest.raises(DataError, match=rf"^asus\.ini.*{sentence}"):
        read_keys(content, "asus.ini", LENS)


@pytest.mark.parametrize(
    ("healthy", "read"),
    [
        (LOG, read_trajectory),
        (b"1 0\n2 33369\n3 66738\n", read_timestamps),
        (b"fx 544.4\ncy 544.4\n", lambda content, label: read_keys(content, label, LENS)),
    ],
)
def test_damage(healthy, read):
    assert survives(healthy, lambda content: read(content, "a.txt"), rounds=150) > 50
