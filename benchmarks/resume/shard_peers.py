"""Loops of libraries with files of their own, MosaicML streaming and litData, by their documented ways to resume."""

from pathlib import Path

from benchmarks.resume.data import ROWS, digests
from benchmarks.resume.job import Job
from benchmarks.resume.noise import SEED
from benchmarks.resume.plan import PASSES
from benchmarks.resume.torch_peers import BATCH

__all__ = ["litdata_loop", "mosaic_loop", "without_torchvision", "write_litdata", "write_mds"]


# MosaicML streaming


def write_mds(folder: Path) -> None:
    without_torchvision()
    from streaming.base.format.mds.writer import MDSWriter

    with MDSWriter(out=str(folder / "mds"), columns={"row": "int"}, size_limit=256) as writer:
        for row in range(ROWS):
            writer.write({"row": row})


def mosaic_loop(job: Job) -> None:
    """``StreamingDataLoader``, https://docs.mosaicml.com/projects/streaming/en/stable/ (Fast Resumption).

    "When checkpointing, simply call the state_dict method of StreamingDataLoader and save it along with your
    checkpoint. Then, when resuming, call load_state_dict with the saved state". "a training run on 24 GPUs can be
    stopped, resumed on 16 GPUs, and later, finished on 48 GPUs" (Elastic Determinism).
    """
    without_torchvision()
    from streaming.base.dataloader import StreamingDataLoader
    from streaming.base.dataset import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    job.join()
    clean_stale_shared_memory()  # of the killed run
    size = BATCH // job.world
    rows = StreamingDataset(local=str(job.folder / "mds"), shuffle=True, shuffle_seed=SEED, batch_size=size)
    loader, state = StreamingDataLoader(rows, batch_size=size, num_workers=job.workers), job.load()
    if state is not None:
        loader.load_state_dict(state["loader"])
    for epoch in range(0 if state is None else state["epoch"], PASSES):
        for found in loader:
            job.saw(digests(found["row"]), epoch)
            job.save({"loader": loader.state_dict(), "epoch": epoch})


def without_torchvision() -> None:
    from benchmarks.peers import peer

    peer("mosaicml-streaming")  # its own import asks for torchvision, which no data of rows needs


# litData


def write_litdata(folder: Path) -> None:
    from litdata.streaming.writer import BinaryWriter  # what `optimize` writes with in its worker processes

    writer = BinaryWriter(str(folder / "chunks"), chunk_size=16)
    for row in range(ROWS):
        writer[row] = {"row": row}
    writer.done()
    writer.merge()


def litdata_loop(job: Job) -> None:
    """``StreamingDataLoader``, https://github.com/Lightning-AI/litData (Pause, resume data streaming).

    "Same seed and shuffle are required. For a StreamingDataset, num_workers and world_size may change: LitData drops a
    global sample_in_epoch prefix and restripes the rest (never duplicates remaining IDs). [...] keep global batch size
    (world_size * batch_size) constant and DDP ranks in lockstep." With its default ``drop_last`` it would drop rows of
    a pass by itself.
    """
    from litdata import StreamingDataLoader, StreamingDataset

    job.join()
    rows = StreamingDataset(str(job.folder / "chunks"), shuffle=True, drop_last=False, seed=SEED)
    loader, state = StreamingDataLoader(rows, batch_size=BATCH // job.world, num_workers=job.workers), job.load()
    if state is not None:
        loader.load_state_dict(state)
    while True:  # it counts its epochs itself, from 1
        for found in loader:
            if loader.current_epoch > PASSES:
                return
            job.saw(digests(found["row"]), loader.current_epoch - 1)
            job.save(loader.state_dict())
        if loader.current_epoch >= PASSES:
            return
