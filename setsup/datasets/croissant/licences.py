"""Licences as Croissant states them: by their address at SPDX where they have an identifier there, else by name."""

from collections.abc import Iterable
from typing import Any

from setsup.files import Licence

__all__ = ["describe_licence", "licence_nodes", "spdx"]

_CREATIVE_COMMONS = ("", "-SA", "-NC", "-ND", "-NC-SA", "-NC-ND")
_KNOWN = {
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "C-UDA-1.0",
    "CC0-1.0",
    "CDLA-Permissive-1.0",
    "CDLA-Permissive-2.0",
    "CDLA-Sharing-1.0",
    "GPL-2.0-only",
    "GPL-3.0-only",
    "LGPL-3.0-only",
    "MIT",
    "MPL-2.0",
    "ODbL-1.0",
    "ODC-By-1.0",
    "PDDL-1.0",
    "Unlicense",
    "Zlib",
    *(f"CC-BY{kind}-{number}" for kind in _CREATIVE_COMMONS for number in ("1.0", "2.0", "2.5", "3.0", "4.0")),
}
_BY_NAME = {
    **{name.lower(): name for name in _KNOWN},
    "cc0": "CC0-1.0",
    "zlib/libpng": "Zlib",
    "odbl": "ODbL-1.0",
    "pddl": "PDDL-1.0",
}


def spdx(name: str) -> str | None:
    """Identifier of a licence at SPDX, None where it has none.

    Examples
    --------
    >>> spdx("CC BY 4.0"), spdx("MIT (not verified)")
    ('CC-BY-4.0', None)

    """
    return _BY_NAME.get("-".join(name.lower().split())) or None


def describe_licence(licence: Licence) -> str:
    """Sentences on a licence beside its name, empty where there are none."""
    signed = f"To be signed before use: {licence.sign}" if licence.sign else ""
    return " ".join(filter(None, [licence.note, signed]))


def licence_nodes(licences: Iterable[Licence]) -> Any:
    """Value of ``license``: one node or several, None where nothing is known."""
    nodes = list(dict.fromkeys(licences))
    values = [_node(licence) for licence in nodes]
    return values[0] if len(values) == 1 else values or None


def _node(licence: Licence) -> Any:
    known = spdx(licence.name)
    address = licence.url if known is None else f"https://spdx.org/licenses/{known}"
    if known is not None and not (licence.note or licence.sign):
        return address
    described = describe_licence(licence)
    node = {"@type": "sc:CreativeWork", "name": licence.name}
    return node | ({"url": address} if address else {}) | ({"description": described} if described else {})
