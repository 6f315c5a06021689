import gzip
import hashlib
from pathlib import Path

import pytest

from setsup.errors import DataError
from setsup.files import content_digest


def test_published_digests_of_short_texts(tmp_path: Path) -> None:
    # FIPS 180-2, appendix B.1, and RFC 1321, appendix A.5
    file = tmp_path / "abc"
    file.write_bytes(b"abc")
    assert content_digest(file) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert content_digest(file, "md5") == "900150983cd24fb0d6963f7d28e17f72"


def test_packed_content(tmp_path: Path) -> None:
    body = bytes(range(256)) * 10_000
    file = tmp_path / "x.gz"
    file.write_bytes(gzip.compress(body, 1))
    expected = hashlib.sha256(body).hexdigest()
    assert content_digest(file, unpacked=True) == expected
    assert content_digest(file) == hashlib.sha256(file.read_bytes()).hexdigest()
    plain = tmp_path / "x"
    plain.write_bytes(body)
    assert content_digest(plain, unpacked=True) == expected
    seen: list[int] = []
    content_digest(file, unpacked=True, advance=lambda n=1, /: seen.append(n))
    assert sum(seen) == len(body)


@pytest.mark.parametrize("cut", [2, 9, 30, -9, -1])
def test_cut_off_gzip(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "x.gz"
    file.write_bytes(gzip.compress(bytes(range(256)) * 10)[:cut])
    with pytest.raises(DataError, match=r"x\.gz is truncated or damaged .*fetch it again"):
        content_digest(file, unpacked=True)


def test_every_changed_byte_of_a_gzip_is_an_error_or_another_digest(tmp_path: Path) -> None:
    body = bytes(range(100)) * 3
    whole = gzip.compress(body, mtime=0)
    file = tmp_path / "x.gz"
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            came = content_digest(file, unpacked=True)
        except DataError as error:
            came = str(error)
        # bytes 3 to 9 are flags, time and system, which are not the content
        assert came != hashlib.sha256(body).hexdigest() or 3 <= place <= 9
        assert "x.gz" in came or len(came) == 64


def test_a_bomb_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "x.gz"
    file.write_bytes(gzip.compress(bytes(50_000_000)))
    with pytest.raises(DataError, match="more than the expected 1,000 bytes"):
        content_digest(file, unpacked=True, limit=1000)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(DataError, match="cannot be read"):
            content_digest(path, unpacked=True)
