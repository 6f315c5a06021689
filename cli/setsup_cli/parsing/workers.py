"""Options of verbs whose work may be done by a cluster."""

from typing import TYPE_CHECKING, Annotated

from setsup.errors import SetsupError, need
from setsup_cli.parsing.arguments import MaybeText, option

if TYPE_CHECKING:
    from setsup.jobs import Ray

__all__ = ["On", "RayAddress", "RayGpus", "cluster"]

On = Annotated[
    MaybeText,
    option("ray", "Work on a Ray cluster, whose machines share the folder or store.", "(default: this machine)"),
]
"""The option ``--on``."""

RayAddress = Annotated[
    MaybeText,
    option("ADDRESS", "The cluster: HOST:PORT, auto, or ray://HOST:PORT.", "(default: RAY_ADDRESS, or one of its own)"),
]
"""The option ``--ray-address``."""

RayGpus = Annotated[float, option("N", "GPUs a unit of the work needs, such as 0.25.", "(default: 0)")]
"""The option ``--ray-gpus``."""


def cluster(on: str | None, address: str | None, gpus: float) -> "Ray | None":
    """What options ask for; None for this machine."""
    if on is None:
        if address is not None or gpus:
            raise SetsupError("--ray-address and --ray-gpus go with --on ray")
        return None
    if on != "ray":
        raise SetsupError(f"--on {on}: there is only --on ray; without it, this machine works")
    need("--on ray needs", "ray")
    from setsup.jobs import Ray

    return Ray(address, gpus)
