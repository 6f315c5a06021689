"""All loops of the matrix, by way and line."""

from benchmarks.resume import accelerate_loops, loops, trainer_loops
from benchmarks.resume.run import Way

__all__ = ["PLAIN", "WAYS"]

WAYS: dict[tuple[str, str], Way] = {
    ("torch DDP", "rows"): loops.torch_rows,
    ("torch DDP", "bytes"): loops.torch_bytes,
    ("StatefulDataLoader", "rows"): loops.stateful_rows,
    ("torchdata.nodes", "bytes"): loops.stateful_bytes,
    ("numpy loop", "rows"): loops.numpy_rows,
    ("numpy loop", "bytes"): loops.numpy_bytes,
    ("Lightning", "rows"): trainer_loops.lightning_rows,
    ("Lightning", "bytes"): trainer_loops.lightning_bytes,
    ("accelerate", "rows"): accelerate_loops.accelerate_rows,
    ("accelerate", "bytes"): accelerate_loops.accelerate_bytes,
    ("Hugging Face Trainer", "rows"): accelerate_loops.huggingface_rows,
    ("Hugging Face Trainer", "bytes"): accelerate_loops.huggingface_bytes,
    ("sentence-transformers", "rows"): accelerate_loops.sentences_rows,
    ("Ray Train", "rows"): trainer_loops.ray_rows,
    ("Ray Train", "bytes"): trainer_loops.ray_bytes,
}
"""The loops, by way and line."""
PLAIN = {("numpy loop", "bytes")}
"""Loops without augmentations, which take tensors."""
