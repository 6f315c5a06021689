"""The text of a dataset card, which ``setsup info`` prints."""

from collections.abc import Mapping
from typing import Any

from setsup.files import readable_size
from setsup_cli.output import say, say_licence, say_prose, show_table

__all__ = ["print_card"]

_LEVELS_SHOWN = 16


def print_card(card: Mapping[str, Any], closed: str) -> None:
    """Print the card of a dataset."""
    say(f"{card['name']}" + (f": {card['title']}" if card.get("title") else ""))
    if card.get("description"):
        say_prose(card["description"], piped=100)
    say()
    _print_samples(card)
    if card.get("shards"):
        say_prose(_shards_words(card["shards"]))
    if card["factors"]:
        say()
        heads = ["factor", "kind", "levels", "values", "rows per level"]
        show_table(heads, [_factor_cells(factor) for factor in card["factors"]], right=("levels",))
    levels = {factor["name"]: factor["levels"] for factor in card["factors"]}
    for split in card.get("splits", ()):
        say_prose(_split_words(split, levels))
    if card["sample"] is not None:
        from setsup.reports.describe import number_words

        say_prose(f"row 0: {', '.join(f'{name} = {number_words(value)}' for name, value in card['sample'].items())}")
    _print_attributes(card)
    if card.get("licence"):
        say()
        say_licence(card["licence"])
    if card.get("homepage"):
        say(f"home: {card['homepage']}")
    if card.get("addresses"):
        _print_addresses(card["addresses"])
    if card.get("citation"):
        say()
        say(card["citation"].strip())
    if closed:
        say()
        say_prose(f"not opened: {closed}")


def _print_samples(card: Mapping[str, Any]) -> None:
    published = card.get("published")
    if card["samples"] is not None:
        samples = f"{card['samples']:,} rows"
        if published is not None and not published["complete"]:
            samples += f", {published['here']:,} of the {published['samples']:,} that were published are here"
    else:
        samples = "as many rows as the files contain" if card.get("files") else "any number of rows"
        if card.get("samples_vary"):
            samples += f" ({card['samples_vary']})"
    if card.get("bytes"):
        samples += f", {readable_size(card['bytes'])} to fetch"
    kinds = card["modalities"]
    if any(kind.get("description") for kind in kinds):
        say_prose(samples)
        say()
        rows = [[kind["name"], _shape(kind), kind["unit"], kind.get("description", "")] for kind in kinds]
        show_table(["modality", "shape and type", "unit", "what it is"], rows)
    else:
        shapes = [" ".join(filter(None, [kind["name"], _shape(kind), kind["unit"]])) for kind in kinds]
        say_prose("; ".join([samples, *shapes]))


def _shards_words(shards: Mapping[str, Any]) -> str:
    kinds = ", ".join(f".{extension}" for extension in shards["members"].values())
    number = f"{shards['number']:,} shard{'s' * (shards['number'] != 1)}"
    order = f", order {shards['order']}" if shards["order"] else ""
    return f"{number} of {kinds}, {readable_size(shards['bytes'])}{order}: {shards['url']}"


def _print_attributes(card: Mapping[str, Any]) -> None:
    """Print attributes that not every dataset has, and options."""
    if card.get("beside"):
        say_prose(f"also has: {', '.join(card['beside'])}; see {card['module']}")
    if card.get("options"):
        words = card["options"]
        first = words[0].partition("=")[0]
        opened = f'setsup.open("{card["source"]}", {first}=...)'
        say_prose(f"options: {', '.join(words)}; as in {opened}, or --option {words[0].partition('|')[0]}")


def _print_addresses(addresses: Mapping[str, Any]) -> None:
    """Print what is known of the addresses, and the hosts in the order in which they are asked."""
    say_prose(f"addresses, as known on {addresses['checked']}: {addresses['known']}")
    if hosts := addresses.get("hosts"):
        say()
        rows = [[host["host"], str(len(host["files"])), host["seen_in"]] for host in hosts]
        show_table(["host, in the order asked", "files", "seen in"], rows, right=("files",))


def _split_words(split: Mapping[str, Any], levels: Mapping[str, Any]) -> str:
    words = f"split {split['name']}"
    if split["rows"] is not None:
        words += f", rows {split['rows'][0]:,} to {split['rows'][1] - 1:,}"
    if split["where"]:
        words += f", where {split['where']}"
    parts = [f"{name} ({100 * share:.3g} %)" for name, share in split["parts"]]
    if isinstance(named := levels.get(split["factor"]), list | tuple):
        parts += map(str, named)
    if parts:
        words += f", part{'s' * (len(parts) > 1)} {' and '.join(parts)}"
    if split["stratify"]:
        words += f", by {', '.join(split['stratify'])}"
    if split["parts"] and split["disjoint"]:
        words += f", no {', '.join(split['disjoint'])} in two parts"
    if split["leaks"]:
        words += f", leaks: {', '.join(split['leaks'])} may be in two parts"
    return words + (f": {split['description']}" if split["description"] else "")


def _shape(kind: Mapping[str, Any]) -> str:
    lengths = " × ".join("any" if length is None else str(length) for length in kind["shape"])
    return " ".join(part for part in (lengths, kind["dtype"], kind["color"]) if part)


def _factor_cells(factor: Mapping[str, Any]) -> list[str]:
    from setsup.reports.describe import number_words

    levels, counts = factor["levels"], factor["counts"]
    listed = isinstance(levels, list | tuple)
    shown = [number_words(level) for level in levels[:_LEVELS_SHOWN]] if listed else []
    if shown:
        values = ", ".join(shown) + (" …" if len(levels) > _LEVELS_SHOWN else "")
        values += f" {factor['unit']}" if factor["unit"] else ""
    else:
        values = "; ".join(filter(None, [factor["unit"], factor["description"]]))
    rows = ""
    if counts:
        rows = f"{counts[0]:,}" if len(set(counts)) == 1 else f"{min(counts):,} to {max(counts):,}"
    number = str(len(levels)) if listed else "" if levels is None else str(levels)
    kind = factor["kind"] + (f" ({factor['role']})" if factor["role"] != "variation" else "")
    kind += f" within {factor['within']}" if factor["within"] else ""
    return [factor["name"], kind, number, values, rows]
