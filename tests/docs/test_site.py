"""What the build of the site makes of manifests, names and extras, and what it refuses."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.files import load_manifest, manifest_names

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.usefixtures("hooks")


def test_every_dataset_has_a_card_with_what_the_filters_read() -> None:
    import gallery

    cards = re.findall(r"<article class=\"dataset\" (.*?) markdown>(.*?)</article>", gallery.gallery(), re.DOTALL)
    for name, (attributes, text) in zip(manifest_names(), cards, strict=True):
        manifest, data = load_manifest(name), dict(re.findall(r'data-(\w+)="([^"]*)"', attributes))
        assert data["factors"].split() == [factor.name for factor in manifest.factors]
        assert data["samples"] == str(manifest.samples or "")
        assert data["fetch"] in ("nothing", "small", "large", "unstated")
        assert f"Licence: {manifest.licence.name}" in text
        assert len(re.findall(r"(?:drawn|rendered) by setsup|from the dataset", text)) == 1
    script = (DOCS / "gallery.js").read_text()
    assert all(f'["{kind}", ' in script for kind in ("nothing", "small", "large", "unstated"))
    kinds = {name: gallery.licence_kind(load_manifest(name)) for name in manifest_names()}
    assert all(f'["{kind}", ' in script for kind in kinds.values())
    wanted = {"shapes3d": "open", "dsprites": "open", "celeba": "research", "multi-pie": "signed", "mnist": "unstated"}
    assert {name: kinds[name] for name in wanted} == wanted


def test_only_images_that_may_be_shown_are_genuine() -> None:
    import illustrations

    genuine = [name for name in manifest_names() if illustrations.origin(name) == "from the dataset"]
    assert genuine == ["shapes3d"]
    assert load_manifest("shapes3d").licence.name == "Apache-2.0"


@pytest.mark.parametrize("name", ["mnist", "shapes3d-procedural", "table"])
def test_the_images_of_the_gallery_can_be_made_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import illustrations

    monkeypatch.syspath_prepend(str(ROOT))
    made = np.asarray(illustrations.illustration(name).convert("RGB"), float)
    with Image.open(illustrations.FOLDER / f"{name}.webp") as opened:
        found = np.asarray(opened.convert("RGB"), float)
    # compressed with a loss
    assert np.abs(made - found)[np.asarray(opened.convert("RGBA"))[..., 3] == 255].mean() < 8


def test_the_page_of_setsup_lists_every_public_name_with_a_link_to_its_documentation() -> None:
    import public

    text = public.names()
    rows = dict(re.findall(r"^\| \[`(\w+)`\]\(([^)]*)\) \| \S.*\.? \|$", text, re.MULTILINE))
    assert {*rows, "__version__"} == {*setsup.__all__, "open"}
    for name, link in rows.items():
        page, _, path = link.partition("#")
        documented = (DOCS / "api" / page).read_text() if page else text
        assert f"::: {path}\n" in f"{documented}\n", name


def test_every_name_of_a_split_part_of_the_reference_is_a_click_from_its_first_page() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("lightning", reason="lightning is not installed")
    import reference

    for folder in ("benchmarks", "evaluation", "experiments", "papers"):
        listed = reference.contents(folder)
        assert f"<!-- setsup: contents {folder} -->" in (DOCS / "api" / folder / "index.md").read_text()
        for path, page in reference.documented().items():
            if page.startswith(f"{folder}/") and not page.endswith("index.md"):
                assert f"]({page.partition('/')[2]}#{path}" in listed, path
    assert "[`directed_loss`](abc.md#setsup_papers.abc.losses.directed_loss)" in listed
    assert "[`abc_pose.open`](abc-lookup.md#setsup_papers.abc.pose.datasets.abc_pose.open)" in listed


def test_a_page_shrinks_and_shows_the_same() -> None:
    import shrink

    page = (
        '<ul>\n\n  <li>\n    <code><span title="setsup.optional">optional</span></code>\n</li></ul>\n'
        '<pre><code>a =\n\n    <span class="n">b</span><span class="p">(</span><span class="p">)</span></code></pre>\n'
        '<script>{"a":\n\n  "b"}</script>\n<textarea>\n\n  text</textarea>\n\n'
    )
    assert shrink.on_post_page(page) == (
        "<ul>\n<li>\n<code>optional</code>\n</li></ul>\n"
        '<pre><code>a =\n\n    b<span class="p">()</span></code></pre>\n'
        '<script>{"a":\n\n  "b"}</script>\n<textarea>\n\n  text</textarea>\n'
    )


def test_the_page_of_setsup_documents_a_name_that_no_other_page_has(monkeypatch: pytest.MonkeyPatch) -> None:
    import public

    monkeypatch.setattr(public, "_documented", dict)
    text = public.names()
    assert "| [`load`](#setsup.load) | Open a benchmark by its name; nothing is ever downloaded. |" in text
    assert "\n::: setsup.load" in text


def test_the_install_page_has_every_extra() -> None:
    import extras

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    table = extras.table()
    for name in {*project["optional-dependencies"]} - {"all", "docs", "dev"}:
        assert f"| `{name}` | `" in table, name
    assert "`pip install timm`" in table


def test_the_site_links_to_the_repository_once_it_has_an_address(tmp_path: Path) -> None:
    import address

    (tmp_path / "pyproject.toml").write_text('[project]\nname = "setsup"\n')
    assert address.links(tmp_path / "pyproject.toml") == {}
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "setsup"\n[project.urls]\nRepository = "https://code.example.org/team/setsup/"\n'
    )
    assert address.links(tmp_path / "pyproject.toml") == {
        "repo_url": "https://code.example.org/team/setsup",
        "repo_name": "team/setsup",
        "edit_uri": "edit/main/docs/",
    }


def test_the_sidebar_of_a_tab_shows_at_most_forty_entries_at_first() -> None:
    import pages
    from mkdocs.utils.yaml import yaml_load

    def shown(entries: list[Any], depth: int = 0) -> int:
        """Entries of a tab and of its sections; what lies deeper is folded."""
        groups = [next(iter(entry.values())) for entry in entries if isinstance(entry, dict)]
        return len(entries) + sum(shown(group, depth + 1) for group in groups if isinstance(group, list) and depth < 1)

    with (ROOT / "mkdocs.yml").open(encoding="utf-8") as file:
        config = yaml_load(file)
    groups = pages.by_initials(pages.cards.names())
    assert [name for _, names in groups for name in names] == sorted(pages.cards.names())
    for tab in config["nav"]:
        (entries,) = tab.values()
        if isinstance(entries, list):
            folded = [{title: []} for title, _ in groups]
            filled = [{"Benchmarks": folded} if entry == {"Benchmarks": []} else entry for entry in entries]
            assert shown(filled) <= 40, tab


@pytest.mark.long("documented pages and examples")
@pytest.mark.parametrize("urls", ["", '[project.urls]\nRepository = "https://code.example.org/team/setsup"\n'])
def test_a_page_shows_the_version_and_links_to_its_source(
    urls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import address
    import pages
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# A page\n")
    (tmp_path / "pyproject.toml").write_text(f"[project]\n{urls}")
    (tmp_path / "mkdocs.yml").write_text("site_name: setsup\ntheme: {name: material, font: false, features: []}\n")
    config = load_config(str(tmp_path / "mkdocs.yml"), nav=[{"Datasets": [{"Benchmarks": []}]}])
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages.cards, "names", list)
    config = pages.on_config(config)
    config.nav = None
    build(config)
    page = (tmp_path / "site" / "index.html").read_text()
    assert address.version(tmp_path) in page
    assert ("https://code.example.org/team/setsup/edit/main/docs/index.md" in page) == bool(urls)


def site(folder: Path, entries: list[tuple[str, str, str]], page: str = "<p>") -> Path:
    """A site as mkdocs writes it: an index of pages, titles and texts, and one page."""
    (folder / "search").mkdir()
    docs = [{"location": place, "title": title, "text": text} for place, title, text in entries]
    (folder / "search" / "search_index.json").write_text(json.dumps({"docs": docs}))
    (folder / "a.html").write_text(page)
    return folder


def test_the_search_prefers_titles_and_many_mentions() -> None:
    import built

    entries = [
        {"location": "changelog.html", "title": "conda", "text": "conda conda"},
        {"location": "speed.html", "title": "Speed", "text": "A word about conda."},
        {"location": "many.html#x", "title": "Else", "text": "<p>conda</p> and conda, conda"},
        {"location": "install.html#conda", "title": "conda and uv", "text": "An environment"},
        {"location": "none.html", "title": "miniconda", "text": "condaforge"},
    ]
    assert built.ranked(entries, "Conda") == ["install", "many", "speed"]
    assert built.ranked(entries, "conda environment") == ["install"]
    boosted = [*entries, {"location": "b.html", "title": "B", "text": "conda", "boost": 9}]
    assert built.ranked(boosted, "conda")[0] == "b"


def test_a_site_that_loads_from_elsewhere_or_hides_a_page_or_has_a_large_one_is_refused(tmp_path: Path) -> None:
    import built
    from mkdocs.exceptions import PluginError

    entries = [(f"{pages[0]}.html", words, words) for words, pages in built.WANTED.items()]
    folder = site(tmp_path, entries, '<link href="https://a.example/font.css"><a href="https://b.example">')
    with pytest.raises(PluginError, match=r"^a.html loads <link href=\"https://$"):
        built.on_post_build({"site_dir": str(folder)})
    (folder / "a.html").write_text('<script src="assets/a.js"></script><a href="https://b.example">')
    built.on_post_build({"site_dir": str(folder)})
    (folder / "api").mkdir()
    (folder / "api" / "long.html").write_text("a" * 300_001)
    with pytest.raises(PluginError, match=r"^api/long.html has 300 kB; expected at most 300: split it$"):
        built.on_post_build({"site_dir": str(folder)})
    (folder / "api" / "long.html").write_text("a" * 300_000)
    built.on_post_build({"site_dir": str(folder)})
    without = [entry for entry in entries if entry[1] != "conda"]
    (tmp_path / "other").mkdir()
    with pytest.raises(PluginError, match=r"^the search for 'conda' finds nothing, not install$"):
        built.on_post_build({"site_dir": str(site(tmp_path / "other", without))})


def test_pages_say_below_each_mark_what_the_built_page_shows_there() -> None:
    import notices

    marks = 0
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        place = page.relative_to(DOCS).as_posix()
        assert notices.with_notices(text, page) == text, f"docs/{place}: run `python docs/hooks/notices.py`"
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if line.startswith("<!-- setsup: "):
                marks += 1
                assert lines[number + 1].startswith("> The built page shows "), f"docs/{place}, line {number + 2}"
        for link in re.findall(r"^> .*?\]\((.*?)\)", text, re.MULTILINE):
            assert (page.parent / link).exists(), f"docs/{place}: {link}"
    assert marks > 90


@pytest.mark.long("documented pages and examples")
def test_a_built_page_has_the_part_in_place_of_the_sentence_about_it() -> None:
    import notices
    import pages

    assert set(pages.BLOCKS) == {*notices._COMMANDS, *notices._PARTS, "include", "part"}
    text = (DOCS / "install.md").read_text(encoding="utf-8")
    built = pages.on_page_markdown(text)
    assert "The built page shows" in text
    assert "The built page shows" not in built
    assert "| `torch`, `kornia` |" in built
