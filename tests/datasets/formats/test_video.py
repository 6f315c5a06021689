import io
import os
import pickle
import struct
import subprocess
import sys
import threading
from fractions import Fraction

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.datasets.formats.video.frames import VideoFile
from setsup.errors import DataError, RowError
from tests.fuzzing import mutations, survives
from tests.videos import encoded, number_of, numbered

COUNT = 50
MADE = {
    "mpeg4 in avi": ("mpeg4", "avi", {"g": 12}),
    "mpeg4 with B frames in avi": ("mpeg4", "avi", {"g": 12, "bf": 2, "sc_threshold": 10**9}),
    "mpeg4 with B frames in mp4": ("mpeg4", "mp4", {"g": 12, "bf": 2}),
    "msmpeg4 in avi": ("msmpeg4v3", "avi", {"g": 12}),
    "h264 with B frames in mp4": ("libx264", "mp4", {"g": 12, "bf": 3, "x264": "scenecut=0:b-adapt=0"}),
    "h264, open groups, in mp4": ("libx264", "mp4", {"g": 12, "bf": 3, "x264": "scenecut=0:b-adapt=0:open-gop=1"}),
    "h264, open groups, in avi": ("libx264", "avi", {"g": 12, "bf": 3, "x264": "scenecut=0:b-adapt=0:open-gop=1"}),
    "h264, open groups, in mkv": ("libx264", "matroska", {"g": 12, "bf": 3, "x264": "b-adapt=0:open-gop=1"}),
    "h264 without key frames": ("libx264", "mp4", {"g": 12, "bf": 2, "x264": "intra-refresh=1"}),
    "vp9 with hidden frames": ("libvpx-vp9", "webm", {"g": 12, "auto-alt-ref": 1, "lag-in-frames": 16}),
    "mpeg2 in a program stream": ("mpeg2video", "mpeg", {"g": 12, "bf": 2}),
    "mpeg2 in a transport stream": ("mpeg2video", "mpegts", {"g": 12, "bf": 2}),
}


def made(codec, container, options, count=COUNT):
    return encoded((numbered(number) for number in range(count)), codec, container, **options)


@pytest.fixture(scope="module")
def mp4():
    return made(*MADE["h264 with B frames in mp4"])


@pytest.fixture(scope="module")
def avi():
    return made(*MADE["mpeg4 with B frames in avi"])


def bare(content):
    """All frames in one pass of PyAV itself."""
    with av.open(io.BytesIO(content)) as file:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)])


# -- which frame -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MADE)
def test_any_frame_is_the_one_of_that_number(kind):
    content = made(*MADE[kind])
    expected = bare(content)
    assert number_of(expected).tolist() == list(range(COUNT))
    video = VideoFile(content)
    assert (video.frames, video.height, video.width) == (COUNT, 48, 96)
    assert video.rate == pytest.approx(25)
    assert video.times == pytest.approx(np.arange(COUNT) / 25, abs=1e-3)
    dice = np.random.default_rng(0)
    for number in dice.permutation(COUNT).tolist():
        assert np.array_equal(video.read(number), expected[number])
    asked = dice.integers(0, COUNT, (3, 4))
    assert np.array_equal(VideoFile(content).read(asked), expected[asked])
    known = VideoFile(content, index=video.index)
    assert np.array_equal(known.read([COUNT - 1, 30, 30]), expected[[COUNT - 1, 30, 30]])


@pytest.mark.long("videos")
@settings(max_examples=40, deadline=None)
@given(asked=st.lists(st.lists(st.integers(0, COUNT - 1), max_size=5), min_size=1, max_size=6))
def test_readings_do_not_bear_on_each_other(mp4, asked):
    video = VideoFile(mp4)
    for numbers in asked:
        assert number_of(video.read(np.array(numbers, int))).tolist() == numbers


def test_key_frames_are_used(avi):
    video = VideoFile(avi)
    with av.open(io.BytesIO(avi)) as file:
        keys = [number for number, frame in enumerate(file.decode(video=0)) if frame.key_frame]
    assert len(keys) > 3
    assert video.index.keys.tolist() == keys


