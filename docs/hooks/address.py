"""Where the site links to the repository: what ``[project.urls]`` of pyproject.toml says, if anything."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import setsup

__all__ = ["links", "version"]


def links(pyproject: Path) -> dict[str, Any]:
    """The settings of mkdocs for links to the repository and to the source of each page; none without an address."""
    urls = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"].get("urls", {})
    address = urls.get("Repository", "").rstrip("/")
    if not address:
        return {}
    return {"repo_url": address, "repo_name": "/".join(address.split("/")[-2:]), "edit_uri": "edit/main/docs/"}


def version(checkout: Path) -> str:
    """The version of setsup that the site documents, with the commit if the sources are a git checkout."""
    described = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=False
    )
    commit = f" ({described.stdout.strip()})" if described.returncode == 0 else ""
    return f"setsup {setsup.__version__}{commit}"
