"""State by row ends a run that would lose it, or that is not finite; `test_ddp.py` computes it again."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import RunConfig, train  # noqa: E402
from tests.experiments.checkpoint_retention import BANKS, FORGOTTEN, Banks  # noqa: E402


@pytest.mark.long("trainings")
def test_gradients_of_codes_that_are_never_applied_end_a_run_at_its_first_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(SetsupError, match=r"^gradients of content were never applied; call step\(\) of the codes"):
        train(FORGOTTEN, tmp_path / "run", config=RunConfig(workers=0))


@pytest.mark.long("trainings")
def test_state_by_row_that_is_not_finite_ends_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Banks.on_train_batch_end

    def spoil(self: Banks, outputs: Any, batch: Any, batch_idx: int) -> None:
        whole(self, outputs, batch, batch_idx)
        self.red_bank.update(torch.tensor([3]), torch.full((1, 4), torch.inf))

    monkeypatch.setattr(Banks, "on_train_batch_end", spoil)
    with pytest.raises(SetsupError, match="after step 6 red_bank of small/banks is not finite"):
        train(BANKS, tmp_path / "run", config=RunConfig(workers=0))