@pytest.mark.parametrize(("start", "stop", "step"), [(0, None, 1), (7, 31, 9), (49, None, 1), (50, None, 1), (3, 3, 1)])
def test_streams_are_ranges(mp4, start, stop, step):
    pairs = list(VideoFile(mp4).stream(start, stop, step))
    numbers = [number for number, _ in pairs]
    assert numbers == list(range(COUNT))[start:stop:step]
    assert [int(number_of(frame)) for _, frame in pairs] == numbers


def test_a_stream_may_be_left_and_begun_anew(mp4):
    video = VideoFile(mp4)
    one, other = video.stream(), video.stream(20)
    assert [next(one)[0], next(other)[0], next(one)[0], int(number_of(next(other)[1]))] == [0, 20, 1, 21]
    one.close()
    assert int(number_of(video.read(5))) == 5
    assert int(number_of(next(other)[1])) == 22


def test_what_is_given_is_the_callers(mp4):
    video = VideoFile(mp4)
    frames = [frame for _, frame in video.stream(0, 6)]
    frames[2][...] = 0
    again = [frame for _, frame in video.stream(0, 6)]
    assert number_of(np.stack(again)).tolist() == list(range(6))
    out = np.zeros((2, 48, 96, 3), np.uint8)
    assert video.read([4, 9], out=out) is out
    assert number_of(out).tolist() == [4, 9]
    with pytest.raises(DataError, match=r"out for frames of .* must be uint8"):
        video.read([4, 9], out=out[:1])


@pytest.mark.parametrize("wrong", [COUNT, -1, 1.5, [True], [[0, COUNT]]])
def test_numbers_out_of_range(mp4, wrong):
    with pytest.raises(RowError, match=r"the film\.mp4"):
        VideoFile(mp4, "the film.mp4").read(wrong)


@pytest.mark.parametrize("wrong", [(-1, None, 1), (0, -1, 1), (0, None, 0)])
def test_streams_out_of_range(mp4, wrong):
    with pytest.raises(RowError, match="the video"):
        VideoFile(mp4).stream(*wrong)


def test_no_numbers(mp4):
    assert VideoFile(mp4).read(np.zeros((2, 0), int)).shape == (2, 0, 48, 96, 3)


# -- odd files that real releases hold ---------------------------------------------------------------------------------


