"""Where these tests compute: on a GPU, marked ``gpu``, and on the processor, so that the code is run without one."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

CUDA = pytest.param("cuda:0", id="cuda", marks=pytest.mark.gpu)
CPU = pytest.param("cpu", id="cpu", marks=pytest.mark.long("tests for GPUs, on the processor"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On a GPU warnings are no errors: compilers and drivers warn, of TF32 that is off, say."""
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.filterwarnings("default"))


def need_compiler(device: str) -> None:
    """Skip where torch.compile cannot make code for a GPU."""
    from setsup_cli.gpu import compiler_line

    _, state, detail = compiler_line()
    if device != "cpu" and state != "ok":
        pytest.skip(detail)


def without_gpu() -> str:
    """Why there is no GPU for torch; empty if there is one."""
    import torch

    if torch.cuda.is_available():
        return ""
    build = torch.version.cuda
    return "there is no GPU that torch sees" if build else f"torch {torch.__version__} is a build without CUDA"


@pytest.fixture(params=[CUDA, CPU])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """A device of torch, whose products and convolutions are of float32 and not of TF32."""
    with exact(request.param) as name:
        yield name


@contextmanager
def exact(device: str) -> Iterator[str]:
    """Skip where there is no such device; without TF32 until it is left."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if device != "cpu" and (why := without_gpu()):
        pytest.skip(why)
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield device
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
