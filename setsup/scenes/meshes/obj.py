"""What must be known of a Wavefront OBJ file before a mesh library reads it: that its numbers are sound.

Convention
----------
Faces count vertices from 1, or backwards from −1.
"""

import re

import numpy as np
import numpy.typing as npt

from setsup.files.numbers import numbers, refuse

__all__ = ["checked_obj"]

_FORMS = (b"d", b"d/d", b"d//d", b"d/d/d")


def checked_obj(content: bytes, label: str) -> tuple[str, int]:
    r"""Check an OBJ file."""
    if b"\0" in content:
        refuse(label, "holds zero bytes, so it is not an OBJ file")
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\\\n", b" ")
    counts = [_vectors(content, name, least, label) for name, least in ((b"v", 3), (b"vt", 1), (b"vn", 3))]
    if not counts[0]:
        refuse(label, "is no OBJ file with vertices")
    faces = b"\n".join(re.findall(rb"^[ \t]*f[ \t]+([^#\n]*)", content, re.MULTILINE))
    if not faces:
        refuse(label, "has no faces")
    forms = _forms(faces, label)
    first = re.search(rb"^[ \t]*f[ \t]", content, re.MULTILINE)
    if b"-" in faces and first and re.search(rb"^[ \t]*v[ \t]", content[first.start() :], re.MULTILINE):
        refuse(label, "counts vertices backwards before the last one, which is not supported")
    for place, (count, what) in enumerate(zip(counts, ("vertex", "texture coordinate", "normal"), strict=True)):
        _check_range(_indices(faces, place, label), count, what, label)
    corners = np.array([len(face.split()) for face in faces.split(b"\n")])
    if corners.min() < 3:
        refuse(label, "has a face of fewer than three corners")
    if {b"d/d", b"d//d"} <= forms:
        # a reader that counts numbers cannot tell these two apart
        content = re.sub(rb"^[ \t]*f[ \t][^\n]*", lambda line: re.sub(rb"//[0-9-]+", b"", line[0]), content, flags=re.M)
    return content.decode("utf-8", "replace"), int((corners - 2).sum())


def _vectors(content: bytes, name: bytes, least: int, label: str) -> int:
    """Count lines of vectors, whose numbers must be finite."""
    lines = re.findall(rb"^[ \t]*" + name + rb"[ \t]+([^#\n]*)", content, re.MULTILINE)
    values = numbers(b"\n".join(lines), label)
    if any(len(line.split()) < least for line in lines) or not np.isfinite(values).all():
        refuse(label, f"has a line {name.decode()!r} without {least} finite numbers")
    return len(lines)


def _forms(faces: bytes, label: str) -> set[bytes]:
    if faces.translate(None, b"0123456789+-/ \t\n"):
        refuse(label, "has a face that does not consist of integers")
    forms = set(re.sub(rb"[-+]?[0-9]+", b"d", faces).split())
    if not forms <= set(_FORMS):
        refuse(label, f"has a face with a corner like {min(forms - set(_FORMS))[:20]!r}, where d stands for a number")
    return forms


def _indices(faces: bytes, place: int, label: str) -> npt.NDArray[np.float64]:
    """Numbers that stand at a place of the corners, for those that have one there."""
    if place == 0:
        return numbers(re.sub(rb"/[^ \t\n]*", b"", faces), label)
    if place == 1:
        return numbers(b" ".join(re.findall(rb"[0-9]/([-+]?[0-9]+)", re.sub(rb"//[-+]?[0-9]+", b"", faces))), label)
    return numbers(b" ".join(re.findall(rb"/[-+]?[0-9]*/([-+]?[0-9]+)", faces)), label)


def _check_range(indices: npt.NDArray[np.float64], count: int, what: str, label: str) -> None:
    wrong = (indices == 0) | (np.abs(indices) > count)
    if wrong.any():
        refuse(label, f"has {count:,} of {what}, but a face names number {indices[int(np.argmax(wrong))]:.0f}")
