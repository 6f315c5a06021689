r"""The mark in what setsup writes for people, by which it is not taken for data.

A PNG carries it as a text chunk right behind its header, and ``draws.jsonl`` begins with its key. The mark goes with
the file, whatever its name and wherever it is copied.
"""

import io
import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["HEAD", "is_output", "mark_png", "marked_png"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BEFORE = len(_SIGNATURE) + 25  # bytes of a PNG up to the end of its header
_TEXT = b"tEXt" + b"Software\0setsup"
_CHUNK = struct.pack(">I", len(_TEXT) - 4) + _TEXT + struct.pack(">I", zlib.crc32(_TEXT))
_DRAWS = b'{"setsup": '

HEAD = _BEFORE + len(_CHUNK)
"""First bytes of a file that tell."""


def mark_png(content: bytes) -> bytes:
    r"""Put the mark into a PNG; its pixels stay as they are.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("L", (4, 3), 7).save(file, "PNG")
    >>> marked = mark_png(file.getvalue())
    >>> is_output(file.getvalue()), is_output(marked), Image.open(io.BytesIO(marked)).info
    (False, True, {'Software': 'setsup'})

    """
    return content[:_BEFORE] + _CHUNK + content[_BEFORE:]


def marked_png(image: "Image") -> bytes:
    """Encode an image as a PNG with the mark."""
    content = io.BytesIO()
    image.save(content, format="PNG")
    return mark_png(content.getvalue())


def is_output(head: bytes) -> bool:
    """Whether a file with these first bytes is a sheet, a chart or the draws of setsup."""
    return head.startswith(_DRAWS) or (head.startswith(_SIGNATURE) and head[_BEFORE:HEAD] == _CHUNK)
