"""Loops of accelerate and of the trainers on top of it: Hugging Face's Trainer, sentence-transformers.

Both trainers count the epochs of a resumed run from 0, so only the loop of accelerate logs the pass of a batch.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import torch

from benchmarks.resume.data import LABELS, ROWS, batch_digests, channels_last, digests, make_batches, make_loader
from benchmarks.resume.job import Job
from benchmarks.resume.loops import Rows, left_of
from benchmarks.resume.plan import DRAWS, PASSES

__all__ = ["accelerate_bytes", "accelerate_rows", "huggingface_bytes", "huggingface_rows", "sentences_rows"]


def accelerate_rows(job: Job) -> None:
    from accelerate import Accelerator

    accelerator, batches, state = Accelerator(cpu=True), make_batches(), job.load()
    model = torch.nn.Linear(1, 1)
    if state is not None:
        model.load_state_dict(state["model"])
        batches.load_state_dict(state["batches"])
    loader = torch.utils.data.DataLoader(Rows(), batch_sampler=batches, num_workers=job.workers)
    first = batches.state_dict()["pass"]
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 1e-6), loader)
    for epoch in range(first, PASSES):
        for number, rows in enumerate(loader, 1):
            job.saw(digests(rows), epoch)
            optimizer.zero_grad()
            accelerator.backward(model(rows.reshape(-1, 1).float()).mean())
            optimizer.step()
            weights = accelerator.unwrap_model(model).state_dict()
            job.save({"model": weights, "batches": batches.state_dict(delivered=number)})


def accelerate_bytes(job: Job) -> None:
    from accelerate import Accelerator

    accelerator, state, model = Accelerator(cpu=True), job.load(), torch.nn.Linear(1, 1)
    batches = make_loader(rank=accelerator.process_index, world=accelerator.num_processes, workers=job.workers)
    if state is not None:
        model.load_state_dict(state["model"])
        batches.load_state_dict(state["batches"])
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 1e-6))
    for batch in islice(batches, left_of(job, batches.state_dict()["delivered"])):
        job.saw(batch_digests(batch))
        optimizer.zero_grad()
        accelerator.backward(model(batch["indices"].reshape(-1, 1).float()).mean())
        optimizer.step()
        job.save({"model": accelerator.unwrap_model(model).state_dict(), "batches": batches.state_dict()})


QUIET: dict[str, Any] = {
    "use_cpu": True,
    "report_to": [],
    "disable_tqdm": True,
    "logging_strategy": "no",
    "save_strategy": "no",
}


class Following:
    """The passes of batches one after the other: a trainer that counts its epochs anew would select pass 0."""

    def __init__(self, batches: Any) -> None:
        self.batches = batches

    def __iter__(self) -> Any:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


def _rounds(job: Job, state: Any) -> int:
    """Steps of each rank until all passes are trained, of which each ends with a whole round."""
    delivered = 0 if state is None else state["batches"]["delivered"]
    left = -delivered % DRAWS  # of the pass that was interrupted
    return -(-left // job.world) + (PASSES - (delivered + left) // DRAWS) * -(-DRAWS // job.world)


def _load(batches: Any, state: Any) -> None:
    """Go to a position; behind a whole pass to the next one, because a Trainer ends at a pass without batches."""
    batches.load_state_dict(state["batches"])
    number, inside = divmod(state["batches"]["delivered"], DRAWS)
    if not inside:
        batches.set_epoch(number)


def _huggingface(job: Job, loader_of: Callable[[Any], Any], callbacks: list[Any], steps: int, state: Any) -> None:
    import transformers

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, index: Any, image: Any = None) -> dict[str, Any]:
            job.saw(digests(index, None if image is None else channels_last(image)))
            return {"loss": self.layer(index.reshape(-1, 1).float()).mean()}

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            return loader_of(self)

    model = Model()
    if state is not None:
        model.load_state_dict(state["model"])
    arguments = transformers.TrainingArguments(str(job.folder / "hf"), max_steps=steps, **QUIET)
    Trainer(model, arguments, train_dataset=Rows(), callbacks=callbacks).train()


def _weights(model: Any) -> Any:
    return getattr(model, "module", model).state_dict()


def huggingface_rows(job: Job) -> None:
    from transformers import TrainerCallback

    batches, state = make_batches(), job.load()
    if state is not None:
        _load(batches, state)

    class Position(TrainerCallback):
        number = 0

        def on_epoch_begin(self, *_: Any, **__: Any) -> None:
            self.number = 0

        def on_step_end(self, *_: Any, model: Any = None, **__: Any) -> None:
            self.number += 1
            job.save({"model": _weights(model), "batches": batches.state_dict(delivered=self.number)})

    def loader_of(trainer: Any) -> Any:
        loader = torch.utils.data.DataLoader(
            Rows(),
            batch_sampler=batches if state is None else Following(batches),
            num_workers=job.workers,
            collate_fn=lambda rows: {"index": torch.tensor(rows)},
        )
        return trainer.accelerator.prepare(loader)

    _huggingface(job, loader_of, [Position()], _rounds(job, state), state)


def huggingface_bytes(job: Job) -> None:
    from transformers import TrainerCallback

    batches, state = make_loader(rank=job.rank, world=job.world, workers=job.workers), job.load()
    if state is not None:
        batches.load_state_dict(state["batches"])

    class Keep(TrainerCallback):
        def on_step_end(self, *_: Any, model: Any = None, **__: Any) -> None:
            job.save({"model": _weights(model), "batches": batches.state_dict()})

    class OnlyArguments:
        """The batches, without what the model does not take."""

        def __iter__(self) -> Any:
            return ({"index": batch["indices"], "image": batch["image"]} for batch in batches)

    left = left_of(job, batches.state_dict()["delivered"])
    _huggingface(job, lambda _: OnlyArguments(), [Keep()], left, state)


# sentence-transformers


def sentences_rows(job: Job) -> None:
    import datasets
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        losses,
        models,
    )
    from sentence_transformers.models.tokenizer import WhitespaceTokenizer
    from transformers import TrainerCallback

    made: list[Any] = []
    words, state = [f"w{row}" for row in range(ROWS)], job.load()
    data = datasets.Dataset.from_dict({"sentence": words, "label": LABELS})

    def make(dataset: Any, **_: Any) -> Any:
        made.append(make_batches())
        if state is None:
            return made[-1]
        _load(made[-1], state)
        return Following(made[-1])

    class Loss(losses.BatchAllTripletLoss):  # type: ignore[misc]
        def forward(self, features: Any, labels: Any) -> Any:
            job.saw(digests(next(iter(features))["input_ids"][:, 0]))
            return super().forward(features, labels)

    class Position(TrainerCallback):
        number = 0

        def on_epoch_begin(self, *_: Any, **__: Any) -> None:
            self.number = 0

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.number += 1
            job.save({"batches": made[-1].state_dict(delivered=self.number)})

    tokens = WhitespaceTokenizer(vocab=words, stop_words=[])
    embedded = models.WordEmbeddings(tokens, np.ones((ROWS, 4), np.float32), update_embeddings=True)
    model = SentenceTransformer(modules=[embedded, models.Pooling(4)], device="cpu")
    arguments = SentenceTransformerTrainingArguments(
        str(job.folder / "st"),
        batch_sampler=make,
        per_device_train_batch_size=8,
        max_steps=_rounds(job, state),
        dataloader_num_workers=job.workers,
        **QUIET,
    )
    trainer = SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=Loss(model))
    trainer.add_callback(Position())
    trainer.train()
