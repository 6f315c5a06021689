"""Train with Hugging Face's Trainer, and resume from a checkpoint at the very draw.

Needs: pip install ".[train]". Checkpoints go to a temporary folder, or to one that is named:
python examples/huggingface_trainer.py runs
"""

import sys
import tempfile

import torch
from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainingArguments

import setsup
from setsup.loading.huggingface import PositionCallback

shapes = setsup.load("shapes3d-procedural", where="scale == 1.25")
rows = setsup.EpochSampler(shapes.factors, size=32, seed=0)


def for_model(batch: dict) -> dict:
    """The model's arguments: images, and the hue of each wall."""
    return {"pixel_values": batch["image"][0].float() / 255, "labels": batch["factors"]["wall_hue"][0]}


class ShapesTrainer(Trainer):
    """A Trainer whose batches come from setsup: no data set, no collator."""

    def get_train_dataloader(self):
        rank, world = self.args.process_index, self.args.world_size
        return setsup.loader(shapes, rows, transform=for_model, rank=rank, world=world)


torch.manual_seed(0)
config = ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], layer_type="basic", num_labels=10)
options = {"save_steps": 10, "learning_rate": 1e-2, "use_cpu": True, "report_to": [], "disable_tqdm": True}
folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
for steps, checkpoint in ((20, None), (40, f"{folder}/checkpoint-20")):  # the second trainer might run a day later
    arguments = TrainingArguments(folder, max_steps=steps, logging_steps=20, **options)
    trainer = ShapesTrainer(ResNetForImageClassification(config), arguments, callbacks=[PositionCallback()])
    trainer.train(resume_from_checkpoint=checkpoint)
    print("draws delivered:", trainer.callback_handler.train_dataloader.state_dict()["delivered"])
if torch.distributed.is_initialized():
    torch.distributed.barrier()  # a rank that ends while gloo's threads still let go of tensors is aborted
    torch.distributed.destroy_process_group()
