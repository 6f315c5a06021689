"""Options of ``setsup sample``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from setsup_cli.parsing.arguments import Source, option

__all__ = ["Options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Source):
    """Options of the subcommand."""

    inactive: Annotated[
        tuple[str, ...] | None, option("FACTOR ...", "Draw sets within which these factors are fixed.")
    ] = None
    active: Annotated[
        tuple[str, ...] | None, option("FACTOR ...", "Draw sets within which all factors but these are fixed.")
    ] = None
    domain: Annotated[
        tuple[str, ...] | None,
        option("FACTOR ...", "Draw batches of several domains, one for each combination of these factors."),
    ] = None
    orbit: Annotated[
        tuple[str, ...] | None,
        option(
            "FACTOR ...", "Draw orbits, one for each combination of these factors; whole ones unless --size is given."
        ),
    ] = None
    triplets: Annotated[
        tuple[str, ...] | None,
        option(
            "FACTOR ...", "Draw triplets: anchor and positive share the values of these factors, the negative does not."
        ),
    ] = None

    size: Annotated[
        int | None, option("N", "Set size.", "32; for your own data the size of the smallest group, up to 32")
    ] = None
    sets: Annotated[int | None, option("N", "Sets per step.", "2 sets, 32 triplets; up to 4 domains, 8 orbits")] = None
    seed: Annotated[int, option("N", "Random seed.")] = 0
    steps: Annotated[int, option("N", "Number of steps, from step 0 on.")] = 1
    where: Annotated[
        str | None, option("EXPRESSION", "Draw only from rows such as \"scale >= 1.0 and shape != 'cube'\".")
    ] = None
    unconstrained: Annotated[int, option("N", "Leave the last N sets of a step unconstrained.")] = 0
    random: Annotated[
        int | None, option("N", "Fix a random subset of N of the --inactive factors, drawn again for each step.")
    ] = None
    choose: Annotated[
        Literal["levels", "groups", "rows"] | None,
        option(
            "levels|groups|rows",
            "Distribution of a set's fixed values: uniform over each factor's levels, over groups, or over rows.",
            "levels",
        ),
    ] = None
    values: Annotated[
        Literal["independent", "equal", "different"] | None,
        option("independent|equal|different", "Relation of the fixed values of a step's sets.", "independent"),
    ] = None
    domains: Annotated[
        Literal["balanced", "all"] | None,
        option("balanced|all", "Domains of a batch: --sets domains, each equally often, or all domains.", "balanced"),
    ] = None
    small: Annotated[
        Literal["error", "drop", "short", "replace"] | None,
        option("error|drop|short|replace", "What to do with groups smaller than a set.", "error"),
    ] = None
    tolerance: Annotated[
        tuple[str, ...] | None,
        option("FACTOR=NUMBER ...", "Fix a continuous factor to within NUMBER of the value of an anchor."),
    ] = None
    canonical: Annotated[
        tuple[str, ...] | None,
        option("MEMBER ...", "Canonical member of each orbit: first, argmin:FACTOR, or FACTOR=LEVEL ..."),
    ] = None

    replay: Annotated[
        Path | None,
        option("DRAWS.JSONL", "Repeat the draws that this file records, and verify that they are the same."),
    ] = None
    out: Annotated[Path, option("FOLDER", "Output folder of draws.jsonl, draws.npz and sheet.png.")] = Path(
        "setsup-samples"
    )
