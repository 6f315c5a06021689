import io
import itertools
import pickle
import threading
import time
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageOps

from setsup.datasets import images
from setsup.datasets.adapters.fetching import fetch_images
from setsup.datasets.adapters.image_sources import MemberImages, PackedImages
from setsup.datasets.images import decode, header, parallel
from setsup.errors import DataError
from setsup.files.archives.members import open_members
from tests.fuzzing import mutations, survives
from tests.traced import traced
from tests.true_files.toys import toy


def _photo(height, width, channels=3, seed=0):
    """Smooth with some noise, so that every block of a JPEG has something in it."""
    random = np.random.default_rng(seed)
    coarse = Image.fromarray(random.integers(0, 256, (6, 6, channels), dtype=np.uint8).squeeze())
    smooth = np.asarray(coarse.resize((width, height)), np.int16).reshape(height, width, channels)
    return (smooth + random.integers(-9, 10, smooth.shape)).clip(0, 255).astype(np.uint8)


def _packed(picture, kind, mode=None, **options):
    stream = io.BytesIO()
    image = Image.fromarray(picture.squeeze(2) if picture.shape[2] == 1 else picture)
    (image if mode is None else image.convert(mode)).save(stream, kind, **options)
    return stream.getvalue()


def _by_pillow(content, mode="RGB"):
    with Image.open(io.BytesIO(content)) as image:
        pixels = np.asarray(ImageOps.exif_transpose(image).convert(mode))
    return pixels.reshape(*pixels.shape[:2], -1)


def _exif(orientation):
    notes = Image.Exif()
    notes[0x0112] = orientation
    return notes.tobytes()


def _sampled(saved, size, sampling, claimed):
    """A JPEG of a sampling that Pillow does not write: blocks of another that come in the same order."""
    content = bytearray(_packed(_photo(*size), "JPEG", subsampling=saved))
    frame = content.find(b"\xff\xc0")
    content[frame + 5 : frame + 9] = b"".join(length.to_bytes(2, "big") for length in claimed)
    content[frame + 11] = sampling
    return bytes(content)


@pytest.fixture(params=[1, 8], ids=["one thread", "many threads"])
def threads(request, monkeypatch):
    monkeypatch.setattr(images, "threads", request.param)


