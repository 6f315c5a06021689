"""A step of single-pixel contrast at the paper's size: its time in several ways, and where that goes.

The step is forward, loss within pairs, backward and AdamW on one batch that stays on the GPU, so that no data are
waited for; the training of the first 1,000 steps, with data, estimates that of 30,000. The paper's took .45 hours.
Of the profile the ten operators are kept that take longest, once by the GPU's time and once by the processor's.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.devices import attempt, device, need_none, timed, wait
from benchmarks.measure import Spread, alternate, shrunk, sized
from benchmarks.rows import Row, at_most, duration
from benchmarks.trainings import cases, train_for

__all__ = ["graphed", "pixel_steps", "rows"]

TOPIC = "gpu_pixels"
PRESET = "pixels/colors-inf-100"
STEPS, ALL_STEPS = sized(1000, 4), 30_000
GOAL = 15.0
"""Minutes for all steps."""
PROFILED, LISTED = sized(10, 1), 10
Step = Callable[[], Any]


def rows(full: bool) -> Iterator[Row]:
    to = device()
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        folder = Path(name)
        preset, root, _ = cases(folder)[PRESET]
        yield from _training(preset, root, folder / "runs", failed)
        made = pixel_steps(preset, root, to)
        yield from _profile(made("bf16"), to)
        yield from _steps(made, to, failed)
    need_none(failed)


def _compiles(to: str) -> bool:
    """Whether torch.compile can make code here; what it would need, setsup doctor --gpu says."""
    from setsup_cli.gpu import compiler_line

    return to == "cpu" or compiler_line()[1] == "ok"


def _training(preset: Any, root: Path | None, runs: Path, failed: list[str]) -> Iterator[Row]:
    """All steps, estimated from the first ones."""
    ways: dict[str, dict[str, Any]] = {"bf16": {"precision": "bf16"}}
    if not shrunk():  # compiling takes a minute
        ways |= {"float32": {"precision": "float32"}}
        ways |= {"bf16, --compile": {"precision": "bf16", "compile": True}} if _compiles("cuda") else {}
    for way, config in ways.items():
        with attempt(way, failed):
            found = train_for(preset, STEPS, runs / way, root, False, **config)
            minutes = found.seconds / found.steps * ALL_STEPS / 60
            what = f"{PRESET}, {way}: {ALL_STEPS:,} steps with data, from the first {found.steps:,}"
            said = f"{minutes:.3g} minutes", "the goal", f"{GOAL:g} minutes"
            yield Row(TOPIC, what, *said, Spread.of([minutes]), "minutes", at_most(GOAL))


def _steps(made: Callable[..., Step], to: str, failed: list[str]) -> Iterator[Row]:
    """One step in several ways."""
    for way in ("bf16", "float32", "float32 with TF32", "bf16, compiled", "bf16, as a CUDA graph"):
        if "compiled" in way and not _compiles(to):
            continue
        with attempt(f"a step, {way}", failed), _tf32("TF32" in way):
            step = made("bf16" if "bf16" in way else "float32", compiled="compiled" in way)
            if "graph" in way:
                step = graphed(step, to)
            found = alternate({way: timed(step)}, 7, 0.3, time.perf_counter)[way]
            milliseconds = Spread.of(1000 * found)
            all_steps = f"{milliseconds.median * ALL_STEPS / 60_000:.3g} minutes"
            yield Row(TOPIC, f"a step, {way}", duration(found), f"{ALL_STEPS:,} of them", all_steps, milliseconds, "ms")


def pixel_steps(preset: Any, root: Path | None, to: str) -> Callable[..., Step]:
    """A function that makes steps on one batch of a preset, each of which returns its loss; shrunk, of its smoke test.

    ``made("bf16", compiled=True)`` is a step in bfloat16 by torch.compile; all begin with the same weights.
    """
    import torch

    from setsup.experiments.configs import build_method
    from setsup.experiments.preset import smoke
    from setsup.experiments.training.preflight import fit_to_first_draw
    from setsup.loading import Loader
    from setsup.methods.fused import fuse

    preset = smoke(preset) if shrunk() else preset
    data = preset.open_training(0, root)
    how: dict[str, Any] = {"modalities": data.modalities, "transform": data.build_transform(), "workers": 0}
    batch = next(iter(Loader(data.dataset, data.build_sampler(), rank=0, world=1, to=to, **how)))
    settings, kind = fit_to_first_draw(data, preset.method), to.partition(":")[0]

    def made(precision: str, compiled: bool = False) -> Step:
        method: Any = build_method(settings, data.dataset.factors, 0).to(to)
        method.log = lambda *given, **options: None  # there is no Trainer to log to
        if compiled:
            method.network.compile(backend="eager" if to == "cpu" else "inductor")
        adam = fuse(torch.optim.AdamW(method.parameters(), 1e-3, betas=(0.9, 0.99), capturable=to != "cpu"))

        def step() -> Any:
            adam.zero_grad()
            with torch.autocast(kind, torch.bfloat16) if precision == "bf16" else nullcontext():
                loss = method.loss(batch)
            loss.backward()
            adam.step()
            return loss

        return step

    return made


def graphed(step: Step, to: str) -> Step:
    """A step as a CUDA graph, which replays its kernels without Python; on the processor, the step itself."""
    import torch

    if to == "cpu":
        return step
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):  # a graph is recorded after what the first steps set up
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay() -> Any:
        graph.replay()
        return loss

    return replay


@contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    """Products and convolutions of float32 in TF32, or not."""
    import torch

    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def _profile(step: Step, to: str) -> Iterator[Row]:
    """The operators that take longest, and how many there are."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    for _ in range(sized(5, 1)):
        step()
    wait()
    begun = time.perf_counter()
    activities = [ProfilerActivity.CPU, *([] if to == "cpu" else [ProfilerActivity.CUDA])]
    with profile(activities=activities) as profiler:
        for _ in range(PROFILED):
            step()
        wait()
    elapsed = time.perf_counter() - begun
    # kernels have events too, but their time is that of the operators which launched them
    events = [event for event in profiler.key_averages() if event.device_type == DeviceType.CPU]
    operators = sum(event.count for event in events if event.key.startswith("aten::")) / PROFILED
    said = f"{operators:,.0f} operators", "profiled, a step takes", f"{1000 * elapsed / PROFILED:.3g} ms"
    yield Row(TOPIC, "profile, bf16: operators of a step", *said, Spread.of([operators]), "")
    for clock, name in (("GPU", "self_device_time_total"), ("processor", "self_cpu_time_total")):
        times = {event.key: (getattr(event, name), event.count) for event in events if getattr(event, name) > 0}
        total = sum(time for time, _ in times.values())
        for key, (spent, count) in sorted(times.items(), key=lambda item: -item[1][0])[:LISTED]:
            took, all_took = (f"{part / PROFILED / 1000:.3g} ms" for part in (spent, total))
            what = f"profile, bf16, by the {clock}'s time: {key[:80]}"
            share = Spread.of([100 * spent / total])
            yield Row(TOPIC, what, took, f"{count / PROFILED:,.0f} calls, of", all_took, share, "%")
