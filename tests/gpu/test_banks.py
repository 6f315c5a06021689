"""States by row on a GPU: what is read, scored and written there, against the processor."""

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from torch.nn.functional import normalize  # noqa: E402

from setsup.errors import RowError  # noqa: E402
from setsup.methods.rows import RowState  # noqa: E402
from setsup.random import stream_key  # noqa: E402
from setsup_papers.cmc import BankContrast, draw_negatives  # noqa: E402

ROWS, SIZE = 500, 16
CLOSE = {torch.float32: 1e-5, torch.float16: 2e-3}


def random(*shape: int, seed: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_negatives_are_the_same_on_every_device(device: str) -> None:
    key, rows = stream_key(0, "negatives"), torch.tensor([3, 1, 499])
    found = draw_negatives(key, 5, rows.to(device), 64, ROWS)
    assert found.device.type == device.partition(":")[0]
    assert torch.equal(found.cpu(), draw_negatives(key, 5, rows, 64, ROWS))


@pytest.mark.parametrize("dtype", CLOSE, ids=str)
def test_what_is_read_scored_and_written(device: str, dtype: Any) -> None:
    here = RowState(ROWS, SIZE, dtype=dtype, initial=random(ROWS, SIZE, seed=0))
    there = copy.deepcopy(here).to(device)
    rows, queries = torch.tensor([4, 499, 4, 0]), random(4, SIZE, seed=1)
    candidates = torch.arange(40).reshape(4, 10) * 12
    asked = queries.to(device).requires_grad_()
    scores = there.scores(asked, candidates.to(device))
    there.update(rows.to(device), asked.detach())  # the gradient is that of the values that were read
    scores.sum().backward()
    exact = (queries[:, None].double() * here.gather(candidates).double()).sum(-1)
    torch.testing.assert_close(scores.detach().cpu().double(), exact, rtol=CLOSE[dtype], atol=10 * CLOSE[dtype])
    wanted = here.gather(candidates).double().sum(1)
    torch.testing.assert_close(asked.grad.cpu().double(), wanted, rtol=CLOSE[dtype], atol=10 * CLOSE[dtype])
    here.update(rows, queries)
    assert torch.equal(there.gather(torch.arange(ROWS, device=device)).cpu(), here.gather(torch.arange(ROWS)))
    assert torch.equal(there.gather(torch.tensor([4])).cpu()[0], queries[2].to(dtype)), "the last of equal rows"
    with pytest.raises(RowError):
        there.update(torch.tensor([ROWS], device=device), asked.detach()[:1])


@pytest.mark.parametrize("dtype", CLOSE, ids=str)
def test_contrast_with_a_bank(device: str, dtype: Any) -> None:
    def losses(where: str) -> Any:
        contrast = BankContrast((("L", "ab"),), ROWS, SIZE, negatives=64, dtype=dtype).to(where)
        found = []
        for step in range(3):
            features = {
                view: normalize(random(8, SIZE, seed=10 * step + k), dim=1).to(where)
                for k, view in enumerate(("L", "ab"))
            }
            found.append(torch.stack(list(contrast(features, torch.arange(8, device=where) + step).values())))
        return torch.stack(found).detach().cpu()

    torch.testing.assert_close(losses(device), losses("cpu"), rtol=10 * CLOSE[dtype], atol=10 * CLOSE[dtype])
