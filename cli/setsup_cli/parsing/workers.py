"""Options of subcommands that can run on a cluster."""

from typing import TYPE_CHECKING, Annotated, Literal

from setsup.errors import SetsupError, require_modules
from setsup_cli.parsing.arguments import option

if TYPE_CHECKING:
    from setsup.jobs import Ray

__all__ = ["On", "RayAddress", "RayGpus", "cluster"]

On = Annotated[
    Literal["ray"] | None,
    option(
        "ray",
        "Run on a Ray cluster, whose machines must all have access to the input and output files.",
        "this machine",
    ),
]
"""The option ``--on``."""

RayAddress = Annotated[
    str | None,
    option("ADDRESS", "Address of the cluster: HOST:PORT, auto, or ray://HOST:PORT.", "RAY_ADDRESS, or a new cluster"),
]
"""The option ``--ray-address``."""

RayGpus = Annotated[float, option("N", "GPUs reserved for each Ray task, such as 0.25.")]
"""The option ``--ray-gpus``."""


def cluster(on: str | None, address: str | None, gpus: float) -> "Ray | None":
    """The cluster that options name; None for this machine."""
    if on is None:
        if address is not None or gpus:
            raise SetsupError("--ray-address and --ray-gpus require --on ray")
        return None
    if on != "ray":
        raise SetsupError(f"--on must be ray, not {on!r}; without --on the command runs on this machine")
    require_modules("--on ray needs", "ray")
    from setsup.jobs import Ray

    return Ray(address, gpus)
