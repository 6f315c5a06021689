"""Steps of a method in manual optimisation, without a Trainer."""

from typing import Any
from unittest import mock

import torch


class Steps:
    """Runs ``training_step`` with the method's own optimisers; ``seed`` is torch's at each step."""

    def __init__(self, method: Any, seed: int = 0) -> None:
        found = method.configure_optimizers()
        self.optimisers, schedulers = found if isinstance(found, tuple) else (found, None)
        self.method, self.seed, self.logged = method, seed, {}
        self._patches = [
            mock.patch.object(method, "optimizers", return_value=self.optimisers),
            mock.patch.object(method, "lr_schedulers", return_value=schedulers),
            mock.patch.object(method, "manual_backward", lambda loss: loss.backward()),
            mock.patch.object(method, "log", lambda name, value: self.logged.update({name: value.item()})),
        ]

    def __enter__(self) -> "Steps":
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        for patch in self._patches:
            patch.stop()

    def run(self, batch: dict[str, Any]) -> None:
        torch.manual_seed(self.seed)
        self.method.training_step(batch, 0)
