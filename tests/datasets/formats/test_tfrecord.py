import struct

import numpy as np
import pytest

from setsup.datasets.formats.tfrecord import records as tfrecord
from setsup.datasets.formats.tfrecord.records import masked_crc32c, record_spans
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files.shapenet_renderings import crc32c, framed, masked

DATA = [b"", b"one", bytes(range(256)) * 3, b"\x00" * 1000]


# RFC 3720, B.4, and the check value of the catalogue of checksums
@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_checksums_are_the_published_ones(data, checksum):
    assert crc32c(data) == checksum
    (expected,) = struct.unpack("<I", masked(data))
    assert masked_crc32c(data) == expected
    assert expected == (((checksum >> 15) | (checksum << 17)) + 0xA282EAD8) % 2**32


def test_the_compiled_checksum_is_there():
    import google_crc32c

    assert google_crc32c.implementation == "c"


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_records(kind):
    content = b"".join(map(framed, DATA))
    spans = record_spans(kind(content), "file")
    assert spans.dtype == np.int64
    assert [content[start : start + length] for start, length in spans.tolist()] == DATA
    assert record_spans(kind(b""), "file").shape == (0, 2)


def test_a_wrong_bit_anywhere_is_noticed_and_its_record_named():
    content = b"".join(map(framed, DATA[:3]))
    starts = np.cumsum([0, *(len(framed(data)) for data in DATA[:3])])
    for at in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        number = int(np.searchsorted(starts, at, side="right")) - 1
        with pytest.raises(DataError, match=rf"^cars/0001\.tfrecord.*record {number}, which begins at byte"):
            record_spans(bytes(damaged), "cars/0001.tfrecord")


def test_the_sentences_give_record_and_byte():
    content = framed(b"x" * 1000) + framed(b"hello")
    with pytest.raises(
        DataError,
        match=r"^f is truncated: it ends after 1,030 bytes, inside record 1, which begins at byte 1,016; fetch",
    ):
        record_spans(content[:1030], "f")
    with pytest.raises(DataError, match=r"^f is truncated: it ends after 1,020 bytes, inside record 1"):
        record_spans(content[:1020], "f")
    wrong = bytearray(content)
    wrong[1016 + 12] ^= 1
    with pytest.raises(DataError, match=r"^f: the checksum of the data of record 1, which begins at byte 1,016, is"):
        record_spans(bytes(wrong), "f")
    wrong = bytearray(content)
    wrong[1016] ^= 1
    with pytest.raises(DataError, match=r"^f: the checksum of the length of record 1, which begins at byte 1,016"):
        record_spans(bytes(wrong), "f")
    with pytest.raises(
        DataError, match=r"^f: it is not a TFRecord file, or it is damaged: the checksum of the length of record 0"
    ):
        record_spans(b"\x1f\x8b" + content, "f")
    # a length that is right by its checksum is believed only as far as the file goes
    length = struct.pack("<Q", 2**63)
    with pytest.raises(DataError, match=r"inside record 0"):
        record_spans(length + masked(length) + bytes(100), "f")


def test_every_truncation_is_noticed():
    content = b"".join(map(framed, DATA[:3]))
    whole = {0, *np.cumsum([len(framed(data)) for data in DATA[:3]]).tolist()}
    for stop in range(len(content)):
        if stop not in whole:
            with pytest.raises(DataError, match="ends after"):
                record_spans(content[:stop], "f")


def test_damaged_files_are_refused_in_one_sentence():
    content = b"".join(map(framed, [bytes(range(200)), b"short", b"", bytes(300)]))
    assert survives(content, lambda data: record_spans(data, "f"), 300) > 250


def test_without_the_compiled_part_it_says_so_and_is_right(monkeypatch, caplog):
    import google_crc32c

    monkeypatch.setattr(google_crc32c, "implementation", "python")
    monkeypatch.setattr(google_crc32c, "value", crc32c)
    tfrecord._crc32c.cache_clear()
    try:
        assert len(record_spans(framed(b"one") + framed(b"two"), "f")) == 2
        assert caplog.messages[0].startswith("google-crc32c was installed without its compiled extension")
        assert len(caplog.messages) == 1
    finally:
        tfrecord._crc32c.cache_clear()
