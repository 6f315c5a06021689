"""What one run of the benchmarks found, kept in a file that is whole after every row."""

import json
from pathlib import Path
from typing import Any

from benchmarks.rows import Row
from setsup.files import written

__all__ = ["Run"]


class Run:
    """Rows, times and failures of a run.

    Parameters
    ----------
    path : Path or None
        Where it is kept; None for nowhere.
    about : list of str
        The machine and the versions.
    full, shrunk : bool
        What was asked for.

    """

    def __init__(self, path: Path | None, about: list[str], *, full: bool = False, shrunk: bool = False) -> None:
        self.path, self.about, self.full, self.shrunk = path, about, full, shrunk
        self.rows: list[Row] = []
        self.failed: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self._write()

    def keep(self, row: Row) -> None:
        """Add a row."""
        self.rows.append(row)
        self._write()

    def fail(self, topic: str, why: str) -> None:
        """Say that a topic did not come to its end."""
        self.failed[topic] = why
        self._write()

    def took(self, topic: str, seconds: float) -> None:
        """Say how long a topic took."""
        self.seconds[topic] = round(seconds, 1)
        self._write()

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        rows = [row.to_dict() for row in self.rows]
        asked = {"full": self.full, **({"shrunk": True} if self.shrunk else {})}
        return {"about": self.about, **asked, "seconds": self.seconds, "failed": self.failed, "rows": rows}

    def _write(self) -> None:
        if self.path is not None:
            with written(self.path) as part:
                part.write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
