"""Names that earlier versions wrote: keys of what was computed go by them, so that it is found again."""

__all__ = ["former_module"]

_MODULES = {
    f"setsup_papers.{now}.": f"setsup.experiments.{before}."
    for now, before in (
        ("abc.pose", "pose"),
        ("abc", "abc"),
        ("cmc", "cmc"),
        ("dcodr", "dcodr"),
        ("orbits", "orbits"),
        ("pixels", "pixels"),
    )
}
"""Former beginnings of names of modules with evaluations, the first that fits counts."""


def former_module(name: str) -> str:
    """The name under which the module of an evaluation was first written into keys."""
    return next((old + name.removeprefix(new) for new, old in _MODULES.items() if name.startswith(new)), name)
