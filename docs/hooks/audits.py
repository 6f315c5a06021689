"""Tables of the sampler audit, from what ``python -m benchmarks.sampler_audit`` kept."""

import json
import re
import runpy
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
shares = runpy.run_path(str(ROOT / "benchmarks" / "audit" / "summary.py"))["shares"]


@cache
def kept(path: Path) -> dict[str, Any]:
    """The results, as they were written."""
    return json.loads(path.read_text(encoding="utf-8"))


def own(path: Path) -> str:
    """Each sampler under its own promises."""
    found = kept(path)
    rows = [
        ["sampler", "ranks", "promise", "worst cell", "classes, skew, batch, ranks", "median", "refused"],
        ["---", "---", "---", "--:", "---", "--:", "--:"],
    ]
    for entry in _ordered(found):
        for name in entry["own"]:
            promise = f"[{found['promises'][name]['short']}](#promise-{name})"
            rows.append([_name(entry), entry["ranks"], promise, *_cells(shares(found, entry)[name])])
    return _table(rows)


def matrix(path: Path) -> str:
    """Each sampler under all promises of its family: worst cell and median."""
    found, parts = kept(path), []
    for family, names in found["families"].items():
        heads: dict[str, str] = {}
        for name in names:
            heads.setdefault(found["promises"][name]["short"], name)
        rows = [["sampler", "ranks", *heads], ["---", "---", *["--:"] * len(heads)]]
        for entry in _ordered(found):
            if entry["family"] == family:
                by_name = shares(found, entry)
                rows.append([_name(entry), entry["ranks"], *(_both(by_name[name]) for name in heads.values())])
        parts.append(f"### {family}\n\n{_table(rows)}")
    return "\n\n".join(parts)


def ours(path: Path) -> str:
    """Where samplers of setsup break what others promise."""
    found = kept(path)
    rows = [
        ["sampler", "promise of another", "worst cell", "classes, skew, batch, ranks", "median", "refused"],
        ["---", "---", "--:", "---", "--:", "--:"],
    ]
    for entry in _ordered(found):
        shown = {found["promises"][name]["short"] for name in entry["own"]}
        for name, share in shares(found, entry).items():
            short = found["promises"][name]["short"]
            if not _is_ours(entry["name"]) or name.startswith("ours") or short in shown or not share.worst > 0:
                continue
            shown.add(short)
            rows.append([_name(entry), f"[{short}](#promise-{name})", *_cells(share)])
    return _table(rows)


def promises(path: Path) -> str:
    """What is promised, where, and what is counted."""
    found = kept(path)
    rows = [["promise", "of", "what a batch must have"], ["---", "---", "---"]]
    versions = {name: entry["version"] for entry in reversed(found["lines"]) for name in entry["own"]}
    for names in found["families"].values():
        for name in names:
            promise = found["promises"][name]
            quote = f'<span id="promise-{name}">“{promise["says"].replace("``", "`")}”</span>'
            of = f"{versions[name]}: {promise['where']}" if name in versions else promise["where"]
            rows.append([quote, of, promise["means"]])
    return _table(rows)


def made(path: Path) -> str:
    """Versions and dates."""
    dates: dict[str, set[str]] = {}
    abouts: set[str] = set()
    for entry in kept(path)["lines"]:
        version = ", ".join(filter(None, (entry["version"], entry["dependency"])))
        dates.setdefault(version, set()).update(day for day, _ in entry["counted"])
        abouts |= {about for _, about in entry["counted"]}
    lines = [f"{version}, counted on {' and '.join(sorted(days))}" for version, days in sorted(dates.items())]
    return "\n".join(f"- {line}" for line in [*lines, *sorted(abouts)])


def left_out(path: Path) -> str:
    """What did not load, and why."""
    return "\n".join(f"- {name}: {why}" for name, why in kept(path)["left_out"].items()) or "- nothing"


def _ordered(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Samplers of others, then ours, in the order of the families."""
    families = list(found["families"])
    yield from sorted(found["lines"], key=lambda entry: (families.index(entry["family"]), _is_ours(entry["name"])))


def _is_ours(name: str) -> bool:
    return name.startswith("setsup ")


def _name(entry: dict[str, Any]) -> str:
    """Library, class as code, and options."""
    library, name, options = re.fullmatch(r"(.*?) ([A-Z]\w*)(.*)", entry["name"]).groups()
    return f"{library} `{name}`{options}"


def _cells(share: Any) -> list[str]:
    if not share.cells:
        return ["", "", "", "all"]
    place = share.worst_cell.replace(" ", ", ") if share.worst else ""
    return [percent(share.worst), place, percent(share.median), str(share.refused or "")]


def _both(share: Any) -> str:
    if not share.cells:
        return "refused"
    return percent(share.worst) if share.worst == share.median else f"{percent(share.worst)} / {percent(share.median)}"


def percent(share: float) -> str:
    """A share in words: 0 and 100 % only where they are exact."""
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %") if share else "0"
    return "< 0.1 %" if share < 0.001 else "> 99.9 %" if share > 0.999 else f"{100 * share:.3g} %"


def _table(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows)


BLOCKS: dict[str, Callable[[Path], str]] = {
    "own": own,
    "matrix": matrix,
    "ours": ours,
    "promises": promises,
    "made": made,
    "left_out": left_out,
}
