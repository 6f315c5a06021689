"""Train with Lightning, stop, and resume from a checkpoint at the very draw.

Needs: pip install ".[train]".
"""

import tempfile

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import setsup
from setsup.loading.lightning import LightningBatches

shapes = setsup.load("shapes3d-procedural")
sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=8, sets=8, values="different", seed=0)


class SetContrast(lightning.LightningModule):
    """Learns what the images of a set share: one half of a set has to find its other half."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(192, 16))

    def training_step(self, batch: dict, number: int) -> torch.Tensor:
        embedded = self.net(batch["image"].flatten(0, 1).float() / 255).unflatten(0, (8, 8))
        halves = torch.nn.functional.normalize(embedded.unflatten(1, (2, 4)).mean(2), dim=-1)
        scores = halves[:, 0] @ halves[:, 1].T / 0.1
        self.log("right", (scores.argmax(1).cpu() == torch.arange(8)).float().mean())
        return torch.nn.functional.cross_entropy(scores, torch.arange(8, device=self.device))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-2)


folder = tempfile.mkdtemp()  # or one of yours, such as "runs"
for steps, checkpoint in ((30, None), (60, f"{folder}/last.ckpt")):  # the second trainer might run a day later
    saved = ModelCheckpoint(folder, every_n_train_steps=10, save_last=True)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(max_steps=steps, callbacks=[saved], accelerator="cpu", **quiet)
    trainer.fit(SetContrast(), LightningBatches(shapes, sets), ckpt_path=checkpoint)
    print(f"step {steps}: {trainer.callback_metrics['right']:.0%} right, {trainer.datamodule.delivered} draws")
