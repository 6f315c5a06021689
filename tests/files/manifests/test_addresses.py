"""Addresses of all manifests: each says where it was seen, and none is alone without a reason."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from setsup.files import Manifest, ManifestFile, fetch, load_manifest, manifest_names
from setsup.files.manifests.hosts import host_of, list_hosts

WITH_FILES = [name for name in manifest_names() if any(file.urls for file in load_manifest(name).files)]


def all_urls(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Paths and addresses, also of files that lists name."""
    for file in (*manifest.files, *manifest.listed):
        for url in file.urls:
            yield file.path, url


def told(manifest: Manifest) -> str:
    """What a manifest says of its addresses, in one text."""
    assert manifest.addresses is not None, manifest.name
    return " ".join([manifest.addresses.known, *(text for _, text in manifest.addresses.sources)])


def test_many_manifests_are_swept() -> None:
    assert len(WITH_FILES) >= 45
    assert "video-orbits" in WITH_FILES  # that of a paper


@pytest.mark.parametrize("name", WITH_FILES)
class TestEveryManifest:
    def test_no_address_is_given_twice(self, name: str) -> None:
        urls = [url for _, url in all_urls(load_manifest(name))]
        assert len(urls) == len(set(urls))

    def test_an_address_is_https_or_a_reason_is_stated(self, name: str) -> None:
        manifest = load_manifest(name)
        if any(url.startswith("http:") for _, url in all_urls(manifest)):
            assert re.search(r"\bby http\b", told(manifest)), name

    def test_https_goes_first(self, name: str) -> None:
        for file in load_manifest(name).files:
            schemes = [url.partition(":")[0] for url in file.urls]
            assert schemes == sorted(schemes, reverse=True), file.path

    def test_every_host_says_where_it_was_seen_and_no_other(self, name: str) -> None:
        manifest = load_manifest(name)
        assert manifest.addresses is not None
        sources = dict(manifest.addresses.sources)
        assert set(sources) == {host_of(url) for _, url in all_urls(manifest)}
        assert all(len(text) >= 12 for text in sources.values())

    def test_a_file_has_a_size_or_a_digest_or_the_lack_is_stated(self, name: str) -> None:
        manifest = load_manifest(name)
        known = manifest.addresses.known if manifest.addresses else ""
        for file in manifest.files:
            if file.urls and not (file.size or file.sha256 or file.md5):
                assert re.search(r"\bdigest", known), file.path

    def test_a_file_without_a_second_address_says_that_none_was_found(self, name: str) -> None:
        manifest = load_manifest(name)
        known = manifest.addresses.known if manifest.addresses else ""
        for file in manifest.files:
            if len(file.urls) == 1:
                assert re.search(r"(?i)\bno other address\b", known), file.path

    def test_it_is_said_whether_the_hosts_were_contacted(self, name: str) -> None:
        manifest = load_manifest(name)
        assert manifest.addresses is not None
        known = manifest.addresses.known
        assert re.search(r"(?i)contacted|not tried|none was tried|was downloaded here", known), name


def test_hosts_stand_in_the_order_in_which_they_are_asked() -> None:
    files = (
        ManifestFile("a", urls=("https://one.org/a", "https://two.org/a")),
        ManifestFile("b", urls=("https://three.org:8443/b", "https://one.org/b")),
    )
    manifest = replace(load_manifest("mnist"), files=files)
    assert list_hosts(manifest) == {"one.org": ["a", "b"], "three.org:8443": ["b"], "two.org": ["a"]}
    assert list_hosts(replace(manifest, files=(ManifestFile("c"),))) == {}
    assert list(list_hosts(load_manifest("objectron"))) == ["raw.githubusercontent.com", "storage.googleapis.com"]


@pytest.mark.parametrize("name", ["fashion-mnist", "cifar10", "video-orbits"])
def test_every_later_address_is_asked_where_the_ones_before_fail(
    tmp_path: Path, mirror: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The files of a manifest, with small contents, from a server that has each under its last address only."""
    files, wanted = [], {}
    for number, file in enumerate(load_manifest(name).files):
        body = f"{name} {file.path}".encode()
        gone = [f"{mirror.url}/{number}/gone/{place}" for place in range(len(file.urls) - 1)]
        url = mirror.add(f"{number}/there", body)
        sha256 = hashlib.sha256(body).hexdigest()
        files.append(ManifestFile(file.path, urls=(*gone, url), size=len(body), sha256=sha256))
        wanted[file.path] = (body, [*gone, url])
    folder = fetch(replace(load_manifest(name), files=tuple(files), size=None), tmp_path)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    for path, (body, urls) in wanted.items():
        assert (folder / path).read_bytes() == body
        for url, following in pairwise(urls):
            assert f"{url} returned HTTP 404 Not Found; trying {following}" in said
    assert len(said) == sum(len(urls) - 1 for _, urls in wanted.values()) > 0
