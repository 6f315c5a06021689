"""Fine-tune a tiny vision transformer on rooms, and measure it before and after; existing results are kept.

    python docs/experiments/finetuning_small.py FOLDER

Rooms, the transformer (with random weights), runs and the report are written to FOLDER. ``--encoder
hf:facebook/dinov2-small --size 224`` takes a pretrained one, in the cache of the Hugging Face hub, for which views
should be larger, and a GPU.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

SETSUP = [sys.executable, "-c", "import sys; from setsup_cli.main import main; sys.exit(main())"]
ROOMS = {
    "rooms-train": ["--pairs", "40", "--where", "room < 24", "--matches", "960"],
    "rooms-test": ["--pairs", "6", "--where", "room >= 24", "--matches", "60"],
}
TINY = {"hidden_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "mlp_ratio": 2, "image_size": 112}
ALL = ["query", "key", "value", "output", "mlp"]
RUNS = {
    "low-rank": ["pixels/finetune", "--method.rank", "16", "--method.alpha", "16", "--method.projections", *ALL],
    "head": ["pixels/finetune-head", "--method.features", "64"],
}


def write_transformer(folder: Path) -> None:
    """A transformer with random weights, patches of 8 pixels, in the layout of the hub."""
    import torch
    from transformers import BitImageProcessor, Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    Dinov2Model(Dinov2Config(patch_size=8, **TINY)).save_pretrained(folder)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    BitImageProcessor(image_mean=mean, image_std=std).save_pretrained(folder)


def call(folder: Path, *words: str) -> float:
    """Run the command in a folder; the seconds that it took."""
    began = time.monotonic()
    subprocess.run([*SETSUP, *words], cwd=folder, check=True, env={"OMP_NUM_THREADS": "1", **os.environ})
    return time.monotonic() - began


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoder", default="hf:./transformer")
    parser.add_argument("--size", type=int, default=112, help="side of the windows, a multiple of the patches")
    parser.add_argument("--views", type=int, nargs=2, default=[120, 160], help="height and width of the rendered views")
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--rate", default="3e-3")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="*", default=list(RUNS))
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    size = [str(side) for side in asked.views]
    for name, words in ROOMS.items():
        if not (asked.folder / name).is_dir():
            modalities = ["image", "partners", "status"] + (["depth", "instances"] if name == "rooms-test" else [])
            words = [*words, "--size", *size, "--supersample", "2", "--modalities", *modalities, "--out", name]
            call(asked.folder, "render", "room", "--rooms", "34", *words)
    if asked.encoder == "hf:./transformer" and not (asked.folder / "transformer").is_dir():
        write_transformer(asked.folder / "transformer")
    more = ["--method.encoder", asked.encoder, "--augmentation.size", str(asked.size)]
    more += ["--sampler.pairs", str(asked.pairs), "--steps", str(asked.steps), "--method.rate", asked.rate]
    more += ["--augmentation.keep", "0.0625", "--augmentation.colors", "false"]
    runs = []
    for seed in asked.seeds:
        for name in asked.only:
            taken = call(asked.folder, "train", *RUNS[name], *more, "--seed", str(seed), "--out", f"runs/{name}")
            print(f"{name} seed {seed}: {taken:.0f} s", flush=True)
            runs.append(f"runs/{name}/seed-{seed}")
    report = ["report", "dense", "rooms-test", *runs, "--encoder", asked.encoder, "--encoder", "colors"]
    report += ["--encoder", "daisy", "--pairs", "60", "--spread", "room", "--out", "dense", "--force"]
    print(f"report: {call(asked.folder, *report):.0f} s", flush=True)
