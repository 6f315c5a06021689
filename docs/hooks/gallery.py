"""The gallery of datasets: a card for each manifest, which docs/gallery.js filters."""

import illustrations

from setsup.files import Manifest, load_manifest, manifest_names, readable_size

OWN = "table"  # stands for the user's own files and has a page by hand
SHOWN = 6
ALT = {
    "from the dataset": "Eight images of {name}",
    "rendered by setsup": "Eight images of {name}",
    "drawn by setsup": "Eight drawings in the format of {name}",
}
CAPTIONS = {
    "from the dataset": "Images of the dataset, from its repository.",
    "rendered by setsup": "Rendered by setsup.",
    "drawn by setsup": (
        "Drawn by setsup's tests in the format of the dataset and read by its adapter: these are not its images."
    ),
}
OPEN = ("Apache-2.0", "CC BY 4.0", "MIT", "zlib/libpng")


def gallery() -> str:
    """Cards of all datasets."""
    cards = "\n\n".join(card(load_manifest(name)) for name in manifest_names())
    return f'<div class="gallery" markdown>\n\n{cards}\n\n</div>'


def card(manifest: Manifest) -> str:
    """One dataset: an image, its name, how much there is, the licence, the factors."""
    page = "own.md" if manifest.name == OWN else f"{manifest.name}.md"
    source = illustrations.origin(manifest.name)
    names = [factor.name for factor in manifest.factors]
    data = {
        "name": f"{manifest.name} {manifest.title}".lower(),
        "factors": " ".join(names),
        "samples": manifest.samples or "",
        "fetch": _fetch(manifest),
        "licence": licence_kind(manifest),
    }
    attributes = " ".join(f'data-{key}="{value}"' for key, value in data.items())
    return (
        f'<article class="dataset" {attributes} markdown>\n\n'
        f"[{image(manifest.name)}]({page}){{ tabindex=-1 }}\n\n"
        f"{source}\n{{ .origin }}\n\n"
        f"[`{manifest.name}`]({page})\n{{ .name }}\n\n"
        f"{manifest.title}<br>{amount(manifest)}<br>Licence: {manifest.licence.name}\n\n"
        f"{_factors(manifest)}\n{{ .factors }}\n\n</article>"
    )


def image(name: str, above: str = "..") -> str:
    """Image of a dataset, in Markdown."""
    alt = ALT[illustrations.origin(name)].format(name=name)
    width, height = illustrations.SIZE
    return f"![{alt}]({above}/images/datasets/{name}.webp){{ width={width} height={height} loading=lazy }}"


def figure(name: str) -> str:
    """Image of a dataset with what it shows, for its page."""
    return f"{image(name)}\n\n{CAPTIONS[illustrations.origin(name)]}\n{{ .caption }}"


def amount(manifest: Manifest) -> str:
    """How many samples there are, and how much is to be fetched."""
    if manifest.name == OWN:
        return "as many samples as you have"
    samples = f"{manifest.samples:,} samples" if manifest.samples is not None else "samples as the files"
    if not manifest.files:
        return f"{samples}, nothing to fetch"
    return f"{samples}, {readable_size(manifest.size) if manifest.size else 'size not stated'}"


def licence_kind(manifest: Manifest) -> str:
    """What a licence allows, roughly: ``open``, ``research``, ``signed``, ``unstated`` or ``own``."""
    name = manifest.licence.name
    if manifest.licence.sign:
        return "signed"
    if name in OPEN:
        return "open"
    if name.startswith("not stated") or "not verified" in name:
        return "unstated"
    return "own" if manifest.name in (OWN, "video-orbits") else "research"


def _fetch(manifest: Manifest) -> str:
    if not manifest.files:
        return "nothing"
    return "unstated" if not manifest.size else "small" if manifest.size < 1_000_000_000 else "large"


def _factors(manifest: Manifest) -> str:
    names = [factor.name for factor in manifest.factors if factor.role == "variation"]
    if not names:
        return "the factors of your table"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(f"`{name}`" for name in names[:SHOWN]) + more
