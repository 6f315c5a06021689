"""Checks of the built site: pages load nothing from elsewhere, none is large, and searches find what users look for."""

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

WANTED = {
    "jupyter": ("install", "quickstart"),
    "notebook": ("install", "quickstart"),
    "own images": ("quickstart", "datasets/own"),
    "ImageFolder": ("datasets/own", "coming-from/torchvision"),
    "DataLoader": ("trainers", "api/loading", "coming-from/torchvision"),
    "WILDS": ("samplers/domain", "coming-from/wilds"),
    "disent": ("samplers/factor-pair", "coming-from/disent"),
    "torchvision": ("install", "transforms", "datasets/own", "coming-from/torchvision"),
    "albumentations": ("transforms",),
    "resume": ("questions", "loading", "trainers", "experiments/index", "concepts", "batches/mid-epoch"),
    "checkpoint": ("trainers", "experiments/index"),
    "DDP": ("questions", "trainers", "batches/weighted-ddp"),
    "wandb": ("experiments/index", "trainers"),
    "CUDA": ("install", "loading", "questions"),
    "Windows": ("install",),
    "conda": ("install",),
    "imbalanced": ("questions", "samplers/domain", "batches/balanced", "batches/weighted-ddp"),
    "balanced batches": ("questions", "samplers/domain", "batches/balanced"),
    "CUDA out of memory": ("questions",),
    "out of memory": ("questions", "errors"),
    "GPU memory": ("questions",),
    "memory": ("questions", "errors"),
    "S3": ("questions", "shards"),
    "bucket": ("questions", "shards"),
    "streaming": ("questions", "shards"),
    "resume training": ("questions", "trainers", "experiments/index"),
    "my own dataset": ("questions", "datasets/own"),
    "custom dataset": ("questions", "datasets/own"),
    "own dataset": ("questions", "datasets/own"),
    "few-shot": ("questions", "samplers/episode", "batches/few-shot"),
    "hard negatives": ("samplers/neighbour", "questions"),
    "SimCLR": ("questions", "samplers/epoch"),
    "contrastive": ("questions",),
    "custom samplers": ("questions", "samplers/index"),
    "multi-GPU": ("questions", "trainers"),
    "multiprocessing": ("questions", "loading"),
    "offline": ("questions",),
    "seed": ("questions", "api/random"),
    "reproducible": ("questions", "concepts"),
    "domain generalization": ("questions", "coming-from/domainbed"),
    "disentanglement": ("questions", "coming-from/disent"),
    "metric learning": ("questions", "coming-from/pytorch-metric-learning", "trainers"),
    "re-identification": ("questions", "samplers/constraints"),
    "train test split": ("questions", "concepts"),
    "citation": ("questions",),
    "licence": ("questions", "datasets/index"),
    "Lightning": ("trainers",),
    "accelerate": ("trainers",),
    "JAX": ("trainers",),
    "mixed precision": ("trainers", "experiments/index"),
    "tensorboard": ("trainers", "experiments/index"),
    "csv": ("datasets/own",),
    "parquet": ("datasets/own",),
    "webdataset": ("shards", "coming-from/webdataset"),
    "Colab": ("install",),
    "uninstall": ("install",),
    "speed": ("speed",),
    "slow": ("questions", "trainers"),
    "pandas": ("datasets/own", "dependencies"),
    "SetSampler": ("samplers/set", "api/samplers"),
    "OverlapSampler": ("samplers/overlap", "api/samplers", "overlap"),
    "RenderedDataset": ("api/rendered",),
    "MultiPie": ("api/benchmarks/photographs",),
    "logistic_probe": ("api/evaluation/probes",),
    "ABCSettings": ("api/papers/abc",),
    "DCoDR": ("api/papers/dcodr", "experiments/domains"),
    "triplet_loss": ("api/papers/orbits",),
    "LORDSettings": ("api/papers/dcodr-baselines",),
    "PixelUNet": ("api/papers/pixels",),
    "mid-epoch": ("questions", "trainers", "batches/mid-epoch"),
    "MPerClassSampler": ("batches/balanced", "coming-from/pytorch-metric-learning"),
    "MPerClassSampler DDP": ("batches/balanced",),
    "group by label": ("batches/balanced",),
    "WeightedRandomSampler": ("batches/weighted-ddp",),
    "DistributedWeightedRandomSampler": ("batches/weighted-ddp",),
    "weighted sampling": ("batches/weighted-ddp",),
    "DistributedSampler": ("batches/weighted-ddp", "trainers"),
    "resume dataloader mid-epoch": ("batches/mid-epoch", "questions"),
    "StatefulDataLoader": ("batches/mid-epoch", "trainers"),
    "skip_first_batches": ("batches/mid-epoch",),
    "easyfsl": ("batches/few-shot", "samplers/episode"),
    "few-shot episodes": ("batches/few-shot", "questions"),
    "group DRO": ("batches/group-dro",),
    "GroupDRO": ("batches/group-dro",),
    "domain batches": ("batches/group-dro", "questions"),
    "lightly": ("batches/positives",),
    "solo-learn": ("batches/positives",),
    "overlap of views": ("overlap",),
    "positives": ("batches/positives", "samplers/neighbour", "samplers/constraints"),
    "positive pairs": ("batches/positives", "views"),
    "folder of photographs": ("datasets/own", "quickstart", "first-hour"),
    "csv labels": ("datasets/own",),
    "list of datasets": ("datasets/index", "command"),
    "datasets": ("datasets/index",),
    "factor": ("concepts", "questions"),
    "which sampler": ("samplers/index", "questions"),
    "own meshes": ("scenes", "questions"),
    "pixel correspondences": ("correspondences", "api/correspondence"),
    "webdataset shards": ("shards", "coming-from/webdataset"),
    "figure 5": ("experiments/abc",),
    "manifest": ("datasets/benchmark", "datasets/described"),
    "own method": ("experiments/own", "questions"),
    "error": ("errors", "questions"),
    "error message": ("errors", "questions"),
    "cite setsup": ("stability",),
    "security": ("stability",),
    "vulnerability": ("stability",),
}
"""What users type, and the pages of which one must come first."""

