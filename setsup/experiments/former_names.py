"""Names that earlier versions wrote: keys of what was computed go by them, so that it is found again."""

__all__ = ["former_module"]

_MODULES = {
    "setsup.experiments.evaluations.": "setsup.experiments.measures.",
    "setsup_papers.abc.pose.": "setsup.experiments.pose.",
    "setsup_papers.abc.": "setsup.experiments.abc.",
    "setsup_papers.cmc.": "setsup.experiments.cmc.",
    "setsup_papers.dcodr.": "setsup.experiments.dcodr.",
    "setsup_papers.orbits.": "setsup.experiments.orbits.",
    "setsup_papers.pixels.": "setsup.experiments.pixels.",
}
"""Former beginnings of names of modules with evaluations, the first that fits counts."""


def former_module(name: str) -> str:
    """The name under which the module of an evaluation was first written into keys."""
    return next((old + name.removeprefix(new) for new, old in _MODULES.items() if name.startswith(new)), name)
