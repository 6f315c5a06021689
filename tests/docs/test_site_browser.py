"""The site in a browser, opened from a folder: the search finds pages, and the buttons copy commands only."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.long("documented pages and examples"),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is here: apt install chromium"),
]

ROOT = Path(__file__).resolve().parents[2]
PAGE = """\
# First

```console
$ pip install setsup
$ setsup sample
sheet.png
```

```python
print("the end")
```
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A site of two pages, with the settings of the whole one."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    (folder / "docs").mkdir()
    for name in ("iframe-worker.js", "extra.css", "gallery.js"):
        shutil.copy(ROOT / "docs" / name, folder / "docs")
    (folder / "docs" / "index.md").write_text(PAGE)
    (folder / "docs" / "second.md").write_text("# Second\n\nA zebra.\n")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    settings = re.sub(r"(?s)(\nhooks:.*?)(?=\ntheme:)|\n  - mkdocstrings:.*?(?=\nvalidation:)|\nnav:.*", "", settings)
    (folder / "mkdocs.yml").write_text(settings)
    build(load_config(str(folder / "mkdocs.yml")))
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        opened = browser.new_page()
        opened.goto((folder / "site" / "index.html").as_uri())
        yield opened
        browser.close()


def test_the_search_finds_a_page(page: Any) -> None:
    page.click("input.md-search__input")
    page.keyboard.type("zebra")
    page.wait_for_selector("a.md-search-result__link")
    assert page.eval_on_selector("a.md-search-result__link", "link => link.href").split("?")[0].endswith("/second.html")


def test_a_button_copies_commands_without_prompts_and_output(page: Any) -> None:
    page.reload()
    copied = []
    for number in range(2):
        page.evaluate(f"document.querySelectorAll('[data-clipboard-target]')[{number}].click()")
        page.click("input.md-search__input")
        page.keyboard.press("Control+A")
        page.keyboard.press("Control+V")
        copied.append(page.input_value("input.md-search__input"))
    assert [text.split() for text in copied] == [
        ["pip", "install", "setsup", "setsup", "sample"],
        ['print("the', 'end")'],
    ]
