"""Hosts of the addresses of a benchmark."""

from urllib.parse import urlsplit

from setsup.files.manifests.manifest import Manifest

__all__ = ["host_of", "list_hosts"]


def host_of(url: str) -> str:
    """Host of an address, with its port, if any."""
    return urlsplit(url).netloc


def list_hosts(manifest: Manifest) -> dict[str, list[str]]:
    """List the hosts in the order in which they are asked, each with the paths of the files that it has."""
    files = [(file.path, file.urls) for file in manifest.files]
    files += [(file.path, file.urls) for file in manifest.listed]
    found: dict[str, list[str]] = {}
    for place in range(max((len(urls) for _, urls in files), default=0)):
        for path, urls in files:
            if place < len(urls) and path not in (paths := found.setdefault(host_of(urls[place]), [])):
                paths.append(path)
    return found
