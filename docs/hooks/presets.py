"""Tables of the experiments that setsup brings, and of what their papers claim."""

import json

import cards

from setsup.experiments import Preset, Sets, presets, reports
from setsup.experiments.settings import flatten


def table() -> str:
    """All presets, in their own order."""
    rows = [
        "| preset | what it shows | trains on | draws | steps | seeds | measures |",
        "|---|---|---|---|--:|--:|---|",
    ]
    for preset in presets().values():
        steps = f"{preset.steps:,}" if preset.method else ""
        measures = ", ".join(f"`{name}`" for name in preset.evaluations)
        cells = [f"`{preset.name}`", preset.shows, _data(preset), _draws(preset), steps, str(preset.seeds), measures]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def shared() -> str:
    """List of the presets that train the same, so that one run serves all of a line."""
    lines: dict[str, list[str]] = {}
    for preset in presets().values():
        if preset.method:
            lines.setdefault(json.dumps(flatten(preset), default=str), []).append(f"`{preset.name}`")
    return "\n".join(f"- {', '.join(names)}" for names in lines.values() if len(names) > 1)


def claims(words: str) -> str:
    """What reports are held to: those of a paper, or those whose names have one of some beginnings."""
    starts = tuple(words.split()) if "/" in words else (f"{words}/",)
    rows = ["| report | claim | it holds here if |", "|---|---|---|"]
    for report in reports().values():
        if report.name.startswith(starts):
            cells = [(f"`{report.name}`", claim.says, claim.tested) for claim in report.claims]
            rows += [f"| {' | '.join(text.replace('|', '&#124;') for text in row)} |" for row in cells]
    return "\n".join(rows)


def _data(preset: Preset) -> str:
    if preset.data is None:
        return "nothing"
    name = preset.data.name
    named = f"[{name}](../datasets/{name}.md)" if name in cards.names() else f"`{name}`"
    return f"{named}, `{preset.data.split}`" if preset.data.split else named


def _draws(preset: Preset) -> str:
    sampler = preset.sampler
    if not isinstance(sampler, Sets):
        return "" if sampler is None else type(sampler).__name__
    inactive = ", ".join(f"`{name}`" for name in sampler.inactive) or "nothing"
    some = f" in all but {sampler.unconstrained}" if sampler.unconstrained else ""
    where = f", `{sampler.where}`" if sampler.where else ""
    return f"{sampler.sets} × {sampler.size}, {inactive} inactive{some}{where}"
