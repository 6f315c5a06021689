"""The card of a dataset for the Hub: README.md with its metadata, and what ``datasets.DatasetInfo`` keeps of it."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from setsup.datasets.concatenation import sources
from setsup.datasets.croissant.document import facts
from setsup.datasets.croissant.licences import describe_licence, spdx
from setsup.datasets.dataset import Dataset, Modality
from setsup.factors import Factor
from setsup.files import Licence, Manifest
from setsup.files.manifests.packages import find_manifest

__all__ = ["OPENED", "card", "dataset_info", "find_manifests"]

_LEVELS = 16
_SIZES = {1e3: "n<1K", 1e4: "1K<n<10K", 1e5: "10K<n<100K", 1e6: "100K<n<1M", 1e7: "1M<n<10M", 1e8: "10M<n<100M"}
_LICENCES = {
    *("apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "odbl", "pddl", "gpl-3.0", "unlicense"),
    *(f"cc-by{kind}-{number}" for kind in ("", "-sa", "-nc", "-nd", "-nc-sa", "-nc-nd") for number in ("3.0", "4.0")),
}
_HUB_NAMES = {"ODbL-1.0": "odbl", "PDDL-1.0": "pddl"}
_UNSTATED = Licence("not stated")


def dataset_info(dataset: Dataset) -> dict[str, str]:
    """Fields of ``datasets.DatasetInfo``."""
    about = facts(dataset.name, None, find_manifests(dataset))
    return {
        "dataset_name": dataset.name,
        "description": about.description,
        "citation": about.citation,
        "homepage": " ".join(about.homepages),
        "license": "; ".join(licence.name for licence in about.licences),
    }


OPENED = (
    "`setsup.from_huggingface` opens it with the factors above. The `id` of each feature stores the kind, unit and "
    "order of its factor."
)


def card(
    dataset: Dataset,
    modalities: Mapping[str, Modality],
    *,
    opened: str = OPENED,
    metadata: Mapping[str, Any] | None = None,
    manifests: Sequence[Manifest | None] | None = None,
) -> str:
    """Text of a README.md: content of the dataset, licence and citation."""
    manifests = find_manifests(dataset) if manifests is None else manifests
    title = " + ".join(manifest.title if manifest else dataset.name for manifest in manifests)
    parts = [
        f"---\n{_metadata(dataset, title, manifests, metadata or {})}---",
        f"# {title}",
        *(manifest.description.strip() for manifest in manifests if manifest),
        f"{len(dataset):,} rows of `{dataset.name}`.",
        "## Factors",
        _table(["factor", "kind", "levels", "values", "unit"], map(_factor, dataset.factors.factors)),
        "## Images and arrays",
        _table(["column", "shape", "type", "unit"], (_modality(*item) for item in modalities.items())),
        "## Licence",
        *(_licence(manifest.licence if manifest else _UNSTATED) for manifest in manifests),
    ]
    cited = [manifest.citation.strip() for manifest in manifests if manifest and manifest.citation]
    if cited:
        parts += ["## Citation", "```bibtex\n" + "\n\n".join(cited) + "\n```"]
    parts += [
        "## How it was made",
        f"Written by setsup {version('setsup')}. {opened}",
    ]
    return "\n\n".join(parts) + "\n"


def find_manifests(dataset: Dataset) -> list[Manifest | None]:
    """Manifest of each dataset that this one was made from; None for a dataset without one."""
    manifests = [_manifest(source) for source in sources(dataset)]
    return [manifest for index, manifest in enumerate(manifests) if manifest not in manifests[:index]]


def _manifest(source: Dataset) -> Manifest | None:
    described: Manifest | None = getattr(source, "manifest", None)
    if described is not None:
        return described
    manifest = find_manifest(source.name)
    if manifest is None:
        return None
    # a table of the user's own may happen to have the name of a benchmark; shards of one carry its title too
    known = f"{type(source).__module__}.".startswith(f"{manifest.adapter}.") if manifest.adapter else False
    told = getattr(getattr(source, "catalogue", None), "about", {}).get("title")
    return manifest if known or told == manifest.title else None


def _metadata(dataset: Dataset, title: str, manifests: Sequence[Manifest | None], more: Mapping[str, Any]) -> str:
    import yaml

    size = next((name for most, name in _SIZES.items() if len(dataset) < most), "n>100M")
    about: dict[str, Any] = {"pretty_name": title, "size_categories": [size], "tags": ["setsup"]}
    licences = {manifest.licence if manifest else _UNSTATED for manifest in manifests}
    about |= _licence_keys(licences.pop()) if len(licences) == 1 else {"license": "other"}
    return yaml.safe_dump({**about, **more}, allow_unicode=True, sort_keys=False)


def _licence_keys(licence: Licence) -> dict[str, str]:
    identifier = spdx(licence.name)
    known = "-".join(licence.name.lower().split())
    hub = known if identifier is None else _HUB_NAMES.get(identifier, identifier.lower())
    if hub in _LICENCES:
        return {"license": hub}
    if licence.name.startswith(_UNSTATED.name):
        return {"license": "unknown"}
    named = {"license": "other", "license_name": "-".join("".join(c if c.isalnum() else " " for c in known).split())}
    return {**named, "license_link": licence.url} if licence.url else named


def _licence(licence: Licence) -> str:
    name = f"[{licence.name}]({licence.url})" if licence.url else licence.name
    return f"{name[0].upper()}{name[1:]}. {describe_licence(licence)}".rstrip()


def _factor(factor: Factor) -> list[str]:
    levels = factor.levels or ()
    shown = ", ".join(str(level) for level in levels[:_LEVELS]) + (", …" if len(levels) > _LEVELS else "")
    kind = str(factor.kind) + (f" ({factor.role})" if factor.role != "variation" else "")
    kind += f" within `{factor.within}`" if factor.within else ""
    unit = factor.unit + (f", period {factor.period:g}" if factor.period else "")
    return [f"`{factor.name}`", kind, f"{len(levels):,}" if levels else "", shown, unit]


def _modality(name: str, kind: Modality) -> list[str]:
    shape = " × ".join("any" if length is None else str(length) for length in kind.shape)
    return [f"`{name}`", shape, f"{kind.dtype} {kind.color}".strip(), kind.unit]


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    # a level may hold anything, and a line that it broke would end the table
    cells = ([" ".join(cell.replace("|", "&#124;").split()) for cell in row] for row in rows)
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