LARGEST = 300_000
"""Bytes that a page may have."""

_REMOTE = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//|<link\b[^>]*\bhref=\"(?:https?:)?//")
_WORD = re.compile(r"[a-z0-9]+(?:['_-][a-z0-9]+)*")
_TITLE = 4.0  # a word of a title counts as often in a text


def on_post_build(config: Any, **_: Any) -> None:
    """Look through the site that was written."""
    site = Path(config["site_dir"])
    faults = [*loaded_from_elsewhere(site), *too_large(site)]
    entries = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    for words, pages in WANTED.items():
        best = ranked(entries, words)[:1]
        if not best or best[0] not in pages:
            faults.append(f"the search for {words!r} finds {best[0] if best else 'nothing'}, not {' or '.join(pages)}")
    if faults:
        raise PluginError("; ".join(faults))


def loaded_from_elsewhere(site: Path) -> list[str]:
    """Pages that make a browser ask another host."""
    pages = sorted(site.rglob("*.html"))
    return [f"{page.name} loads {found[0]}" for page in pages if (found := _REMOTE.search(page.read_text("utf-8")))]


def too_large(site: Path) -> list[str]:
    """Pages that take long to load."""
    sizes = {page.relative_to(site).as_posix(): page.stat().st_size for page in sorted(site.rglob("*.html"))}
    return [
        f"{page} has {size // 1000:,} kB; expected at most {LARGEST // 1000}: split it"
        for page, size in sizes.items()
        if size > LARGEST
    ]


def ranked(entries: list[dict[str, Any]], words: str) -> list[str]:
    """Pages with all the words, best first: their best sections are compared by BM25, as lunr does in the browser."""
    terms = words.lower().split()
    counts = [Counter(_words(entry["text"])) for entry in entries]
    titles = [_words(entry["title"]) for entry in entries]
    mean = sum(counter.total() for counter in counts) / len(counts)
    rare = {}
    for term in terms:
        holding = sum(term in counter or term in title for counter, title in zip(counts, titles, strict=True))
        rare[term] = math.log(1 + len(entries) / (1 + holding))
    scores = dict[str, float]()
    for entry, counter, title in zip(entries, counts, titles, strict=True):
        scale = 1.2 * (0.25 + 0.75 * counter.total() / mean)
        score = 0.0
        for term in terms:
            if term not in counter and term not in title:
                break
            score += rare[term] * (2.2 * counter[term] / (counter[term] + scale) + _TITLE * (term in title))
        else:
            page = entry["location"].partition("#")[0].removesuffix(".html")
            if page != "changelog":
                scores[page] = max(score * entry.get("boost", 1), scores.get(page, 0.0))
    return sorted(scores, key=lambda page: -scores[page])


def _words(text: str) -> list[str]:
    return _WORD.findall(re.sub(r"<[^>]*>", " ", text).lower())
