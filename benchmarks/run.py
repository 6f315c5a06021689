"""What one run of the benchmarks found, kept in a file that is whole after every row."""

import json
from pathlib import Path
from typing import Any

from benchmarks.measure import Spread
from benchmarks.rows import Bound, Row
from setsup.files import written

__all__ = ["Run", "Unfinished"]


class Unfinished(Exception):
    """Raised by a topic that measured all that its time allowed: it goes on when it is run again."""


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
    resume : bool
        Keep what the file has of an earlier run, and add to it.

    """

    def __init__(
        self,
        path: Path | None,
        about: list[str],
        *,
        full: bool = False,
        shrunk: bool = False,
        resume: bool = False,
    ) -> None:
        self.path, self.about, self.full, self.shrunk = path, about, full, shrunk
        self.rows: list[Row] = []
        self.failed: dict[str, str] = {}
        self.unfinished: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.later: list[dict[str, str]] = []
        self._now = about
        self._earlier: set[tuple[str, str, str]] = set()
        if resume and path is not None and path.exists():
            self._read(path)
        self._write()

    def done(self, topic: str) -> bool:
        """Whether an earlier run measured all of a topic."""
        return topic in self.seconds and topic not in self.failed and topic not in self.unfinished

    def begin(self, topic: str) -> None:
        """Forget what an earlier run says of a topic that is measured again, but its rows until there are others."""
        for told in (self.seconds, self.failed, self.unfinished):
            told.pop(topic, None)
        if self._now != self.about:  # resumed on another machine, GPU, day or commit
            self.later.append({"topics": topic, "on": "; ".join(self._now)})

    def keep(self, row: Row) -> None:
        """Add a row, in the place of the one that an earlier run has of the same."""
        if (names := _names(row)) in self._earlier:
            self._earlier.remove(names)
            self.rows[[_names(one) for one in self.rows].index(names)] = row
        else:
            self.rows.append(row)
        self._write()

    def fail(self, topic: str, why: str) -> None:
        """Say that a topic did not come to its end."""
        self.failed[topic] = why
        self._write()

    def interrupt(self, topic: str, why: str) -> None:
        """Say that a topic goes on when it is run again."""
        self.unfinished[topic] = why
        self._write()

    def took(self, topic: str, seconds: float) -> None:
        """Say how long a topic took; when it is done, its rows that were not measured again are dropped."""
        self.seconds[topic] = round(seconds, 1)
        if self.done(topic):
            self.rows = [row for row in self.rows if row.topic != topic or _names(row) not in self._earlier]
        self._write()

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        rows = [row.to_dict() for row in self.rows]
        asked = {"full": self.full, **({"shrunk": True} if self.shrunk else {})}
        resumed: dict[str, Any] = {"unfinished": self.unfinished} if self.unfinished else {}
        resumed |= {"later": self.later} if self.later else {}
        return {"about": self.about, **asked, "seconds": self.seconds, "failed": self.failed, **resumed, "rows": rows}

    def _read(self, path: Path) -> None:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if (kept["full"], kept.get("shrunk", False)) != (self.full, self.shrunk):
            raise ValueError(f"{path} is of a run with other options; choose another --json")
        self.about, self.seconds, self.failed = kept["about"], kept["seconds"], kept["failed"]
        self.unfinished, self.later = kept.get("unfinished", {}), kept.get("later", [])
        self.rows = [_row(values) for values in kept["rows"]]
        self._earlier = set(map(_names, self.rows))

    def _write(self) -> None:
        if self.path is not None:
            with written(self.path) as part:
                part.write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _names(row: Row) -> tuple[str, str, str]:
    return row.topic, row.what, row.against


def _row(values: dict[str, Any]) -> Row:
    """The row that :meth:`Row.to_dict` described."""
    sign, _, value = (values["bound"] or "").partition(" ")
    held = {name: values[name] for name in ("topic", "what", "ours", "against", "other", "unit")}
    return Row(**held, figure=Spread(**values["figure"]), bound=Bound(sign, float(value)) if sign else None)
