"""Other libraries, each resumed by the way that its own documentation has, over rows that it writes itself.

A batch of all ranks has 24 rows, whatever their number: MosaicML streaming "merely requires that your global batch size
stays constant over the course of the training job, and is also divisible by all the numbers of GPUs", and litData asks
for the same. A loop delivers rows and trains nothing. What all of them promise is every row once in each pass; that is
counted, in any order.
"""

import importlib
from pathlib import Path

from benchmarks.resume import grain_peer, shard_peers, torch_peers
from benchmarks.resume.data import ROWS
from benchmarks.resume.job import Job
from benchmarks.resume.plan import PASSES
from benchmarks.resume.run import Peer

__all__ = ["PEERS", "missing"]


def _write_grain(folder: Path) -> None:
    grain_peer.write(folder, ROWS)


def _grain(job: Job) -> None:
    grain_peer.loop(job, torch_peers.BATCH, PASSES)


OWN_STATE = (
    "StatefulDataLoader 'handles aggregation and distribution of state across multiprocess workers (but not across"
    " ranks)'; its state contains the number of workers, and a different number fails an assertion"
)
SILENT = "its documentation makes no promise about random transforms after a resume"

PEERS: dict[str, Peer] = {
    "grain": Peer("grain", _write_grain, _grain),
    "torchdata StatefulDataLoader": Peer(
        "torchdata", torch_peers.write_array, torch_peers.stateful_loop, ranks=OWN_STATE
    ),
    "torchdata nodes loader": Peer(
        "torchdata",
        torch_peers.write_array,
        torch_peers.nodes_loop,
        ranks="the state is that of one rank's pipeline, whose sampler it repeats up to its position; its documentation"
        " does not mention a different number of ranks",
        images=SILENT,
    ),
    "webdataset": Peer(
        "webdataset",
        torch_peers.write_array,
        state="it does not save a state: 'With resampling, there is no need to resume training [...]. If you really do"
        " want to keep track of epochs and samples, you'll have to keep track of the shards and samples you have"
        " already read. [...] WebDataset can't really do this for you.' (its author,"
        " github.com/webdataset/webdataset/issues/271)",
    ),
    "MosaicML streaming": Peer("streaming.base.dataset", shard_peers.write_mds, shard_peers.mosaic_loop, images=SILENT),
    "litData": Peer("litdata", shard_peers.write_litdata, shard_peers.litdata_loop, images=SILENT),
    "Hugging Face datasets": Peer(
        "datasets",
        torch_peers.write_datasets,
        torch_peers.datasets_loop,
        ranks="the state 'keeps track of the current shard being read and the example index in the current shard' of"
        " one node and its workers; its documentation does not mention different numbers",
        images=SILENT,
    ),
}
"""The libraries, by the name that the matrix has for them."""


def missing(peer: Peer) -> str:
    """Why a library cannot run here; empty where it can."""
    try:
        if peer.module.startswith("streaming."):
            shard_peers.without_torchvision()
        importlib.import_module(peer.module)  # once, ahead of the processes of a cell
    except Exception as error:  # whatever a library does at import must not end the run
        return f"{peer.module} does not import: {type(error).__name__}: {error}"
    return ""
