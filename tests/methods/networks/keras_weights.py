"""Weights of Keras' ResNet50V2 in the HDF5 layout of ``Model.save_weights`` of Keras 2, with random numbers."""

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

STAGES = ((2, 64, 3), (3, 128, 4), (4, 256, 6))


def layers() -> Iterator[tuple[str, dict[str, tuple[int, ...]]]]:
    """Layers with weights up to conv4_block6, in Keras' order, and shapes of their weights, channels last."""

    def convolution(side: int, before: int, after: int, bias: bool = True) -> dict[str, tuple[int, ...]]:
        return {"kernel": (side, side, before, after)} | ({"bias": (after,)} if bias else {})

    def norm(channels: int) -> dict[str, tuple[int, ...]]:
        return {name: (channels,) for name in ("gamma", "beta", "moving_mean", "moving_variance")}

    yield "conv1_conv", convolution(7, 3, 64)
    channels = 64
    for stage, width, depth in STAGES:
        for number in range(1, depth + 1):
            block = f"conv{stage}_block{number}"
            yield f"{block}_preact_bn", norm(channels)
            yield f"{block}_1_conv", convolution(1, channels, width, bias=False)
            yield f"{block}_1_bn", norm(width)
            yield f"{block}_2_conv", convolution(3, width, width, bias=False)
            yield f"{block}_2_bn", norm(width)
            if number == 1:
                yield f"{block}_0_conv", convolution(1, channels, 4 * width)
            yield f"{block}_3_conv", convolution(1, width, 4 * width)
            channels = 4 * width


def random_weights(seed: int = 0) -> dict[str, np.ndarray]:
    """Weights ``layer/weight`` whose activations neither vanish nor explode."""
    rng = np.random.default_rng(seed)
    found = {}
    for layer, shapes in layers():
        for name, shape in shapes.items():
            numbers = rng.normal(size=shape).astype(np.float32)
            if name == "kernel":
                numbers *= np.float32(0.7 / np.sqrt(np.prod(shape[:3])))
            elif name in ("gamma", "moving_variance"):
                numbers = 1 + 0.2 * np.abs(numbers)
            else:
                numbers *= 0.1
            found[f"{layer}/{name}"] = numbers
    return found


def write(path: Path, weights: dict[str, np.ndarray], top: str = "", **options: str) -> Path:
    """A file of ``save_weights``, or with ``top="model_weights"`` one of ``save``; layers without weights are in it."""
    with h5py.File(path, "w") as file:
        root = file.create_group(top) if top else file
        names = list(dict.fromkeys(name.partition("/")[0] for name in weights))
        root.attrs["layer_names"] = [name.encode() for name in ("input_1", "conv1_pad", *names)]
        root.attrs["backend"], root.attrs["keras_version"] = b"tensorflow", b"2.2.4"
        for layer in ("input_1", "conv1_pad"):
            root.create_group(layer).attrs["weight_names"] = np.empty(0)
        for layer in names:
            group = root.create_group(layer)
            own = [name for name in weights if name.partition("/")[0] == layer]
            group.attrs["weight_names"] = [f"{name}:0".encode() for name in own]
            for name in own:
                group.create_dataset(f"{name}:0", data=weights[name], **options)
    return path
