"""Tables of the page on planning, as the example that simulates them gives them."""

import runpy
from functools import cache
from pathlib import Path
from typing import Any

_SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "plan_shards.py"


def table(name: str) -> str:
    """One of the example's tables, in Markdown."""
    script = _script()
    return str(script["markdown"](script["TABLES"][name]()))


@cache
def _script() -> dict[str, Any]:
    return runpy.run_path(str(_SCRIPT))
