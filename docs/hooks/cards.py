"""Pages of datasets, made of their manifests."""

import gallery
import pictures
import reference

from setsup.files import (
    Manifest,
    ManifestFactor,
    ManifestFile,
    ManifestModality,
    ManifestSplit,
    load_manifest,
    manifest_names,
    readable_size,
)
from setsup.files.manifests.hosts import list_hosts

_LEVELS = 16
_ALTERNATIVES = 4


def names() -> list[str]:
    """Datasets that get a page."""
    return [name for name in manifest_names() if name != gallery.OWN]


def page(name: str) -> str:
    """Page of one dataset."""
    manifest = load_manifest(name)
    parts = [
        f"# {name}",
        f"**{manifest.title}.** {manifest.description}",
        _facts(manifest),
        *_picture(manifest),
        *_modalities(manifest),
        "## Factors",
        _factors(manifest.factors),
        *_splits(manifest),
        "## How to get it",
        _getting(manifest),
        *_files(manifest),
        "## Licence",
        _licence(manifest),
        *_citation(manifest),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(manifest: Manifest) -> str:
    rows = ["| | |", "|---|---|"]
    if manifest.samples is not None:
        rows.append(f"| rows | {manifest.samples:,} |")
    elif manifest.samples_vary:
        rows.append(f"| rows | not fixed: {_cell(manifest.samples_vary)} |")
    if not _described(manifest):
        for modality in manifest.modalities:
            about = ", ".join(filter(None, [_shape(modality), modality.unit]))
            rows.append(f"| `{modality.name}` | {about} |")
    if manifest.size:
        rows.append(f"| to fetch | {readable_size(manifest.size)} |")
    if manifest.homepage:
        rows.append(f"| home | <{manifest.homepage}> |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    """Text of a manifest in a cell: <class> is a word and not a tag."""
    return text.replace("<", "&lt;").replace("|", "&#124;")


def _described(manifest: Manifest) -> bool:
    return any(modality.description for modality in manifest.modalities)


def _shape(modality: ManifestModality) -> str:
    shape = " × ".join("any" if length is None else str(length) for length in modality.shape)
    return ", ".join(filter(None, [f"{shape} {modality.dtype}".strip(), modality.color]))


def _modalities(manifest: Manifest) -> list[str]:
    """What a sample holds, where the manifest says more than shapes."""
    if not _described(manifest):
        return []
    rows = ["| modality | shape and type | unit | description |", "|---|---|---|---|"]
    for modality in manifest.modalities:
        rows.append(f"| `{modality.name}` | {_shape(modality)} | {modality.unit} | {_cell(modality.description)} |")
    return ["## What a sample contains", "\n".join(rows)]


def _picture(manifest: Manifest) -> list[str]:
    if manifest.name in pictures.PICTURES:
        return [f"![Rows of {manifest.name}](../pictures/{manifest.name}.png){{ .sheet }}"]
    return [gallery.figure(manifest.name)]


def _factors(factors: tuple[ManifestFactor, ...]) -> str:
    rows = ["| factor | kind | levels | values | unit | description |", "|---|---|--:|---|---|---|"]
    for factor in factors:
        values = ""
        if isinstance(factor.levels, tuple):
            shown = ", ".join(str(level) for level in factor.levels[:_LEVELS])
            values = shown + (", …" if len(factor.levels) > _LEVELS else "")
        kind = factor.kind if factor.role == "variation" else f"{factor.kind} ({factor.role})"
        kind += f", within `{factor.within}`" if factor.within else ""
        unit = factor.unit + (f", period {factor.period:g}" if factor.period else "")
        count = "" if factor.count is None else f"{factor.count:,}"
        # a description in place of the values spells them
        text = _cell(factor.description)
        values, text = (values, text) if values else (text, "")
        rows.append(f"| `{factor.name}` | {kind} | {count} | {values} | {unit} | {text} |")
    return "\n".join(rows)


def _splits(manifest: Manifest) -> list[str]:
    if not manifest.splits:
        return []
    rows = ["| split | rows | description |", "|---|---|---|"]
    for split in manifest.splits:
        rows.append(f"| `{split.name}` | {_split_rows(split, manifest.factors)} | {_cell(split.description)} |")
    how = f'`setsup.load("{manifest.name}", split="{manifest.splits[0].name}")` opens one of them, renumbered from 0.'
    return ["## Splits", "\n".join(rows), how]


def _split_rows(split: ManifestSplit, factors: tuple[ManifestFactor, ...]) -> str:
    if split.rows is not None:
        return f"{split.rows[0]:,} to {split.rows[1] - 1:,}"
    if split.where and not split.parts:
        return f"where `{split.where}`"
    named = next((factor.levels for factor in factors if factor.name == split.factor), None)
    if isinstance(named, tuple):
        parts = " and ".join(f"`{split.name}-{level}`" for level in named)
    else:
        parts = " and ".join(f"`{split.name}-{name}` ({100 * share:.3g} %)" for name, share in split.parts)
    held = f", by `{'`, `'.join(split.stratify)}`" if split.stratify else ""
    whole = f"; no `{'`, `'.join(split.disjoint)}` in two parts" if split.disjoint else ""
    whole += f"; leaks: a `{'`, `'.join(split.leaks)}` may be in two parts" if split.leaks else ""
    of = f"; where `{split.where}`" if split.where else ""
    return f"{parts}{held}{whole}{of}".removeprefix("; ")


def _getting(manifest: Manifest) -> str:
    name = manifest.name
    if not manifest.files:
        return (
            f'No download is needed: `setsup.load("{name}")` in Python, `setsup sample {name} --inactive '
            f"{manifest.factors[0].name}` on the command line."
        )
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(manifest.steps, 1))
    fetched = f"setsup fetch {name}"
    if steps:
        first = f"{steps}\n\nThen:"
        if manifest.licence.sign or not any(file.urls for file in manifest.files):
            fetched += " --check"
    elif not all(file.urls for file in manifest.files):
        first = "Request some of the files from the authors, and put them into a folder. Then:"
    else:
        first = "The command downloads and checks the files, and resumes if it was interrupted:"
    varying = [factor for factor in manifest.factors if factor.role == "variation"]
    held = next((factor.name for factor in varying if factor.kind != "continuous"), "FACTOR")
    if varying and held == "FACTOR":
        held = f"{varying[0].name} --tolerance {varying[0].name}=0.1"
    return (
        f"{first}\n\n```console\n$ {fetched}\n$ setsup sample {name} --inactive {held}\n```\n\n"
        f"To use files that you already have, add `--root FOLDER`, or `root=` in Python:\n\n"
        f'`setsup.load("{name}", root="FOLDER")`' + _own(manifest)
    )


def _own(manifest: Manifest) -> str:
    """Point at the options and functions that a benchmark has of its own."""
    heading = f"{manifest.adapter}.open"
    page = reference.documented().get(heading)
    if page is None:
        return ""
    return f"\n\nOptions and further functions: [`{manifest.adapter}`](../api/{page}#{heading})."


def _files(manifest: Manifest) -> list[str]:
    if not manifest.files:
        return []
    rows = ["| file | bytes | checksum | mirrors |", "|---|--:|---|--:|"]
    for file in manifest.files:
        other = f" (or {_alternatives(file)})" if file.alternatives else ""
        size = "" if file.size is None else f"{file.size:,}"
        rows.append(f"| `{file.path}`{other} | {size} | {_checksums(file)} | {_mirrors(file)} |")
    parts = ["## Files", "\n".join(rows)]
    if (found := manifest.addresses) is not None:
        parts.append(f"Public documentation and issues on the addresses, as of {found.checked}: {found.known}")
        sources = dict(found.sources)
        rows = ["| host, in the order asked | files | seen in |", "|---|--:|---|"]
        for host, paths in (hosts := list_hosts(manifest)).items():
            rows.append(f"| {host} | {len(paths)} | {_cell(sources.get(host, ''))} |")
        parts += ["\n".join(rows)] * bool(hosts)
    return parts


def _mirrors(file: ManifestFile) -> str:
    links = ", ".join(f"[{number}]({url})" for number, url in enumerate(file.urls, 1)) or "0"
    return f"{links}{', by `--files` only' * file.on_request}"


def _alternatives(file: ManifestFile) -> str:
    shown = ", ".join(f"`{name}`" for name in file.alternatives[:_ALTERNATIVES])
    more = len(file.alternatives) - _ALTERNATIVES
    return f"{shown} and {more} more" if more > 0 else shown


def _checksums(file: ManifestFile) -> str:
    known = {
        "sha256": file.sha256,
        "md5": file.md5,
        "sha256 of the content": file.unpacked_sha256,
        "md5 of the content": file.unpacked_md5,
    }
    return "<br>".join(f"{name} `{digest}`{{ .digest }}" for name, digest in known.items() if digest)


def _licence(manifest: Manifest) -> str:
    licence = manifest.licence
    named = f"[{licence.name}]({licence.url})" if licence.url else licence.name
    sign = f"Signature required: {licence.sign}." if licence.sign else ""
    return " ".join(filter(None, [f"{named[:1].upper()}{named[1:]}.", licence.note, sign]))


def _citation(manifest: Manifest) -> list[str]:
    return ["## Citation", f"```bibtex\n{manifest.citation}\n```"] if manifest.citation else []
