"""Read a manifest: a YAML file whose keys and values are all checked."""

from pathlib import Path

from setsup.files.manifests import validators
from setsup.files.manifests.manifest import (
    Addresses,
    Licence,
    Manifest,
    ManifestFactor,
    ManifestFile,
    ManifestListed,
    ManifestModality,
    ManifestPartial,
    ManifestSplit,
)
from setsup.files.manifests.strict_yaml import Fields, read_yaml

__all__ = ["read_manifest"]

_NAME = validators.matching(r"[a-z0-9]+(-[a-z0-9]+)*", "lower-case words joined by hyphens")
_OWN_NAME = validators.matching(r"\w[\w .-]*", "a name of letters, digits, _, -, . and spaces")
_KINDS = ("nominal", "ordinal", "cyclic", "continuous")
_ROLES = ("variation", "key", "split")
_COLUMN = ("from", "match", "codes", "rules")
_UNSTATED = Licence("not stated")
_CODE = ("adapter", "extra", "shares", "folders", "listed")


def read_manifest(file: Path | str, own: bool = False) -> Manifest:
    """Read and check a manifest file.

    Parameters
    ----------
    file : Path or str
        YAML file named after the benchmark.
    own : bool
        Whether the manifest is a user's own: name, title, description and licence are optional, it may have a root,
        and it must not import modules.

    Raises
    ------
    DataError
        The file is missing or not valid YAML, a key is unknown, missing or of the wrong kind, a checksum is malformed,
        a path leads out of the folder, or sizes contradict each other; the message names the file, the line and the
        key.

    """
    file = Path(file)
    fields = read_yaml(file)
    take = fields.get if own else fields.need
    name = take("name", _OWN_NAME if own else _NAME) or file.stem.strip(".") or "manifest"
    licence = fields.optional_part("licence") if own else fields.part("licence")
    listed = fields.parts("factors")
    manifest = Manifest(
        name=name,
        title=take("title", validators.text) or name,
        description=take("description", validators.text) or "",
        licence=_UNSTATED if licence is None else _licence(licence),
        columns=tuple(_column(part) for part in listed),
        layout=fields.get("layout", validators.mapping),
        root=fields.get("root", validators.text) if own else None,
        file=file,
        samples=fields.get("samples", validators.whole),
        editions=fields.each("editions", validators.whole),
        samples_vary=fields.get("samples_vary", validators.text),
        samples_by_option=tuple(fields.get("samples_by_option", validators.counts_by_option) or ()),
        partial=_partial(part) if (part := fields.optional_part("partial")) is not None else None,
        size=fields.get("bytes", validators.whole),
        homepage=fields.get("homepage", validators.address),
        citation=fields.get("citation", validators.text),
        factors=tuple(_factor(part) for part in listed),
        splits=tuple(_split(name, part) for name, part in fields.named("splits").items()),
        modalities=tuple(_modality(name, part) for name, part in fields.named("modalities").items()),
        files=tuple(_file(part) for part in fields.parts("files")),
        listed=tuple(_listed(part) for part in fields.parts("listed")),
        shares=fields.get("shares", _NAME),
        folders=fields.each("folders", validators.relative),
        addresses=_addresses(part) if (part := fields.optional_part("addresses")) is not None else None,
        steps=fields.each("steps", validators.text),
        adapter=fields.get("adapter", validators.matching(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", "a Python module")),
        extra=fields.get("extra", validators.matching(r"[a-z0-9]+", "the name of a pip extra")),
    )
    fields.done()
    if manifest.layout is None and any(manifest.columns):
        raise fields.problem(
            "factors", f"must not have {', '.join(_COLUMN)} without layout; remove them, or add layout"
        )
    if own:
        _refuse_code(fields, manifest)
    if manifest.shares == manifest.name:
        raise fields.wrong("shares", "the name of another dataset", manifest.shares)
    _check_counts(fields, manifest)
    if unknown := {name for each in manifest.listed for name in each.lists} - {part.path for part in manifest.files}:
        raise fields.wrong("listed.lists", "paths of the files in this manifest", min(unknown))
    if manifest.name != file.stem and not own:
        raise fields.wrong("name", f"{file.stem!r}, the name of the file without its extension", manifest.name)
    sizes = [part.size for part in manifest.files]
    if manifest.size is not None and None not in sizes and manifest.size != sum(size or 0 for size in sizes):
        raise fields.wrong("bytes", f"{sum(size or 0 for size in sizes)}, the total of the files", manifest.size)
    return manifest


def _refuse_code(fields: Fields, manifest: Manifest) -> None:
    """Refuse a user's own manifest that asks for more than its layout."""
    if manifest.layout is None:
        raise fields.problem("layout", "is missing; add it to describe the images and tables of your dataset")
    for key in _CODE:
        if getattr(manifest, key):
            raise fields.problem(key, "is not allowed in a manifest of your own; remove it")


def _check_counts(fields: Fields, manifest: Manifest) -> None:
    """Refuse numbers of samples that contradict each other."""
    if manifest.samples_vary and manifest.samples is not None:
        raise fields.problem("samples_vary", "cannot be combined with samples; remove one of them")
    if manifest.editions and manifest.samples is None:
        raise fields.problem("editions", "requires samples; add samples, or remove editions")
    if (partial := manifest.partial) is None:
        return
    factors = {factor.name: factor.levels for factor in manifest.factors}
    for name in partial.by:
        if name not in factors:
            raise fields.wrong("partial.by", f"names of factors in this manifest ({', '.join(factors)})", name)
    if not isinstance(partial.samples, tuple):
        return
    levels = factors[partial.by[0]]
    for level, _ in partial.samples:
        if isinstance(levels, tuple) and level not in levels:
            raise fields.wrong(
                "partial.samples", f"a mapping of levels of {partial.by[0]} to numbers of samples", level
            )
    total = sum(counts[0] for _, counts in partial.samples)
    if len(partial.by) == 1 and manifest.samples not in (None, total):
        raise fields.wrong("samples", f"{total}, the total of the parts", manifest.samples)


def _partial(fields: Fields) -> ManifestPartial:
    partial = ManifestPartial(
        by=fields.need("by", validators.words), samples=fields.get("samples", validators.counts_of_parts)
    )
    fields.done()
    return partial


def _licence(fields: Fields) -> Licence:
    licence = Licence(
        name=fields.need("name", validators.text),
        url=fields.get("url", validators.address),
        note=fields.get("note", validators.text),
        sign=fields.get("sign", validators.text),
    )
    fields.done()
    return licence


def _addresses(fields: Fields) -> Addresses:
    addresses = Addresses(
        checked=fields.need("checked", validators.day),
        known=fields.need("known", validators.text),
        sources=tuple((fields.get("sources", validators.texts) or {}).items()),
    )
    fields.done()
    return addresses


def _column(fields: Fields) -> dict[str, object]:
    """Keys of a factor that say where its values come from."""
    values = {key: fields.get(key, validators.anything) for key in _COLUMN}
    return {key: value for key, value in values.items() if value is not None}


def _factor(fields: Fields) -> ManifestFactor:
    factor = ManifestFactor(
        name=fields.need("name", validators.matching(r"[A-Za-z_]\w*", "a name of letters, digits and _")),
        kind=fields.need("kind", validators.one_of(_KINDS)),
        levels=fields.get("levels", validators.levels),
        unit=fields.get("unit", validators.text) or "",
        period=fields.get("period", validators.positive),
        within=fields.get("within", validators.text),
        role=fields.get("role", validators.one_of(_ROLES)) or "variation",
        description=fields.get("description", validators.text) or "",
    )
    fields.done()
    return factor


def _split(name: str, fields: Fields) -> ManifestSplit:
    split = ManifestSplit(
        name=name,
        rows=fields.get("rows", validators.rows),
        description=fields.get("what", validators.text) or "",
        where=fields.get("where", validators.text),
        parts=fields.get("parts", validators.shares) or (),
        stratify=fields.get("stratify", validators.words) or (),
        disjoint=fields.get("disjoint", validators.words) or (),
        seed=fields.get("seed", validators.whole) or 0,
        rounding="table" if fields.get("rounding", validators.one_of(("strata", "table"))) == "table" else "strata",
        factor=fields.get("factor", validators.text),
        leaks=fields.get("leaks", validators.words) or (),
        test=fields.get("test", validators.text),
    )
    if split.factor and (split.where or split.parts or split.test):
        raise fields.problem("", "has factor with where, parts or test; remove one of them")
    if split.test and "test" in dict(split.parts):
        raise fields.problem("parts", "must not contain a part named test if test is given; rename the part")
    if (split.stratify or split.seed or split.leaks or split.rounding != "strata") and not split.parts:
        raise fields.problem("parts", "is missing, but stratify, seed, rounding and leaks require it; add it")
    fields.done()
    return split


def _modality(name: str, fields: Fields) -> ManifestModality:
    modality = ManifestModality(
        name=name,
        shape=fields.each("shape", lambda size: None if size is None else validators.whole(size)),
        dtype=fields.need(
            "dtype", validators.matching(r"bool|u?int(8|16|32|64)|float(16|32|64)", "a numpy dtype such as uint8")
        ),
        unit=fields.get("unit", validators.text) or "",
        color=fields.get("color", validators.text) or "",
        description=fields.get("what", validators.text) or "",
    )
    fields.done()
    return modality


def _file(fields: Fields) -> ManifestFile:
    file = ManifestFile(
        path=fields.need("path", validators.relative),
        alternatives=fields.each("or", validators.relative),
        urls=fields.each("urls", validators.address),
        size=fields.get("bytes", validators.whole),
        sha256=fields.get("sha256", validators.digest(64)),
        md5=fields.get("md5", validators.digest(32)),
        unpacked_sha256=fields.get("unpacked_sha256", validators.digest(64)),
        unpacked_md5=fields.get("unpacked_md5", validators.digest(32)),
        unpacked_size=fields.get("unpacked_bytes", validators.whole),
        optional=fields.get("optional", validators.yes) or False,
        on_request=fields.get("on_request", validators.yes) or False,
    )
    fields.done()
    if file.on_request and not (file.optional and file.urls):
        raise fields.problem("on_request", "requires `optional` and `urls`; add them, or remove on_request")
    return file


def _listed(fields: Fields) -> ManifestListed:
    listed = ManifestListed(
        path=fields.need("path", validators.relative),
        urls=fields.each("urls", validators.address),
        lists=fields.each("lists", validators.relative),
    )
    fields.done()
    if any("{}" not in text for text in (listed.path, *listed.urls)) or not listed.urls or not listed.lists:
        raise fields.problem(
            "",
            "requires path, urls and lists; path and each address in urls must contain {}, which is replaced with "
            "each line of the lists",
        )
    return listed
