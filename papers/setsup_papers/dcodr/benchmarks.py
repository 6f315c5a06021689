"""The five datasets of DCoDR: what is trained on and tested, what the domain is, and what the published code sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from setsup.experiments.data import Data

__all__ = ["BENCHMARKS", "PAPER", "PAPER_EPOCHS", "Benchmark"]

PAPER = '"A contrastive objective for learning disentangled representations", ECCV 2022 (arXiv 2203.11284)'

PAPER_EPOCHS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A dataset, and the settings that depend on it.

    Attributes
    ----------
    name : str
        In names of presets.
    title : str
        In reports.
    data, test : Data
        Training data and test data.
    domain : tuple of str
        Factors whose combinations are the domains.
    attributes : tuple of str
        What the code should represent: factors, or combinations of several, such as ``elevation+azimuth``.
    tolerances : tuple of (str, int)
        Levels by which factors of a retrieved image may differ.
    images : int
        Of the training data.
    batch : int
        Images of a batch that is balanced over domains: 32 of each of four, or of all where there are fewer.
    temperature : float
        τ.
    head : bool
        Whether the whole method has a head; the variant without reconstruction has none.
    rate : float
        Of the encoder, of the whole method; 1e-4 without reconstruction.
    generator_rate : float
        Of the generator.
    recipe : str
        Of the positives.

    """

    name: str
    title: str
    data: Data
    test: Data
    domain: tuple[str, ...]
    attributes: tuple[str, ...]
    images: int
    tolerances: tuple[tuple[str, int], ...] = ()
    batch: int = 128
    temperature: float = 0.2
    head: bool = False
    rate: float = 1e-4
    generator_rate: float = 3e-4
    recipe: str = "dcodr"

    def epoch(self, batch: int | None = None) -> int:
        """Steps of an epoch of batches of so many images; by default of those balanced over domains."""
        return self.images // (self.batch if batch is None else batch)


def _split(name: str, substitute: str | None = None, **options: Any) -> dict[str, Any]:
    """Both parts of the split that a manifest has for the paper."""
    given = tuple(sorted(options.items()))
    parts = {"data": "dcodr-train", "test": "dcodr-test"}
    return {part: Data(name, split, substitute, options=given, modalities=("image",)) for part, split in parts.items()}


_ALL = (
    Benchmark(
        name="cars3d",
        title="Cars3D",
        **_split("cars3d", "cars3d-procedural"),
        domain=("object",),
        attributes=("elevation+azimuth",),
        images=15_811,
    ),
    Benchmark(
        name="smallnorb",
        title="SmallNORB",
        **_split("smallnorb", "smallnorb-procedural"),
        domain=("category", "instance"),
        attributes=("azimuth", "elevation", "lighting"),
        images=43_740,
        tolerances=(("azimuth", 2),),
        head=True,
        rate=3e-4,
    ),
    Benchmark(
        name="shapes3d",
        title="Shapes3D",
        **_split("shapes3d", "shapes3d-procedural"),
        domain=("shape",),
        attributes=("floor_hue", "wall_hue", "object_hue", "scale", "orientation"),
        images=50_000,
        temperature=0.1,
    ),
    Benchmark(
        name="celeba",
        title="CelebA",
        **_split("celeba", crop=(128, 128), size=(64, 64)),
        domain=("identity",),
        attributes=(),
        images=131_844,  # 81 % of 162,770; the number is not published
        rate=1e-3,
        generator_rate=1e-3,
    ),
    Benchmark(
        name="edges2shoes",
        title="Edges2Shoes",
        **_split("edges2shoes", dilate=2, size=(64, 64)),
        domain=("domain",),
        attributes=("shoe_type", "gender"),
        images=90_045,
        batch=64,
        temperature=0.1,
        rate=1e-3,
        generator_rate=1e-3,
        recipe="dcodr-blur",
    ),
)

BENCHMARKS: Mapping[str, Benchmark] = {benchmark.name: benchmark for benchmark in _ALL}
"""By the names in presets."""
