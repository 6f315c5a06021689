"""No preset changes by accident: all its fields have the digest that is stored beside this file.

`python tests/experiments/test_preset_digests.py` writes the digests again, where a preset was changed on purpose.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from setsup.experiments import Preset, presets

STORED = Path(__file__).with_name("preset_digests.json")


def plain(value: Any) -> Any:
    """Fields of settings as JSON has them, with the name of their class; functions by their name."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {member.name: plain(getattr(value, member.name)) for member in fields(value)}
        return {"class": type(value).__qualname__, **found}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, str | int | float | bool | None):
        return value
    return getattr(value, "__qualname__", None) or type(value).__qualname__


def digest(preset: Preset) -> str:
    return sha256(json.dumps(plain(preset), sort_keys=True).encode()).hexdigest()[:16]


def test_presets_are_as_stored() -> None:
    stored = json.loads(STORED.read_text())
    found = {name: digest(preset) for name, preset in presets().items()}
    assert sorted(found) == sorted(stored)
    assert [name for name, value in found.items() if stored[name] != value] == []


if __name__ == "__main__":
    found = {name: digest(preset) for name, preset in sorted(presets().items())}
    STORED.write_text(json.dumps(found, indent=0) + "\n")
