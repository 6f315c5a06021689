"""What CONTRIBUTING.md says of the tree is so: every package has its line, and every file that it sends to is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def _section(title: str) -> str:
    return TEXT.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_package_has_a_line() -> None:
    first = " ".join(_cells(line)[0] for line in _section("Architecture").splitlines() if line.startswith("| `"))
    missing = [
        path.name
        for path in sorted((ROOT / "setsup").iterdir())
        if (path.is_dir() and (path / "__init__.py").is_file()) or (path.suffix == ".py" and path.stem != "__init__")
        if not re.search(rf"(?<![\w/]){path.name}|setsup/{path.name}", first)
    ]
    assert not missing
    for folder in ("cli/setsup_cli/", "papers/setsup_papers/", "renderers/setsup_renderers/", "manifests/", "tests/"):
        assert f"`{folder}`" in first


def test_each_place_is_at_most_two_files_and_these_are_there() -> None:
    lines = [line for line in _section("Where is …").splitlines() if re.match(r"\|.*\.(py|yaml)`", line)]
    assert len(lines) == 16
    for line in lines:
        files = re.findall(r"`([\w/.-]+/[\w.-]+)`", line)
        assert 1 <= len(files) <= 2, line
        assert [file for file in files if not (ROOT / file).is_file()] == [], line
