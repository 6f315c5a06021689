"""Encoders and runs that compute features of pixels, for `setsup report dense`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from setsup.errors import SetsupError
from setsup_cli.encoders.options import explained
from setsup_cli.runs import describe_run, opened

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from setsup.arrays import Array, Rows
    from setsup.datasets import Dataset
    from setsup.experiments.evaluations.dense import Maps

__all__ = ["PixelEncoder", "open_pixel_encoders"]


@dataclass(frozen=True, slots=True)
class PixelEncoder:
    """An encoder or a run.

    Attributes
    ----------
    label : str
        Name of the encoder, or folder of the run.
    described : str
        Description of its weights.
    about : dict
        What its features depend on, as JSON values.
    embed : callable
        Features of rows of a dataset, (rows, columns, D) each; the images of the rows have the same size.
    multiple : int
        Both sides of an image must be multiples of this number of pixels.

    """

    label: str
    described: str
    about: dict[str, Any]
    embed: "Callable[[Dataset, Rows], Sequence[Array]]"
    multiple: int = 1

    def maps(self, dataset: "Dataset") -> "Maps":
        """Features of rows of a dataset."""
        return lambda rows: self.embed(dataset, rows)

    def encode(self, name: str, longest: int | None) -> "Callable[[npt.NDArray[np.uint8]], npt.NDArray[Any]]":
        """Return a function of one image (height, width, 3) uint8 that resizes its longer side, and computes features.

        `name` of the dataset, for errors; `longest` in pixels, None to keep the size.
        """
        import numpy as np
        from PIL import Image

        from setsup.datasets import from_arrays

        def encode(image: "npt.NDArray[np.uint8]") -> "npt.NDArray[Any]":
            scale = 1.0 if longest is None else longest / max(image.shape[:2])
            height, width = (max(1, round(side * scale / self.multiple)) * self.multiple for side in image.shape[:2])
            if (height, width) != image.shape[:2]:
                image = np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BICUBIC))
            single = from_arrays(np.ascontiguousarray(image)[None], {"number": [0]}, name=name)
            return np.asarray(self.embed(single, np.zeros(1, np.int64))[0])

        return encode


def open_pixel_encoders(options: Any, dataset: "Dataset", *, grid: bool) -> Iterator[PixelEncoder]:
    """Open the encoders of --encoder and the runs of RUNS; with `grid`, features of patches are not interpolated."""
    from setsup.experiments import load_trained
    from setsup.experiments.encoders.dense_encoders import open_dense_encoder
    from setsup.experiments.pixel_features import MULTIPLE
    from setsup.experiments.result_cache import digest_weights

    for name in dict.fromkeys(options.encoder or ()):
        encoder = open_dense_encoder(name, options.device, grid=grid, seed=options.seed)
        source = {"encoder": name, "weights": encoder.weights, "features": options.features}
        yield PixelEncoder(name, f"weights: {encoder.weights}", source, _explained(name, _by_encoder(encoder.features)))
    for folder in dict.fromkeys(options.runs or ()):
        run = opened(folder, options.preset)
        trained = load_trained(run, root=options.root, device=options.device)
        trained.seed, trained.dataset = options.seed, dataset
        label = f"{folder}{' (shrunk by --smoke)' if run.preset.shrunk else ''}"
        about: dict[str, Any] = {"weights": digest_weights(trained.method.state_dict()), "embedding": options.embedding}
        described = "; ".join(describe_run(run)).removeprefix(f"{folder}: ")
        embed = _explained(label, _by_run(trained, options.embedding, label))
        yield PixelEncoder(label, described, about, embed, MULTIPLE)


def _by_encoder(features: Callable[[Any], Any]) -> "Callable[[Dataset, Rows], Sequence[Array]]":
    import numpy as np

    from setsup.experiments.data import image_modality

    def embed(dataset: "Dataset", rows: "Rows") -> "Sequence[Array]":
        modality = image_modality(dataset)
        images = dataset.fetch(rows, [modality])[modality]
        rgb = images.repeat(3, axis=-1) if images.shape[-1] == 1 else images[..., :3]
        return list(features(np.ascontiguousarray(rgb)))

    return embed


def _by_run(trained: Any, embedding: str | None, label: str) -> "Callable[[Dataset, Rows], Sequence[Array]]":
    import numpy as np

    def embed(dataset: "Dataset", rows: "Rows") -> "Sequence[Array]":
        embedded = np.concatenate(list(trained.embed_batches(dataset, rows, embedding)))
        if embedded.ndim != 4:
            raise SetsupError(
                f"{label} does not return a feature for every pixel; pass a run whose method computes pixel features, "
                "for example pixels/rooms-small"
            )
        return list(embedded)

    return embed


def _explained(
    label: str, embed: "Callable[[Dataset, Rows], Sequence[Array]]"
) -> "Callable[[Dataset, Rows], Sequence[Array]]":
    """Wrap a function, so that errors of its network are explained."""

    def embed_or_explain(dataset: "Dataset", rows: "Rows") -> "Sequence[Array]":
        with explained(label, dataset):
            return list(embed(dataset, rows))

    return embed_or_explain
