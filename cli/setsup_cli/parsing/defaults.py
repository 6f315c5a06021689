"""Numbers of rows and sets that suit the data, where the options leave them out."""

from dataclasses import replace
from typing import TYPE_CHECKING

from setsup_cli.parsing.sampling import build_sampler
from setsup_cli.parsing.source import is_place

if TYPE_CHECKING:
    from setsup.factors import FactorTable
    from setsup_cli.parsing.sample_options import Options

__all__ = ["suited"]

_SIZE = 32
_SETS = {"domain": 4, "orbit": 8}
"""Defaults of the samplers, of which the second must not exceed the number of groups."""


def suited(kind: str, options: "Options", table: "FactorTable", card: str) -> tuple["Options", list[str]]:
    """Defaults of omitted options: at most as many sets as groups; of own data, the most rows that all groups have."""
    # whoever says what becomes of small groups, or how sets relate, wants the sampler's own defaults
    own = options.table is not None or (options.dataset is not None and is_place(options.dataset))
    size = own and options.size is None and options.small is None and kind in ("set", "domain")
    sets = options.sets is None and options.values is None and options.domains is None and kind in _SETS
    if not (size or sets):
        return options, []
    least = replace(options, size=1 if size else options.size, sets=1 if sets else options.sets)
    sampler = build_sampler(kind, least, table, card)
    entries = sampler.report().entries
    notes: list[str] = []
    if size:
        together = int(sampler.arguments["sets"]) if options.values == "equal" else 1
        most = min(entry.smallest for entry in entries) // together
        if most >= _SIZE:
            notes.append(f"size {_SIZE}: the default, for which every group has enough rows (--size takes another)")
        elif most < 2:  # sets of one row hold nothing together: the sampler's error says which groups are too small
            options = replace(options, size=2)
        else:
            options = replace(options, size=most)
            shared = f" for {together} sets" if together > 1 else ""
            notes.append(f"size {most}: as many rows as every group has{shared} (--size takes another)")
    if sets and entries[0].drawable < _SETS[kind]:
        options = replace(options, sets=entries[0].drawable)
        notes.append(f"sets {options.sets}: as many as there are groups (--sets takes another)")
    return options, notes