def chunks(content):
    """Chunks of an AVI's film: their tags and contents, and where they begin."""
    start = content.index(b"movi") + 4
    end = start - 4 + struct.unpack("<I", content[start - 8 : start - 4])[0]
    at, found = start, []
    while at < end:
        size = struct.unpack("<I", content[at + 4 : at + 8])[0]
        found.append((content[at : at + 4], content[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    return start, found


def rebuilt(content, film):
    """The AVI with other chunks (tag, content, whether it is a key frame) and an index of them."""
    start, _ = chunks(content)
    body = index = b""
    for tag, data, key in film:
        index += tag + struct.pack("<III", 16 * key, 4 + len(body), len(data))
        body += tag + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)
    head = content[: start - 8] + struct.pack("<I", 4 + len(body)) + content[start - 4 : start]
    whole = head + body + b"idx1" + struct.pack("<I", len(index)) + index
    return whole[:4] + struct.pack("<I", len(whole) - 8) + whole[8:]


def kind_of(data):
    """I, P or B: two bits behind the start code of an image (ISO 14496-2, 6.2.5)."""
    return "IPBS"[data[data.index(b"\0\0\1\xb6") + 4] >> 6]


def test_dropped_frames_are_no_frames():
    content = made("mpeg4", "avi", {"g": 12})
    film = []
    for number, (tag, data) in enumerate(chunks(content)[1]):
        film.append((tag, data, kind_of(data) == "I"))
        if number % 5 == 0:
            film.append((tag, b"", False))  # as capture programs note a frame that they missed
    video = VideoFile(rebuilt(content, film))
    assert video.frames == COUNT
    assert number_of(video.read([40, 3, 17])).tolist() == [40, 3, 17]
    # a frame stays while those that were dropped go by
    assert video.times[:8] == pytest.approx([0, 0.08, 0.12, 0.16, 0.2, 0.24, 0.32, 0.36])


def test_packed_b_frames():
    """As DivX and XviD pack them: a P frame and the B frame before it in one chunk, then a chunk that holds nothing."""
    content = made("mpeg4", "avi", {"g": 12, "bf": 1, "b_strategy": 0, "sc_threshold": 10**9}, 41)
    film, coming = [], chunks(content)[1]
    tag, first = coming[0]
    note = first.index(b"\0\0\1\xb2")
    coming[0] = tag, first[:note] + b"\0\0\1\xb2DivX503b1393p" + first[first.index(b"\0\0\1\xb6") :]
    nothing = b"\0\0\1\xb6" + bytes([0b01010000, 0b01001111])  # P, time 0, not coded
    while coming:
        tag, data = coming.pop(0)
        key = kind_of(data) == "I"
        if coming and kind_of(coming[0][1]) == "B":
            film += [(tag, data + coming.pop(0)[1], key), (tag, nothing, False)]
        else:
            film.append((tag, data, key))
    packed = rebuilt(content, film)
    assert number_of(bare(packed)).tolist() == list(range(41))
    video = VideoFile(packed)
    assert video.frames == 41
    assert len(video.index.keys) > 2
    asked = np.random.default_rng(0).permutation(41)
    assert number_of(video.read(asked)).tolist() == asked.tolist()
    assert [int(number_of(VideoFile(packed, index=video.index).read(number))) for number in range(41)] == list(
        range(41)
    )


def test_times_that_do_not_follow_a_rate():
    stamps = [1000, 1040, 1100, 1500, 1510, 3000, 3001]  # ms
    content = io.BytesIO()
    with av.open(content, "w", format="mp4") as file:
        stream = file.add_stream("libx264", rate=25, width=96, height=48, pix_fmt="yuv420p")
        stream.codec_context.time_base = Fraction(1, 1000)
        for number, stamp in enumerate(stamps):
            frame = av.VideoFrame.from_ndarray(numbered(number))
            frame.pts, frame.time_base = stamp, Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    video = VideoFile(content.getvalue())
    assert video.times * 1000 == pytest.approx(np.array(stamps) - 1000)
    assert number_of(video.read([6, 0, 3])).tolist() == [6, 0, 3]


@pytest.mark.parametrize(
    ("matrix", "shown"),
    [
        ((0, 1, -1, 0), lambda picture: np.rot90(picture, -1)),  # x′ = −y, y′ = x: the right edge goes down
        ((-1, 0, 0, -1), lambda picture: np.rot90(picture, 2)),
        ((0, -1, 1, 0), lambda picture: np.rot90(picture, 1)),
        ((-1, 0, 0, 1), lambda picture: picture[:, ::-1]),
        ((0, 1, 1, 0), lambda picture: picture.swapaxes(0, 1)),
    ],
)
def test_pictures_are_the_right_way_up(mp4, matrix, shown):
    """The matrix of the track header (ISO 14496-12, 8.3.2): a b u, c d v, x y w."""
    a, b, c, d = (65536 * part for part in matrix)
    plain = struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
    at = mp4.index(plain, mp4.index(b"tkhd"))
    video = VideoFile(mp4[:at] + struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30) + mp4[at + 36 :])
    expected = shown(bare(mp4)[20])
    assert (video.height, video.width) == expected.shape[:2]
    assert np.array_equal(video.read(20), expected)
    assert np.array_equal(dict(video.stream(20, 21))[20], expected)


# -- colour ------------------------------------------------------------------------------------------------------------


def rgb_of(colors, red, blue, full):
    """The formula of ITU-R BT.601 and BT.709 with the weights of red and blue, in 0 … 255."""
    y, cb, cr = np.asarray(colors, float).T
    y, cb, cr = (
        (y / 255, (cb - 128) / 255, (cr - 128) / 255) if full else ((y - 16) / 219, (cb - 128) / 224, (cr - 128) / 224)
    )
    r, b = y + 2 * (1 - red) * cr, y + 2 * (1 - blue) * cb
    g = (y - red * r - blue * b) / (1 - red - blue)
    return np.clip(255 * np.stack([r, g, b], 1), 0, 255)


# weights, AVColorSpace as H.273 numbers it (2: not told)
SPACES = {
    "709": (0.2126, 0.0722, 1),
    "not told": (0.299, 0.114, 2),
    "601": (0.299, 0.114, 6),
    "2020": (0.2627, 0.0593, 9),
}


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("space", SPACES)
def test_colors_are_those_of_the_formula(space, full):
    red, blue, code = SPACES[space]
    colors = [
        (16, 128, 128),
        (235, 128, 128),
        (81, 90, 240),
        (145, 54, 34),
        (41, 240, 110),
        (126, 128, 128),
        (180, 100, 150),
    ]
    content = io.BytesIO()
    with av.open(content, "w", format="matroska") as file:
        stream = file.add_stream("ffv1", rate=25, width=64, height=48, pix_fmt="yuv420p")
        stream.codec_context.colorspace, stream.codec_context.color_range = code, 2 if full else 1
        for color in colors:
            frame = av.VideoFrame(64, 48, "yuv420p")
            for plane, level in zip(frame.planes, color, strict=True):
                plane.update(bytes([level]) * plane.buffer_size)
            frame.colorspace, frame.color_range = code, 2 if full else 1
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    frames = VideoFile(content.getvalue()).read(np.arange(len(colors))).astype(int)
    assert (frames == frames[:, :1, :1]).all()
    assert np.abs(frames[:, 0, 0] - rgb_of(colors, red, blue, full)).max() <= 3


# -- what is refused ---------------------------------------------------------------------------------------------------


def refused(source, label="the film", match=r"the film"):
    for reading in (lambda video: video.frames, lambda video: video.read(0), lambda video: list(video.stream())):
        with pytest.raises(DataError, match=match) as found:
            reading(VideoFile(source, label))
        assert "\n" not in str(found.value)
        assert found.value.args[0].count("/") < 20


def test_what_is_no_video(tmp_path, mp4):
    refused(tmp_path / "none.avi", match="the film is missing")
    refused(tmp_path, match="the film is not a file")
    refused(b"")
    refused(bytes(5000))
    refused(os.urandom(5000))
    refused(b"RIFF\x10\0\0\0AVI LIST")


def test_sound_without_pictures():
    content = io.BytesIO()
    with av.open(content, "w", format="mp4") as file:
        stream = file.add_stream("aac", rate=44100, layout="mono")
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        sound.rate, sound.pts = 44100, 0
        file.mux(stream.encode(sound))
        file.mux(stream.encode())
    refused(content.getvalue(), match="contains no video stream")


def test_a_video_without_frames():
    content = io.BytesIO()
    with av.open(content, "w", format="avi") as file:
        file.add_stream("mpeg4", rate=25, width=64, height=48, pix_fmt="yuv420p")
        file.start_encoding()
    refused(content.getvalue(), match="no frame")


def test_play_lists_lead_nowhere(tmp_path, mp4):
    (tmp_path / "film.mp4").write_bytes(mp4)
    (tmp_path / "list.avi").write_text("ffconcat version 1.0\nfile film.mp4\n")
    (tmp_path / "other.avi").write_text("#EXTM3U\n#EXTINF:1,\nfilm.mp4\n#EXT-X-ENDLIST\n")
    refused(tmp_path / "list.avi")
    refused(tmp_path / "other.avi")


@pytest.mark.parametrize("name", ["a b#&(1).avi", "http:x.avi", "%03d.avi", "é.avi", "\udcff.avi"])
def test_names_are_names(tmp_path, avi, name):
    path = tmp_path / name
    path.write_bytes(avi)
    assert int(number_of(VideoFile(path).read(3))) == 3
    assert VideoFile(str(path)).frames == COUNT


def faststart(content, folder):
    """The same MP4 with its tables before its images."""
    path = folder / "fast.mp4"
    with av.open(io.BytesIO(content)) as whole, av.open(str(path), "w", options={"movflags": "faststart"}) as file:
        stream = file.add_stream_from_template(whole.streams.video[0])
        for packet in whole.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                file.mux(packet)
    return path.read_bytes()


def cut(content, mark, share):
    """The file up to a share of the chunk or box that holds the images."""
    at = content.index(mark)
    size = struct.unpack("<I" if mark == b"movi" else ">I", content[at - 4 : at])[0]
    return content[: at + int(share * size)]


@pytest.mark.parametrize("share", [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
def test_files_that_are_cut_off(tmp_path, avi, mp4, share):
    fast = faststart(mp4, tmp_path)
    assert VideoFile(fast).frames == COUNT
    for content, mark in ((avi, b"movi"), (mp4, b"mdat"), (fast, b"mdat")):
        with pytest.raises(DataError, match="the film"):
            VideoFile(cut(content, mark, share), "the film").frames  # noqa: B018
    whole = []
    with pytest.raises(DataError, match="truncated or damaged"):
        whole.extend(int(number_of(frame)) for _, frame in VideoFile(cut(avi, b"movi", share), "the film").stream())
    assert len(whole) > 10
    assert whole == list(range(len(whole)))


def test_a_size_that_changes():
    films = [encoded([numbered(1, 48, width)] * 3, "mpeg2video", "mpeg2video", g=1) for width in (96, 120)]
    with pytest.raises(DataError, match="changes from 96 × 48 to 120 × 48"):
        VideoFile(b"".join(films)).frames  # noqa: B018


def test_an_index_of_another_file(mp4):
    longer = VideoFile(made("libx264", "mp4", {"g": 12}, 60)).index
    with pytest.raises(DataError, match="ends before frame 55"):
        VideoFile(mp4, index=longer).read(55)


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize(
    "kind", ["mpeg4 with B frames in avi", "h264 with B frames in mp4", "h264, open groups, in mkv"]
)
def test_damaged_files(kind):
    content = made(*MADE[kind], count=12)

    def read(content):
        video = VideoFile(content)
        frames = video.read(np.arange(video.frames)[::-1])[::-1]
        assert len(video.times) == len(frames)
        assert video.rate > 0
        assert (np.diff(video.times) > 0).all()
        assert np.array_equal(frames, np.stack([frame for _, frame in VideoFile(content).stream()]))

    assert survives(content, read, 75, head=len(content) // 4) > 15


@pytest.mark.long("videos")
def test_nothing_is_printed(avi):
    damaged = "\n".join(f"bytes.fromhex({content.hex()!r})," for content in mutations(avi, 20, head=3000))
    code = (
        "from setsup.datasets.formats.video.frames import VideoFile\nfrom setsup.errors import SetsupError\n"
        f"for content in (\n{damaged}\n):\n    try:\n        VideoFile(content).read(0)\n"
        "    except SetsupError:\n        pass\n"
    )
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_without_pyav(avi, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(DataError, match=r"av is required but not installed: pip install '\.\[video\]' in"):
        VideoFile(avi).frames  # noqa: B018


# -- threads and processes ---------------------------------------------------------------------------------------------


def test_threads(mp4):
    video, expected, wrong = VideoFile(mp4), bare(mp4), []

    def work(seed):
        dice = np.random.default_rng(seed)
        for _ in range(15):
            asked = dice.integers(0, COUNT, 3)
            if not np.array_equal(video.read(asked), expected[asked]):
                wrong.append(asked)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_process_opens_it_anew(tmp_path, mp4):
    (tmp_path / "film.mp4").write_bytes(mp4)
    video = VideoFile(tmp_path / "film.mp4")
    assert int(number_of(video.read(3))) == 3
    child = os.fork()
    if not child:
        right = False
        try:
            right = number_of(video.read([9, 4, 45])).tolist() == [9, 4, 45]
        finally:
            os._exit(0 if right else 1)
    here = number_of(video.read([30, 4])).tolist()
    assert os.waitpid(child, 0)[1] == 0
    assert here == [30, 4]


def test_it_pickles_with_its_index(tmp_path, mp4):
    (tmp_path / "film.mp4").write_bytes(mp4)
    video = VideoFile(tmp_path / "film.mp4")
    assert video.frames == COUNT
    sent = pickle.dumps(video)
    assert len(sent) < len(mp4)
    there = pickle.loads(sent)
    assert there.index.keys.tolist() == video.index.keys.tolist()
    assert int(number_of(there.read(41))) == 41
