"""Files that hosts of code, citation tools and conda read are valid, and say what the package says."""

import json
import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SCHEMAS = {
    "CITATION.cff": "citation-file-format",
    ".github/workflows/*.yml": "github-workflows",
    ".github/ISSUE_TEMPLATE/[!c]*.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "github-issue-config",
}
FILES = [(path, schema) for pattern, schema in SCHEMAS.items() for path in sorted(ROOT.glob(pattern))]


def loaded(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # "on" is a word there, not True


@pytest.mark.parametrize(("path", "schema"), FILES, ids=[path.name for path, _ in FILES])
def test_a_file_fits_the_published_schema(path: Path, schema: str) -> None:
    file = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{schema}.json"
    numbers = yaml.safe_load(path.read_text(encoding="utf-8"))
    if True in numbers:
        numbers["on"] = numbers.pop(True)
    jsonschema.validate(numbers, json.loads(file.read_text(encoding="utf-8")))


def test_the_citation_is_of_this_package() -> None:
    citation = loaded(ROOT / "CITATION.cff")
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]
    assert citation["keywords"] == PROJECT["keywords"]


def test_the_conda_recipe_has_the_requirements_of_the_core() -> None:
    recipe = loaded(ROOT / "conda" / "recipe.yaml")
    assert recipe["context"]["version"] == PROJECT["version"]
    needs = {re.sub(r"\s", "", line) for line in recipe["requirements"]["run"]}
    assert needs == {re.sub(r"\s", "", line) for line in PROJECT["dependencies"]} | {
        f"python{PROJECT['requires-python']}"
    }
    entry_points = recipe["build"]["python"]["entry_points"]
    assert entry_points == [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]


def test_workflows_try_each_python_that_the_package_names() -> None:
    release = loaded(ROOT / ".github" / "workflows" / "release.yml")
    named = [line.rpartition(":: ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert release["jobs"]["try"]["strategy"]["matrix"]["python"] == named


def test_jobs_have_a_limit_of_time_and_least_rights() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        workflow = loaded(path)
        assert workflow["permissions"] == {"contents": "read"}
        assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_actions_are_pinned_to_commits() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        steps = [step for job in loaded(path)["jobs"].values() for step in job["steps"]]
        actions = [step["uses"] for step in steps if "uses" in step]
        assert actions
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", action) for action in actions), path.name


def test_the_page_on_stability_cites_this_version() -> None:
    cited = re.findall(r"version = \{(.+?)\}", (ROOT / "docs" / "stability.md").read_text(encoding="utf-8"))
    assert cited == [PROJECT["version"]]


def test_no_file_names_an_address_of_the_project_before_there_is_one() -> None:
    if "urls" in PROJECT:
        pytest.skip("the project has a public address")
    for path in (*(path for path, _ in FILES), ROOT / "SECURITY.md", ROOT / "conda" / "recipe.yaml"):
        assert "github.com" not in path.read_text()
