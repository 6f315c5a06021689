"""Runs on a GPU against runs on the processor: in float32, in 16 bits, and compiled."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.experiments import RunConfig, train  # noqa: E402
from setsup.loading.transforms import by_image  # noqa: E402
from setsup_papers.orbits import OrbitEncoder  # noqa: E402
from setsup_papers.pixels import PixelUNet  # noqa: E402
from tests.experiments.resumable import EXEMPLAR, MOMENTUM, ORBITS, POSE  # noqa: E402
from tests.experiments.small import AUGMENTED, PLAIN  # noqa: E402
from tests.gpu.conftest import CPU, CUDA, exact, need_compiler  # noqa: E402
from tests.papers.cmc.viewed import BANKED  # noqa: E402

SAME, HALF = 2e-2, 0.1
"""Relative differences of losses over six steps: rounding that grows, and 16 bits."""

FIRST = replace(PLAIN, steps=4)
NOISELESS = (AUGMENTED, POSE, ORBITS, EXEMPLAR, BANKED, MOMENTUM)
"""Of several papers; noise, of dropout and the like, is that of the device, and would differ."""

RUNS = [
    pytest.param(*CUDA.values, preset, id=f"cuda-{preset.name}", marks=CUDA.marks)
    for preset in (replace(preset, steps=6, evaluations={}) for preset in NOISELESS)
]
RUNS.append(pytest.param(*CPU.values, FIRST, id="cpu", marks=CPU.marks))


def losses(preset: Any, folder: Path, device: str, **config: Any) -> np.ndarray[Any, Any]:
    accelerator: Any = "cpu" if device == "cpu" else "gpu"
    run = train(preset, folder, config=RunConfig(workers=0, accelerator=accelerator, **config))
    lines = (run.folder / "metrics.csv").read_text().splitlines()
    table = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    return np.array([float(line["loss"]) for line in table if line.get("loss")])


@pytest.mark.parametrize(("device", "preset"), RUNS)
def test_the_losses_of_a_run_are_those_on_the_processor(
    tmp_path: Path, device: str, preset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_image, "cv2", None)  # both augment by torch's operations
    with exact(device):
        found, wanted = (losses(preset, tmp_path / where, where) for where in (device, "cpu"))
    np.testing.assert_allclose(found, wanted, rtol=SAME, atol=SAME)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_16_bits_stay_close_to_float32(tmp_path: Path, device: str, precision: Any) -> None:
    if device == "cpu" and precision == "fp16":
        precision = "bf16"  # setsup refuses fp16 there
    found = losses(FIRST, tmp_path / precision, device, precision=precision)
    wanted = losses(FIRST, tmp_path / "float32", device)
    np.testing.assert_allclose(found, wanted, rtol=HALF, atol=HALF)


NETWORKS = {
    "orbits": (lambda: OrbitEncoder((1, 40, 40), (4, 8, 16, 32), 64), (4, 1, 40, 40)),
    "pixels": (lambda: PixelUNet((8, 8, 8), (1, 1, 1), 16, dropout=0.0), (2, 3, 32, 32)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_compiled_networks_compute_the_same(device: str, name: str) -> None:
    """``--compile`` calls ``compile`` of each network; on the processor no code is made of what was traced."""
    need_compiler(device)
    make, shape = NETWORKS[name]
    torch.manual_seed(0)
    network = make().to(device).eval()
    images = torch.rand(shape, device=device)

    def first(found: Any) -> Any:
        return found[0] if isinstance(found, tuple) else found

    with torch.no_grad():
        wanted = first(network(images))
        compiled = torch.compile(network, backend="eager" if device == "cpu" else "inductor")
        found = first(compiled(images))
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
def test_a_compiled_run_trains_alike(tmp_path: Path) -> None:
    with exact("cuda:0"):
        need_compiler("cuda:0")
        found = losses(FIRST, tmp_path / "compiled", "cuda:0", compile=True)
        wanted = losses(FIRST, tmp_path / "plain", "cuda:0")
    np.testing.assert_allclose(found, wanted, rtol=SAME, atol=SAME)


@pytest.mark.gpu
def test_a_run_of_a_gpu_resumes_on_a_processor(tmp_path: Path) -> None:
    with exact("cuda:0"):
        half, whole = replace(FIRST, steps=2), replace(FIRST, steps=4)
        losses(half, tmp_path / "moved", "cuda:0")
        os.rename(tmp_path / "moved", tmp_path / "here")
        found = losses(whole, tmp_path / "here", "cpu")
        wanted = losses(whole, tmp_path / "whole", "cpu")
    np.testing.assert_allclose(found, wanted, rtol=SAME, atol=SAME)