@pytest.mark.usefixtures("threads")
class TestEqualToPillow:
    @pytest.mark.long("large or genuine files")
    @pytest.mark.parametrize("size", [(1, 1), (1, 9), (7, 1), (17, 23), (64, 48), (129, 127)])
    @pytest.mark.parametrize("channels", [1, 3])
    @pytest.mark.parametrize(
        "options",
        [
            {},
            *({"subsampling": sampling} for sampling in (0, 1, 2)),
            {"progressive": True, "subsampling": 2},
            {"optimize": True, "quality": 100},
            {"quality": 1},
            {"restart_marker_blocks": 1},
            {"dpi": (72, 72), "comment": b"a comment", "icc_profile": b"no profile"},
            {"keep_rgb": True},
        ],
        ids=str,
    )
    def test_jpeg(self, size, channels, options):
        content = _packed(_photo(*size, channels), "JPEG", **options)
        assert np.array_equal(decode(content, "x", 3), _by_pillow(content))
        if channels == 1:
            assert np.array_equal(decode(content, "x", 1), _by_pillow(content, "L"))

    @pytest.mark.parametrize(
        "content",
        [
            _sampled(1, (8, 16), 0x12, (16, 8)),
            _sampled(2, (16, 16), 0x41, (8, 32)),
            _sampled(2, (16, 16), 0x14, (32, 8)),
            _packed(_photo(20, 30), "JPEG", "CMYK"),
            _packed(_photo(20, 30), "MPO", save_all=True, append_images=[Image.new("RGB", (30, 20))]),
        ],
        ids=["4:4:0", "4:1:1", "4:4:1", "CMYK", "MPO"],
    )
    def test_rare_jpeg(self, content):
        assert np.array_equal(decode(content, "x", 3), _by_pillow(content))

    @pytest.mark.parametrize("orientation", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    @pytest.mark.parametrize("channels", [1, 3])
    def test_the_right_side_up(self, orientation, channels):
        content = _packed(_photo(21, 34, channels), "JPEG", exif=_exif(orientation))
        pixels = decode(content, "x", channels)
        assert np.array_equal(pixels, _by_pillow(content, "L" if channels == 1 else "RGB"))
        assert pixels.flags.c_contiguous
        found = header(content, "x")
        assert (found.height, found.width, found.channels) == pixels.shape

    @pytest.mark.parametrize("channels", [1, 3, 4])
    @pytest.mark.parametrize("size", [(1, 1), (5, 3), (64, 48), (129, 127)])
    def test_png(self, size, channels):
        picture = _photo(*size, channels)
        content = _packed(picture, "PNG")
        assert np.array_equal(decode(content, "x", channels), picture)
        assert np.array_equal(decode(content, "x", 3), _by_pillow(content))
        assert np.array_equal(decode(content, "x", 4), _by_pillow(content, "RGBA"))

    @pytest.mark.parametrize(
        "content",
        [
            *(_packed(_photo(9, 14), "PNG", mode) for mode in ("P", "1", "LA")),
            _packed(_photo(9, 14), "PNG", transparency=tuple(int(v) for v in _photo(9, 14)[0, 0])),
            _packed(_photo(9, 14), "PNG", dpi=(72, 72), exif=_exif(6)),
            _packed(_photo(9, 14), "GIF"),
            _packed(_photo(9, 14), "BMP"),
            _packed(_photo(9, 14), "WEBP", lossless=True),
            _packed(_photo(9, 14), "TIFF"),
        ],
        ids=["palette", "bits", "grey and alpha", "transparent colour", "notes", "GIF", "BMP", "WEBP", "TIFF"],
    )
    @pytest.mark.parametrize(("channels", "mode"), [(3, "RGB"), (4, "RGBA")])
    def test_other_files(self, content, channels, mode):
        with Image.open(io.BytesIO(content)) as image:
            pixels = decode(content, "x", channels)
            assert np.array_equal(pixels, np.asarray(image.convert(mode)))
        pixels[:] = 0  # belongs to whoever asked

    @pytest.mark.parametrize("kind", ["JPEG", "PNG"])
    @pytest.mark.parametrize("channels", [1, 3])
    @pytest.mark.parametrize("size", [(20, 20), (40, 16), (90, 120)])
    def test_resized(self, kind, channels, size):
        content = _packed(_photo(45, 60, channels), kind)
        with Image.open(io.BytesIO(content)) as image:
            fitted = np.asarray(ImageOps.fit(image, size[::-1], Image.Resampling.BICUBIC))
        assert np.array_equal(decode(content, "x", channels, size), fitted.reshape(*size, channels))


HEALTHY = {
    "colour": _packed(_photo(40, 56), "JPEG", quality=85),
    "grey": _packed(_photo(40, 56, 1), "JPEG"),
    "progressive": _packed(_photo(40, 56), "JPEG", progressive=True),
    "restarts": _packed(_photo(40, 56), "JPEG", restart_marker_rows=1),
    "turned": _packed(_photo(40, 56), "JPEG", exif=_exif(6)),
    "png": _packed(_photo(40, 56), "PNG"),
    "grey png": _packed(_photo(40, 56, 1), "PNG"),
    "toy": _packed(toy(0, 0.3, size=(40, 56), alpha=True), "PNG"),
    "palette": _packed(_photo(40, 56), "PNG", "P"),
}


@pytest.mark.usefixtures("threads")
class TestDamage:
    @pytest.mark.parametrize("kind", HEALTHY)
    def test_nothing_is_accepted_that_pillow_refuses(self, kind):
        accepted = 0
        for content in itertools.chain(
            mutations(HEALTHY[kind], 250, seed=1), mutations(HEALTHY[kind], 250, seed=2, head=30)
        ):
            try:
                pixels = decode(content, "x", 3)
            except DataError:
                continue
            accepted += 1
            assert np.array_equal(pixels, _by_pillow(content))
        assert accepted < 200

    @pytest.mark.parametrize("kind", HEALTHY)
    def test_wherever_a_file_is_cut_off(self, kind):
        content = HEALTHY[kind]
        for length in {*range(0, len(content), 1 + len(content) // 150), *range(len(content) - 12, len(content))}:
            with pytest.raises(DataError, match="x "):
                decode(content[:length], "x", 3)

    @pytest.mark.parametrize("kind", ["png", "grey png", "toy", "palette"])
    def test_every_bit_of_a_png_is_guarded(self, kind):
        content = bytearray(HEALTHY[kind])
        for at in range(8, len(content), 1 + len(content) // 200):
            content[at] ^= 4
            with pytest.raises(DataError):
                decode(bytes(content), "x", 3)
            content[at] ^= 4

    @pytest.mark.parametrize("kind", ["colour", "grey", "progressive"])
    def test_no_partly_grey_picture(self, kind):
        """Pillow gives what could be decoded, as long as there is some end of image."""
        content = HEALTHY[kind]
        cut = content[: len(content) * 2 // 3] + b"\xff\xd9"
        assert _by_pillow(cut).shape == (40, 56, 3)
        with pytest.raises(DataError, match="truncated or corrupt"):
            decode(cut, "x", 3)

    @pytest.mark.parametrize("kind", HEALTHY)
    def test_memory(self, kind):
        # what counts is what a lie about the size could cost: the picture itself is larger than its file
        assert survives(HEALTHY[kind], lambda content: decode(content, "x", 3), 60, times=1200, slack=1 << 21) > 20

    @pytest.mark.parametrize(
        ("width", "height", "sentence"),
        [(60000, 60000, "80,000,000|bytes cannot contain"), (5000, 9000, "cannot contain")],
    )
    @pytest.mark.parametrize("kind", ["colour", "png"])
    @pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
    def test_absurd_sizes(self, kind, width, height, sentence):
        import zlib

        content = bytearray(HEALTHY[kind])
        if kind == "png":
            content[16:24] = width.to_bytes(4, "big") + height.to_bytes(4, "big")
            content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, "big")
        else:
            frame = content.find(b"\xff\xc0")
            content[frame + 5 : frame + 9] = height.to_bytes(2, "big") + width.to_bytes(2, "big")
        with pytest.raises(DataError, match=sentence if images.threads == 1 else "x "):
            decode(bytes(content), "x", 3)

    @pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP"])
    def test_color_where_grey_was_asked_for(self, kind):
        with pytest.raises(DataError, match="x is a color image"):
            decode(_packed(_photo(4, 4), kind), "x", 1)

    def test_more_than_8_bits(self):
        content = _packed(_photo(4, 4, 1).astype(np.uint16), "PNG")
        with pytest.raises(DataError, match=r"x has pixels of mode I;16"):
            decode(content, "x", 3)


class TestSources:
    def test_path_bytes_and_function(self, tmp_path):
        picture = _photo(8, 9)
        content = _packed(picture, "PNG")
        (tmp_path / "a.png").write_bytes(content)
        for source in (tmp_path / "a.png", content, lambda: content):
            assert np.array_equal(decode(source, "x", 3), picture)
            assert header(source, "x").width == 9

    def test_what_a_source_raises(self, tmp_path):
        def refused():
            raise DataError("the archive is gone")

        def failed():
            raise OSError("bad\nsector")

        for call in (header, lambda *arguments: decode(*arguments, 3)):
            with pytest.raises(DataError, match="the archive is gone"):
                call(refused, "x")
            with pytest.raises(DataError, match=r"x could not be decoded: bad sector"):
                call(failed, "x")
            with pytest.raises(DataError, match="x is missing"):
                call(tmp_path / "none.png", "x")
            with pytest.raises(DataError, match="x could not be decoded"):
                call(tmp_path, "x")

    @pytest.mark.parametrize("packing", ["folder", "zip"])
    def test_members(self, tmp_path, packing):
        pictures = [_photo(12, 16, seed=seed) for seed in range(12)]
        (tmp_path / "release").mkdir()
        for number, picture in enumerate(pictures):
            (tmp_path / "release" / f"{number:02}.png").write_bytes(_packed(picture, "PNG"))
        source = tmp_path / "release"
        if packing == "zip":
            source = tmp_path / "release.zip"
            with zipfile.ZipFile(source, "w") as file:
                for path in sorted((tmp_path / "release").iterdir()):
                    file.write(path, path.name)
        members = open_members(source)
        order = [11, 3, 3, 0, *range(12)]
        kept = MemberImages(members, members.places([f"{number:02}.png" for number in order]))
        assert len(kept) == 16
        (read, label), _ = kept.take(np.array([1, 0]))
        assert np.array_equal(decode(read, label, 3), pictures[3])
        assert "03.png" in label
        assert "(row 1)" in label
        for rows in ([[0, 1], [2, 0]], [], 5, [[]], list(range(16)) * 2):
            rows = np.asarray(rows, np.int64)
            found = fetch_images(pickle.loads(pickle.dumps(kept)), rows, (12, 16, 3))
            expected = np.stack(pictures)[np.array(order)[rows]]
            assert np.array_equal(found, expected)
            out = np.zeros_like(expected)
            assert fetch_images(kept, rows, (12, 16, 3), out=out) is out
            assert np.array_equal(out, expected)
        assert fetch_images(kept, np.zeros((0, 2), np.int64), (None, None, 3)).shape == (0, 2, 0, 0, 3)

    def test_places_that_are_none(self, tmp_path):
        (tmp_path / "a.png").write_bytes(b"")
        members = open_members(tmp_path)
        for places in ([-1], [0, 1]):
            with pytest.raises(DataError, match="rows refer to positions"):
                MemberImages(members, places)
        assert len(MemberImages(members, [])) == 0


class TestParallel:
    def test_order_and_threads(self, monkeypatch):
        monkeypatch.setattr(images, "threads", 4)
        used = set()

        def slow(item):
            used.add(threading.get_ident())
            time.sleep(0.002 * (item % 3))
            return item * 2

        assert parallel(slow, range(100)) == list(range(0, 200, 2))
        assert 1 < len(used) <= 4
        assert parallel(slow, []) == []
        used.clear()
        parallel(slow, range(8))
        assert used == {threading.get_ident()}, "a few are not worth threads"
        monkeypatch.setattr(images, "threads", 1)
        parallel(slow, range(50))
        assert used == {threading.get_ident()}

    def test_the_first_failure_counts_and_ends_the_others(self, monkeypatch):
        monkeypatch.setattr(images, "threads", 4)
        for _ in range(20):
            called = []

            def fails(item, called=called):
                called.append(item)
                time.sleep(0.0001 * (item % 5))
                if item in (11, 12, 13):
                    raise DataError(f"item {item}")

            with pytest.raises(DataError, match="item 11"):
                parallel(fails, range(1000))
            assert len(called) < 100


@pytest.mark.parametrize(
    ("begin", "words"), [(b"", "is not a readable image"), (b"\x89PNG\r\n\x1a\n", "more than the")]
)
def test_what_a_small_zip_unpacks_to_is_looked_at_before_it_is_read_whole(tmp_path, begin, words, monkeypatch):
    monkeypatch.setattr("setsup.datasets.adapters.image_sources.MOST_BYTES", 30_000_000)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", begin + bytes(40_000_000))
    members = open_members(tmp_path / "x.zip")
    (((read, label),),) = (MemberImages(members, [0]).take(np.array([0])),)
    with traced():
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with pytest.raises(DataError, match=words):
            header(read, label)
        assert tracemalloc.get_traced_memory()[1] - before < 8_000_000


@pytest.mark.parametrize("kind", ["BMP", "TIFF", "PPM"])
def test_a_large_image_is_read(tmp_path, kind):
    pixels = np.zeros((2500, 2500, 3), np.uint8)
    pixels[7, 9] = 200, 100, 50
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"a.{kind.lower()}", _packed(pixels, kind))
    (((read, label),),) = (MemberImages(open_members(tmp_path / "x.zip"), [0]).take(np.array([0])),)
    np.testing.assert_array_equal(decode(read, label, 3), pixels)


def test_an_image_that_repeats_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("setsup.datasets.adapters.image_sources._MOST", 1 << 20)
    content = _packed(np.zeros((500, 500, 3), np.uint8), "BMP")
    with pq.ParquetWriter(tmp_path / "x.parquet", pa.schema([("image", pa.binary())]), compression="zstd") as writer:
        for _ in range(3):
            writer.write_table(pa.table({"image": pa.array([content] * 64, pa.binary())}))
    assert (tmp_path / "x.parquet").stat().st_size < 200_000
    with pytest.raises(DataError, match=r"requires more memory than the limit of .* bytes"):
        PackedImages(tmp_path / "x.parquet", "image").take(np.array([0]))
